//! The MLP on the CPU, evaluated and trained sparsely.
//!
//! Of March's 256 inputs 10 to 14 are one, so the first layer is a sum of that
//! many rows of weights, and its gradient is a sum of errors into as many rows. A
//! child's sum is its parent's (seen by the opponent) less and plus the two or
//! three rows that the move switches. The same idea, for deeper networks, is called
//! NNUE.
//!
//! Source: Y. Nasu, "Efficiently updatable neural-network based evaluation
//! functions for computer shogi" (2018).
//!
//! The kernels never fuse a product and a sum, and they add in a fixed order, so
//! that every instruction set gives the same bits. [`Mlp`] remains the definition,
//! which GPUs run and the tests compare with.

mod evaluator;
mod trainer;

pub use evaluator::SparseMlp;
pub use trainer::SparseTrainer;

use std::iter::zip;

use super::Mlp;
use super::block::{Block, LANES, add, blocks_for, sigmoid};
use super::parameters::{bias, numbers};
use crate::game::Feature;

/// Weights of an [`Mlp`], or their gradient. Hidden units are padded to whole
/// blocks by units without any weight.
#[derive(Debug, Clone)]
struct Weights {
    /// `[input][block]`: row `i` belongs to feature `i`.
    rows: Vec<Block>,
    /// `[block]`
    hidden_bias: Vec<Block>,
    /// `[block]`
    output: Vec<Block>,
    output_bias: f32,
}

impl Weights {
    /// No weights, for a network of the size of this one.
    fn zeros(mlp: &Mlp) -> Weights {
        let [inputs, hidden] = mlp.hidden.weight.dims();
        let blocks = blocks_for(hidden);
        Weights {
            rows: vec![Block::ZERO; inputs * blocks],
            hidden_bias: vec![Block::ZERO; blocks],
            output: vec![Block::ZERO; blocks],
            output_bias: 0.0,
        }
    }

    /// Copies the weights of a network of this size.
    fn load(&mut self, mlp: &Mlp) {
        let [_, hidden] = mlp.hidden.weight.dims();
        let blocks = self.blocks();
        let rows = numbers(&mlp.hidden.weight);
        for (to, from) in zip(
            self.rows.chunks_exact_mut(blocks),
            rows.chunks_exact(hidden),
        ) {
            pad(from, to);
        }
        pad(&numbers(bias(&mlp.hidden.bias)), &mut self.hidden_bias);
        pad(&numbers(&mlp.output.weight), &mut self.output);
        self.output_bias = numbers(bias(&mlp.output.bias))[0];
    }

    #[inline(always)]
    fn blocks(&self) -> usize {
        self.output.len()
    }

    #[inline(always)]
    fn row(&self, feature: Feature) -> &[Block] {
        let start = usize::from(feature) * self.blocks();
        &self.rows[start..start + self.blocks()]
    }

    #[inline(always)]
    fn row_mut(&mut self, feature: Feature) -> &mut [Block] {
        let blocks = self.blocks();
        &mut self.rows[usize::from(feature) * blocks..][..blocks]
    }

    /// Sets `sums` to those of the hidden layer, before the sigmoid.
    #[inline(always)]
    fn sums(&self, features: &[Feature], sums: &mut [Block]) {
        sums.copy_from_slice(&self.hidden_bias);
        for &feature in features {
            add(sums, self.row(feature));
        }
    }

    /// The network's output before the last sigmoid, from the sums of the hidden
    /// layer, whose sigmoids are left in their place.
    #[inline(always)]
    fn logit(&self, sums: &mut [Block]) -> f32 {
        let mut total = Block::ZERO;
        for (sum, output) in zip(sums, &self.output) {
            let mut hidden = *sum;
            for lane in 0..LANES {
                hidden.0[lane] = sigmoid(hidden.0[lane]);
                total.0[lane] += output.0[lane] * hidden.0[lane];
            }
            *sum = hidden;
        }
        self.output_bias + total.total()
    }
}

/// Copies a row into blocks, whose last one may be longer.
fn pad(row: &[f32], blocks: &mut [Block]) {
    for (block, chunk) in zip(blocks, row.chunks(LANES)) {
        block.0[..chunk.len()].copy_from_slice(chunk);
    }
}
