//! EasyAI: a search of a fixed number of plies, then the piece count.

use super::{Agent, Judgement};
use crate::game::Game;
use crate::random::{Rng, RngExt};
use crate::search::{AlphaBeta, Found, Limits, MaterialEvaluator, Options};

/// Looks exactly `plies` plies ahead and counts material; a decided position
/// counts above all material, however soon it comes. Ties are broken uniformly.
#[derive(Debug, Clone, Copy)]
pub struct MaterialAgent {
    plies: u32,
}

impl MaterialAgent {
    /// A table costs more than it saves in the few plies that this agent looks.
    const OPTIONS: Options = Options {
        ordering: true,
        table: false,
        all_best: true,
        prefer_sooner_wins: false,
    };

    /// A search of `plies` plies.
    ///
    /// # Panics
    /// If `plies` is 0.
    pub fn new(plies: u32) -> MaterialAgent {
        assert!(
            plies > 0,
            "an agent that chooses a move looks at least one ply ahead"
        );
        MaterialAgent { plies }
    }

    /// EasyAI: own move, reply, own move.
    pub fn easy() -> MaterialAgent {
        MaterialAgent::new(3)
    }

    /// The best count that can be reached, and the moves that lead there, in the
    /// order of the rules.
    fn search<G: Game>(&self, game: &G, position: &G::Position) -> Found<G::Move> {
        let mut search = AlphaBeta::new(MaterialEvaluator, Self::OPTIONS);
        search.search(game, position, Limits::depth(self.plies))
    }

    /// The moves that lead to the best count, in the order of the rules.
    pub fn best_moves<G: Game>(&self, game: &G, position: &G::Position) -> Vec<G::Move> {
        self.search(game, position).best
    }
}

impl<G: Game> Agent<G> for MaterialAgent {
    fn name(&self) -> String {
        match self.plies {
            3 => "easy".to_string(),
            plies => format!("material@{plies}"),
        }
    }

    fn new_game(&mut self) {}

    fn choose(&mut self, game: &G, position: &G::Position, rng: &mut Rng) -> G::Move {
        let ties = self.best_moves(game, position);
        ties[rng.random_range(0..ties.len())]
    }

    fn judge(&mut self, game: &G, position: &G::Position) -> Judgement<G::Move> {
        self.search(game, position).into()
    }
}
