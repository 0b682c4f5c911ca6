//! Positions between text and bitboards: which piece stands where, whose turn it
//! is, and the plies played where they count. Knows how positions are written,
//! not what the rules make of them.

use crate::game::{ParseError, Side};
use crate::games::{Piece, board_text};

/// A position, square by square.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placement {
    pub(super) width: usize,
    pub(super) height: usize,
    /// By square, `rank * width + file`.
    pub(super) pieces: Vec<Option<Piece>>,
    pub(super) to_move: Side,
    /// Plies played so far, if the text says so.
    pub(super) plies: Option<u16>,
}

impl Placement {
    /// Reads rows, side to move and, optionally, plies played; `letters` are those
    /// of the kinds, in lower case.
    ///
    /// # Errors
    /// If the text has another form, a row of another length than the first, or an
    /// unknown letter.
    pub(super) fn parse(text: &str, letters: &[char]) -> Result<Placement, ParseError> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let (rows, side, plies) = match fields[..] {
            [rows, side] => (rows, side, None),
            [rows, side, plies] => (rows, side, Some(parse_plies(plies)?)),
            _ => {
                return Err(ParseError(format!(
                    "a position is rows, a blank and the side to move, such as \
                     \"1k4/pppppp/6/6/PPPPPP/4K1 w\"; {text:?} has {} fields",
                    fields.len()
                )));
            }
        };
        let rows = board_text::parse_rows(rows)?;
        let (width, height) = (rows[0].len(), rows.len());
        let mut pieces = Vec::with_capacity(width * height);
        for (rank, row) in rows.iter().rev().enumerate() {
            if row.len() != width {
                return Err(ParseError(format!(
                    "rank {} has {} squares, the top rank has {width}",
                    rank + 1,
                    row.len()
                )));
            }
            for square in row {
                pieces.push(
                    square
                        .map(|letter| parse_piece(letter, letters))
                        .transpose()?,
                );
            }
        }
        Ok(Placement {
            width,
            height,
            pieces,
            to_move: board_text::parse_side(side)?,
            plies,
        })
    }

    /// Every piece with its square.
    pub(super) fn occupied(&self) -> impl Iterator<Item = (usize, Piece)> {
        self.pieces
            .iter()
            .enumerate()
            .filter_map(|(square, piece)| Some((square, (*piece)?)))
    }

    /// The squares of one side's pieces of one kind.
    pub(super) fn squares_of(&self, piece: Piece) -> impl Iterator<Item = usize> {
        self.occupied()
            .filter(move |(_, other)| *other == piece)
            .map(|(square, _)| square)
    }
}

fn parse_plies(text: &str) -> Result<u16, ParseError> {
    text.parse().map_err(|_| {
        ParseError(format!(
            "the third field counts the plies played so far; {text:?} is no count"
        ))
    })
}

fn parse_piece(letter: char, letters: &[char]) -> Result<Piece, ParseError> {
    let side = if letter.is_ascii_uppercase() {
        Side::First
    } else {
        Side::Second
    };
    let kind = letters
        .iter()
        .position(|known| *known == letter.to_ascii_lowercase());
    let unknown = || {
        let known: Vec<String> = letters.iter().map(char::to_string).collect();
        ParseError(format!(
            "no piece is written {letter:?}; the pieces are {}",
            known.join(", ")
        ))
    };
    Ok(Piece {
        side,
        kind: kind.ok_or_else(unknown)?,
    })
}
