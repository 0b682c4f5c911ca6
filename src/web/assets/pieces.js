// The pieces, drawn. A square is 100 units wide and its middle is the origin.
//
// Sides differ by fill (the first player's pieces are solid, the second's hollow), by
// the way they point, and by colour; kinds by shape. No one of these is needed alone.

import { svg } from "/assets/dom.js";

// A shogi piece, pointing up, of half width `w` and half height `h`.
const koma = (w, h) =>
  `M0 ${-h} L${0.7 * w} ${-0.68 * h} L${w} ${h} L${-w} ${h} L${-0.7 * w} ${-0.68 * h} Z`;

const line = (d) => svg("path", { d, class: "glyph" });

const SHAPES = {
  // The character for king, in four strokes.
  king: () => [
    svg("path", { d: koma(32, 38), class: "body" }),
    svg("path", { d: koma(26, 31.5), class: "rim" }),
    line("M-13 -12 H13 M-11 6 H11 M-17 25 H17 M0 -12 V25"),
  ],
  pawn: () => [
    svg("path", { d: koma(24, 29), class: "body" }),
    line("M-10 9 L0 -3 L10 9"),
  ],
  stone: () => [
    svg("circle", { r: 36, class: "body" }),
    svg("circle", { r: 25, class: "rim" }),
  ],
};

/** Any other kind carries its letter, which stays upright. */
function lettered(letter, turned) {
  const text = svg("text", { class: "letter", y: 19, "text-anchor": "middle" }, letter.toUpperCase());
  return [
    svg("path", { d: koma(30, 36), class: "body" }),
    svg("g", { transform: turned ? "rotate(180) translate(0 -8)" : "" }, text),
  ];
}

/** A piece; `turned` ones point down. */
export function drawPiece({ side, letter, name }, turned) {
  const known = Object.hasOwn(SHAPES, name);
  const shape = known ? SHAPES[name]() : lettered(letter, turned);
  const turn = svg("g", { transform: turned ? "rotate(180)" : "" }, ...shape);
  return svg("g", { class: `piece ${side} ${known ? name : "other"}` }, turn);
}

/** What a character of the board stands for; null for an empty square. */
export function readPiece(character, kinds) {
  if (character === ".") return null;
  const letter = character.toLowerCase();
  const kind = kinds.find(([known]) => known === letter);
  return { side: character === letter ? "second" : "first", letter, name: kind[1] };
}
