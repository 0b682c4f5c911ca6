//! Exact values: who wins a position if nobody errs, proved by search down to the
//! ends of the game.
//!
//! [`Solver`] is a depth-first proof-number search for games in which no position can
//! come back, so that every line of play ends by itself (March, Connect Four). What a
//! network thinks of a position only orders the work: no value can be wrong for it. A
//! [`Certificate`] holds a won position's proof, move by move; [`verify()`] checks one
//! by the rules alone, with code of its own.

mod certificate;
mod df_pn;
mod strategy;
mod table;
mod verify;

pub use certificate::{Certificate, CertificateError};
pub use df_pn::Solver;
pub use strategy::{StrategyError, certify};
pub use verify::{Refusal, Verified, VerifyError, verify};

use std::fmt;
use std::ops::Neg;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::game::{Outcome, Side, Value};

/// The exact value of a position for its side to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exact {
    /// It loses.
    Loss,
    /// Neither side can win.
    Draw,
    /// It wins.
    Win,
}

impl Exact {
    /// The value as people and files write it.
    pub fn name(self) -> &'static str {
        match self {
            Exact::Loss => "loss",
            Exact::Draw => "draw",
            Exact::Win => "win",
        }
    }

    /// A finished game's value, as `side` sees it.
    pub fn of(outcome: Outcome, side: Side) -> Exact {
        match outcome {
            Outcome::Win(winner) if winner == side => Exact::Win,
            Outcome::Win(_) => Exact::Loss,
            Outcome::Draw => Exact::Draw,
        }
    }
}

impl Neg for Exact {
    type Output = Exact;
    fn neg(self) -> Exact {
        match self {
            Exact::Loss => Exact::Win,
            Exact::Draw => Exact::Draw,
            Exact::Win => Exact::Loss,
        }
    }
}

impl From<Exact> for Value {
    fn from(exact: Exact) -> Value {
        match exact {
            Exact::Loss => Value::LOSS,
            Exact::Draw => Value::DRAW,
            Exact::Win => Value::WIN,
        }
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What one call of a solver may cost. What is `None` is not limited.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Positions to expand.
    pub nodes: Option<u64>,
    /// Time to take.
    pub time: Option<Duration>,
    /// Once true, the call ends soon.
    pub stop: Option<Arc<AtomicBool>>,
    /// Where the call counts the positions it has expanded, for others to watch.
    pub expanded: Option<Arc<AtomicU64>>,
}

/// How a solver works. None of it can change a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The most memory that the table takes, in MiB. It begins with a quarter of one
    /// and grows as it fills.
    pub table_mib: usize,
    /// What a new position's numbers say of the prior's judgement: a position that is
    /// won with probability p (in the prior's view) begins with 1 - s ln p as its proof
    /// number and 1 - s ln (1 - p) as its disproof number. This is s.
    pub prior_scale: f32,
    /// Siblings other than the hardest count one part in so many: their proofs have
    /// much in common, since moves commute. 1 is the plain sum of proof-number search.
    pub weak_sum: u32,
    /// Whether [`Game::foresee`](crate::game::Game::foresee) is asked.
    pub foresight: bool,
}

impl Default for Options {
    /// The best known for March.
    fn default() -> Options {
        Options {
            table_mib: 64,
            prior_scale: 50.0,
            weak_sum: 6,
            foresight: true,
        }
    }
}

/// What a solver found out about a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Solution {
    /// The value; `None` if a limit was hit.
    pub value: Option<Exact>,
    /// Positions expanded.
    pub nodes: u64,
}

/// Why a game cannot be solved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{game} cannot be solved, since games need not end by themselves: {why}")]
pub struct Unsolvable {
    /// The game.
    pub game: String,
    /// The reason.
    pub why: String,
}
