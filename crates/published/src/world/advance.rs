//! The end of a round: speeds, progress, completions, and the rules that apply after it.

use crate::world::job::{Part, Role};
use crate::world::servers::ACCELERATOR;
use crate::world::state::{Status, World};
use apportion::index::{Id, JobId, WorkerTypeId};

/// A model of the speeds of placed jobs.
pub trait Speeds {
    /// The rate of a placed job, from its tasks and the other jobs on its servers.
    fn rate(&mut self, world: &World, job: JobId) -> Rate;
}

/// The speed of a job in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Work per second with its servers to itself; 0 = it stands still.
    pub alone_per_s: f64,
    /// The fraction of that rate that the job retains beside its neighbours, in [0, 1].
    pub retention: f64,
    /// Remaining work, at full retention, below which the job counts as done at the end of the round; 0 = only when all work is
    /// done.
    pub finish_below: f64,
}

/// A rule of how a job's retention follows its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// The retention of a round is by the neighbours of that round.
    #[default]
    EachRound,
    /// The retention never rises while a job stays placed, even when a neighbour leaves.
    NeverRises,
}

/// A rule of when a job's work counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completions {
    /// At the exact moment inside the round.
    #[default]
    Exact,
    /// At the end of the round.
    RoundEnd,
    /// At the end of the round; and the next job in order of placement after a done job makes no progress in that round.
    RoundEndSkippingNext,
}

/// A rule of what happens to placed jobs after a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum AfterRound {
    /// Jobs stay on their servers.
    #[default]
    Stay,
    /// Jobs that retained at most this fraction go to the end of the queue, in order of placement.
    PreemptAtOrBelow(f64),
    /// All jobs go to the end of the queue, in order of placement.
    PreemptAll,
    /// All jobs wait again, and the queue is in order of arrival: each round is decided from nothing.
    Rebuild,
}

/// The rules of a world's rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Length of a round in seconds.
    pub round_s: f64,
    /// The most parts that a job may have.
    pub parts_max: usize,
    /// The retained fraction of a job's throughput beside its neighbours.
    pub retention: Retention,
    /// The instant at which work counts as done.
    pub completions: Completions,
    /// The rule of placed jobs after a round.
    pub after_round: AfterRound,
    /// Seconds at the start of a round in which a job stands still because its tasks differ, in number, role or worker type, from
    /// those that it last ran with, or because it did not run in the round before. A job's first start costs nothing, nor does a
    /// change of servers within a type.
    pub scaling_cost_s: f64,
}

/// The progress of a job in a round.
struct RoundProgress {
    /// Work done.
    work: f64,
    /// Time that it ran, s.
    ran_s: f64,
    /// Whether all of its work is done.
    done: bool,
}

impl World {
    /// Ends the round: jobs progress at the rates that they have at its start, and the rules after a round apply. Returns the sum
    /// over jobs of the progress as a part of the estimated work.
    pub fn advance<S: Speeds + ?Sized>(&mut self, speeds: &mut S) -> f64 {
        self.find_rates(speeds);
        let placed_slots = f64::from(self.used_total[ACCELERATOR]);
        let mut idle_slot_s = 0.0;
        let mut gained = 0.0;
        let (mut position, mut given) = (0, 0);
        while position < self.placed.len() {
            let job = self.placed[position];
            let held =
                f64::from(self.tasks[job][0]) * f64::from(self.task_slots(job, Role::Worker)[ACCELERATOR]);
            let RoundProgress { work, ran_s, done } = self.progress_of(job, self.rates[given]);
            given += 1;
            gained += work / self.jobs[job].work_estimated;
            if !done {
                position += 1;
                continue;
            }
            idle_slot_s += held * (self.rules.round_s - ran_s);
            self.placed.remove(position);
            self.release(job);
            self.status[job] = Status::Done;
            self.active.retain(|other| *other != job);
            self.n_done += 1;
            if self.rules.completions == Completions::RoundEndSkippingNext {
                position += 1;
                given += 1;
            }
        }
        self.totals.slot_s += placed_slots * self.rules.round_s - idle_slot_s;
        self.apply_after_round();
        self.round += 1;
        gained
    }

    /// Finds the rates and retentions of placed jobs, as [`advance`](Self::advance) does first: for policies that look at them
    /// before the round ends.
    pub fn find_rates<S: Speeds + ?Sized>(&mut self, speeds: &mut S) {
        self.rates.clear();
        for position in 0..self.placed.len() {
            let job = self.placed[position];
            let rate = speeds.rate(self, job);
            let before =
                if self.rules.retention == Retention::NeverRises { self.retention[job] } else { 1.0 };
            self.retention[job] = rate.retention.min(before);
            self.finish_below[job] = rate.finish_below * self.retention[job];
            self.rates.push(rate.alone_per_s);
        }
    }

    /// Lets a job run for the round.
    fn progress_of(&mut self, job: JobId, alone_per_s: f64) -> RoundProgress {
        let Self { rules, round, .. } = *self;
        let now_s = self.now_s();
        let retention = self.retention[job];
        if alone_per_s <= 0.0 {
            return RoundProgress { work: 0.0, ran_s: rules.round_s, done: false };
        }
        let lost_s = if rules.scaling_cost_s > 0.0 { self.lost_s(job) } else { 0.0 };
        let left = self.jobs[job].work - self.progress[job];
        let full = alone_per_s * retention * (rules.round_s - lost_s);
        let (mut work, mut ran_s) = (full, rules.round_s);
        let done = if rules.completions == Completions::Exact {
            if full > left {
                (work, ran_s) = (left, lost_s + (rules.round_s - lost_s) * (left / full));
            }
            full >= left
        } else {
            let after = self.jobs[job].work - (self.progress[job] + full);
            after < self.finish_below[job] || after <= 0.0
        };
        self.progress[job] += work;
        self.service_s[job] += ran_s;
        self.totals.retention += retention;
        self.totals.job_rounds += 1;
        if self.last_ran[job] != 0 && self.last_ran[job] != round {
            self.preemptions[job] += 1;
        }
        self.last_ran[job] = round + 1;
        if done {
            self.completion_s[job] = now_s + ran_s;
            self.totals.end_s = self.totals.end_s.max(now_s + ran_s);
        }
        RoundProgress { work, ran_s, done }
    }

    /// Seconds that a running job loses at the start of this round; records the tasks that it runs with.
    fn lost_s(&mut self, job: JobId) -> f64 {
        let ran_before = self.last_ran[job] != 0;
        let mut same = self.last_ran[job] == self.round;
        for worker_type in 0..self.servers.n_worker_types() {
            for role in [Role::Worker, Role::ParameterServer] {
                let holds = |part: &&Part| {
                    part.role == role && self.servers.worker_type(part.server).index() == worker_type
                };
                let held = self.parts[job].iter().filter(holds).map(|part| part.count).sum();
                let at = self.position_of(job, WorkerTypeId::from_index(worker_type), role);
                same &= std::mem::replace(&mut self.ran_with[at], held) == held;
            }
        }
        if ran_before && !same { self.rules.scaling_cost_s.min(self.rules.round_s) } else { 0.0 }
    }

    fn apply_after_round(&mut self) {
        match self.rules.after_round {
            AfterRound::Stay => {}
            AfterRound::PreemptAtOrBelow(least) => self.suspend_at_or_below(least),
            AfterRound::PreemptAll => self.suspend_where(|_, _| true),
            AfterRound::Rebuild => {
                self.suspend_where(|_, _| true);
                let arrival = |job: &JobId| self.jobs[*job].arrival_s;
                self.waiting.sort_unstable_by(|one, other| {
                    arrival(one).total_cmp(&arrival(other)).then(one.cmp(other))
                });
            }
        }
    }

    /// Takes placed jobs that retain at most this fraction off their servers.
    pub fn suspend_at_or_below(&mut self, least: f64) {
        self.suspend_where(|world, job| world.retention[job] <= least);
    }

    /// Sets the retention of placed jobs to 1, so that it is measured anew even where it never rises.
    pub fn forget_retention(&mut self) {
        for position in 0..self.placed.len() {
            let job = self.placed[position];
            self.retention[job] = 1.0;
        }
    }

    fn suspend_where(&mut self, suspended: impl Fn(&Self, JobId) -> bool) {
        let mut kept = 0;
        for position in 0..self.placed.len() {
            let job = self.placed[position];
            if suspended(self, job) {
                self.suspend(job);
            } else {
                self.placed[kept] = job;
                kept += 1;
            }
        }
        self.placed.truncate(kept);
    }
}
