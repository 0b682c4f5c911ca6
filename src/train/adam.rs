//! Adam on the CPU in one pass over the weights, where burn's makes a dozen.

use burn::optim::{AdamState, AdaptiveMomentumState, LearningRate, Optimizer};
use burn::tensor::{Device, Tensor, TensorData};
use pulp::{Arch, Simd, WithSimd};

/// What Adam adds to its divisor.
pub const EPSILON: f32 = 1e-8;
const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.999;

/// Equal to burn's Adam with its default betas and [`EPSILON`], to the last bit, with
/// the same state and so the same checkpoints.
///
/// Source: D. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization" (2015),
/// in the form at the end of their section 2.
#[derive(Clone)]
pub struct FusedAdam;

impl Optimizer for FusedAdam {
    type State<const D: usize> = AdamState<D>;

    fn step<const D: usize>(
        &self,
        rate: LearningRate,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<AdamState<D>>,
    ) -> (Tensor<D>, Option<AdamState<D>>) {
        let device = weights.device();
        let state = state.map_or_else(
            || AdaptiveMomentumState::new(0, weights.zeros_like(), weights.zeros_like()),
            |state| state.momentum,
        );
        let time = state.time + 1;
        let correction_1 = 1.0 - BETA_1.powi(time as i32);
        let correction_2 = (1.0 - BETA_2.powi(time as i32)).sqrt();
        let gradient = gradient.into_data();
        let [mut weights, mut moment_1, mut moment_2] =
            [weights, state.moment_1, state.moment_2].map(Tensor::into_data);
        Arch::new().dispatch(Pass {
            weights: numbers(&mut weights),
            moment_1: numbers(&mut moment_1),
            moment_2: numbers(&mut moment_2),
            gradient: gradient.as_slice().expect("networks compute in f32"),
            rate: rate as f32,
            factor: correction_2 / correction_1,
            epsilon: EPSILON * correction_2,
        });
        let [weights, moment_1, moment_2] =
            [weights, moment_1, moment_2].map(|data| Tensor::from_data(data, &device));
        let state = AdaptiveMomentumState::new(time, moment_1, moment_2);
        (weights, Some(AdamState::new(state)))
    }

    fn to_device<const D: usize>(state: AdamState<D>, device: &Device) -> AdamState<D> {
        AdamState::new(state.momentum.to_device(device))
    }
}

fn numbers(data: &mut TensorData) -> &mut [f32] {
    data.as_mut_slice().expect("networks compute in f32")
}

/// The kernel.
struct Pass<'a> {
    weights: &'a mut [f32],
    moment_1: &'a mut [f32],
    moment_2: &'a mut [f32],
    gradient: &'a [f32],
    rate: f32,
    factor: f32,
    epsilon: f32,
}

impl WithSimd for Pass<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let count = self.weights.len();
        let (moment_1, moment_2) = (&mut self.moment_1[..count], &mut self.moment_2[..count]);
        let gradient = &self.gradient[..count];
        for i in 0..count {
            let g = gradient[i];
            moment_1[i] = moment_1[i] * BETA_1 + g * (1.0 - BETA_1);
            moment_2[i] = moment_2[i] * BETA_2 + g * g * (1.0 - BETA_2);
            let step = moment_1[i] * self.factor / (moment_2[i].sqrt() + self.epsilon);
            self.weights[i] -= step * self.rate;
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::optim::AdamConfig;

    use super::*;
    use crate::nets::device::Compute;
    use crate::random::{RngExt, Seed};

    #[test]
    fn burns_adam_gives_the_same_bits() {
        let device = Compute::cpu().device;
        let burns = AdamConfig::new().with_epsilon(EPSILON).build();
        let mut rng = Seed(1).stream("numbers");
        for count in [1, 7, 16, 50, 1234] {
            let mut draw = |scale: f32| {
                // Features that do not occur have no gradient.
                let numbers = (0..count).map(|_| match rng.random_range(0..4) {
                    0 => 0.0,
                    _ => scale * (rng.random::<f32>() - 0.5),
                });
                let data = TensorData::new(numbers.collect(), [count]);
                Tensor::<1>::from_data(data, &device)
            };
            let weights = draw(1.0);
            let (mut ours, mut theirs) = ((weights.clone(), None), (weights, None));
            for step in 0..200 {
                let rate = 0.01 / f64::from(step + 1);
                let gradient = draw(0.1f32.powi(step % 10));
                ours = FusedAdam.step(rate, ours.0, gradient.clone(), ours.1);
                theirs = burns.step(rate, theirs.0, gradient, theirs.1);
                let [a, b] = [&ours, &theirs].map(|(weights, state)| {
                    let momentum = &state.as_ref().unwrap().momentum;
                    let tensors = [weights, &momentum.moment_1, &momentum.moment_2];
                    let numbers = tensors.map(|t| t.to_data().try_to_vec::<f32>().unwrap());
                    (momentum.time, numbers)
                });
                assert_eq!(a, b, "step {step} of {count} numbers");
            }
        }
    }
}
