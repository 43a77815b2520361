//! A pretend node: an agent, the shims that outlive it, and the programs that they started.

use std::collections::BTreeMap;

use apportion::Seconds;
use apportion_live::agent::{Act, Adopted, Agent, RankStart, Server};
use apportion_live::protocol::{End, JobNumber, Orders, Phase, Progress, RankReport, Report, Run, Stop};

use super::random::Random;

/// The behaviour of a job's program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    /// Whether it writes its progress, and stops when its control file says so.
    pub(crate) speaks: bool,
    /// Whether it ignores requests to stop.
    pub(crate) is_deaf: bool,
    /// The probability per second that a rank of it fails.
    pub(crate) failure_rate: f64,
    /// Steps per second on workers of all types but `k80`.
    pub(crate) speed: f64,
    /// Steps per second on workers of type `k80`.
    pub(crate) slow_speed: f64,
    /// Time before its first step, in s.
    pub(crate) start_up: f64,
    /// Time that it takes to stop, in s.
    pub(crate) stop_time: f64,
}

/// The steps in jobs' checkpoints on disk.
pub(crate) type Checkpoints = BTreeMap<JobNumber, f64>;

/// A rank and its shim.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) start: RankStart,
    /// The true time at which the program was started.
    since: f64,
    first: f64,
    steps: f64,
    checkpointed: f64,
    until: Seconds,
    grace: Seconds,
    is_deaf: bool,
    /// The instant of the request to stop, on the node's clock.
    asked: Option<Seconds>,
    after: Option<f64>,
    speaks: bool,
    start_up: f64,
    proposed: Option<u64>,
    done: bool,
    pub(crate) end: Option<End>,
    /// True time until which it has run.
    pub(crate) until_true: f64,
}

/// The form of a node's reports of ranks that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The end alone.
    Bare,
    /// The end, and the time that the rank ran.
    WithTime,
}

/// The orders that the ranks of a node heed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heed {
    /// All orders, and the ends of their leases.
    All,
    /// None, as Slurm's jobs while its controller is away.
    Nothing,
}

/// A node with its own clock.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) server: Server,
    /// Offset of the node's clock, which shows `offset + rate · true time`.
    offset: f64,
    rate: f64,
    pub(crate) agent: Option<Agent>,
    /// Whether the agent's process is stopped: it then takes and reports nothing.
    pub(crate) is_stopped: bool,
    pub(crate) boots: u64,
    pub(crate) processes: BTreeMap<(Run, u32), Process>,
    next_beat: f64,
    pub(crate) is_off: bool,
    /// The end of each start of these jobs, at once.
    pub(crate) fates: BTreeMap<JobNumber, End>,
    /// Whether it reports that it can start nothing now.
    pub(crate) is_frozen: bool,
    /// The orders that its ranks heed.
    pub(crate) heed: Heed,
    /// Its message about its disk; none if that has room.
    pub(crate) disk: Option<String>,
    /// The form of its reports of ended ranks.
    pub(crate) ends: Ends,
    /// The number of workers that it offers; none for all of them.
    pub(crate) n_offered: Option<u32>,
}

impl Node {
    pub(crate) fn new(server: Server, random: &mut Random) -> Self {
        let offset = 1000.0 * random.unit();
        let rate = 1.0 + 0.002 * (random.unit() - 0.5);
        let boots = 1;
        let agent = Some(Agent::new(server.clone(), boots, Vec::new()));
        let processes = BTreeMap::new();
        Self {
            server,
            offset,
            rate,
            agent,
            is_stopped: false,
            boots,
            processes,
            next_beat: 0.0,
            is_off: false,
            fates: BTreeMap::new(),
            is_frozen: false,
            heed: Heed::All,
            disk: None,
            ends: Ends::Bare,
            n_offered: None,
        }
    }

    fn clock(&self, now: f64) -> Seconds {
        Seconds::new(self.offset + self.rate * now)
    }

    /// Starts the agent again: it finds the shims, and their ends.
    pub(crate) fn start_agent(&mut self, now: f64) {
        self.boots += 1;
        let adopted = self.processes.iter().map(|((run, rank), process)| Adopted {
            report: RankReport {
                run: *run,
                rank: *rank,
                worker: process.start.worker,
                phase: match (&process.end, process.asked) {
                    (Some(end), _) => Phase::Ended(end.clone()),
                    (None, Some(_)) => Phase::Stopping,
                    (None, None) => Phase::Running,
                },
                progress: process.progress(now),
                ran: process.ran().filter(|_| self.ends == Ends::WithTime),
                ended_ago: None,
            },
            ended: process.ended().filter(|_| self.ends == Ends::WithTime).map(|at| self.clock(at)),
            until: process.until,
            grace: process.grace,
        });
        self.agent = Some(Agent::new(self.server.clone(), self.boots, adopted.collect()));
        self.is_stopped = false;
    }

    /// Switches the node off: all processes are gone, and their folders, too, if the disk is new.
    pub(crate) fn switch_off(&mut self, loses_disk: bool) {
        self.agent = None;
        self.is_off = true;
        if loses_disk {
            self.processes.clear();
        }
        for process in self.processes.values_mut().filter(|process| process.end.is_none()) {
            process.end = Some(End::Lost("the node was switched off".to_owned()));
        }
    }

    /// Takes orders, if the agent's process runs.
    pub(crate) fn take(&mut self, now: f64, orders: &Orders, checkpoints: &Checkpoints) {
        let clock = self.clock(now);
        let Some(agent) = &mut self.agent else { return };
        for act in agent.take(clock, orders) {
            match act {
                Act::Start(start) => {
                    let first = checkpoints.get(&start.run.job).copied().unwrap_or(0.0);
                    let process = Process {
                        since: now,
                        first,
                        steps: first,
                        checkpointed: first,
                        until: start.until,
                        grace: start.grace,
                        is_deaf: false,
                        asked: None,
                        after: None,
                        speaks: false,
                        start_up: 0.0,
                        proposed: None,
                        done: false,
                        end: None,
                        until_true: now,
                        start: *start,
                    };
                    let key = (process.start.run, process.start.rank);
                    assert!(self.processes.insert(key, process).is_none(), "{key:?} is started twice");
                }
                Act::Steer { run, rank, until, grace, stop } => {
                    if let Some(process) = self.processes.get_mut(&(run, rank)) {
                        process.until = until;
                        process.grace = grace;
                        process.steer(clock, stop);
                    }
                }
            }
        }
        // Folders of ranks that the agent has forgotten are removed.
        let known: Vec<_> = agent.report(clock).ranks.iter().map(|rank| (rank.run, rank.rank)).collect();
        self.processes.retain(|key, process| process.end.is_none() || known.contains(key));
    }

    /// Advances the node to now: shims and programs go on whether the agent runs or not.
    pub(crate) fn go_on(
        &mut self,
        (now, since): (f64, f64),
        manners: &BTreeMap<JobNumber, Manners>,
        checkpoints: &mut Checkpoints,
        random: &mut Random,
    ) {
        let clock = self.clock(now);
        for ((run, rank), process) in &mut self.processes {
            let Some(manners) = manners.get(&run.job).filter(|_| process.end.is_none()) else { continue };
            let speed = if self.server.worker_type == "k80" { manners.slow_speed } else { manners.speed };
            process.until_true = now;
            process.is_deaf = self.heed == Heed::Nothing;
            process.go_on((now, since), clock, Manners { speed, ..*manners }, random);
            if let Some(end) = self.fates.get(&run.job) {
                process.end = Some(end.clone());
            }
            if *rank == 0 {
                let saved = checkpoints.entry(run.job).or_insert(0.0);
                *saved = saved.max(process.checkpointed);
            }
        }
        if let Some(agent) = self.agent.as_mut().filter(|_| !self.is_stopped) {
            for ((run, rank), process) in &self.processes {
                agent.note_progress(*run, *rank, process.progress(now));
                if let Some(ran) = process.ran().filter(|_| self.ends == Ends::WithTime) {
                    agent.note_ran(*run, *rank, ran);
                }
                if let Some(at) = process.ended().filter(|_| self.ends == Ends::WithTime) {
                    agent.note_ended(*run, *rank, Seconds::new(self.offset + self.rate * at));
                }
                if let Some(end) = &process.end {
                    agent.note_end(*run, *rank, end.clone());
                } else if process.asked.is_some() {
                    agent.note_stopping(*run, *rank);
                }
            }
        }
    }

    /// A report, if it is time for one and the agent's process runs.
    pub(crate) fn report(&mut self, now: f64, beat: f64) -> Option<Report> {
        let clock = self.clock(now);
        let agent = self.agent.as_mut().filter(|_| !self.is_stopped && now >= self.next_beat)?;
        self.next_beat = now + beat;
        let report = agent.report(clock);
        let n_workers = self.n_offered.unwrap_or(report.n_workers);
        Some(Report { is_frozen: self.is_frozen, disk: self.disk.clone(), n_workers, ..report })
    }
}

impl Process {
    pub(crate) fn is_running(&self) -> bool {
        self.end.is_none()
    }

    pub(crate) fn since(&self) -> f64 {
        self.since
    }

    /// True time at which it ended.
    fn ended(&self) -> Option<f64> {
        self.end.as_ref().map(|_| self.until_true)
    }

    /// The time that it ran, once it has ended.
    fn ran(&self) -> Option<Seconds> {
        self.end.as_ref().map(|_| Seconds::new(self.until_true - self.since))
    }

    fn progress(&self, now: f64) -> Progress {
        if !self.speaks {
            return Progress::default();
        }
        Progress {
            speaks: true,
            steps: self.steps,
            checkpointed: self.checkpointed,
            first: self.first,
            seconds: (now - self.since - self.start_up).max(0.0),
            proposed: self.proposed,
            done: self.done,
        }
    }

    fn steer(&mut self, clock: Seconds, stop: Option<Stop>) {
        match stop {
            None => {}
            Some(Stop::Propose) => self.proposed = Some(self.steps.ceil() as u64 + 2),
            Some(Stop::After(step)) => {
                self.after = Some(step as f64);
                self.asked.get_or_insert(clock);
            }
            Some(Stop::Now | Stop::Kill) => {
                self.asked.get_or_insert(clock);
            }
        }
    }

    fn go_on(&mut self, (now, since): (f64, f64), clock: Seconds, manners: Manners, random: &mut Random) {
        self.speaks = manners.speaks;
        self.start_up = manners.start_up;
        let time = (now - since.max(self.since + manners.start_up)).max(0.0);
        if clock >= self.until && !self.is_deaf {
            self.asked.get_or_insert(self.until);
        }
        let total = self.start.total_steps.get();
        let most = self.after.map_or(total, |after| after.min(total).max(self.steps));
        self.steps = (self.steps + manners.speed * time).min(most);
        if manners.speaks && random.chance(0.2 * time) && self.start.rank == 0 {
            self.checkpointed = self.steps;
        }
        if random.chance(manners.failure_rate * time) {
            self.end = Some(if random.chance(0.5) { End::Exit(1) } else { End::Signal(11) });
        } else if self.steps >= total {
            (self.checkpointed, self.done) = (self.steps, true);
            self.end = Some(if self.asked.is_some() { End::Stopped(Some(0)) } else { End::Exit(0) });
        } else if let Some(asked) = self.asked.filter(|_| !self.is_deaf) {
            let is_ready = self.after.is_none_or(|after| self.steps >= after);
            if clock >= asked + self.grace {
                self.end = Some(End::Killed);
            } else if !manners.is_deaf && is_ready && clock >= asked + Seconds::new(manners.stop_time) {
                self.checkpointed = self.steps;
                self.end = Some(End::Stopped(Some(143)));
            }
        }
    }
}
