//! Gradients of a [`Stack`], by backpropagation.

use std::iter::zip;
use std::ops::Range;
use std::sync::Arc;

use burn::module::Param;
use burn::nn::conv::Conv2d;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::products::{Finish, Gradient, Matrix, Product, Row, transposed};
use super::{
    Entrance, Layer, NEIGHBOURS, POSITIONS, Parts, Signals, Span, Stack, plane_and_square,
};
use crate::game::Feature;
use crate::nets::Features;
use crate::nets::block::{Block, LANES, add};
use crate::nets::parameters::{HandOver, bias};
use crate::nets::trainer::{SHARES, output_error, share};

/// Computes gradients of a convolutional network on the CPU; equal to burn's
/// within rounding.
pub struct StackTrainer {
    arch: Arch,
    stack: Stack,
    /// The layers of the stack, from outputs to inputs.
    backward: Vec<Backward>,
    shares: Vec<Share>,
}

/// A layer for the way back.
struct Backward {
    matrix: Matrix,
    /// The rows of [`POSITIONS`] positions.
    rows: Arc<[Row]>,
}

/// Memory of a share, and what it found.
struct Share {
    signals: Signals,
    /// The derivative of the loss by each of `signals`, before the rectifier.
    errors: Signals,
    entrance: Entrance,
    layers: Vec<Matrix>,
    /// Sum of squared errors.
    loss: f32,
}

impl StackTrainer {
    /// A trainer for networks of this size.
    pub(in crate::nets) fn new(parts: &Parts) -> StackTrainer {
        let stack = Stack::new(parts);
        StackTrainer {
            arch: Arch::new(),
            backward: stack.layers.iter().map(Backward::new).collect(),
            shares: (0..SHARES).map(|_| Share::new(&stack)).collect(),
            stack,
        }
    }

    /// See [`Trainer::gradients`](crate::nets::Trainer::gradients).
    pub(in crate::nets) fn gradients(
        &mut self,
        parts: &Parts,
        features: &Features,
        targets: &[f32],
        device: &Device,
    ) -> (Tensor<1>, GradientsParams) {
        let StackTrainer {
            arch,
            stack,
            backward,
            shares,
        } = self;
        stack.load(parts);
        for (backward, layer) in zip(&mut *backward, &stack.layers) {
            backward.load(layer);
        }
        let count = targets.len();
        shares
            .par_iter_mut()
            .enumerate()
            .for_each(|(number, memory)| {
                let positions = share(number, SHARES, count);
                memory.run(*arch, stack, backward, features, targets, positions);
            });
        let loss: f32 = shares.iter().map(|share| share.loss).sum();
        let loss = Tensor::from_data([loss / count as f32], device);
        let (sum, rest) = shares.split_first_mut().expect("there are shares");
        rest.iter().for_each(|share| sum.add(share));
        (loss, hand_over(stack, sum, parts, device))
    }
}

impl Backward {
    fn new(layer: &Layer) -> Backward {
        let Layer { matrix, rows, .. } = layer;
        let swapped = |row: &Row| Row {
            input: row.output,
            output: row.input,
        };
        // A square is its neighbours' neighbour: rows of a convolution stay.
        let convolution = layer.convolution;
        let (inputs, outputs) = if convolution {
            (matrix.inputs.clone(), matrix.outputs.clone())
        } else {
            (matrix.outputs.clone(), matrix.inputs.clone())
        };
        Backward {
            matrix: Matrix::zeros(inputs, outputs),
            rows: if convolution {
                rows.clone()
            } else {
                rows.iter().map(swapped).collect()
            },
        }
    }

    /// Copies the weights of the layer that this was made from.
    fn load(&mut self, layer: &Layer) {
        let (inputs, outputs) = (layer.matrix.inputs.len(), layer.matrix.outputs.len());
        for output in 0..outputs {
            for input in 0..inputs {
                let tile = transposed(layer.matrix.tile(output, input));
                if layer.convolution {
                    // Seen from the other square, a neighbour lies on the opposite side.
                    let (neighbour, block) = (input / outputs, input % outputs);
                    let opposite = NEIGHBOURS - 1 - neighbour;
                    *self.matrix.tile_mut(block, opposite * outputs + output) = tile;
                } else {
                    *self.matrix.tile_mut(input, output) = tile;
                }
            }
        }
    }
}

impl Share {
    fn new(stack: &Stack) -> Share {
        let zeros = |layer: &Layer| {
            Matrix::zeros(layer.matrix.inputs.clone(), layer.matrix.outputs.clone())
        };
        Share {
            signals: stack.signals(),
            errors: stack.signals(),
            entrance: stack.entrance.clone(),
            layers: stack.layers.iter().map(zeros).collect(),
            loss: 0.0,
        }
    }

    /// Goes through some positions of a batch, forward and back.
    fn run(
        &mut self,
        arch: Arch,
        stack: &Stack,
        backward: &[Backward],
        features: &Features,
        targets: &[f32],
        positions: Range<usize>,
    ) {
        self.entrance.weights.fill(Block::ZERO);
        self.entrance.bias.fill(Block::ZERO);
        for matrix in &mut self.layers {
            matrix.tiles.fill([Block::ZERO; LANES]);
            matrix.bias.fill(Block::ZERO);
        }
        self.loss = 0.0;
        for first in positions.clone().step_by(POSITIONS) {
            let chunk = first..positions.end.min(first + POSITIONS);
            for (place, position) in chunk.clone().enumerate() {
                stack.enter(arch, features.get(position), place, &mut self.signals);
            }
            let all = 0..stack.layers.len();
            stack.forward(arch, all, chunk.len(), &mut self.signals);
            self.compare(stack, &targets[chunk.clone()], targets.len());
            self.go_back(arch, stack, backward, chunk.len());
            for (place, position) in chunk.enumerate() {
                let stride = stack.board.plane * stack.blocks;
                arch.dispatch(EnterGradient {
                    stack,
                    features: features.get(position),
                    errors: &self.errors[0][place * stride..(place + 1) * stride],
                    gradient: &mut self.entrance,
                });
            }
        }
    }

    /// Adds the gradients of another share to those of this one.
    fn add(&mut self, other: &Share) {
        let add_all = |sums: &mut [Block], blocks: &[Block]| {
            const AT_ONCE: usize = 1024;
            sums.par_chunks_mut(AT_ONCE)
                .zip(blocks.par_chunks(AT_ONCE))
                .for_each(|(sums, blocks)| add(sums, blocks));
        };
        add_all(&mut self.entrance.weights, &other.entrance.weights);
        add_all(&mut self.entrance.bias, &other.entrance.bias);
        for (sum, other) in zip(&mut self.layers, &other.layers) {
            add_all(sum.tiles.as_flattened_mut(), other.tiles.as_flattened());
            add_all(&mut sum.bias, &other.bias);
        }
    }

    /// Sets the error of the last signal.
    fn compare(&mut self, stack: &Stack, targets: &[f32], count: usize) {
        let errors = self.errors.last_mut().expect("there is an output");
        for ((logit, &target), error) in zip(zip(stack.logits(&self.signals), targets), errors) {
            let (difference, output_error) = output_error(logit, target, count);
            self.loss += difference * difference;
            error.0[0] = output_error;
        }
    }

    /// From the error of the last signal to all others, and to the gradients.
    fn go_back(&mut self, arch: Arch, stack: &Stack, backward: &[Backward], positions: usize) {
        for (index, layer) in stack.layers.iter().enumerate().rev() {
            let signal = &self.signals[index];
            let (before, after) = self.errors.split_at_mut(index + 1);
            let rows = &layer.rows[..positions * layer.rows_per_position];
            // All that a position of a convolution touches fits into the first cache.
            let at_once = if layer.convolution {
                layer.rows_per_position
            } else {
                positions
            };
            for rows in rows.chunks(at_once) {
                arch.dispatch(Gradient {
                    gradient: &mut self.layers[index],
                    rows,
                    inputs: signal,
                    errors: &after[0],
                });
            }
            let skipped = stack.layers.get(index + 1).is_some_and(|next| next.skip);
            arch.dispatch(Product {
                matrix: &backward[index].matrix,
                rows: &backward[index].rows[..rows.len()],
                inputs: &after[0],
                plus: skipped.then(|| &after[1][..]),
                finish: Finish::Gate(signal),
                outputs: &mut before[index],
            });
        }
    }
}

/// The kernel of the first layer's gradient: one position.
struct EnterGradient<'a> {
    stack: &'a Stack,
    features: &'a [Feature],
    errors: &'a [Block],
    gradient: &'a mut Entrance,
}

impl WithSimd for EnterGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let EnterGradient {
            stack,
            features,
            errors,
            gradient,
        } = self;
        let (board, blocks) = (&stack.board, stack.blocks);
        for &feature in features {
            let (plane, square) = plane_and_square(feature, board);
            for &(neighbour, place) in &board.reached[square] {
                let first = (plane * NEIGHBOURS + neighbour) * blocks;
                let sums = &mut gradient.weights[first..][..blocks];
                add(sums, &errors[place * blocks..][..blocks]);
            }
        }
        for &square in &board.squares {
            add(&mut gradient.bias, &errors[square * blocks..][..blocks]);
        }
    }
}

/// Takes the gradients of a batch to the optimiser.
fn hand_over(stack: &Stack, sum: &Share, parts: &Parts, device: &Device) -> GradientsParams {
    let mut gradients = HandOver::new(device);
    let first = parts.convolutions[0].layer;
    let Entrance {
        weights,
        bias: sums,
    } = &sum.entrance;
    gradients.add_spans(&first.weight, &stack.entrance_spans, weights);
    gradients.add_spans(bias(&first.bias), &stack.entrance_bias_spans, sums);
    let mut layers = zip(&stack.layers, &sum.layers);
    for (convolution, layer) in zip(&parts.convolutions[1..], &mut layers) {
        let Conv2d { weight, bias, .. } = convolution.layer;
        gradients.add_layer(layer, weight, bias);
    }
    for (linear, layer) in zip([parts.hidden, parts.output], layers) {
        gradients.add_layer(layer, &linear.weight, &linear.bias);
    }
    gradients.gradients
}

impl HandOver<'_> {
    fn add_layer<const D: usize>(
        &mut self,
        (layer, sum): (&Layer, &Matrix),
        weight: &Param<Tensor<D>>,
        bias_of_layer: &Option<Param<Tensor<1>>>,
    ) {
        self.add_spans(weight, &layer.spans, sum.tiles.as_flattened());
        self.add_spans(bias(bias_of_layer), &layer.bias_spans, &sum.bias);
    }

    fn add_spans<const D: usize>(
        &mut self,
        parameter: &Param<Tensor<D>>,
        spans: &[Span],
        blocks: &[Block],
    ) {
        let mut numbers = vec![0.0; parameter.dims().iter().product()];
        for span in spans {
            let lanes = &blocks[span.block].0[..span.count];
            let numbers = numbers[span.first..].iter_mut().step_by(span.step);
            zip(numbers, lanes).for_each(|(number, &lane)| *number = lane);
        }
        self.add(parameter, numbers);
    }
}
