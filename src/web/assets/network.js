// What the network sees: the value of the position and its course over the game, for
// the person at the page, and the value of every move, for the one who makes it.

import { byId, html, memory, round, svg } from "/assets/dom.js";

/** `+0.42`, with a true minus sign. */
export const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);

const WORDS = [
  [-0.9, "as good as lost for you"],
  [-0.4, "clearly worse for you"],
  [-0.12, "a little worse for you"],
  [0.12, "about even"],
  [0.4, "a little better for you"],
  [0.9, "clearly better for you"],
];

const words = (value) => WORDS.find(([below]) => value < below)?.[1] ?? "as good as won for you";

export class Network {
  /** `onStep` is called with a ply of the graph; `onValues` when moves are to be judged. */
  constructor({ onStep, onValues, onHover }) {
    this.onStep = onStep;
    this.onHover = onHover;
    const box = byId("show-values");
    box.checked = memory.get("values", false);
    box.addEventListener("change", () => {
      memory.set("values", box.checked);
      onValues();
    });
    const graph = byId("graph");
    graph.addEventListener("click", (event) => this.onStep(this.plyAt(event)));
    new ResizeObserver(() => this.drawGraph()).observe(graph);
  }

  get judgesMoves() {
    return byId("show-values").checked;
  }

  /** Shows the values after each ply; `ply` is the one that the board shows. */
  show(view, ply) {
    const has = view.network !== null;
    byId("network-body").hidden = !has;
    byId("no-network").hidden = has;
    byId("value-bar").hidden = !has;
    if (!has) {
      byId("no-network").textContent =
        `No network has learned ${view.title} yet. Train one, or play against a run: its ` +
        "network will be shown here.";
      return;
    }
    const sign = view.human === "first" ? 1 : -1;
    this.values = view.positions.map(({ value }) => sign * value);
    this.ply = ply;
    const value = this.values[ply];
    // A finished position has no moves, and its result for a value.
    const isResult = Math.abs(value) === 1 || (value === 0 && view.result?.winner === null);
    byId("value").textContent = signed(value);
    byId("value-words").textContent =
      isResult && ply === view.moves.length ? "the result" : `${words(value)}, says ${view.network}`;
    byId("value-bar").querySelector(".fill").style.height = `${50 + 50 * value}%`;
    byId("value-bar").setAttribute("aria-label", `Value ${signed(value)} for you`);
    byId("value-bar").dataset.side = view.human;
    this.drawGraph();
  }

  drawGraph() {
    const graph = byId("graph");
    const width = graph.clientWidth;
    if (!this.values || width === 0) return;
    const height = 96;
    graph.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const last = Math.max(this.values.length - 1, 8);
    this.xOf = (ply) => 8 + ((width - 16) * ply) / last;
    const y = (value) => height / 2 - (height / 2 - 8) * value;
    const points = this.values.map((value, ply) => `${round(this.xOf(ply))} ${round(y(value))}`);
    const end = round(this.xOf(this.values.length - 1));
    const zero = height / 2;
    const area = `M${round(this.xOf(0))} ${zero} L${points.join(" L")} L${end} ${zero} Z`;
    graph.replaceChildren(
      svg("clipPath", { id: "above" }, svg("rect", { width, height: zero })),
      svg("clipPath", { id: "below" }, svg("rect", { y: zero, width, height: zero })),
      svg("path", { class: "area good", d: area, "clip-path": "url(#above)" }),
      svg("path", { class: "area bad", d: area, "clip-path": "url(#below)" }),
      svg("path", { class: "axis", d: `M0 ${zero}H${width}` }),
      svg("path", { class: "curve", d: `M${points.join(" L")}` }),
      svg("path", { class: "now", d: `M${round(this.xOf(this.ply))} 0V${height}` }),
      svg("circle", { class: "now", cx: round(this.xOf(this.ply)), cy: round(y(this.values[this.ply])), r: 4 }),
    );
  }

  plyAt(event) {
    const { left } = byId("graph").getBoundingClientRect();
    const x = event.clientX - left;
    const distances = this.values.map((_, ply) => Math.abs(this.xOf(ply) - x));
    return distances.indexOf(Math.min(...distances));
  }

  /** Lists judged moves, best first; `caption` says for whom. */
  list(moves, caption) {
    const list = byId("values");
    list.hidden = byId("values-for").hidden = moves === null;
    byId("values-for").textContent = caption;
    if (moves === null) return;
    const rows = moves.map((move) => {
      const bar = html("span", { class: "bar" });
      bar.style.width = `${50 + 50 * move.value}%`;
      const row = html(
        "li",
        { "data-move": move.move },
        html("span", { class: "move" }, move.move),
        html("span", { class: "track", "aria-hidden": "true" }, bar),
        html("span", { class: "number" }, signed(move.value)),
      );
      row.addEventListener("pointerenter", () => this.onHover(move));
      row.addEventListener("pointerleave", () => this.onHover(null));
      return row;
    });
    if (!rows.length) rows.push(html("li", { class: "hint" }, "The game is over here."));
    list.replaceChildren(...rows);
  }
}

/** Gives each move its weight on the board: 1 for the best, 0 for the worst. */
export function weigh(moves) {
  const values = moves.map(({ value }) => value);
  const [best, worst] = [Math.max(...values), Math.min(...values)];
  const spread = Math.max(best - worst, 0.05);
  return moves.map((move) => ({
    ...move,
    best: move.value === best,
    // Squared, so that the few good ones stand out.
    weight: (1 - (best - move.value) / spread) ** 2,
  }));
}
