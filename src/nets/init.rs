//! Initial weights from our own generator, so that a run starts from the same
//! numbers on every device; each burn backend has a stream of its own.

use burn::module::Param;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{Initializer, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::{Device, Tensor, TensorData};

use crate::random::{Rng, normal};

/// Where initial weights come from and where they go.
pub(super) struct Initial<'a> {
    pub rng: &'a mut Rng,
    pub device: &'a Device,
}

impl Initial<'_> {
    /// A dense layer with weights N(0, `std_dev`) and zero bias.
    pub fn linear(&mut self, inputs: usize, outputs: usize, std_dev: f32) -> Linear {
        let mut layer = LinearConfig::new(inputs, outputs)
            .with_initializer(Initializer::Zeros)
            .init(self.device);
        layer.weight = self.weights([inputs, outputs], std_dev);
        layer
    }

    /// A 3x3 convolution that keeps the board's size, with weights N(0, `std_dev`)
    /// and zero bias.
    pub fn conv3x3(&mut self, channels_in: usize, channels_out: usize, std_dev: f32) -> Conv2d {
        let mut layer = Conv2dConfig::new([channels_in, channels_out], [3, 3])
            .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
            .with_initializer(Initializer::Zeros)
            .init(self.device);
        layer.weight = self.weights([channels_out, channels_in, 3, 3], std_dev);
        layer
    }

    fn weights<const D: usize>(&mut self, shape: [usize; D], std_dev: f32) -> Param<Tensor<D>> {
        let count = shape.iter().product();
        let weights: Vec<f32> = (0..count).map(|_| std_dev * normal(self.rng)).collect();
        Param::from_tensor(Tensor::from_data(
            TensorData::new(weights, shape),
            self.device,
        ))
    }
}

/// Standard deviation that keeps the variance of signals through a layer with
/// rectified outputs.
///
/// Source: He, Zhang, Ren, Sun, "Delving deep into rectifiers" (2015), eq. 10.
pub(super) fn he(inputs: usize) -> f32 {
    (2.0 / inputs as f32).sqrt()
}
