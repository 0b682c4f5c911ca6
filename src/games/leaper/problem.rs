//! What can be wrong with a rules file, in words that say what would be right.

use super::betza::BetzaError;
use super::rules::{MAX_KINDS, MAX_PLIES, MAX_SQUARES, MAX_VALUE};
use crate::game::ParseError;
use crate::games::nearest;

/// What is wrong with a rules file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}")]
pub struct RulesError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What can be wrong with a rules file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Not TOML, or a value of another type, or a key that is missing.
    #[error("{0}")]
    Toml(String),
    /// A key or value that means nothing.
    #[error(
        "unknown {what} `{word}`{}; known here: {}",
        did_you_mean(.word, .known),
        .known.join(", ")
    )]
    Unknown {
        /// "key" or "value".
        what: &'static str,
        /// The word in the file.
        word: String,
        /// The words that would be right.
        known: Vec<String>,
    },
    /// A name that cannot name a folder.
    #[error("name = {0:?}: use small letters, digits and dashes, such as \"my-game\"")]
    Name(String),
    /// A table of pieces whose name is not one letter.
    #[error(
        "[pieces.{0}]: name the table by the one small letter that stands for the piece, such as \
         [pieces.k]"
    )]
    Letter(String),
    /// No piece at all.
    #[error("there are no pieces: describe each kind in a table such as [pieces.k]")]
    NoKinds,
    /// More kinds than a position can hold.
    #[error("{0} kinds of piece, but at most {MAX_KINDS} are supported")]
    TooManyKinds(usize),
    /// A move that is not notation for single leaps.
    #[error("move = {notation:?}: {error}")]
    Notation {
        /// The text in the file.
        notation: String,
        /// What is wrong with it.
        error: BetzaError,
    },
    /// A piece worth less than nothing or more than the limit.
    #[error("value = {0}: a piece is worth between 0 and {MAX_VALUE}")]
    Value(i64),
    /// A limit that is no sensible number of plies.
    #[error("max_plies = {0}: between 1 and {MAX_PLIES}")]
    MaxPlies(i64),
    /// A start that is no position.
    #[error("start: {0}")]
    Start(ParseError),
    /// A board that does not fit into 64 bits.
    #[error(
        "start: {width} files and {height} ranks are {} squares, but at most {MAX_SQUARES} are \
         supported",
        .width * .height
    )]
    BoardTooLarge {
        /// Number of files.
        width: usize,
        /// Number of ranks.
        height: usize,
    },
    /// A board with more files than letters, or without a far rank.
    #[error(
        "start: {width} files and {height} ranks; a board has at most 26 files and at least 2 ranks"
    )]
    BoardShape {
        /// Number of files.
        width: usize,
        /// Number of ranks.
        height: usize,
    },
    /// A game that neither `capture` nor `goal` can end.
    #[error(
        "[end] needs `capture`, `goal` or both: the letter of the piece that must not be lost, \
         or that wins on the far rank"
    )]
    NoEnd,
    /// `capture` or `goal` names no kind.
    #[error("{key} = {letter:?} is none of the pieces ({})", .known.join(", "))]
    EndPiece {
        /// "capture" or "goal".
        key: &'static str,
        /// The text in the file.
        letter: String,
        /// The letters of the kinds.
        known: Vec<String>,
    },
    /// An end that can never come.
    #[error("unreachable end: {0}")]
    Unreachable(String),
    /// Pieces that can go back and forth, without a limit.
    #[error(
        "max_plies is missing: {0} can move sideways or backwards, so games need not end; add, \
         for example, max_plies = 200"
    )]
    NeedsMaxPlies(String),
    /// A limit on a game that counts no plies.
    #[error(
        "max_plies = {max_plies} would cut games short that end by themselves after at most \
         {longest} plies, since every move goes forward; leave it out"
    )]
    CutsShort {
        /// The limit in the file.
        max_plies: i64,
        /// Plies of the longest game.
        longest: usize,
    },
    /// A start without a game.
    #[error("start: the game is over before it begins: {0}")]
    StartIsOver(String),
}

fn did_you_mean(word: &str, known: &[String]) -> String {
    match nearest(word, known.iter().map(String::as_str)) {
        Some(nearest) => format!(", did you mean `{nearest}`?"),
        None => String::new(),
    }
}
