//! The rules of one game of the family, and what follows from them: how long a
//! game can be, where leaps land, and which positions play can lead to.

use serde::{Deserialize, Serialize};

use super::betza::Leap;
use super::placement::Placement;
use super::problem::{Problem, RulesError};
use super::rules_file;
use crate::game::{ParseError, Side};
use crate::games::{Piece, board_text};

/// The most squares that a board may have: they are the bits of a `u64`.
pub const MAX_SQUARES: usize = 64;

/// The most kinds of piece that a game may have.
pub const MAX_KINDS: usize = 4;

/// The most that a piece may be worth.
pub const MAX_VALUE: i64 = 1000;

/// The largest `max_plies`.
pub const MAX_PLIES: i64 = 10_000;

/// The rules of one game of the family, checked.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The name for commands and folders: small letters, digits and dashes.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// Number of files.
    pub width: usize,
    /// Number of ranks.
    pub height: usize,
    /// The kinds of piece, ordered by letter.
    pub kinds: Vec<Kind>,
    /// The kind, by index, whose last piece must not be lost.
    pub capture: Option<usize>,
    /// The kind, by index, that wins on the far rank.
    pub goal: Option<usize>,
    /// What having no move means.
    pub stuck: Stuck,
    /// Longer games are draws. `None` exactly when the game is graded.
    pub max_plies: Option<u16>,
    /// The file's text.
    pub source: String,
    pub(super) start: Placement,
}

/// A kind of piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// In positions: upper case for the first player, lower case (as here) for the
    /// second.
    pub letter: char,
    /// The name for people.
    pub name: String,
    /// How it moves, in Betza notation.
    pub notation: String,
    /// What the notation means.
    pub leaps: Vec<Leap>,
    /// What it counts in the material balance.
    pub value: i32,
}

/// What it means for the side to move to have no legal move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stuck {
    /// It loses.
    Loss,
    /// Nobody wins.
    Draw,
    /// It wins.
    Win,
}

impl Rules {
    /// Reads a rules file; `file` is its name for error messages.
    ///
    /// # Errors
    /// If the text is not TOML, has unknown, missing or wrong values, or describes
    /// a game that cannot be played. Says in which line and what would be right.
    pub fn parse(file: &str, text: &str) -> Result<Rules, RulesError> {
        rules_file::read(file, text)
    }

    /// Whether every move goes forward, for the one who makes it. Each move of such
    /// a game raises the sum of the ranks that the movers' pieces have climbed, so
    /// that no position comes twice and every game ends.
    pub fn is_graded(&self) -> bool {
        self.restless_kind().is_none()
    }

    /// Whether left and right are alike for every piece.
    pub fn is_mirror_symmetric(&self) -> bool {
        self.kinds.iter().all(|kind| {
            let mirrored = |leap: &Leap| Leap {
                files: -leap.files,
                ..*leap
            };
            kind.leaps
                .iter()
                .all(|leap| kind.leaps.contains(&mirrored(leap)))
        })
    }

    /// Plies of the longest game from the start, or an upper bound.
    pub fn longest_game_plies(&self) -> usize {
        match self.max_plies {
            Some(plies) => usize::from(plies),
            None => {
                let pieces = self.start.occupied();
                pieces
                    .map(|(square, piece)| self.ranks_to_go(square, piece.side))
                    .sum()
            }
        }
    }

    /// What makes the game, without names, values and comments, in a fixed form.
    pub fn canonical_text(&self) -> String {
        let mut lines = vec!["leaper game".to_string(), self.start_text()];
        for kind in &self.kinds {
            let leaps: Vec<String> = kind.leaps.iter().map(canonical_leap).collect();
            lines.push(format!("piece {} {}", kind.letter, leaps.join(" ")));
        }
        for (key, kind) in [("capture", self.capture), ("goal", self.goal)] {
            lines.extend(kind.map(|kind| format!("{key} {}", self.kinds[kind].letter)));
        }
        lines.push(format!("stuck {:?}", self.stuck).to_lowercase());
        lines.extend(self.max_plies.map(|plies| format!("max_plies {plies}")));
        lines.join("\n")
    }

    fn start_text(&self) -> String {
        let letter = |file: usize, rank: usize| {
            self.start.pieces[rank * self.width + file].map(|piece| self.letter_of(piece))
        };
        let rows = board_text::format_rows(self.width, self.height, letter);
        format!(
            "start {rows} {}",
            board_text::side_letter(self.start.to_move)
        )
    }

    /// Reads a position of this game and checks that play could have led to it.
    ///
    /// # Errors
    /// If the text is no position of this board, or the game would have ended
    /// before.
    pub(super) fn parse_position(&self, text: &str) -> Result<Placement, ParseError> {
        let placement = Placement::parse(text, &letters(&self.kinds))?;
        if (placement.width, placement.height) != (self.width, self.height) {
            return Err(ParseError(format!(
                "the board of {} has {} files and {} ranks, the position has {} and {}",
                self.name, self.width, self.height, placement.width, placement.height
            )));
        }
        match (self.max_plies, placement.plies) {
            (None, Some(_)) => Err(ParseError(format!(
                "{} counts no plies: a position ends with the side to move",
                self.name
            ))),
            (Some(limit), Some(plies)) if plies > limit => Err(ParseError(format!(
                "{plies} plies played, but games of {} end after {limit}",
                self.name
            ))),
            _ => self.check_turn(&placement).map(|()| placement),
        }
    }

    /// Checks that the game did not end before the turn of the side to move.
    fn check_turn(&self, placement: &Placement) -> Result<(), ParseError> {
        let (mover, opponent) = (placement.to_move, placement.to_move.other());
        if let Some(kind) = self.capture
            && placement
                .squares_of(Piece {
                    side: opponent,
                    kind,
                })
                .next()
                .is_none()
        {
            return Err(ParseError(format!(
                "it is the turn of the {}, but the {} has no {} left: the game ended before",
                player(mover),
                player(opponent),
                self.kinds[kind].name
            )));
        }
        if let Some(kind) = self.goal {
            let arrived = |side| {
                let squares = placement.squares_of(Piece { side, kind });
                squares
                    .filter(|&square| self.ranks_to_go(square, side) == 0)
                    .count()
            };
            let name = &self.kinds[kind].name;
            if arrived(mover) > 0 {
                return Err(ParseError(format!(
                    "it is the turn of the {}, whose {name} is on the far rank already: the game \
                     ended before",
                    player(mover)
                )));
            }
            if arrived(opponent) > 1 {
                return Err(ParseError(format!(
                    "the {} has more than one {name} on the far rank: the first one ended the game",
                    player(opponent)
                )));
            }
        }
        Ok(())
    }

    /// Where a leap of `side` from a square ends, if on the board. The second
    /// player's leaps are the first's turned by half a turn.
    pub(super) fn landing(&self, square: usize, side: Side, leap: &Leap) -> Option<usize> {
        let sign = match side {
            Side::First => 1,
            Side::Second => -1,
        };
        let file = (square % self.width).checked_add_signed(sign * isize::from(leap.files))?;
        let rank = (square / self.width).checked_add_signed(sign * isize::from(leap.ranks))?;
        (file < self.width && rank < self.height).then_some(rank * self.width + file)
    }

    /// The letter of a piece in positions.
    pub(super) fn letter_of(&self, piece: Piece) -> char {
        let letter = self.kinds[piece.kind].letter;
        match piece.side {
            Side::First => letter.to_ascii_uppercase(),
            Side::Second => letter,
        }
    }

    /// Ranks between a square and the far rank of `side`.
    fn ranks_to_go(&self, square: usize, side: Side) -> usize {
        let rank = square / self.width;
        match side {
            Side::First => self.height - 1 - rank,
            Side::Second => rank,
        }
    }

    /// A kind that can move otherwise than forward.
    pub(super) fn restless_kind(&self) -> Option<&Kind> {
        self.kinds
            .iter()
            .find(|kind| kind.leaps.iter().any(|leap| leap.ranks <= 0))
    }

    pub(super) fn check_capture(&self, kind: usize) -> Result<(), Problem> {
        let name = &self.kinds[kind].name;
        for side in Side::ALL {
            if self.start.squares_of(Piece { side, kind }).next().is_none() {
                return Err(Problem::Unreachable(format!(
                    "the {} starts without a {name}, so there is none to capture",
                    player(side)
                )));
            }
        }
        let captures = |(_, piece): (usize, Piece)| {
            self.kinds[piece.kind]
                .leaps
                .iter()
                .any(|leap| leap.captures)
        };
        if !self.start.occupied().any(captures) {
            return Err(Problem::Unreachable(
                "no piece at the start can capture".to_string(),
            ));
        }
        Ok(())
    }

    pub(super) fn check_goal(&self, kind: usize) -> Result<(), Problem> {
        let reaches = |side| {
            let mut from = self.start.squares_of(Piece { side, kind });
            from.any(|square| self.reaches_far_rank(square, Piece { side, kind }))
        };
        if Side::ALL.into_iter().any(reaches) {
            return Ok(());
        }
        Err(Problem::Unreachable(format!(
            "no {} at the start can ever reach its far rank",
            self.kinds[kind].name
        )))
    }

    /// Whether a piece gets to the far rank if nothing stands in its way.
    fn reaches_far_rank(&self, square: usize, piece: Piece) -> bool {
        let mut reached = vec![square];
        let mut next = 0;
        while let Some(&square) = reached.get(next) {
            next += 1;
            for leap in &self.kinds[piece.kind].leaps {
                let landing = self.landing(square, piece.side, leap);
                reached.extend(landing.filter(|landing| !reached.contains(landing)));
            }
        }
        reached
            .iter()
            .any(|&square| self.ranks_to_go(square, piece.side) == 0)
    }

    /// Checks that the start is a position in which there is something to play.
    pub(super) fn check_start(&self) -> Result<(), Problem> {
        self.check_turn(&self.start).map_err(Problem::Start)?;
        if let Some(kind) = self.goal {
            let side = self.start.to_move.other();
            let mut squares = self.start.squares_of(Piece { side, kind });
            if squares.any(|square| self.ranks_to_go(square, side) == 0) {
                let name = &self.kinds[kind].name;
                let reason = format!("the {} has a {name} on the far rank", player(side));
                return Err(Problem::StartIsOver(reason));
            }
        }
        if !self
            .start
            .occupied()
            .any(|(square, piece)| self.start_moves(square, piece))
        {
            let reason = format!("the {} has no move", player(self.start.to_move));
            return Err(Problem::StartIsOver(reason));
        }
        Ok(())
    }

    /// Whether the piece is the mover's and has a move at the start.
    fn start_moves(&self, square: usize, piece: Piece) -> bool {
        let allows = |leap: &Leap| match self.landing(square, piece.side, leap) {
            Some(landing) => match self.start.pieces[landing] {
                Some(other) => leap.captures && other.side != piece.side,
                None => leap.moves,
            },
            None => false,
        };
        piece.side == self.start.to_move && self.kinds[piece.kind].leaps.iter().any(allows)
    }
}

/// A side, as messages call it.
fn player(side: Side) -> &'static str {
    match side {
        Side::First => "first player (upper case)",
        Side::Second => "second player (lower case)",
    }
}

/// The letters of the kinds, in order.
pub(super) fn letters(kinds: &[Kind]) -> Vec<char> {
    kinds.iter().map(|kind| kind.letter).collect()
}

fn canonical_leap(leap: &Leap) -> String {
    let moves = if leap.moves { "m" } else { "" };
    let captures = if leap.captures { "c" } else { "" };
    format!("{},{}{moves}{captures}", leap.files, leap.ranks)
}
