//! The article's network: one hidden layer of sigmoids, one sigmoid output.
//! For March 256-50-1.
//!
//! Source: Ota, "ISer Advent Calendar 2020, day 23", section on neural networks.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Tensor, activation::sigmoid};
use serde::{Deserialize, Serialize};

use super::export::{Graph, Signal};
use super::init::Initial;
use super::{ValueNet, value_of_logits};
use crate::game::PlaneShape;

/// Size of an [`Mlp`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MlpConfig {
    /// Hidden units. The article: 50.
    pub hidden: usize,
}

/// One hidden layer of sigmoids.
#[derive(Module, Debug)]
pub struct Mlp {
    pub(super) hidden: Linear,
    pub(super) output: Linear,
}

impl MlpConfig {
    pub(super) fn init(&self, shape: PlaneShape, initial: &mut Initial) -> Mlp {
        Mlp {
            // About ten inputs are 1: with 0.15 a hidden unit starts in the
            // sigmoid's linear part, yet apart from its neighbours.
            hidden: initial.linear(shape.inputs(), self.hidden, 0.15),
            output: initial.linear(self.hidden, 1, 1.0 / (self.hidden as f32).sqrt()),
        }
    }
}

impl ValueNet for Mlp {
    fn forward(&self, planes: Tensor<4>) -> Tensor<1> {
        let inputs: Tensor<2> = planes.flatten(1, 3); // [batch, inputs]
        let hidden = sigmoid(self.hidden.forward(inputs)); // [batch, hidden]
        value_of_logits(self.output.forward(hidden)) // [batch]
    }

    fn describe(&self, graph: &mut Graph, planes: &Signal) -> Signal {
        let inputs = graph.flatten(planes);
        let hidden = graph.linear("hidden", &self.hidden, &inputs);
        let hidden = graph.sigmoid(&hidden);
        let logits = graph.linear("output", &self.output, &hidden);
        graph.value_of_logits(&logits)
    }
}
