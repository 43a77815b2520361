//! The answer about one job: why it waits, or runs as it does.

use std::collections::BTreeSet;

use apportion::Seconds;
use apportion::index::{Id, JobId, WorkerTypeId};
use apportion::mechanism::Priority;
use apportion::workload::Combination;
use schemars::JsonSchema;
use serde::Serialize;

use super::Core;
use super::answers::{JobView, view_of_over};
use super::job::{Known, LiveJob, LiveRun, Reason};
use super::requests::Refusal;
use crate::protocol::JobNumber;

/// The time that a job is owed and has received on workers of one type.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TypeView {
    /// The type.
    pub worker_type: String,
    /// The share of its time for which it is to have workers of the type, alone or beside another. None, as is all that follows
    /// from shares, where the policy places jobs itself.
    pub share: Option<f64>,
    /// The time for which all of its ranks have run on the type since it arrived, in s: work that was lost is included, and time
    /// that it shared counts whole.
    pub received_s: f64,
    /// The time for which it has had the type alone since the last reset, as the mechanism counts, in s: up to now, or to the end
    /// of the round if it runs and the next round is decided, and without work that was lost.
    pub since_reset_s: Option<f64>,
    /// The time by which it had less of the type up to the last reset than its share, in s; below 0, the time by which it had more.
    pub deficit_s: Option<f64>,
    /// Its share, divided by its part of the time that all jobs have received since the last reset: the jobs with the highest
    /// priority get workers. None if it has no share; the largest number that there is if it precedes all others.
    pub priority: Option<f64>,
    /// Time that was allotted to it while it ran less than half of it, less the time that it has run since, in s, if that is two
    /// rounds or more: it precedes all jobs that are not overdue, or less so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overdue_s: Option<f64>,
    /// The number of workers of the type that may be given jobs now.
    pub n_up: u32,
    /// The jobs that hold workers of the type.
    pub held_by: Vec<JobNumber>,
    /// The priorities and leases by which these jobs hold them.
    pub holders: Vec<HolderView>,
}

/// A job that holds workers of a type.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HolderView {
    /// The job.
    pub job: JobNumber,
    /// Its priority there, together with the job that it shares them with; none if it has no share, the largest number that there
    /// is if it precedes all others.
    pub priority: Option<f64>,
    /// The time until its lease ends, in s; the lease may be extended.
    pub until_s: f64,
    /// The number of workers of the type that it holds, including workers that may not be given jobs now.
    pub n_workers: usize,
}

/// A job, and why it waits or runs as it does.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Why {
    /// The job.
    #[serde(flatten)]
    pub job: JobView,
    /// The reasons, in sentences.
    pub because: Vec<String>,
    /// Worker types on which it may run.
    pub worker_types: Vec<TypeView>,
    /// The time until the next round is decided, in s.
    pub decides_in_s: Option<f64>,
    /// The instant of the policy's last decision, on the scheduler's clock.
    pub decided_s: Option<f64>,
}

impl Core {
    pub(super) fn why(&self, number: JobNumber) -> Result<Why, Refusal> {
        if let Some(why) = self.why_unfit(number) {
            return Ok(why);
        }
        let Some(job) = self.jobs.get(&number) else {
            let over = self.over.iter().find(|record| record.number == number);
            let record = over.ok_or_else(|| self.unknown_job(number))?;
            let outcome = record.outcome.as_ref().map(|outcome| outcome.reason.clone());
            let because = outcome.into_iter().map(|reason| format!("It is over: {reason}.")).collect();
            let job = view_of_over(record);
            return Ok(Why { job, because, worker_types: Vec::new(), decides_in_s: None, decided_s: None });
        };
        let worker_types: Vec<_> = self
            .scheduler
            .cluster()
            .types()
            .ids()
            .filter_map(|worker_type| self.type_view(job, worker_type))
            .collect();
        let undecided = self.timeline.filter(|timeline| !timeline.is_decided);
        Ok(Why {
            job: self.view(job),
            because: self.because(job, &worker_types),
            worker_types,
            decides_in_s: undecided.map(|timeline| (timeline.next(&self.settings) - self.now).get()),
            decided_s: self.scheduler.decided().map(Seconds::get),
        })
    }

    /// Whether a job has a throughput on workers of a type, or has run there.
    fn is_on(&self, job: &LiveJob, worker_type: WorkerTypeId) -> bool {
        let name = self.type_name(worker_type);
        let has_run = || job.record.received.get(&name).is_some_and(|time| time.get() > 0.0);
        self.scheduler.worker_types_of(&job.record.job).contains(&name) || has_run()
    }

    /// A worker type as a job sees it; none if it cannot run there.
    fn type_view(&self, job: &LiveJob, worker_type: WorkerTypeId) -> Option<TypeView> {
        if !self.is_on(job, worker_type) {
            return None;
        }
        let name = self.type_name(worker_type);
        let alone = Combination::single(job.id);
        let standing = match self.scheduler.mechanism() {
            Some(mechanism) => Some(mechanism.standing(alone, worker_type)?),
            None => None,
        };
        let in_force = self.scheduler.in_force();
        let shares = in_force.iter().flat_map(|decision| &decision.shares);
        let own = shares.filter(|(jobs, _)| jobs.contains(job.id));
        let share = own.map(|(_, shares)| shares.get(worker_type.index()).copied().unwrap_or(0.0)).sum();
        let mut held_by: Vec<_> = self
            .scheduler
            .workers()
            .of_type(worker_type)
            .flat_map(|worker| self.holders[worker.index()].iter().copied())
            .collect();
        held_by.sort_unstable();
        held_by.dedup();
        Some(TypeView {
            share: standing.map(|_| share),
            received_s: job.record.received.get(&name).map_or(0.0, |time| time.get()),
            since_reset_s: standing
                .map(|standing| self.since_reset(job, worker_type, standing.received).get()),
            deficit_s: standing.map(|standing| standing.deficit.get()),
            priority: self.priority(job, worker_type),
            overdue_s: self.overdue(job, worker_type).map(Seconds::get),
            n_up: self.workers_up().get(&name).copied().unwrap_or(0),
            holders: held_by.iter().filter_map(|number| self.holder(*number, worker_type)).collect(),
            held_by,
            worker_type: name,
        })
    }

    /// The highest priority of a job on a worker type, alone or beside another.
    fn priority(&self, job: &LiveJob, worker_type: WorkerTypeId) -> Option<f64> {
        let in_force = self.scheduler.in_force()?;
        let own = in_force.shares.iter().filter(|(jobs, _)| jobs.contains(job.id));
        own.filter_map(|(jobs, _)| self.priority_of(*jobs, worker_type)).max_by(f64::total_cmp)
    }

    fn priority_of(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> Option<f64> {
        match self.scheduler.mechanism()?.standing(jobs, worker_type)?.priority {
            Priority::Nothing => None,
            Priority::Ratio(ratio) => Some(ratio),
            // No number is as high.
            Priority::Starved { .. } | Priority::Overdue { .. } => Some(f64::MAX),
        }
    }

    /// The time by which a job is overdue on a worker type, alone or beside another.
    fn overdue(&self, job: &LiveJob, worker_type: WorkerTypeId) -> Option<Seconds> {
        let own = self.scheduler.in_force()?.shares.iter().filter(|(jobs, _)| jobs.contains(job.id));
        let mechanism = self.scheduler.mechanism()?;
        let standings = own.filter_map(|(jobs, _)| mechanism.standing(*jobs, worker_type));
        standings.filter_map(|standing| standing.overdue).reduce(Seconds::max)
    }

    fn holder(&self, number: JobNumber, worker_type: WorkerTypeId) -> Option<HolderView> {
        let run = self.jobs.get(&number)?.run.as_ref()?;
        let until_s = (run.until - self.now).max(Seconds::ZERO).get();
        let of_type = self.scheduler.workers().of_type(worker_type);
        let n_workers = of_type.filter(|worker| self.holders[worker.index()].contains(&number)).count();
        Some(HolderView {
            job: number,
            priority: self.priority_of(run.lease.0, worker_type),
            until_s,
            n_workers,
        })
    }

    /// A sentence about the workers of a type that may be given jobs now: how many of them each job holds. It is for a job that
    /// waits for `needs` workers of the type.
    fn who_holds(&self, view: &TypeView, needs: u32) -> String {
        let TypeView { worker_type, n_up, holders, .. } = view;
        let offered = self.workers_offered(worker_type);
        let are = if *n_up == 1 { "is" } else { "are" };
        let n_free = offered.iter().filter(|worker| self.holders[worker.index()].is_empty()).count();
        let n_of = |job: JobNumber| {
            offered.iter().filter(|worker| self.holders[worker.index()].contains(&job)).count()
        };
        let held: Vec<_> =
            holders.iter().map(|holder| (holder.job, n_of(holder.job))).filter(|(_, n)| *n > 0).collect();
        if held.is_empty() {
            return format!("no job holds any of the {n_up} that {are} up now, and it needs {needs}");
        }
        if n_free == 0 {
            let jobs: Vec<_> = held.iter().map(|(job, _)| job.to_string()).collect();
            return format!("the {n_up} that {are} up {are} held by job {} now", jobs.join(", "));
        }
        let each: Vec<_> = held.iter().map(|(job, n)| format!("job {job} holds {n}")).collect();
        format!("of the {n_up} that are up, {} now, and it needs {needs}", each.join(", "))
    }

    /// The mechanism's reasons for which a job waits for a worker type, in sentences.
    fn why_not_yet(view: &TypeView) -> Vec<String> {
        let TypeView { worker_type, since_reset_s, deficit_s, holders, .. } = view;
        let number = |priority: Option<f64>| match priority {
            None => "none".to_owned(),
            Some(f64::MAX..) => "above all others".to_owned(),
            Some(ratio) => format!("{ratio:.2}"),
        };
        let mut said = Vec::new();
        if !holders.is_empty() {
            let holder = |HolderView { job, priority, until_s, .. }: &HolderView| {
                format!("job {job} has {} and a lease for {until_s:.0} s more", number(*priority))
            };
            let holders: Vec<_> = holders.iter().map(holder).collect();
            let own = number(view.priority);
            said.push(format!("Its priority on {worker_type} is {own}: {}.", holders.join(", ")));
        }
        if let Some(overdue) = view.overdue_s {
            said.push(format!(
                "It comes first on {worker_type}: {overdue:.0} s were allotted while it ran less than half of that."
            ));
        }
        if let (Some(deficit_s), Some(since_reset_s)) = (deficit_s, since_reset_s) {
            let behind = if *deficit_s >= 0.0 { "less" } else { "more" };
            let by = deficit_s.abs();
            said.push(format!(
                "Up to the last reset it received {by:.0} s {behind} of {worker_type} than it was owed, and {since_reset_s:.0} s since."
            ));
        }
        said
    }

    /// The time until the next round is decided, in words.
    fn when_decided(&self) -> Option<String> {
        let timeline = self.timeline?;
        let left = |at: Seconds| (at - self.now).max(Seconds::ZERO).get();
        Some(if timeline.is_decided {
            format!("The next round is decided, and starts in {:.0} s.", left(timeline.until))
        } else {
            format!("The next round is decided in {:.0} s.", left(timeline.next(&self.settings)))
        })
    }

    /// The reasons for which a job waits, or runs as it does, in sentences.
    fn because(&self, job: &LiveJob, types: &[TypeView]) -> Vec<String> {
        let mut because = Vec::new();
        match &job.run {
            Some(run) => because.push(match self.unheard(run) {
                Some((server, time)) => {
                    self.what_was_known(run, &format!("nothing has been heard of {server} for {time:.0} s"))
                }
                None => Self::what_it_does(job, run),
            }),
            None => match job.rests(self.now) {
                Some(wait) => because.push(Self::why_rests(job, wait)),
                None => because.extend(self.why_without(job, types)),
            },
        }
        because.extend(job.run.iter().flat_map(|run| self.why_closed(run)));
        because.extend(self.which_sizes(job));
        if self.is_frozen() {
            because
                .push("Slurm does not answer: what runs goes on, and nothing is started or stopped.".into());
        }
        if self.settings.front_door {
            because.push(
                "Its steps are presumed from how long it ran: Slurm does not say how many it made.".into(),
            );
        }
        because.extend(self.when_decided());
        because.extend(job.record.last_end.iter().map(|end| format!("Its last start: {end}.")));
        because
    }

    /// Sentences about servers of a run that offer no worker any more.
    fn why_closed(&self, run: &LiveRun) -> Vec<String> {
        let left = run.ranks.iter().filter(|rank| rank.known.end().is_none());
        let names: BTreeSet<&str> = left.map(|rank| rank.server.as_str()).collect();
        let servers = names.into_iter().filter_map(|name| self.servers.get(name));
        let closed = servers.filter_map(|server| Some((&server.record.name, server.closed.as_ref()?)));
        closed.map(|(name, why)| format!("{name} is closed. {why}.")).collect()
    }

    /// A sentence that a job waits after a failure, its own or its server's.
    fn why_rests(job: &LiveJob, wait: Seconds) -> String {
        let failed = match job.record.failures {
            0 => "Its server could not start it: that is no failure of its own. It".to_owned(),
            1 => "It failed, and".to_owned(),
            n => format!("It failed {n} times in a row, and"),
        };
        format!("{failed} is not started again for {:.0} s.", wait.get())
    }

    /// The server of a run's ranks that has been unheard of for longest, if that is longer than servers may be silent, and for how
    /// long, in s.
    fn unheard(&self, run: &LiveRun) -> Option<(String, f64)> {
        let left = run.ranks.iter().filter(|rank| rank.known.end().is_none());
        let servers = left.filter_map(|rank| self.servers.get(&rank.server));
        let silent = servers.filter(|server| !server.is_reachable(self.listens_at(), self.settings.silence));
        let longest = silent
            .max_by(|one, other| one.unheard(self.now).get().total_cmp(&other.unheard(self.now).get()))?;
        Some((longest.record.name.clone(), longest.unheard(self.now).get()))
    }

    /// The state of a run whose servers are all heard of, in words.
    fn what_it_does(job: &LiveJob, run: &LiveRun) -> String {
        match run.ending.as_ref().map(|ending| &ending.reason) {
            None if run.running.is_some() => "It runs.".to_owned(),
            None => "It has been ordered; not all of its ranks have been reported yet.".to_owned(),
            Some(Reason::Preempted) => Self::why_resized(job).unwrap_or_else(|| {
                "It is asked to stop: its workers are another's in the next round, or it has others there."
                    .into()
            }),
            Some(Reason::RankEnded) => match run.ranks.iter().find(|rank| rank.known == Known::Lost) {
                Some(rank) => {
                    format!("It is asked to stop: {} does not know a rank of it any more.", rank.server)
                }
                None => "It is asked to stop: one of its ranks has ended.".to_owned(),
            },
            Some(Reason::NotStarted) => {
                "It is asked to stop: not all of its ranks were started in time.".into()
            }
            Some(Reason::Cancelled) => match &job.record.withdrawn {
                Some(why) => format!("It is not to be started again: {why}."),
                None => "It is asked to stop: its user cancelled it.".to_owned(),
            },
            Some(Reason::Done) => {
                "It is asked to stop: an earlier start of it was done, as was heard of late.".into()
            }
        }
    }

    /// The last known state of a run with a silent server, in words: it stops by itself when its lease is over.
    fn what_was_known(&self, run: &LiveRun, silence: &str) -> String {
        let over = (run.over_at - self.now).max(Seconds::ZERO).get();
        let waited_for =
            format!("it is surely over, and can be started elsewhere, in {over:.0} s at the latest.");
        match run.ending.as_ref().map(|ending| &ending.reason) {
            None if run.running.is_some() => format!("It is last known to run: {silence}."),
            None => format!("It has been ordered, and {silence}."),
            Some(Reason::Cancelled) => format!("Its user cancelled it, and {silence}: {waited_for}"),
            Some(_) => format!("It cannot be asked to stop, since {silence}: {waited_for}"),
        }
    }

    /// The lack of workers, if fewer may be given jobs than it needs of every type that it can run on.
    fn why_nowhere(&self, job: &LiveJob, types: &[TypeView]) -> Option<String> {
        let (stated, up) = (&job.record.job, self.workers_up());
        let needs = stated.sizes.iter().copied().fold(stated.scale_factor, u32::min);
        let n_up = |view: &TypeView| up.get(&view.worker_type).copied().unwrap_or(0);
        if types.iter().any(|view| n_up(view) >= needs) {
            return None;
        }
        let left: Vec<_> =
            types.iter().map(|view| format!("{} of {}", n_up(view), view.worker_type)).collect();
        let workers = if needs == 1 { "a worker".to_owned() } else { format!("{needs} workers of one type") };
        Some(format!(
            "It needs {workers}, and of the types that it can run on there are at present {} that may be given jobs: \
             `apportion servers` says of each server whether it is up, drained, closed, full or silent.",
            left.join(", ")
        ))
    }

    /// A sentence that a run is stopped because its job is to have another number of workers, if it is.
    fn why_resized(job: &LiveJob) -> Option<String> {
        let (run, placement) = (job.run.as_ref()?, job.placement.as_ref()?);
        let (before, after) = (run.ranks.len(), placement.workers.len());
        let text = || {
            format!(
                "It is asked to stop: the policy has resized it from {before} to {after} workers, with which it goes on from its checkpoint."
            )
        };
        (before != after).then(text)
    }

    /// A sentence on the number of workers that a resizable job has, and the numbers that it may have.
    fn which_sizes(&self, job: &LiveJob) -> Option<String> {
        let sizes = &job.record.job.sizes;
        let (first, now) = (job.record.job.scale_factor, self.size(job));
        let was = if first == now {
            format!("{now}, as it was submitted")
        } else {
            format!("{now}, resized from the {first} that it was submitted with")
        };
        let all: Vec<_> = sizes.iter().map(u32::to_string).collect();
        let who = if self.scheduler.mechanism().is_some() {
            "this policy gives it no other, and one that resizes jobs might choose among"
        } else {
            "a policy that resizes jobs may choose among"
        };
        let text = || format!("Its number of workers is {was}; {who} {}.", all.join(", "));
        (sizes.len() > 1).then(text)
    }

    /// Why a job has no run.
    fn why_without(&self, job: &LiveJob, types: &[TypeView]) -> Vec<String> {
        if let Some(placement) = &job.placement {
            let mut holders: Vec<_> =
                placement.workers.iter().flat_map(|worker| &self.holders[worker.index()]).collect();
            holders.sort_unstable();
            holders.dedup();
            let list: Vec<_> = holders.into_iter().map(ToString::to_string).collect();
            let kind = self.type_name(placement.worker_type);
            return vec![if list.is_empty() {
                format!("It has workers of type {kind}, whose servers are not all here, or have a full disk.")
            } else {
                format!(
                    "It has workers of type {kind} as soon as they are free: job {} is still there.",
                    list.join(", job ")
                )
            }];
        }
        if self.timeline.is_none() {
            return vec!["No server that may be given jobs is here.".to_owned()];
        }
        if let Some(lack) = self.why_nowhere(job, types) {
            return vec![lack];
        }
        if self.scheduler.mechanism().is_none() {
            return vec![if self.scheduler.was_shown(job.id) {
                "The policy places jobs itself, each round anew and without shares: in the last round that it decided it has \
                 given this one no workers."
                    .to_owned()
            } else {
                "The policy places jobs itself, at the start of each round, and has decided none since it came.".to_owned()
            }];
        }
        let Some(decision) = self.scheduler.in_force().filter(|decision| decision.is_about(job.id)) else {
            return vec![
                "The policy has not decided since it came: it does so at the next round that may reset it."
                    .into(),
            ];
        };
        let with_share: Vec<_> =
            types.iter().filter(|view| view.share.is_some_and(|share| share > 1e-9)).collect();
        if decision.dropped.contains(&job.id) {
            return vec![
                "The policy cannot keep its deadline beside the others', and has dropped it.".to_owned(),
            ];
        }
        if with_share.is_empty() {
            return vec!["The policy gives it no share of any worker type.".to_owned()];
        }
        let part = |view: &&TypeView| {
            let share = 100.0 * view.share.unwrap_or(0.0);
            let worker_type = &view.worker_type;
            let held = if view.n_up == 0 {
                "no worker of that type may be given jobs now".to_owned()
            } else {
                self.who_holds(view, self.size(job))
            };
            format!("It is to have {worker_type} for {share:.1} % of the time; {held}.")
        };
        let mut said: Vec<String> = with_share.iter().map(part).collect();
        said.extend(with_share.iter().flat_map(|view| Self::why_not_yet(view)));
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_above_all_others_is_no_number() {
        let holder = HolderView { job: JobNumber(7), priority: Some(1.5), until_s: 3.0, n_workers: 1 };
        let view = TypeView {
            worker_type: "fast".into(),
            share: Some(0.5),
            received_s: 0.0,
            since_reset_s: Some(0.0),
            deficit_s: Some(60.0),
            priority: Some(f64::MAX),
            overdue_s: Some(120.0),
            n_up: 1,
            held_by: vec![JobNumber(7)],
            holders: vec![holder],
        };
        let said = Core::why_not_yet(&view);
        assert_eq!(
            said[0],
            "Its priority on fast is above all others: job 7 has 1.50 and a lease for 3 s more."
        );
    }
}
