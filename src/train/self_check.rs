//! A device is trusted only after it has computed what the CPU computes: GPU
//! backends and drivers have had bugs that give wrong numbers without a word.

use std::fmt;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::Tensor;

use super::learner::{Learner, LearningConfig, Optimizer};
use super::replay::{ReplayConfig, Samples};
use crate::game::Game;
use crate::game::playout::random_positions;
use crate::nets::device::Compute;
use crate::nets::model::weights_of;
use crate::nets::{Net, NetConfig, ValueNet};
use crate::random::{RngExt, Seed};

/// The largest relative error that passes. Other orders of summation give some
/// 1e-6 in single precision.
pub const TOLERANCE: f32 = 1e-3;

/// How far a device is from the CPU on one batch, each relative to the largest
/// number of its kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SelfCheck {
    /// Error of the values.
    pub values: f32,
    /// Error of the loss.
    pub loss: f32,
    /// Error of the gradients, all parameters together.
    pub gradients: f32,
}

impl SelfCheck {
    /// Whether the device computes what the CPU computes.
    pub fn passed(&self) -> bool {
        // Written so that NaN fails.
        [self.values, self.loss, self.gradients]
            .iter()
            .all(|&error| error <= TOLERANCE)
    }
}

impl fmt::Display for SelfCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "relative errors against the CPU: values {:.0e}, loss {:.0e}, gradients {:.0e} \
             (accepted: {TOLERANCE:.0e})",
            self.values, self.loss, self.gradients
        )
    }
}

/// Computes values, loss and gradients of one batch on the device and on the CPU.
pub fn self_check<G: Game>(game: &G, net: &NetConfig, compute: &Compute) -> SelfCheck {
    check_weights(game, weights(game, net, compute), net, compute)
}

/// [`self_check`] of a device on which one weight is not what it should be, to see
/// that the check notices.
pub fn self_check_of_fault<G: Game>(game: &G, net: &NetConfig, compute: &Compute) -> SelfCheck {
    let wrong = weights(game, net, compute).map(&mut Fault);
    check_weights(game, wrong, net, compute)
}

/// A network on a device, with autodiff.
fn weights<G: Game>(game: &G, net: &NetConfig, compute: &Compute) -> Net {
    let autodiff = compute.device.clone().autodiff();
    let rng = &mut Seed(0).stream("self-check weights");
    net.init(game.plane_shape(), rng, &autodiff)
}

/// Compares weights on a device with the right ones on the CPU.
fn check_weights<G: Game>(
    game: &G,
    on_device: Net,
    net: &NetConfig,
    compute: &Compute,
) -> SelfCheck {
    let cpu = Compute::cpu();
    let on_cpu = weights(game, net, &cpu);
    let found = Probe::run(game, on_device, compute.clone());
    let expected = Probe::run(game, on_cpu, cpu);
    SelfCheck {
        values: relative_error(&found.values, &expected.values),
        loss: relative_error(&[found.loss], &[expected.loss]),
        gradients: relative_error(&found.gradients, &expected.gradients),
    }
}

/// What one device says.
struct Probe {
    values: Vec<f32>,
    loss: f32,
    gradients: Vec<f32>,
}

impl Probe {
    fn run<G: Game>(game: &G, net: Net, compute: Compute) -> Probe {
        /// Plain descent at rate 1 changes each weight by its gradient.
        const RATE: f64 = 1.0;
        const POSITIONS: usize = 64;
        let learning = LearningConfig {
            optimizer: Optimizer::Sgd,
            rate: RATE,
            final_rate: RATE,
            batch_positions: POSITIONS,
            mirror: false,
            replay: ReplayConfig {
                window_positions: 0,
                uses: 1,
            },
        };
        let mut rng = Seed(0).stream("self-check");
        let mut samples = Samples::default();
        for position in random_positions(game, POSITIONS, &mut rng)
            .iter()
            .take(POSITIONS)
        {
            samples.features.push(game, position);
            samples.targets.push(rng.random_range(-1.0..1.0));
        }
        let planes = samples.features.planes(game.plane_shape(), &compute.device);
        let mut learner = Learner::with_net(net, &learning, compute, Seed(0));
        let before = learner.net();
        let values = before.forward(planes).into_data();
        let loss = learner.descend(game, &samples, RATE).into_scalar();
        let change = weights_of(&before)
            .into_iter()
            .zip(weights_of(&learner.net()));
        Probe {
            values: values.try_into_vec().expect("networks compute in f32"),
            loss,
            gradients: change.map(|(before, after)| before - after).collect(),
        }
    }
}

/// Changes one weight a little: the bias of the output.
struct Fault;

impl ModuleMapper for Fault {
    fn map_float<const D: usize>(&mut self, weights: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if weights.shape().num_elements() > 1 {
            return weights;
        }
        let shifted = |bias: Tensor<D>| bias.inner().add_scalar(0.01);
        weights.map(|bias| Tensor::from_inner(shifted(bias)).require_grad())
    }
}

/// Largest difference over largest magnitude; NaN if there is one among them.
fn relative_error(found: &[f32], expected: &[f32]) -> f32 {
    let scale = expected
        .iter()
        .fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
    let differences = found
        .iter()
        .zip(expected)
        .map(|(a, b)| (a - b).abs() / scale);
    // `f32::max` would drop a NaN.
    differences.fold(0.0, |most, x| if x > most || x.is_nan() { x } else { most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_relative_and_nan_is_one() {
        assert_eq!(relative_error(&[1.0, -4.0], &[1.0, -4.0]), 0.0);
        assert_eq!(relative_error(&[1.0, -3.0], &[1.0, -4.0]), 0.25);
        assert!(relative_error(&[f32::NAN, 1.0], &[0.0, 1.0]).is_nan());
        let check = SelfCheck {
            values: 1e-6,
            loss: 0.0,
            gradients: 1e-4,
        };
        assert!(check.passed());
        assert!(
            !SelfCheck {
                loss: 0.01,
                ..check
            }
            .passed()
        );
        assert!(
            !SelfCheck {
                gradients: f32::NAN,
                ..check
            }
            .passed()
        );
    }
}
