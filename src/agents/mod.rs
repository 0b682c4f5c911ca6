//! Who chooses moves.

mod material;
mod network;
mod searcher;
mod spec;

pub use material::MaterialAgent;
pub use network::NetworkAgent;
pub use searcher::SearchAgent;
pub use spec::{AGENTS, AgentError, AgentSpec, Effort, Entry, ModelSource, PreparedAgent};

use crate::game::{Game, Value};
use crate::random::{Rng, RngExt};
use crate::search::Found;

/// What an agent thinks of a position, for the side to move.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement<M> {
    /// How good the position is; `None` from an agent that does not judge.
    pub value: Option<Value>,
    /// The moves among which the agent draws lots, each as likely as the others;
    /// never empty.
    pub moves: Vec<M>,
}

impl<M> From<Found<M>> for Judgement<M> {
    fn from(found: Found<M>) -> Judgement<M> {
        Judgement {
            value: Some(found.value),
            moves: found.best,
        }
    }
}

/// Chooses moves.
pub trait Agent<G: Game>: Send {
    /// What people call it.
    fn name(&self) -> String;

    /// Forgets what belongs to the game before. No default body on purpose:
    /// wrappers must forward it.
    fn new_game(&mut self);

    /// A legal move. All randomness comes from `rng`.
    ///
    /// # Panics
    /// If the game is over.
    fn choose(&mut self, game: &G, position: &G::Position, rng: &mut Rng) -> G::Move;

    /// What [`Agent::choose`] goes by. Draws no lots.
    ///
    /// # Panics
    /// If the game is over.
    fn judge(&mut self, game: &G, position: &G::Position) -> Judgement<G::Move>;
}

/// BabyAI: uniform over all legal moves, winning ones included as ordinary moves.
#[derive(Debug, Clone, Copy)]
pub struct RandomAgent;

impl<G: Game> Agent<G> for RandomAgent {
    fn name(&self) -> String {
        "baby".to_string()
    }

    fn new_game(&mut self) {}

    fn choose(&mut self, game: &G, position: &G::Position, rng: &mut Rng) -> G::Move {
        let mut moves = Vec::new();
        game.legal_moves(position, &mut moves);
        moves[rng.random_range(0..moves.len())]
    }

    fn judge(&mut self, game: &G, position: &G::Position) -> Judgement<G::Move> {
        let mut moves = Vec::new();
        game.legal_moves(position, &mut moves);
        Judgement { value: None, moves }
    }
}
