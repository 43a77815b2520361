//! The two agents' networks for decisions. Sets of jobs and servers are squeezed into two summaries, which are all that the
//! agents tell each other, so the cost is linear in jobs and servers, and decisions depend neither on the order of rows nor
//! on the room for them.
//!
//! ```text
//! eᵢ = encode(job i)      s = squeeze(mean e, max e, whole)      e ← e ⊙ 2σ(gate[s, q]) + message[s, q]
//! hₘ = encode(server m)   q = squeeze(mean h, max h, whole)      h ← h ⊙ 2σ(gate[s, q]) + message[s, q]     twice
//! ordering: logit of job i = score[eᵢ, s], of stopping = stop[s, q]
//! placement: logit of candidate c = candidate[c, e of the chosen job, s, q]
//! ```
//!
//! A candidate is a server, or a whole placement that a rule proposes ([`Choices`]); each kind has networks of its own names.
//!
//! Beside a rule ([`residual`](super::residual)), scores and logits are added to the rule's, together with linear functions of
//! the rows themselves, `job` and `place`.
//!
//! Gates and messages are equal for all members of a set, and gates are positive. New means and maxima follow from the old ones, so
//! communication needs no pass over the sets.

use serde::Deserialize as _;

use super::residual::{Residual, STOP};
use crate::dual_agent::episode::ORDERING;
use crate::dual_agent::observe::{CANDIDATE_FEATURES, GLOBAL_FEATURES, JOB_FEATURES, SERVER_FEATURES};
use crate::dual_agent::proposals::{N_PROPOSALS, PROPOSAL_FEATURES, PROPOSAL_MERIT};
use apportion_learn::actor::{Actor, ActorError, Scratch};
use apportion_learn::checkpoint::{Checkpoint, CheckpointError, NetworkKind};
use apportion_learn::network::{Activation, Mlp, NetworkError};
use apportion_learn::tensors::Tensors;

/// The kind of these networks in checkpoints.
pub const NAME: &str = "dual_agent";

/// The number of times that the summaries are exchanged.
pub const N_EXCHANGES: usize = 2;

/// Length of an observation before the sets: two counts, and the numbers about the whole.
pub const HEAD: usize = 2 + GLOBAL_FEATURES;

/// The choices of the placement agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choices {
    /// Servers, one after another.
    Servers {
        /// Whether the agent sees a rule's choice.
        advised: bool,
    },
    /// Whole placements, which a rule proposes.
    Proposals,
}

/// Prefixes of the names of tensors that belong to one of the [`Choices`] alone.
pub const HEADS: [&str; 4] = ["actor.candidate.", "actor.place.", "actor.proposal.", "actor.choice."];

impl Choices {
    /// Length of a choice's row.
    pub const fn n_features(self) -> usize {
        match self {
            Self::Servers { .. } => CANDIDATE_FEATURES,
            Self::Proposals => PROPOSAL_FEATURES,
        }
    }

    /// The names of the network that scores choices, and of the linear function beside a rule.
    pub const fn heads(self) -> [&'static str; 2] {
        match self {
            Self::Servers { .. } => ["candidate", "place"],
            Self::Proposals => ["proposal", "choice"],
        }
    }

    /// The number of rows of choices, for a number of actions.
    pub const fn n_rows(self, n_actions: usize) -> usize {
        match self {
            Self::Servers { .. } => n_actions,
            Self::Proposals => N_PROPOSALS,
        }
    }
}

/// The layout of sets in an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of rows for jobs.
    pub n_jobs: usize,
    /// The number of rows for servers.
    pub n_servers: usize,
}

impl Layout {
    /// The layout of an agent's observation, from the lengths of observation and logits and the choices of the placement agent.
    pub fn of(agent: usize, n_numbers: usize, n_actions: usize, choices: Choices) -> Self {
        let n = n_actions.saturating_sub(1);
        let rest = n_numbers.saturating_sub(HEAD);
        if agent == ORDERING {
            Self { n_jobs: n, n_servers: rest.saturating_sub(n * JOB_FEATURES) / SERVER_FEATURES }
        } else {
            let advice = if choices == (Choices::Servers { advised: true }) { n_actions } else { 0 };
            let rows = choices.n_rows(n_actions) * choices.n_features();
            let others = 2 + rows + advice + n * SERVER_FEATURES;
            Self { n_jobs: rest.saturating_sub(others) / JOB_FEATURES, n_servers: n }
        }
    }

    /// Position of the rows of servers.
    pub const fn servers(&self) -> usize {
        HEAD + self.n_jobs * JOB_FEATURES
    }

    /// Position of the chosen job's row number, followed by the candidates.
    pub const fn candidates(&self) -> usize {
        self.servers() + self.n_servers * SERVER_FEATURES
    }

    /// Position of the advice, if there is any.
    pub const fn advice(&self) -> usize {
        self.candidates() + 2 + (self.n_servers + 1) * CANDIDATE_FEATURES
    }
}

/// The networks of both agents.
#[derive(Clone, Debug, PartialEq)]
pub struct SetActor {
    communicates: bool,
    width: usize,
    summary: usize,
    jobs: Mlp,
    servers: Mlp,
    squeeze_jobs: Mlp,
    squeeze_servers: Mlp,
    /// Gate and message of jobs, and gate and message of servers.
    exchange: [[Mlp; 2]; 2],
    score: Mlp,
    stop: Mlp,
    candidate: Mlp,
    choices: Choices,
    beside: Option<Beside>,
}

/// A rule, and linear functions of a job's row with the whole and of a choice's row.
#[derive(Clone, Debug, PartialEq)]
struct Beside {
    rule: Residual,
    job: Mlp,
    place: Mlp,
}

/// A set after encoding, with the gates and messages that it has received.
struct Squeezed {
    /// Members as encoded: [member × width].
    rows: Vec<f32>,
    mean: Vec<f32>,
    most: Vec<f32>,
    /// Product of the gates so far: a member is now rows ⊙ gate + message.
    gate: Vec<f32>,
    message: Vec<f32>,
}

impl SetActor {
    /// Networks from the tensors `actor.….LAYER.weight` and `….bias`, alone or beside a rule. Agents that do not communicate get
    /// zeros for each other's summaries.
    ///
    /// # Errors
    /// If a tensor is missing, or sizes do not fit.
    pub fn from_tensors(
        tensors: &Tensors,
        communicates: bool,
        rule: Option<Residual>,
    ) -> Result<Self, NetworkError> {
        let network = |name: &str| Mlp::from_tensors(tensors, &format!("actor.{name}"), Activation::Relu);
        let jobs = network("jobs")?;
        let squeeze_jobs = network("squeeze_jobs")?;
        let (width, summary) = (jobs.n_outputs(), squeeze_jobs.n_outputs());
        let choices = if tensors.contains("actor.proposal.0.weight") {
            Choices::Proposals
        } else {
            Choices::Servers { advised: rule.is_some() }
        };
        let [candidate, place] = choices.heads();
        let beside =
            |rule| Ok::<_, NetworkError>(Beside { rule, job: network("job")?, place: network(place)? });
        let actor = Self {
            communicates,
            width,
            summary,
            jobs,
            servers: network("servers")?,
            squeeze_jobs,
            squeeze_servers: network("squeeze_servers")?,
            exchange: [
                [network("job_gate")?, network("job_message")?],
                [network("server_gate")?, network("server_message")?],
            ],
            score: network("score")?,
            stop: network("stop")?,
            candidate: network(candidate)?,
            choices,
            beside: rule.map(beside).transpose()?,
        };
        let [[job_gate, job_message], [server_gate, server_message]] = &actor.exchange;
        let pooled = 2 * width + GLOBAL_FEATURES;
        let n_scores = if rule.is_some() { 2 } else { 1 };
        let mut sizes = vec![
            ("jobs", &actor.jobs, JOB_FEATURES, width),
            ("servers", &actor.servers, SERVER_FEATURES, width),
            ("squeeze_jobs", &actor.squeeze_jobs, pooled, summary),
            ("squeeze_servers", &actor.squeeze_servers, pooled, summary),
            ("job_gate", job_gate, 2 * summary, width),
            ("job_message", job_message, 2 * summary, width),
            ("server_gate", server_gate, 2 * summary, width),
            ("server_message", server_message, 2 * summary, width),
            ("score", &actor.score, width + summary, n_scores),
            ("stop", &actor.stop, 2 * summary, 1),
            (candidate, &actor.candidate, choices.n_features() + width + 2 * summary, 1),
        ];
        if let Some(Beside { job, place, .. }) = &actor.beside {
            sizes.push(("job", job, JOB_FEATURES + GLOBAL_FEATURES, 2));
            sizes.push((choices.heads()[1], place, choices.n_features(), 1));
        }
        for (name, network, inputs, outputs) in sizes {
            let found = [network.n_inputs(), network.n_outputs()];
            if found != [inputs, outputs] {
                return Err(NetworkError::Shape {
                    name: format!("actor.{name}"),
                    shape: found.to_vec(),
                    expected: format!("{inputs} inputs and {outputs} outputs"),
                });
            }
        }
        Ok(actor)
    }

    /// Networks from a checkpoint's weights.
    ///
    /// # Errors
    /// If the weights are of another network, or damaged.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Self, CheckpointError> {
        match &checkpoint.header.network {
            NetworkKind::Own { name } if name == NAME => {}
            NetworkKind::Own { name } => return Err(CheckpointError::Kind { name: name.clone() }),
            NetworkKind::Mlp { .. } => {
                return Err(CheckpointError::Header { reason: format!("its network is no `{NAME}`") });
            }
        }
        let (communicates, rule) = options_of(checkpoint)?;
        Ok(Self::from_tensors(&checkpoint.weights(), communicates, rule)?)
    }

    fn encode(&self, network: &Mlp, rows: &[f32], n_features: usize, scratch: &mut Scratch) -> Squeezed {
        let n = rows.len() / n_features;
        let mut encoded = vec![0.0; n * self.width];
        let (mut mean, mut most) = (vec![0.0; self.width], vec![0.0_f32; self.width]);
        for (row, output) in rows.chunks_exact(n_features).zip(encoded.chunks_exact_mut(self.width)) {
            network.forward(row, scratch, output);
            for ((value, mean), most) in output.iter_mut().zip(&mut mean).zip(&mut most) {
                *value = value.max(0.0);
                *mean += *value / n as f32;
                *most = most.max(*value);
            }
        }
        Squeezed { rows: encoded, mean, most, gate: vec![1.0; self.width], message: vec![0.0; self.width] }
    }

    fn squeeze(&self, network: &Mlp, set: &Squeezed, whole: &[f32], scratch: &mut Scratch) -> Vec<f32> {
        let input = [&set.mean[..], &set.most, whole].concat();
        let mut summary = vec![0.0; self.summary];
        network.forward(&input, scratch, &mut summary);
        summary
    }

    fn tell(&self, [gate, message]: &[Mlp; 2], set: &mut Squeezed, told: &[f32], scratch: &mut Scratch) {
        let mut gates = vec![0.0; self.width];
        let mut messages = vec![0.0; self.width];
        gate.forward(told, scratch, &mut gates);
        message.forward(told, scratch, &mut messages);
        for (place, (gate, message)) in gates.into_iter().zip(messages).enumerate() {
            let gate = 2.0 / (1.0 + (-gate).exp());
            for number in [&mut set.mean[place], &mut set.most[place], &mut set.message[place]] {
                *number = *number * gate + message;
            }
            set.gate[place] *= gate;
        }
    }

    /// Writes a member of a set, changed by the set's gate and message.
    fn member(&self, set: &Squeezed, row: usize, output: &mut [f32]) {
        let encoded = set.rows[row * self.width..].iter().zip(&set.gate).zip(&set.message);
        for (output, ((value, gate), message)) in output.iter_mut().zip(encoded) {
            *output = value * gate + message;
        }
    }
    /// Writes logits of jobs, from the set's members and its summary, and from the observed rows and the whole.
    fn order(
        &self,
        (jobs, s): (&Squeezed, &[f32]),
        (rows, whole): (&[f32], &[f32]),
        scratch: &mut Scratch,
        logits: &mut [f32],
    ) {
        let mut member = vec![0.0; self.width];
        let (mut score, mut linear) = (vec![0.0; self.score.n_outputs()], [0.0; 2]);
        for (number, (row, logit)) in rows.chunks_exact(JOB_FEATURES).zip(logits).enumerate() {
            self.member(jobs, number, &mut member);
            self.score.forward(&[&member[..], s].concat(), scratch, &mut score);
            *logit = score[0];
            if let Some(Beside { rule, job, .. }) = &self.beside {
                job.forward(&[row, whole].concat(), scratch, &mut linear);
                *logit = rule.job(whole, row, [score[0] + linear[0], score[1] + linear[1]]);
            }
        }
    }

    /// Writes logits of candidates.
    fn place(
        &self,
        (rows, advice): (&[f32], &[f32]),
        told: &[f32],
        scratch: &mut Scratch,
        logits: &mut [f32],
    ) {
        let (mut own, mut linear) = ([0.0], [0.0]);
        for (number, (row, logit)) in rows.chunks_exact(self.choices.n_features()).zip(logits).enumerate() {
            self.candidate.forward(&[row, told].concat(), scratch, &mut own);
            *logit = own[0];
            if let Some(Beside { rule, place, .. }) = &self.beside {
                place.forward(row, scratch, &mut linear);
                let advised = advice.get(number).copied().unwrap_or_default();
                *logit += linear[0]
                    + match self.choices {
                        Choices::Servers { .. } => rule.candidate(number == 0, row, advised),
                        Choices::Proposals => row[PROPOSAL_MERIT],
                    };
            }
        }
    }
}

/// Options of a checkpoint's networks: (whether the agents tell each other their summaries, the rule beside them).
///
/// # Errors
/// If its header cannot be read.
pub fn options_of(checkpoint: &Checkpoint) -> Result<(bool, Option<Residual>), CheckpointError> {
    let silent = checkpoint.header.spec.pointer("/sets/communicates") == Some(&false.into());
    let rule = checkpoint.header.spec.pointer("/sets/residual").filter(|rule| !rule.is_null());
    let rule = rule.map(Residual::deserialize).transpose();
    let rule = rule.map_err(|error| CheckpointError::Header { reason: error.to_string() })?;
    Ok((!silent, rule))
}

/// The value of a count in an observation.
#[expect(clippy::cast_sign_loss, reason = "a count")]
pub fn count(number: f32) -> usize {
    number as usize
}

impl Actor for SetActor {
    fn logits(
        &self,
        agent: usize,
        observation: &[f32],
        scratch: &mut Scratch,
        logits: &mut [f32],
    ) -> Result<(), ActorError> {
        let layout = Layout::of(agent, observation.len(), logits.len(), self.choices);
        let n_jobs = count(observation[0]).min(layout.n_jobs);
        let n_servers = count(observation[1]).min(layout.n_servers);
        let whole = &observation[2..HEAD];
        let rows = &observation[HEAD..HEAD + n_jobs * JOB_FEATURES];
        let servers = &observation[layout.servers()..layout.servers() + n_servers * SERVER_FEATURES];
        let mut jobs = self.encode(&self.jobs, rows, JOB_FEATURES, scratch);
        let mut servers = self.encode(&self.servers, servers, SERVER_FEATURES, scratch);
        let nothing = vec![0.0; self.summary];
        let squeezed = |jobs: &Squeezed, servers: &Squeezed, scratch: &mut Scratch| {
            let s = self.squeeze(&self.squeeze_jobs, jobs, whole, scratch);
            (s, self.squeeze(&self.squeeze_servers, servers, whole, scratch))
        };
        let heard = |other: &[f32]| if self.communicates { other.to_vec() } else { nothing.clone() };
        for _ in 0..N_EXCHANGES {
            let (s, q) = squeezed(&jobs, &servers, scratch);
            self.tell(&self.exchange[0], &mut jobs, &[&s[..], &heard(&q)].concat(), scratch);
            self.tell(&self.exchange[1], &mut servers, &[&heard(&s)[..], &q].concat(), scratch);
        }
        let (s, q) = squeezed(&jobs, &servers, scratch);
        logits.fill(0.0);
        if agent == ORDERING {
            let (stop, scores) = logits.split_last_mut().unzip();
            self.order((&jobs, &s), (rows, whole), scratch, scores.unwrap_or_default());
            let mut own = [0.0];
            self.stop.forward(&[&s[..], &heard(&q)].concat(), scratch, &mut own);
            if let Some(stop) = stop {
                *stop = own[0] + if self.beside.is_some() { STOP } else { 0.0 };
            }
        } else {
            let rest = &observation[layout.candidates()..];
            let chosen = count(rest[0]).min(n_jobs.saturating_sub(1));
            let mut member = vec![0.0; self.width];
            if n_jobs > 0 {
                self.member(&jobs, chosen, &mut member);
            }
            let told = [&member[..], &heard(&s), &q].concat();
            let advice = observation.get(layout.advice()..).unwrap_or_default();
            let n = count(rest[1]).min(logits.len());
            self.place((&rest[2..], advice), &told, scratch, &mut logits[..n]);
        }
        Ok(())
    }
}
