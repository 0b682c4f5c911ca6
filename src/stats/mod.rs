//! Proportions and match results with intervals.
//!
//! A strength is never a bare number here: everything carries the 95% interval
//! that its sample size allows.

mod elo;
mod ratings;
mod sprt;

pub use elo::{Elo, elo_of_score, score_of_elo};
pub use ratings::{Pairing, ratings};
pub use sprt::{Hypothesis, Sprt};

use serde::{Deserialize, Serialize};

/// Two-sided 95% quantile of the standard normal distribution.
pub const Z_95: f64 = 1.959_963_984_540_054;

/// A share in [0, 1] with its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Proportion {
    /// The estimate.
    pub score: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Proportion {
    /// `successes` out of `trials` independent trials, with the Wilson score
    /// interval, which stays inside [0, 1] and is honest at 0% and 100%.
    ///
    /// Source: E. B. Wilson, "Probable inference, the law of succession, and
    /// statistical inference", JASA 22 (1927).
    ///
    /// # Panics
    /// If `trials` is not positive.
    pub fn wilson(successes: f64, trials: f64) -> Proportion {
        assert!(trials > 0.0, "a proportion needs at least one trial");
        let score = successes / trials;
        let z2 = Z_95 * Z_95;
        let centre = (score + z2 / (2.0 * trials)) / (1.0 + z2 / trials);
        let spread = Z_95 / (1.0 + z2 / trials)
            * (score * (1.0 - score) / trials + z2 / (4.0 * trials * trials)).sqrt();
        Proportion {
            score,
            low: (centre - spread).max(0.0),
            high: (centre + spread).min(1.0),
        }
    }
}

impl std::fmt::Display for Proportion {
    /// As percentages: `91.3% (90.4-92.1)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.1}% ({:.1}-{:.1})",
            100.0 * self.score,
            100.0 * self.low,
            100.0 * self.high
        )
    }
}

/// Results of games played in colour-swapped pairs from one opening each.
///
/// The two games of a pair share an opening, so they are not independent; the
/// pair is the sample. A pair's points for the first contestant are 0, 1/2, 1,
/// 3/2 or 2, hence five counts ("pentanomial", as fastchess and fishtest use).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairResults {
    /// Number of pairs by half points scored, 0 to 4.
    pub counts: [u64; 5],
}

impl PairResults {
    /// Counts one pair in which the first contestant made `half_points` of 4.
    pub fn add(&mut self, half_points: usize) {
        self.counts[half_points] += 1;
    }

    /// Number of pairs.
    pub fn pairs(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Share of the points made by the first contestant, with a 95% interval.
    ///
    /// The interval is Wilson's, for [`PairResults::independent_games`] trials.
    ///
    /// # Panics
    /// If there is no pair.
    pub fn score(&self) -> Proportion {
        let trials = self.independent_games();
        Proportion::wilson(self.mean(|share| share) * trials, trials)
    }

    /// As many independent games, won or lost, as would give the variance seen
    /// between pairs. Where that variance is zero (all pairs alike) each pair counts
    /// as one game.
    ///
    /// # Panics
    /// If there is no pair.
    pub fn independent_games(&self) -> f64 {
        assert!(self.pairs() > 0, "a score needs at least one pair");
        let score = self.mean(|share| share);
        let variance = self.mean(|share| (share - score).powi(2));
        if variance > 0.0 {
            self.pairs() as f64 * score * (1.0 - score) / variance
        } else {
            self.pairs() as f64
        }
    }

    /// Mean over the pairs of a function of the share of points made.
    fn mean(&self, f: impl Fn(f64) -> f64) -> f64 {
        let terms = self.counts.iter().enumerate();
        let sum: f64 = terms.map(|(i, &n)| n as f64 * f(i as f64 / 4.0)).sum();
        sum / self.pairs() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_agrees_with_published_values() {
        // Source: Newcombe, "Two-sided confidence intervals for the single
        // proportion" (1998), table I, method 3.
        for (successes, trials, low, high) in [
            (81.0, 263.0, 0.2553, 0.3662),
            (15.0, 148.0, 0.0624, 0.1605),
            (0.0, 20.0, 0.0, 0.1611),
            (1.0, 29.0, 0.0061, 0.1718),
        ] {
            let interval = Proportion::wilson(successes, trials);
            assert!((interval.low - low).abs() < 5e-5, "{interval:?}");
            assert!((interval.high - high).abs() < 5e-5, "{interval:?}");
        }
    }

    #[test]
    fn independent_games_get_the_binomial_interval() {
        // Pairs of two independent fair games: counts 1 : 2 : 1 of 0, 1, 2 points.
        let results = PairResults {
            counts: [250, 0, 500, 0, 250],
        };
        let paired = results.score();
        let single = Proportion::wilson(1000.0, 2000.0);
        assert!((paired.low - single.low).abs() < 1e-9);
        assert!((paired.high - single.high).abs() < 1e-9);
    }

    #[test]
    fn a_clean_sweep_still_has_an_interval() {
        let score = PairResults {
            counts: [0, 0, 0, 0, 100],
        }
        .score();
        assert_eq!(score.score, 1.0);
        assert!(score.low < 0.97 && score.low > 0.9, "{score:?}");
    }
}
