//! A stack of 3x3 convolutions: the article's own suggestion, since local
//! shapes (a king under attack) look the same all over the board.

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

/// Size of a [`Conv`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvConfig {
    /// Channels of every convolution.
    pub channels: usize,
    /// Number of 3x3 convolutions.
    pub layers: usize,
    /// Units of the dense layer after them.
    pub hidden: usize,
}

/// 3x3 convolutions, one dense layer, one output.
#[derive(Module, Debug)]
pub struct Conv {
    layers: Vec<Conv2d>,
    hidden: Linear,
    output: Linear,
    #[module(skip)]
    shape: PlaneShape,
}

impl ConvConfig {
    pub(super) fn init(&self, shape: PlaneShape, initial: &mut Initial) -> Conv {
        let channels_in = |layer| {
            if layer == 0 {
                shape.planes
            } else {
                self.channels
            }
        };
        let squares = shape.rows * shape.columns;
        Conv {
            layers: (0..self.layers)
                .map(|layer| {
                    initial.conv3x3(
                        channels_in(layer),
                        self.channels,
                        he(9 * channels_in(layer)),
                    )
                })
                .collect(),
            hidden: initial.linear(
                self.channels * squares,
                self.hidden,
                he(self.channels * squares),
            ),
            output: initial.linear(self.hidden, 1, 1.0 / (self.hidden as f32).sqrt()),
            shape,
        }
    }
}

impl Conv {
    /// For the kernels of the CPU.
    pub(super) fn parts(&self) -> Parts<'_> {
        let plain = |layer| Convolution { layer, skip: false };
        Parts {
            shape: self.shape,
            convolutions: self.layers.iter().map(plain).collect(),
            hidden: &self.hidden,
            output: &self.output,
        }
    }
}

impl ValueNet for Conv {
    fn forward(&self, planes: Tensor<4>) -> Tensor<1> {
        let signal = self
            .layers
            .iter()
            .fold(planes, |x, layer| relu(layer.forward(x))); // [batch, channels, rows, columns]
        let hidden = relu(self.hidden.forward(signal.flatten::<2>(1, 3))); // [batch, hidden]
        value_of_logits(self.output.forward(hidden)) // [batch]
    }

    fn describe(&self, graph: &mut Graph, planes: &Signal) -> Signal {
        let mut signal = planes.clone();
        for (number, layer) in self.layers.iter().enumerate() {
            let sums = graph.conv3x3(&format!("layers.{number}"), layer, &signal);
            signal = graph.relu(&sums);
        }
        let signal = graph.flatten(&signal);
        let hidden = graph.linear("hidden", &self.hidden, &signal);
        let hidden = graph.relu(&hidden);
        let logits = graph.linear("output", &self.output, &hidden);
        graph.value_of_logits(&logits)
    }
}
