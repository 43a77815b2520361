//! Writer of the dual-agent scheduler's networks over sets ([`network`](super::network)) as an ONNX file.
//!
//! Rows beyond a count do not count in means and maxima, as in the networks themselves; their logits mean nothing, and are masked.

use crate::dual_agent::EpisodeOptions;
use crate::dual_agent::episode::ORDERING;
use crate::dual_agent::network::{Choices, HEAD, Layout, N_EXCHANGES};
use crate::dual_agent::observe::{
    CANDIDATE_EXPECTED, GLOBAL_FEATURES, JOB_EXPECTED, JOB_FEATURES, JOB_RELATIVE, JOB_TIME_LEFT,
    JOB_WORKERS, SERVER_FEATURES, WHOLE_PLACED,
};
use crate::dual_agent::proposals::PROPOSAL_MERIT;
use crate::dual_agent::residual::{Residual, SPEED_MIN, STOP, TIME_LEFT_SCALE, TOO_SLOW, WORKERS_SCALE};
use apportion_learn::network::NetworkError;
use apportion_learn::tensors::Tensors;

use apportion_learn::onnx::write::{Graph, Message, axes, floats, integers, model, node, number_of, tensor};

/// The parts of a decision that are written to ONNX: networks, rule and options.
#[derive(Clone, Copy, Debug)]
pub struct Sets<'a> {
    /// The weights, `actor.…`.
    pub tensors: &'a Tensors,
    /// Whether the agents hear each other's summaries.
    pub communicates: bool,
    /// The rule beside the networks.
    pub rule: Option<Residual>,
    /// Options of the episode, which give the numbers of rows and their kinds.
    pub episode: EpisodeOptions,
}

/// Both agents' networks as an ONNX file: inputs `observation` and `observation.1`, outputs `logits` and `logits.1`. `metadata` is
/// stored under the key `apportion`.
///
/// # Errors
/// If a network is missing.
pub fn write_sets(sets: &Sets<'_>, metadata: &str) -> Result<Vec<u8>, NetworkError> {
    let Sets { tensors, communicates, rule, episode } = *sets;
    let choices =
        if episode.proposals { Choices::Proposals } else { Choices::Servers { advised: rule.is_some() } };
    let window = episode.window;
    let lengths = [window.team_length(), episode.placement_length()];
    let actions = [window.n_jobs + 1, window.n_candidates()];
    let mut writer = Writer { graph: Graph::default(), tensors, communicates, rule, n_made: 0 };
    for agent in 0..2 {
        let name = |name: &str| if agent == 0 { name.to_owned() } else { format!("{name}.{agent}") };
        let seen = name("observation");
        writer.graph.inputs.push(floats(&seen, lengths[agent]));
        writer.graph.outputs.push(floats(&name("logits"), actions[agent]));
        let layout = Layout::of(agent, lengths[agent], actions[agent], choices);
        let team = writer.team(&seen, layout)?;
        let logits = match agent {
            ORDERING => writer.order(&team)?,
            _ => writer.place(&seen, &team, (layout, choices, actions[agent]))?,
        };
        writer.graph.nodes.push(node("Identity", &[&logits], &name("logits")));
    }
    Ok(model(writer.graph, metadata))
}

/// Names of the tensors of a set: members [batch × n × width], mean and maximum [batch × width].
struct Set {
    members: String,
    mean: String,
    most: String,
}

/// Names of the tensors that both agents decide from.
struct Team {
    rows: String,
    whole: String,
    jobs: Set,
    n_jobs: usize,
    s: String,
    q: String,
}

struct Writer<'a> {
    graph: Graph,
    tensors: &'a Tensors,
    communicates: bool,
    rule: Option<Residual>,
    n_made: usize,
}

impl Writer<'_> {
    fn fresh(&mut self) -> String {
        self.n_made += 1;
        format!("made.{}", self.n_made)
    }

    fn apply(&mut self, operator: &str, inputs: &[&str], attributes: &[Message]) -> String {
        let made = self.fresh();
        let written = node(operator, inputs, &made);
        let written = attributes.iter().fold(written, |all, attribute| all.message(5, attribute));
        self.graph.nodes.push(written);
        made
    }

    fn op(&mut self, operator: &str, inputs: &[&str]) -> String {
        self.apply(operator, inputs, &[])
    }

    fn constant(&mut self, shape: &[usize], numbers: &[f32]) -> String {
        let made = self.fresh();
        self.graph.weights.push(tensor(&made, shape, numbers));
        made
    }

    fn integers(&mut self, numbers: &[u64]) -> String {
        let made = self.fresh();
        self.graph.weights.push(integers(&made, numbers));
        made
    }

    /// Appends an operator on an input and a number.
    fn by(&mut self, operator: &str, input: &str, number: f32) -> String {
        let number = self.constant(&[1], &[number]);
        self.op(operator, &[input, &number])
    }

    fn concat(&mut self, inputs: &[&str], axis: u64) -> String {
        self.apply("Concat", inputs, &[number_of("axis", axis)])
    }

    fn slice(&mut self, input: &str, (from, length): (usize, usize), axis: usize) -> String {
        let [from, to, axis] = [from, from + length, axis].map(|number| self.integers(&[number as u64]));
        self.op("Slice", &[input, &from, &to, &axis])
    }

    /// Appends a reshape to [batch, `rest`…], whatever the size of the batch.
    fn reshape(&mut self, input: &str, rest: &[usize]) -> String {
        // −1, as the format writes it.
        let shape: Vec<u64> =
            [u64::MAX].into_iter().chain(rest.iter().map(|extent| *extent as u64)).collect();
        let shape = self.integers(&shape);
        self.op("Reshape", &[input, &shape])
    }

    fn n_layers(&self, name: &str) -> usize {
        let mut n_layers = 0;
        while self.tensors.contains(&format!("actor.{name}.{n_layers}.weight")) {
            n_layers += 1;
        }
        n_layers
    }

    /// Appends y = x Wᵀ + b, for all inputs of a layer or for a part of them, (first, length); without b for a part that does not
    /// begin at 0.
    fn gemm(
        &mut self,
        name: &str,
        layer: usize,
        input: &str,
        part: Option<(usize, usize)>,
    ) -> Result<String, NetworkError> {
        let tensors = self.tensors;
        let (shape, numbers) = tensors.get(&format!("actor.{name}.{layer}.weight"))?;
        let (_, bias) = tensors.get(&format!("actor.{name}.{layer}.bias"))?;
        let (from, length) = part.unwrap_or((0, shape[1]));
        let columns = numbers.chunks_exact(shape[1]).flat_map(|row| &row[from..from + length]);
        let weight: Vec<f32> = columns.copied().collect();
        let weight = self.constant(&[shape[0], length], &weight);
        let transposed = [number_of("transB", 1)];
        if from > 0 {
            return Ok(self.apply("Gemm", &[input, &weight], &transposed));
        }
        let bias = self.constant(&[shape[0]], bias);
        Ok(self.apply("Gemm", &[input, &weight, &bias], &transposed))
    }

    /// Appends all layers of a network, with the positive part before each but the first.
    fn layers(&mut self, name: &str, input: &str) -> Result<String, NetworkError> {
        let first = self.gemm(name, 0, input, None)?;
        self.further(name, first)
    }

    fn further(&mut self, name: &str, mut numbers: String) -> Result<String, NetworkError> {
        for layer in 1..self.n_layers(name) {
            let positive = self.op("Relu", &[&numbers]);
            numbers = self.gemm(name, layer, &positive, None)?;
        }
        Ok(numbers)
    }

    /// Appends a network of each member's numbers followed by numbers that all members are told: [batch × n × outputs].
    fn beside(
        &mut self,
        name: &str,
        (members, n, length): (&str, usize, usize),
        told: &str,
    ) -> Result<String, NetworkError> {
        let (shape, _) = self.tensors.get(&format!("actor.{name}.0.weight"))?;
        let (first, inputs) = (shape[0], shape[1]);
        let flat = self.reshape(members, &[length]);
        let own = self.gemm(name, 0, &flat, Some((0, length)))?;
        let mut sum = self.reshape(&own, &[n, first]);
        if inputs > length {
            let told = self.gemm(name, 0, told, Some((length, inputs - length)))?;
            let told = self.reshape(&told, &[1, first]);
            sum = self.op("Add", &[&sum, &told]);
        }
        let flat = self.reshape(&sum, &[first]);
        let given = self.further(name, flat)?;
        let n_outputs = self.tensors.get(&format!("actor.{name}.{}.bias", self.n_layers(name) - 1))?.0[0];
        Ok(self.reshape(&given, &[n, n_outputs]))
    }

    /// Appends the encoding of a set whose rows are [batch × n × length], of which `count` rows are members.
    fn encode(
        &mut self,
        name: &str,
        (rows, n, length): (&str, usize, usize),
        count: &str,
    ) -> Result<Set, NetworkError> {
        let flat = self.reshape(rows, &[length]);
        let encoded = self.layers(name, &flat)?;
        let encoded = self.op("Relu", &[&encoded]);
        let width = self.tensors.get(&format!("actor.{name}.0.bias"))?.0[0];
        let encoded = self.reshape(&encoded, &[n, width]);
        let places: Vec<f32> = (0..n).map(|place| place as f32).collect();
        let places = self.constant(&[1, n], &places);
        let there = self.op("Less", &[&places, count]);
        let there = self.apply("Cast", &[&there], &[number_of("to", 1)]);
        let there = self.reshape(&there, &[n, 1]);
        let members = self.op("Mul", &[&encoded, &there]);
        let reduced = [axes(&[1]), number_of("keepdims", 0)];
        let mean = self.apply("ReduceMean", &[&members], &reduced);
        let most = self.apply("ReduceMax", &[&members], &reduced);
        let mean = self.by("Mul", &mean, n as f32);
        let counted = self.by("Max", count, 1.0);
        let mean = self.op("Div", &[&mean, &counted]);
        Ok(Set { members, mean, most })
    }

    fn tell(&mut self, who: &str, set: &Set, told: &str) -> Result<Set, NetworkError> {
        let gate = self.layers(&format!("{who}_gate"), told)?;
        let gate = self.op("Sigmoid", &[&gate]);
        let gate = self.by("Mul", &gate, 2.0);
        let message = self.layers(&format!("{who}_message"), told)?;
        let width = self.tensors.get(&format!("actor.{who}_gate.0.bias"))?.0[0];
        let [gates, messages] = [&gate, &message].map(|numbers| self.reshape(numbers, &[1, width]));
        let mut both = |numbers: &str, gate: &str, message: &str| {
            let gated = self.op("Mul", &[numbers, gate]);
            self.op("Add", &[&gated, message])
        };
        Ok(Set {
            members: both(&set.members, &gates, &messages),
            mean: both(&set.mean, &gate, &message),
            most: both(&set.most, &gate, &message),
        })
    }

    fn heard(&mut self, other: &str) -> String {
        if self.communicates { other.to_owned() } else { self.by("Mul", other, 0.0) }
    }

    fn squeeze(&mut self, name: &str, set: &Set, whole: &str) -> Result<String, NetworkError> {
        let pooled = self.concat(&[&set.mean, &set.most, whole], 1);
        self.layers(name, &pooled)
    }

    fn team(&mut self, seen: &str, layout: Layout) -> Result<Team, NetworkError> {
        let Layout { n_jobs, n_servers } = layout;
        let [job_count, server_count] = [0, 1].map(|place| self.slice(seen, (place, 1), 1));
        let whole = self.slice(seen, (2, GLOBAL_FEATURES), 1);
        let rows = self.slice(seen, (HEAD, n_jobs * JOB_FEATURES), 1);
        let rows = self.reshape(&rows, &[n_jobs, JOB_FEATURES]);
        let servers = self.slice(seen, (layout.servers(), n_servers * SERVER_FEATURES), 1);
        let mut jobs = self.encode("jobs", (&rows, n_jobs, JOB_FEATURES), &job_count)?;
        let mut servers = self.encode("servers", (&servers, n_servers, SERVER_FEATURES), &server_count)?;
        for _ in 0..N_EXCHANGES {
            let s = self.squeeze("squeeze_jobs", &jobs, &whole)?;
            let q = self.squeeze("squeeze_servers", &servers, &whole)?;
            let (heard_s, heard_q) = (self.heard(&s), self.heard(&q));
            let (to_jobs, to_servers) = (self.concat(&[&s, &heard_q], 1), self.concat(&[&heard_s, &q], 1));
            jobs = self.tell("job", &jobs, &to_jobs)?;
            servers = self.tell("server", &servers, &to_servers)?;
        }
        let s = self.squeeze("squeeze_jobs", &jobs, &whole)?;
        let q = self.squeeze("squeeze_servers", &servers, &whole)?;
        Ok(Team { rows, whole, jobs, n_jobs, s, q })
    }

    fn width(&self) -> Result<usize, NetworkError> {
        Ok(self.tensors.get("actor.job_gate.0.bias")?.0[0])
    }

    fn order(&mut self, team: &Team) -> Result<String, NetworkError> {
        let (n, width) = (team.n_jobs, self.width()?);
        let mut scores = self.beside("score", (&team.jobs.members, n, width), &team.s)?;
        let heard = self.heard(&team.q);
        let told = self.concat(&[&team.s, &heard], 1);
        let mut stop = self.layers("stop", &told)?;
        if let Some(rule) = self.rule {
            let linear = self.beside("job", (&team.rows, n, JOB_FEATURES), &team.whole)?;
            let both = self.op("Add", &[&scores, &linear]);
            scores = self.jobs_beside(rule, team, &both);
            stop = self.by("Add", &stop, STOP);
        }
        let scores = self.reshape(&scores, &[n]);
        Ok(self.concat(&[&scores, &stop], 1))
    }

    /// Appends logits of jobs, by a rule's order and margin changed by `scores`.
    fn jobs_beside(&mut self, rule: Residual, team: &Team, scores: &str) -> String {
        let [time_left, relative, expected] = [JOB_TIME_LEFT, JOB_RELATIVE, JOB_EXPECTED]
            .map(|feature| self.slice(&team.rows, (feature, 1), 2));
        let [order, margin] = [0, 1].map(|score| self.slice(scores, (score, 1), 2));
        let left = self.by("Mul", &time_left, TIME_LEFT_SCALE);
        let mut order = self.op("Sub", &[&order, &left]);
        if rule.service > 0.0 {
            let workers = self.slice(&team.rows, (JOB_WORKERS, 1), 2);
            let workers = self.by("Mul", &workers, WORKERS_SCALE);
            let workers = self.by("Max", &workers, 1.0);
            let workers = self.op("Log", &[&workers]);
            let workers = self.by("Mul", &workers, rule.service as f32);
            order = self.op("Sub", &[&order, &workers]);
        }
        let alike = self.by("Max", &relative, SPEED_MIN);
        let alike = self.op("Log", &[&alike]);
        let more = self.op("Sub", &[&expected, &alike]);
        let more = self.by("Mul", &more, rule.expecting as f32);
        let speed = self.op("Add", &[&alike, &more]);
        let margin = self.op("Add", &[&margin, &speed]);
        let margin = self.by("Sub", &margin, rule.log_patience());
        let lost = self.op("Neg", &[&margin]);
        let lost = self.op("Relu", &[&lost]);
        let lost = self.by("Mul", &lost, TOO_SLOW);
        let placed = self.slice(&team.whole, (WHOLE_PLACED, 1), 1);
        let runs = self.by("Greater", &placed, 0.0);
        let runs = self.apply("Cast", &[&runs], &[number_of("to", 1)]);
        let runs = self.reshape(&runs, &[1, 1]);
        let lost = self.op("Mul", &[&lost, &runs]);
        self.op("Sub", &[&order, &lost])
    }

    fn place(
        &mut self,
        seen: &str,
        team: &Team,
        (layout, choices, n_actions): (Layout, Choices, usize),
    ) -> Result<String, NetworkError> {
        let (n, length) = (choices.n_rows(n_actions), choices.n_features());
        let row = self.slice(seen, (layout.candidates(), 1), 1);
        let rows = self.slice(seen, (layout.candidates() + 2, n * length), 1);
        let rows = self.reshape(&rows, &[n, length]);
        // The chosen job is a sum over jobs in which other jobs have the factor 0.
        let places: Vec<f32> = (0..team.n_jobs).map(|place| place as f32).collect();
        let places = self.constant(&[1, team.n_jobs], &places);
        let apart = self.op("Sub", &[&places, &row]);
        let apart = self.op("Abs", &[&apart]);
        let chosen = self.by("Less", &apart, 0.5);
        let chosen = self.apply("Cast", &[&chosen], &[number_of("to", 1)]);
        let chosen = self.reshape(&chosen, &[1, team.n_jobs]);
        let member = self.op("MatMul", &[&chosen, &team.jobs.members]);
        let width = self.width()?;
        let member = self.reshape(&member, &[width]);
        let heard = self.heard(&team.s);
        let told = self.concat(&[&member, &heard, &team.q], 1);
        let [network, linear] = choices.heads();
        let mut logits = self.beside(network, (&rows, n, length), &told)?;
        if let Some(rule) = self.rule {
            let linear = self.beside(linear, (&rows, n, length), "")?;
            logits = self.op("Add", &[&logits, &linear]);
            let of_rule = match choices {
                Choices::Proposals => self.slice(&rows, (PROPOSAL_MERIT, 1), 2),
                Choices::Servers { .. } => {
                    let expected = self.slice(&rows, (CANDIDATE_EXPECTED, 1), 2);
                    let advice = self.slice(seen, (layout.advice(), n), 1);
                    let advice = self.by("Mul", &advice, rule.advised as f32);
                    let advice = self.reshape(&advice, &[n, 1]);
                    let mut staying = vec![0.0; n];
                    staying[0] = rule.staying as f32;
                    let staying = self.constant(&[1, n, 1], &staying);
                    let sum = self.op("Add", &[&expected, &advice]);
                    self.op("Add", &[&sum, &staying])
                }
            };
            logits = self.op("Add", &[&logits, &of_rule]);
        }
        let logits = self.reshape(&logits, &[n]);
        if n == n_actions {
            return Ok(logits);
        }
        let others = self.slice(seen, (0, n_actions - n), 1);
        let others = self.by("Mul", &others, 0.0);
        Ok(self.concat(&[&logits, &others], 1))
    }
}
