//! Games as people see them: squares, the pieces on them, and the squares that a
//! move leaves and enters. For those who draw a board; searches and networks do not
//! ask.
//!
//! A square is `rank * files + file` from the bottom left, as the first player sees
//! the board.

use crate::game::{Game, Side};

/// A piece on a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Its owner.
    pub side: Side,
    /// Index into [`BoardGame::piece_kinds`].
    pub kind: usize,
}

/// A kind of piece, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PieceKind {
    /// One lower-case letter, different for each kind.
    pub letter: char,
    /// Such as `king`.
    pub name: String,
}

/// Where a move happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveSquares {
    /// The square left; none if a piece comes onto the board.
    pub from: Option<usize>,
    /// The square entered.
    pub to: usize,
}

/// A game on a board of squares, with at most one piece on each.
///
/// A move takes the piece of its side from one square to another, or puts one onto
/// the board; what stood on the square entered is captured; all else stays.
pub trait BoardGame: Game {
    /// Number of files and ranks.
    fn board_size(&self) -> (usize, usize);

    /// The kinds of piece there are.
    fn piece_kinds(&self) -> Vec<PieceKind>;

    /// The piece on a square, if there is one.
    fn piece_on(&self, position: &Self::Position, square: usize) -> Option<Piece>;

    /// The squares of a legal move.
    fn move_squares(&self, position: &Self::Position, mv: Self::Move) -> MoveSquares;
}
