//! HardAI: alpha-beta with an evaluator at its leaves.

use super::{Agent, Judgement};
use crate::game::Game;
use crate::random::{Rng, RngExt};
use crate::search::{AlphaBeta, Evaluator, Limits, Options};

/// Searches and plays one of the best moves, ties broken uniformly. Of two wins it
/// prefers the sooner.
#[derive(Debug, Clone)]
pub struct SearchAgent<G: Game, E> {
    name: String,
    search: AlphaBeta<G, E>,
    limits: Limits,
}

impl<G: Game, E: Evaluator<G>> SearchAgent<G, E> {
    /// An agent that people call `name` and that searches within `limits` for each
    /// move.
    pub fn new(name: impl Into<String>, evaluator: E, limits: Limits) -> SearchAgent<G, E> {
        SearchAgent {
            name: name.into(),
            search: AlphaBeta::new(evaluator, Options::AGENT),
            limits,
        }
    }
}

impl<G: Game, E: Evaluator<G>> Agent<G> for SearchAgent<G, E> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn new_game(&mut self) {
        self.search.forget();
    }

    fn choose(&mut self, game: &G, position: &G::Position, rng: &mut Rng) -> G::Move {
        let best = self.search.search(game, position, self.limits).best;
        best[rng.random_range(0..best.len())]
    }

    fn judge(&mut self, game: &G, position: &G::Position) -> Judgement<G::Move> {
        self.search.search(game, position, self.limits).into()
    }
}
