//! NormalAI: one ply with an evaluator.

use super::{Agent, Judgement};
use crate::game::{Game, Value, children};
use crate::random::Rng;
use crate::search::{Evaluator, corrected, softmax};

/// Lists the positions after each move and plays the one that the evaluator
/// thinks worst for the opponent, ties broken uniformly.
///
/// Source: Ota, "ISer Advent Calendar 2020, day 23", section on playing against a person.
#[derive(Debug, Clone)]
pub struct NetworkAgent<E> {
    name: String,
    evaluator: E,
}

impl<E> NetworkAgent<E> {
    /// An agent that people call `name`.
    pub fn new(name: impl Into<String>, evaluator: E) -> NetworkAgent<E> {
        NetworkAgent {
            name: name.into(),
            evaluator,
        }
    }

    /// Every legal move with its value for the side to move, in the order of the
    /// rules.
    pub fn move_values<G: Game>(
        &mut self,
        game: &G,
        position: &G::Position,
    ) -> Vec<(G::Move, Value)>
    where
        E: Evaluator<G>,
    {
        let (mut moves, mut positions, mut values) = (Vec::new(), Vec::new(), Vec::new());
        game.legal_moves(position, &mut moves);
        self.evaluator
            .evaluate_children(game, position, &moves, &mut values);
        children(game, position, &moves, &mut positions);
        let corrected = positions
            .iter()
            .zip(values)
            .map(|(child, v)| -corrected(game, child, v));
        moves.iter().copied().zip(corrected).collect()
    }
}

impl<G: Game, E: Evaluator<G>> Agent<G> for NetworkAgent<E> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn new_game(&mut self) {}

    fn choose(&mut self, game: &G, position: &G::Position, rng: &mut Rng) -> G::Move {
        let judged = self.move_values(game, position);
        let values: Vec<f32> = judged.iter().map(|(_, value)| value.get()).collect();
        judged[softmax(&values, 0.0, rng)].0
    }

    fn judge(&mut self, game: &G, position: &G::Position) -> Judgement<G::Move> {
        let judged = self.move_values(game, position);
        let values = judged.iter().map(|(_, value)| value.get());
        let best = values.reduce(f32::max).expect("the game is not over");
        let ties = judged.iter().filter(|(_, value)| value.get() == best);
        Judgement {
            value: Some(Value::new(best)),
            moves: ties.map(|(mv, _)| *mv).collect(),
        }
    }
}
