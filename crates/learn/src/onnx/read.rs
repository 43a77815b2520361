//! Reader of ONNX networks, which tract evaluates.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use tract_onnx::pb::ModelProto;
use tract_onnx::prelude::*;

use super::OnnxError;
use super::check::{Declared, declared, unfit};
use super::guard::guarded;
use crate::actor::{Actor, ActorError, Scratch};

/// An actor of agents that each decide by a network of an ONNX file.
///
/// One observation is evaluated at a time, on the calling thread, so logits are the same on any number of threads, and those of one
/// row of features do not depend on other rows. They may differ in the last digits between kinds of processors, for which tract has
/// code of their own.
#[derive(Clone)]
pub struct OnnxActor {
    networks: Vec<Network>,
    spec: Value,
}

/// The network of one agent.
#[derive(Clone)]
struct Network {
    declared: Declared,
    n_outputs: usize,
    plan: Arc<TypedRunnableModel>,
}

impl fmt::Debug for OnnxActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.networks.iter().map(|network| &network.declared);
        f.debug_list().entries(names).finish()
    }
}

impl OnnxActor {
    /// Reads an actor from a file's bytes, and evaluates each network once.
    ///
    /// # Errors
    /// If the file is damaged, or its networks cannot decide.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, OnnxError> {
        let read = || {
            let framework = onnx();
            let model = framework.proto_model_for_read(&mut &*bytes);
            let model = model.map_err(|error| OnnxError::Damaged { reason: reason(&error) })?;
            let all = declared(&model)?;
            let networks = (0..all.len()).map(|agent| Network::new(&framework, &model, (agent, &all[agent])));
            Ok(Self { networks: networks.collect::<Result<_, _>>()?, spec: spec(&model) })
        };
        guarded(read).unwrap_or_else(|reason| Err(OnnxError::Failed { reason }))
    }

    /// The specification of the training, for a file that this program exported; null for others.
    pub fn spec(&self) -> &Value {
        &self.spec
    }

    /// Name and length of the input and of the output of each agent.
    pub fn ports(&self) -> impl Iterator<Item = [(&str, usize); 2]> {
        self.networks.iter().map(|network| {
            let Declared { input, n_inputs, output } = &network.declared;
            [(input.as_str(), *n_inputs), (output.as_str(), network.n_outputs)]
        })
    }
}

impl Network {
    fn new(
        framework: &tract_onnx::Onnx,
        model: &ModelProto,
        (agent, declared): (usize, &Declared),
    ) -> Result<Self, OnnxError> {
        let planned = plan(framework, model, (agent, declared.n_inputs));
        let (plan, shape) = planned.map_err(|error| OnnxError::Failed { reason: reason(&error) })?;
        let n_outputs = match shape.as_deref() {
            Some(&[1, n_outputs]) if n_outputs > 0 => n_outputs,
            shape => {
                let shape = shape.map_or("no fixed shape".to_owned(), |shape| format!("shape {shape:?}"));
                let place = format!("output `{}`", declared.output);
                let expected = format!("[1, actions], from input `{}` alone", declared.input);
                return Err(unfit(place, format!("has {shape}"), expected));
            }
        };
        let network = Self { declared: declared.clone(), n_outputs, plan };
        let tried = network.evaluate(&vec![0.0; declared.n_inputs], &mut vec![0.0; n_outputs]);
        tried.map_err(|error| OnnxError::Failed { reason: reason(&error) })?;
        Ok(network)
    }

    fn evaluate(&self, observation: &[f32], logits: &mut [f32]) -> TractResult<()> {
        let input = Tensor::from_shape(&[1, observation.len()], observation)?;
        let outputs = self.plan.run(tvec!(input.into_tvalue()))?;
        let output = outputs[0].to_plain_array_view::<f32>()?;
        for (logit, number) in logits.iter_mut().zip(output.iter()) {
            *logit = *number;
        }
        Ok(())
    }
}

/// The plan that evaluates an agent's output from its own input, and the shape of the output; none if the shape depends on the
/// input, or the output is not of 32-bit floats.
fn plan(
    framework: &tract_onnx::Onnx,
    model: &ModelProto,
    (agent, n_inputs): (usize, usize),
) -> TractResult<(Arc<TypedRunnableModel>, Option<Vec<usize>>)> {
    let mut graph = framework.model_for_proto_model(model)?;
    let (input, output) = (graph.input_outlets()?[agent], graph.output_outlets()?[agent]);
    graph.set_input_outlets(&[input])?;
    graph.select_output_outlets(&[output])?;
    let graph = graph.with_input_fact(0, f32::fact([1, n_inputs]).into())?.into_optimized()?;
    let given = graph.output_fact(0)?;
    let shape = given.shape.as_concrete().map(<[usize]>::to_vec);
    let shape = shape.filter(|_| given.datum_type == f32::datum_type());
    Ok((graph.into_runnable()?, shape))
}

/// The specification of the training in the header of a model's metadata; null if there is none.
fn spec(model: &ModelProto) -> Value {
    let header = model.metadata_props.iter().find(|entry| entry.key == "apportion");
    let header = header.and_then(|entry| serde_json::from_str::<Value>(&entry.value).ok());
    header.and_then(|mut header| header.get_mut("spec").map(Value::take)).unwrap_or_default()
}

/// The message of an error with its causes, in one line.
fn reason(error: &TractError) -> String {
    let causes: Vec<String> = error.chain().map(|cause| cause.to_string().replace('\n', " ")).collect();
    causes.join(": ")
}

impl Actor for OnnxActor {
    fn logits(
        &self,
        agent: usize,
        observation: &[f32],
        _scratch: &mut Scratch,
        logits: &mut [f32],
    ) -> Result<(), ActorError> {
        let evaluated = guarded(|| self.networks[agent].evaluate(observation, logits));
        let evaluated = evaluated.and_then(|result| result.map_err(|error| reason(&error)));
        evaluated.map_err(|reason| ActorError::Failed { reason })
    }
}
