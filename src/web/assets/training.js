// The page of runs: looks every two seconds what is new, and asks only for that.

import { get } from "/assets/api.js";
import { Chart, short } from "/assets/chart.js";
import { byId, html } from "/assets/dom.js";

const LOOK_MS = 2000;

const percent = (share) => `${(100 * share).toFixed(1)}%`;
const grouped = (number) => Math.round(number).toLocaleString("en");

class Training {
  constructor() {
    this.runs = [];
    this.chosen = decodeURIComponent(location.hash.slice(1)) || null;
    this.forget();
    const readScore = (point, name) =>
      point && `${name} ${percent(point.y)} (${percent(point.low)} to ${percent(point.high)})`;
    this.scores = new Chart(byId("score-chart"), {
      series: ["baby", "easy"],
      y: { max: 1, ticks: [0, 0.25, 0.5, 0.75, 1], format: (share) => `${100 * share}%` },
      read: (at) => {
        const parts = at && [readScore(at.easy, "EasyAI"), readScore(at.baby, "BabyAI")].filter(Boolean);
        const games = at?.easy ?? at?.baby;
        byId("score-readout").textContent = parts ? `${grouped(games.x)} games: ${parts.join(", ")}` : "";
      },
    });
    this.loss = new Chart(byId("loss-chart"), {
      series: ["loss"],
      y: { log: true, format: short },
      read: (at) => {
        const point = at?.loss;
        byId("loss-readout").textContent = point ? `${grouped(point.x)} games: ${point.y.toFixed(4)}` : "";
      },
    });
  }

  async watch() {
    for (;;) {
      try {
        await this.look();
        this.trouble(null);
      } catch (error) {
        this.trouble(error.message);
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  async look() {
    const { runs, directory } = await get("/api/runs");
    this.runs = runs;
    byId("no-runs").hidden = runs.length > 0;
    byId("no-runs").textContent = `There are none in ${directory} yet; tanren train makes one.`;
    if (!runs.some(({ name }) => name === this.chosen)) {
      this.chosen = runs[0]?.name ?? null;
      this.forget();
    }
    this.showRuns();
    if (this.chosen) await this.read();
    this.showRun();
  }

  forget() {
    this.from = 0;
    this.lines = [];
  }

  choose(name) {
    if (name === this.chosen) return;
    this.chosen = name;
    history.replaceState(null, "", `#${encodeURIComponent(name)}`);
    this.forget();
    this.showRuns();
    this.look().catch((error) => this.trouble(error.message));
  }

  /** Reads the lines that are new. */
  async read() {
    const name = this.chosen;
    for (let more = true; more; ) {
      const answer = await get(`/api/runs/${encodeURIComponent(name)}/metrics/${this.from}`);
      // Another run may have been chosen meanwhile, or another reader been faster.
      if (name !== this.chosen || answer.next < this.from) return;
      // The file was cut because the run was resumed from an earlier step.
      if (answer.from !== this.from) this.lines = [];
      for (const line of answer.lines) {
        while (this.lines.length && this.lines.at(-1).step >= line.step) this.lines.pop();
        this.lines.push(line);
      }
      this.from = answer.next;
      more = answer.more && answer.lines.length > 0;
    }
  }

  showRuns() {
    const items = this.runs.map((run) => {
      const button = html(
        "button",
        { type: "button", "aria-current": run.name === this.chosen ? "true" : null, "data-run": run.name },
        html("span", { class: "name" }, run.name),
        html("span", { class: `state ${run.state}` }, run.state),
        html("small", {}, [run.game, run.net].filter(Boolean).join(", ") || (run.experiment ?? "")),
      );
      button.addEventListener("click", () => this.choose(run.name));
      return html("li", {}, button);
    });
    const focused = document.activeElement?.dataset?.run;
    byId("runs").replaceChildren(...items);
    if (focused) byId("runs").querySelector(`[data-run="${CSS.escape(focused)}"]`)?.focus();
  }

  showRun() {
    const run = this.runs.find(({ name }) => name === this.chosen);
    byId("curves").hidden = !run;
    if (!run) return;
    byId("run-name").textContent = run.name;
    byId("run-facts").textContent = facts(run);
    byId("play").hidden = run.play === null;
    if (run.play) byId("play").href = `/?${new URLSearchParams(run.play)}`;
    byId("why-not").hidden = run.play !== null;
    byId("why-not").textContent = run.play ? "" : `It cannot be played against: ${run.why_not}.`;
    this.showNumbers(run);
    const series = (key) =>
      this.lines.filter((line) => typeof line[key] === "number" && typeof line.games === "number");
    const scores = (opponent) =>
      series(`score_${opponent}`).map((line) => ({
        x: line.games,
        y: line[`score_${opponent}`],
        low: line[`score_${opponent}_low`],
        high: line[`score_${opponent}_high`],
      }));
    const loss = series("loss").map((line) => ({ x: line.games, y: line.loss }));
    const done = Math.max(0, ...loss.map(({ x }) => x));
    const xMax = run.state === "running" && run.games ? run.games : done;
    const curves = { easy: scores("easy"), baby: scores("baby") };
    byId("score-figure").hidden = !curves.easy.length && !curves.baby.length;
    byId("loss-figure").hidden = !loss.length;
    byId("no-curves").hidden = loss.length > 0;
    byId("no-curves").textContent =
      run.experiment === "werewolf"
        ? "A run of Werewolf has no loss and plays no matches: tanren werewolf table shows its results."
        : "There are no curves yet.";
    this.scores.show(curves, xMax);
    this.loss.show({ loss }, xMax);
  }

  showNumbers(run) {
    const last = this.lines.at(-1) ?? {};
    const latest = (key) => this.lines.findLast((line) => typeof line[key] === "number")?.[key];
    const easy = latest("score_easy");
    const numbers = [
      ["games", last.games === undefined ? null : grouped(last.games)],
      ["games a second", run.state === "running" && last.games_per_second ? grouped(last.games_per_second) : null],
      ["loss", last.loss === undefined || last.loss === null ? null : last.loss.toFixed(4)],
      ["against EasyAI", easy === undefined ? null : percent(easy)],
      ["time", last.seconds === undefined ? null : duration(last.seconds)],
    ];
    const shown = numbers.filter(([, value]) => value !== null);
    byId("numbers").replaceChildren(
      ...shown.map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, value))),
    );
    const bar = byId("progress");
    const share = run.games && last.games ? Math.min(1, last.games / run.games) : 0;
    bar.hidden = run.state === "finished" || !run.games;
    bar.firstElementChild.style.width = `${100 * share}%`;
    bar.setAttribute("aria-valuenow", Math.round(100 * share));
  }

  trouble(message) {
    byId("trouble").hidden = message === null;
    byId("trouble").textContent = message ?? "";
  }
}

function facts(run) {
  const parts = [run.game, run.net && `${run.net} network`, run.games && `${grouped(run.games)} games`];
  if (run.seed !== null) parts.push(`seed ${run.seed}`);
  if (run.started) parts.push(`since ${run.started.replace("T", " ").replace("Z", " UTC")}`);
  return parts.filter(Boolean).join(" · ");
}

function duration(seconds) {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

new Training().watch();
