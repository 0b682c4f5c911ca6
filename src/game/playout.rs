//! Random games, for checks, tests and probes.

use super::Game;
use crate::random::{Rng, RngExt};

/// The positions of `games` uniformly random games from the start, in the order
/// in which they were visited, none of them over. A position can occur twice.
pub fn random_positions<G: Game>(game: &G, games: usize, rng: &mut Rng) -> Vec<G::Position> {
    let (mut positions, mut moves) = (Vec::new(), Vec::new());
    for _ in 0..games {
        let mut position = game.start();
        loop {
            moves.clear();
            game.legal_moves(&position, &mut moves);
            if moves.is_empty() {
                break;
            }
            positions.push(position.clone());
            game.play_unchecked(&mut position, moves[rng.random_range(0..moves.len())]);
        }
    }
    positions
}
