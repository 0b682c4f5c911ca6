//! Residual blocks of two 3x3 convolutions, without normalisation: at these
//! depths small initial weights on the branches do its work, training and
//! inference are the same function, and exports need no operation for it.
//!
//! Source: He, Zhang, Ren, Sun, "Deep residual learning" (2016); Zhang, Dauphin,
//! Ma, "Fixup initialization" (2019) for the scale of the branches.

use burn::module::Module;
use burn::nn::Linear;
use burn::nn::conv::Conv2d;
use burn::tensor::{Tensor, activation::relu};
use serde::{Deserialize, Serialize};

use super::export::{Graph, Signal};
use super::init::{Initial, he};
use super::stack::{Convolution, Parts};
use super::{ValueNet, value_of_logits};
use crate::game::PlaneShape;

/// Size of a [`Residual`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResidualConfig {
    /// Channels of every convolution.
    pub channels: usize,
    /// Number of blocks of two convolutions.
    pub blocks: usize,
    /// Units of the dense layer after them.
    pub hidden: usize,
}

/// A convolution, residual blocks, one dense layer, one output.
#[derive(Module, Debug)]
pub struct Residual {
    stem: Conv2d,
    blocks: Vec<Block>,
    hidden: Linear,
    output: Linear,
    #[module(skip)]
    shape: PlaneShape,
}

/// Two convolutions beside a skip connection.
#[derive(Module, Debug)]
struct Block {
    first: Conv2d,
    second: Conv2d,
}

impl ResidualConfig {
    pub(super) fn init(&self, shape: PlaneShape, initial: &mut Initial) -> Residual {
        let channels = self.channels;
        let squares = shape.rows * shape.columns;
        let branch_scale = 1.0 / (self.blocks as f32).sqrt();
        Residual {
            stem: initial.conv3x3(shape.planes, channels, he(9 * shape.planes)),
            blocks: (0..self.blocks)
                .map(|_| Block {
                    first: initial.conv3x3(channels, channels, he(9 * channels)),
                    second: initial.conv3x3(channels, channels, branch_scale * he(9 * channels)),
                })
                .collect(),
            hidden: initial.linear(channels * squares, self.hidden, he(channels * squares)),
            output: initial.linear(self.hidden, 1, 1.0 / (self.hidden as f32).sqrt()),
            shape,
        }
    }
}

impl Residual {
    /// For the kernels of the CPU.
    pub(super) fn parts(&self) -> Parts<'_> {
        let plain = |layer| Convolution { layer, skip: false };
        let ending = |layer| Convolution { layer, skip: true };
        let blocks = self.blocks.iter();
        Parts {
            shape: self.shape,
            convolutions: std::iter::once(plain(&self.stem))
                .chain(blocks.flat_map(|block| [plain(&block.first), ending(&block.second)]))
                .collect(),
            hidden: &self.hidden,
            output: &self.output,
        }
    }
}

impl Block {
    /// # Shapes
    /// - signal, output: `[batch, channels, rows, columns]`
    fn forward(&self, signal: Tensor<4>) -> Tensor<4> {
        let branch = self
            .second
            .forward(relu(self.first.forward(signal.clone())));
        relu(signal + branch)
    }

    /// [`Block::forward`] as operations of an ONNX graph.
    fn describe(&self, graph: &mut Graph, name: &str, signal: &Signal) -> Signal {
        let branch = graph.conv3x3(&format!("{name}.first"), &self.first, signal);
        let branch = graph.relu(&branch);
        let branch = graph.conv3x3(&format!("{name}.second"), &self.second, &branch);
        let sum = graph.add(&format!("{name}.sum"), signal, &branch);
        graph.relu(&sum)
    }
}

impl ValueNet for Residual {
    fn forward(&self, planes: Tensor<4>) -> Tensor<1> {
        let stem = relu(self.stem.forward(planes)); // [batch, channels, rows, columns]
        let signal = self.blocks.iter().fold(stem, |x, block| block.forward(x));
        let hidden = relu(self.hidden.forward(signal.flatten::<2>(1, 3))); // [batch, hidden]
        value_of_logits(self.output.forward(hidden)) // [batch]
    }

    fn describe(&self, graph: &mut Graph, planes: &Signal) -> Signal {
        let stem = graph.conv3x3("stem", &self.stem, planes);
        let mut signal = graph.relu(&stem);
        for (number, block) in self.blocks.iter().enumerate() {
            signal = block.describe(graph, &format!("blocks.{number}"), &signal);
        }
        let signal = graph.flatten(&signal);
        let hidden = graph.linear("hidden", &self.hidden, &signal);
        let hidden = graph.relu(&hidden);
        let logits = graph.linear("output", &self.output, &hidden);
        graph.value_of_logits(&logits)
    }
}
