//! Writer of dense layers as an ONNX file: a handful of protocol-buffer messages.
//!
//! Field numbers are those of `onnx.proto3` (onnx.ai); messages are written in the order of their fields.

use crate::network::{Activation, Mlp, NetworkError};
use crate::tensors::Tensors;

/// `TensorProto.DataType.FLOAT`.
pub const FLOAT: u64 = 1;

/// `TensorProto.DataType.INT64`.
const INT64: u64 = 7;

/// `AttributeProto.AttributeType.INT`, and `INTS`.
const INT: u64 = 2;
const INTS: u64 = 7;

/// The versions of the format and of the operators, old enough for every current tool.
const IR_VERSION: u64 = 8;
const OPERATORS_VERSION: u64 = 13;

/// A protocol-buffer message that is being built.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    fn raw(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// This message with a field that is a whole number.
    #[must_use]
    pub fn number(mut self, field: u64, number: u64) -> Self {
        self.raw(field << 3);
        self.raw(number);
        self
    }

    /// This message with a field of bytes.
    #[must_use]
    pub fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.raw(field << 3 | 2);
        self.raw(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// This message with a field that is a text.
    #[must_use]
    pub fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// This message with a field that is another message.
    #[must_use]
    pub fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }
}

/// A `ValueInfoProto`: a tensor of this type of numbers and these extents, with a name for an extent that is not fixed.
pub fn value(name: &str, kind: u64, extents: &[Result<usize, &str>]) -> Message {
    let shape = extents.iter().fold(Message::default(), |all, extent| {
        let extent = match extent {
            Ok(extent) => Message::default().number(1, *extent as u64),
            Err(symbol) => Message::default().text(2, symbol),
        };
        all.message(1, &extent)
    });
    let tensor = Message::default().number(1, kind).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

/// A `ValueInfoProto` of floats, `[batch, length]`.
pub fn floats(name: &str, length: usize) -> Message {
    value(name, FLOAT, &[Err("batch"), Ok(length)])
}

/// A `TensorProto` of floats.
pub fn tensor(name: &str, shape: &[usize], numbers: &[f32]) -> Message {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let dims = shape.iter().fold(Message::default(), |all, extent| all.number(1, *extent as u64));
    dims.number(2, FLOAT).text(8, name).bytes(9, &bytes)
}

/// A `TensorProto` of a list of 64-bit integers, in two's complement where they are signed.
pub fn integers(name: &str, numbers: &[u64]) -> Message {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Message::default().number(1, numbers.len() as u64).number(2, INT64).text(8, name).bytes(9, &bytes)
}

/// An `AttributeProto` of a number.
pub fn number_of(name: &str, number: u64) -> Message {
    Message::default().text(1, name).number(3, number).number(20, INT)
}

/// An `AttributeProto` of the axes of an operator.
pub fn axes(numbers: &[u64]) -> Message {
    let all = numbers.iter().fold(Message::default().text(1, "axes"), |all, axis| all.number(8, *axis));
    all.number(20, INTS)
}

/// A `NodeProto`, with the name of its output.
pub fn node(operator: &str, inputs: &[&str], output: &str) -> Message {
    let named = inputs.iter().fold(Message::default(), |all, input| all.text(1, input));
    named.text(2, output).text(3, output).text(4, operator)
}

/// The parts of a `GraphProto`.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Operators, each after those that make its inputs.
    pub nodes: Vec<Message>,
    /// Constant tensors.
    pub weights: Vec<Message>,
    /// The inputs: observations.
    pub inputs: Vec<Message>,
    /// The outputs: logits.
    pub outputs: Vec<Message>,
}

/// The bytes of a `ModelProto`, with `metadata` under the key `apportion`.
pub fn model(graph: Graph, metadata: &str) -> Vec<u8> {
    let put = |all: Message, field: u64, messages: Vec<Message>| {
        messages.into_iter().fold(all, |all, message| all.message(field, &message))
    };
    let Graph { nodes, weights, inputs, outputs } = graph;
    let graph = put(Message::default(), 1, nodes).text(2, "actor");
    let graph = put(put(put(graph, 5, weights), 11, inputs), 12, outputs);
    let operators = Message::default().text(1, "").number(2, OPERATORS_VERSION);
    let entry = Message::default().text(1, "apportion").text(2, metadata);
    let model = Message::default()
        .number(1, IR_VERSION)
        .text(2, "apportion")
        .text(3, env!("CARGO_PKG_VERSION"))
        .message(7, &graph)
        .message(8, &operators)
        .message(14, &entry);
    model.0
}

/// The networks `actor.0`, `actor.1`, … of `tensors` as an ONNX file: inputs `observation`, `observation.1`, …, outputs `logits`,
/// `logits.1`, …. The batch has no fixed size. `metadata` is stored under the key `apportion`.
///
/// # Errors
/// If a network is missing, or its tensors do not fit together.
pub fn write(
    tensors: &Tensors,
    (activation, n_agents): (Activation, usize),
    metadata: &str,
) -> Result<Vec<u8>, NetworkError> {
    let Graph { mut nodes, mut weights, mut inputs, mut outputs } = Graph::default();
    for agent in 0..n_agents {
        // Reading the network as the program runs it checks all shapes.
        let network = Mlp::from_tensors(tensors, &format!("actor.{agent}"), activation)?;
        let of_agent = |name: &str| if agent == 0 { name.to_owned() } else { format!("{name}.{agent}") };
        let mut from = of_agent("observation");
        inputs.push(floats(&from, network.n_inputs()));
        outputs.push(floats(&of_agent("logits"), network.n_outputs()));
        for layer in 0..network.n_layers() {
            let names = ["weight", "bias"].map(|part| format!("actor.{agent}.{layer}.{part}"));
            for name in &names {
                let (shape, numbers) = tensors.get(name)?;
                weights.push(tensor(name, shape, numbers));
            }
            let is_last = layer + 1 == network.n_layers();
            let sum = if is_last { of_agent("logits") } else { format!("sum.{agent}.{layer}") };
            // y = x Wᵀ + b.
            let transposed = number_of("transB", 1);
            nodes.push(node("Gemm", &[&from, &names[0], &names[1]], &sum).message(5, &transposed));
            if !is_last {
                let operator = match activation {
                    Activation::Tanh => "Tanh",
                    Activation::Relu => "Relu",
                };
                from = format!("hidden.{agent}.{layer}");
                nodes.push(node(operator, &[&sum], &from));
            }
        }
    }
    Ok(model(Graph { nodes, weights, inputs, outputs }, metadata))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_is_the_bytes_of_the_format() {
        let mut tensors = Tensors::default();
        tensors.insert("actor.0.0.weight", vec![1, 2], vec![1.0, -2.0]).unwrap();
        tensors.insert("actor.0.0.bias", vec![1], vec![0.5]).unwrap();
        let written = write(&tensors, (Activation::Tanh, 1), "m").unwrap();
        let mut expected = b"\x08\x08\x12\x09apportion\x1a".to_vec();
        expected.push(env!("CARGO_PKG_VERSION").len() as u8);
        expected.extend(env!("CARGO_PKG_VERSION").bytes());
        // The graph: Gemm of the observation and two tensors.
        let node = b"\x0a\x0bobservation\x0a\x10actor.0.0.weight\x0a\x0eactor.0.0.bias\
                     \x12\x06logits\x1a\x06logits\x22\x04Gemm\x2a\x0d\x0a\x06transB\x18\x01\xa0\x01\x02";
        let weight = b"\x08\x01\x08\x02\x10\x01\x42\x10actor.0.0.weight\x4a\x08\0\0\x80\x3f\0\0\0\xc0";
        let bias = b"\x08\x01\x10\x01\x42\x0eactor.0.0.bias\x4a\x04\0\0\0\x3f";
        let shape = |length: u8| {
            [b"\x0a\x11\x08\x01\x12\x0d\x0a\x07\x12\x05batch\x0a\x02\x08", &[length][..]].concat()
        };
        let value = |name: &[u8], length: u8| {
            let shape = shape(length);
            [&[0x0a, name.len() as u8][..], name, &[0x12, shape.len() as u8], &shape].concat()
        };
        let mut graph = Vec::new();
        for (tag, part) in [
            (0x0a_u8, &node[..]),
            (0x12, b"actor"),
            (0x2a, weight),
            (0x2a, bias),
            (0x5a, &value(b"observation", 2)),
            (0x62, &value(b"logits", 1)),
        ] {
            graph.extend([tag, part.len() as u8]);
            graph.extend(part);
        }
        expected.extend([0x3a, graph.len() as u8 & 0x7f | 0x80, (graph.len() >> 7) as u8]);
        expected.extend(graph);
        expected.extend(b"\x42\x04\x0a\x00\x10\x0d\x72\x0e\x0a\x09apportion\x12\x01m");
        assert_eq!(written, expected);
    }

    #[test]
    fn networks_that_are_not_there_are_named() {
        let error = write(&Tensors::default(), (Activation::Relu, 1), "").unwrap_err();
        assert_eq!(error.to_string(), "there is no layer `actor.0.0`");
    }
}
