//! The dual-agent scheduler's networks in training: those of [`dual_agent::network`](crate::dual_agent::network), with gradients.

use candle_core::{Device, Result, Tensor, Var};
use serde::{Deserialize, Serialize};

use crate::dual_agent::episode::ORDERING;
use crate::dual_agent::network::{Choices, HEAD, Layout, N_EXCHANGES, SetActor, count};
use crate::dual_agent::observe::{
    CANDIDATE_EXPECTED, GLOBAL_FEATURES, JOB_EXPECTED, JOB_FEATURES, JOB_RELATIVE, JOB_TIME_LEFT,
    JOB_WORKERS, SERVER_FEATURES, WHOLE_PLACED,
};
use crate::dual_agent::proposals::PROPOSAL_MERIT;
use crate::dual_agent::residual::{Residual, SPEED_MIN, STOP, TIME_LEFT_SCALE, TOO_SLOW, WORKERS_SCALE};
use apportion::workload::random::SeedStreams;
use apportion_learn::actor::Actor;
use apportion_learn::environment::Space;
use apportion_learn::training::linear::linear;
use apportion_learn::training::model::{Model, Parameters, orthogonal};
use apportion_learn::training::{TrainingError, within};

/// Options of networks over sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SetOptions {
    /// Length of the encoding of a member of a set, and of hidden layers.
    pub width: usize,
    /// Length of a summary.
    pub summary: usize,
    /// Whether the agents tell each other their summaries.
    pub communicates: bool,
    /// A rule to whose scores the networks add their own; needs `world.advised`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residual: Option<Residual>,
}

impl Default for SetOptions {
    fn default() -> Self {
        Self { width: 64, summary: 32, communicates: true, residual: None }
    }
}

impl SetOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// If an option is out of its range.
    pub fn check(&self) -> std::result::Result<(), TrainingError> {
        let (sizes, expected) = (1..=1024, "a whole number from 1 to 1024");
        within(sizes.contains(&self.width), "sets.width", self.width, expected)?;
        within(sizes.contains(&self.summary), "sets.summary", self.summary, expected)?;
        let patience = self.residual.map_or(1.0, |rule| rule.patience);
        let Residual { expecting, service, staying, advised, .. } =
            self.residual.unwrap_or(Residual::of(1.0));
        let part = (0.0..=1.0).contains(&expecting);
        within(part, "sets.residual.expecting", expecting, "a number from 0 to 1")?;
        let counts = (0.0..=10.0).contains(&service);
        within(counts, "sets.residual.service", service, "a number from 0 to 10")?;
        within(staying.is_finite(), "sets.residual.staying", staying, "a finite number")?;
        within(advised.is_finite(), "sets.residual.advised", advised, "a finite number")?;
        within(
            patience > 0.0 && patience <= 1.0,
            "sets.residual.patience",
            patience,
            "a number above 0, at most 1",
        )
    }
}

/// Layers of a network, (weight, bias), from its input on.
type Layers = Vec<(Var, Var)>;

/// The networks of both agents, and their critic.
#[derive(Debug)]
pub struct SetModel {
    parameters: Parameters,
    communicates: bool,
    beside: Option<Beside>,
    layouts: [(usize, Layout); 2],
    choices: Choices,
    jobs: Layers,
    servers: Layers,
    squeeze_jobs: Layers,
    squeeze_servers: Layers,
    exchange: [[Layers; 2]; 2],
    score: Layers,
    stop: Layers,
    candidate: Layers,
    critic: Layers,
}

/// A rule, and linear functions of a job's row with the whole and of a choice's row.
#[derive(Debug)]
struct Beside {
    rule: Residual,
    job: Layers,
    place: Layers,
}

/// Tensors that both agents decide from: rows of jobs and the whole as observed, jobs [batch × jobs × width] after communication,
/// and the summaries [batch × summary].
struct Team {
    rows: Tensor,
    whole: Tensor,
    jobs: Tensor,
    n_jobs: usize,
    s: Tensor,
    q: Tensor,
}

/// A set after encoding.
struct Squeezed {
    rows: Tensor,
    mean: Tensor,
    most: Tensor,
}

impl SetModel {
    /// Networks with drawn weights: tensors `actor.NETWORK.LAYER.weight` and `….bias`, `critic.LAYER.weight` and `….bias`. Weights
    /// start with orthogonal rows or columns of gain √2. Heads, gates and messages start near 0, so that all actions begin equal
    /// and messages begin empty.
    ///
    /// # Errors
    /// If the spaces are not those of two agents, or the library fails.
    pub fn new(
        spaces: &[Space],
        state_length: usize,
        (options, proposals): (&SetOptions, bool),
        streams: SeedStreams,
    ) -> std::result::Result<Self, TrainingError> {
        options.check()?;
        within(spaces.len() == 2, "sets", format!("for {} agents", spaces.len()), "a system of two")?;
        let mut parameters = Parameters::default();
        let mut stream = streams.stream("initial weights");
        let mut network = |name: &str, sizes: &[usize], last: f64| {
            let mut layers = Vec::new();
            for (number, pair) in sizes.windows(2).enumerate() {
                let shape = [pair[1], pair[0]];
                let gain = if number + 2 < sizes.len() { std::f64::consts::SQRT_2 } else { last };
                let numbers = orthogonal(shape, gain, &mut stream);
                let weight = parameters.add(format!("{name}.{number}.weight"), &shape, numbers)?;
                let bias = parameters.add(format!("{name}.{number}.bias"), &[pair[1]], vec![0.0; pair[1]])?;
                layers.push((weight, bias));
            }
            Ok::<_, TrainingError>(layers)
        };
        let SetOptions { width, summary, communicates, residual } = *options;
        let (pooled, told, open) = (2 * width + GLOBAL_FEATURES, 2 * summary, std::f64::consts::SQRT_2);
        let advised = residual.is_some();
        let choices = if proposals { Choices::Proposals } else { Choices::Servers { advised } };
        let (heads, candidate) = (choices.heads(), choices.n_features() + width + told);
        let jobs = network("actor.jobs", &[JOB_FEATURES, width, width], open)?;
        let servers = network("actor.servers", &[SERVER_FEATURES, width, width], open)?;
        let squeeze_jobs = network("actor.squeeze_jobs", &[pooled, width, summary], 1.0)?;
        let squeeze_servers = network("actor.squeeze_servers", &[pooled, width, summary], 1.0)?;
        let mut told_to = |name: &str| network(&format!("actor.{name}"), &[told, width], 0.01);
        let exchange = [
            [told_to("job_gate")?, told_to("job_message")?],
            [told_to("server_gate")?, told_to("server_message")?],
        ];
        // Networks beside a rule begin as the rule: their last layers are 0.
        let (n_scores, small) = if residual.is_some() { (2, 0.0) } else { (1, 0.01) };
        let score = network("actor.score", &[width + summary, width, n_scores], small)?;
        let stop = network("actor.stop", &[told, width, 1], small)?;
        let candidate = network(&format!("actor.{}", heads[0]), &[candidate, width, width, 1], small)?;
        let beside = match residual {
            None => None,
            Some(rule) => {
                let job = network("actor.job", &[JOB_FEATURES + GLOBAL_FEATURES, 2], small)?;
                let place = network(&format!("actor.{}", heads[1]), &[choices.n_features(), 1], small)?;
                Some(Beside { rule, job, place })
            }
        };
        let critic = network("critic", &[state_length, 64, 64, 1], 1.0)?;
        let layout = |agent: usize| {
            let Space { n_actions, .. } = spaces[agent];
            (n_actions, Layout::of(agent, spaces[agent].observation_length(), n_actions, choices))
        };
        Ok(Self {
            parameters,
            communicates,
            beside,
            layouts: [layout(0), layout(1)],
            choices,
            jobs,
            servers,
            squeeze_jobs,
            squeeze_servers,
            exchange,
            score,
            stop,
            candidate,
            critic,
        })
    }

    fn team(&self, agent: usize, seen: &Tensor) -> Result<Team> {
        let (_, layout) = self.layouts[agent];
        let counted = seen.narrow(1, 0, 2)?.to_vec2::<f32>()?;
        let counts = |place: usize| counted.iter().map(|row| count(row[place])).collect::<Vec<_>>();
        let (n_jobs, n_servers) = (counts(0), counts(1));
        let whole = seen.narrow(1, 2, HEAD - 2)?.contiguous()?;
        let part = |from: usize, n: usize, length: usize| set(seen, from, (n, length));
        let most = |counts: &[usize]| counts.iter().copied().max().unwrap_or(0).max(1);
        let rows = part(HEAD, most(&n_jobs), JOB_FEATURES)?;
        let servers = part(layout.servers(), most(&n_servers), SERVER_FEATURES)?;
        let mut jobs = encode(&self.jobs, &rows, &n_jobs)?;
        let mut servers = encode(&self.servers, &servers, &n_servers)?;
        let heard = |other: &Tensor| if self.communicates { Ok(other.clone()) } else { other.zeros_like() };
        let squeeze = |layers: &Layers, set: &Squeezed| {
            dense(layers, &Tensor::cat(&[&set.mean, &set.most, &whole], 1)?)
        };
        for _ in 0..N_EXCHANGES {
            let s = squeeze(&self.squeeze_jobs, &jobs)?;
            let q = squeeze(&self.squeeze_servers, &servers)?;
            jobs = tell(&self.exchange[0], &jobs, &Tensor::cat(&[&s, &heard(&q)?], 1)?)?;
            servers = tell(&self.exchange[1], &servers, &Tensor::cat(&[&heard(&s)?, &q], 1)?)?;
        }
        let s = squeeze(&self.squeeze_jobs, &jobs)?;
        let q = squeeze(&self.squeeze_servers, &servers)?;
        Ok(Team { rows, whole, jobs: jobs.rows, n_jobs: most(&n_jobs), s, q })
    }

    fn heard(&self, other: &Tensor) -> Result<Tensor> {
        if self.communicates { Ok(other.clone()) } else { other.zeros_like() }
    }
}

/// Encodes a set; `counts` is the number of members in each observation.
fn encode(layers: &Layers, rows: &Tensor, counts: &[usize]) -> Result<Squeezed> {
    let (batch, n, _) = rows.dims3()?;
    let encoded = dense(layers, rows)?.relu()?;
    let there = |row: usize| (0..n).map(move |member| f32::from(u8::from(member < counts[row])));
    let mask: Vec<f32> = (0..batch).flat_map(there).collect();
    let mask = Tensor::from_vec(mask, (batch, n, 1), &Device::Cpu)?;
    let encoded = encoded.broadcast_mul(&mask)?;
    let shares = counts.iter().map(|count| 1.0 / (*count).max(1) as f32).collect();
    let shares = Tensor::from_vec(shares, (batch, 1), &Device::Cpu)?;
    let mean = encoded.sum(1)?.broadcast_mul(&shares)?;
    let most = encoded.max(1)?;
    Ok(Squeezed { rows: encoded, mean, most })
}

/// Rows [batch × n × length] of a set that begins at position `from` of each observation.
fn set(seen: &Tensor, from: usize, (n, length): (usize, usize)) -> Result<Tensor> {
    seen.narrow(1, from, n * length)?.contiguous()?.reshape((seen.dim(0)?, n, length))
}

/// The output of layers with the positive part between them.
fn dense(layers: &Layers, input: &Tensor) -> Result<Tensor> {
    let mut numbers = input.clone();
    for (number, (weight, bias)) in layers.iter().enumerate() {
        numbers = linear(&numbers, weight, bias)?;
        if number + 1 < layers.len() {
            numbers = numbers.relu()?;
        }
    }
    Ok(numbers)
}

fn tell([gate, message]: &[Layers; 2], set: &Squeezed, told: &Tensor) -> Result<Squeezed> {
    // 2σ(x) = 1 + tanh(x/2).
    let gate = ((dense(gate, told)? * 0.5)?.tanh()? + 1.0)?;
    let message = dense(message, told)?;
    let both = |numbers: &Tensor| (numbers * &gate)? + &message;
    let (mean, most) = (both(&set.mean)?, both(&set.most)?);
    let rows = set.rows.broadcast_mul(&gate.unsqueeze(1)?)?.broadcast_add(&message.unsqueeze(1)?)?;
    Ok(Squeezed { rows, mean, most })
}

/// Members, each followed by the numbers that all are told: [batch × n × …].
fn beside(members: &Tensor, told: &Tensor) -> Result<Tensor> {
    let (batch, n, _) = members.dims3()?;
    let told = told.unsqueeze(1)?.broadcast_as((batch, n, told.dim(1)?))?.contiguous()?;
    Tensor::cat(&[members, &told], 2)
}

/// Logits [batch × n × 1] of jobs, by a rule's order and margin changed by `scores` [batch × n × 2].
fn jobs_beside(rule: Residual, rows: &Tensor, whole: &Tensor, scores: &Tensor) -> Result<Tensor> {
    let left = (rows.narrow(2, JOB_TIME_LEFT, 1)? * f64::from(TIME_LEFT_SCALE))?;
    let mut order = (scores.narrow(2, 0, 1)? - left)?;
    if rule.service > 0.0 {
        let workers = (rows.narrow(2, JOB_WORKERS, 1)? * f64::from(WORKERS_SCALE))?;
        order = (order - (workers.maximum(1.0)?.log()? * rule.service)?)?;
    }
    let alike = rows.narrow(2, JOB_RELATIVE, 1)?.maximum(f64::from(SPEED_MIN))?.log()?;
    let relative = (&alike + ((rows.narrow(2, JOB_EXPECTED, 1)? - &alike)? * rule.expecting)?)?;
    let margin = ((scores.narrow(2, 1, 1)? + relative)? - f64::from(rule.log_patience()))?;
    let runs = whole.narrow(1, WHOLE_PLACED, 1)?.gt(0.0)?.to_dtype(scores.dtype())?.unsqueeze(2)?;
    // min(0, x) = −max(0, −x).
    let lost = (margin.neg()?.relu()? * f64::from(TOO_SLOW))?.broadcast_mul(&runs)?;
    order - lost
}

/// Logits [batch × n × 1] as [batch × room], padded with zeros.
fn widened(logits: &Tensor, room: usize) -> Result<Tensor> {
    let logits = logits.squeeze(2)?;
    let n = logits.dim(1)?;
    logits.pad_with_zeros(1, 0, room.saturating_sub(n))
}

impl Model for SetModel {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn logits(&self, agent: usize, observations: &Tensor) -> Result<Tensor> {
        let (n_actions, layout) = self.layouts[agent];
        let Team { rows, whole, jobs, n_jobs, s, q } = self.team(agent, observations)?;
        if agent == ORDERING {
            let mut scores = dense(&self.score, &beside(&jobs, &s)?)?;
            let mut stop = dense(&self.stop, &Tensor::cat(&[&s, &self.heard(&q)?], 1)?)?;
            if let Some(Beside { rule, job, .. }) = &self.beside {
                let linear = dense(job, &beside(&rows, &whole)?)?;
                scores = jobs_beside(*rule, &rows, &whole, &(scores + linear)?)?;
                stop = (stop + f64::from(STOP))?;
            }
            let scores = widened(&scores, n_actions - 1)?;
            return Tensor::cat(&[&scores, &stop], 1);
        }
        let head = observations.narrow(1, layout.candidates(), 2)?.to_vec2::<f32>()?;
        let n = head.iter().map(|row| count(row[1])).max().unwrap_or(0).clamp(1, n_actions);
        let rows = set(observations, layout.candidates() + 2, (n, self.choices.n_features()))?;
        let (batch, _, width) = jobs.dims3()?;
        let last = n_jobs - 1;
        let chosen: Vec<u32> = head
            .iter()
            .enumerate()
            .map(|(row, head)| u32::try_from(row * n_jobs + count(head[0]).min(last)).unwrap_or(0))
            .collect();
        let chosen = Tensor::from_vec(chosen, batch, &Device::Cpu)?;
        let chosen = jobs.contiguous()?.reshape((batch * n_jobs, width))?.index_select(&chosen, 0)?;
        let told = Tensor::cat(&[&chosen, &self.heard(&s)?, &q], 1)?;
        let mut logits = dense(&self.candidate, &beside(&rows, &told)?)?;
        if let Some(Beside { rule, place, .. }) = &self.beside {
            let of_rule = match self.choices {
                Choices::Proposals => rows.narrow(2, PROPOSAL_MERIT, 1)?,
                Choices::Servers { .. } => {
                    let advice = observations.narrow(1, layout.advice(), n)?.unsqueeze(2)?;
                    let expected = rows.narrow(2, CANDIDATE_EXPECTED, 1)?;
                    let mut staying = vec![0.0; n];
                    staying[0] = rule.staying as f32;
                    let staying = Tensor::from_vec(staying, (1, n, 1), &Device::Cpu)?;
                    ((advice * rule.advised)? + expected)?.broadcast_add(&staying)?
                }
            };
            logits = ((logits + dense(place, &rows)?)? + of_rule)?;
        }
        widened(&logits, n_actions)
    }

    fn values(&self, states: &Tensor) -> Result<Tensor> {
        let mut numbers = states.clone();
        for (number, (weight, bias)) in self.critic.iter().enumerate() {
            numbers = linear(&numbers, weight, bias)?;
            if number + 1 < self.critic.len() {
                numbers = numbers.tanh()?;
            }
        }
        numbers.squeeze(1)
    }

    fn actor(&self) -> std::result::Result<Box<dyn Actor>, TrainingError> {
        Ok(Box::new(SetActor::from_tensors(
            &self.parameters.to_tensors()?,
            self.communicates,
            self.beside.as_ref().map(|beside| beside.rule),
        )?))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::dual_agent::Tables;
    use crate::dual_agent::{DualAgentWorld, Jobs};
    use apportion_learn::actor::Scratch;
    use apportion_learn::environment::Environment;

    /// (observation, logits of each form, mask).
    type Seen = (Vec<f32>, Vec<Vec<f32>>, Vec<bool>);

    /// The logits of both forms of the networks for observations of both agents on the way through an episode.
    #[test]
    fn the_actor_decides_as_the_model_in_training_does() {
        let tables = Arc::new(Tables::embedded().unwrap());
        let jobs = Jobs::Fixed(12);
        let world = DualAgentWorld {
            jobs,
            scale: 0.01,
            seen_jobs: 7,
            seen_servers: 10,
            gap_s: 10.0,
            ..DualAgentWorld::default()
        };
        let rule =
            Some(Residual { expecting: 0.4, service: 0.7, staying: 0.05, advised: 1.0, ..Residual::of(0.5) });
        let kinds = [
            (true, None, false),
            (false, None, false),
            (true, rule, false),
            (true, None, true),
            (true, rule, true),
        ];
        for (communicates, residual, proposals) in kinds {
            let world = DualAgentWorld { advised: residual.is_some(), proposals, ..world.clone() };
            let mut environment = world.environment(&tables).unwrap();
            let options = SetOptions { width: 12, summary: 5, communicates, residual };
            let spaces = environment.spaces().to_vec();
            let streams = SeedStreams::new(7);
            let options = (&options, proposals);
            let model = SetModel::new(&spaces, environment.state_length(), options, streams).unwrap();
            // Weights that start near 0 would hide mistakes.
            let mut draws = streams.stream("test");
            for (_, variable) in model.parameters().iter() {
                let numbers: Vec<f32> =
                    (0..variable.elem_count()).map(|_| draws.normal(0.0, 0.3) as f32).collect();
                variable.set(&Tensor::from_vec(numbers, variable.shape(), &Device::Cpu).unwrap()).unwrap();
            }
            let actor = model.actor().unwrap();
            let mut seen_by: [Seen; 2] = Default::default();
            environment.reset(3);
            for step in 0..120 {
                let agent = environment.agent();
                let Space { n_actions, .. } = spaces[agent];
                let mut seen = vec![0.0; spaces[agent].observation_length()];
                let mut mask = vec![false; n_actions];
                environment.observe(&mut seen, &mut mask);
                let mut logits = vec![0.0; n_actions];
                actor.logits(agent, &seen, &mut Scratch::default(), &mut logits).unwrap();
                seen_by[agent].0.extend(&seen);
                seen_by[agent].1.push(logits);
                seen_by[agent].2.extend(&mask);
                let allowed: Vec<usize> = (0..n_actions).filter(|action| mask[*action]).collect();
                let over = environment.step(*draws.choice(&allowed)).unwrap().status.is_over();
                if over {
                    environment.reset(step);
                }
            }
            for (agent, (seen, expected, mask)) in seen_by.iter().enumerate() {
                assert!(expected.len() > 10, "agent {agent} had {} turns", expected.len());
                let batch = (expected.len(), spaces[agent].observation_length());
                let found = model.logits(agent, &Tensor::from_slice(seen, batch, &Device::Cpu).unwrap());
                let found = found.unwrap().to_vec2::<f32>().unwrap();
                let pairs = found.iter().flatten().zip(expected.iter().flatten()).zip(mask);
                for ((found, expected), _) in pairs.filter(|(_, allowed)| **allowed) {
                    // Rounding of a margin is multiplied by `TOO_SLOW`, so the tolerance is wider.
                    let close = if *expected < STOP { 1e-4 } else { 1e-5 };
                    assert!((found - expected).abs() < close * expected.abs().max(1.0), "{found} {expected}");
                }
            }
        }
    }
}
