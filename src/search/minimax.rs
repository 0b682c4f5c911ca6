//! Plain minimax: the definition of a position's value at a fixed depth, and the
//! oracle of the faster search. It visits every line of play.
//!
//! Source: J. von Neumann, "Zur Theorie der Gesellschaftsspiele" (1928); written as
//! negamax, where both sides maximise and values change sign from ply to ply.

use super::score::Score;
use super::{Evaluator, Found};
use crate::game::{Game, children};

/// Searches exactly `depth` plies. A win sooner counts more than a win later if
/// `prefer_sooner_wins`, otherwise all wins count alike.
///
/// # Panics
/// If the game is over, or `depth` is 0.
pub fn minimax<G: Game>(
    game: &G,
    position: &G::Position,
    depth: u32,
    evaluator: &mut impl Evaluator<G>,
    prefer_sooner_wins: bool,
) -> Found<G::Move> {
    assert!(depth > 0, "a search looks at least one ply ahead");
    let mut search = Minimax {
        game,
        evaluator,
        prefer_sooner_wins,
        nodes: 1,
    };
    let (mut moves, mut positions) = (Vec::new(), Vec::new());
    game.legal_moves(position, &mut moves);
    children(game, position, &moves, &mut positions);
    let scores: Vec<Score> = positions
        .iter()
        .map(|child| -search.score(child, depth - 1))
        .collect();
    let best = scores.iter().copied().reduce(Score::max);
    let best = best.expect("the game is not over");
    let ties = moves
        .iter()
        .zip(&scores)
        .filter(|(_, score)| **score == best);
    best.found(ties.map(|(&mv, _)| mv).collect(), depth, search.nodes)
}

struct Minimax<'a, G, E> {
    game: &'a G,
    evaluator: &'a mut E,
    prefer_sooner_wins: bool,
    nodes: u64,
}

impl<G: Game, E: Evaluator<G>> Minimax<'_, G, E> {
    fn score(&mut self, position: &G::Position, plies_left: u32) -> Score {
        self.nodes += 1;
        if let Some(outcome) = self.game.outcome(position) {
            let result = outcome.value_for(self.game.side_to_move(position));
            return Score::finished(
                result,
                if self.prefer_sooner_wins {
                    plies_left
                } else {
                    0
                },
            );
        }
        if plies_left == 0 {
            let mut values = Vec::new();
            let position = std::slice::from_ref(position);
            self.evaluator.evaluate(self.game, position, &mut values);
            return Score::estimate(values[0]);
        }
        let (mut moves, mut positions) = (Vec::new(), Vec::new());
        self.game.legal_moves(position, &mut moves);
        children(self.game, position, &moves, &mut positions);
        positions
            .iter()
            .map(|child| -self.score(child, plies_left - 1))
            .fold(Score::WORST, Score::max)
    }
}
