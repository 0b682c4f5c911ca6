// Light or dark: as the system says, until the person says otherwise.

import { byId, memory } from "/assets/dom.js";

const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (memory.get("theme") ?? (system.matches ? "dark" : "light")) === "dark";

function show() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  byId("theme").textContent = isDark() ? "Light" : "Dark";
}

byId("theme").addEventListener("click", () => {
  memory.set("theme", isDark() ? "light" : "dark");
  show();
});
system.addEventListener("change", show);
show();
