//! Checks of a model before the library runs it.

use std::collections::BTreeSet;

use tract_onnx::pb::tensor_proto::{DataLocation, DataType};
use tract_onnx::pb::tensor_shape_proto::dimension::Value as Extent;
use tract_onnx::pb::{GraphProto, ModelProto, TensorProto, ValueInfoProto, type_proto};

use super::OnnxError;

/// Operators whose results are random.
const DRAWN: [&str; 6] =
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"];

/// The largest length of an observation, which has to be allocated.
const LENGTH_MAX: i64 = 1 << 24;

pub(super) fn unfit(
    place: impl Into<String>,
    found: impl Into<String>,
    expected: impl Into<String>,
) -> OnnxError {
    OnnxError::Unfit { place: place.into(), found: found.into(), expected: expected.into() }
}

/// One agent's network, as a file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Declared {
    pub input: String,
    pub n_inputs: usize,
    pub output: String,
}

/// The networks of a model, one for each agent.
pub(super) fn declared(model: &ModelProto) -> Result<Vec<Declared>, OnnxError> {
    let Some(graph) = &model.graph else {
        return Err(OnnxError::Damaged { reason: "it holds no graph".to_owned() });
    };
    checked(graph)?;
    // Old files list weights among the inputs, too.
    let weights: BTreeSet<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
    let inputs: Vec<&ValueInfoProto> =
        graph.input.iter().filter(|input| !weights.contains(input.name.as_str())).collect();
    if inputs.is_empty() || inputs.len() != graph.output.len() {
        let named = |all: &[&ValueInfoProto]| {
            let names: Vec<String> = all.iter().map(|value| format!("`{}`", value.name)).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        let outputs: Vec<&ValueInfoProto> = graph.output.iter().collect();
        let found = format!("has inputs {} and outputs {}", named(&inputs), named(&outputs));
        return Err(unfit("graph", found, "one input and one output for each agent"));
    }
    let agents = inputs.iter().zip(&graph.output);
    agents
        .map(|(input, output)| {
            let (input, n_inputs) = (input.name.clone(), length(input)?);
            Ok(Declared { input, n_inputs, output: output.name.clone() })
        })
        .collect()
}

/// The length of the observation that an input takes.
fn length(input: &ValueInfoProto) -> Result<usize, OnnxError> {
    const EXPECTED: &str = "32-bit floats of shape [batch, numbers seen]";
    let place = || format!("input `{}`", input.name);
    let Some(type_proto::Value::TensorType(tensor)) =
        input.r#type.as_ref().and_then(|kind| kind.value.as_ref())
    else {
        return Err(unfit(place(), "is no tensor", EXPECTED));
    };
    if tensor.elem_type != DataType::Float as i32 {
        let kind = DataType::try_from(tensor.elem_type).map_or("unknown", |kind| kind.as_str_name());
        return Err(unfit(place(), format!("is of type {kind}"), format!("FLOAT: {EXPECTED}")));
    }
    let extents = tensor.shape.iter().flat_map(|shape| &shape.dim).map(|extent| match &extent.value {
        Some(Extent::DimValue(extent)) => Some(*extent),
        _ => None,
    });
    let extents: Vec<Option<i64>> = extents.collect();
    let shown = || {
        let extents = extents.iter().map(|extent| extent.map_or("?".to_owned(), |extent| extent.to_string()));
        format!("has shape [{}]", extents.collect::<Vec<_>>().join(", "))
    };
    match extents[..] {
        [None | Some(1), Some(length @ 1..=LENGTH_MAX)] => {
            usize::try_from(length).map_err(|_| unfit(place(), shown(), EXPECTED))
        }
        [None | Some(1), None] => {
            Err(unfit(place(), shown(), "a fixed count of numbers seen: [batch, count]"))
        }
        [Some(_), Some(1..=LENGTH_MAX)] => Err(unfit(place(), shown(), "a batch of 1 or of no fixed size")),
        _ => Err(unfit(place(), shown(), EXPECTED)),
    }
}

/// Checks everything that tract would take on trust.
fn checked(graph: &GraphProto) -> Result<(), OnnxError> {
    let mut made: BTreeSet<&str> = graph.input.iter().map(|input| input.name.as_str()).collect();
    for tensor in &graph.initializer {
        whole(tensor)?;
        made.insert(&tensor.name);
    }
    for node in &graph.node {
        let place = || format!("operator `{}` ({})", node.op_type, node.name);
        if DRAWN.contains(&node.op_type.as_str()) {
            return Err(unfit(place(), "draws numbers", "a network that gives the same logits each time"));
        }
        for attribute in &node.attribute {
            if attribute.g.is_some() || !attribute.graphs.is_empty() {
                return Err(unfit(place(), "holds a graph of its own", "layers without branches or loops"));
            }
            attribute.t.iter().chain(&attribute.tensors).try_for_each(whole)?;
        }
        made.extend(node.output.iter().map(String::as_str));
    }
    match graph.output.iter().find(|output| !made.contains(output.name.as_str())) {
        Some(output) => {
            Err(unfit(format!("output `{}`", output.name), "comes from no operator", "one that makes it"))
        }
        None => Ok(()),
    }
}

/// Checks that a tensor has its numbers in this file, as many as its shape needs.
fn whole(tensor: &TensorProto) -> Result<(), OnnxError> {
    let place = || format!("tensor `{}`", tensor.name);
    if tensor.data_location == Some(DataLocation::External as i32) {
        return Err(unfit(place(), "lies in another file", "all weights in this one"));
    }
    let size = match DataType::try_from(tensor.data_type) {
        Ok(DataType::Bool | DataType::Int8 | DataType::Uint8) => 1,
        Ok(DataType::Float16 | DataType::Bfloat16 | DataType::Int16 | DataType::Uint16) => 2,
        Ok(DataType::Float | DataType::Int32 | DataType::Uint32) => 4,
        Ok(DataType::Double | DataType::Int64 | DataType::Uint64) => 8,
        _ => return Err(unfit(place(), format!("is of type {}", tensor.data_type), "numbers")),
    };
    let mut extents = tensor.dims.iter().map(|extent| usize::try_from(*extent).ok());
    let count = extents.try_fold(1_usize, |product, extent| product.checked_mul(extent?));
    let TensorProto { raw_data, float_data, int32_data, int64_data, double_data, uint64_data, .. } = tensor;
    let listed =
        float_data.len() + int32_data.len() + int64_data.len() + double_data.len() + uint64_data.len();
    let found = if raw_data.is_empty() { listed } else { raw_data.len() / size };
    if count != Some(found) || !raw_data.len().is_multiple_of(size) {
        return Err(unfit(
            place(),
            format!("has {found} numbers"),
            format!("those of its shape {:?}", tensor.dims),
        ));
    }
    Ok(())
}
