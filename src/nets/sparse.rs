//! The MLP on the CPU, evaluated sparsely.
//!
//! Of March's 256 inputs 10 to 14 are one, so the first layer is a sum of that
//! many rows of weights; and a child's sum is its parent's (seen by the
//! opponent) less and plus the two or three rows that the move switches. The
//! same idea, for deeper networks, is called NNUE.
//!
//! Source: Y. Nasu, "Efficiently updatable neural-network based evaluation
//! functions for computer shogi" (2018).
//!
//! The kernels are plain loops over blocks of [`LANES`] numbers, compiled for
//! several instruction sets and chosen at run time by `pulp`. They never fuse a
//! product and a sum, and they add in a fixed order, so that every instruction
//! set gives the same bits.

use std::sync::Arc;

use burn::tensor::Tensor;
use pulp::Arch;

use super::Mlp;
use crate::game::{Feature, FeatureChanges, Game, Value};
use crate::search::Evaluator;

/// Numbers in a block: one register of the widest instruction set in use.
const LANES: usize = 16;

type Block = [f32; LANES];

/// Weights of an [`Mlp`], laid out for sparse evaluation. Hidden units are
/// padded to whole blocks by units with output weight 0.
#[derive(Debug)]
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
    fn blocks(&self) -> usize {
        self.output.len()
    }

    fn row(&self, feature: Feature) -> &[Block] {
        let start = usize::from(feature) * self.blocks();
        &self.rows[start..start + self.blocks()]
    }
}

/// Evaluates an [`Mlp`] on the CPU; equal to the burn module within rounding.
#[derive(Debug, Clone)]
pub struct SparseMlp {
    weights: Arc<Weights>,
    arch: Arch,
    /// Sums of the first layer for the position at hand, before the sigmoid.
    sums: Vec<Block>,
    features: Vec<Feature>,
    changes: FeatureChanges,
    logits: Vec<f32>,
}

impl SparseMlp {
    /// Copies the weights of a network.
    pub fn new(mlp: &Mlp) -> SparseMlp {
        let [_, hidden] = mlp.hidden.weight.dims();
        let rows = numbers(mlp.hidden.weight.val());
        let bias = |layer: &burn::nn::Linear| {
            numbers(
                layer
                    .bias
                    .as_ref()
                    .expect("layers are made with a bias")
                    .val(),
            )
        };
        let weights = Weights {
            rows: rows.chunks_exact(hidden).flat_map(blocks).collect(),
            hidden_bias: blocks(&bias(&mlp.hidden)).collect(),
            output: blocks(&numbers(mlp.output.weight.val())).collect(),
            output_bias: bias(&mlp.output)[0],
        };
        SparseMlp {
            sums: vec![[0.0; LANES]; weights.blocks()],
            weights: Arc::new(weights),
            arch: Arch::new(),
            features: Vec::new(),
            changes: FeatureChanges::default(),
            logits: Vec::new(),
        }
    }

    /// Sums the first layer for `position` as `side` sees it.
    fn accumulate<G: Game>(&mut self, game: &G, position: &G::Position, side: crate::game::Side) {
        self.features.clear();
        game.features(position, side, &mut self.features);
        self.sums.copy_from_slice(&self.weights.hidden_bias);
        let (weights, sums) = (&*self.weights, &mut self.sums[..]);
        self.arch.dispatch(|| {
            for &feature in &self.features {
                add(sums, weights.row(feature));
            }
        });
    }

    /// Turns the collected logits into values.
    fn finish(&mut self, values: &mut Vec<Value>) {
        self.arch.dispatch(|| {
            for logit in &mut self.logits {
                *logit = 2.0 * sigmoid(*logit) - 1.0;
            }
        });
        values.clear();
        values.extend(self.logits.iter().map(|&value| Value::new(value)));
    }
}

impl<G: Game> Evaluator<G> for SparseMlp {
    fn evaluate(&mut self, game: &G, positions: &[G::Position], values: &mut Vec<Value>) {
        self.logits.clear();
        for position in positions {
            self.accumulate(game, position, game.side_to_move(position));
            let logit = self
                .arch
                .dispatch(|| logit(&self.weights, &self.sums, &[], &[]));
            self.logits.push(logit);
        }
        self.finish(values);
    }

    fn evaluate_children(
        &mut self,
        game: &G,
        parent: &G::Position,
        moves: &[G::Move],
        values: &mut Vec<Value>,
    ) {
        let opponent = game.side_to_move(parent).other();
        self.accumulate(game, parent, opponent);
        self.logits.clear();
        for &mv in moves {
            game.feature_changes(parent, mv, opponent, &mut self.changes);
            let FeatureChanges { removed, added } = &self.changes;
            let logit = self
                .arch
                .dispatch(|| logit(&self.weights, &self.sums, removed, added));
            self.logits.push(logit);
        }
        self.finish(values);
    }
}

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor
        .into_data()
        .try_into_vec()
        .expect("networks compute in f32")
}

/// Cuts a row into blocks, the last one padded with zeros.
fn blocks(row: &[f32]) -> impl Iterator<Item = Block> + '_ {
    row.chunks(LANES).map(|chunk| {
        let mut block = [0.0; LANES];
        block[..chunk.len()].copy_from_slice(chunk);
        block
    })
}

#[inline(always)]
fn add(sums: &mut [Block], row: &[Block]) {
    for (sum, row) in sums.iter_mut().zip(row) {
        for lane in 0..LANES {
            sum[lane] += row[lane];
        }
    }
}

/// The network's output before the last sigmoid, when the first layer's `sums`
/// change by the given features.
#[inline(always)]
fn logit(weights: &Weights, sums: &[Block], removed: &[Feature], added: &[Feature]) -> f32 {
    let mut total = [0.0; LANES];
    for (index, (sum, output)) in sums.iter().zip(&weights.output).enumerate() {
        let mut sum = *sum;
        for &feature in removed {
            let row = &weights.row(feature)[index];
            for lane in 0..LANES {
                sum[lane] -= row[lane];
            }
        }
        for &feature in added {
            let row = &weights.row(feature)[index];
            for lane in 0..LANES {
                sum[lane] += row[lane];
            }
        }
        for lane in 0..LANES {
            total[lane] += output[lane] * sigmoid(sum[lane]);
        }
    }
    // Halving keeps the order of additions the same for every register width.
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            total[lane] += total[lane + width];
        }
        width /= 2;
    }
    weights.output_bias + total[0]
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// e^x within 2 units in the last place, clamped to where it is a normal number.
/// Free of branches and calls, so that loops over it vectorise.
///
/// Source: S. Moshier, Cephes `expf` (coefficients); rounding by adding 1.5 * 2^23
/// is folklore.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts: the first has few bits, so that multiples of it are exact.
    const LN_2_HIGH: f32 = 0.693_359_375;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 87.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let power = rounded - ROUND;
    let r = x - power * LN_2_HIGH - power * LN_2_LOW;
    let mut p = 1.987_569_2e-4;
    p = p * r + 1.398_2e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 5.000_000_1e-1;
    let fraction = p * r * r + r + 1.0;
    // The low bits of `rounded` hold the power: move them into the exponent.
    let scale = f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0f32.to_bits()));
    fraction * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_three_parts_in_ten_million() {
        for step in -87_000..=87_000 {
            let x = step as f32 / 1000.0;
            let exact = f64::from(x).exp();
            let error = (f64::from(exp(x)) - exact).abs() / exact;
            assert!(error < 3e-7, "exp({x}): relative error {error}");
        }
    }
}
