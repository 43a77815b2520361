//! The policy that decides gang by gang, or by values.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::observation::ObservationKind;
use super::partial_decision::PartialDecision;
use super::rules::Rule;
use super::values::{ByValues, largest_share, undecided};
use crate::floor::{Debts, fastest_with_room};
use apportion::Allocation;
use apportion::index::{IndexVec, JobId, JobIndex, WorkerTypeId};
use apportion::policy::heuristic::workers::{decide_whole, restored};
use apportion::policy::{Decision, Policy, PolicyError, RoundRules};
use apportion::problem::Problem;
use apportion::units::Seconds;
use apportion::workload::Combination;
use apportion::workload::random::{SeedStreams, Stream};
use apportion_learn::actor::{Actor, ActorError, Choice, Scratch, draw, masked_softmax, most_probable};

/// A rule of when a policy decides anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// At the first boundary after a job or a worker has come or gone.
    #[default]
    Events,
    /// At every boundary.
    Rounds,
}

/// A decider by an actor, one gang after another.
#[derive(Clone, Debug)]
pub struct Sequential {
    /// The network whose logits become probabilities.
    pub actor: Arc<dyn Actor>,
    /// The kind of observation that the network takes.
    pub observation_kind: ObservationKind,
    /// The choice of an action from its probabilities.
    pub choice: Choice,
}

/// A network, a rule or values by which gangs are decided.
#[derive(Debug)]
pub enum Decider {
    /// One gang after another, by an actor.
    Sequential(Sequential),
    /// One gang after another, by a rule.
    Rule(Rule),
    /// All gangs at once, by values.
    Values(Box<ByValues>),
}

/// A policy that decides gang by gang. Its state is its last allocation and its random stream.
#[derive(Debug)]
pub struct GangPolicy {
    name: String,
    decider: Decider,
    asked: Asked,
    state: State,
    scratch: Room,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Workers of each type at the last decision; empty before the first.
    workers: Vec<u32>,
    /// The jobs of the last decision, with their shares of each type without another job, [K].
    given: Vec<(JobId, Vec<f64>)>,
    /// The pairs of jobs that shared workers in the last decision, with their shares of each type, [K].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pairs: Vec<([JobId; 2], Vec<f64>)>,
    draws: Stream,
    /// The debts of jobs to the floor; none without a floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    debts: Option<Debts>,
    /// The jobs that came first in the last decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    first: Vec<JobId>,
}

/// Arrays kept between decisions.
#[derive(Clone, Debug, Default)]
struct Room {
    scratch: Scratch,
    observation: Vec<f32>,
    mask: Vec<bool>,
    numbers: Vec<f32>,
}

impl GangPolicy {
    /// A policy that has decided nothing yet; `seed` is for its random choices.
    pub fn new(name: impl Into<String>, decider: Decider, asked: Asked, seed: u64) -> Self {
        let draws = SeedStreams::new(seed).stream("gangs");
        let state = State {
            workers: Vec::new(),
            given: Vec::new(),
            pairs: Vec::new(),
            draws,
            debts: None,
            first: Vec::new(),
        };
        Self { name: name.into(), decider, asked, state, scratch: Room::default() }
    }

    /// The policy with a floor, from 0 to 1, on the progress of jobs; the program of values has its own.
    #[must_use]
    pub fn with_floor(mut self, floor: f64) -> Self {
        self.state.debts = Some(Debts::new(floor));
        self
    }

    /// Whether workers and jobs are as they were at the last decision.
    fn is_as_before(&self, problem: &Problem) -> bool {
        let workers = problem.cluster().types().iter().map(|kind| kind.n_workers);
        let jobs = problem.jobs().iter().map(|active| active.id);
        workers.eq(self.state.workers.iter().copied()) && jobs.eq(self.state.given.iter().map(|(id, _)| *id))
    }

    fn decide_anew(&mut self, problem: &Problem, first: &[JobIndex]) -> Result<Decision, PolicyError> {
        let held = self.held(problem);
        let mut partial = PartialDecision::new(&self.name, problem, |job| held[job])?;
        for job in first {
            if let Some(kind) = fastest_with_room(problem, *job, |kind| partial.free(kind) as usize) {
                partial.place(problem, *job, kind);
            }
        }
        match &mut self.decider {
            Decider::Values(values) => return values.decide(&self.name, problem, &partial),
            Decider::Rule(rule) => {
                while let Some((job, kind)) = rule.next(problem, &partial, &mut self.state.draws) {
                    partial.place(problem, job, kind);
                }
            }
            Decider::Sequential(sequential) => {
                while let Some((job, kind)) = sequential
                    .next(problem, &partial, &mut self.state.draws, &mut self.scratch)
                    .map_err(undecided(&self.name))?
                {
                    partial.place(problem, job, kind);
                }
            }
        }
        whole(&self.name, problem, &partial)
    }

    /// For each job, the type of its largest share in the last decision.
    pub(super) fn held(&self, problem: &Problem) -> IndexVec<JobIndex, Option<WorkerTypeId>> {
        let mut given: BTreeMap<JobId, Vec<f64>> = self.state.given.iter().cloned().collect();
        for (jobs, shares) in &self.state.pairs {
            for id in jobs {
                let own = given.get_mut(id).into_iter().flatten();
                own.zip(shares).for_each(|(own, share)| *own += share);
            }
        }
        problem.jobs().iter().map(|active| largest_share(given.get(&active.id)?)).collect()
    }

    fn remember(&mut self, problem: &Problem, decision: &Decision) {
        let id = |job: JobIndex| problem.jobs()[job].id;
        let nothing = vec![0.0; problem.n_types()];
        let mut given: BTreeMap<JobId, Vec<f64>> =
            problem.jobs().iter().map(|active| (active.id, nothing.clone())).collect();
        self.state.pairs.clear();
        for (row, jobs) in decision.allocation.combinations().enumerate() {
            let shares = decision.allocation.shares().row(row).to_vec();
            match jobs.second() {
                None => drop(given.insert(id(jobs.first()), shares)),
                Some(second) => self.state.pairs.push(([id(jobs.first()), id(second)], shares)),
            }
        }
        self.state.given = given.into_iter().collect();
        self.state.workers = problem.cluster().types().iter().map(|kind| kind.n_workers).collect();
    }

    /// The last decision, given again.
    fn repeated(&self, problem: &Problem) -> Result<Decision, PolicyError> {
        let rows = problem.jobs().ids().zip(&self.state.given);
        let rows = rows.filter(|(_, (_, shares))| shares.iter().any(|share| *share > 0.0));
        let rows = rows.map(|(job, (_, shares))| (Combination::single(job), shares.clone()));
        let places: BTreeMap<JobId, JobIndex> =
            problem.jobs().enumerate().map(|(job, active)| (active.id, job)).collect();
        let pairs = self.state.pairs.iter().filter_map(|([one, other], shares)| {
            Some((Combination::pair(*places.get(one)?, *places.get(other)?), shares.clone()))
        });
        let rows = rows.chain(pairs);
        let allocation = Allocation::check(problem, rows)
            .map_err(|source| PolicyError::Allocation { policy: self.name.clone(), source })?;
        Ok(Decision::of(allocation))
    }
}

/// The allocation that gives each placed job all of its time on its type.
pub(super) fn whole(
    name: &str,
    problem: &Problem,
    partial: &PartialDecision,
) -> Result<Decision, PolicyError> {
    let placed = partial.placed().map(|(job, kind)| (Combination::single(job), kind));
    decide_whole(name, problem, placed, RoundRules::default())
}

impl Sequential {
    /// The next gang of a decision; none = stop.
    fn next(
        &self,
        problem: &Problem,
        partial: &PartialDecision,
        draws: &mut Stream,
        room: &mut Room,
    ) -> Result<Option<(JobIndex, WorkerTypeId)>, ActorError> {
        let seen = self.observation_kind.observation(problem, partial);
        if seen.is_empty() {
            return Ok(None);
        }
        let Room { scratch, observation, mask, numbers } = room;
        observation.resize(seen.observation_length(), 0.0);
        mask.resize(seen.n_actions(), false);
        numbers.resize(seen.n_actions(), 0.0);
        seen.observe(problem, partial, observation);
        seen.mask(problem, partial, mask);
        self.actor.logits(0, observation, scratch, numbers)?;
        masked_softmax(numbers, mask)?;
        Ok(seen.decode(match self.choice {
            Choice::Sampled => draw(numbers, draws.uniform()),
            Choice::MostProbable => most_probable(numbers),
        }))
    }
}

impl Policy for GangPolicy {
    fn name(&self) -> &str {
        &self.name
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let first = self.state.debts.as_mut().map_or_else(Vec::new, |debts| debts.update(problem));
        let ids = || first.iter().map(|job| problem.jobs()[*job].id);
        let repeats = self.asked == Asked::Events
            && self.is_as_before(problem)
            && ids().eq(self.state.first.iter().copied());
        let decision = if repeats { self.repeated(problem)? } else { self.decide_anew(problem, &first)? };
        if !repeats {
            self.state.first = ids().collect();
            self.remember(problem, &decision);
        }
        // Only allocated jobs run: a job that fills a gap may do so on a type where it is slow, and so lose its own place.
        let rules = RoundRules {
            skip_zero_priority: true,
            recompute_after: Some(Seconds::ZERO),
            ..RoundRules::default()
        };
        Ok(Decision { rules, ..decision })
    }

    fn state(&self) -> serde_json::Value {
        serde_json::json!(self.state)
    }

    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        self.state = restored(&self.name, state)?;
        Ok(())
    }
}
