//! How fast a device judges positions and learns from them, measured on random
//! positions in about a second. Not a benchmark: enough to choose a device by.

use std::fmt;
use std::time::Instant;

use rayon::prelude::*;

use super::learner::{Learner, LearningConfig, Optimizer};
use super::replay::{ReplayConfig, Samples};
use crate::game::playout::random_positions;
use crate::game::{Game, children};
use crate::nets::device::{Compute, Line};
use crate::nets::{NetConfig, NetEvaluator};
use crate::random::Seed;
use crate::search::Evaluator;

/// Time for the measurement of one speed, if the work can be cut so small.
const SPAN_SECONDS: f64 = 0.4;

/// Speeds of a network on a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throughput {
    /// Positions judged a second, in the way of self-play.
    pub evaluated: f64,
    /// Positions learned from a second.
    pub trained: f64,
}

/// How much work there is at once. A GPU is the faster the more it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    /// Games of self-play side by side: all moves of each are judged at once.
    pub games: usize,
    /// Positions in a minibatch.
    pub batch_positions: usize,
}

impl Throughput {
    /// Measures a network on a device: twice each kind of work to prepare kernels
    /// and to see how long it takes, then for a moment.
    pub fn measure<G: Game>(
        game: &G,
        net: &NetConfig,
        compute: &Compute,
        portion: Portion,
    ) -> Throughput {
        let learning = LearningConfig {
            optimizer: Optimizer::Adam,
            rate: 0.001,
            final_rate: 0.001,
            batch_positions: portion.batch_positions,
            mirror: false,
            replay: ReplayConfig {
                window_positions: 0,
                uses: 1,
            },
        };
        let mut learner = Learner::new(game, net, &learning, compute.clone(), Seed(0));
        Throughput {
            evaluated: evaluated(game, &learner.evaluator(), portion.games),
            trained: trained(game, &mut learner, portion.batch_positions),
        }
    }

    /// Seconds of work that a position of self-play costs: `moves` positions are
    /// judged to choose a move in it, and it is learned from `uses` times.
    pub fn seconds_per_position(&self, moves: f64, uses: f64) -> f64 {
        moves / self.evaluated + uses / self.trained
    }
}

/// Positions of games on their way, none of them over, the same each time.
pub fn positions<G: Game>(game: &G, count: usize) -> Vec<G::Position> {
    let mut rng = Seed(0).stream("throughput");
    let mut positions = Vec::with_capacity(count);
    while positions.len() < count {
        positions.extend(random_positions(game, 16, &mut rng));
    }
    positions.truncate(count);
    positions
}

/// Number of legal moves of a position, on average.
pub fn mean_moves<G: Game>(game: &G) -> f64 {
    const POSITIONS: usize = 1000;
    let (parents, mut moves) = (positions(game, POSITIONS), Vec::new());
    for parent in &parents {
        game.legal_moves(parent, &mut moves);
    }
    moves.len() as f64 / POSITIONS as f64
}

fn evaluated<G: Game>(game: &G, evaluator: &NetEvaluator, games: usize) -> f64 {
    let parents: Vec<(G::Position, Vec<G::Move>)> = positions(game, games)
        .into_iter()
        .map(|parent| {
            let mut moves = Vec::new();
            game.legal_moves(&parent, &mut moves);
            (parent, moves)
        })
        .collect();
    let mut all = Vec::new();
    for (parent, moves) in &parents {
        children(game, parent, moves, &mut all);
    }
    let work = |repetitions: usize| {
        if evaluator.computes_elsewhere() {
            let (mut evaluator, mut values) = (evaluator.clone(), Vec::new());
            let ply = |_| evaluator.evaluate(game, &all, &mut values);
            return Line::FirstHalf.run(|| (0..repetitions).for_each(ply));
        }
        let numbers = (0..repetitions * parents.len()).into_par_iter();
        numbers.for_each_init(
            || (evaluator.clone(), Vec::new()),
            |(evaluator, values), number| {
                let (parent, moves) = &parents[number % parents.len()];
                evaluator.evaluate_children(game, parent, moves, values);
            },
        );
    };
    all.len() as f64 * per_second(work)
}

fn trained<G: Game>(game: &G, learner: &mut Learner, batch_positions: usize) -> f64 {
    let mut samples = Samples::default();
    for position in positions(game, batch_positions) {
        samples.features.push(game, &position);
        samples.targets.push(0.5);
    }
    let work = |repetitions: usize| {
        Line::Learning.run(|| {
            for step in 1..=repetitions {
                let loss = learner.descend(game, &samples, 0.001);
                if step == repetitions {
                    // Waits for all steps.
                    loss.into_scalar::<f32>();
                }
            }
        });
    };
    batch_positions as f64 * per_second(work)
}

/// How often a second the work is done, of which `work` does as much as it is told.
fn per_second(mut work: impl FnMut(usize)) -> f64 {
    let mut seconds = |repetitions| {
        let started = Instant::now();
        work(repetitions);
        started.elapsed().as_secs_f64().max(1e-9)
    };
    // Prepares kernels and memory.
    seconds(1);
    let once = seconds(1);
    if once > SPAN_SECONDS {
        return 1.0 / once;
    }
    let repetitions = (SPAN_SECONDS / once).clamp(1.0, 1e6) as usize;
    repetitions as f64 / seconds(repetitions)
}

/// A number for people: three digits are enough, with a unit where there are more.
pub struct Figure(pub f64);

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = match self.0 {
            large if large >= 999_500.0 => (large / 1e6, " million"),
            medium if medium >= 1e4 => return write!(f, "{:.0},000", medium / 1e3),
            small => (small, ""),
        };
        match number {
            number if number >= 100.0 => write!(f, "{number:.0}{unit}"),
            number => write!(f, "{number:.1}{unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_by_repetitions() {
        let mut done = Vec::new();
        let rate = per_second(|repetitions| {
            done.push(repetitions);
            std::thread::sleep(std::time::Duration::from_millis(repetitions as u64));
        });
        assert_eq!(done[..2], [1, 1]);
        assert!(done.len() == 3 && done[2] >= 1, "{done:?}");
        // A sleep is never shorter than asked for.
        assert!(rate > 0.0 && rate <= 1000.0, "{rate}");
    }

    #[test]
    fn a_position_costs_its_moves_and_its_uses() {
        let speed = Throughput {
            evaluated: 100.0,
            trained: 50.0,
        };
        assert_eq!(speed.seconds_per_position(10.0, 2.0), 0.1 + 0.04);
    }

    #[test]
    fn figures_are_short() {
        for (number, text) in [
            (1.25, "1.2"),
            (950.0, "950"),
            (9_500.0, "9500"),
            (81_400.0, "81,000"),
            (2_340_000.0, "2.3 million"),
            (123_456_789.0, "123 million"),
        ] {
            assert_eq!(Figure(number).to_string(), text);
        }
    }
}
