//! Gradients on the CPU, by kernels of our own in place of burn's backpropagation.

use std::ops::Range;

use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};

use super::block::sigmoid;
use super::sparse::SparseTrainer;
use super::stack::StackTrainer;
use super::{Features, Net};

/// The most shares that a batch is cut into. Their gradients are added in order,
/// whatever the number of threads, so that the result is the same to the last bit on
/// one thread or many; and no more threads than this can be of use.
pub(super) const SHARES: usize = 8;

/// The positions of one of `shares` shares of a batch of `count`.
pub(super) fn share(number: usize, shares: usize, count: usize) -> Range<usize> {
    number * count / shares..(number + 1) * count / shares
}

/// How far a network is off: the difference 2 s - 1 - `target`, where s is the sigmoid
/// of the `logit`, and the derivative by the logit of its square's mean over `count`.
#[inline(always)]
pub(super) fn output_error(logit: f32, target: f32, count: usize) -> (f32, f32) {
    let s = sigmoid(logit);
    let difference = 2.0 * s - 1.0 - target;
    (
        difference,
        difference * (4.0 * s * (1.0 - s) / count as f32),
    )
}

/// Computes gradients on the CPU; equal to burn's within rounding.
pub enum Trainer {
    /// An MLP.
    Sparse(SparseTrainer),
    /// Convolutions.
    Stack(StackTrainer),
}

impl Trainer {
    /// A trainer for networks of this size.
    pub fn new(net: &Net) -> Trainer {
        match net {
            Net::Mlp(mlp) => Trainer::Sparse(SparseTrainer::new(mlp)),
            Net::Conv(net) => Trainer::Stack(StackTrainer::new(&net.parts())),
            Net::Residual(net) => Trainer::Stack(StackTrainer::new(&net.parts())),
        }
    }

    /// The mean squared error of `net`, `[1]`, and its gradients; all on `device`.
    ///
    /// # Panics
    /// If `net` is not of the architecture that the trainer was made for. It has to be
    /// of the same size, too.
    pub fn gradients(
        &mut self,
        net: &Net,
        features: &Features,
        targets: &[f32],
        device: &Device,
    ) -> (Tensor<1>, GradientsParams) {
        match (self, net) {
            (Trainer::Sparse(trainer), Net::Mlp(mlp)) => {
                trainer.gradients(mlp, features, targets, device)
            }
            (Trainer::Stack(trainer), Net::Conv(net)) => {
                trainer.gradients(&net.parts(), features, targets, device)
            }
            (Trainer::Stack(trainer), Net::Residual(net)) => {
                trainer.gradients(&net.parts(), features, targets, device)
            }
            _ => panic!("the trainer was made for another architecture"),
        }
    }
}
