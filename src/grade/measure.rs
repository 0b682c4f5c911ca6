//! How good an agent is where the truth is known: signs, blunders, calibration.
//!
//! Source of the measures: G. Brier, "Verification of forecasts expressed in terms of
//! probability" (1950); expected calibration error over equal bins: M. Naeini et al.,
//! "Obtaining well calibrated probabilities using Bayesian binning" (2015).

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Lookahead, TestPosition, TestSet};
use crate::agents::{Agent, Judgement, RandomAgent};
use crate::arena::AgentFactory;
use crate::game::{Game, Value};
use crate::random::Rng;
use crate::solve::Exact;
use crate::stats::Proportion;

/// How an agent did on a test set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grade {
    /// Who was asked.
    pub agent: String,
    /// Share of the won and lost positions whose side the agent's value is on; a
    /// value of exactly 0 counts half. `None` if it does not judge.
    pub signs: Option<Share>,
    /// Share of the moves chosen in won positions that throw the win away. An agent
    /// that draws lots counts with the probability that it does so, so nothing here is
    /// random. `None` if it does not choose, or no position is won.
    pub blunders: Option<Share>,
    /// The blunder rate by ply of the position.
    pub blunders_by_ply: Vec<Row>,
    /// The blunder rate by number of moves that keep the win.
    pub blunders_by_winning_moves: Vec<Row>,
    /// How its values hold as probabilities, if they are meant so.
    pub calibration: Option<Calibration>,
}

/// A share of so many positions. Its interval takes each position for one trial, which
/// is too wide where agents draw lots.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The share, with its 95% interval.
    #[serde(flatten)]
    pub share: Proportion,
    /// Of how many positions.
    pub positions: u64,
}

/// A share of a part of the positions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Which part: a number such as `4`, or a range such as `5-8`.
    pub of: String,
    /// The share.
    #[serde(flatten)]
    pub share: Share,
}

/// A forecast of the result, p = (value + 1) / 2, held against the exact one: 1 for a
/// win, 1/2 for a draw, 0 for a loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Mean squared difference; 1/4 for someone who always says 1/2.
    pub brier: f64,
    /// Mean over the positions of how far their bin's mean forecast is off.
    pub expected_error: f64,
    /// Bins of equal width; those without a position are left out.
    pub bins: Vec<Bin>,
}

/// Positions with similar forecasts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Least forecast of the bin.
    pub from: f64,
    /// Greatest.
    pub to: f64,
    /// Mean forecast.
    pub forecast: f64,
    /// Mean exact result.
    pub exact: Share,
}

/// Number of bins of a calibration.
const BINS: usize = 10;

/// Ranges of the number of moves that keep a win.
const WINNING_MOVES: [[usize; 2]; 6] = [[1, 1], [2, 2], [3, 3], [4, 4], [5, 8], [9, usize::MAX]];

/// Asks an agent about every position, on all cores. What it says does not depend on its
/// other answers, nor on the number of threads, unless it thinks by the clock.
/// `forecasts`: whether its values are meant as probabilities.
pub fn grade<G: Game>(
    game: &G,
    set: &TestSet<G>,
    name: &str,
    agent: &AgentFactory<G>,
    forecasts: bool,
) -> Grade {
    let judge = |agent: &mut Box<dyn Agent<G>>, at: &TestPosition<G>| {
        agent.new_game();
        Answer::of(at, agent.judge(game, &at.position))
    };
    let positions = set.positions.par_iter();
    let answers: Vec<Answer> = positions.map_init(agent, judge).collect();
    let asked = || set.positions.iter().zip(&answers);
    let won = || asked().filter(|(at, _)| at.value == Exact::Win);
    let share_of = |of: &dyn Fn(&TestPosition<G>) -> bool| {
        let part = won().filter(|(at, _)| of(at));
        Share::mean(part.map(|(_, answer)| answer.blunder))
    };
    let row = |of: String, share: Option<Share>| share.map(|share| Row { of, share });
    let plies = set.plies().into_iter();
    Grade {
        agent: name.to_string(),
        signs: Share::mean(asked().filter_map(|(at, answer)| answer.right_sign(at.value))),
        blunders: share_of(&|_| true),
        blunders_by_ply: plies
            .filter_map(|ply| row(ply.to_string(), share_of(&|at| at.ply == ply)))
            .collect(),
        blunders_by_winning_moves: WINNING_MOVES
            .into_iter()
            .filter_map(|range| {
                let [least, most] = range;
                let share = share_of(&|at| (least..=most).contains(&at.winning_moves().count()));
                row(range_text(range), share)
            })
            .collect(),
        calibration: forecasts.then(|| {
            let forecasts = asked().filter_map(|(at, answer)| {
                let forecast = f64::from(answer.value?.get() + 1.0) / 2.0;
                Some((forecast, f64::from(Value::from(at.value).get() + 1.0) / 2.0))
            });
            Calibration::of(&forecasts.collect::<Vec<_>>())
        }),
    }
}

/// Grades to compare with: whoever takes every position for won, a random mover, and
/// the best that look 1, 3 and 5 plies ahead.
pub fn references<G: Game>(game: &G, set: &TestSet<G>) -> Vec<Grade> {
    let optimist = || -> Box<dyn Agent<G>> { Box::new(Optimist) };
    let optimist = Grade {
        blunders: None,
        blunders_by_ply: Vec::new(),
        blunders_by_winning_moves: Vec::new(),
        ..grade(game, set, "the mover always wins", &optimist, false)
    };
    let random = || -> Box<dyn Agent<G>> { Box::new(RandomAgent) };
    let random = grade(game, set, "a random mover", &random, false);
    let lookahead = [1, 3, 5].map(|plies| {
        let agent = Lookahead::new(plies);
        let make = || -> Box<dyn Agent<G>> { Box::new(agent) };
        grade(game, set, &Agent::<G>::name(&agent), &make, false)
    });
    [optimist, random].into_iter().chain(lookahead).collect()
}

/// What an agent said about a position.
struct Answer {
    value: Option<Value>,
    /// Probability that the move it plays does not keep a win.
    blunder: f64,
}

impl Answer {
    fn of<G: Game>(at: &TestPosition<G>, judgement: Judgement<G::Move>) -> Answer {
        let kept = judgement
            .moves
            .iter()
            .filter(|&&mv| at.winning_moves().any(|winning| winning == mv));
        Answer {
            value: judgement.value,
            blunder: 1.0 - kept.count() as f64 / judgement.moves.len() as f64,
        }
    }

    /// 1 if the value is on the right side, 1/2 if it is on neither; `None` if there
    /// is no right side, or no value.
    fn right_sign(&self, exact: Exact) -> Option<f64> {
        let value = self.value?.get();
        let right = match exact {
            Exact::Win => value,
            Exact::Loss => -value,
            Exact::Draw => return None,
        };
        Some(match right {
            0.0 => 0.5,
            right => f64::from(u8::from(right > 0.0)),
        })
    }
}

impl Share {
    /// The mean of numbers in [0, 1]; `None` if there are none.
    fn mean(numbers: impl Iterator<Item = f64>) -> Option<Share> {
        let (mut sum, mut positions) = (0.0, 0);
        for number in numbers {
            sum += number;
            positions += 1;
        }
        (positions > 0).then(|| Share {
            share: Proportion::wilson(sum, positions as f64),
            positions,
        })
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.share.fmt(f)
    }
}

impl Calibration {
    /// Of pairs of forecast and exact result, each in [0, 1].
    fn of(forecasts: &[(f64, f64)]) -> Calibration {
        let bin_of = |forecast: f64| ((forecast * BINS as f64) as usize).min(BINS - 1);
        let bins = (0..BINS).filter_map(|number| {
            let inside = || forecasts.iter().filter(|(p, _)| bin_of(*p) == number);
            let exact = Share::mean(inside().map(|(_, exact)| *exact))?;
            Some(Bin {
                from: number as f64 / BINS as f64,
                to: (number + 1) as f64 / BINS as f64,
                forecast: inside().map(|(p, _)| p).sum::<f64>() / exact.positions as f64,
                exact,
            })
        });
        let bins: Vec<Bin> = bins.collect();
        let off =
            |bin: &Bin| bin.exact.positions as f64 * (bin.forecast - bin.exact.share.score).abs();
        let squares = forecasts.iter().map(|(p, exact)| (p - exact).powi(2));
        let positions = forecasts.len().max(1) as f64;
        Calibration {
            brier: squares.sum::<f64>() / positions,
            expected_error: bins.iter().map(off).sum::<f64>() / positions,
            bins,
        }
    }
}

fn range_text([least, most]: [usize; 2]) -> String {
    match most {
        most if most == least => least.to_string(),
        usize::MAX => format!("{least} or more"),
        most => format!("{least}-{most}"),
    }
}

/// Takes every position for won. Its moves mean nothing.
struct Optimist;

impl<G: Game> Agent<G> for Optimist {
    fn name(&self) -> String {
        "optimist".to_string()
    }

    fn new_game(&mut self) {}

    fn choose(&mut self, game: &G, position: &G::Position, rng: &mut Rng) -> G::Move {
        RandomAgent.choose(game, position, rng)
    }

    fn judge(&mut self, game: &G, position: &G::Position) -> Judgement<G::Move> {
        Judgement {
            value: Some(Value::WIN),
            ..RandomAgent.judge(game, position)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration_of_a_worked_example() {
        // Two bins: 0.2 twice (0 and 1), 0.9 twice (1 and 1).
        let forecasts = [(0.2, 0.0), (0.2, 1.0), (0.9, 1.0), (0.9, 1.0)];
        let calibration = Calibration::of(&forecasts);
        assert!((calibration.brier - (0.04 + 0.64 + 0.01 + 0.01) / 4.0).abs() < 1e-12);
        assert!((calibration.expected_error - (2.0 * 0.3 + 2.0 * 0.1) / 4.0).abs() < 1e-12);
        let bins: Vec<_> = calibration
            .bins
            .iter()
            .map(|bin| (bin.from, bin.exact.positions))
            .collect();
        assert_eq!(bins, [(0.2, 2), (0.9, 2)]);
        // A forecast of 1 belongs to the last bin.
        assert_eq!(Calibration::of(&[(1.0, 1.0)]).bins[0].to, 1.0);
        assert!(Calibration::of(&[]).bins.is_empty());
    }

    #[test]
    fn a_value_of_zero_is_half_right() {
        let answer = |value| Answer {
            value: Some(Value::new(value)),
            blunder: 0.0,
        };
        assert_eq!(answer(0.3).right_sign(Exact::Win), Some(1.0));
        assert_eq!(answer(0.3).right_sign(Exact::Loss), Some(0.0));
        assert_eq!(answer(-0.0).right_sign(Exact::Loss), Some(0.5));
        assert_eq!(answer(0.3).right_sign(Exact::Draw), None);
    }
}
