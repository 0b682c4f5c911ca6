// The board: draws a position, and turns clicks, drags and keys into moves.
//
// Squares are numbered from the bottom left as the first player sees them. Moves that
// leave no square, as in Connect Four, are made on any square of their file.

import { round, svg } from "/assets/dom.js";
import { drawPiece, readPiece } from "/assets/pieces.js";

const UNIT = 100;
const EDGE = 3;
const DRAG_PIXELS = 6;

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Board {
  /** `onMove` is called with the text of a legal move. */
  constructor(root, onMove) {
    this.root = root;
    this.onMove = onMove;
    this.selected = null;
    this.pieces = new Map();
    this.legal = [];
    this.drag = null;
    root.setAttribute("role", "grid");
    root.addEventListener("pointerdown", (event) => this.press(event));
    root.addEventListener("pointermove", (event) => this.pull(event));
    root.addEventListener("pointerup", (event) => this.release(event));
    root.addEventListener("pointercancel", () => this.dropDrag());
    root.addEventListener("pointerleave", () => this.hover(null));
    root.addEventListener("keydown", (event) => this.key(event));
  }

  /**
   * Lays out the squares of a game. `bottom` is the side that sits below; where pieces
   * drop, the board stands upright for both.
   */
  layOut({ files, ranks, kinds, drops }, bottom) {
    Object.assign(this, { files, ranks, kinds, bottom: drops ? "first" : bottom });
    this.selected = null;
    this.pieces.clear();
    const [width, height] = [files * UNIT, ranks * UNIT];
    this.root.setAttribute("viewBox", `${-EDGE} ${-EDGE} ${width + 2 * EDGE} ${height + 2 * EDGE}`);
    this.root.parentElement.parentElement.style.setProperty("--aspect", files / ranks);
    this.root.classList.toggle("holes", drops);
    this.cells = [];
    const rows = [];
    for (let y = 0; y < ranks; y += 1) {
      const row = svg("g", { role: "row" });
      for (let x = 0; x < files; x += 1) row.append(this.makeCell(x, y));
      rows.push(row);
    }
    this.pieceLayer = svg("g", { class: "pieces", "aria-hidden": "true" });
    this.arrowLayer = svg("g", { class: "arrows", "aria-hidden": "true" });
    this.root.replaceChildren(
      svg("rect", { class: "wood", x: 0, y: 0, width, height, rx: 3 }),
      ...rows,
      this.drawLines(width, height),
      this.drawNames(width, height),
      this.pieceLayer,
      this.arrowLayer,
    );
    this.focusable = this.cells[this.squareAt(0, ranks - 1)];
    this.focusable.setAttribute("tabindex", "0");
  }

  makeCell(x, y) {
    const square = this.squareAt(x, y);
    const [left, top] = [x * UNIT, y * UNIT];
    const middle = { cx: left + UNIT / 2, cy: top + UNIT / 2 };
    const corner = { x: left, y: top, width: UNIT, height: UNIT };
    const cell = svg(
      "g",
      { class: "cell", role: "gridcell", tabindex: "-1", "data-square": this.name(square), "data-index": square },
      svg("rect", { class: "floor", ...corner }),
      svg("circle", { class: "hole", r: 38, ...middle }),
      svg("circle", { class: "dot", r: 13, ...middle }),
      svg("circle", { class: "ring", r: 43, ...middle }),
      svg("rect", { class: "focus", x: left + 4, y: top + 4, width: UNIT - 8, height: UNIT - 8, rx: 6 }),
    );
    this.cells[square] = cell;
    return cell;
  }

  drawLines(width, height) {
    let d = "";
    for (let x = 1; x < this.files; x += 1) d += `M${x * UNIT} 0V${height}`;
    for (let y = 1; y < this.ranks; y += 1) d += `M0 ${y * UNIT}H${width}`;
    const lines = svg("g", { class: "lines", "aria-hidden": "true" }, svg("path", { d }));
    lines.append(svg("rect", { x: 0, y: 0, width, height, rx: 3 }));
    // Shogi boards mark the thirds.
    const thirds = (n) => (n % 3 === 0 && n >= 6 ? [n / 3, (2 * n) / 3] : []);
    for (const x of thirds(this.files)) {
      for (const y of thirds(this.ranks)) lines.append(svg("circle", { cx: x * UNIT, cy: y * UNIT, r: 5 }));
    }
    return lines;
  }

  /** Letters and numbers in the corners of the squares at two edges. */
  drawNames(width, height) {
    const names = svg("g", { class: "names", "aria-hidden": "true" });
    for (let x = 0; x < this.files; x += 1) {
      const file = this.name(this.squareAt(x, 0))[0];
      names.append(svg("text", { x: (x + 1) * UNIT - 6, y: height - 6, "text-anchor": "end" }, file));
    }
    for (let y = 0; y < this.ranks; y += 1) {
      const rank = this.name(this.squareAt(0, y)).slice(1);
      names.append(svg("text", { x: 6, y: y * UNIT + 19 }, rank));
    }
    return names;
  }

  squareAt(x, y) {
    return this.bottom === "first"
      ? (this.ranks - 1 - y) * this.files + x
      : y * this.files + (this.files - 1 - x);
  }

  /** Column and row on the screen. */
  place(square) {
    const [file, rank] = [square % this.files, Math.floor(square / this.files)];
    return this.bottom === "first" ? [file, this.ranks - 1 - rank] : [this.files - 1 - file, rank];
  }

  middle(square) {
    const [x, y] = this.place(square);
    return [(x + 0.5) * UNIT, (y + 0.5) * UNIT];
  }

  name(square) {
    return String.fromCharCode(97 + (square % this.files)) + (Math.floor(square / this.files) + 1);
  }

  /**
   * Shows a position. `legal` are the moves that can be made here, `last` the move
   * that led here; pieces that have moved slide.
   */
  show({ squares, legal, last, human }) {
    this.squares = squares;
    this.legal = legal;
    this.human = human;
    this.dropDrag();
    if (!this.moves(this.selected).length) this.selected = null;
    this.placePieces(squares);
    const movable = new Set(legal.map((move) => move.from));
    for (const [square, cell] of this.cells.entries()) {
      cell.classList.toggle("last", last?.to === square || last?.from === square);
      cell.classList.toggle("captured", Boolean(last?.capture) && last.to === square);
      cell.classList.toggle("movable", movable.has(square));
      cell.dataset.piece = squares[square];
    }
    this.mark();
  }

  placePieces(squares) {
    const kept = new Map();
    const loose = [];
    for (const [square, piece] of this.pieces) {
      if (squares[square] === piece.character) kept.set(square, piece);
      else loose.push({ ...piece, square });
    }
    for (const [square, character] of [...squares].entries()) {
      if (character === "." || kept.has(square)) continue;
      // The one that came here is of the same kind; else it is new.
      const found = loose.findIndex((piece) => piece.character === character);
      const piece = found < 0 ? this.makePiece(character, square) : loose.splice(found, 1)[0];
      kept.set(square, { character, element: piece.element });
      this.moveTo(piece.element, this.middle(square));
    }
    for (const piece of loose) {
      piece.element.classList.add("gone");
      setTimeout(() => piece.element.remove(), 200);
    }
    this.pieces = kept;
  }

  makePiece(character, square) {
    const piece = readPiece(character, this.kinds);
    const element = drawPiece(piece, piece.side !== this.bottom);
    element.classList.add("still");
    // A stone falls from the top of its file.
    const [x, y] = this.middle(square);
    this.moveTo(element, piece.name === "stone" && this.pieces.size ? [x, -UNIT / 2] : [x, y]);
    this.pieceLayer.append(element);
    element.getBoundingClientRect();
    element.classList.remove("still");
    return { element };
  }

  moveTo(element, [x, y]) {
    element.style.transform = `translate(${round(x)}px, ${round(y)}px)`;
  }

  /** The legal moves from a square; those that leave none belong to every square. */
  moves(square) {
    return square === null ? [] : this.legal.filter((move) => move.from === square);
  }

  dropsAt(square) {
    const file = square % this.files;
    return this.legal.filter((move) => move.from === null && move.to % this.files === file);
  }

  mark() {
    const targets = new Map(this.moves(this.selected).map((move) => [move.to, move]));
    for (const [square, cell] of this.cells.entries()) {
      const move = targets.get(square);
      cell.classList.toggle("selected", square === this.selected);
      cell.classList.toggle("target", Boolean(move) && !move.capture);
      cell.classList.toggle("take", Boolean(move?.capture));
      cell.setAttribute("aria-selected", String(square === this.selected));
      cell.setAttribute("aria-label", this.describe(square, move));
    }
  }

  describe(square, move) {
    const piece = readPiece(this.squares[square], this.kinds);
    const words = [this.name(square)];
    if (piece) words.push(`${piece.side === this.human ? "your" : "their"} ${piece.name}`);
    else words.push("empty");
    if (move) words.push(move.capture ? "can be taken" : "can be entered");
    else if (this.moves(square).length) words.push("can move");
    else if (this.dropsAt(square).length) words.push("drop here");
    return words.join(", ");
  }

  /** What a click or Enter on a square does. */
  activate(square) {
    const move = this.moves(this.selected).find(({ to }) => to === square) ?? this.dropsAt(square)[0];
    if (move) {
      this.selected = null;
      this.onMove(move.move);
    } else {
      this.selected = this.moves(square).length && this.selected !== square ? square : null;
    }
    this.mark();
  }

  cellOf(event) {
    const cell = event.target.closest?.(".cell");
    return cell ? Number(cell.dataset.index) : null;
  }

  /** The square under the pointer, wherever the pointer was captured. */
  squareUnder(event) {
    const { x, y } = this.toUnits(event);
    const [column, row] = [Math.floor(x / UNIT), Math.floor(y / UNIT)];
    const isOn = column >= 0 && row >= 0 && column < this.files && row < this.ranks;
    return isOn ? this.squareAt(column, row) : null;
  }

  toUnits(event) {
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(this.root.getScreenCTM().inverse());
  }

  press(event) {
    const square = this.cellOf(event);
    if (square === null || event.button !== 0) return;
    this.focusOn(square);
    this.drag = { square, x: event.clientX, y: event.clientY, element: null };
  }

  pull(event) {
    if (!this.drag) {
      if (event.pointerType === "mouse") this.hover(this.cellOf(event));
      return;
    }
    const { square, x, y } = this.drag;
    const far = Math.hypot(event.clientX - x, event.clientY - y) > DRAG_PIXELS;
    if (!this.drag.element && far && this.moves(square).length) {
      this.root.setPointerCapture(event.pointerId);
      this.drag.element = this.pieces.get(square).element;
      this.drag.element.classList.add("dragged");
      this.pieceLayer.append(this.drag.element);
      this.selected = square;
      this.mark();
    }
    if (this.drag.element) {
      const point = this.toUnits(event);
      this.moveTo(this.drag.element, [point.x, point.y]);
    }
  }

  release(event) {
    if (!this.drag) return;
    const { square: pressed, element } = this.drag;
    const square = this.squareUnder(event);
    this.dropDrag();
    if (square === null) return;
    if (element === null) {
      if (square === pressed) this.activate(square);
    } else if (square !== pressed) {
      this.activate(square);
    }
  }

  /** Lets go of a dragged piece, which goes back to its square. */
  dropDrag() {
    if (this.drag?.element) {
      this.drag.element.classList.remove("dragged");
      this.moveTo(this.drag.element, this.middle(this.drag.square));
    }
    this.drag = null;
  }

  /** Shows where a drop would land. */
  hover(square) {
    const landing = square === null ? undefined : this.dropsAt(square)[0]?.to;
    for (const [index, cell] of this.cells?.entries() ?? []) {
      cell.classList.toggle("landing", index === landing);
    }
  }

  focusOn(square) {
    this.focusable.setAttribute("tabindex", "-1");
    this.focusable = this.cells[square];
    this.focusable.setAttribute("tabindex", "0");
    this.hover(square);
  }

  key(event) {
    const square = this.cellOf(event);
    if (square === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = STEPS[event.key];
    if (step) {
      const [x, y] = this.place(square);
      const [column, row] = [x + step[0], y + step[1]];
      if (column >= 0 && row >= 0 && column < this.files && row < this.ranks) {
        this.focusOn(this.squareAt(column, row));
        this.focusable.focus();
      }
    } else if (event.key === "Enter" || event.key === " ") {
      this.activate(square);
    } else if (event.key === "Escape") {
      this.selected = null;
      this.mark();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** Draws moves with a weight from 0 to 1 each: arrows, or rings where nothing is left. */
  drawArrows(moves) {
    const drawn = moves.map(({ from, to, weight, best }) => {
      const attributes = { class: best ? "arrow best" : "arrow", opacity: round(0.12 + 0.78 * weight) };
      const [x2, y2] = this.middle(to);
      if (from === null) return svg("circle", { ...attributes, cx: x2, cy: y2, r: 20 + 14 * weight });
      return svg("path", { ...attributes, d: arrow(this.middle(from), [x2, y2], 5 + 7 * weight) });
    });
    this.arrowLayer.replaceChildren(...drawn);
  }
}

/** The outline of an arrow of half width `w`. */
function arrow([x1, y1], [x2, y2], w) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
  const head = 3.2 * w;
  const at = (along, across) =>
    `${round(x1 + ux * along - uy * across)} ${round(y1 + uy * along + ux * across)}`;
  const [start, neck, tip] = [22, length - 10 - head, length - 10];
  return (
    `M${at(start, 0.5 * w)} L${at(neck, 0.5 * w)} L${at(neck, 1.5 * w)} L${at(tip, 0)} ` +
    `L${at(neck, -1.5 * w)} L${at(neck, -0.5 * w)} L${at(start, -0.5 * w)} Z`
  );
}
