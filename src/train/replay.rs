//! Positions with their targets, and the window of recent ones that batches are
//! drawn from.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use rand::seq::SliceRandom;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::{Deserialize, Serialize};

use crate::nets::Features;
use crate::random::{Rng, RngExt};

/// Positions, each as its side to move sees it, with what to learn about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples {
    /// Network inputs.
    pub features: Features,
    /// Targets in [-1, 1], one a position.
    pub targets: Vec<f32>,
}

impl Samples {
    /// Number of positions.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Appends the samples of `other`.
    pub fn append(&mut self, other: &Samples) {
        for (index, &target) in other.targets.iter().enumerate() {
            self.features
                .push_features(other.features.get(index).iter().copied());
            self.targets.push(target);
        }
    }

    /// Share of the positions that occur for the first time, in [0, 1]. Self-play
    /// that has collapsed into one game shows here, while its loss looks perfect.
    pub fn distinct_share(&self) -> f64 {
        let distinct: std::collections::HashSet<_> = (0..self.len())
            .map(|index| self.features.get(index))
            .collect();
        distinct.len() as f64 / self.len().max(1) as f64
    }

    /// Writes the samples to one file.
    ///
    /// # Errors
    /// If the file cannot be written; names it.
    pub fn save(&self, path: &Path) -> anyhow::Result<()> {
        let active = little_endian(&self.features.active, |x| x.to_le_bytes());
        let ends = little_endian(&self.features.ends, |&x| (x as u64).to_le_bytes());
        let targets = little_endian(&self.targets, |x| x.to_le_bytes());
        let view = |dtype, count, bytes| {
            TensorView::new(dtype, vec![count], bytes).expect("the lengths agree")
        };
        let bytes = safetensors::serialize(
            [
                (
                    "active",
                    view(Dtype::U16, self.features.active.len(), &active),
                ),
                ("ends", view(Dtype::U64, self.len(), &ends)),
                ("targets", view(Dtype::F32, self.len(), &targets)),
            ],
            None,
        )
        .expect("the tensors are consistent");
        fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads what [`Samples::save`] wrote.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged; names it.
    pub fn load(path: &Path) -> anyhow::Result<Samples> {
        let damaged = || format!("{} is damaged", path.display());
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = SafeTensors::deserialize(&bytes).with_context(damaged)?;
        let data = |name| {
            file.tensor(name)
                .map(|tensor| tensor.data())
                .with_context(damaged)
        };
        let samples = Samples {
            features: Features {
                active: from_little_endian(data("active")?, u16::from_le_bytes),
                ends: from_little_endian(data("ends")?, |x| u64::from_le_bytes(x) as usize),
            },
            targets: from_little_endian(data("targets")?, f32::from_le_bytes),
        };
        let ends = &samples.features.ends;
        ensure!(
            ends.len() == samples.len()
                && ends.is_sorted()
                && ends.last().copied().unwrap_or(0) == samples.features.active.len(),
            damaged()
        );
        Ok(samples)
    }
}

fn little_endian<T, const N: usize>(numbers: &[T], bytes: impl Fn(&T) -> [u8; N]) -> Vec<u8> {
    numbers.iter().flat_map(bytes).collect()
}

fn from_little_endian<T, const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes
        .as_chunks::<N>()
        .0
        .iter()
        .map(|&chunk| number(chunk))
        .collect()
}

/// How often positions are learned from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayConfig {
    /// Size of the window of recent positions that batches are drawn from.
    /// 0: every position is learned from once, right after its round. The
    /// article: 0.
    pub window_positions: usize,
    /// How often a position is used on average while it is in the window. Only
    /// with a window. The article: 1.
    pub uses: usize,
}

impl ReplayConfig {
    /// How often each position is learned from, on average.
    pub fn mean_uses(&self) -> f64 {
        match self.window_positions {
            0 => 1.0,
            _ => self.uses as f64,
        }
    }
}

/// The window of recent samples.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    rounds: VecDeque<Samples>,
    positions: usize,
}

/// Which sample: (round in the window, position in the round).
pub type Pick = (usize, usize);

impl Replay {
    /// Adds the samples of a round, and drops the oldest rounds that the window
    /// no longer has room for.
    pub fn push(&mut self, samples: Samples, config: &ReplayConfig) {
        self.positions += samples.len();
        self.rounds.push_back(samples);
        while self.rounds.len() > 1
            && self.positions - self.rounds[0].len() >= config.window_positions
        {
            self.positions -= self.rounds[0].len();
            self.rounds.pop_front();
        }
    }

    /// Which samples to learn from after a round, in order: the round itself,
    /// shuffled, or draws from the window.
    pub fn picks(&self, config: &ReplayConfig, rng: &mut Rng) -> Vec<Pick> {
        let newest = self.rounds.len().saturating_sub(1);
        let new_positions = self.rounds.back().map_or(0, Samples::len);
        if config.window_positions == 0 {
            let mut picks: Vec<Pick> = (0..new_positions).map(|index| (newest, index)).collect();
            picks.shuffle(rng);
            return picks;
        }
        let ends: Vec<usize> = self
            .rounds
            .iter()
            .scan(0, |end, round| {
                *end += round.len();
                Some(*end)
            })
            .collect();
        (0..new_positions * config.uses)
            .map(|_| {
                let number = rng.random_range(0..self.positions);
                let round = ends.partition_point(|&end| end <= number);
                (round, number - (ends[round] - self.rounds[round].len()))
            })
            .collect()
    }

    /// The round of a [`Pick`].
    ///
    /// # Panics
    /// If the window has no such round.
    pub fn round(&self, round: usize) -> &Samples {
        &self.rounds[round]
    }

    /// Writes the window into a directory that exists.
    ///
    /// # Errors
    /// If a file cannot be written; names it.
    pub fn save(&self, directory: &Path) -> anyhow::Result<()> {
        for (index, samples) in self.rounds.iter().enumerate() {
            samples.save(&directory.join(format!("replay-{index:06}.safetensors")))?;
        }
        Ok(())
    }

    /// Reads what [`Replay::save`] wrote.
    ///
    /// # Errors
    /// If a file is damaged; names it.
    pub fn load(directory: &Path) -> anyhow::Result<Replay> {
        let mut replay = Replay::default();
        loop {
            let path = directory.join(format!("replay-{:06}.safetensors", replay.rounds.len()));
            if !path.exists() {
                return Ok(replay);
            }
            let samples = Samples::load(&path)?;
            replay.positions += samples.len();
            replay.rounds.push_back(samples);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seed;

    fn samples(first: u16, count: usize) -> Samples {
        let mut samples = Samples::default();
        for index in 0..count {
            samples
                .features
                .push_features((0..index as u16 % 3).map(|f| first + f));
            samples.targets.push(f32::from(first) + index as f32);
        }
        samples
    }

    #[test]
    fn samples_survive_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("samples");
        for samples in [samples(7, 10), Samples::default()] {
            samples.save(&path).unwrap();
            assert_eq!(Samples::load(&path).unwrap(), samples);
        }
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(
            Samples::load(&path)
                .unwrap_err()
                .to_string()
                .contains("damaged")
        );
    }

    #[test]
    fn without_a_window_each_new_position_is_used_once() {
        let config = ReplayConfig {
            window_positions: 0,
            uses: 1,
        };
        let mut replay = Replay::default();
        replay.push(samples(0, 5), &config);
        replay.push(samples(100, 7), &config);
        let mut picks = replay.picks(&config, &mut Seed(1).stream("test"));
        picks.sort_unstable();
        assert_eq!(picks, (0..7).map(|index| (0, index)).collect::<Vec<_>>());
        assert_eq!(replay.round(0).targets[0], 100.0);
    }

    #[test]
    fn a_window_keeps_recent_rounds_and_draws_from_all_of_them() {
        let config = ReplayConfig {
            window_positions: 20,
            uses: 30,
        };
        let mut replay = Replay::default();
        for round in 0..10 {
            replay.push(samples(round, 7), &config);
        }
        assert_eq!(replay.rounds.len(), 3);
        assert_eq!(replay.positions, 21);
        let picks = replay.picks(&config, &mut Seed(1).stream("test"));
        assert_eq!(picks.len(), 7 * 30);
        let distinct: std::collections::HashSet<_> = picks.into_iter().collect();
        assert_eq!(distinct.len(), 21);
    }
}
