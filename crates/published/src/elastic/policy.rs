//! The rules and networks of the elastic world as policies inside rounds, in simulations and on live clusters.
//!
//! Each round is a slot: it is decided from nothing, on the workers that are up. A job climbs its own sizes at its own speeds;
//! a job that cannot be resized has only its scale factor. Jobs are then resized to the numbers that they have climbed to, and
//! placed: on the workers that they had where type and number are the same, otherwise on as few servers as possible.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::dl2_network::{Choose, Dl2Network, KnownJob};
use super::network::ElasticNetwork;
use super::{ElasticEpisode, ElasticPolicy, ElasticReward, ElasticRule, Ladders, ObservationKind, world_of};
use crate::document::ElasticRuleName;
use crate::floor::on_fewest_servers;
use crate::world::{Role, World, WorldJob};
use apportion::index::{Id, JobId, WorkerId, WorkerTypeId};
use apportion::policy::{Placed, PolicyError, RoundDecision, RoundPolicy, RoundView};
use apportion::problem::{ActiveJob, Colocation};
use apportion::workload::Combination;
use apportion::workload::random::{SeedStreams, Stream};
use apportion_learn::actor::{Actor, ActorError, Choice, Scratch, draw, masked_softmax, most_probable};

/// A rule or a network that chooses the next climb of a round.
#[derive(Clone, Debug)]
pub enum ElasticDecider {
    /// A rule of the elastic world.
    Rule(ElasticRule),
    /// A network, and how an action is chosen from its probabilities.
    Network(ElasticNetwork, Choice),
}

impl ElasticDecider {
    /// The worker types in view, by their ids in the cluster. A network over a window sees the types of the matrix, in its order;
    /// none stands for a type that the cluster lacks.
    fn types(&self, view: &RoundView<'_>) -> Vec<Option<WorkerTypeId>> {
        match (self, view.problem.colocation()) {
            (Self::Network(ElasticNetwork::Windowed(_), _), Colocation::Rows { throughputs, columns }) => {
                let of = |column| columns.ids().find(|kind| columns[*kind] == Some(column));
                throughputs.worker_types().ids().map(of).collect()
            }
            _ => view.free.ids().map(Some).collect(),
        }
    }
}

/// Facts about each job of a round, for a network of DL2's own world.
fn known_jobs(
    network: &Dl2Network,
    view: &RoundView<'_>,
    steps_at_first: &BTreeMap<JobId, f64>,
) -> Result<Vec<KnownJob>, String> {
    let Colocation::Rows { throughputs, .. } = view.problem.colocation() else {
        return Err("jobs have no job types, by which its network knows them".to_owned());
    };
    let known = |active: &ActiveJob| {
        let job_type = active.row.map(|row| throughputs.rows()[row].job_type.as_str());
        let Some(job_type) = job_type else {
            return Err(format!("job {} has no job type, by which its network knows jobs", active.id));
        };
        let likeness = network.likeness(job_type).ok_or_else(|| {
            format!(
                "`job_types` of the policy does not say which of DL2's job types `{job_type}` is like: add it"
            )
        })?;
        let left = active.steps_remaining.get();
        let at_first = steps_at_first.get(&active.id).map_or(left, |at_first| at_first.max(left));
        Ok(KnownJob { job_type: likeness, left: if at_first > 0.0 { left / at_first } else { 0.0 } })
    };
    view.problem.jobs().iter().map(known).collect()
}

impl From<ElasticRuleName> for ElasticRule {
    fn from(name: ElasticRuleName) -> Self {
        match name {
            ElasticRuleName::Drf => Self::Drf(u16::MAX),
            ElasticRuleName::Fifo => Self::Fifo,
            ElasticRuleName::Srtf => Self::Srtf,
            ElasticRuleName::Optimus => Self::Optimus,
            ElasticRuleName::ShortestOptimus => Self::ShortestOptimus,
        }
    }
}

/// A policy inside rounds that decides how many workers of which type each job gets.
#[derive(Debug)]
pub struct ElasticRounds {
    name: String,
    decider: ElasticDecider,
    draws: Stream,
    /// The decisions of this round that are still to be given, in reverse order.
    decided: Vec<RoundDecision>,
    scratch: Scratch,
    /// Remaining steps of each job when it was first seen; only for networks of DL2's own world.
    steps_at_first: BTreeMap<JobId, f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    draws: Stream,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    steps_at_first: BTreeMap<JobId, f64>,
}

impl ElasticRounds {
    /// A policy that has decided nothing yet; `seed` is for its random choices.
    pub fn new(name: impl Into<String>, decider: ElasticDecider, seed: u64) -> Self {
        let draws = SeedStreams::new(seed).stream("elastic rounds");
        let steps_at_first = BTreeMap::new();
        Self {
            name: name.into(),
            decider,
            draws,
            decided: Vec::new(),
            scratch: Scratch::default(),
            steps_at_first,
        }
    }

    /// Records the remaining steps of jobs that it sees for the first time, for networks of DL2's own world, and forgets jobs that
    /// are gone.
    fn remember(&mut self, view: &RoundView<'_>) {
        if !matches!(self.decider, ElasticDecider::Network(ElasticNetwork::Dl2(_), _)) {
            return;
        }
        let before = std::mem::take(&mut self.steps_at_first);
        let of = |active: &ActiveJob| {
            let left = active.steps_remaining.get();
            (active.id, before.get(&active.id).copied().unwrap_or(left))
        };
        self.steps_at_first = view.problem.jobs().iter().map(of).collect();
    }

    /// The worker type and the number of workers of each job in this round, by position in the problem.
    fn held(&mut self, view: &RoundView<'_>) -> Result<Vec<Option<(WorkerTypeId, u16)>>, String> {
        let types = self.decider.types(view);
        let Slot { ladders, mut world, jobs } = Slot::new(view, &types);
        let Self { decider, draws, scratch, steps_at_first, .. } = self;
        world.reset(&jobs);
        match &*decider {
            ElasticDecider::Rule(rule) => {
                world.begin_round();
                ElasticPolicy::new(*rule, ladders, 0).climb_all(&mut world);
            }
            ElasticDecider::Network(network, choice) => {
                let choose = &mut |actor: &dyn Actor, seen: &[f32], mask: &[bool]| {
                    let mut logits = vec![0.0; mask.len()];
                    actor.logits(0, seen, scratch, &mut logits)?;
                    masked_softmax(&mut logits, mask)?;
                    Ok(match choice {
                        Choice::Sampled => draw(&logits, draws.uniform()),
                        Choice::MostProbable => most_probable(&logits),
                    })
                };
                let (actor, window) = match network {
                    ElasticNetwork::Scorer(actor) => (actor, (ObservationKind::Pairs, jobs.len().max(1))),
                    ElasticNetwork::Windowed(network) => (&network.actor, network.fitted(types.len())?),
                    ElasticNetwork::Dl2(network) => {
                        let known = known_jobs(network, view, steps_at_first)?;
                        let played = network.play((&mut world, &ladders), &known, choose);
                        played.map_err(|error| error.to_string())?;
                        return Ok(held_in(&world, &types));
                    }
                };
                let mut slot =
                    ElasticEpisode::new(world, Arc::new(ladders), window, ElasticReward::default());
                slot.reset(&jobs);
                let may_rest = matches!(network, ElasticNetwork::Scorer(_));
                play(&mut slot, (&**actor, may_rest), choose).map_err(|error| error.to_string())?;
                return Ok(held_in(slot.world(), &types));
            }
        }
        Ok(held_in(&world, &types))
    }
}

/// Lets a network climb until it chooses *nothing*, or no job can climb. Unless it may rest, *nothing* is masked while no job has
/// workers.
fn play(
    slot: &mut ElasticEpisode,
    (actor, may_rest): (&dyn Actor, bool),
    choose: &mut Choose<'_>,
) -> Result<(), ActorError> {
    let (mut seen, mut mask) = (vec![0.0; slot.window().length()], vec![false; slot.window().n_actions()]);
    let mut is_open = slot.is_open();
    while is_open {
        slot.observe(&mut seen);
        slot.mask(&mut mask);
        if let Some(nothing) = mask.last_mut() {
            *nothing = may_rest || !slot.world().placed().is_empty();
        }
        is_open = slot.play(choose(actor, &seen, &mask)?);
    }
    Ok(())
}

/// The worker type and number of workers of each job in a world whose types have these ids in the cluster.
fn held_in(world: &World, types: &[Option<WorkerTypeId>]) -> Vec<Option<(WorkerTypeId, u16)>> {
    let held = |job: JobId| {
        let part = world.parts(job).first()?;
        let worker_type = types[world.servers().worker_type(part.server).index()]?;
        Some((worker_type, world.tasks(job, Role::Worker)))
    };
    (0..world.n_jobs()).map(|job| held(JobId::from_index(job))).collect()
}

/// The jobs of a round as a workload of the elastic world.
struct Slot {
    ladders: Ladders,
    world: World,
    jobs: Vec<WorldJob>,
}

impl Slot {
    fn new(view: &RoundView<'_>, types: &[Option<WorkerTypeId>]) -> Self {
        let throughput = view.problem.throughput();
        let sizes_of = |(index, job): (_, &ActiveJob)| {
            let size = |size: u32, speeds: &[f64]| {
                let speed = |kind: &Option<WorkerTypeId>| kind.map_or(0.0, |kind| speeds[kind.index()]);
                Some((u16::try_from(size).ok()?, types.iter().map(speed).collect()))
            };
            match view.resizable.binary_search_by_key(&job.id, |resizable| resizable.job) {
                Ok(at) => {
                    let resizable = &view.resizable[at];
                    let sizes = resizable.sizes.iter().zip(&resizable.throughput);
                    sizes.filter_map(|(workers, speeds)| size(*workers, speeds)).collect()
                }
                Err(_) => size(job.scale_factor, throughput.row(index)).into_iter().collect(),
            }
        };
        let sizes: Vec<Vec<(u16, Vec<f64>)>> = view.problem.jobs().enumerate().map(sizes_of).collect();
        let ladders = Ladders::of_jobs(types.len(), &sizes);
        let n_free = |kind: &Option<WorkerTypeId>| kind.map_or(0, |kind| view.free[kind].len());
        let n_workers: Vec<u16> =
            types.iter().map(|kind| u16::try_from(n_free(kind)).unwrap_or(u16::MAX)).collect();
        let world = world_of(&ladders, &n_workers, 0.0);
        let job = |(index, job): (usize, &ActiveJob)| {
            // A job without work has the least work that is not 0.
            let work = job.steps_remaining.get().max(f64::MIN_POSITIVE);
            WorldJob {
                job_type: Id::from_index(index),
                workers: 0,
                work,
                work_estimated: work,
                arrival_s: -job.elapsed.get(),
                owner: 0,
            }
        };
        let jobs = view.problem.jobs().iter().enumerate().map(job).collect();
        Self { ladders, world, jobs }
    }
}

/// The decisions that resize and place jobs, in reverse order.
fn decisions(view: &RoundView<'_>, held: &[Option<(WorkerTypeId, u16)>]) -> Vec<RoundDecision> {
    let mut decided = Vec::new();
    let mut placements = Vec::new();
    for (job, held) in view.problem.jobs().iter().zip(held) {
        let Some((worker_type, workers)) = *held else { continue };
        if u32::from(workers) != job.scale_factor {
            decided.push(RoundDecision::Resize { job: job.id, workers: u32::from(workers) });
        }
        placements.push(Wanted { job: job.id, worker_type, n_workers: usize::from(workers) });
    }
    decided.extend(placed(view, placements).into_iter().map(RoundDecision::Place));
    decided.reverse();
    decided
}

/// Workers of a type that a job is to have.
#[derive(Clone, Copy)]
struct Wanted {
    job: JobId,
    worker_type: WorkerTypeId,
    n_workers: usize,
}

/// Placements on concrete workers. A job keeps its workers if type and number are the same and all are up; other jobs, the largest
/// first, get workers of as few servers as possible.
fn placed(view: &RoundView<'_>, wanted: Vec<Wanted>) -> Vec<Placed> {
    let mut free = view.free.clone();
    let mut placed = Vec::new();
    let mut others = Vec::new();
    for wanted in wanted {
        let Wanted { job, worker_type, n_workers } = wanted;
        let combination = Combination::single(job);
        let had = view.previous.iter().find(|had| had.combination == combination);
        let stays = had.filter(|had| {
            let is_free = |worker: &WorkerId| free[worker_type].binary_search(worker).is_ok();
            had.worker_type == worker_type
                && had.workers.len() == n_workers
                && had.workers.iter().all(is_free)
        });
        match stays {
            Some(had) => {
                free[worker_type].retain(|worker| !had.workers.contains(worker));
                placed.push(had.clone());
            }
            None => others.push(wanted),
        }
    }
    others.sort_by_key(|wanted| std::cmp::Reverse(wanted.n_workers));
    for Wanted { job, worker_type, n_workers } in others {
        let workers = on_fewest_servers(view, &mut free, (worker_type, n_workers));
        placed.push(Placed { combination: Combination::single(job), worker_type, workers });
    }
    placed
}

impl RoundPolicy for ElasticRounds {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self, view: &RoundView<'_>) -> Result<(), String> {
        match &self.decider {
            ElasticDecider::Network(ElasticNetwork::Windowed(network), _) => {
                network.fitted(self.decider.types(view).len()).map(drop)
            }
            ElasticDecider::Network(ElasticNetwork::Dl2(network), _) => {
                known_jobs(network, view, &self.steps_at_first).map(drop)
            }
            ElasticDecider::Network(ElasticNetwork::Scorer(_), _) | ElasticDecider::Rule(_) => Ok(()),
        }
    }

    fn begin(&mut self, view: &RoundView<'_>) -> Result<(), PolicyError> {
        self.remember(view);
        let held = self.held(view);
        let held = held.map_err(|reason| PolicyError::Undecided { policy: self.name.clone(), reason })?;
        self.decided = decisions(view, &held);
        Ok(())
    }

    fn next(&mut self, view: &RoundView<'_>) -> Result<RoundDecision, PolicyError> {
        if let Some(reason) = view.rejected {
            let (policy, reason) = (self.name.clone(), reason.to_owned());
            return Err(PolicyError::Undecided { policy, reason });
        }
        Ok(self.decided.pop().unwrap_or(RoundDecision::EndRound))
    }

    fn state(&self) -> Value {
        serde_json::json!(State { draws: self.draws.clone(), steps_at_first: self.steps_at_first.clone() })
    }

    fn restore(&mut self, state: &Value) -> Result<(), PolicyError> {
        let fault = |_| PolicyError::State { policy: self.name.clone() };
        let State { draws, steps_at_first } = State::deserialize(state).map_err(fault)?;
        (self.draws, self.steps_at_first) = (draws, steps_at_first);
        Ok(())
    }
}
