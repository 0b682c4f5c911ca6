//! One seed, many random streams.
//!
//! Every consumer of randomness (a game of self-play, the initial weights, an
//! arena pairing) draws from a stream of its own, named by what it is for.
//! Streams are independent of each other and of the order in which they are
//! made, so results do not depend on the number of threads. The generator is
//! xoshiro256++, whose output is specified and portable; `StdRng` and `SmallRng`
//! may change between versions of `rand`.

use rand::rngs::SysRng;
use rand::{SeedableRng, TryRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sha2::{Digest, Sha256};

pub use rand::{Rng as RandomSource, RngExt};

/// The generator behind every stream.
pub type Rng = Xoshiro256PlusPlus;

/// The root of all randomness of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// A family of streams for one purpose. Building it hashes `purpose`; keep
    /// it where many streams of the same purpose are drawn.
    pub fn purpose(self, purpose: &str) -> Streams {
        let mut hash = Sha256::new();
        hash.update(self.0.to_le_bytes());
        hash.update(purpose.as_bytes());
        let digest = hash.finalize();
        let mut key = [0; 8];
        key.copy_from_slice(&digest[..8]);
        Streams {
            key: u64::from_le_bytes(key),
        }
    }

    /// The single stream named `purpose`.
    pub fn stream(self, purpose: &str) -> Rng {
        self.purpose(purpose).stream(0, 0)
    }
}

/// Numbered streams of one purpose, see [`Seed::purpose`].
#[derive(Debug, Clone, Copy)]
pub struct Streams {
    key: u64,
}

impl Streams {
    /// Stream number (`major`, `minor`), for example (round, game).
    pub fn stream(self, major: u64, minor: u64) -> Rng {
        Rng::seed_from_u64(mix(mix(self.key ^ mix(major)) ^ mix(!minor)))
    }
}

/// A number that nobody can guess, from the operating system. Unlike all else here it
/// never comes again: it is for names that must stay secret, not for results.
///
/// # Panics
/// If the operating system has no randomness to give.
pub fn secret() -> u128 {
    let mut bytes = [0; 16];
    SysRng
        .try_fill_bytes(&mut bytes)
        .expect("the operating system gives random bytes");
    u128::from_le_bytes(bytes)
}

/// The finaliser of SplitMix64: a bijection in which every input bit reaches
/// every output bit.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// A sample of the standard normal distribution, by the Box-Muller transform.
pub fn normal(rng: &mut Rng) -> f32 {
    // 1 - u lies in (0, 1], so the logarithm is finite.
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    let angle = std::f64::consts::TAU * rng.random::<f64>();
    (radius * angle.cos()) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_portable() {
        // Golden values: a change here changes every published result.
        let mut rng = Seed(1).purpose("selfplay").stream(2, 3);
        assert_eq!(rng.random::<u64>(), 5_237_645_587_518_836_470);
    }

    #[test]
    fn streams_differ_in_every_part_of_their_name() {
        let first = |seed: u64, purpose: &str, major, minor| {
            Seed(seed)
                .purpose(purpose)
                .stream(major, minor)
                .random::<u64>()
        };
        let base = first(1, "a", 0, 0);
        for other in [
            first(2, "a", 0, 0),
            first(1, "b", 0, 0),
            first(1, "a", 1, 0),
            first(1, "a", 0, 1),
        ] {
            assert_ne!(base, other);
        }
        assert_ne!(first(1, "a", 0, 1), first(1, "a", 1, 0));
    }

    #[test]
    fn normal_has_mean_zero_and_variance_one() {
        let mut rng = Seed(7).stream("normal");
        let samples: Vec<f64> = (0..100_000).map(|_| f64::from(normal(&mut rng))).collect();
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let variance =
            samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / samples.len() as f64;
        assert!(mean.abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.03, "{variance}");
    }
}
