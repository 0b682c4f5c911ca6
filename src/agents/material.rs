//! EasyAI: a search of a fixed number of plies, then the piece count.

use super::Agent;
use crate::game::{Game, Outcome};
use crate::random::{Rng, RngExt};

/// Looks exactly `plies` plies ahead and counts material; a decided position
/// counts above all material, however soon it comes. Ties are broken uniformly.
#[derive(Debug, Clone, Copy)]
pub struct MaterialAgent {
    plies: u32,
}

/// Worth of a won game: more than any material.
const WIN: i32 = 1_000_000;

impl MaterialAgent {
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

    /// The moves that lead to the best count, in the order of the rules.
    pub fn best_moves<G: Game>(&self, game: &G, position: &G::Position) -> Vec<G::Move> {
        let mut moves = Vec::new();
        game.legal_moves(position, &mut moves);
        let mut best = -WIN - 1;
        let mut ties = Vec::new();
        for mv in moves {
            let mut child = position.clone();
            game.play_unchecked(&mut child, mv);
            // The window's lower end lies below `best`, so that ties come out exactly.
            let count = -negamax(game, &child, self.plies - 1, -WIN - 1, 1 - best);
            if count > best {
                best = count;
                ties.clear();
            }
            if count == best {
                ties.push(mv);
            }
        }
        ties
    }
}

/// Fail-soft alpha-beta: the material count for the side to move after `plies`
/// plies of best play, exact if it lies between `alpha` and `beta`.
fn negamax<G: Game>(
    game: &G,
    position: &G::Position,
    plies: u32,
    mut alpha: i32,
    beta: i32,
) -> i32 {
    if let Some(outcome) = game.outcome(position) {
        return match outcome {
            Outcome::Win(side) if side == game.side_to_move(position) => WIN,
            Outcome::Win(_) => -WIN,
            Outcome::Draw => 0,
        };
    }
    if plies == 0 {
        return game.material(position);
    }
    let mut moves = Vec::new();
    game.legal_moves(position, &mut moves);
    let mut best = i32::MIN;
    for mv in moves {
        let mut child = position.clone();
        game.play_unchecked(&mut child, mv);
        best = best.max(-negamax(game, &child, plies - 1, -beta, -alpha));
        alpha = alpha.max(best);
        if alpha >= beta {
            break;
        }
    }
    best
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
}
