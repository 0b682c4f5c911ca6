// The form that starts a game. It remembers what was chosen last.

import { byId, html, memory } from "/assets/dom.js";

const seconds = (id) => Math.round(Number(byId(id).value) * 1000);

export class Setup {
  /** `onGame` is told which game is looked at; `onStart` gets the request for it. */
  constructor({ onGame, onStart }) {
    this.form = byId("setup");
    this.onGame = onGame;
    this.form.addEventListener("submit", async (event) => {
      event.preventDefault();
      this.fail(null);
      byId("start").disabled = true;
      try {
        this.remember();
        await onStart(this.request());
      } catch (error) {
        this.fail(error.message);
      } finally {
        byId("start").disabled = false;
      }
    });
    byId("clock-on").addEventListener("change", () => this.showClock());
  }

  /** Fills the form with what the server offers, and with what was chosen last. */
  fill({ games, clock }) {
    this.games = games;
    const asked = new URLSearchParams(location.search);
    const last = memory.get("setup", {});
    const wanted = {
      ...last,
      ...(asked.has("game") && { game: asked.get("game") }),
      ...(asked.has("opponent") && { opponent: asked.get("opponent") }),
    };
    byId("games").replaceChildren(...games.map((game) => choice("game", game.name, game.title)));
    byId("games").onchange = () => this.showGame();
    byId("opponents").onchange = () => this.showPlies();
    choose(this.form, "game", wanted.game);
    choose(this.form, "side", wanted.side);
    byId("clock-on").checked = wanted.clock !== null;
    const { initial_ms, increment_ms } = wanted.clock ?? clock;
    byId("initial").value = initial_ms / 1000;
    byId("increment").value = increment_ms / 1000;
    if (wanted.plies) byId("plies").value = wanted.plies;
    this.showGame(wanted.opponent);
    this.showClock();
  }

  get game() {
    return this.games.find(({ name }) => name === chosen(this.form, "game"));
  }

  get opponent() {
    return this.game.opponents.find(({ id }) => id === chosen(this.form, "opponent"));
  }

  showGame(opponent = chosen(this.form, "opponent")) {
    byId("about-game").textContent = sentence(this.game.about);
    const choices = this.game.opponents.map(({ id, name, about }) =>
      choice("opponent", id, name, about),
    );
    byId("opponents").replaceChildren(...choices);
    choose(this.form, "opponent", opponent);
    this.showPlies();
    this.onGame(this.game);
  }

  showPlies() {
    byId("plies-field").hidden = !this.opponent.takes_plies;
  }

  showClock() {
    const isOn = byId("clock-on").checked;
    byId("clock-fields").hidden = !isOn;
    byId("clock-off").hidden = isOn;
    for (const id of ["initial", "increment"]) byId(id).disabled = !isOn;
  }

  request() {
    const position = byId("position").value.trim();
    return {
      game: this.game.name,
      opponent: this.opponent.id,
      side: chosen(this.form, "side"),
      clock: byId("clock-on").checked
        ? { initial_ms: seconds("initial"), increment_ms: seconds("increment") }
        : null,
      ...(this.opponent.takes_plies && { plies: Number(byId("plies").value) }),
      ...(position && { position }),
    };
  }

  remember() {
    const { position, ...rest } = this.request();
    memory.set("setup", rest);
  }

  fail(message) {
    byId("setup-error").hidden = message === null;
    byId("setup-error").textContent = message ?? "";
  }
}

function choice(group, value, name, about) {
  return html(
    "label",
    { class: "choice" },
    html("input", { type: "radio", name: group, value }),
    html("span", {}, name),
    about ? html("small", {}, about) : null,
  );
}

const chosen = (form, group) => form.elements.namedItem(group)?.value;

/** Chooses a value of a group, or its first if there is no such value. */
function choose(form, group, value) {
  const inputs = [...form.querySelectorAll(`input[name="${group}"]`)];
  (inputs.find((input) => input.value === value) ?? inputs[0]).checked = true;
}

const sentence = (text) => text[0].toUpperCase() + text.slice(1) + ".";
