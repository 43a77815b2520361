//! The scheduler's agent of one node of a Slurm cluster: it takes orders and gives reports, with Slurm jobs in place of processes.

use std::collections::BTreeMap;

use apportion::Seconds;

use super::batch::{Batch, Event, Member, View};
use super::nodes::Node;
use super::queue::{Comment, Queue};
use super::reporting_node::ReportingNode;
use super::{Options, PAUSE};
use crate::agent::processes::{adopt_all, at, forget, next_boot, number};
use crate::agent::server_rank::{News, ServerRank};
use crate::agent::{Act, Agent, Home, ProcessesError, RankStart, Server};
use crate::protocol::{End, Orders, Report, Run};
use crate::rank::{self, Start, StartedBy, Steer};

/// A node.
#[derive(Debug)]
pub(super) struct NodeAgent {
    pub(super) reporting: ReportingNode,
    home: Home,
    /// The Slurm jobs, by run and lowest rank.
    batches: BTreeMap<(Run, u32), Batch>,
}

/// The findings of a look at a node.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Whether something has changed that a scheduler waits for.
    pub(super) has_changed: bool,
    /// Sentences for the scheduler's log.
    pub(super) words: Vec<String>,
    /// Why Slurm does not answer; none if it does.
    pub(super) unreachable: Option<String>,
}

impl NodeAgent {
    /// Takes over the jobs of an earlier scheduler on the node.
    pub(super) fn open(
        node: Node,
        worker_type: &str,
        options: &Options,
        now: Seconds,
    ) -> Result<Self, ProcessesError> {
        let home = Home {
            state: options.shared.join("nodes").join(&node.name),
            checkpoints: options.shared.join("checkpoints"),
            shim: Vec::new(),
        };
        for folder in [home.ranks(), home.logs(), home.checkpoints.clone()] {
            std::fs::create_dir_all(&folder).map_err(at(&folder))?;
        }
        let boot = next_boot(&home).map_err(at(&home.state))?;
        let number = number(&home).map_err(at(&home.state))?;
        let (server_ranks, adopted) = adopt_all(&home)?;
        let until = |key: (Run, u32)| {
            let one = adopted.iter().find(|one| (one.report.run, one.report.rank) == key);
            one.map_or((now, Seconds::ZERO), |one| (one.until, one.grace))
        };
        let mut members: BTreeMap<(Run, u32), Vec<Member>> = BTreeMap::new();
        let mut ends = BTreeMap::new();
        for ((run, rank), server_rank) in server_ranks {
            let StartedBy::Slurm { first, .. } = server_rank.by() else { continue };
            ends.insert((run, first), until((run, rank)));
            members.entry((run, first)).or_default().push(Member::new(rank, server_rank));
        }
        let batch = |((run, first), members): ((Run, u32), Vec<Member>)| {
            let comment = Comment { key: options.key.clone(), node: node.name.clone(), run, first };
            let (until, grace) = ends.get(&(run, first)).copied().unwrap_or((now, Seconds::ZERO));
            ((run, first), Batch::new(comment, members, Steer { until, grace, stop: None }, Some(now)))
        };
        let batches = members.into_iter().map(batch).collect();
        let server = Server {
            name: node.name.clone(),
            worker_type: worker_type.to_owned(),
            n_workers: node.n_workers,
        };
        let agent = Agent::new(server, boot, adopted).with_home(number);
        Ok(Self { reporting: ReportingNode::new(node, agent), home, batches })
    }

    /// A report that is sent now, or later, if the node [has one to send](ReportingNode::report).
    pub(super) fn report(&mut self, now: Seconds, is_frozen: bool) -> Option<Report> {
        let is_empty = self.batches.is_empty();
        self.reporting.report(now, is_frozen, is_empty)
    }

    /// Takes orders. Ranks that are to be started are prepared; the next look gives them to Slurm.
    pub(super) fn take(&mut self, orders: &Orders, options: &Options, now: Seconds) {
        let mut starts: BTreeMap<Run, Vec<RankStart>> = BTreeMap::new();
        for act in self.reporting.agent.take(now, orders) {
            match act {
                Act::Start(start) => starts.entry(start.run).or_default().push(*start),
                Act::Steer { run, rank, until, grace, stop } => {
                    let of_rank = |batch: &&mut Batch| {
                        batch.comment.run == run && batch.members.iter().any(|member| member.rank == rank)
                    };
                    if let Some(batch) = self.batches.values_mut().find(of_rank) {
                        batch.steer(rank, Steer { until, grace, stop }, now);
                    }
                }
            }
        }
        for (run, ranks) in starts {
            let shares = orders.leases.iter().any(|lease| lease.run == run && lease.beside.is_some());
            let made = if shares {
                Err(End::Lost(
                    "Slurm gives a worker to one job only, and the policy wants two on it".to_owned(),
                ))
            } else {
                let made = self.make(run, &ranks, options, now);
                made.map_err(|why| {
                    self.reporting.pause(now);
                    End::Lost(why)
                })
            };
            for RankStart { rank, .. } in ranks {
                match &made {
                    Ok(()) => self.reporting.agent.note_waiting(run, rank),
                    Err(end) => self.reporting.agent.note_end(run, rank, end.clone()),
                }
            }
        }
        self.forget();
    }

    /// Makes the folders of ranks that one Slurm job is to start. The error is the reason why not, in words.
    fn make(&mut self, run: Run, ranks: &[RankStart], options: &Options, now: Seconds) -> Result<(), String> {
        let first = ranks.iter().map(|start| start.rank).min().unwrap_or(0);
        let mut members: Vec<Member> = Vec::new();
        let mut steer = Steer { until: now, grace: Seconds::ZERO, stop: None };
        for (place, start) in (0u32..).zip(ranks) {
            steer = Steer { until: start.until, grace: start.grace, stop: None };
            let mut rank = start.clone();
            rank.until = (start.until - now).max(Seconds::ZERO);
            rank.first_server = options.address_of(&start.first_server);
            let start = Start {
                rank,
                by: StartedBy::Slurm { first, place },
                checkpoints: self.home.checkpoints.clone(),
                worker_type: self.reporting.agent.server().worker_type.clone(),
            };
            match ServerRank::make(&self.home, &start) {
                Ok(server_rank) => members.push(Member::new(start.rank.rank, server_rank)),
                Err(why) => {
                    for member in members {
                        let _ = std::fs::remove_dir_all(member.server_rank.folder().path());
                    }
                    return Err(why);
                }
            }
        }
        let comment =
            Comment { key: options.key.clone(), node: self.reporting.node.name.clone(), run, first };
        self.batches.insert((run, first), Batch::new(comment, members, steer, None));
        Ok(())
    }

    /// Removes ranks whose end the scheduler has on disk, and keeps their output.
    fn forget(&mut self) {
        let Self { home, reporting: ReportingNode { agent, .. }, batches } = self;
        batches.retain(|_, batch| {
            let run = batch.comment.run;
            batch.members.retain(|member| {
                let name = rank::name(run, member.rank);
                agent.has(run, member.rank) || forget(home, &name, member.server_rank.folder()).is_err()
            });
            !batch.members.is_empty()
        });
    }

    /// Looks at the ranks. If Slurm `answers`, jobs are submitted and cancelled.
    pub(super) fn look(&mut self, queue: &Queue, options: &Options, now: Seconds, answers: bool) -> Found {
        let mut found = Found::default();
        found.has_changed |= self.reporting.resumes(now);
        let since = |batch: &Batch| batch.n_asked_since(queue.asked);
        let mut n_held =
            queue.n_held(&self.reporting.node.name) + self.batches.values().map(since).sum::<u32>();
        for batch in self.batches.values_mut() {
            let run = batch.comment.run;
            let answers = answers && !self.reporting.node.is_unknown && found.unreachable.is_none();
            let n_free = answers.then(|| self.reporting.node.n_workers.saturating_sub(n_held));
            let before = since(batch);
            let events = batch.look(&View { queue, node: &self.reporting.node, options, now, n_free });
            n_held += since(batch).saturating_sub(before);
            for event in events {
                match event {
                    Event::Begun(rank) => self.reporting.agent.note_started(run, rank),
                    Event::News(rank, News::Progress(progress)) => {
                        found.has_changed |= self.reporting.agent.note_progress(run, rank, progress);
                        continue;
                    }
                    Event::News(rank, News::Stopping) => self.reporting.agent.note_stopping(run, rank),
                    Event::News(rank, News::Ran(ran)) => self.reporting.agent.note_ran(run, rank, ran),
                    Event::News(rank, News::EndedAt(at)) => self.reporting.agent.note_ended(run, rank, at),
                    Event::News(rank, News::Ended(end)) => self.reporting.agent.note_end(run, rank, end),
                    Event::Waits(why) => {
                        found.words.push(format!("{run} waits on {}: {why}", self.reporting.node.name));
                        continue;
                    }
                    Event::MayRunOn(time) => {
                        found.words.push(format!(
                            "Slurm has given up {run} on {}, where it may run on: it is surely over in {:.0} s, when its lease \
                             and the grace are, and can be started elsewhere then",
                            self.reporting.node.name,
                            time.get().ceil()
                        ));
                        continue;
                    }
                    Event::Refused(why) => {
                        self.reporting.pause(now);
                        let pause = PAUSE;
                        found
                            .words
                            .push(format!("{} gets no job for {pause}: {why}", self.reporting.node.name));
                    }
                    Event::Unreachable(why) => {
                        found.unreachable = Some(why);
                        continue;
                    }
                }
                found.has_changed = true;
            }
        }
        found
    }

    /// Whether the node has the ranks that this comment names.
    pub(super) fn has(&self, comment: &Comment) -> bool {
        self.batches.contains_key(&(comment.run, comment.first))
    }
}
