//! The sequential probability ratio test: plays no longer than it takes to know.
//!
//! Source: A. Wald, "Sequential tests of statistical hypotheses" (1945); for pairs
//! of games, with the unknown distribution fitted to each hypothesis: M. Van den
//! Bergh, "Comparing the approximations for the generalized log likelihood ratio of
//! a multinomial distribution", as fishtest and fastchess use it.

use super::{PairResults, score_of_elo};

/// Asks whether an Elo difference is `elo0` or `elo1`, with 5% error either way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sprt {
    elo0: f64,
    elo1: f64,
}

/// One of the two answers of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Hypothesis {
    /// The difference is nearer the lower one.
    Elo0,
    /// The difference is nearer the higher one.
    Elo1,
}

impl Sprt {
    /// The log-likelihood ratio at which the test ends: ln((1 - error) / error).
    pub const BOUND: f64 = 2.944_438_979_166_44;

    /// The largest Elo that can be asked about, either way.
    pub const MAX_ELO: f64 = 1000.0;

    /// A test of `elo0` against `elo1`.
    ///
    /// # Errors
    /// If they are not two different numbers in order, or out of range.
    pub fn new(elo0: f64, elo1: f64) -> Result<Sprt, String> {
        let max = Self::MAX_ELO;
        if elo0 >= -max && elo1 <= max && elo0 < elo1 {
            return Ok(Sprt { elo0, elo1 });
        }
        Err(format!(
            "no test between Elo {elo0} and {elo1}: give the lower one first, both between -{max} \
             and {max}"
        ))
    }

    /// How much more likely the results are under `elo1` than under `elo0`, as a
    /// natural logarithm. 0 without results.
    pub fn log_likelihood_ratio(&self, results: &PairResults) -> f64 {
        if results.pairs() == 0 {
            return 0.0;
        }
        // A result that did not occur is taken to be rare, not impossible. Otherwise
        // nothing could be said as long as all pairs ended alike.
        let counts = results.counts.map(|count| (count as f64).max(1e-3));
        let total: f64 = counts.iter().sum();
        let shares = counts.map(|count| count / total);
        let under = |elo| most_likely(&shares, score_of_elo(elo));
        let (likely0, likely1) = (under(self.elo0), under(self.elo1));
        (0..5)
            .map(|i| counts[i] * (likely1[i] / likely0[i]).ln())
            .sum()
    }

    /// The answer, if the results give one.
    pub fn decision(&self, results: &PairResults) -> Option<Hypothesis> {
        let ratio = self.log_likelihood_ratio(results);
        if ratio >= Self::BOUND {
            Some(Hypothesis::Elo1)
        } else if ratio <= -Self::BOUND {
            Some(Hypothesis::Elo0)
        } else {
            None
        }
    }
}

/// The distribution with mean `score` under which results with these `shares` are
/// the most likely: p / (1 + theta (x - score)), with theta such that the mean is
/// right.
fn most_likely(shares: &[f64; 5], score: f64) -> [f64; 5] {
    let offset = |half_points: usize| half_points as f64 / 4.0 - score;
    let excess = |theta: f64| -> f64 {
        let term = |(i, share): (usize, &f64)| share * offset(i) / (1.0 + theta * offset(i));
        shares.iter().enumerate().map(term).sum()
    };
    // The excess falls from +infinity to -infinity between the poles. Halving the
    // interval until it cannot be halved further takes some 60 steps.
    let (mut low, mut high) = (-1.0 / offset(4), -1.0 / offset(0));
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if excess(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let theta = (low + high) / 2.0;
    std::array::from_fn(|i| shares[i] / (1.0 + theta * offset(i)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_agree_with_fastchess() {
        // Source: Disservin/fastchess, app/tests/sprt_test.cpp, "logistic pentanomial".
        for (counts, elo0, elo1, golden) in [
            ([223, 9863, 20279 + 1000, 10037, 246], 0.5, 2.5, -3.07),
            ([871, 26175, 55003 + 980, 26678, 821], 0.0, 2.0, -4.98),
        ] {
            let sprt = Sprt::new(elo0, elo1).unwrap();
            let ratio = sprt.log_likelihood_ratio(&PairResults { counts });
            assert!((ratio - golden).abs() < 0.005, "{ratio}, not {golden}");
            assert_eq!(
                sprt.decision(&PairResults { counts }),
                Some(Hypothesis::Elo0)
            );
        }
    }

    #[test]
    fn clean_sweeps_end_the_test() {
        let sprt = Sprt::new(0.0, 50.0).unwrap();
        let sweep = |won: u64, lost: u64| PairResults {
            counts: [lost, 0, 0, 0, won],
        };
        assert_eq!(sprt.decision(&sweep(0, 0)), None);
        assert_eq!(sprt.decision(&sweep(1, 0)), None);
        assert_eq!(sprt.decision(&sweep(100, 0)), Some(Hypothesis::Elo1));
        assert_eq!(sprt.decision(&sweep(0, 100)), Some(Hypothesis::Elo0));
    }

    #[test]
    fn senseless_tests_are_refused() {
        for (elo0, elo1) in [(5.0, 5.0), (5.0, 0.0), (0.0, f64::NAN), (0.0, 1e9)] {
            let message = Sprt::new(elo0, elo1).unwrap_err();
            assert!(message.contains("give the lower one first"), "{message}");
        }
    }
}
