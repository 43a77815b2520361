//! Rules of the elastic world, which learn nothing, by name.

use std::cmp::Ordering;

use crate::elastic::climb::Climb;
use crate::elastic::dominant_share;
use crate::elastic::ladders::Ladders;
use crate::elastic::shares::Shares;
use crate::world::Decision;
use crate::world::World;
use crate::world::WorldPolicy;
use crate::world::shares::Goal;
use crate::world::{Part, Role};
use apportion::index::{Id, JobId, WorkerTypeId};
use apportion::spec::nearest::name_list;
use apportion::workload::random::{SeedStreams, Stream};

/// A rule of the elastic world. A job that holds nothing gets its first workers of its fastest type with room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElasticRule {
    /// Dominant resource fairness: the job with the smallest dominant share climbs next, up to this number of workers, whatever its
    /// speeds.
    Drf(u16),
    /// In order of arrival: each job climbs as long as that makes it faster.
    Fifo,
    /// In order of remaining time on one worker: each job climbs as long as that makes it faster.
    Srtf,
    /// Optimus: first workers for every job in order of arrival, then the climb that shortens a job's remaining time most for each
    /// worker more. It knows the true speeds.
    Optimus,
    /// Optimus, but with first workers to the job that would be done soonest by them.
    ShortestOptimus,
    /// Optimal shares of slots, knowing the true speeds: linear programs over the sizes of jobs.
    Shares(Goal),
    /// A uniformly drawn action: any climb, or the end of the slot.
    Random,
}

const ALL: [(&str, ElasticRule); 11] = [
    ("drf", ElasticRule::Drf(u16::MAX)),
    ("drf_1", ElasticRule::Drf(1)),
    ("drf_2", ElasticRule::Drf(2)),
    ("drf_4", ElasticRule::Drf(4)),
    ("fifo", ElasticRule::Fifo),
    ("srtf", ElasticRule::Srtf),
    ("optimus", ElasticRule::Optimus),
    ("shortest_optimus", ElasticRule::ShortestOptimus),
    ("max_min_fairness", ElasticRule::Shares(Goal::LeastSpeed)),
    ("max_sum_completions", ElasticRule::Shares(Goal::Completions)),
    ("random", ElasticRule::Random),
];

/// All rules with their names.
pub fn all() -> impl Iterator<Item = (&'static str, ElasticRule)> {
    ALL.into_iter()
}

/// The rule of a name, and the name.
///
/// # Errors
/// If there is no rule of the name; the error lists the names.
pub fn parse_named(name: &str) -> Result<(&'static str, ElasticRule), String> {
    let unknown = || {
        let known = name_list(ALL.iter().map(|(name, _)| *name));
        format!("unknown policy `{name}`, expected one of {known}")
    };
    ALL.into_iter().find(|(other, _)| *other == name).ok_or_else(unknown)
}

/// A rule of the elastic world at work.
#[derive(Clone, Debug)]
pub struct ElasticPolicy {
    rule: ElasticRule,
    ladders: Ladders,
    draws: Stream,
    shares: Option<Shares>,
    part: [Part; 1],
}

impl ElasticPolicy {
    /// A rule at work; `seed` is for its random climbs.
    pub fn new(rule: ElasticRule, ladders: Ladders, seed: u64) -> Self {
        let draws = SeedStreams::new(seed).stream("elastic climbs");
        let shares = if let ElasticRule::Shares(goal) = rule { Some(Shares::new(goal)) } else { None };
        Self { rule, ladders, draws, shares, part: [Part::workers(Id::from_index(0), 1)] }
    }

    /// The next climb; none ends the slot.
    pub fn climb(&mut self, world: &World) -> Option<Climb> {
        let ladders = &self.ladders;
        let fastest = |job: &JobId| Climb::fastest(world, ladders, *job);
        let faster = |climb: &Climb| climb.steps_per_s(world, ladders) > ladders.of_job(world, climb.job);
        let first_by = |key: &dyn Fn(&Climb) -> f64, open: &dyn Fn(&Climb) -> bool| {
            let climbs = world.active().iter().filter_map(fastest).filter(open);
            climbs
                .map(|climb| (key(&climb), climb))
                .reduce(|best, other| if other.0.total_cmp(&best.0) == Ordering::Less { other } else { best })
        };
        let found = match self.rule {
            ElasticRule::Drf(most) => {
                first_by(&|climb| dominant_share(world, climb.job), &|climb| climb.workers <= most)
            }
            ElasticRule::Fifo => first_by(&|climb| world.job(climb.job).arrival_s, &faster),
            ElasticRule::Srtf => first_by(&|climb| remaining_alone_s(world, ladders, climb.job), &faster),
            ElasticRule::Optimus => first_by(&|climb| -gain_s(world, ladders, climb), &faster),
            ElasticRule::ShortestOptimus => {
                let first = |climb: &Climb| world.tasks(climb.job, Role::Worker) == 0;
                let soonest = |climb: &Climb| work_left(world, climb.job) / climb.steps_per_s(world, ladders);
                first_by(&soonest, &first)
                    .or_else(|| first_by(&|climb| -gain_s(world, ladders, climb), &faster))
            }
            ElasticRule::Shares(_) => return self.shares.as_mut()?.climb(world, ladders),
            ElasticRule::Random => return self.random(world),
        };
        found.map(|(_, climb)| climb)
    }

    /// Makes all climbs of a slot.
    pub fn climb_all(&mut self, world: &mut World) {
        while let Some(climb) = self.climb(world) {
            let applied = world.apply(climb.decision(world, &mut self.part));
            debug_assert!(applied.is_ok(), "what was found fits");
        }
    }

    fn random(&mut self, world: &World) -> Option<Climb> {
        let types = || (0..self.ladders.n_worker_types()).map(WorkerTypeId::from_index);
        let of_job = |job: &JobId| {
            types().filter_map(|kind| Climb::find(world, &self.ladders, *job, kind)).collect::<Vec<_>>()
        };
        let all: Vec<Climb> = world.active().iter().flat_map(of_job).collect();
        all.get(self.draws.below(all.len() + 1)).copied()
    }
}

fn work_left(world: &World, job: JobId) -> f64 {
    world.job(job).work_estimated - world.progress(job)
}

/// Seconds that a job needs with the fewest workers of its fastest type.
pub(super) fn remaining_alone_s(world: &World, ladders: &Ladders, job: JobId) -> f64 {
    work_left(world, job) / ladders.fastest_alone(world.job(job).job_type)
}

/// Seconds by which a climb shortens a job's remaining time, for each worker more; infinite for its first workers.
fn gain_s(world: &World, ladders: &Ladders, climb: &Climb) -> f64 {
    let (left, job) = (work_left(world, climb.job), climb.job);
    let more = climb.workers - world.tasks(job, Role::Worker);
    (left / ladders.of_job(world, job) - left / climb.steps_per_s(world, ladders)) / f64::from(more)
}

impl WorldPolicy for ElasticPolicy {
    fn next(&mut self, world: &World) -> Decision<'_> {
        match self.climb(world) {
            Some(climb) => climb.decision(world, &mut self.part),
            None => Decision::EndRound,
        }
    }
}
