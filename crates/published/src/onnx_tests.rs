//! Tests that networks written as ONNX files and read back give the same logits.

use std::sync::Arc;

use crate::dual_agent::player::read_agents;
use crate::dual_agent::{
    Cloud, CloudOptions, DualAgentEpisode, EpisodeOptions, Tables, WorkloadOptions, generate,
};
use crate::export::to_onnx;
use crate::gangs::Scorer;
use crate::weights::{WEIGHTS, load_weights};
use apportion::workload::random::{SeedStreams, Stream};
use apportion_learn::actor::{Actor, ActorError, Scratch};
use apportion_learn::checkpoint::{Checkpoint, NetworkKind};
use apportion_learn::network::{Activation, MlpActor};
use apportion_learn::onnx::write::{FLOAT, Graph, Message, model, node, tensor, value};
use apportion_learn::onnx::{OnnxActor, is_guarded, is_onnx, write};
use apportion_learn::tensors::Tensors;
use apportion_learn::trained::Trained;

fn numbers(stream: &mut Stream, count: usize) -> Vec<f32> {
    (0..count).map(|_| stream.uniform_in(-2.0, 2.0) as f32).collect()
}

fn logits(actor: &dyn Actor, agent: usize, observation: &[f32], n_actions: usize) -> Vec<f32> {
    let mut logits = vec![f32::NAN; n_actions];
    actor.logits(agent, observation, &mut Scratch::default(), &mut logits).unwrap();
    logits
}

/// Networks of random weights: (inputs, hidden, outputs) of each agent.
fn dense(sizes: &[[usize; 3]]) -> Tensors {
    let mut stream = SeedStreams::new(4).stream("weights");
    let mut tensors = Tensors::default();
    for (agent, [inputs, hidden, outputs]) in sizes.iter().enumerate() {
        for (layer, (n_in, n_out)) in [(*inputs, *hidden), (*hidden, *outputs)].into_iter().enumerate() {
            let name = |part: &str| format!("actor.{agent}.{layer}.{part}");
            tensors.insert(name("weight"), vec![n_out, n_in], numbers(&mut stream, n_in * n_out)).unwrap();
            tensors.insert(name("bias"), vec![n_out], numbers(&mut stream, n_out)).unwrap();
        }
    }
    tensors
}

/// Whether two lists are equal to 1e-5 of the largest magnitude, or of 1.
fn close(one: &[f32], other: &[f32]) -> bool {
    let largest = one.iter().fold(1.0, |largest: f32, number| largest.max(number.abs()));
    one.iter().zip(other).all(|(one, other)| (one - other).abs() < 1e-5 * largest)
}

#[test]
fn shipped_weights_give_the_same_logits() {
    let mut stream = SeedStreams::new(1).stream("observations");
    // The networks over sets have a test of their own below.
    for (name, _) in WEIGHTS.iter().filter(|(name, _)| !name.starts_with("dual_agent")) {
        let checkpoint = Checkpoint::from_bytes(&load_weights(name).unwrap()).unwrap();
        let own: Box<dyn Actor> = match checkpoint.header.network {
            NetworkKind::Mlp { .. } => Box::new(checkpoint.actor().unwrap()),
            NetworkKind::Own { .. } => Box::new(Scorer::from_tensors(&checkpoint.weights()).unwrap()),
        };
        let onnx = OnnxActor::from_bytes(&to_onnx(&checkpoint).unwrap()).unwrap();
        let ports: Vec<_> = onnx.ports().collect();
        let [[("observation", n_inputs), ("logits", n_outputs)]] = ports[..] else {
            panic!("{name}: {ports:?}")
        };
        for _ in 0..200 {
            let seen = numbers(&mut stream, n_inputs);
            let [one, other] = [&*own, &onnx].map(|actor| logits(actor, 0, &seen, n_outputs));
            assert!(close(&one, &other), "{name}: {one:?} {other:?}");
        }
    }
}

/// Both agents of the dual-agent scheduler on the way through an episode, deciding alone, beside a rule, and among whole
/// placements.
#[test]
fn networks_over_sets_give_the_same_logits() {
    let tables = Arc::new(Tables::embedded().unwrap());
    let mut stream = SeedStreams::new(5).stream("actions");
    for name in
        ["tests/fixtures/agents_alone", "../../training/dual_agent_longer", "../../training/dual_agent_joint"]
    {
        let path = format!("{}/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
        let own = Trained::read(&path, &std::fs::read(&path).unwrap()).unwrap();
        let Trained::Own(checkpoint) = &own else { panic!("{name}") };
        let onnx = Trained::read("agents.onnx", &to_onnx(checkpoint).unwrap()).unwrap();
        let ((own, options), (onnx, same)) = (read_agents(&own).unwrap(), read_agents(&onnx).unwrap());
        assert_eq!(options, same);
        let options = EpisodeOptions { placement: None, ..options };
        let cloud = Cloud::new(Arc::clone(&tables), CloudOptions { scale: 0.01, ..CloudOptions::default() });
        let workload = WorkloadOptions { n_jobs: 12, gap_s: 10.0, ..WorkloadOptions::default() };
        let mut episode = DualAgentEpisode::new(cloud, options);
        episode.reset(&generate(&tables, &workload, 3).unwrap(), 3);
        let mut turns = [0, 0];
        for _ in 0..80 {
            let agent = episode.agent();
            let (n_seen, n_actions) = match agent {
                0 => (options.window.team_length(), options.window.n_jobs + 1),
                _ => (options.placement_length(), options.window.n_candidates()),
            };
            let (mut seen, mut mask) = (vec![0.0; n_seen], vec![false; n_actions]);
            episode.observe(&mut seen);
            episode.mask(&mut mask);
            let allowed: Vec<usize> = (0..n_actions).filter(|action| mask[*action]).collect();
            let [one, other] = [&*own, &*onnx].map(|actor| {
                let logits = logits(actor, agent, &seen, n_actions);
                allowed.iter().map(|action| logits[*action]).collect::<Vec<_>>()
            });
            // A rounded margin is multiplied by ten thousand, so the tolerance is wider.
            let mut pairs = one.iter().zip(&other);
            let close = pairs.all(|(one, other)| (one - other).abs() < 1e-4 * one.abs().max(1.0));
            assert!(close, "{name}: {one:?} {other:?}");
            turns[agent] += 1;
            if episode.step(*stream.choice(&allowed)).done {
                break;
            }
        }
        assert!(turns.iter().all(|turns| *turns > 10), "{name}: {turns:?}");
    }
}

#[test]
fn each_agent_has_an_input_and_an_output() {
    let tensors = dense(&[[5, 7, 3], [4, 6, 2]]);
    for activation in [Activation::Tanh, Activation::Relu] {
        let own = MlpActor::from_tensors(&tensors, 2, activation).unwrap();
        let onnx = OnnxActor::from_bytes(&write(&tensors, (activation, 2), "").unwrap()).unwrap();
        let ports: Vec<_> = onnx.ports().collect();
        let expected = [[("observation", 5), ("logits", 3)], [("observation.1", 4), ("logits.1", 2)]];
        assert_eq!(ports, expected);
        let mut stream = SeedStreams::new(2).stream("observations");
        for (agent, [(_, n_inputs), (_, n_outputs)]) in expected.into_iter().enumerate() {
            let seen = numbers(&mut stream, n_inputs);
            let [one, other] =
                [&own as &dyn Actor, &onnx].map(|actor| logits(actor, agent, &seen, n_outputs));
            assert!(close(&one, &other), "{one:?} {other:?}");
        }
    }
}

#[test]
fn logits_are_the_same_on_any_number_of_threads() {
    let bytes = write(&dense(&[[20, 64, 9]]), (Activation::Tanh, 1), "").unwrap();
    let actor = OnnxActor::from_bytes(&bytes).unwrap();
    let mut stream = SeedStreams::new(3).stream("observations");
    let seen: Vec<Vec<f32>> = (0..64).map(|_| numbers(&mut stream, 20)).collect();
    let on = |n_threads: usize| {
        use rayon::prelude::*;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let all = || seen.par_iter().map(|seen| logits(&actor, 0, seen, 9)).collect::<Vec<_>>();
        pool.install(all).concat().iter().map(|logit| logit.to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(on(1), on(4));
}

/// A network of one layer, 2 → 3.
fn one_layer() -> Graph {
    Graph {
        nodes: vec![node("Gemm", &["x", "w", "b"], "y")],
        weights: vec![tensor("w", &[2, 3], &[0.0; 6]), tensor("b", &[3], &[1.0, 2.0, 3.0])],
        inputs: vec![value("x", FLOAT, &[Err("n"), Ok(2)])],
        outputs: vec![value("y", FLOAT, &[Err("n"), Ok(3)])],
    }
}

fn said(graph: Graph) -> String {
    OnnxActor::from_bytes(&model(graph, "")).unwrap_err().to_string()
}

#[test]
fn a_model_that_does_not_fit_is_told_what_is_wrong() {
    let whole = OnnxActor::from_bytes(&model(one_layer(), "")).unwrap();
    assert_eq!(logits(&whole, 0, &[1.0, 1.0], 3), [1.0, 2.0, 3.0]);
    let of_input = |input: Message| said(Graph { inputs: vec![input], ..one_layer() });
    let floats = "expected 32-bit floats of shape [batch, numbers seen]";
    assert_eq!(of_input(value("x", FLOAT, &[Ok(2)])), format!("its input `x` has shape [2], {floats}"));
    assert_eq!(
        of_input(value("x", FLOAT, &[Ok(1), Ok(1), Ok(2)])),
        format!("its input `x` has shape [1, 1, 2], {floats}")
    );
    assert_eq!(
        of_input(value("x", 11, &[Err("n"), Ok(2)])),
        "its input `x` is of type DOUBLE, expected FLOAT: 32-bit floats of shape [batch, numbers seen]"
    );
    assert_eq!(
        of_input(value("x", FLOAT, &[Ok(32), Ok(2)])),
        "its input `x` has shape [32, 2], expected a batch of 1 or of no fixed size"
    );
    assert_eq!(
        of_input(value("x", FLOAT, &[Err("n"), Err("m")])),
        "its input `x` has shape [?, ?], expected a fixed count of numbers seen: [batch, count]"
    );
    let two = Graph { outputs: [one_layer().outputs, one_layer().outputs].concat(), ..one_layer() };
    assert_eq!(
        said(two),
        "its graph has inputs `x` and outputs `y`, `y`, expected one input and one output for each agent"
    );
    let lost = Graph { outputs: vec![value("z", FLOAT, &[Err("n"), Ok(3)])], ..one_layer() };
    assert_eq!(said(lost), "its output `z` comes from no operator, expected one that makes it");
    let short = Graph { weights: vec![tensor("w", &[2, 3], &[0.0; 5])], ..one_layer() };
    assert_eq!(said(short), "its tensor `w` has 5 numbers, expected those of its shape [2, 3]");
    // data_location: EXTERNAL.
    let elsewhere = Graph { weights: vec![tensor("w", &[2, 3], &[]).number(14, 1)], ..one_layer() };
    assert_eq!(said(elsewhere), "its tensor `w` lies in another file, expected all weights in this one");
    let sum = node("ReduceSum", &["x"], "y")
        .message(5, &Message::default().text(1, "keepdims").number(3, 0).number(20, 2));
    let flat = Graph { nodes: vec![sum], ..one_layer() };
    assert_eq!(said(flat), "its output `y` has shape [], expected [1, actions], from input `x` alone");
}

#[test]
fn a_model_that_cannot_be_evaluated_or_is_not_the_same_each_time_is_refused() {
    let drawn = Graph { nodes: vec![node("RandomNormalLike", &["x"], "y")], ..one_layer() };
    let expected = "its operator `RandomNormalLike` (y) draws numbers";
    assert!(said(drawn.clone()).starts_with(expected), "{}", said(drawn));
    let branch = Message::default().text(1, "body").message(6, &Message::default()).number(20, 5);
    let loops = Graph { nodes: vec![node("Loop", &["x"], "y").message(5, &branch)], ..one_layer() };
    let message = said(loops);
    assert!(message.starts_with("its operator `Loop` (y) holds a graph of its own"), "{message}");
    let unknown = Graph { nodes: vec![node("Frobnicate", &["x"], "y")], ..one_layer() };
    let message = said(unknown);
    assert!(
        message.starts_with("its network cannot be evaluated") && message.contains("Frobnicate"),
        "{message}"
    );
    let narrow = Graph {
        weights: vec![tensor("w", &[5, 3], &[0.0; 15]), one_layer().weights[1].clone()],
        ..one_layer()
    };
    assert!(said(narrow).starts_with("its network cannot be evaluated"));
    // The second agent's logits come from what the first sees.
    let crossed = Graph {
        nodes: vec![one_layer().nodes[0].clone(), node("Relu", &["y"], "z")],
        inputs: vec![one_layer().inputs[0].clone(), value("v", FLOAT, &[Err("n"), Ok(2)])],
        outputs: vec![one_layer().outputs[0].clone(), value("z", FLOAT, &[Err("n"), Ok(3)])],
        ..one_layer()
    };
    let expected = "its output `z` has no fixed shape, expected [1, actions], from input `v` alone";
    assert_eq!(said(crossed), expected);
}

#[test]
fn an_observation_of_another_length_is_an_error_and_no_panic() {
    let actor = OnnxActor::from_bytes(&model(one_layer(), "")).unwrap();
    let asked = actor.logits(0, &[1.0; 7], &mut Scratch::default(), &mut [0.0; 3]);
    assert!(matches!(asked, Err(ActorError::Failed { .. })), "{asked:?}");
    assert!(!is_guarded());
}

#[test]
fn damaged_files_are_errors_and_no_panics() {
    let whole = write(&dense(&[[3, 4, 2]]), (Activation::Tanh, 1), "a header").unwrap();
    for end in 0..whole.len() {
        // The header is at the end: without it the network is still whole.
        let read = OnnxActor::from_bytes(&whole[..end]);
        assert!(read.is_err() || whole.len() - end < 60, "cut at {end}: {read:?}");
    }
    let mut stream = SeedStreams::new(5).stream("damage");
    let (mut n_refused, n_tried) = (0, 1500);
    for _ in 0..n_tried {
        let mut bytes = whole.clone();
        for _ in 0..=stream.below(4) {
            let place = stream.below(bytes.len());
            bytes[place] = (stream.below(256)) as u8;
        }
        n_refused += usize::from(OnnxActor::from_bytes(&bytes).is_err());
        let garbage: Vec<u8> = (0..stream.below(200)).map(|_| stream.below(256) as u8).collect();
        assert!(OnnxActor::from_bytes(&garbage).is_err(), "{garbage:?}");
    }
    assert!(n_refused > n_tried / 5, "{n_refused}");
}

#[test]
fn onnx_files_are_told_by_their_names_or_their_first_bytes() {
    let bytes = model(one_layer(), "");
    assert!(is_onnx("x", &bytes) && is_onnx("x.onnx", b"") && !is_onnx("x.safetensors", &bytes));
    for (name, bytes) in WEIGHTS {
        assert!(!is_onnx(name, bytes));
    }
}
