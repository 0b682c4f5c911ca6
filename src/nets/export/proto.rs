//! The messages of the ONNX file format, as far as exports need them.
//!
//! What the format has beyond that (training, functions, sparse tensors, other
//! types than tensors) is left out; a reader skips fields that it does not know.
//! Written by hand for `prost`, because no published set of definitions is kept
//! up and can write whole files.
//!
//! Source: the ONNX project, `onnx/onnx.proto3`, for names and field numbers.

use prost::Message;

/// A file.
#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    #[prost(string, tag = "2")]
    pub producer_name: String,
    #[prost(string, tag = "3")]
    pub producer_version: String,
    #[prost(string, tag = "6")]
    pub doc_string: String,
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
    #[prost(message, repeated, tag = "14")]
    pub metadata_props: Vec<StringStringEntryProto>,
}

/// A set of operators, by version. The empty domain is ONNX's own.
#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    #[prost(string, tag = "1")]
    pub domain: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A fact about the model.
#[derive(Clone, PartialEq, Message)]
pub struct StringStringEntryProto {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

/// The computation: nodes in an order in which they can be done.
#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
}

/// One operation, from named values to named values.
#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(string, tag = "4")]
    pub op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
}

/// A setting of an operation.
#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int64, tag = "3")]
    pub i: i64,
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    /// [`AttributeProto::INT`] or [`AttributeProto::INTS`].
    #[prost(int32, tag = "20")]
    pub r#type: i32,
}

impl AttributeProto {
    /// The attribute is `i`.
    pub const INT: i32 = 2;
    /// The attribute is `ints`.
    pub const INTS: i32 = 7;
}

/// A constant tensor.
#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    /// [`TensorProto::FLOAT`] or [`TensorProto::INT64`].
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    #[prost(string, tag = "8")]
    pub name: String,
    /// Little-endian numbers, the last dimension fastest.
    #[prost(bytes = "vec", tag = "9")]
    pub raw_data: Vec<u8>,
}

impl TensorProto {
    /// 32-bit floats.
    pub const FLOAT: i32 = 1;
    /// 64-bit integers.
    pub const INT64: i32 = 7;
}

/// Name and type of an input or output of the graph.
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
    #[prost(string, tag = "3")]
    pub doc_string: String,
}

/// A type; only that of tensors here.
#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
}

/// Type of a tensor's elements, and its shape.
#[derive(Clone, PartialEq, Message)]
pub struct TensorTypeProto {
    /// As [`TensorProto::data_type`].
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// A shape.
#[derive(Clone, PartialEq, Message)]
pub struct TensorShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// One dimension of a shape.
#[derive(Clone, PartialEq, Message)]
pub struct DimensionProto {
    #[prost(oneof = "Dimension", tags = "1, 2")]
    pub value: Option<Dimension>,
}

/// How large a dimension is.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Dimension {
    /// So large.
    #[prost(int64, tag = "1")]
    Fixed(i64),
    /// As large as all others of this name.
    #[prost(string, tag = "2")]
    Named(String),
}
