//! Perft: how many lines of play there are, the classic check of move generators.
//!
//! Counts are leaf positions; a finished position has no successors, so lines that
//! end early are not counted further on.

use rayon::prelude::*;

use super::{Game, children};

/// The number of lines of exactly 1, 2, ..., `depth` plies below the position. Uses
/// all cores; the counts do not depend on how many there are.
pub fn perft<G: Game>(game: &G, position: &G::Position, depth: usize) -> Vec<u64> {
    (1..=depth)
        .map(|plies| count_parallel(game, position, plies))
        .collect()
}

fn count_parallel<G: Game>(game: &G, position: &G::Position, plies: usize) -> u64 {
    if plies == 1 {
        return game.count_legal_moves(position);
    }
    successors(game, position)
        .par_iter()
        .map(|child| count(game, child, plies - 1))
        .sum()
}

/// The last ply is counted without playing it.
fn count<G: Game>(game: &G, position: &G::Position, plies: usize) -> u64 {
    if plies == 1 {
        return game.count_legal_moves(position);
    }
    successors(game, position)
        .iter()
        .map(|child| count(game, child, plies - 1))
        .sum()
}

fn successors<G: Game>(game: &G, position: &G::Position) -> Vec<G::Position> {
    let (mut moves, mut positions) = (Vec::new(), Vec::new());
    game.legal_moves(position, &mut moves);
    children(game, position, &moves, &mut positions);
    positions
}
