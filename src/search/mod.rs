//! Judging positions in batches, and searching below them.
//!
//! [`minimax()`] is the plain definition and the oracle of the tests; [`AlphaBeta`]
//! finds the same with a small part of the work. Both look a fixed number of plies
//! ahead and then ask an [`Evaluator`].

mod alpha_beta;
mod history;
mod material;
mod minimax;
mod score;
mod table;

pub use alpha_beta::{AlphaBeta, Limits, Options};
pub use material::MaterialEvaluator;
pub use minimax::minimax;

use crate::game::{Game, Value, children};
use crate::random::{Rng, RngExt};

/// Judges positions that are not over, in batches.
pub trait Evaluator<G: Game>: Send {
    /// Sets `values` to one judgement a position, each for its side to move.
    /// Finished positions may come along; what they get means nothing.
    fn evaluate(&mut self, game: &G, positions: &[G::Position], values: &mut Vec<Value>);

    /// Sets `values` to the judgement of the position after each of `moves`, for
    /// the side to move there: the opponent of the one who moves in `parent`.
    ///
    /// The default plays the moves. An evaluator that can update its work from
    /// the parent's overrides it.
    fn evaluate_children(
        &mut self,
        game: &G,
        parent: &G::Position,
        moves: &[G::Move],
        values: &mut Vec<Value>,
    ) {
        let mut positions = Vec::with_capacity(moves.len());
        children(game, parent, moves, &mut positions);
        self.evaluate(game, &positions, values);
    }

    /// Whether judging all children of a position at once costs much less than one
    /// after the other. A search then does so above its last ply; otherwise it
    /// stops at the first child that refutes the position.
    fn judges_siblings_together(&self) -> bool {
        true
    }
}

impl<G: Game, E: Evaluator<G> + ?Sized> Evaluator<G> for Box<E> {
    fn evaluate(&mut self, game: &G, positions: &[G::Position], values: &mut Vec<Value>) {
        (**self).evaluate(game, positions, values);
    }

    fn evaluate_children(
        &mut self,
        game: &G,
        parent: &G::Position,
        moves: &[G::Move],
        values: &mut Vec<Value>,
    ) {
        (**self).evaluate_children(game, parent, moves, values);
    }

    fn judges_siblings_together(&self) -> bool {
        (**self).judges_siblings_together()
    }
}

/// What a search found out about a position.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<M> {
    /// The value for the side to move, if both sides play their best within the
    /// depth: [`Value::WIN`] or [`Value::LOSS`] if that ends the game, otherwise
    /// the evaluator's judgement of where it leads.
    pub value: Value,
    /// In how many plies the game is then won or lost, if the search saw that. An
    /// upper bound if the search did not care for sooner wins.
    pub decided_in_plies: Option<u32>,
    /// The moves that lead there, in the order of the rules; never empty.
    pub best: Vec<M>,
    /// How far the search looked, in plies.
    pub depth: u32,
    /// Positions visited, the first one and evaluated ones included.
    pub nodes: u64,
}

/// f~: the rules' judgement of a finished position, else `value`, both for the
/// side to move.
///
/// Source: Ota, "ISer Advent Calendar 2020, day 23", the evaluation with corrections.
pub fn corrected<G: Game>(game: &G, position: &G::Position, value: Value) -> Value {
    match game.outcome(position) {
        Some(outcome) => outcome.value_for(game.side_to_move(position)),
        None => value,
    }
}

/// Draws an index with probability proportional to e^(preference / temperature).
/// Temperature 0 is greedy, ties broken uniformly.
///
/// # Panics
/// If there are no preferences.
pub fn softmax(preferences: &[f32], temperature: f32, rng: &mut Rng) -> usize {
    let best = preferences
        .iter()
        .copied()
        .fold(f32::NEG_INFINITY, f32::max);
    let weight = |preference: f32| match temperature {
        0.0 => f32::from(u8::from(preference == best)),
        _ => ((preference - best) / temperature).exp(),
    };
    let weights: Vec<f32> = preferences
        .iter()
        .map(|&preference| weight(preference))
        .collect();
    let mut rest = rng.random::<f32>() * weights.iter().sum::<f32>();
    for (index, &weight) in weights.iter().enumerate() {
        if rest < weight {
            return index;
        }
        rest -= weight;
    }
    // Rounding can leave a little: the last index with any weight takes it.
    weights
        .iter()
        .rposition(|&weight| weight > 0.0)
        .expect("the best has weight 1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seed;

    #[test]
    fn softmax_draws_in_proportion() {
        let mut rng = Seed(1).stream("softmax");
        let draws = 100_000;
        let mut counts = [0; 3];
        for _ in 0..draws {
            counts[softmax(&[0.0, 0.1, -0.3], 0.1, &mut rng)] += 1;
        }
        let weights = [1.0, 1f64.exp(), (-3f64).exp()];
        for (count, weight) in counts.iter().zip(weights) {
            let expected = weight / weights.iter().sum::<f64>();
            assert!(
                (f64::from(*count) / f64::from(draws) - expected).abs() < 0.01,
                "{counts:?}"
            );
        }
    }

    #[test]
    fn temperature_zero_splits_ties() {
        let mut rng = Seed(1).stream("softmax");
        let mut counts = [0; 4];
        for _ in 0..1000 {
            counts[softmax(&[0.5, -1.0, 0.5, 0.2], 0.0, &mut rng)] += 1;
        }
        assert_eq!((counts[1], counts[3]), (0, 0));
        assert!(counts[0] > 400 && counts[2] > 400, "{counts:?}");
    }
}
