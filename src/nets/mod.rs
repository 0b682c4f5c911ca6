//! Value networks: from the planes of a position to its value.
//!
//! A network is described by a [`NetConfig`], made by [`NetConfig::init`] and
//! erased into a [`Net`], which infers, and trains: through burn on an autodiff
//! device, on the CPU by a [`Trainer`]. To add an architecture, write its file
//! and add its line to [`NetKind`], [`NetConfig`], [`Net`], [`NetEvaluator`] and
//! [`Trainer`]; the tests loop over [`NetKind::ALL`].

pub mod device;
pub mod export;
mod init;
pub mod model;
pub mod shipped;
pub mod sparse;
pub mod stack;

mod block;
mod conv;
mod mlp;
mod parameters;
mod residual;
mod trainer;

pub use conv::{Conv, ConvConfig};
pub use mlp::{Mlp, MlpConfig};
pub use residual::{Residual, ResidualConfig};
pub use trainer::Trainer;

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::game::{Feature, Game, PlaneShape, Value};
use crate::random::Rng;
use crate::search::Evaluator;
use export::{Graph, Signal};
use init::Initial;

/// A network, from planes to values.
pub trait ValueNet: Module {
    /// Judges a batch of positions, each for its side to move, in [-1, 1].
    ///
    /// # Shapes
    /// - planes: `[batch, planes, rows, columns]`
    /// - output: `[batch]`
    fn forward(&self, planes: Tensor<4>) -> Tensor<1>;

    /// Adds the operations of [`ValueNet::forward`] to an ONNX graph. Layers go by
    /// their paths in the module.
    ///
    /// # Shapes
    /// As those of [`ValueNet::forward`].
    fn describe(&self, graph: &mut Graph, planes: &Signal) -> Signal;
}

/// The last step of every network here, as in the article: one sigmoid s of
/// the output, and 2s - 1 as the value.
///
/// # Shapes
/// - logits: `[batch, 1]`
/// - output: `[batch]`
fn value_of_logits(logits: Tensor<2>) -> Tensor<1> {
    burn::tensor::activation::sigmoid(logits)
        .squeeze_dim::<1>(1)
        .mul_scalar(2.0)
        .sub_scalar(1.0)
}

/// A network's output as a value. An exploded network gives NaN: nobody should
/// stumble over it before the learner's guard reports it.
fn value_of(output: f32) -> Value {
    if output.is_nan() {
        Value::DRAW
    } else {
        Value::new(output.clamp(-1.0, 1.0))
    }
}

/// The architectures, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetKind {
    /// One hidden layer, the article's network.
    Mlp,
    /// 3x3 convolutions.
    Conv,
    /// Blocks of two 3x3 convolutions with a skip connection.
    Residual,
}

impl NetKind {
    /// Every architecture.
    pub const ALL: [NetKind; 3] = [NetKind::Mlp, NetKind::Conv, NetKind::Residual];

    /// The name in configs and model folders.
    pub fn name(self) -> &'static str {
        match self {
            NetKind::Mlp => "mlp",
            NetKind::Conv => "conv",
            NetKind::Residual => "residual",
        }
    }
}

/// Which architecture, and the size of each. All sizes are always present, so
/// that changing `kind` alone gives a valid configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetConfig {
    /// `mlp`, `conv` or `residual`. The article: `mlp`.
    pub kind: NetKind,
    /// Sizes used when `kind = "mlp"`.
    pub mlp: MlpConfig,
    /// Sizes used when `kind = "conv"`.
    pub conv: ConvConfig,
    /// Sizes used when `kind = "residual"`.
    pub residual: ResidualConfig,
}

impl NetConfig {
    /// A network with fresh weights drawn from `rng`: the same on every device,
    /// since the numbers come from our generator and not from the backend's.
    pub fn init(&self, shape: PlaneShape, rng: &mut Rng, device: &Device) -> Net {
        let initial = &mut Initial { rng, device };
        match self.kind {
            NetKind::Mlp => Net::Mlp(self.mlp.init(shape, initial)),
            NetKind::Conv => Net::Conv(self.conv.init(shape, initial)),
            NetKind::Residual => Net::Residual(self.residual.init(shape, initial)),
        }
    }

    /// The sizes of the architecture in use.
    pub fn sizes(&self) -> serde_json::Value {
        let sizes = match self.kind {
            NetKind::Mlp => serde_json::to_value(&self.mlp),
            NetKind::Conv => serde_json::to_value(&self.conv),
            NetKind::Residual => serde_json::to_value(&self.residual),
        };
        sizes.expect("sizes are plain numbers")
    }

    /// Checks the sizes.
    ///
    /// # Errors
    /// A message that names the key and the accepted range.
    pub fn validate(&self) -> Result<(), String> {
        for (key, size, range) in [
            ("net.mlp.hidden", self.mlp.hidden, 1..=4096),
            ("net.conv.channels", self.conv.channels, 1..=1024),
            ("net.conv.layers", self.conv.layers, 1..=64),
            ("net.conv.hidden", self.conv.hidden, 1..=4096),
            ("net.residual.channels", self.residual.channels, 1..=1024),
            ("net.residual.blocks", self.residual.blocks, 1..=64),
            ("net.residual.hidden", self.residual.hidden, 1..=4096),
        ] {
            if !range.contains(&size) {
                return Err(format!(
                    "{key} = {size} is out of range: accepted are {} to {}",
                    range.start(),
                    range.end()
                ));
            }
        }
        Ok(())
    }
}

/// Any of the architectures.
#[derive(Module, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there are few networks, and all live long"
)]
pub enum Net {
    /// See [`Mlp`].
    Mlp(Mlp),
    /// See [`Conv`].
    Conv(Conv),
    /// See [`Residual`].
    Residual(Residual),
}

impl Net {
    /// The layers with their shapes and numbers of parameters, in lines.
    pub fn layers(&self) -> String {
        match self {
            Net::Mlp(net) => net.to_string(),
            Net::Conv(net) => net.to_string(),
            Net::Residual(net) => net.to_string(),
        }
    }
}

impl ValueNet for Net {
    fn forward(&self, planes: Tensor<4>) -> Tensor<1> {
        match self {
            Net::Mlp(net) => net.forward(planes),
            Net::Conv(net) => net.forward(planes),
            Net::Residual(net) => net.forward(planes),
        }
    }

    fn describe(&self, graph: &mut Graph, planes: &Signal) -> Signal {
        match self {
            Net::Mlp(net) => net.describe(graph, planes),
            Net::Conv(net) => net.describe(graph, planes),
            Net::Residual(net) => net.describe(graph, planes),
        }
    }
}

/// Features of a batch of positions, one after the other: the compact form of
/// network inputs, from which [`Features::planes`] makes the tensor.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Features {
    /// The inputs that are 1, position after position.
    pub active: Vec<Feature>,
    /// Where each position's features end in `active`.
    pub ends: Vec<usize>,
}

impl Features {
    /// Number of positions.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The features of position `index`.
    pub fn get(&self, index: usize) -> &[Feature] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.active[start..self.ends[index]]
    }

    /// Appends one position, as its side to move sees it.
    pub fn push<G: Game>(&mut self, game: &G, position: &G::Position) {
        game.features(position, game.side_to_move(position), &mut self.active);
        self.ends.push(self.active.len());
    }

    /// Appends one position by its features.
    pub fn push_features(&mut self, features: impl IntoIterator<Item = Feature>) {
        self.active.extend(features);
        self.ends.push(self.active.len());
    }

    /// Forgets all positions, keeps the memory.
    pub fn clear(&mut self) {
        self.active.clear();
        self.ends.clear();
    }

    /// The input tensor: sent to a GPU as bits and unpacked there, written out on
    /// the CPU.
    ///
    /// # Shapes
    /// - output: `[batch, planes, rows, columns]`
    pub fn planes(&self, shape: PlaneShape, device: &Device) -> Tensor<4> {
        if device::is_cpu(device) {
            self.dense_planes(shape, device)
        } else {
            self.packed_planes(shape, device)
        }
    }

    /// [`Features::planes`], written out before it is sent: four bytes an input.
    pub fn dense_planes(&self, shape: PlaneShape, device: &Device) -> Tensor<4> {
        let inputs = shape.inputs();
        let mut dense = vec![0.0f32; self.len() * inputs];
        for (index, row) in dense.chunks_exact_mut(inputs).enumerate() {
            for &feature in self.get(index) {
                row[usize::from(feature)] = 1.0;
            }
        }
        let shape = [self.len(), shape.planes, shape.rows, shape.columns];
        Tensor::from_data(TensorData::new(dense, shape), device)
    }

    /// [`Features::planes`], sent as one bit an input and unpacked on the device.
    pub fn packed_planes(&self, shape: PlaneShape, device: &Device) -> Tensor<4> {
        const BITS: usize = i32::BITS as usize;
        let (batch, inputs) = (self.len(), shape.inputs());
        let words = inputs.div_ceil(BITS);
        let mut packed = vec![0i32; batch * words];
        for (index, row) in packed.chunks_exact_mut(words).enumerate() {
            for &feature in self.get(index) {
                let input = usize::from(feature);
                row[input / BITS] |= 1 << (input % BITS);
            }
        }
        let packed = TensorData::new(packed, [batch, words, 1]);
        let packed = Tensor::<3, Int>::from_data(packed, device); // [batch, words, 1]
        let places = Tensor::arange(0..BITS as i64, device).reshape([1, 1, BITS]);
        packed
            .bitwise_right_shift(places)
            .bitwise_and_scalar(1) // [batch, words, bits]
            .float()
            .reshape([batch, words * BITS])
            .slice([0..batch, 0..inputs]) // [batch, inputs]
            .reshape([batch, shape.planes, shape.rows, shape.columns])
    }
}

/// Judges positions by a network, through burn, in large batches.
#[derive(Debug, Clone)]
pub struct BatchEvaluator {
    net: Net,
    device: Device,
    features: Features,
}

impl BatchEvaluator {
    /// Positions in one forward pass. Batches are padded to a power of two up to
    /// this size: a GPU prepares its kernels anew for every new shape.
    const MAX_BATCH: usize = 4096;

    /// Wraps an inference network (not on an autodiff device) that lives on `device`.
    pub fn new(net: Net, device: Device) -> BatchEvaluator {
        BatchEvaluator {
            net,
            device,
            features: Features::default(),
        }
    }
}

impl<G: Game> Evaluator<G> for BatchEvaluator {
    fn evaluate(&mut self, game: &G, positions: &[G::Position], values: &mut Vec<Value>) {
        values.clear();
        let shape = game.plane_shape();
        let chunks = positions.chunks(Self::MAX_BATCH);
        let mut outputs = Vec::with_capacity(chunks.len());
        for chunk in chunks.clone() {
            self.features.clear();
            for position in chunk {
                self.features.push(game, position);
            }
            while self.features.len() < chunk.len().next_power_of_two() {
                self.features.push_features([]);
            }
            let planes = self.features.planes(shape, &self.device);
            outputs.push(self.net.forward(planes));
        }
        // Read when all is on its way: a read waits for the GPU, which would wait
        // for the next batch then.
        for (chunk, output) in chunks.zip(outputs) {
            let output = output.into_data();
            let output = output.as_slice::<f32>().expect("networks compute in f32");
            values.extend(output[..chunk.len()].iter().map(|&value| value_of(value)));
        }
    }
}

/// The evaluator that suits a network and a device.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "there is one a thread")]
pub enum NetEvaluator {
    /// An MLP on the CPU: one position at a time, a few rows of weights each.
    Sparse(sparse::SparseMlp),
    /// Convolutions on the CPU: the children of a position at a time.
    Stack(stack::StackEvaluator),
    /// On a GPU: large batches through burn.
    Batch(BatchEvaluator),
}

impl NetEvaluator {
    /// Copies the weights of an inference network that lives on `compute`.
    pub fn new(net: &Net, compute: &device::Compute) -> NetEvaluator {
        if !compute.is_cpu {
            let batch = BatchEvaluator::new(net.clone(), compute.device.clone());
            return NetEvaluator::Batch(batch);
        }
        match net {
            Net::Mlp(mlp) => NetEvaluator::Sparse(sparse::SparseMlp::new(mlp)),
            Net::Conv(net) => NetEvaluator::Stack(stack::StackEvaluator::new(&net.parts())),
            Net::Residual(net) => NetEvaluator::Stack(stack::StackEvaluator::new(&net.parts())),
        }
    }

    /// Whether another device computes: large batches are worth gathering then, and
    /// the cores would do nothing while they wait for it.
    pub fn computes_elsewhere(&self) -> bool {
        matches!(self, NetEvaluator::Batch(_))
    }
}

impl<G: Game> Evaluator<G> for NetEvaluator {
    fn evaluate(&mut self, game: &G, positions: &[G::Position], values: &mut Vec<Value>) {
        match self {
            NetEvaluator::Sparse(sparse) => sparse.evaluate(game, positions, values),
            NetEvaluator::Stack(stack) => stack.evaluate(game, positions, values),
            NetEvaluator::Batch(batch) => batch.evaluate(game, positions, values),
        }
    }

    fn evaluate_children(
        &mut self,
        game: &G,
        parent: &G::Position,
        moves: &[G::Move],
        values: &mut Vec<Value>,
    ) {
        match self {
            NetEvaluator::Sparse(sparse) => sparse.evaluate_children(game, parent, moves, values),
            NetEvaluator::Stack(stack) => stack.evaluate_children(game, parent, moves, values),
            NetEvaluator::Batch(batch) => batch.evaluate_children(game, parent, moves, values),
        }
    }
}
