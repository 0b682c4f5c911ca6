// The page to play on. The server knows the game; this shows what it says and sends
// what the person does.

import { get, post } from "/assets/api.js";
import { Board } from "/assets/board.js";
import { Clocks } from "/assets/clock.js";
import { byId, html, svg } from "/assets/dom.js";
import { Network, weigh } from "/assets/network.js";
import { drawPiece, readPiece } from "/assets/pieces.js";
import { Setup } from "/assets/setup.js";

const SESSION = "tanren.game";
const RETRY_MS = 2000;

const other = (side) => (side === "first" ? "second" : "first");

class Page {
  constructor() {
    /** What the server said last; null: no game. */
    this.view = null;
    /** The ply that is looked at; null: the one at hand. */
    this.past = null;
    this.flipped = false;
    this.offers = [];
    this.board = new Board(byId("board"), (move) => this.act("moves", { move }));
    this.clocks = new Clocks((side) => this.player(side).querySelector(".time"), () => this.refresh());
    this.network = new Network({
      onStep: (ply) => this.lookAt(ply),
      onValues: () => this.judgeMoves(),
      onHover: (move) => this.drawValues(move),
    });
    this.setup = new Setup({
      onGame: (game) => this.preview(game),
      onStart: async (request) => this.enter(await post("/api/games", request)),
    });
    this.listen();
  }

  listen() {
    const onClick = (id, action) => byId(id).addEventListener("click", action);
    onClick("undo", () => this.act("undo"));
    onClick("resign", () => this.resign());
    onClick("rematch", () => this.rematch());
    onClick("new", () => this.leave());
    onClick("copy", () => this.copy());
    onClick("flip", () => this.flip());
    onClick("to-now", () => this.lookAt(this.plies));
    onClick("step-first", () => this.lookAt(0));
    onClick("step-back", () => this.lookAt(this.ply - 1));
    onClick("step-on", () => this.lookAt(this.ply + 1));
    onClick("step-last", () => this.lookAt(this.plies));
    document.addEventListener("keydown", (event) => {
      const isTyping = event.target.closest("input, select, textarea");
      if (!this.view || isTyping || event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "ArrowLeft") this.lookAt(this.ply - 1);
      if (event.key === "ArrowRight") this.lookAt(this.ply + 1);
    });
  }

  async open() {
    try {
      const setup = await get("/api/setup");
      this.offers = setup.games;
      const id = sessionStorage.getItem(SESSION);
      const asked = new URLSearchParams(location.search).has("game");
      if (id && !asked && (await this.resume(id))) return;
      this.setup.fill(setup);
      this.showSetup();
    } catch (error) {
      this.trouble(error.message);
    }
  }

  /** Goes on with the game of this tab, if the server still has it. */
  async resume(id) {
    try {
      this.enter(await get(`/api/games/${id}`));
      return true;
    } catch (error) {
      if (error.kind !== "no_session") throw error;
      sessionStorage.removeItem(SESSION);
      return false;
    }
  }

  // What the person does.

  async act(what, body) {
    const { id } = this.view;
    try {
      this.accept(await post(`/api/games/${id}/${what}`, body));
    } catch (error) {
      // The page was wrong about the game: show how it is.
      this.trouble(error.message);
      if (error.kind !== "unreachable") await this.refresh();
    }
  }

  async resign() {
    const button = byId("resign");
    if (button.dataset.sure !== "yes") {
      button.dataset.sure = "yes";
      button.textContent = "Really resign?";
      setTimeout(() => this.calmResign(), 4000);
      return;
    }
    this.calmResign();
    await this.act("resign");
  }

  calmResign() {
    byId("resign").dataset.sure = "";
    byId("resign").textContent = "Resign";
  }

  async rematch() {
    try {
      this.enter(await post(`/api/games/${this.view.id}/rematch`));
    } catch (error) {
      this.trouble(error.message);
    }
  }

  flip() {
    this.flipped = !this.flipped;
    this.layOut();
    this.show();
  }

  async copy() {
    const { text } = this.view.positions[this.ply];
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Not allowed, or not a secure page: let the person copy it.
      prompt("The position:", text);
      return;
    }
    byId("copy").textContent = "Copied";
    setTimeout(() => (byId("copy").textContent = "Copy position"), 1500);
  }

  /** Back to the form. The game stays on the server for a while. */
  async leave() {
    sessionStorage.removeItem(SESSION);
    this.awaitAnother(null);
    this.view = null;
    this.clocks.set(null);
    history.replaceState(null, "", "/");
    try {
      const setup = await get("/api/setup");
      this.offers = setup.games;
      this.setup.fill(setup);
      this.showSetup();
      this.trouble(null);
    } catch (error) {
      this.trouble(error.message);
    }
  }

  // What the server says.

  enter(view) {
    sessionStorage.setItem(SESSION, view.id);
    history.replaceState(null, "", "/");
    this.view = view;
    this.past = null;
    this.flipped = false;
    this.said = view.moves.length;
    byId("setup").hidden = true;
    byId("panel").hidden = false;
    this.trouble(null);
    this.layOut();
    this.update();
  }

  accept(view) {
    // An answer may come late: of a game that was left, or from before a change.
    if (view.id !== this.view?.id || view.version < this.view.version) return;
    const isNews = view.version !== this.view.version;
    this.view = view;
    this.trouble(null);
    if (isNews) this.past = null;
    this.update();
  }

  async refresh() {
    const { id } = this.view ?? {};
    if (!id) return;
    try {
      this.accept(await get(`/api/games/${id}`));
    } catch (error) {
      this.trouble(error.message);
    }
  }

  update() {
    this.clocks.set(this.view.clock);
    this.announce();
    this.show();
    this.awaitReply();
  }

  /** Asks for the opponent's move until it is there. */
  async awaitReply() {
    const isDue = () => this.view && !this.view.result && this.view.turn !== this.view.human;
    if (this.awaited === this.view.id || !isDue()) return;
    const { signal } = this.awaitAnother(this.view.id);
    while (isDue() && !signal.aborted) {
      const { id, version } = this.view;
      try {
        this.accept(await get(`/api/games/${id}/after/${version}`, signal));
      } catch (error) {
        if (signal.aborted) return;
        this.trouble(error.message);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
    if (!signal.aborted) this.awaited = null;
  }

  /** Gives up waiting for the game before. */
  awaitAnother(id) {
    this.waiter?.abort();
    this.waiter = new AbortController();
    this.awaited = id;
    return this.waiter;
  }

  // What is shown.

  get plies() {
    return this.view.moves.length;
  }

  get ply() {
    return this.past ?? this.plies;
  }

  get offer() {
    return this.offers.find(({ name }) => name === this.view.game);
  }

  get bottom() {
    return this.flipped ? other(this.view.human) : this.view.human;
  }

  player(side) {
    const bottom = this.view ? this.bottom : "first";
    return byId(side === bottom ? "player-near" : "player-far");
  }

  lookAt(ply) {
    if (ply < 0 || ply > this.plies) return;
    this.past = ply === this.plies ? null : ply;
    this.show();
  }

  showSetup() {
    byId("setup").hidden = false;
    byId("panel").hidden = true;
    byId("value-bar").hidden = true;
    byId("board").parentElement.classList.remove("past");
    document.title = "Tanren";
  }

  /** The start of a game that is being chosen. */
  preview(game) {
    this.board.layOut(game.board, "first");
    this.board.show({ squares: game.board.start, legal: [], last: null, human: "first" });
    this.board.drawArrows([]);
    for (const side of ["first", "second"]) {
      this.showPlayer(side, side === "first" ? "First, moves up" : "Second, moves down", game.board, []);
    }
  }

  layOut() {
    this.board.layOut(this.offer.board, this.bottom);
  }

  show() {
    const { view, ply } = this;
    const isNow = this.past === null;
    this.board.show({
      squares: view.positions[ply].squares,
      legal: isNow ? view.legal : [],
      last: ply > 0 ? view.moves[ply - 1] : null,
      human: view.human,
    });
    byId("past").hidden = isNow;
    byId("board").parentElement.classList.toggle("past", !isNow);
    byId("board").setAttribute("aria-label", `${view.title}, ${isNow ? "the game" : `after ${ply} plies`}`);
    this.showPlayers();
    this.showStatus();
    this.showMoves();
    this.showButtons();
    this.network.show(view, ply);
    this.judgeMoves();
  }

  showPlayers() {
    const taken = { first: [], second: [] };
    this.view.moves.slice(0, this.ply).forEach((move, index) => {
      const piece = this.view.positions[index].squares[move.to];
      if (piece !== ".") taken[piece === piece.toLowerCase() ? "first" : "second"].push(piece);
    });
    for (const side of ["first", "second"]) {
      const isHuman = side === this.view.human;
      const name = isHuman ? "You" : this.view.opponent_name;
      this.showPlayer(side, name, this.offer.board, taken[side]);
      const isOn = !this.view.result && this.view.turn === side;
      this.player(side).classList.toggle("on-turn", isOn);
    }
  }

  /** `taken`: the pieces that this side has captured. */
  showPlayer(side, name, { kinds }, taken) {
    const box = this.player(side);
    const small = (character) =>
      svg("svg", { viewBox: "-50 -50 100 100" }, drawPiece(readPiece(character, kinds), false));
    const letter = kinds[0][0];
    box.querySelector(".mark").replaceChildren(small(side === "first" ? letter.toUpperCase() : letter));
    box.querySelector(".who").textContent = name;
    box.querySelector(".order").textContent = side === "first" ? "先手" : "後手";
    box.querySelector(".taken").replaceChildren(...taken.map(small));
    box.dataset.side = side;
    box.classList.remove("on-turn");
  }

  showStatus() {
    const { view } = this;
    const [headline, subline, seal] = this.status();
    byId("headline").textContent = headline;
    byId("subline").textContent = subline;
    byId("seal").hidden = !seal;
    byId("seal").textContent = seal ?? "";
    document.title = `${headline} · ${view.title} · Tanren`;
  }

  status() {
    const { view } = this;
    const against = `${view.title}, against ${view.opponent_name}`;
    if (!view.result) {
      const headline = view.turn === view.human ? "Your move" : `${view.opponent_name} is thinking`;
      return [headline, against, null];
    }
    const { winner, cause } = view.result;
    const how = describeCause(cause, winner === view.human, winner === null, this.lastTaken());
    if (winner === null) return ["A draw", how, "分"];
    return winner === view.human ? ["You win", how, "勝"] : ["You lose", how, "負"];
  }

  /** The name of the piece that the last move took, if it did. */
  lastTaken() {
    const { moves, positions } = this.view;
    const square = moves.at(-1)?.capture ? moves.at(-1).to : null;
    if (square === null) return null;
    return readPiece(positions.at(-2).squares[square], this.offer.board.kinds).name;
  }

  showMoves() {
    const rows = [];
    // A game from a position may begin with the second player.
    const offset = moverAt(this.view, 0) === "first" ? 0 : 1;
    this.view.moves.forEach((move, index) => {
      const column = (index + offset) % 2;
      if (column === 0 || index === 0) rows.push(html("li", {}));
      if (index === 0 && offset) rows[0].append(html("span", { class: "no-move" }, "…"));
      const isShown = index + 1 === this.ply;
      const button = html(
        "button",
        {
          type: "button",
          class: move.capture ? "move capture" : "move",
          "aria-current": isShown ? "true" : null,
          "data-ply": index + 1,
        },
        move.capture ? move.move.replace(/^([a-z]\d+)/, "$1×") : move.move,
      );
      button.addEventListener("click", () => this.lookAt(index + 1));
      rows.at(-1).append(button);
    });
    if (!rows.length) rows.push(html("li", { class: "hint none" }, "None yet."));
    byId("moves").replaceChildren(...rows);
    const shown = byId("moves").querySelector("[aria-current]");
    // Scrolls the list, not the page.
    if (shown) byId("moves").scrollTop = shown.offsetTop - byId("moves").clientHeight / 2;
  }

  showButtons() {
    const isOver = this.view.result !== null;
    byId("undo").disabled = !this.view.can_undo;
    byId("resign").disabled = isOver;
    byId("flip").disabled = this.offer.board.drops;
    byId("rematch").classList.toggle("primary", isOver);
    byId("step-first").disabled = byId("step-back").disabled = this.ply === 0;
    byId("step-on").disabled = byId("step-last").disabled = this.past === null;
    if (isOver) this.calmResign();
  }

  async judgeMoves() {
    const { view, ply } = this;
    this.judged = null;
    if (!view.network || !this.network.judgesMoves) {
      this.network.list(null, "");
      this.board.drawArrows([]);
      return;
    }
    try {
      const { moves } = await get(`/api/games/${view.id}/values/${ply}`);
      // The person may have gone on meanwhile.
      if (this.view !== view || this.ply !== ply || !this.network.judgesMoves) return;
      this.judged = weigh(moves);
      const mover = moverAt(view, ply) === view.human ? "you" : view.opponent_name;
      this.network.list(moves, `best first, for ${mover}`);
      this.drawValues(null);
    } catch (error) {
      if (this.view === view) this.trouble(error.message);
    }
  }

  /** Draws all judged moves, or the one that is pointed at. */
  drawValues(pointed) {
    const all = this.judged ?? [];
    const some = pointed ? all.filter(({ move }) => move === pointed.move) : all;
    this.board.drawArrows(pointed ? some.map((move) => ({ ...move, weight: 1 })) : some);
  }

  /** Says aloud what has happened. */
  announce() {
    const { view } = this;
    const news = view.moves.slice(this.said).map((move, index) => {
      const isOwn = moverAt(view, this.said + index) === view.human;
      const who = isOwn ? "You" : view.opponent_name;
      return `${who} ${move.capture ? "took with" : "played"} ${move.move}.`;
    });
    if (view.moves.length < this.said) news.push("Taken back.");
    this.said = view.moves.length;
    const [headline, subline] = this.status();
    news.push(view.result ? `${headline}: ${subline}` : `${headline}.`);
    byId("live").textContent = news.join(" ");
  }

  trouble(message) {
    byId("trouble").hidden = message === null;
    byId("trouble").textContent = message ?? "";
  }
}

/** Whose turn it was after some plies. Sides alternate. */
const moverAt = ({ turn, moves }, ply) => ((moves.length - ply) % 2 === 0 ? turn : other(turn));

/** `taken`: the name of the piece that the last move took. */
function describeCause(cause, won, drawn, taken) {
  const [winner, loser] = won ? ["You", "Your opponent"] : ["Your opponent", "You"];
  switch (cause) {
    case "Catch":
      return `Catch: ${winner.toLowerCase()} took the ${taken}.`;
    case "Try":
      return `Try: ${winner.toLowerCase()} reached the far rank.`;
    case "stuck":
      return drawn ? "Stuck: there was no move left." : `Stuck: ${loser.toLowerCase()} had no move left.`;
    case "time":
      return `Time: ${loser.toLowerCase()} ran out of it.`;
    case "resignation":
      return `${loser} resigned.`;
    default:
      return cause[0].toUpperCase() + cause.slice(1) + ".";
  }
}

new Page().open();
