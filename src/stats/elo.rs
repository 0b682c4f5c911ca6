//! Elo differences: shares of points on the scale that chess made familiar.

use serde::{Deserialize, Serialize};

use super::PairResults;

/// An Elo difference or rating with its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Elo {
    /// The estimate.
    pub elo: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The Elo difference at which a share of the points in (0, 1) is to be expected.
pub fn elo_of_score(score: f64) -> f64 {
    400.0 * (score / (1.0 - score)).log10()
}

/// The share of the points to be expected at an Elo difference.
pub fn score_of_elo(elo: f64) -> f64 {
    1.0 / (1.0 + 10f64.powf(-elo / 400.0))
}

impl PairResults {
    /// How much stronger the first contestant is: [`PairResults::score`] on the Elo
    /// scale.
    ///
    /// A perfect score has no finite Elo. Scores are taken to be a quarter of a point
    /// short of perfect at most, so that a clean sweep in n games gives a number that
    /// grows with n, and an interval that ends there.
    ///
    /// # Panics
    /// If there is no pair.
    pub fn elo(&self) -> Elo {
        let edge = 0.25 / (2.0 * self.pairs() as f64);
        let elo = |score: f64| elo_of_score(score.clamp(edge, 1.0 - edge));
        let score = self.score();
        Elo {
            elo: elo(score.score),
            low: elo(score.low),
            high: elo(score.high),
        }
    }
}

impl std::fmt::Display for Elo {
    /// As whole numbers: `+34 (+12 to +56)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Elo { elo, low, high } = self;
        write!(f, "{elo:+.0} ({low:+.0} to {high:+.0})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Z_95;

    /// Within a hundredth, as the golden values are checked where they come from.
    /// Theirs is the plain normal interval; Wilson's is as near as that.
    fn assert_near(found: f64, golden: f64) {
        assert!(
            (found - golden).abs() <= 0.01 * golden.abs(),
            "{found}, not {golden}"
        );
    }

    #[test]
    fn pairs_agree_with_fastchess() {
        // Source: Disservin/fastchess, app/tests/elo_test.cpp, "EloPentanomial".
        for (counts, diff, error) in [
            ([34, 54, 31 + 32, 64, 75], 55.58, 27.65),
            ([332, 433, 457 + 41, 333, 334], -8.64, 10.33),
            ([7895, 8757, 5485 + 200, 568, 9999], -21.04, 2.95),
        ] {
            let elo = PairResults { counts }.elo();
            assert_near(elo.elo, diff);
            assert_near((elo.high - elo.low) / 2.0, error);
        }
    }

    #[test]
    fn single_games_agree_with_fastchess() {
        // Source: as above, "EloWDL". A game counts as a pair here, since only the
        // points of independent samples matter.
        let games = |wins, losses, draws| PairResults {
            counts: [losses, 0, draws, 0, wins],
        };
        let elo = games(136, 96, 111).elo();
        assert_near(elo.elo, 40.70);
        assert_near((elo.high - elo.low) / 2.0, 30.43);
        // Normalised Elo is the score above one half in standard deviations.
        for (wins, losses, draws, normalised) in [(76, 89, 123, -20.76), (136, 96, 111, 49.77)] {
            let score = games(wins, losses, draws).score();
            let count = (wins + losses + draws) as f64;
            let deviation = (score.high - score.low) / 2.0 / Z_95 * count.sqrt();
            assert_near(
                (score.score - 0.5) / deviation * 800.0 / 10f64.ln(),
                normalised,
            );
        }
    }

    #[test]
    fn perfect_scores_have_a_finite_elo() {
        let won = PairResults {
            counts: [0, 0, 0, 0, 100],
        };
        let lost = PairResults {
            counts: [100, 0, 0, 0, 0],
        };
        let (won, lost) = (won.elo(), lost.elo());
        assert!(won.elo > 1000.0 && won.elo < 1200.0, "{won}");
        assert!(won.low > 500.0 && won.low < 600.0, "{won}");
        assert_eq!(won.high, won.elo);
        assert!((won.elo + lost.elo).abs() < 1e-6 && (won.low + lost.high).abs() < 1e-6);
    }

    #[test]
    fn scores_and_elo_go_back_and_forth() {
        assert_eq!(elo_of_score(0.5), 0.0);
        assert_near(elo_of_score(0.75), 190.85);
        assert_near(score_of_elo(elo_of_score(0.123)), 0.123);
    }
}
