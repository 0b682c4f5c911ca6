//! Gradients of an [`Mlp`], by backpropagation.

use std::ops::Range;

use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::Weights;
use crate::nets::block::{Block, LANES, add};
use crate::nets::parameters::{HandOver, bias};
use crate::nets::trainer::{SHARES, output_error, share};
use crate::nets::{Features, Mlp};

/// Positions that are worth a share of their own: fewer are done sooner than their
/// gradients are added up.
const SHARE_POSITIONS: usize = 256;

/// Computes gradients of an MLP on the CPU; equal to burn's within rounding.
pub struct SparseTrainer {
    arch: Arch,
    weights: Weights,
    shares: Vec<Share>,
}

/// Memory of a share, and what it found.
struct Share {
    gradient: Weights,
    /// Outputs of the hidden layer for [`LANES`] positions: `[position][block]`.
    hidden: Vec<Block>,
    /// Derivatives of the loss by a position's sums of the hidden layer.
    errors: Vec<Block>,
    /// Sum of squared errors.
    loss: f32,
}

impl SparseTrainer {
    /// A trainer for networks of this size.
    pub(in crate::nets) fn new(mlp: &Mlp) -> SparseTrainer {
        let weights = Weights::zeros(mlp);
        SparseTrainer {
            arch: Arch::new(),
            shares: (0..SHARES).map(|_| Share::new(&weights)).collect(),
            weights,
        }
    }

    /// See [`Trainer::gradients`](crate::nets::Trainer::gradients).
    pub(in crate::nets) fn gradients(
        &mut self,
        mlp: &Mlp,
        features: &Features,
        targets: &[f32],
        device: &Device,
    ) -> (Tensor<1>, GradientsParams) {
        self.weights.load(mlp);
        let (arch, weights) = (self.arch, &self.weights);
        let count = targets.len();
        let shares = (count / SHARE_POSITIONS).clamp(1, SHARES);
        let run = |(number, memory): (usize, &mut Share)| {
            arch.dispatch(Backpropagate {
                weights,
                features,
                targets,
                positions: share(number, shares, count),
                share: memory,
            });
        };
        let used = &mut self.shares[..shares];
        if let [only] = used {
            run((0, only));
        } else {
            used.par_iter_mut().enumerate().for_each(run);
        }
        let (sum, rest) = used.split_first_mut().expect("there are shares");
        rest.iter().for_each(|share| sum.add(share));
        let loss = Tensor::from_data([sum.loss / count as f32], device);
        (loss, sum.gradient.hand_over(mlp, device))
    }
}

impl Share {
    fn new(weights: &Weights) -> Share {
        Share {
            gradient: weights.clone(),
            hidden: vec![Block::ZERO; LANES * weights.blocks()],
            errors: vec![Block::ZERO; weights.blocks()],
            loss: 0.0,
        }
    }

    /// Adds what another share found.
    fn add(&mut self, other: &Share) {
        let Weights {
            rows,
            hidden_bias,
            output,
            output_bias,
        } = &mut self.gradient;
        add(rows, &other.gradient.rows);
        add(hidden_bias, &other.gradient.hidden_bias);
        add(output, &other.gradient.output);
        *output_bias += other.gradient.output_bias;
        self.loss += other.loss;
    }
}

impl Weights {
    /// Takes a gradient to the optimiser.
    fn hand_over(&self, mlp: &Mlp, device: &Device) -> GradientsParams {
        let [inputs, hidden] = mlp.hidden.weight.dims();
        let mut rows = Vec::with_capacity(inputs * hidden);
        for row in self.rows.chunks_exact(self.blocks()) {
            unpad(row, hidden, &mut rows);
        }
        let unpadded = |row: &[Block]| {
            let mut numbers = Vec::with_capacity(hidden);
            unpad(row, hidden, &mut numbers);
            numbers
        };
        let mut gradients = HandOver::new(device);
        gradients.add(&mlp.hidden.weight, rows);
        gradients.add(bias(&mlp.hidden.bias), unpadded(&self.hidden_bias));
        gradients.add(&mlp.output.weight, unpadded(&self.output));
        gradients.add(bias(&mlp.output.bias), vec![self.output_bias]);
        gradients.gradients
    }
}

/// Appends the first `length` numbers of a row of blocks.
fn unpad(row: &[Block], length: usize, numbers: &mut Vec<f32>) {
    for (number, block) in row.iter().enumerate() {
        numbers.extend_from_slice(&block.0[..LANES.min(length - number * LANES)]);
    }
}

/// The kernel: goes through some positions of a batch, forward and back.
struct Backpropagate<'a> {
    weights: &'a Weights,
    features: &'a Features,
    targets: &'a [f32],
    positions: Range<usize>,
    share: &'a mut Share,
}

impl WithSimd for Backpropagate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Backpropagate {
            weights,
            features,
            targets,
            positions,
            share,
        } = self;
        let Share {
            gradient,
            hidden,
            errors,
            loss,
        } = share;
        let blocks = weights.blocks();
        gradient.rows.fill(Block::ZERO);
        gradient.hidden_bias.fill(Block::ZERO);
        gradient.output.fill(Block::ZERO);
        let mut losses = Block::ZERO;
        let mut output_bias = Block::ZERO;
        for first in positions.clone().step_by(LANES) {
            let chunk = first..positions.end.min(first + LANES);
            let mut logits = Block::ZERO;
            let mut aims = Block::ZERO;
            for (place, position) in chunk.clone().enumerate() {
                let hidden = &mut hidden[place * blocks..][..blocks];
                weights.sums(features.get(position), hidden);
                logits.0[place] = weights.logit(hidden);
                aims.0[place] = targets[position];
            }
            let mut differences = Block::ZERO;
            let mut output_errors = Block::ZERO;
            for lane in 0..LANES {
                (differences.0[lane], output_errors.0[lane]) =
                    output_error(logits.0[lane], aims.0[lane], targets.len());
            }
            for (place, position) in chunk.enumerate() {
                let difference = differences.0[place];
                let error = output_errors.0[place];
                losses.0[place] += difference * difference;
                output_bias.0[place] += error;
                let hidden = &hidden[place * blocks..][..blocks];
                for block in 0..blocks {
                    let (hidden, output) = (hidden[block], weights.output[block]);
                    let sums = &mut gradient.output[block];
                    let mut total = *sums;
                    for lane in 0..LANES {
                        let h = hidden.0[lane];
                        total.0[lane] += error * h;
                        errors[block].0[lane] = error * output.0[lane] * h * (1.0 - h);
                    }
                    *sums = total;
                }
                for &feature in features.get(position) {
                    add(gradient.row_mut(feature), errors);
                }
                add(&mut gradient.hidden_bias, errors);
            }
        }
        gradient.output_bias = output_bias.total();
        *loss = losses.total();
    }
}
