//! A small, slow, obvious interpreter of the ONNX files that Tanren writes: the
//! twin that an export is compared with.
//!
//! It knows the operators of those files and no other, reads the file as any
//! reader would, and computes in double precision with plain loops, so that its
//! values are those of the file, whatever order of additions a fast runtime
//! chooses.
//!
//! Source: the ONNX project, `docs/Operators.md`, for what the operators do.

use std::collections::HashMap;

use prost::Message;

use super::onnx::{INPUT, OPSET, OUTPUT};
use super::proto::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use crate::game::PlaneShape;
use crate::nets::Features;

/// Why a file cannot be interpreted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InterpretError(String);

type Result<T> = std::result::Result<T, InterpretError>;

fn error<T>(text: impl Into<String>) -> Result<T> {
    Err(InterpretError(text.into()))
}

/// Numbers in a shape, the last dimension fastest.
#[derive(Debug, Clone)]
struct Array {
    shape: Vec<usize>,
    numbers: Vec<f64>,
}

/// A file, read.
#[derive(Debug)]
pub struct Interpreter {
    nodes: Vec<NodeProto>,
    constants: HashMap<String, Array>,
}

impl Interpreter {
    /// Reads a file.
    ///
    /// # Errors
    /// If it is no ONNX file, or not one that Tanren writes.
    pub fn read(bytes: &[u8]) -> Result<Interpreter> {
        let model = ModelProto::decode(bytes)
            .map_err(|reason| InterpretError(format!("it is no ONNX file: {reason}")))?;
        match &model.opset_import[..] {
            [opset] if opset.domain.is_empty() && opset.version == OPSET => {}
            opsets => return error(format!("its opsets are {opsets:?}, and not {OPSET}")),
        }
        let Some(GraphProto {
            node,
            initializer,
            input,
            output,
            ..
        }) = model.graph
        else {
            return error("it has no graph");
        };
        let names = |values: &[ValueInfoProto]| -> Vec<String> {
            values.iter().map(|value| value.name.clone()).collect()
        };
        if names(&input) != [INPUT] || names(&output) != [OUTPUT] {
            return error(format!("it is not a graph from {INPUT} to {OUTPUT}"));
        }
        let mut constants = HashMap::new();
        for tensor in &initializer {
            constants.insert(tensor.name.clone(), array(tensor)?);
        }
        Ok(Interpreter {
            nodes: node,
            constants,
        })
    }

    /// The values of some network inputs.
    ///
    /// # Errors
    /// If an operation is unknown or cannot be done.
    pub fn run(&self, features: &Features, shape: PlaneShape) -> Result<Vec<f64>> {
        let mut planes = Array {
            shape: vec![features.len(), shape.planes, shape.rows, shape.columns],
            numbers: vec![0.0; features.len() * shape.inputs()],
        };
        for index in 0..features.len() {
            for &feature in features.get(index) {
                planes.numbers[index * shape.inputs() + usize::from(feature)] = 1.0;
            }
        }
        let mut signals = HashMap::from([(INPUT.to_string(), planes)]);
        for node in &self.nodes {
            let find = |name: &String| signals.get(name).or_else(|| self.constants.get(name));
            let inputs = node.input.iter().map(|name| {
                find(name).ok_or_else(|| InterpretError(format!("{name} comes from nowhere")))
            });
            let inputs: Vec<&Array> = inputs.collect::<Result<_>>()?;
            let result = apply(node, &inputs)
                .map_err(|InterpretError(why)| InterpretError(format!("{}: {why}", node.name)))?;
            let [output] = &node.output[..] else {
                return error(format!("{} has more than one output", node.name));
            };
            signals.insert(output.clone(), result);
        }
        match signals.remove(OUTPUT) {
            Some(value) if value.shape == [features.len()] => Ok(value.numbers),
            _ => error(format!("{OUTPUT} is not one number a position")),
        }
    }
}

/// The content of a constant.
fn array(tensor: &TensorProto) -> Result<Array> {
    let shape: Vec<usize> = tensor.dims.iter().map(|&dim| dim as usize).collect();
    let raw = &tensor.raw_data;
    let numbers: Vec<f64> = match tensor.data_type {
        TensorProto::FLOAT => {
            let floats = raw.as_chunks().0.iter();
            floats.map(|&x| f64::from(f32::from_le_bytes(x))).collect()
        }
        TensorProto::INT64 => {
            let integers = raw.as_chunks().0.iter();
            integers.map(|&x| i64::from_le_bytes(x) as f64).collect()
        }
        other => return error(format!("{} is of type {other}", tensor.name)),
    };
    if numbers.len() != shape.iter().product::<usize>() {
        return error(format!("{} has too few or too many numbers", tensor.name));
    }
    Ok(Array { shape, numbers })
}

fn apply(node: &NodeProto, inputs: &[&Array]) -> Result<Array> {
    let attributes = |accepted: &[(&str, &[i64])]| check_attributes(node, accepted);
    match (&*node.op_type, inputs) {
        ("Flatten", [x]) if !x.shape.is_empty() => {
            attributes(&[])?;
            let inputs = x.shape[1..].iter().product();
            Ok(reshape(x, vec![x.shape[0], inputs]))
        }
        ("Squeeze", [x, axes]) if axes.numbers == [1.0] && x.shape.get(1) == Some(&1) => {
            attributes(&[])?;
            Ok(reshape(x, [&x.shape[..1], &x.shape[2..]].concat()))
        }
        ("Relu", [x]) => {
            attributes(&[])?;
            // Unlike `f64::max` this keeps NaN.
            Ok(map(x, |x| if x < 0.0 { 0.0 } else { x }))
        }
        ("Sigmoid", [x]) => {
            attributes(&[])?;
            Ok(map(x, |x| 1.0 / (1.0 + (-x).exp())))
        }
        ("Add", [a, b]) => {
            attributes(&[])?;
            combine(a, b, |a, b| a + b)
        }
        ("Mul", [a, b]) => {
            attributes(&[])?;
            combine(a, b, |a, b| a * b)
        }
        ("Gemm", [x, weight, bias]) => {
            attributes(&[("transB", &[0])])?;
            gemm(x, weight, bias)
        }
        ("Conv", [x, weight, bias]) => {
            attributes(&[("kernel_shape", &[3, 3]), ("pads", &[1, 1, 1, 1])])?;
            conv3x3(x, weight, bias)
        }
        (operator, inputs) => error(format!(
            "{operator} of {} inputs is not an operator of Tanren's exports",
            inputs.len()
        )),
    }
}

/// Other settings than the accepted ones would ask for another computation.
fn check_attributes(node: &NodeProto, accepted: &[(&str, &[i64])]) -> Result<()> {
    let found = node.attribute.iter().map(|attribute| {
        let numbers = match &attribute.ints[..] {
            [] => std::slice::from_ref(&attribute.i),
            ints => ints,
        };
        (&*attribute.name, numbers)
    });
    if found.eq(accepted.iter().copied()) {
        return Ok(());
    }
    error(format!("its attributes are not {accepted:?}"))
}

fn reshape(x: &Array, shape: Vec<usize>) -> Array {
    let numbers = x.numbers.clone();
    Array { shape, numbers }
}

fn map(x: &Array, f: impl Fn(f64) -> f64) -> Array {
    Array {
        shape: x.shape.clone(),
        numbers: x.numbers.iter().map(|&x| f(x)).collect(),
    }
}

/// Number by number; `b` may be a single number for all.
fn combine(a: &Array, b: &Array, f: impl Fn(f64, f64) -> f64) -> Result<Array> {
    if b.shape.is_empty() {
        return Ok(map(a, |x| f(x, b.numbers[0])));
    }
    if a.shape != b.shape {
        return error(format!("{:?} and {:?} do not fit", a.shape, b.shape));
    }
    let pairs = a.numbers.iter().zip(&b.numbers);
    Ok(Array {
        shape: a.shape.clone(),
        numbers: pairs.map(|(&a, &b)| f(a, b)).collect(),
    })
}

/// `[batch, inputs]` times `[inputs, outputs]` plus `[outputs]`.
fn gemm(x: &Array, weight: &Array, bias: &Array) -> Result<Array> {
    let (&[batch, inputs], &[rows, outputs], &[biases]) =
        (&x.shape[..], &weight.shape[..], &bias.shape[..])
    else {
        return error("it is no product of matrices");
    };
    if rows != inputs || biases != outputs {
        return error(format!(
            "{:?}, {:?} and {:?} do not fit",
            x.shape, weight.shape, bias.shape
        ));
    }
    let mut numbers = Vec::with_capacity(batch * outputs);
    for position in 0..batch {
        let mut sums = bias.numbers.clone();
        for input in 0..inputs {
            let number = x.numbers[position * inputs + input];
            let row = &weight.numbers[input * outputs..][..outputs];
            for (sum, weight) in sums.iter_mut().zip(row) {
                *sum += number * weight;
            }
        }
        numbers.extend(sums);
    }
    Ok(Array {
        shape: vec![batch, outputs],
        numbers,
    })
}

/// `[batch, channels, rows, columns]` with a weight `[outputs, channels, 3, 3]` and
/// a border of zeros, plus `[outputs]`.
fn conv3x3(x: &Array, weight: &Array, bias: &Array) -> Result<Array> {
    let (&[batch, channels, rows, columns], &[outputs, weight_channels, 3, 3], &[biases]) =
        (&x.shape[..], &weight.shape[..], &bias.shape[..])
    else {
        return error("it is no 3x3 convolution");
    };
    if weight_channels != channels || biases != outputs {
        return error(format!(
            "{:?}, {:?} and {:?} do not fit",
            x.shape, weight.shape, bias.shape
        ));
    }
    // [row of the kernel, column of the kernel, channel, output]: the sums over
    // outputs then run over neighbours.
    let mut kernel = vec![0.0; weight.numbers.len()];
    for (index, &number) in weight.numbers.iter().enumerate() {
        let (output, channel, place) = (index / 9 / channels, index / 9 % channels, index % 9);
        kernel[(place * channels + channel) * outputs + output] = number;
    }
    let mut numbers = vec![0.0; batch * outputs * rows * columns];
    for position in 0..batch {
        for row in 0..rows {
            for column in 0..columns {
                let mut sums = bias.numbers.clone();
                for place in 0..9 {
                    let (from_row, from_column) = (row + place / 3, column + place % 3);
                    // Both are one too large, so that the border is not negative.
                    if !(1..=rows).contains(&from_row) || !(1..=columns).contains(&from_column) {
                        continue;
                    }
                    for channel in 0..channels {
                        let plane = (position * channels + channel) * rows;
                        let from = (plane + from_row - 1) * columns + from_column - 1;
                        let row = &kernel[(place * channels + channel) * outputs..][..outputs];
                        for (sum, weight) in sums.iter_mut().zip(row) {
                            *sum += x.numbers[from] * weight;
                        }
                    }
                }
                for (output, sum) in sums.into_iter().enumerate() {
                    let plane = (position * outputs + output) * rows;
                    numbers[(plane + row) * columns + column] = sum;
                }
            }
        }
    }
    Ok(Array {
        shape: vec![batch, outputs, rows, columns],
        numbers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nets::export::proto::AttributeProto;

    fn array(shape: &[usize], numbers: &[f64]) -> Array {
        Array {
            shape: shape.to_vec(),
            numbers: numbers.to_vec(),
        }
    }

    fn node(operator: &str, attribute: Vec<AttributeProto>) -> NodeProto {
        NodeProto {
            op_type: operator.to_string(),
            attribute,
            ..NodeProto::default()
        }
    }

    #[test]
    fn a_dense_layer_by_hand() {
        let x = array(&[2, 2], &[1.0, 2.0, 0.0, -1.0]);
        let weight = array(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let result = gemm(&x, &weight, &array(&[3], &[0.5, 0.0, -0.5])).unwrap();
        assert_eq!(result.shape, [2, 3]);
        assert_eq!(result.numbers, [9.5, 12.0, 14.5, -3.5, -5.0, -6.5]);
    }

    #[test]
    fn a_convolution_by_hand() {
        // Two channels of 2x3; the kernel takes the upper left neighbour of the first
        // channel and twice the right neighbour of the second.
        let x = array(
            &[1, 2, 2, 3],
            &[
                1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0,
            ],
        );
        let mut weight = array(&[1, 2, 3, 3], &[0.0; 18]);
        weight.numbers[0] = 1.0;
        weight.numbers[9 + 5] = 2.0;
        let result = conv3x3(&x, &weight, &array(&[1], &[0.5])).unwrap();
        assert_eq!(result.shape, [1, 1, 2, 3]);
        assert_eq!(result.numbers, [40.5, 60.5, 0.5, 100.5, 121.5, 2.5]);
    }

    #[test]
    fn nan_passes_through_every_operator() {
        let nan = array(&[1, 1], &[f64::NAN]);
        let one = array(&[1, 1], &[1.0]);
        for (operator, inputs) in [
            ("Relu", vec![&nan]),
            ("Sigmoid", vec![&nan]),
            ("Add", vec![&nan, &one]),
            ("Mul", vec![&nan, &one]),
        ] {
            let result = apply(&node(operator, Vec::new()), &inputs).unwrap();
            assert!(result.numbers[0].is_nan(), "{operator}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let x = array(&[1, 1], &[1.0]);
        let refused = |node: NodeProto, inputs: &[&Array]| apply(&node, inputs).unwrap_err().0;
        assert!(refused(node("Tanh", Vec::new()), &[&x]).contains("Tanh"));
        assert!(refused(node("Gemm", Vec::new()), &[&x, &x, &x]).contains("attributes"));
        let axis = AttributeProto {
            name: "axis".to_string(),
            i: 2,
            r#type: AttributeProto::INT,
            ..AttributeProto::default()
        };
        assert!(refused(node("Flatten", vec![axis]), &[&x]).contains("attributes"));
        assert!(
            Interpreter::read(b"\xff\xff")
                .unwrap_err()
                .0
                .contains("no ONNX")
        );
        assert!(Interpreter::read(b"").unwrap_err().0.contains("opsets"));
    }
}
