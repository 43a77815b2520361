//! Servers that are gone for good: when their places in the cluster are free for others.

use apportion::Seconds;
use apportion::index::{Id, WorkerId};
use apportion::simulator::Event;

use super::Core;
use super::job::{Known, LiveRun};
use super::record::{Record, Removal};
use super::requests::{Answer, Refusal};
use crate::protocol::{End, JobNumber, Phase, Report};

/// The end of a rank on a server that is off, in words.
const IS_OFF: &str = "its machine is off, as its operator says";

/// The most servers that a message names.
const NAMED_MAX: usize = 3;

impl Core {
    /// Removes a server that is not heard of from the cluster, as soon as nothing of a run can be there any more: when its leases,
    /// the grace and the slack are over, or at once if its operator says that it `is_off`.
    pub(super) fn remove(&mut self, name: &str, is_off: bool) -> Result<Answer, Refusal> {
        let Some(server) = self.servers.get(name) else { return Err(self.unknown_server(name)) };
        if !self.is_unheard(name) {
            let (silence, unheard) = (self.settings.silence, server.unheard(self.now).get().max(0.0));
            let since = match server.last_heard {
                _ if unheard > silence.get() => {
                    "the scheduler was held up, and waits for its report".to_owned()
                }
                Some(_) => format!("it was heard of {unheard:.0} s ago"),
                None => format!("the scheduler was started {unheard:.0} s ago, and waits for its report"),
            };
            let text = format!(
                "{name} may be there: {since}. A server is removed once nothing has been heard of it for {silence}: end its agent \
                 first. `apportion drain {name}` keeps jobs from it"
            );
            return Err(Refusal::Invalid { text });
        }
        let worker_type = server.record.worker_type.clone();
        let was_off = server.record.removal.is_some_and(|removal| removal.is_off);
        if let Some(server) = self.servers.get_mut(name) {
            server.record.removal = Some(Removal { is_off: is_off || was_off });
            self.step.records.push(Record::Server(server.record.clone()));
        }
        self.give_up_ranks(name);
        let place = format!("another server of type {worker_type} can take its place");
        let runs: Vec<&LiveRun> = self.runs_there(name).map(|(_, run)| run).collect();
        let Some(last) = runs.iter().map(|run| run.over_at).reduce(Seconds::max) else {
            return Ok(Answer::Done { text: format!("{name} is removed: {place}") });
        };
        if is_off && runs.iter().all(|run| run.has_ended()) {
            return Ok(Answer::Done { text: format!("{name} is removed, and its leases are over: {place}") });
        }
        let jobs: Vec<String> = runs.iter().map(|run| run.run.job.to_string()).collect();
        let jobs = format!("job{} {}", if jobs.len() == 1 { "" } else { "s" }, jobs.join(", "));
        let within = (last - self.now).max(Seconds::ZERO).get().ceil();
        let text = if is_off {
            format!(
                "{name} is removed when the other ranks of {jobs} have stopped, in {within} s at most: then {place}"
            )
        } else {
            format!(
                "{name} is removed when {jobs} can run there no more, in {within} s at most: then {place}. If its machine is off, \
                 `apportion remove {name} --off` waits for no lease of it"
            )
        };
        Ok(Answer::Done { text })
    }

    /// Gives up the ranks on a server that is being removed: their ends are unknown, or they were lost with a machine that is off.
    /// Other ranks of their runs are asked to stop.
    pub(super) fn give_up_ranks(&mut self, name: &str) {
        let Some(removal) = self.servers.get(name).and_then(|server| server.record.removal) else { return };
        self.leaving.insert(name.to_owned());
        let numbers: Vec<JobNumber> = self.runs_there(name).map(|(number, _)| number).collect();
        for number in numbers {
            let now = self.now;
            let Some(job) = self.jobs.get_mut(&number) else { continue };
            let (Some(run), Some(record)) = (&mut job.run, &mut job.record.run) else { continue };
            let over_at = run.over_at;
            let ranks = (0u32..).zip(&mut run.ranks);
            for (place, rank) in ranks.filter(|(_, rank)| rank.server == name && rank.known.end().is_none()) {
                if removal.is_off {
                    rank.known = Known::Reported(Phase::Ended(End::Lost(IS_OFF.to_owned())));
                    record.gone_by.insert(place, now);
                } else {
                    rank.known = Known::Lost;
                    record.gone_by.entry(place).or_insert(over_at);
                }
            }
            self.record_job(number);
            self.touched.insert(number);
        }
    }

    /// Removes the servers that are to be removed and on which nothing of a run can be.
    pub(super) fn remove_gone(&mut self) {
        for name in self.leaving.clone() {
            if !self.is_unheard(&name) || self.runs_there(&name).next().is_some() {
                continue;
            }
            self.free_place(&name);
            self.step.records.push(Record::ServerRemoved(name.clone()));
            let text = format!("{name} is removed from the cluster: its place is free for another server");
            self.note(text, None, Some(name));
        }
    }

    /// Takes a server out of the cluster and frees its place. The workers of that place are down from now on.
    pub(super) fn free_place(&mut self, name: &str) {
        self.leaving.remove(name);
        let Some(server) = self.servers.remove(name) else { return };
        let at = self.now;
        for (worker, was_up) in server.record.workers.into_iter().zip(server.up) {
            self.places[worker.index()] = None;
            // The worker exists.
            let _ = self.scheduler.set_up(worker, false);
            if was_up {
                self.event(at, &Event::WorkerDown { at, worker });
            }
        }
    }

    /// Keeps a server that was to be removed and is heard of again.
    pub(super) fn keep_heard(&mut self, name: &str) {
        let Some(server) = self.servers.get_mut(name) else { return };
        if server.record.removal.take().is_some() {
            self.leaving.remove(name);
            self.step.records.push(Record::Server(server.record.clone()));
            self.warn(format!("{name} is heard of again, and is not removed"), None, Some(name.to_owned()));
        }
    }

    /// The remedy for a server that finds no place: it has too many workers, a server that has a place is not heard of, or the cluster is
    /// too small.
    pub(super) fn whose_place(&self, report: &Report, per_server: usize) -> String {
        if report.n_workers as usize > per_server {
            return "; give it fewer (`--workers`), or start the scheduler with more to a server (`--servers`)".to_owned();
        }
        let is_alike = |name: &&String| {
            let record = self.servers.get(*name).map(|server| &server.record);
            record.is_some_and(|record| {
                record.worker_type == report.worker_type && record.workers.len() >= report.n_workers as usize
            })
        };
        let silent = self.servers.keys().filter(is_alike).filter(|name| self.is_unheard(name));
        let names: Vec<&str> = silent.take(NAMED_MAX).map(String::as_str).collect();
        let Some(first) = names.first() else {
            return "; start the scheduler with a larger `--cluster` to take it in".to_owned();
        };
        format!(
            "; not heard of: {}. If such a machine is gone for good, `apportion remove {first}` frees its place",
            names.join(", ")
        )
    }

    /// Whether nothing has been heard of a server for longer than servers may be silent, though the scheduler listened.
    fn is_unheard(&self, name: &str) -> bool {
        let (now, silence) = (self.listens_at(), self.settings.silence);
        let server = self.servers.get(name).filter(|_| now >= self.listens_until);
        server.is_some_and(|server| server.unheard(now) > silence)
    }

    /// The runs with a rank on a server, or on workers of its place.
    fn runs_there(&self, name: &str) -> impl Iterator<Item = (JobNumber, &LiveRun)> {
        let workers = self.servers.get(name).map_or(&[][..], |server| &server.record.workers);
        self.jobs.iter().filter_map(move |(number, job)| {
            let run = job.run.as_ref()?;
            let is_held = |worker: &WorkerId| self.holders[worker.index()].contains(number);
            let is_there = run.ranks.iter().any(|rank| rank.server == name) || workers.iter().any(is_held);
            is_there.then_some((*number, run))
        })
    }
}
