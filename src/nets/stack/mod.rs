//! Convolutional networks on the CPU: kernels of our own for evaluation and for
//! training, in place of burn's.
//!
//! A signal lies in memory position by position, square by square, channel by
//! channel, with a rim of zeros around each board. Then a 3x3 layer is a matrix
//! product whose rows are nine stretches of the buffer each: nothing is copied
//! together, and squares can be computed one by one, which is what makes the
//! children of a position cheap (see [`StackEvaluator`]). The first layer's input
//! is a few ones among zeros: a sum of rows of weights.
//!
//! [`Conv`](super::Conv) and [`Residual`](super::Residual) remain the definition,
//! which GPUs run and the tests compare with.

mod evaluator;
mod products;
mod trainer;

pub use evaluator::StackEvaluator;
pub use trainer::StackTrainer;

use std::iter::zip;
use std::ops::Range;
use std::sync::Arc;

use burn::module::Param;
use burn::nn::Linear;
use burn::nn::conv::Conv2d;
use burn::tensor::Tensor;
use pulp::{Arch, Simd, WithSimd};

use super::block::{Block, LANES, add, blocks_for};
use super::parameters::{bias, numbers};
use crate::game::{Feature, PlaneShape};
use products::{Finish, Matrix, Product, Row};

/// Positions that go through the layers together: few enough for the caches, and
/// whole tiles of rows for the dense layers.
const POSITIONS: usize = 16;

/// The neighbours of a square, itself included, row by row.
const NEIGHBOURS: usize = 9;

/// A network of 3x3 convolutions of equal width, one dense layer and one output,
/// each but the last rectified.
pub(super) struct Parts<'a> {
    /// Of the input.
    pub shape: PlaneShape,
    pub convolutions: Vec<Convolution<'a>>,
    pub hidden: &'a Linear,
    pub output: &'a Linear,
}

/// One convolution.
pub(super) struct Convolution<'a> {
    pub layer: &'a Conv2d,
    /// Whether its output gets the signal from before the last convolution added,
    /// ahead of the rectifier.
    pub skip: bool,
}

/// Where the squares of a board lie in a signal.
#[derive(Debug)]
struct Board {
    /// From one row to the next, in squares: the columns and one square of rim, which
    /// is the right end of one row and the left end of the next.
    stride: usize,
    /// From one position to the next, in squares: the rows and one row of rim, which
    /// is the lower end of one position and the upper end of the next.
    plane: usize,
    /// The squares of the board, row by row.
    squares: Vec<usize>,
    /// For each square of the board: which neighbours' sums it enters, by which
    /// weight. Pairs of (neighbour as seen from there, place).
    reached: Vec<Vec<(usize, usize)>>,
}

impl Board {
    fn new(shape: PlaneShape) -> Board {
        let stride = shape.columns + 1;
        let place = |row: usize, column: usize| (row + 1) * stride + column + 1;
        let all =
            || (0..shape.rows).flat_map(|row| (0..shape.columns).map(move |column| (row, column)));
        let reached = |(row, column): (usize, usize)| {
            let neighbours = (0..NEIGHBOURS).filter_map(move |neighbour| {
                // From there, this square lies (neighbour / 3 - 1, neighbour % 3 - 1) away.
                let row = (row + 1).checked_sub(neighbour / 3)?;
                let column = (column + 1).checked_sub(neighbour % 3)?;
                let inside = row < shape.rows && column < shape.columns;
                inside.then(|| (neighbour, place(row, column)))
            });
            neighbours.collect()
        };
        Board {
            stride,
            plane: (shape.rows + 1) * stride,
            squares: all().map(|(row, column)| place(row, column)).collect(),
            reached: all().map(reached).collect(),
        }
    }

    /// The length of a signal of `positions` positions, in squares.
    fn length(&self, positions: usize) -> usize {
        positions * self.plane + self.stride + 1
    }

    /// The place of a square's first neighbour, above it and to the left.
    fn corner(&self, square: usize) -> usize {
        square - self.stride - 1
    }

    /// From the first neighbour to each, in squares.
    fn neighbours(&self) -> impl Iterator<Item = usize> + '_ {
        (0..NEIGHBOURS).map(|neighbour| neighbour / 3 * self.stride + neighbour % 3)
    }
}

/// The first convolution, on inputs that are zero or one.
#[derive(Debug, Clone)]
struct Entrance {
    /// `[plane][neighbour][block]`
    weights: Vec<Block>,
    /// `[block]`
    bias: Vec<Block>,
}

/// A run of numbers in a burn parameter that fills the lanes of a block.
#[derive(Debug, Clone, Copy)]
struct Span {
    first: usize,
    step: usize,
    count: usize,
    block: usize,
}

/// The numbers of a burn parameter, in the order of the kernels.
fn gather(numbers: &[f32], spans: &[Span], blocks: &mut [Block]) {
    for span in spans {
        let numbers = numbers[span.first..].iter().step_by(span.step);
        let lanes = &mut blocks[span.block].0[..span.count];
        zip(lanes, numbers).for_each(|(lane, &number)| *lane = number);
    }
}

/// Spans of a vector, such as a bias.
fn spans_of_vector(length: usize) -> Vec<Span> {
    let span = |block| Span {
        first: block * LANES,
        step: 1,
        count: LANES.min(length - block * LANES),
        block,
    };
    (0..blocks_for(length)).map(span).collect()
}

/// A layer after the first.
#[derive(Debug)]
struct Layer {
    matrix: Matrix,
    /// Where the weights lie in burn's parameter, and the bias in its.
    spans: Vec<Span>,
    bias_spans: Vec<Span>,
    convolution: bool,
    /// See [`Convolution::skip`].
    skip: bool,
    rectify: bool,
    /// The rows of [`POSITIONS`] positions.
    rows: Arc<[Row]>,
    rows_per_position: usize,
    /// The length of the signal behind it, for [`POSITIONS`] positions, in blocks.
    length: usize,
}

/// The lanes of a block of inputs of a dense layer.
struct DenseInputs {
    /// Where the block lies, from where the position begins.
    place: usize,
    /// Its lanes are the units `first`, `first + step`, ... of the burn layer.
    first: usize,
    step: usize,
    count: usize,
}

impl Layer {
    /// A convolution that is not the first.
    fn convolution(board: &Board, rows: &Arc<[Row]>, channels: usize, skip: bool) -> Layer {
        let blocks = blocks_for(channels);
        let inputs: Vec<usize> = board
            .neighbours()
            .flat_map(|neighbour| (0..blocks).map(move |block| neighbour * blocks + block))
            .collect();
        let lanes = |block: usize| LANES.min(channels - block * LANES);
        let mut spans = Vec::new();
        for output in 0..blocks {
            for input in 0..inputs.len() {
                let (neighbour, input_block) = (input / blocks, input % blocks);
                spans.extend((0..lanes(input_block)).map(|lane| Span {
                    // burn has [output, input, neighbour].
                    first: (output * LANES * channels + input_block * LANES + lane) * NEIGHBOURS
                        + neighbour,
                    step: channels * NEIGHBOURS,
                    count: lanes(output),
                    block: (output * inputs.len() + input) * LANES + lane,
                }));
            }
        }
        Layer {
            matrix: Matrix::zeros(inputs, (0..blocks).collect()),
            spans,
            bias_spans: spans_of_vector(channels),
            convolution: true,
            skip,
            rectify: true,
            rows: rows.clone(),
            rows_per_position: board.squares.len(),
            length: board.length(POSITIONS) * blocks,
        }
    }

    /// A dense layer, to `units`; `stride` is from one position to the next in its
    /// inputs, in blocks.
    fn dense(inputs: &[DenseInputs], stride: usize, units: usize, rectify: bool) -> Layer {
        let blocks = blocks_for(units);
        let mut spans = Vec::new();
        for output in spans_of_vector(units) {
            for (number, input) in inputs.iter().enumerate() {
                spans.extend((0..input.count).map(|lane| Span {
                    // burn has [input, output].
                    first: (input.first + lane * input.step) * units + output.first,
                    block: (output.block * inputs.len() + number) * LANES + lane,
                    ..output
                }));
            }
        }
        let row = |position| Row {
            input: position * stride,
            output: position * blocks,
        };
        Layer {
            matrix: Matrix::zeros(
                inputs.iter().map(|input| input.place).collect(),
                (0..blocks).collect(),
            ),
            spans,
            bias_spans: spans_of_vector(units),
            convolution: false,
            skip: false,
            rectify,
            rows: (0..POSITIONS).map(row).collect(),
            rows_per_position: 1,
            length: POSITIONS * blocks,
        }
    }
}

/// The weights of a network, laid out for the kernels.
#[derive(Debug)]
struct Stack {
    board: Board,
    /// Blocks that hold the channels of a square.
    blocks: usize,
    entrance: Entrance,
    entrance_spans: Vec<Span>,
    entrance_bias_spans: Vec<Span>,
    /// The convolutions but the first, the hidden layer, the output.
    layers: Vec<Layer>,
}

/// What a position leaves behind each layer, the first one's in front. The rim of
/// boards, and lanes without a channel, stay zero.
type Signals = Vec<Vec<Block>>;

impl Stack {
    fn new(parts: &Parts) -> Stack {
        let board = Board::new(parts.shape);
        let first = parts.convolutions[0].layer;
        let [channels, planes, ..] = first.weight.dims();
        let [_, hidden] = parts.hidden.weight.dims();
        let blocks = blocks_for(channels);
        let squares = board.squares.len();

        let rows: Arc<[Row]> = (0..POSITIONS)
            .flat_map(|position| {
                let board = &board;
                board.squares.iter().map(move |&square| Row {
                    input: (position * board.plane + board.corner(square)) * blocks,
                    output: (position * board.plane + square) * blocks,
                })
            })
            .collect();
        let mut layers: Vec<Layer> = parts.convolutions[1..]
            .iter()
            .map(|convolution| Layer::convolution(&board, &rows, channels, convolution.skip))
            .collect();
        let channels_of_squares: Vec<DenseInputs> = board
            .squares
            .iter()
            .enumerate()
            .flat_map(|(number, &square)| {
                spans_of_vector(channels)
                    .into_iter()
                    .map(move |span| DenseInputs {
                        place: square * blocks + span.block,
                        // burn has [channel, square].
                        first: span.first * squares + number,
                        step: squares,
                        count: span.count,
                    })
            })
            .collect();
        let hidden_units: Vec<DenseInputs> = spans_of_vector(hidden)
            .into_iter()
            .map(|span| DenseInputs {
                place: span.block,
                first: span.first,
                step: 1,
                count: span.count,
            })
            .collect();
        let stride = board.plane * blocks;
        layers.push(Layer::dense(&channels_of_squares, stride, hidden, true));
        layers.push(Layer::dense(&hidden_units, blocks_for(hidden), 1, false));

        let mut entrance_spans = Vec::new();
        for plane in 0..planes {
            for neighbour in 0..NEIGHBOURS {
                entrance_spans.extend(spans_of_vector(channels).into_iter().map(|span| Span {
                    // burn has [output, input, neighbour].
                    first: (span.first * planes + plane) * NEIGHBOURS + neighbour,
                    step: planes * NEIGHBOURS,
                    block: (plane * NEIGHBOURS + neighbour) * blocks + span.block,
                    ..span
                }));
            }
        }
        let mut stack = Stack {
            board,
            blocks,
            entrance: Entrance {
                weights: vec![Block::ZERO; planes * NEIGHBOURS * blocks],
                bias: vec![Block::ZERO; blocks],
            },
            entrance_spans,
            entrance_bias_spans: spans_of_vector(channels),
            layers,
        };
        stack.load(parts);
        stack
    }

    /// Copies the weights of the network that the stack was made for.
    fn load(&mut self, parts: &Parts) {
        let first = parts.convolutions[0].layer;
        let entrance = &mut self.entrance;
        fill(&first.weight, &self.entrance_spans, &mut entrance.weights);
        fill(
            bias(&first.bias),
            &self.entrance_bias_spans,
            &mut entrance.bias,
        );
        let (convolutions, dense) = self.layers.split_at_mut(parts.convolutions.len() - 1);
        for (layer, convolution) in zip(convolutions, &parts.convolutions[1..]) {
            layer.load(&convolution.layer.weight, &convolution.layer.bias);
        }
        for (layer, linear) in zip(dense, [parts.hidden, parts.output]) {
            layer.load(&linear.weight, &linear.bias);
        }
    }

    /// Memory for [`POSITIONS`] positions.
    fn signals(&self) -> Signals {
        let first = self.board.length(POSITIONS) * self.blocks;
        let lengths = self.layers.iter().map(|layer| layer.length);
        std::iter::once(first)
            .chain(lengths)
            .map(|length| vec![Block::ZERO; length])
            .collect()
    }

    /// The first layer, for the position at `place`.
    fn enter(&self, arch: Arch, features: &[Feature], place: usize, signals: &mut Signals) {
        let stride = self.board.plane * self.blocks;
        arch.dispatch(Enter {
            stack: self,
            features,
            signal: &mut signals[0][place * stride..(place + 1) * stride],
        });
    }

    /// Layer `index` of `layers`, for some rows.
    fn apply(&self, arch: Arch, index: usize, rows: &[Row], signals: &mut Signals) {
        let layer = &self.layers[index];
        let (before, after) = signals.split_at_mut(index + 1);
        arch.dispatch(Product {
            matrix: &layer.matrix,
            rows,
            inputs: &before[index],
            plus: layer.skip.then(|| &before[index - 1][..]),
            finish: if layer.rectify {
                Finish::Rectify
            } else {
                Finish::Keep
            },
            outputs: &mut after[0],
        });
    }

    /// Some of `layers`, for all rows of the positions.
    fn forward(&self, arch: Arch, layers: Range<usize>, positions: usize, signals: &mut Signals) {
        for index in layers {
            let layer = &self.layers[index];
            let rows = &layer.rows[..positions * layer.rows_per_position];
            self.apply(arch, index, rows, signals);
        }
    }

    /// The convolutions among `layers`.
    fn convolutions(&self) -> Range<usize> {
        0..self.layers.len() - 2
    }

    /// The dense layers among `layers`.
    fn dense(&self) -> Range<usize> {
        self.layers.len() - 2..self.layers.len()
    }

    /// The network's outputs before the last sigmoid.
    fn logits<'a>(&self, signals: &'a Signals) -> impl Iterator<Item = f32> + 'a {
        signals[self.layers.len()].iter().map(|block| block.0[0])
    }
}

impl Layer {
    fn load<const D: usize>(
        &mut self,
        weight: &Param<Tensor<D>>,
        bias_of_layer: &Option<Param<Tensor<1>>>,
    ) {
        let tiles = self.matrix.tiles.as_flattened_mut();
        fill(weight, &self.spans, tiles);
        fill(bias(bias_of_layer), &self.bias_spans, &mut self.matrix.bias);
    }
}

fn fill<const D: usize>(parameter: &Param<Tensor<D>>, spans: &[Span], blocks: &mut [Block]) {
    gather(&numbers(parameter), spans, blocks);
}

/// The kernel of the first layer: one position.
struct Enter<'a> {
    stack: &'a Stack,
    features: &'a [Feature],
    signal: &'a mut [Block],
}

impl WithSimd for Enter<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Enter {
            stack,
            features,
            signal,
        } = self;
        let Stack {
            board,
            entrance,
            blocks,
            ..
        } = stack;
        let blocks = *blocks;
        for &square in &board.squares {
            signal[square * blocks..][..blocks].copy_from_slice(&entrance.bias);
        }
        for &feature in features {
            let (plane, square) = plane_and_square(feature, board);
            for &(neighbour, place) in &board.reached[square] {
                let row = &entrance.weights[(plane * NEIGHBOURS + neighbour) * blocks..][..blocks];
                let sums = &mut signal[place * blocks..][..blocks];
                add(sums, row);
            }
        }
        for &square in &board.squares {
            for sum in &mut signal[square * blocks..][..blocks] {
                for lane in &mut sum.0 {
                    // Not `max`, which would hide NaN.
                    *lane = if *lane < 0.0 { 0.0 } else { *lane };
                }
            }
        }
    }
}

/// Plane and number of the square of an input.
#[inline(always)]
fn plane_and_square(feature: Feature, board: &Board) -> (usize, usize) {
    let feature = usize::from(feature);
    let squares = board.squares.len();
    (feature / squares, feature % squares)
}
