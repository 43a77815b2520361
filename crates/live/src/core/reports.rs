//! Reports of agents.

use apportion::Seconds;
use apportion::index::{Id, WorkerId};

use super::job::Known;
use super::record::{Record, ServerRecord};
use super::server::Server;
use super::{Core, REFUSED_MAX};
use crate::protocol::{JobNumber, Phase, Progress, RankReport, Report, Run};

/// The most letters of a server's message about its disk.
const DISK_MAX: usize = 400;

impl Core {
    /// Takes an agent's report; one that is older than another of the same agent changes nothing.
    ///
    /// # Errors
    /// Why the agent is not the server's, or the server not the cluster's, in words.
    pub(super) fn take_report(&mut self, report: &Report) -> Result<(), String> {
        self.check_home(report)?;
        self.release_if_grown(report);
        if !self.servers.contains_key(&report.server) {
            self.join(report)?;
        }
        let (now, silence) = (self.now, self.settings.silence);
        let Some(server) = self.servers.get_mut(&report.server) else { return Ok(()) };
        if report.id.boot < server.last.boot && report.home == server.record.home {
            return Err(format!(
                "{} has had a report of a later start of its agent: two agents run on copies of one folder, or this one \
                 was thought to have ended. End the one that is not to be, and start the other again",
                report.server
            ));
        }
        let is_new_home = report.home.is_some() && report.home != server.record.home;
        if report.id <= server.last && !is_new_home {
            return Ok(());
        }
        if report.worker_type != server.record.worker_type {
            return Err(format!(
                "{} says that its workers are {}, and joined with {}: another server has its name, or its type was changed. \
                 It gets no job; give it another name",
                report.server, report.worker_type, server.record.worker_type
            ));
        }
        let takes_over = is_new_home && server.record.home.is_some();
        if is_new_home {
            server.record.home = report.home;
            self.step.records.push(Record::Server(server.record.clone()));
        }
        let was_reachable = server.is_reachable(now, silence);
        server.last = report.id;
        (server.heard, server.last_heard) = (Some(now), Some(now));
        // Workers that it offers again are idle until the next round, unless waiting jobs get them now.
        self.is_vacant |= report.n_workers > server.n_workers;
        server.n_workers = report.n_workers;
        server.is_frozen = report.is_frozen;
        let shown = |text: &String| text.chars().filter(|c| !c.is_control()).take(DISK_MAX).collect();
        let disk_before = std::mem::replace(&mut server.disk, report.disk.as_ref().map(shown));
        server.closed = report.closed.as_ref().map(shown);
        server.epoch = server.epoch.max(self.epoch);
        if report.taken.0 > server.epoch {
            // It has had orders of another state, or of this one before an older copy was put back.
            server.epoch = report.taken.0 + 1;
        }
        if report.taken != (server.epoch, server.n_orders) {
            // The last orders have not arrived, or have been forgotten: they are sent again.
            server.told = None;
        }
        self.to_tell.insert(report.server.clone());
        server.forget.clear();
        server.strays.clear();
        self.note_disk(&report.server, disk_before);
        self.keep_heard(&report.server);
        if !was_reachable {
            // Its workers are idle until the next round, unless waiting jobs get them now.
            self.is_vacant = true;
            let how = if takes_over { ", with another agent than before" } else { "" };
            self.note(format!("{} is here{how}", report.server), None, Some(report.server.clone()));
        }
        let mut vanished = self.runs_on(&report.server, takes_over);
        for rank in &report.ranks {
            vanished.retain(|(run, number)| (*run, *number) != (rank.run, rank.rank));
            self.take_rank(&report.server, rank);
        }
        self.note_vanished(&report.server, &vanished);
        self.touch_waiting(&report.server);
        Ok(())
    }

    /// Notes that a server's disk has become full, or has room again: its idle workers get jobs again.
    fn note_disk(&mut self, name: &str, before: Option<String>) {
        let now = self.servers.get(name).and_then(|server| server.disk.clone());
        match (before, now) {
            (None, Some(why)) => {
                self.is_vacant = true;
                let text = format!("{name} gets no new job, and what runs there goes on: {why}");
                self.warn(text, None, Some(name.to_owned()));
            }
            (Some(_), None) => {
                self.is_vacant = true;
                let text = format!("the disk of {name} has room again: it gets jobs");
                self.note(text, None, Some(name.to_owned()));
            }
            _ => {}
        }
    }

    /// Refuses a report of a second agent with the name of a server, but with another folder. The server stays that of the agent
    /// that is heard of, until it has been silent: so nothing is started twice, and the two agents do not take turns.
    fn check_home(&self, report: &Report) -> Result<(), String> {
        let (now, silence) = (self.now, self.settings.silence);
        let server = self.servers.get(&report.server);
        if !server.is_some_and(|server| server.is_anothers(report.home, now, silence)) {
            return Ok(());
        }
        Err(format!(
            "{} was reported from another folder than now, and was heard of there: the name is another agent's, or `--state` (on \
             Slurm, `--shared`) names another folder than before. Give this one a name of its own, or the folder of before; \
             or, if it is to take over, end the other one: {} s later this one is let in",
            report.server,
            silence.get().ceil()
        ))
    }

    /// Releases a server that has more workers than when it joined, if nothing runs on its workers: it then joins again.
    fn release_if_grown(&mut self, report: &Report) {
        let Some(server) = self.servers.get(&report.server) else { return };
        let workers = &server.record.workers;
        let is_held = workers.iter().any(|worker| !self.holders[worker.index()].is_empty());
        if server.record.drained.is_some() || is_held || report.n_workers as usize <= workers.len() {
            return;
        }
        self.free_place(&report.server);
    }

    /// Gives a new server workers of its type that no server has.
    ///
    /// # Errors
    /// If there are none left, in words.
    fn join(&mut self, report: &Report) -> Result<(), String> {
        let n_workers = report.n_workers as usize;
        let kinds = self.scheduler.cluster().types();
        let Some((worker_type, kind)) = kinds.enumerate().find(|(_, kind)| kind.name == report.worker_type)
        else {
            let known: Vec<_> = kinds.iter().map(|kind| kind.name.as_str()).collect();
            return Err(format!(
                "{} has workers of type {}, which the cluster does not: its types are {}",
                report.server,
                report.worker_type,
                known.join(", ")
            ));
        };
        let (name, per_server) = (kind.name.clone(), kind.workers_per_server.max(1) as usize);
        let workers: Vec<_> = self.scheduler.workers().of_type(worker_type).collect();
        let is_free =
            |workers: &&[WorkerId]| workers.iter().all(|worker| self.places[worker.index()].is_none());
        let mut free = workers.chunks(per_server).filter(is_free);
        let Some(free) = free.find(|free| free.len() >= n_workers) else {
            return Err(format!(
                "{} offers {n_workers} of type {name}; the cluster has no server of that type and size that has not \
                 joined: its servers of {name} have {per_server} each, in all {}{}",
                report.server,
                workers.len(),
                self.whose_place(report, per_server)
            ));
        };
        let record = ServerRecord {
            name: report.server.clone(),
            worker_type: name,
            workers: free.to_vec(),
            home: report.home,
            drained: None,
            removal: None,
        };
        for (place, worker) in (0u32..).zip(&record.workers) {
            self.places[worker.index()] = Some((record.name.clone(), place));
        }
        self.step.records.push(Record::Server(record.clone()));
        let workers = if n_workers == 1 { "1 worker".to_owned() } else { format!("{n_workers} workers") };
        self.note(format!("{} joins with {workers}", record.name), None, Some(record.name.clone()));
        self.servers.insert(record.name.clone(), Server::new(record, self.now));
        Ok(())
    }

    /// Notes why a server's report is refused, only once for each reason. Returns the reason.
    pub(super) fn refusal(&mut self, name: &str, taken: Result<(), String>) -> Option<String> {
        let Err(text) = taken else { return None };
        if self.refused.get(name) != Some(&text) {
            if self.refused.len() >= REFUSED_MAX {
                self.refused.clear();
            }
            self.refused.insert(name.to_owned(), text.clone());
            self.warn(text.clone(), None, Some(name.to_owned()));
        }
        Some(text)
    }

    /// The ranks of live runs that a server has had, and that have not ended. If another agent takes the server over, they include
    /// ranks that were only ordered: the earlier agent may have had the order.
    fn runs_on(&self, server: &str, takes_over: bool) -> Vec<(Run, u32)> {
        let may_be_there = |known: &Known| known.may_be_there() || (takes_over && *known == Known::Ordered);
        let workers = self.servers.get(server).map_or(&[][..], |server| &server.record.workers);
        let mut numbers: Vec<_> = workers.iter().flat_map(|worker| &self.holders[worker.index()]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let runs = numbers.into_iter().filter_map(|number| self.jobs.get(number)?.run.as_ref());
        runs.flat_map(|run| {
            let here = (0u32..)
                .zip(&run.ranks)
                .filter(|(_, rank)| rank.server == server && may_be_there(&rank.known));
            here.map(|(number, _)| (run.run, number))
        })
        .collect()
    }

    fn take_rank(&mut self, server: &str, report: &RankReport) {
        let now = self.now;
        let live = self.jobs.get_mut(&report.run.job);
        let run = live.and_then(|job| job.run.as_mut()).filter(|run| run.run == report.run);
        let rank = run.and_then(|run| {
            let rank = run.ranks.get_mut(report.rank as usize)?;
            (rank.server == server).then_some(rank)
        });
        let Some(rank) = rank else {
            // The run is an earlier start, or of a job that is over: it has been accounted for.
            let Some(here) = self.servers.get_mut(server) else { return };
            if report.phase.is_end() {
                if !here.forget.contains(&report.run) {
                    here.forget.push(report.run);
                }
                self.take_late(server, report);
            } else {
                here.strays.push((report.run, report.worker));
                self.note_unknown(server, report.run);
            }
            return;
        };
        if rank.known.end().is_none() {
            rank.known = Known::Reported(report.phase.clone());
            rank.ran = report.ran.filter(|_| report.phase.is_end());
            let ago = report.ended_ago.filter(|ago| report.phase.is_end() && ago.get() >= 0.0);
            rank.ended = ago.map(|ago| (now - ago).max(Seconds::ZERO));
        }
        self.touched.insert(report.run.job);
        if !report.phase.is_end() {
            self.note_heard(report.run.job, report.rank);
        }
        if report.rank == 0 {
            self.take_progress(report.run, report.progress);
        }
    }

    /// Warns once of a start that runs on a server although these records do not have its job.
    fn note_unknown(&mut self, server: &str, run: Run) {
        let is_known = self.jobs.contains_key(&run.job)
            || self.unfit.contains_key(&run.job)
            || self.over.iter().any(|job| job.number == run.job);
        if self.unknown.len() >= REFUSED_MAX {
            self.unknown.clear();
        }
        if is_known || !self.unknown.insert(run) {
            return;
        }
        let text = format!(
            "{server} runs job {} (incarnation {}), which these records do not have, as where an older copy was put back: it is \
             stopped there; submit it again",
            run.job, run.incarnation
        );
        self.warn(text, None, Some(server.to_owned()));
    }

    /// Notes on disk that a reported rank is not waited for any more, before its lease is sent.
    fn note_heard(&mut self, number: JobNumber, rank: u32) {
        let record = self.jobs.get_mut(&number).and_then(|job| job.record.run.as_mut());
        if record.is_some_and(|run| run.gone_by.remove(&rank).is_some()) {
            self.record_job(number);
        }
    }

    /// Takes the progress that rank 0 reports: a checkpoint secures the time that has been counted.
    fn take_progress(&mut self, run: Run, progress: Progress) {
        self.count(run.job);
        let Some(job) = self.jobs.get_mut(&run.job) else { return };
        let Some(live) = &mut job.run else { return };
        live.progress = progress;
        let (id, lease) = (job.id, live.lease);
        let more = progress.checkpointed - job.record.checkpointed;
        let is_saved = more > 0.0 && progress.checkpointed <= 1e15;
        if is_saved {
            job.record.checkpointed = progress.checkpointed;
            job.record.failures = 0;
            live.at_risk.clear();
        }
        if is_saved {
            self.record_steps(id, lease, more);
            self.record_job(run.job);
        }
    }

    /// Notes ranks that a server has had and does not report any more. The server has lost them, their end is unknown, and so their
    /// workers are free when their leases are over.
    fn note_vanished(&mut self, server: &str, ranks: &[(Run, u32)]) {
        for (run, rank) in ranks {
            let Some(job) = self.jobs.get_mut(&run.job) else { continue };
            let (Some(live), Some(record)) = (&mut job.run, &mut job.record.run) else { continue };
            if let Some(here) = live.ranks.get_mut(*rank as usize) {
                here.known = Known::Lost;
                record.gone_by.entry(*rank).or_insert(live.over_at);
            }
            self.record_job(run.job);
            let text =
                format!("{server} does not know rank {rank} of {run} any more; its lease is waited for");
            self.warn(text, Some(run.job), Some(server.to_owned()));
            self.touched.insert(run.job);
        }
    }

    /// Marks the jobs that wait for workers of a server, to be looked at again.
    fn touch_waiting(&mut self, server: &str) {
        let Some(server) = self.servers.get(server) else { return };
        let waits = |number: &JobNumber| self.jobs.get(number).is_some_and(|job| job.run.is_none());
        let waiting = self.placed_on(&server.record.workers).filter(waits).collect::<Vec<_>>();
        self.touched.extend(waiting);
    }
}

impl Phase {
    /// Whether no process of the rank is left.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Ended(_))
    }
}
