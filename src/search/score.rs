//! The numbers that searches compare.

use std::ops::Neg;

use super::Found;
use crate::game::Value;

/// A judgement for the side to move, between any two of which there is an order:
/// estimates lie in [-1, 1], won games above and lost games below. The more plies
/// of the search were left when a game ended, the sooner it ended, and the further
/// out it lies. So scores compare among positions of one depth of search.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct Score(f32);

impl Score {
    /// Below every other.
    pub(super) const WORST: Score = Score(f32::NEG_INFINITY);
    /// Above every other.
    pub(super) const BEST: Score = Score(f32::INFINITY);
    /// A game that is won when no ply is left.
    const WON: f32 = 2.0;

    /// The score of a position that is not searched further.
    pub(super) fn estimate(value: Value) -> Score {
        Score(value.get())
    }

    /// The score of a finished game with this result. A draw is like an estimate
    /// of 0.
    pub(super) fn finished(result: Value, plies_left: u32) -> Score {
        // Exact: plies are whole numbers, and far fewer than 2^24.
        Score(result.get() * (Score::WON + plies_left as f32))
    }

    /// The next lower score.
    pub(super) fn just_below(self) -> Score {
        Score(self.0.next_down())
    }

    /// The greater one.
    pub(super) fn max(self, other: Score) -> Score {
        Score(self.0.max(other.0))
    }

    /// What a search of `depth` plies that ends with this score has found.
    pub(super) fn found<M>(self, best: Vec<M>, depth: u32, nodes: u64) -> Found<M> {
        let plies_left = self.0.abs() - Score::WON;
        Found {
            value: Value::new(self.0.clamp(-1.0, 1.0)),
            decided_in_plies: (plies_left >= 0.0).then_some(depth - plies_left as u32),
            best,
            depth,
            nodes,
        }
    }
}

impl Neg for Score {
    type Output = Score;
    fn neg(self) -> Score {
        Score(-self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_win_sooner_counts_more_and_a_loss_sooner_less() {
        let rising = [
            Score::WORST,
            Score::finished(Value::LOSS, 3),
            Score::finished(Value::LOSS, 0),
            Score::estimate(Value::LOSS),
            Score::finished(Value::DRAW, 3),
            Score::estimate(Value::WIN),
            Score::finished(Value::WIN, 0),
            Score::finished(Value::WIN, 3),
            Score::BEST,
        ];
        assert!(rising.is_sorted_by(|a, b| a < b), "{rising:?}");
    }

    #[test]
    fn plies_to_the_end_come_out() {
        let decided = |score: Score| score.found(vec![()], 5, 1).decided_in_plies;
        assert_eq!(decided(Score::finished(Value::WIN, 2)), Some(3));
        assert_eq!(decided(Score::finished(Value::LOSS, 0)), Some(5));
        assert_eq!(decided(Score::finished(Value::DRAW, 2)), None);
        assert_eq!(decided(Score::estimate(Value::WIN)), None);
    }
}
