//! The rules and the networks of this world as policies inside rounds, of a simulation or of jobs that really run.
//!
//! Each round is a slot: it is decided from nothing, on the workers that are up. A job climbs its own sizes at its own speeds;
//! one that cannot be resized has only its scale factor. What jobs hold in the end they are resized to, and placed: on the workers
//! that they had where type and number are the same, else on as few servers as there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ElasticEpisode, ElasticPolicy, ElasticReward, ElasticRule, Ladders, ObservationKind, world_of};
use crate::document::ElasticRuleName;
use crate::gangs::read_scorer;
use crate::world::{Role, World, WorldJob};
use apportion::index::{Id, IndexVec, JobId, ServerId, WorkerId, WorkerTypeId};
use apportion::policy::{Placed, PolicyError, RoundDecision, RoundPolicy, RoundView};
use apportion::workload::Combination;
use apportion::workload::random::{SeedStreams, Stream};
use apportion_learn::actor::{Actor, ActorError, Choice, Scratch, draw, masked_softmax, most_probable};
use apportion_learn::trained::{Trained, TrainedError};

/// What chooses the next climb of a round: a rule, or a network.
#[derive(Clone, Debug)]
pub enum ElasticDecider {
    /// A rule of this world.
    Rule(ElasticRule),
    /// A network that scores climbs, one at a time, and how its scores become a choice.
    Network(Arc<dyn Actor>, Choice),
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

/// The network in a file of weights.
///
/// # Errors
/// If the file holds something else than a network that scores climbs seen as `pairs`.
pub fn read_elastic(trained: &Trained) -> Result<Arc<dyn Actor>, TrainedError> {
    let spec = trained.spec();
    let of_another = |system: &Value| system.as_str().is_some_and(|system| system != super::SYSTEM.name);
    let sight = spec.get("world").and_then(|world| world.get("sight"));
    let sees_otherwise = |sight: &Value| sight.as_str().is_some_and(|sight| sight != "pairs");
    if spec.get("system").is_some_and(of_another) || sight.is_some_and(sees_otherwise) {
        return Err(TrainedError::Kind {
            expected: "scorer of climbs, of `system: elastic` with `sight: pairs`",
        });
    }
    read_scorer(trained)
}

/// Decides how many workers of which type each job gets, round by round.
#[derive(Debug)]
pub struct ElasticRounds {
    name: String,
    decider: ElasticDecider,
    draws: Stream,
    /// What is still to be said of this round, the last first.
    decided: Vec<RoundDecision>,
    scratch: Scratch,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    draws: Stream,
}

impl ElasticRounds {
    /// A policy that has decided nothing yet; `seed` is of what it draws.
    pub fn new(name: impl Into<String>, decider: ElasticDecider, seed: u64) -> Self {
        let draws = SeedStreams::new(seed).stream("elastic rounds");
        Self { name: name.into(), decider, draws, decided: Vec::new(), scratch: Scratch::default() }
    }

    /// What each job of the round is to hold, by position in the problem: a worker type and a number.
    fn held(&mut self, view: &RoundView<'_>) -> Result<Vec<Option<(WorkerTypeId, u16)>>, ActorError> {
        let Slot { ladders, mut world, jobs } = Slot::new(view);
        let world = match &self.decider {
            ElasticDecider::Rule(rule) => {
                world.reset(&jobs);
                world.begin_round();
                let mut policy = ElasticPolicy::new(*rule, ladders, 0);
                policy.climb_all(&mut world);
                world
            }
            ElasticDecider::Network(actor, choice) => {
                let window = (ObservationKind::Pairs, jobs.len().max(1));
                let mut slot =
                    ElasticEpisode::new(world, Arc::new(ladders), window, ElasticReward::default());
                slot.reset(&jobs);
                let mut is_open = slot.is_open();
                while is_open {
                    let logits = logits(&slot, &**actor, &mut self.scratch)?;
                    let action = match choice {
                        Choice::Sampled => draw(&logits, self.draws.uniform()),
                        Choice::MostProbable => most_probable(&logits),
                    };
                    is_open = slot.play(action);
                }
                slot.world().clone()
            }
        };
        let held = |job: JobId| {
            let part = world.parts(job).first()?;
            Some((world.servers().worker_type(part.server), world.tasks(job, Role::Worker)))
        };
        Ok((0..jobs.len()).map(|job| held(JobId::from_index(job))).collect())
    }
}

/// How probable each action is.
fn logits(slot: &ElasticEpisode, actor: &dyn Actor, scratch: &mut Scratch) -> Result<Vec<f32>, ActorError> {
    let window = slot.window();
    let (mut seen, mut mask) = (vec![0.0; window.length()], vec![false; window.n_actions()]);
    let mut logits = vec![0.0; mask.len()];
    slot.observe(&mut seen);
    slot.mask(&mut mask);
    actor.logits(0, &seen, scratch, &mut logits)?;
    masked_softmax(&mut logits, &mask)?;
    Ok(logits)
}

/// The jobs of a round as a workload of this world, which has begun now.
struct Slot {
    ladders: Ladders,
    world: World,
    jobs: Vec<WorldJob>,
}

impl Slot {
    fn new(view: &RoundView<'_>) -> Self {
        let (n_types, throughput) = (view.free.len(), view.problem.throughput());
        let sizes_of = |(index, job): (_, &apportion::problem::ActiveJob)| {
            let size = |size: u32, speeds: &[f64]| Some((u16::try_from(size).ok()?, speeds.to_vec()));
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
        let ladders = Ladders::of_jobs(n_types, &sizes);
        let n_workers: Vec<u16> =
            view.free.iter().map(|free| u16::try_from(free.len()).unwrap_or(u16::MAX)).collect();
        let world = world_of(&ladders, &n_workers, 0.0);
        let job = |(index, job): (usize, &apportion::problem::ActiveJob)| {
            // A job without work is as good as done.
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

/// The decisions that give jobs what they are to hold, the last first.
fn decisions(view: &RoundView<'_>, held: &[Option<(WorkerTypeId, u16)>]) -> Vec<RoundDecision> {
    let mut decided = Vec::new();
    let mut placements = Vec::new();
    for (job, held) in view.problem.jobs().iter().zip(held) {
        let Some((worker_type, workers)) = *held else { continue };
        if u32::from(workers) != job.scale_factor {
            decided.push(RoundDecision::Resize { job: job.id, workers: u32::from(workers) });
        }
        placements.push((job.id, worker_type, usize::from(workers)));
    }
    decided.extend(placed(view, placements).into_iter().map(RoundDecision::Place));
    decided.reverse();
    decided
}

/// Concrete workers: those that a job had, if they are as many of the type and all up; for others, the largest first, those of as
/// few servers as possible.
fn placed(view: &RoundView<'_>, wanted: Vec<(JobId, WorkerTypeId, usize)>) -> Vec<Placed> {
    let mut free = view.free.clone();
    let mut placed = Vec::new();
    let mut others = Vec::new();
    for (job, worker_type, n_workers) in wanted {
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
            None => others.push((combination, worker_type, n_workers)),
        }
    }
    others.sort_by_key(|(_, _, n_workers)| std::cmp::Reverse(*n_workers));
    for (combination, worker_type, n_workers) in others {
        let workers = on_fewest_servers(view, &mut free, (worker_type, n_workers));
        placed.push(Placed { combination, worker_type, workers });
    }
    placed
}

/// Takes so many free workers of a type: of the fullest server that has them all, else of the emptiest servers.
fn on_fewest_servers(
    view: &RoundView<'_>,
    free: &mut IndexVec<WorkerTypeId, Vec<WorkerId>>,
    (worker_type, n_workers): (WorkerTypeId, usize),
) -> Vec<WorkerId> {
    let mut of_servers: BTreeMap<ServerId, Vec<WorkerId>> = BTreeMap::new();
    for worker in &free[worker_type] {
        of_servers.entry(view.locations[*worker].server).or_default().push(*worker);
    }
    let mut taken = Vec::with_capacity(n_workers);
    while taken.len() < n_workers {
        let left = n_workers - taken.len();
        let of_size = |(server, workers): (&ServerId, &Vec<WorkerId>)| (workers.len(), *server);
        let enough = of_servers.iter().map(of_size).filter(|(n_free, _)| *n_free >= left).min();
        let most = || {
            of_servers
                .iter()
                .map(of_size)
                .max_by_key(|(n_free, server)| (*n_free, std::cmp::Reverse(*server)))
        };
        let Some((_, server)) = enough.or_else(most) else { break };
        taken.extend(of_servers.remove(&server).into_iter().flatten().take(left));
    }
    taken.sort_unstable();
    free[worker_type].retain(|worker| taken.binary_search(worker).is_err());
    taken
}

impl RoundPolicy for ElasticRounds {
    fn name(&self) -> &str {
        &self.name
    }

    fn begin(&mut self, view: &RoundView<'_>) -> Result<(), PolicyError> {
        let held = self.held(view).map_err(|error| PolicyError::Undecided {
            policy: self.name.clone(),
            reason: error.to_string(),
        })?;
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
        serde_json::json!(State { draws: self.draws.clone() })
    }

    fn restore(&mut self, state: &Value) -> Result<(), PolicyError> {
        let fault = |_| PolicyError::State { policy: self.name.clone() };
        let State { draws } = State::deserialize(state).map_err(fault)?;
        self.draws = draws;
        Ok(())
    }
}
