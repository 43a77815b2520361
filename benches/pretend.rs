//! A pretend cluster for measurements of the live scheduler: its agents are real, and their programs only count steps.
//!
//! [`World`] drives a [`Core`] on a pretend clock; measurements of a real driver use [`Node`] alone.

use std::collections::BTreeMap;
use std::time::Duration;

use apportion::index::RowId;
use apportion::scheduler::{Options, Scheduler};
use apportion::workload::random::{SeedStreams, Stream};
use apportion::{Catalog, Cluster, Job, Seconds, Steps, Throughputs};
use apportion_live::agent::{Act, Agent, Server};
use apportion_live::core::{Core, Effect, Input, Record, Request, Settings, Step, Stored, Submission};
use apportion_live::protocol::{End, JobNumber, Orders, Program, Progress, Report, Run, Stop};
use apportion_live::store::Store;

use crate::usage::processor_time;

/// Length of a round, s.
pub const ROUND: f64 = 360.0;

/// Interval between an agent's reports, s.
pub const BEAT: usize = 3;

/// Time that a program takes before its first step, s.
const START_UP: f64 = 10.0;

/// Time between a program's checkpoints, s.
const CHECKPOINT: f64 = 600.0;

/// The policy of all measurements.
pub const POLICY: &str = "max_min_fairness_perf";

/// Workers by type, 500 in all.
const WORKERS: [(&str, u32); 3] = [("v100", 168), ("p100", 168), ("k80", 164)];

/// The cluster of 500 workers, on servers of `per_server` workers each: 1, 2 or 4.
pub fn cluster(per_server: u32) -> Cluster {
    let text: Vec<_> = WORKERS.iter().map(|(name, n)| format!("{name}={n}")).collect();
    let mut cluster: Cluster = text.join(",").parse().unwrap();
    for (name, _) in WORKERS {
        cluster = cluster.with_workers_per_server(name, per_server).unwrap();
    }
    cluster
}

/// The cluster's servers, without running programs.
pub fn nodes(per_server: u32) -> Vec<Node> {
    let mut nodes = Vec::new();
    for (place, (worker_type, n)) in WORKERS.into_iter().enumerate() {
        for number in 0..n / per_server {
            let name = format!("{worker_type}-{number}");
            let server = Server { name, worker_type: worker_type.into(), n_workers: per_server };
            let agent = Agent::new(server, 1, Vec::new());
            nodes.push(Node { agent, place, programs: BTreeMap::new() });
        }
    }
    nodes
}

/// The scheduler of the cluster.
pub fn scheduler(per_server: u32) -> Scheduler {
    let options =
        Options::corrected().with_round_length(Seconds::new(ROUND)).with_reset_interval(Seconds::ZERO);
    let policy = Catalog::embedded().policy(POLICY).unwrap();
    Scheduler::new(&cluster(per_server), Throughputs::embedded("osdi20").unwrap(), policy, options).unwrap()
}

/// A source of random jobs of the measured types: two thirds on one worker, a sixth each on 2 and on 4.
#[derive(Debug)]
pub struct Jobs {
    draws: Stream,
    /// Scale factors, with the rows of the matrix that have each.
    rows: [(u32, Vec<RowId>); 3],
    n: u64,
}

impl Jobs {
    /// A source of all measured types that run on every worker type.
    pub fn new() -> Self {
        let throughputs = Throughputs::embedded("osdi20").unwrap();
        let of_size = |n: u32| {
            let runs = |row: RowId| speeds(&throughputs, row).iter().all(|speed| *speed > 0.0);
            let rows = throughputs.rows().enumerate();
            (n, rows.filter(|(row, key)| key.scale_factor == n && runs(*row)).map(|(row, _)| row).collect())
        };
        Self { draws: SeedStreams::new(0).stream("bench"), rows: [1, 2, 4].map(of_size), n: 0 }
    }

    /// The next job, and its steps/s by worker type. Jobs take `hours` hours on average on the first type, v100.
    pub fn next(&mut self, hours: f64) -> (Submission, [f64; 3]) {
        let throughputs = Throughputs::embedded("osdi20").unwrap();
        let size = [0, 0, 0, 0, 1, 2][self.draws.below(6)];
        let row = *self.draws.choice(&self.rows[size].1);
        let speeds = speeds(&throughputs, row);
        let seconds = 3600.0 * hours * self.draws.uniform_in(0.1, 1.9);
        let job = Job::new(throughputs.rows()[row].job_type.clone())
            .scale_factor(self.rows[size].0)
            .total_steps(Steps::new((seconds * speeds[0]).ceil()));
        self.n += 1;
        let program = Program {
            command: vec!["python3".into(), "train.py".into(), "--epochs".into(), "90".into()],
            directory: Some("project".into()),
            environment: BTreeMap::from([("OMP_NUM_THREADS".to_owned(), "4".to_owned())]),
        };
        let (name, key) = (format!("training-{}", self.n), format!("{:032x}", self.n));
        (Submission { name: Some(name), user: Some("ann".into()), key: Some(key), job, program }, speeds)
    }
}

impl Default for Jobs {
    fn default() -> Self {
        Self::new()
    }
}

fn speeds(throughputs: &Throughputs, row: RowId) -> [f64; 3] {
    WORKERS.map(|(name, _)| throughputs.alone(row, throughputs.find_worker_type(name).unwrap()))
}

/// The speeds of a job's programs, and their last checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Steps/s, by worker type.
    pub speeds: [f64; 3],
    /// Steps that the last checkpoint holds.
    pub saved: f64,
}

/// The work of all active jobs.
pub type Works = BTreeMap<JobNumber, Work>;

/// The pretended program of a rank.
#[derive(Debug)]
struct Pretended {
    since: f64,
    first: f64,
    total: f64,
    checkpointed: f64,
    saved_at: f64,
    is_to_propose: bool,
    is_asked: bool,
}

/// A server: its agent, and the programs that it has started.
#[derive(Debug)]
pub struct Node {
    agent: Agent,
    /// The position of its worker type.
    place: usize,
    programs: BTreeMap<(Run, u32), Pretended>,
}

impl Node {
    /// The server's name.
    pub fn name(&self) -> &str {
        &self.agent.server().name
    }

    /// Takes orders: programs start at once, and stop at the next report.
    pub fn take(&mut self, now: f64, orders: &Orders, works: &Works) {
        for act in self.agent.take(Seconds::new(now), orders) {
            match act {
                Act::Start(start) => {
                    let first = works.get(&start.run.job).map_or(0.0, |work| work.saved);
                    let total = start.total_steps.get();
                    let program = Pretended {
                        since: now,
                        first,
                        total,
                        checkpointed: first,
                        saved_at: now,
                        is_to_propose: false,
                        is_asked: false,
                    };
                    self.programs.insert((start.run, start.rank), program);
                }
                Act::Steer { run, rank, stop: Some(stop), .. } => {
                    let Some(program) = self.programs.get_mut(&(run, rank)) else { continue };
                    if stop == Stop::Propose {
                        program.is_to_propose = true;
                    } else {
                        program.is_asked = true;
                    }
                }
                Act::Steer { .. } => {}
            }
        }
    }

    /// The report of everything that has happened on the server until now.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "steps are few")]
    pub fn report(&mut self, now: f64, works: &mut Works) -> Report {
        let (agent, place) = (&mut self.agent, self.place);
        self.programs.retain(|&(run, rank), program| {
            let Some(work) = works.get_mut(&run.job) else { return false };
            let seconds = (now - program.since - START_UP).max(0.0);
            let steps = (program.first + seconds * work.speeds[place]).min(program.total);
            let is_done = steps >= program.total;
            if is_done || program.is_asked || now >= program.saved_at + CHECKPOINT {
                (program.checkpointed, program.saved_at) = (steps, now);
            }
            if rank == 0 {
                work.saved = work.saved.max(program.checkpointed);
            }
            let proposed = program.is_to_propose.then_some(steps as u64 + 1);
            let progress = Progress {
                speaks: true,
                steps,
                checkpointed: program.checkpointed,
                first: program.first,
                seconds,
                proposed,
                done: is_done,
            };
            agent.note_progress(run, rank, progress);
            if is_done || program.is_asked {
                let end = if is_done { End::Exit(0) } else { End::Stopped(Some(0)) };
                agent.note_end(run, rank, end);
            }
            !(is_done || program.is_asked)
        });
        agent.report(Seconds::new(now))
    }
}

/// Processor time of the core in a round, and the numbers of its orders and reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// The decision, and the orders that follow at once.
    pub decision: Duration,
    /// Everything from the decision until [`TURN`](World::TURN) s into the next round, in which runs end and start.
    pub turn: Duration,
    /// The whole round, with all reports.
    pub all: Duration,
    /// The number of orders that followed at once from the decision.
    pub n_orders: usize,
    /// The number of reports in the round.
    pub n_reports: usize,
}

/// A core, its pretend servers, and a constant number of jobs: where one ends, another comes.
#[derive(Debug)]
pub struct World {
    core: Core,
    nodes: Vec<Node>,
    places: BTreeMap<String, usize>,
    jobs: Jobs,
    works: Works,
    hours: f64,
    n_jobs: usize,
    n_requests: u64,
    second: usize,
    store: Option<Store>,
    /// Counts of the records so far.
    pub records: Records,
}

/// Counts of the records that the core has asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Records {
    /// The number of times that a job was put on disk.
    pub jobs: usize,
    /// The number of jobs that are over.
    pub over: usize,
    /// The number of lines of the event log.
    pub events: usize,
    /// The number of bytes of the event log.
    pub event_bytes: usize,
    /// The number of notes.
    pub notes: usize,
    /// The number of bytes of the scheduler's last state.
    pub state_bytes: usize,
    /// The number of times that records were put on disk.
    pub commits: usize,
}

impl World {
    /// Time into a round after which everything that its decision asked for has been done, s.
    pub const TURN: f64 = 10.0;

    /// A world of `n_jobs` jobs that take `hours` hours on average. If there is a store, the core's records go to it.
    pub fn new(per_server: u32, (n_jobs, hours): (usize, f64), store: Option<(Store, Stored)>) -> Self {
        let (store, stored) = store
            .map_or((None, Stored { epoch: 1, ..Stored::default() }), |(store, stored)| {
                (Some(store), stored)
            });
        let settings = Settings::of_round(Seconds::new(ROUND));
        let (core, _) = Core::open(settings, scheduler(per_server), stored, Seconds::ZERO).unwrap();
        let nodes = nodes(per_server);
        let places = nodes.iter().enumerate().map(|(place, node)| (node.name().to_owned(), place)).collect();
        let mut world = Self {
            core,
            nodes,
            places,
            jobs: Jobs::new(),
            works: Works::new(),
            hours,
            n_jobs,
            n_requests: 0,
            second: 0,
            store,
            records: Records::default(),
        };
        let mut spent = Spent::default();
        // All servers report before the first job arrives.
        for _ in 0..BEAT {
            world.go_on(&mut spent);
        }
        world.submit(&mut spent);
        world
    }

    /// The time of the pretend clock, s.
    pub fn now(&self) -> f64 {
        self.second as f64
    }

    /// The core.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Goes on until the next round has been decided and has begun.
    pub fn round(&mut self) -> Spent {
        let mut spent = Spent::default();
        let rounds = self.core.counters().rounds;
        while self.core.counters().rounds == rounds {
            self.go_on(&mut spent);
        }
        let turn = spent.turn;
        let look_ahead = Settings::of_round(Seconds::new(ROUND)).look_ahead.get();
        let end = self.now() + look_ahead + Self::TURN;
        while self.now() < end {
            self.go_on(&mut spent);
        }
        spent.turn = spent.all.saturating_sub(turn);
        spent
    }

    /// Lets a second pass: a part of the servers reports, and the core is woken if it asked for it.
    fn go_on(&mut self, spent: &mut Spent) {
        self.second += 1;
        for place in (self.second % BEAT..self.nodes.len()).step_by(BEAT) {
            let now = self.now();
            let report = self.nodes[place].report(now, &mut self.works);
            spent.n_reports += 1;
            self.tell(Input::Report(report), spent);
        }
        if self.core.wake_at().get() <= self.now() {
            self.tell(Input::Wake, spent);
        }
        if self.second > BEAT {
            self.submit(spent);
        }
    }

    /// Submits new jobs in place of those that are over.
    fn submit(&mut self, spent: &mut Spent) {
        while self.works.len() < self.n_jobs {
            let (submission, speeds) = self.jobs.next(self.hours);
            self.works.insert(JobNumber(self.n_requests), Work { speeds, saved: 0.0 });
            let request = Request::Submit(Box::new(submission));
            self.n_requests += 1;
            self.tell(Input::Request(self.n_requests, request), spent);
        }
    }

    fn tell(&mut self, input: Input, spent: &mut Spent) {
        let (rounds, before) = (self.core.counters().rounds, processor_time());
        let step = self.core.take(Seconds::new(self.now()), input);
        let time = processor_time().saturating_sub(before);
        if self.core.counters().rounds > rounds {
            spent.turn = spent.all;
            spent.decision = time;
            spent.n_orders = step.effects.len();
        }
        spent.all += time;
        self.put(step);
    }

    /// Puts a step's records on disk, and then sends its orders to the servers.
    fn put(&mut self, step: Step) {
        if let Some(store) = &mut self.store {
            store.commit(&step.records).unwrap();
        }
        self.records.commits += usize::from(!step.records.is_empty());
        for record in &step.records {
            match record {
                Record::Job(job) => {
                    self.records.jobs += 1;
                    if job.outcome.is_some() {
                        self.records.over += 1;
                        self.works.remove(&job.number);
                    }
                }
                Record::Scheduler(state) => self.records.state_bytes = state.len(),
                Record::Event(_, line) => {
                    self.records.events += 1;
                    self.records.event_bytes += line.len();
                }
                Record::Note(..) => self.records.notes += 1,
                Record::Server(_) | Record::ServerRemoved(_) => {}
            }
        }
        for effect in step.effects {
            match effect {
                Effect::Send(name, orders) => {
                    let now = self.now();
                    self.nodes[self.places[&name]].take(now, &orders, &self.works);
                }
                Effect::Answer(_, answer) => drop(answer.unwrap()),
            }
        }
    }
}
