//! Networks of DL2's own world on the jobs of a round, which have sizes with measured speeds, and no parameter servers.
//!
//! | DL2's world      | a round                                                                                       |
//! |------------------|-----------------------------------------------------------------------------------------------|
//! | job type         | the one that the policy says a job type is like                                               |
//! | slots, what is left | time since arrival in slots of 1200 s; the part of the steps that were left when it was first seen |
//! | dominant share   | the largest part of any worker type that the job holds                                        |
//! | tasks            | as many parameter servers as workers                                                          |
//! | actions          | any of the three for a job: its next size, on its own worker type, or else the fastest with room |
//! | fit              | actions for jobs without room are masked, and nothing while no job has workers                |
//! | start            | every job first gets its least size, if there is room                                         |

use std::collections::BTreeMap;
use std::sync::Arc;

use super::climb::Climb;
use super::ladders::Ladders;
use super::{SLOT_S, dominant_share};
use crate::dl2::{self, Dl2World};
use crate::world::{Part, Role, World};
use apportion::index::{Id, JobId, WorkerTypeId};
use apportion::throughput::elastic::ElasticThroughputs;
use apportion_learn::actor::{Actor, ActorError};
use apportion_learn::trained::{Ports, Trained, TrainedError};

/// The number of actions for each job in DL2's world.
const N_OF_JOB: usize = 3;

/// A function that chooses an action from a network, an observation and a mask.
pub(super) type Choose<'a> = dyn FnMut(&dyn Actor, &[f32], &[bool]) -> Result<usize, ActorError> + 'a;

/// A network of DL2's own world, and its view of a round.
#[derive(Clone, Debug)]
pub struct Dl2Network {
    actor: Arc<dyn Actor>,
    window: dl2::Window,
    starting_bundle: bool,
    /// Positions of DL2's job types, by the names of the job types that are like them.
    job_types: BTreeMap<String, usize>,
}

/// Facts about a job that the world of a round does not hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownJob {
    /// Position of DL2's job type that it is like.
    pub(super) job_type: usize,
    /// The part that is left of the steps that the job had when first seen.
    pub(super) left: f64,
}

impl Dl2Network {
    /// The network in a file of weights; `like` gives, for job types, the job type of DL2's that they are like. The options of the
    /// world are those that the file states, or else the default ones; the kind of observation is the one with as many numbers as
    /// the network has inputs.
    ///
    /// # Errors
    /// If the file holds something else than a network of that world, or one that sees epochs.
    pub fn read(trained: &Trained, like: &BTreeMap<String, String>) -> Result<Self, TrainedError> {
        let (actor, ports) = trained.actor()?;
        let [Ports { observation, logits }] = &ports[..] else {
            return Err(TrainedError::Agents { found: ports.len(), expected: 1 });
        };
        let stated = trained.spec().get("world").cloned();
        let world = stated.and_then(|world| serde_json::from_value::<Dl2World>(world).ok());
        if world.as_ref().is_some_and(|world| world.observation == dl2::ObservationKind::Paper) {
            let expected =
                "network of DL2's world with `observation: scaled` or `released`: rounds know no epochs";
            return Err(TrainedError::Kind { expected });
        }
        let dl2 = ElasticThroughputs::dl2();
        let n_jobs = logits.length.saturating_sub(1) / N_OF_JOB;
        let world = world.unwrap_or_default();
        let epochs: Vec<f64> = dl2.job_types.iter().map(|job_type| job_type.samples_per_epoch).collect();
        let window = |kind| dl2::Window::new(kind, n_jobs, world.tasks, epochs.clone());
        let kinds = [dl2::ObservationKind::Scaled, dl2::ObservationKind::Released];
        let found = kinds.map(window).into_iter().find(|window| {
            (window.n_rows() * n_jobs, window.n_actions()) == (observation.length, logits.length)
        });
        let window = found.filter(|_| n_jobs > 0).ok_or_else(|| {
            let of_jobs = format!("{} or {} for each of {n_jobs} jobs, and 3 actions", epochs.len() + 5, 6);
            observation.other_than(format!("{of_jobs} for each and one to end the slot"))
        })?;
        let position = |name: &str| dl2.job_types.iter().position(|job_type| job_type.name == name);
        let own = dl2.job_types.iter().map(|job_type| (&job_type.name, &job_type.name));
        let named = own.chain(like).filter_map(|(name, like)| Some((name.clone(), position(like)?)));
        Ok(Self { actor, window, starting_bundle: world.starting_bundle, job_types: named.collect() })
    }

    /// The position of DL2's job type that a job type is like, if the policy gives one: by its whole name, or by its name without
    /// the parentheses at its end.
    pub(super) fn likeness(&self, job_type: &str) -> Option<usize> {
        let short = job_type.split_once(" (").map(|(short, _)| short);
        let of = |name: &str| self.job_types.get(name).copied();
        of(job_type).or_else(|| of(short?))
    }

    /// This network with another actor in its place.
    #[cfg(test)]
    pub(super) fn played_by(self, actor: Arc<dyn Actor>) -> Self {
        Self { actor, ..self }
    }

    /// Decides a round in a world that has been reset for it.
    ///
    /// # Errors
    /// If the network gives no numbers.
    pub(super) fn play(
        &self,
        (world, ladders): (&mut World, &Ladders),
        known: &[KnownJob],
        choose: &mut Choose<'_>,
    ) -> Result<(), ActorError> {
        world.begin_round();
        if self.starting_bundle {
            for job in world.active().to_vec() {
                climb(world, ladders, job);
            }
        }
        let nothing = self.window.n_actions() - 1;
        let mut seen = vec![0.0; self.window.n_rows() * self.window.n_jobs()];
        let mut mask = vec![false; nothing + 1];
        loop {
            let open = world.active().iter().copied().filter(|job| may_grow(world, ladders, *job));
            let in_view: Vec<JobId> = open.take(self.window.n_jobs()).collect();
            mask.fill(false);
            for (actions, job) in mask.chunks_exact_mut(N_OF_JOB).zip(&in_view) {
                actions.fill(Climb::fastest(world, ladders, *job).is_some());
            }
            if !mask.contains(&true) {
                return Ok(());
            }
            mask[nothing] = !world.placed().is_empty();
            self.window.write(in_view.iter().map(|job| column(world, *job, known[job.index()])), &mut seen);
            match in_view.get(choose(&*self.actor, &seen, &mask)? / N_OF_JOB) {
                Some(job) => climb(world, ladders, *job),
                None => return Ok(()),
            }
        }
    }
}

/// The observation of a job: (job type, [slots since arrival, part left, dominant share, workers, parameter servers]).
fn column(world: &World, job: JobId, known: KnownJob) -> (usize, [f64; 5]) {
    let slots = (world.now_s() - world.job(job).arrival_s) / SLOT_S;
    let workers = f64::from(world.tasks(job, Role::Worker));
    (known.job_type, [slots, known.left, dominant_share(world, job), workers, workers])
}

/// Whether a job has a larger size on its own worker type or, if it holds nothing, on any type.
fn may_grow(world: &World, ladders: &Ladders, job: JobId) -> bool {
    let held = world.tasks(job, Role::Worker);
    let types = (0..ladders.n_worker_types()).map(WorkerTypeId::from_index);
    let mut own =
        types.filter(|kind| world.parts(job).iter().all(|part| part.server.index() == kind.index()));
    own.any(|kind| ladders.above(world.job(job).job_type, kind, held).is_some())
}

/// Takes a job to its next size, if there is room.
fn climb(world: &mut World, ladders: &Ladders, job: JobId) {
    let mut part = [Part::workers(Id::from_index(0), 1)];
    if let Some(climb) = Climb::fastest(world, ladders, job) {
        let applied = world.apply(climb.decision(world, &mut part));
        debug_assert!(applied.is_ok(), "what was found fits");
    }
}
