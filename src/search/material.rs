//! The piece count as an evaluator.

use super::Evaluator;
use crate::game::{Game, Value};

/// Judges positions by [`Game::material`] alone. Counts up to
/// [`MaterialEvaluator::MAX_COUNT`] either way are told apart exactly.
#[derive(Debug, Clone, Copy)]
pub struct MaterialEvaluator;

impl MaterialEvaluator {
    /// The count that stands for a value of 1. A power of two, and as many as an
    /// `f32` has bits, so that all counts up to it have values of their own.
    pub const MAX_COUNT: i32 = 1 << f32::MANTISSA_DIGITS;

    /// The count that a value stands for.
    pub fn count(value: Value) -> i32 {
        (value.get() * Self::MAX_COUNT as f32) as i32
    }
}

impl<G: Game> Evaluator<G> for MaterialEvaluator {
    fn evaluate(&mut self, game: &G, positions: &[G::Position], values: &mut Vec<Value>) {
        values.clear();
        values.extend(
            positions.iter().map(|position| {
                Value::new(game.material(position) as f32 / Self::MAX_COUNT as f32)
            }),
        );
    }

    /// Counting is so cheap that it pays to count no more than needed.
    fn judges_siblings_together(&self) -> bool {
        false
    }
}
