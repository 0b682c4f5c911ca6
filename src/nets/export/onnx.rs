//! Networks as ONNX files, which most runtimes read.
//!
//! Each architecture adds its operations to a [`Graph`], in the same words as in
//! its `forward`. The graph has one input, `planes` `[batch, planes, rows,
//! columns]`, and one output, `value` `[batch]`; `batch` is open. Weights have the
//! names of the model's own tensors and lie in the file as raw little-endian
//! numbers.
//!
//! Opset 17 (2022) with its IR version 8: old enough for every runtime in use, and
//! none of the operations here has changed since in a way that would matter.
//!
//! Source: the ONNX project, `docs/IR.md` and `docs/Operators.md`.

use burn::nn::Linear;
use burn::nn::conv::Conv2d;
use burn::tensor::Tensor;
use prost::Message;

use super::Facts;
use super::proto::{
    AttributeProto, Dimension, DimensionProto, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, StringStringEntryProto, TensorProto, TensorShapeProto, TensorTypeProto,
    TypeProto, ValueInfoProto,
};
use crate::game::PlaneShape;
use crate::nets::{Net, ValueNet};

/// Version of the operators.
pub(super) const OPSET: i64 = 17;
/// Version of the file format that came with them.
const IR_VERSION: i64 = 8;
/// Name of the graph's input.
pub(super) const INPUT: &str = "planes";
/// Name of the graph's output.
pub(super) const OUTPUT: &str = "value";

/// A value on its way through the graph, by name.
#[derive(Debug, Clone)]
pub struct Signal(String);

/// A graph under construction. Each operation takes signals that are there and
/// gives a new one.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: Vec<NodeProto>,
    weights: Vec<TensorProto>,
}

impl Graph {
    /// `[batch, ...]` to `[batch, numbers]`.
    pub fn flatten(&mut self, signal: &Signal) -> Signal {
        self.unary("Flatten", signal)
    }

    /// Sigmoid of each number.
    pub fn sigmoid(&mut self, signal: &Signal) -> Signal {
        self.unary("Sigmoid", signal)
    }

    /// Each number, or 0 if it is negative.
    pub fn relu(&mut self, signal: &Signal) -> Signal {
        self.unary("Relu", signal)
    }

    /// The sum of two signals of one shape, to be called `name`.
    pub fn add(&mut self, name: &str, a: &Signal, b: &Signal) -> Signal {
        self.node("Add", &[&a.0, &b.0], name, Vec::new())
    }

    /// A dense layer, whose name is its path in the module: `[batch, inputs]` to
    /// `[batch, outputs]`.
    pub fn linear(&mut self, name: &str, layer: &Linear, signal: &Signal) -> Signal {
        // burn's weight is [inputs, outputs], just as Gemm wants it.
        let weight = self.weight(name, "weight", layer.weight.val());
        let bias = self.bias(name, layer.bias.as_ref().map(|bias| bias.val()));
        let attributes = vec![int("transB", 0)];
        self.node("Gemm", &[&signal.0, &weight, &bias], name, attributes)
    }

    /// A 3x3 convolution that keeps the board's size, whose name is its path in the
    /// module: `[batch, channels, rows, columns]` to the same with other channels.
    pub fn conv3x3(&mut self, name: &str, layer: &Conv2d, signal: &Signal) -> Signal {
        let weight = self.weight(name, "weight", layer.weight.val());
        let bias = self.bias(name, layer.bias.as_ref().map(|bias| bias.val()));
        let attributes = vec![ints("kernel_shape", &[3, 3]), ints("pads", &[1, 1, 1, 1])];
        self.node("Conv", &[&signal.0, &weight, &bias], name, attributes)
    }

    /// The twin of `nets::value_of_logits`: `[batch, 1]` to `[batch]`.
    pub fn value_of_logits(&mut self, logits: &Signal) -> Signal {
        let probability = self.sigmoid(logits);
        self.constant("value.two", vec![], &[2.0]);
        self.constant("value.minus_one", vec![], &[-1.0]);
        self.weights.push(TensorProto {
            dims: vec![1],
            data_type: TensorProto::INT64,
            name: "value.axes".to_string(),
            raw_data: 1i64.to_le_bytes().to_vec(),
        });
        let inputs = [&*probability.0, "value.axes"];
        let flat = self.node("Squeeze", &inputs, "value.probability", Vec::new());
        let doubled = self.node("Mul", &[&flat.0, "value.two"], "value.doubled", Vec::new());
        let inputs = [&*doubled.0, "value.minus_one"];
        self.node("Add", &inputs, OUTPUT, Vec::new())
    }

    fn unary(&mut self, operator: &str, signal: &Signal) -> Signal {
        let name = format!("{}.{}", signal.0, operator.to_lowercase());
        self.node(operator, &[&signal.0], &name, Vec::new())
    }

    fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        output: &str,
        attribute: Vec<AttributeProto>,
    ) -> Signal {
        self.nodes.push(NodeProto {
            input: inputs.iter().map(|input| input.to_string()).collect(),
            output: vec![output.to_string()],
            name: output.to_string(),
            op_type: operator.to_string(),
            attribute,
        });
        Signal(output.to_string())
    }

    fn bias(&mut self, layer: &str, bias: Option<Tensor<1>>) -> String {
        self.weight(layer, "bias", bias.expect("layers are made with a bias"))
    }

    fn weight<const D: usize>(&mut self, layer: &str, what: &str, tensor: Tensor<D>) -> String {
        let name = format!("{layer}.{what}");
        let dims = tensor.dims().map(|dim| dim as i64).to_vec();
        let data = tensor.into_data();
        let numbers = data.as_slice().expect("networks compute in f32");
        self.constant(&name, dims, numbers);
        name
    }

    fn constant(&mut self, name: &str, dims: Vec<i64>, numbers: &[f32]) {
        self.weights.push(TensorProto {
            dims,
            data_type: TensorProto::FLOAT,
            name: name.to_string(),
            raw_data: numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
        });
    }
}

fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto {
        name: name.to_string(),
        i,
        r#type: AttributeProto::INT,
        ..AttributeProto::default()
    }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.to_string(),
        ints: ints.to_vec(),
        r#type: AttributeProto::INTS,
        ..AttributeProto::default()
    }
}

/// The file of a network whose input has the shape `shape`.
pub(super) fn write(net: &Net, shape: PlaneShape, facts: &Facts) -> Vec<u8> {
    let mut graph = Graph::default();
    net.describe(&mut graph, &Signal(INPUT.to_string()));
    let batch = || Dimension::Named("batch".to_string());
    let fixed = |size: usize| Dimension::Fixed(size as i64);
    let (planes, rows, columns) = (shape.planes, shape.rows, shape.columns);
    let input = [batch(), fixed(planes), fixed(rows), fixed(columns)];
    let entries = facts.entries.iter();
    let model = ModelProto {
        ir_version: IR_VERSION,
        producer_name: "tanren".to_string(),
        producer_version: env!("CARGO_PKG_VERSION").to_string(),
        doc_string: facts.text(),
        graph: Some(GraphProto {
            node: graph.nodes,
            name: facts.name.clone(),
            initializer: graph.weights,
            input: vec![value_info(INPUT, input, &facts.input)],
            output: vec![value_info(OUTPUT, [batch()], &facts.output)],
        }),
        opset_import: vec![OperatorSetIdProto {
            domain: String::new(),
            version: OPSET,
        }],
        metadata_props: entries
            .map(|(key, value)| StringStringEntryProto {
                key: key.to_string(),
                value: value.clone(),
            })
            .collect(),
    };
    model.encode_to_vec()
}

fn value_info<const D: usize>(name: &str, shape: [Dimension; D], doc: &str) -> ValueInfoProto {
    let dim = shape.map(|size| DimensionProto { value: Some(size) });
    ValueInfoProto {
        name: name.to_string(),
        r#type: Some(TypeProto {
            tensor_type: Some(TensorTypeProto {
                elem_type: TensorProto::FLOAT,
                shape: Some(TensorShapeProto { dim: dim.to_vec() }),
            }),
        }),
        doc_string: doc.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use burn::tensor::Device;

    use super::*;
    use crate::nets::{ConvConfig, MlpConfig, NetConfig, NetKind, ResidualConfig};
    use crate::random::Seed;

    /// A file for planes of 2x3x4, read back.
    fn file(kind: NetKind) -> ModelProto {
        let config = NetConfig {
            kind,
            mlp: MlpConfig { hidden: 5 },
            conv: ConvConfig {
                channels: 6,
                layers: 2,
                hidden: 7,
            },
            residual: ResidualConfig {
                channels: 6,
                blocks: 1,
                hidden: 7,
            },
        };
        let shape = PlaneShape {
            planes: 2,
            rows: 3,
            columns: 4,
        };
        let net = config.init(shape, &mut Seed(1).stream("weights"), &Device::flex());
        let facts = Facts {
            name: "some-net".to_string(),
            input: "what goes in".to_string(),
            output: "what comes out".to_string(),
            entries: BTreeMap::from([("game", "some game".to_string())]),
        };
        ModelProto::decode(&*write(&net, shape, &facts)).unwrap()
    }

    #[test]
    fn the_file_says_what_it_is() {
        let model = file(NetKind::Mlp);
        assert_eq!((model.ir_version, model.opset_import[0].version), (8, 17));
        assert_eq!(model.doc_string, "game: some game");
        assert_eq!(model.metadata_props[0].value, "some game");
        let graph = model.graph.unwrap();
        assert_eq!(graph.name, "some-net");
        let dimensions = |value: &ValueInfoProto| -> Vec<Dimension> {
            let tensor = value.r#type.as_ref().unwrap().tensor_type.as_ref().unwrap();
            let dim = tensor.shape.as_ref().unwrap().dim.iter();
            dim.map(|dim| dim.value.clone().unwrap()).collect()
        };
        let batch = Dimension::Named("batch".to_string());
        let fixed = [2, 3, 4].map(Dimension::Fixed);
        assert_eq!(
            dimensions(&graph.input[0]),
            [&[batch.clone()][..], &fixed].concat()
        );
        assert_eq!(dimensions(&graph.output[0]), [batch]);
        assert_eq!(graph.input[0].doc_string, "what goes in");
        assert_eq!(graph.output[0].doc_string, "what comes out");
    }

    #[test]
    fn operators_are_few_and_weights_have_their_paths_and_shapes() {
        for (kind, operators, weights) in [
            (
                NetKind::Mlp,
                "Flatten Gemm Sigmoid Gemm Sigmoid Squeeze Mul Add",
                "hidden.weight[24, 5] hidden.bias[5] output.weight[5, 1] output.bias[1]",
            ),
            (
                NetKind::Conv,
                "Conv Relu Conv Relu Flatten Gemm Relu Gemm Sigmoid Squeeze Mul Add",
                "layers.0.weight[6, 2, 3, 3] layers.0.bias[6] layers.1.weight[6, 6, 3, 3] \
                 layers.1.bias[6] hidden.weight[72, 7] hidden.bias[7] output.weight[7, 1] \
                 output.bias[1]",
            ),
            (
                NetKind::Residual,
                "Conv Relu Conv Relu Conv Add Relu Flatten Gemm Relu Gemm Sigmoid Squeeze Mul Add",
                "stem.weight[6, 2, 3, 3] stem.bias[6] blocks.0.first.weight[6, 6, 3, 3] \
                 blocks.0.first.bias[6] blocks.0.second.weight[6, 6, 3, 3] blocks.0.second.bias[6] \
                 hidden.weight[72, 7] hidden.bias[7] output.weight[7, 1] output.bias[1]",
            ),
        ] {
            let graph = file(kind).graph.unwrap();
            let found: Vec<&str> = graph.node.iter().map(|node| &*node.op_type).collect();
            assert_eq!(found.join(" "), operators);
            let found: Vec<String> = (graph.initializer.iter())
                .filter(|tensor| !tensor.name.starts_with("value."))
                .map(|tensor| format!("{}{:?}", tensor.name, tensor.dims))
                .collect();
            assert_eq!(found.join(" "), weights);
        }
    }
}
