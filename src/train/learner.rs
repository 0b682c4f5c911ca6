//! Gradient descent on the samples: by burn on a GPU, by our own kernels on the CPU
//! (plain gradient descent aside, where the step is burn's).

use std::path::Path;

use anyhow::Context;
use burn::module::Module;
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer, SgdConfig};
use burn::store::ModuleRecord;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::adam::{EPSILON, FusedAdam};
use super::replay::{Pick, Replay, ReplayConfig, Samples};
use crate::game::{Game, PlaneShape};
use crate::nets::device::{Compute, Line};
use crate::nets::model::{WeightsError, weights_from_bytes};
use crate::nets::{Net, NetConfig, NetEvaluator, Trainer, ValueNet};
use crate::random::{Rng, RngExt, Seed, Streams};

/// How weights follow gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Optimizer {
    /// Adam with (0.9, 0.999, 1e-8).
    Adam,
    /// Plain stochastic gradient descent.
    Sgd,
}

/// How the network learns from its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearningConfig {
    /// `adam` or `sgd`. The article: plain gradient descent.
    pub optimizer: Optimizer,
    /// Learning rate of the first round. The article gives none.
    pub rate: f64,
    /// Learning rate of the last round; in between it falls (or rises) linearly.
    pub final_rate: f64,
    /// Positions in a minibatch. The article gives none; its sets of three games
    /// are about 70 positions.
    pub batch_positions: usize,
    /// Whether each sample is mirrored left to right with probability 1/2, where
    /// the rules allow it. The article: no.
    pub mirror: bool,
    /// How often positions are learned from.
    pub replay: ReplayConfig,
}

impl LearningConfig {
    /// The learning rate of a round.
    fn rate_of(&self, round: u64, rounds: u64) -> f64 {
        let progress = round as f64 / rounds.saturating_sub(1).max(1) as f64;
        self.rate + (self.final_rate - self.rate) * progress
    }
}

/// A network in training, with all that its training has to remember.
pub struct Learner {
    net: Net,
    /// On the CPU, in place of burn's backpropagation.
    trainer: Option<Trainer>,
    optimizer: ModuleOptimizer,
    replay: Replay,
    compute: Compute,
    autodiff: Device,
    shuffles: Streams,
}

/// What a round of learning gave.
#[derive(Debug, Clone, Copy)]
pub struct Learned {
    /// Mean squared error, averaged over the minibatches.
    pub loss: f32,
    /// Number of minibatches.
    pub batches: usize,
}

impl Learner {
    const NET_FILE: &str = "net.bpk";
    const OPTIMIZER_FILE: &str = "optimizer.bpk";

    /// A fresh network. Its weights and the order of its samples depend on the
    /// seed alone.
    pub fn new<G: Game>(
        game: &G,
        net: &NetConfig,
        learning: &LearningConfig,
        compute: Compute,
        seed: Seed,
    ) -> Learner {
        let autodiff = compute.device.clone().autodiff();
        let weights = &mut seed.stream("weights");
        let net = net.init(game.plane_shape(), weights, &autodiff);
        Learner::with_net(net, learning, compute, seed)
    }

    /// Goes on with the weights of a network that lives on `compute`, with autodiff.
    pub fn with_net(net: Net, learning: &LearningConfig, compute: Compute, seed: Seed) -> Learner {
        let autodiff = compute.device.clone().autodiff();
        let trainer = compute.is_cpu.then(|| Trainer::new(&net));
        // burn remembers every weight that might get a gradient until its own
        // backpropagation, which then never comes: memory would grow with each step.
        let net = if trainer.is_some() {
            net.no_grad()
        } else {
            net
        };
        Learner {
            trainer,
            net,
            optimizer: match learning.optimizer {
                Optimizer::Adam if compute.is_cpu => FusedAdam.into(),
                Optimizer::Adam => AdamConfig::new().with_epsilon(EPSILON).init(),
                Optimizer::Sgd => SgdConfig::new().init(),
            },
            replay: Replay::default(),
            compute,
            autodiff,
            shuffles: seed.purpose("learner"),
        }
    }

    /// Replaces the weights by those of a safetensors file.
    ///
    /// # Errors
    /// If they are not this network's; its weights are then as they were.
    pub fn load_weights(&mut self, bytes: Vec<u8>) -> Result<(), WeightsError> {
        weights_from_bytes(&mut self.net, bytes)
    }

    /// A copy of the network for inference.
    pub fn net(&self) -> Net {
        self.net.valid()
    }

    /// An evaluator with a copy of the present weights.
    pub fn evaluator(&self) -> NetEvaluator {
        NetEvaluator::new(&self.net(), &self.compute)
    }

    /// Where the network lives.
    pub fn compute(&self) -> &Compute {
        &self.compute
    }

    /// Learns from the samples of a round.
    pub fn learn<G: Game>(
        &mut self,
        game: &G,
        config: &LearningConfig,
        samples: Samples,
        round: u64,
        rounds: u64,
    ) -> Learned {
        let mut rng = self.shuffles.stream(round, 0);
        self.replay.push(samples, &config.replay);
        let picks = self.replay.picks(&config.replay, &mut rng);
        let mirror = config.mirror && game.mirrored(&game.start()).is_some();
        let batches = minibatches(&picks, config.batch_positions);
        let rate = config.rate_of(round, rounds);
        let total = Line::Learning.run(|| {
            let mut total: Option<Tensor<1>> = None;
            for batch in &batches {
                let samples = self.gather(game, batch, mirror, &mut rng);
                let loss = self.descend(game, &samples, rate);
                total = Some(match total {
                    Some(total) => total + loss,
                    None => loss,
                });
            }
            // Read once a round: on a GPU every read waits for all work before it.
            total.map_or(0.0, |total| total.into_scalar::<f32>())
        });
        Learned {
            loss: total / batches.len().max(1) as f32,
            batches: batches.len(),
        }
    }

    /// One step on a minibatch; returns its mean squared error, `[1]`, on the
    /// device, without autodiff.
    pub fn descend<G: Game>(&mut self, game: &G, samples: &Samples, rate: f64) -> Tensor<1> {
        let (loss, gradients) = match &mut self.trainer {
            Some(trainer) => trainer.gradients(
                &self.net,
                &samples.features,
                &samples.targets,
                &self.compute.device,
            ),
            None => backpropagate(game, &self.net, samples, &self.autodiff),
        };
        self.net = self.optimizer.step(rate, self.net.clone(), gradients);
        loss
    }

    fn gather<G: Game>(&self, game: &G, batch: &[Pick], mirror: bool, rng: &mut Rng) -> Samples {
        let mut samples = Samples::default();
        for &(round, index) in batch {
            let source = self.replay.round(round);
            let features = source.features.get(index).iter();
            if mirror && rng.random::<bool>() {
                samples
                    .features
                    .push_features(features.map(|&f| game.mirrored_feature(f)));
            } else {
                samples.features.push_features(features.copied());
            }
            samples.targets.push(source.targets[index]);
        }
        samples
    }

    /// Writes weights, optimiser state and replay into a directory that exists.
    ///
    /// # Errors
    /// If a file cannot be written; names it.
    pub fn save(&self, directory: &Path) -> anyhow::Result<()> {
        let path = directory.join(Self::NET_FILE);
        (self.net.clone().into_record().save(&path))
            .with_context(|| format!("cannot write {}", path.display()))?;
        let path = directory.join(Self::OPTIMIZER_FILE);
        (self.optimizer.save(&path)).with_context(|| format!("cannot write {}", path.display()))?;
        self.replay.save(directory)
    }

    /// Puts back what [`Learner::save`] wrote, into a learner that was made by
    /// [`Learner::new`] from the same configuration.
    ///
    /// # Errors
    /// If a file is missing or belongs to another network; names it.
    pub fn restore(mut self, directory: &Path) -> anyhow::Result<Learner> {
        self.net = read_net(self.net, directory)?;
        let path = directory.join(Self::OPTIMIZER_FILE);
        self.optimizer = (self.optimizer.load(&path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        self.replay = Replay::load(directory)?;
        Ok(self)
    }
}

/// The mean squared error of a network on an autodiff device, `[1]`, without
/// autodiff, and its gradients, by burn.
pub fn backpropagate<G: Game>(
    game: &G,
    net: &Net,
    samples: &Samples,
    autodiff: &Device,
) -> (Tensor<1>, GradientsParams) {
    let planes = samples.features.planes(game.plane_shape(), autodiff);
    let targets = TensorData::new(samples.targets.clone(), [samples.len()]);
    let errors = net.forward(planes) - Tensor::from_data(targets, autodiff); // [batch]
    let loss = errors.powi_scalar(2).mean();
    let gradients = GradientsParams::from_grads(loss.backward(), net);
    (loss.inner(), gradients)
}

/// The network that [`Learner::save`] wrote, for inference on `device`; the rest of
/// the learner is left alone.
///
/// # Errors
/// If the file is missing or belongs to another network; names it.
pub fn load_net(
    config: &NetConfig,
    shape: PlaneShape,
    directory: &Path,
    device: &Device,
) -> anyhow::Result<Net> {
    // The weights drawn here are all replaced.
    let net = config.init(shape, &mut Seed(0).stream("unused"), device);
    read_net(net, directory)
}

/// Replaces the weights of `net`.
fn read_net(net: Net, directory: &Path) -> anyhow::Result<Net> {
    let path = directory.join(Learner::NET_FILE);
    ModuleRecord::load(&path)
        .and_then(|record| net.try_load_record(record))
        .with_context(|| format!("cannot read {}", path.display()))
}

/// Cuts the picks into minibatches of one size: the last one is filled up from
/// the beginning. Fewer picks than that are one smaller batch.
fn minibatches(picks: &[Pick], batch_positions: usize) -> Vec<Vec<Pick>> {
    if picks.is_empty() {
        return Vec::new();
    }
    let size = batch_positions.min(picks.len());
    let batches = picks.len().div_ceil(size);
    let mut endless = picks.iter().copied().cycle();
    (0..batches)
        .map(|_| endless.by_ref().take(size).collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use burn::module::{ModuleVisitor, Param};

    use super::*;
    use crate::games::connect_four::ConnectFour;
    use crate::nets::model::weights_to_bytes;
    use crate::nets::{ConvConfig, MlpConfig, NetKind, ResidualConfig};

    /// On the CPU no weight may be one that burn remembers.
    #[test]
    fn no_weight_waits_for_a_gradient_that_never_comes() {
        #[derive(Default)]
        struct Waiting(usize);
        impl ModuleVisitor for Waiting {
            fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
                self.0 += usize::from(parameter.val().is_require_grad());
            }
        }
        let game = &ConnectFour;
        for kind in NetKind::ALL {
            let (channels, hidden) = (2, 2);
            let net = NetConfig {
                kind,
                mlp: MlpConfig { hidden },
                conv: ConvConfig {
                    channels,
                    layers: 2,
                    hidden,
                },
                residual: ResidualConfig {
                    channels,
                    blocks: 1,
                    hidden,
                },
            };
            let learning = LearningConfig {
                optimizer: Optimizer::Adam,
                rate: 0.001,
                final_rate: 0.001,
                batch_positions: 1,
                mirror: false,
                replay: ReplayConfig {
                    window_positions: 0,
                    uses: 1,
                },
            };
            let fresh = || Learner::new(game, &net, &learning, Compute::cpu(), Seed(1));
            let mut samples = Samples::default();
            samples.features.push(game, &game.start());
            samples.targets.push(0.5);
            let check = |learner: &Learner| {
                let mut waiting = Waiting::default();
                learner.net.visit(&mut waiting);
                assert_eq!(waiting.0, 0, "{kind:?}");
            };

            let mut learner = fresh();
            check(&learner);
            learner.descend(game, &samples, 0.001);
            check(&learner);
            learner
                .load_weights(weights_to_bytes(&learner.net()))
                .unwrap();
            learner.descend(game, &samples, 0.001);
            check(&learner);
            let place = tempfile::tempdir().unwrap();
            learner.save(place.path()).unwrap();
            let mut learner = fresh().restore(place.path()).unwrap();
            check(&learner);
            learner.descend(game, &samples, 0.001);
            check(&learner);
        }
    }

    #[test]
    fn minibatches_have_one_size_and_miss_nothing() {
        let picks: Vec<Pick> = (0..10).map(|index| (0, index)).collect();
        let batches = minibatches(&picks, 4);
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 4]);
        assert_eq!(batches.concat()[..10], picks);
        assert_eq!(minibatches(&picks, 64).len(), 1);
        assert_eq!(minibatches(&picks, 64)[0].len(), 10);
        assert!(minibatches(&[], 64).is_empty());
    }
}
