//! From burn's parameters to numbers, and from numbers to burn's gradients.

use burn::module::Param;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};

/// The numbers of a parameter, in its order.
pub fn numbers<const D: usize>(parameter: &Param<Tensor<D>>) -> Vec<f32> {
    let data = parameter.val().into_data();
    data.try_into_vec().expect("networks compute in f32")
}

/// The bias of a layer.
pub fn bias(bias: &Option<Param<Tensor<1>>>) -> &Param<Tensor<1>> {
    bias.as_ref().expect("layers are made with a bias")
}

/// Gradients on their way to the optimiser.
pub struct HandOver<'a> {
    device: &'a Device,
    pub gradients: GradientsParams,
}

impl HandOver<'_> {
    /// No gradients yet.
    pub fn new(device: &Device) -> HandOver<'_> {
        HandOver {
            device,
            gradients: GradientsParams::new(),
        }
    }

    /// Adds the gradient of a parameter, in its order.
    pub fn add<const D: usize>(&mut self, parameter: &Param<Tensor<D>>, numbers: Vec<f32>) {
        let data = TensorData::new(numbers, parameter.dims());
        let gradient = Tensor::<D>::from_data(data, self.device);
        self.gradients.register(parameter.id, gradient);
    }
}
