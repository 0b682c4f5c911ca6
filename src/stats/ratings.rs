//! Ratings of several contestants from matches between them.
//!
//! Source: R. Bradley, M. Terry, "Rank analysis of incomplete block designs: I. The
//! method of paired comparisons" (1952), by maximum likelihood.

use super::{Elo, PairResults, Z_95};

/// A match between two of several contestants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pairing {
    /// Who played, by number.
    pub contestants: [usize; 2],
    /// What the first of them scored.
    pub results: PairResults,
}

/// Elo points in one natural unit of log-odds.
const ELO_PER_NATURAL: f64 = 400.0 / std::f64::consts::LN_10;

/// Rates contestants 0 to `count - 1` together. The anchor's rating is 0 and the
/// intervals are those of the difference from it.
///
/// Each match weighs as many independent games as its pairs are worth, see
/// [`PairResults::score`], and one drawn game on top: it matters to perfect scores
/// alone, which would otherwise rate without bound.
///
/// # Panics
/// If a number is out of range, or the matches do not connect all contestants.
pub fn ratings(count: usize, pairings: &[Pairing], anchor: usize) -> Vec<Elo> {
    let games: Vec<Games> = pairings.iter().map(Games::new).collect();
    let mut strengths = vec![0.0; count];
    let mut variances = vec![0.0; count];
    // Newton's method; the steps are bounded, since far from the maximum it
    // overshoots. 100 of them are more than the span of any ratings.
    for _ in 0..100 {
        let (gradient, covariance) = slope(&strengths, &games, anchor);
        let mut largest = 0.0f64;
        for i in 0..count {
            let step: f64 = (0..count).map(|j| covariance[i][j] * gradient[j]).sum();
            strengths[i] += step.clamp(-1.0, 1.0);
            variances[i] = covariance[i][i];
            largest = largest.max(step.abs());
        }
        if largest < 1e-9 {
            break;
        }
    }
    let rate = |(strength, variance): (&f64, &f64)| {
        let (elo, error) = (
            strength * ELO_PER_NATURAL,
            Z_95 * variance.sqrt() * ELO_PER_NATURAL,
        );
        Elo {
            elo,
            low: elo - error,
            high: elo + error,
        }
    };
    strengths.iter().zip(&variances).map(rate).collect()
}

/// A match as so many independent games.
struct Games {
    contestants: [usize; 2],
    count: f64,
    /// The first contestant's.
    points: f64,
}

impl Games {
    fn new(pairing: &Pairing) -> Games {
        let count = pairing.results.independent_games();
        Games {
            contestants: pairing.contestants,
            count: count + 1.0,
            points: count * pairing.results.score().score + 0.5,
        }
    }
}

/// Gradient of the log-likelihood, and the inverse of its negative curvature. Both
/// are zero for the anchor, which does not move.
fn slope(strengths: &[f64], games: &[Games], anchor: usize) -> (Vec<f64>, Vec<Vec<f64>>) {
    let count = strengths.len();
    let mut gradient = vec![0.0; count];
    let mut curvature = vec![vec![0.0; count]; count];
    for game in games {
        let [a, b] = game.contestants;
        let expected = 1.0 / (1.0 + (strengths[b] - strengths[a]).exp());
        let excess = game.points - game.count * expected;
        gradient[a] += excess;
        gradient[b] -= excess;
        let information = game.count * expected * (1.0 - expected);
        curvature[a][a] += information;
        curvature[b][b] += information;
        curvature[a][b] -= information;
        curvature[b][a] -= information;
    }
    // Infinitely well known, so its variance is zero and it never moves.
    for row in &mut curvature {
        row[anchor] = 0.0;
    }
    curvature[anchor].fill(0.0);
    curvature[anchor][anchor] = f64::INFINITY;
    (gradient, inverse(curvature))
}

/// Inverse of a symmetric, positive definite matrix, by Gauss-Jordan elimination.
/// Such matrices need no pivoting.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let size = matrix.len();
    for pivot in 0..size {
        let value = matrix[pivot][pivot];
        assert!(value > 0.0, "matches connect all contestants");
        matrix[pivot][pivot] = 1.0;
        for entry in &mut matrix[pivot] {
            *entry /= value;
        }
        let pivot_row = matrix[pivot].clone();
        for (index, row) in matrix.iter_mut().enumerate() {
            if index != pivot {
                let factor = std::mem::take(&mut row[pivot]);
                for (entry, above) in row.iter_mut().zip(&pivot_row) {
                    *entry -= factor * above;
                }
            }
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::score_of_elo;

    /// A long match that goes as the ratings say.
    fn pairing(elo: &[f64], a: usize, b: usize) -> Pairing {
        let p = score_of_elo(elo[a] - elo[b]);
        let pairs = 100_000.0;
        let counts = [(1.0 - p) * (1.0 - p), 0.0, 2.0 * p * (1.0 - p), 0.0, p * p];
        Pairing {
            contestants: [a, b],
            results: PairResults {
                counts: counts.map(|share| (share * pairs).round() as u64),
            },
        }
    }

    #[test]
    fn ratings_come_out_as_they_went_in() {
        let elo = [300.0, 0.0, -150.0, 800.0];
        let pairings = [(0, 1), (0, 2), (0, 3), (1, 2), (3, 1), (2, 3)];
        let pairings = pairings.map(|(a, b)| pairing(&elo, a, b));
        for (rating, elo) in ratings(4, &pairings, 1).iter().zip(elo) {
            assert!((rating.elo - elo).abs() < 2.0, "{rating}, not {elo}");
            assert!(rating.low <= rating.elo && rating.elo <= rating.high);
        }
        let anchor = ratings(4, &pairings, 1)[1];
        assert_eq!((anchor.elo, anchor.low, anchor.high), (0.0, 0.0, 0.0));
    }

    #[test]
    fn two_contestants_are_rated_as_their_match_says() {
        let results = PairResults {
            counts: [34, 54, 63, 64, 75],
        };
        let pairings = [Pairing {
            contestants: [0, 1],
            results,
        }];
        let (rating, elo) = (ratings(2, &pairings, 1)[0], results.elo());
        assert!((rating.elo - elo.elo).abs() < 0.5, "{rating}, not {elo}");
        let widths = (rating.high - rating.low, elo.high - elo.low);
        assert!((widths.0 / widths.1 - 1.0).abs() < 0.02, "{widths:?}");
    }

    #[test]
    fn perfect_scores_rate_within_bounds() {
        let sweep = |a, b| Pairing {
            contestants: [a, b],
            results: PairResults {
                counts: [0, 0, 0, 0, 1000],
            },
        };
        let rated = ratings(3, &[sweep(0, 1), sweep(1, 2), sweep(0, 2)], 2);
        assert!(
            rated[0].elo > rated[1].elo && rated[1].elo > 500.0,
            "{rated:?}"
        );
        assert!(rated[0].high < 10_000.0, "{rated:?}");
    }
}
