//! A scheduler, its disk, its nodes and the network between them, and the properties that hold at every instant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use apportion::metrics::Recorder;
use apportion::metrics::log::{Header, Replay};
use apportion::scheduler::{Options, Rounds, Scheduler};
use apportion::simulator::PriceChange;
use apportion::spec::run::RunSpec;
use apportion::units::DollarsPerWorkerHour;
use apportion::{Catalog, Cluster, Job, Seconds, StepsPerSecond, Throughputs};
use apportion_live::agent::Server;
use apportion_live::core::{
    Answer, Core, Effect, How, Input, JobRecord, Record, Request, ServerRecord, Settings, Step, Stored,
    Submission,
};
use apportion_live::protocol::{JobNumber, Orders, Program, Report, Run};

use super::log;
use super::node::{Checkpoints, Ends, Manners, Node};
use super::random::Random;

const ROUND: f64 = 10.0;
const BEAT: f64 = 0.5;
const STEP: f64 = 0.4;
/// The time for which faults go on, in s.
const UNQUIET: f64 = 60.0;
/// The instant by which all jobs must be over, in s.
const PATIENCE: f64 = 6000.0;

/// The probabilities of faults, for each message or second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// A message is lost.
    pub(crate) loss: f64,
    /// A message comes twice.
    pub(crate) repeats: f64,
    /// A message is later than others that were sent after it, by up to some rounds.
    pub(crate) late: f64,
    /// The scheduler ends with a step: before it is on disk, after it, or with half of its effects.
    pub(crate) crashes: f64,
    /// An agent ends, is stopped or goes on, in a second.
    pub(crate) agents: f64,
    /// A node is switched off or on, in a second.
    pub(crate) nodes: f64,
    /// A rank fails by itself, in a second.
    pub(crate) jobs: f64,
}

#[derive(Clone, Debug)]
enum Message {
    Up(Report),
    Down(usize, Orders),
}

/// The scheduler's records on disk.
#[derive(Clone, Debug, Default)]
struct Disk {
    epoch: u64,
    jobs: BTreeMap<JobNumber, JobRecord>,
    servers: BTreeMap<String, ServerRecord>,
    scheduler: Option<String>,
    events: Vec<serde_json::Value>,
}

#[derive(Debug)]
pub(crate) struct World {
    seed: u64,
    random: Random,
    faults: Faults,
    now: f64,
    core: Option<Core>,
    restart_at: f64,
    disk: Disk,
    nodes: Vec<Node>,
    network: Vec<(f64, Message)>,
    checkpoints: Checkpoints,
    manners: BTreeMap<JobNumber, Manners>,
    /// Jobs whose submission has been answered.
    submitted: BTreeSet<JobNumber>,
    /// Jobs whose cancellation has been answered.
    cancelled: BTreeSet<JobNumber>,
    requests: BTreeMap<u64, Request>,
    n_requests: u64,
    /// The worker time of ranks that really ran, in s.
    ran: f64,
    /// The instants at which each rank really ran, by node and worker.
    held: BTreeMap<(usize, u32), BTreeMap<Run, (f64, f64)>>,
}

/// The embedded throughputs, read once.
fn throughputs() -> Arc<Throughputs> {
    static THROUGHPUTS: OnceLock<Arc<Throughputs>> = OnceLock::new();
    Arc::clone(THROUGHPUTS.get_or_init(|| Throughputs::embedded("osdi20").unwrap()))
}

impl World {
    /// Runs a world to its end, and panics if a property is violated.
    pub(crate) fn run(seed: u64, faults: Faults) {
        let mut random = Random::new(seed);
        let mut nodes = Vec::new();
        for (name, worker_type, n_workers) in [("a", "v100", 2), ("b", "v100", 2), ("c", "k80", 1)] {
            let server = Server { name: name.into(), worker_type: worker_type.into(), n_workers };
            let mut node = Node::new(server, &mut random);
            node.ends = if seed % 5 < 3 { Ends::WithTime } else { Ends::Bare };
            nodes.push(node);
        }
        let mut world = Self {
            seed,
            random,
            faults,
            now: 0.0,
            core: None,
            restart_at: 0.0,
            disk: Disk::default(),
            nodes,
            network: Vec::new(),
            checkpoints: BTreeMap::new(),
            manners: BTreeMap::new(),
            submitted: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            requests: BTreeMap::new(),
            n_requests: 0,
            ran: 0.0,
            held: BTreeMap::new(),
        };
        while world.now < UNQUIET || !world.is_over() {
            world.go_on();
            assert!(world.now < PATIENCE, "seed {seed}: jobs are not over: {:#?}", world.core);
        }
        world.check_end();
    }

    fn is_over(&self) -> bool {
        self.core.is_some() && self.disk.jobs.values().all(|job| job.outcome.is_some())
    }

    fn is_unquiet(&self) -> bool {
        self.now < UNQUIET
    }

    /// Starts the scheduler anew.
    fn start(&mut self) {
        // In worlds with all faults, the cluster sometimes has workers of another type for one start.
        let is_another = self.faults.agents > 0.0 && self.disk.epoch % 3 == 2;
        let text = if is_another { "v100=4,p100=1,k80=1" } else { "v100=4,k80=1" };
        let cluster: Cluster = text.parse().unwrap();
        let cluster = cluster.with_workers_per_server("v100", 2).unwrap();
        let names = ["fifo", "max_min_fairness_perf", "max_min_fairness_packed"];
        let policy = Catalog::embedded().policy(names[(self.seed % 3) as usize]).unwrap();
        let options =
            Options::corrected().with_round_length(Seconds::new(ROUND)).with_reset_interval(Seconds::ZERO);
        let throughputs = throughputs();
        // In half of all worlds the policy decides inside rounds, and places jobs itself.
        let scheduler = if self.seed.is_multiple_of(2) {
            Scheduler::new(&cluster, throughputs, policy, options).unwrap()
        } else {
            let usable = options.usable(&cluster, &throughputs);
            let placing = Box::new(Rounds::new(policy, &usable, &options));
            Scheduler::with_round_policy(&cluster, throughputs, placing, options).unwrap()
        };
        self.disk.epoch += 1;
        let stored = Stored {
            epoch: self.disk.epoch,
            jobs: self.disk.jobs.values().filter(|job| job.outcome.is_none()).cloned().collect(),
            over: self.disk.jobs.values().filter(|job| job.outcome.is_some()).cloned().collect(),
            next_job: self.disk.jobs.last_key_value().map_or(0, |(number, _)| number.0 + 1),
            servers: self.disk.servers.values().cloned().collect(),
            scheduler: self.disk.scheduler.clone(),
            n_rounds: self.disk.events.iter().filter(|event| event["event"] == "round_started").count()
                as u64,
            is_clock_sure: true,
            drawn: 0,
            set_aside: Vec::new(),
        };
        let mut settings = Settings::of_round(Seconds::new(ROUND));
        settings.decision_limit = None;
        settings.failures_max = 8;
        let (core, step) = Core::open(settings, scheduler, stored, Seconds::new(self.now)).unwrap();
        self.core = Some(core);
        self.put(&step, step.records.len());
        let prices = self.prices();
        if let Some(core) = &mut self.core {
            let step = core.set_prices(prices);
            self.put(&step, 0);
        }
    }

    /// The prices of workers in this start of the scheduler: they differ from those of the start before, and change while jobs run.
    fn prices(&self) -> Vec<PriceChange> {
        let (epoch, now) = (self.disk.epoch as f64, self.now);
        let changes =
            [(0.0, "v100", 3.0 * epoch), (now + 7.0, "v100", 50.0 + epoch), (33.0, "k80", 1.0 + epoch)];
        let change = |(at, worker_type, dollars): (f64, &str, f64)| PriceChange {
            at: Seconds::new(at),
            worker_type: worker_type.to_owned(),
            price: DollarsPerWorkerHour::new(3600.0 * dollars),
        };
        let mut changes: Vec<_> = changes.into_iter().map(change).collect();
        changes.sort_by(|one, other| one.at.get().total_cmp(&other.at.get()));
        changes
    }

    /// Advances the world by a step.
    fn go_on(&mut self) {
        let since = self.now;
        self.now += STEP * (0.5 + self.random.unit());
        if self.core.is_none() && self.now >= self.restart_at {
            self.start();
        }
        let times = (self.now, since);
        for node in &mut self.nodes {
            node.go_on(times, &self.manners, &mut self.checkpoints, &mut self.random);
        }
        self.check_running(self.now - since);
        self.break_something(self.now - since);
        for place in 0..self.nodes.len() {
            if let Some(report) = self.nodes[place].report(self.now, BEAT) {
                self.send(&Message::Up(report));
            }
        }
        self.deliver();
        self.ask();
        if self.core.as_ref().is_some_and(|core| core.wake_at().get() <= self.now) {
            self.tell(Input::Wake);
        }
        self.check_running(0.0);
    }

    fn send(&mut self, message: &Message) {
        let faults = if self.is_unquiet() { self.faults } else { Faults::default() };
        if self.random.chance(faults.loss) {
            return;
        }
        let copies = 1 + usize::from(self.random.chance(faults.repeats));
        for _ in 0..copies {
            let late = if self.random.chance(faults.late) { 3.0 * ROUND * self.random.unit() } else { 0.0 };
            let delay = 0.3 * self.random.unit() + late;
            self.network.push((self.now + delay, message.clone()));
        }
    }

    fn deliver(&mut self) {
        let now = self.now;
        let (due, later): (Vec<_>, Vec<_>) = self.network.drain(..).partition(|(at, _)| *at <= now);
        self.network = later;
        for (_, message) in due {
            match message {
                Message::Up(report) => self.tell(Input::Report(report)),
                Message::Down(place, orders) => {
                    let node = &mut self.nodes[place];
                    if node.is_stopped {
                        // The orders lie in the agent's socket until the agent goes on.
                        self.network.push((now + STEP, Message::Down(place, orders)));
                    } else {
                        node.take(now, &orders, &self.checkpoints);
                    }
                }
            }
        }
    }

    /// Ends the scheduler as an operator does.
    fn close(&mut self) {
        let Some(mut core) = self.core.take() else { return };
        let step = core.close(Seconds::new(self.now));
        assert!(step.effects.is_empty(), "seed {}: nothing is said any more", self.seed);
        self.put(&step, 0);
        self.restart_at = self.now + ROUND * 1.5 * self.random.unit();
    }

    /// Gives the scheduler an input; it may end with that, at any instruction.
    fn tell(&mut self, input: Input) {
        if self.is_unquiet() && self.random.chance(self.faults.crashes / 4.0) {
            return self.close();
        }
        let Some(core) = &mut self.core else { return };
        let step = core.take(Seconds::new(self.now), input);
        let crashes = self.is_unquiet() && self.random.chance(self.faults.crashes);
        if crashes {
            self.core = None;
            self.restart_at = self.now + ROUND * 1.5 * self.random.unit();
            // All records are put on disk, or none: they are one transaction.
            if self.random.chance(0.5) {
                let n_effects = self.random.below(step.effects.len() + 1);
                self.put(&step, n_effects);
            }
        } else {
            self.put(&step, step.effects.len());
        }
    }

    /// Puts a step on disk, and passes on its first `n_effects` effects.
    fn put(&mut self, step: &Step, n_effects: usize) {
        for record in &step.records {
            match record {
                Record::Job(job) => {
                    let known = self.disk.jobs.insert(job.number, (**job).clone());
                    if let Some(known) = known {
                        assert!(known.outcome.is_none(), "seed {}: {job:?} was over", self.seed);
                        assert!(known.incarnation <= job.incarnation, "seed {}: {job:?}", self.seed);
                    }
                }
                Record::Server(server) => {
                    self.disk.servers.insert(server.name.clone(), server.clone());
                }
                Record::ServerRemoved(name) => drop(self.disk.servers.remove(name)),
                Record::Scheduler(state) => self.disk.scheduler = Some(state.clone()),
                Record::Event(_, line) => self.disk.events.push(serde_json::from_str(line).unwrap()),
                Record::Note(..) => {}
            }
        }
        for effect in step.effects.iter().take(n_effects) {
            match effect {
                Effect::Send(name, orders) => {
                    let place = self.nodes.iter().position(|node| node.server.name == *name).unwrap();
                    self.send(&Message::Down(place, orders.clone()));
                }
                Effect::Answer(number, answer) => match (self.requests.remove(number), answer) {
                    (Some(Request::Submit(_)), Ok(Answer::Submitted { job, .. })) => {
                        self.submitted.insert(*job);
                    }
                    (Some(Request::Cancel(job)), Ok(_)) => {
                        self.cancelled.insert(job);
                    }
                    _ => {}
                },
            }
        }
    }

    /// Sends a random request.
    fn ask(&mut self) {
        if !self.is_unquiet() || !self.random.chance(0.15) || self.core.is_none() {
            return;
        }
        let known: Vec<_> = self.disk.jobs.keys().copied().collect();
        let request = match self.random.below(14) {
            // Its operator says that a server is off only where it is.
            12 | 13 => {
                let node = &self.nodes[self.random.below(self.nodes.len())];
                Request::Remove(node.server.name.clone(), node.is_off)
            }
            0 if !known.is_empty() => Request::Cancel(known[self.random.below(known.len())]),
            1 => Request::Drain("b".into(), "to be looked at".into()),
            2 | 3 => Request::Resume("b".into()),
            _ if known.len() < 10 => Request::Submit(Box::new(self.submission())),
            _ => Request::Jobs,
        };
        self.n_requests += 1;
        self.requests.insert(self.n_requests, request.clone());
        self.tell(Input::Request(self.n_requests, request));
    }

    fn submission(&mut self) -> Submission {
        let number = JobNumber(self.disk.jobs.last_key_value().map_or(0, |(number, _)| number.0 + 1));
        let speed = 1.0 + 9.0 * self.random.unit();
        let mut manners = Manners {
            speaks: self.random.chance(0.8),
            is_deaf: self.random.chance(0.05),
            failure_rate: self.faults.jobs,
            speed,
            slow_speed: speed,
            start_up: self.random.unit(),
            stop_time: 2.0 * self.random.unit(),
        };
        let steps = 1 + self.random.below(120) as u32;
        let scale_factor = [1, 1, 1, 2, 4][self.random.below(5)];
        let believed = |factor: f64| StepsPerSecond::new(speed * factor);
        let mut job = Job::new(["A3C", "Recommendation (batch size 512)"][self.random.below(2)]).steps(steps);
        if self.shares() {
            // Jobs of their own speeds share with no other.
            (manners.speed, manners.slow_speed) = (5.0, 5.0);
        } else {
            job = job
                .throughput("v100", believed(1.0))
                .throughput("k80", believed(0.5))
                .scale_factor(scale_factor);
        }
        self.manners.insert(number, manners);
        let program =
            Program { command: vec!["train".into()], directory: None, environment: BTreeMap::new() };
        Submission { name: None, user: None, key: None, job, program }
    }

    fn break_something(&mut self, time: f64) {
        if !self.is_unquiet() {
            if self.random.chance(0.05) {
                let name = ["a", "b", "c"][self.random.below(3)];
                self.tell(Input::Request(0, Request::Resume(name.into())));
            }
            for manners in self.manners.values_mut() {
                manners.failure_rate = 0.0;
            }
            for node in &mut self.nodes {
                node.is_stopped = false;
                node.is_off = false;
                if node.agent.is_none() {
                    node.start_agent(self.now);
                }
            }
            return;
        }
        let now = self.now;
        for node in &mut self.nodes {
            if self.random.chance(self.faults.nodes * time) {
                node.switch_off(self.random.chance(0.3));
            } else if node.is_off {
                if self.random.chance(0.1 * time) {
                    node.is_off = false;
                    node.start_agent(now);
                }
            } else if self.random.chance(self.faults.agents * time) {
                match self.random.below(2) {
                    0 => node.agent = None,
                    _ => node.is_stopped = true,
                }
            } else if node.agent.is_none() && self.random.chance(0.2 * time) {
                node.start_agent(now);
            } else if node.is_stopped && self.random.chance(0.1 * time) {
                node.is_stopped = false;
            }
        }
    }

    /// Checks that no two jobs are on a worker, and no two starts of a job anywhere.
    fn check_running(&mut self, time: f64) {
        let mut workers: BTreeMap<(usize, u32), Vec<Run>> = BTreeMap::new();
        let most = if self.shares() { 2 } else { 1 };
        let mut starts: BTreeMap<JobNumber, Run> = BTreeMap::new();
        for (place, node) in self.nodes.iter().enumerate() {
            for ((run, _), process) in &node.processes {
                let spans = self.held.entry((place, process.start.worker)).or_default();
                spans.insert(*run, (process.since(), process.until_true));
            }
            for ((run, _), process) in node.processes.iter().filter(|(_, process)| process.is_running()) {
                self.ran += time.min(self.now - process.since());
                let here = workers.entry((place, process.start.worker)).or_default();
                here.push(*run);
                assert!(here.len() <= most, "seed {} at {}: {here:?} on one worker", self.seed, self.now);
                let other = starts.insert(run.job, *run);
                assert!(
                    other.is_none_or(|other| other == *run),
                    "seed {} at {}: {run} and {other:?}",
                    self.seed,
                    self.now
                );
            }
        }
    }

    /// Whether the policy lets two jobs share a worker.
    fn shares(&self) -> bool {
        self.seed % 3 == 2
    }

    /// Checks the state at the end.
    fn check_end(&mut self) {
        let seed = self.seed;
        for job in &self.submitted {
            assert!(self.disk.jobs.contains_key(job), "seed {seed}: job {job} was taken in and is lost");
        }
        for job in self.disk.jobs.values() {
            let outcome = job.outcome.as_ref().unwrap();
            assert!(!outcome.reason.is_empty(), "seed {seed}: {job:?}");
            if self.cancelled.contains(&job.number) {
                assert!(matches!(outcome.how, How::Cancelled | How::Completed), "seed {seed}: {job:?}");
            }
            if outcome.how == How::Completed {
                let done = self.checkpoints[&job.number];
                let all = job.job.total_steps.get();
                assert!(done >= all, "seed {seed}: {job:?} is done with {done} of {all} steps");
            }
            if self.faults.jobs == 0.0 {
                assert!(outcome.how != How::Failed, "seed {seed}: {job:?}");
            }
        }
        for job in self.disk.jobs.keys() {
            let is_of = |event: &&serde_json::Value| event["id"].as_u64() == Some(job.0);
            let of = |name: &str| {
                self.disk.events.iter().filter(is_of).filter(|event| event["event"] == name).count()
            };
            let ends = of("completion") + of("dropped");
            assert!(of("arrival") == 1 && ends == 1, "seed {seed}: job {job} has {ends} ends in the log");
        }
        self.check_accounts();
        self.check_log();
    }

    /// Checks that the log of all starts is read as that of a simulation.
    fn check_log(&self) {
        if self.faults.agents > 0.0 {
            // In between it was of another cluster.
            return;
        }
        let cluster = self.core.as_ref().unwrap().cluster();
        let header = Header::new("", cluster, &RunSpec::default(), &BTreeMap::new());
        let mut replay = Replay::new(&header);
        let mut recorder = Recorder::new(cluster);
        for event in &self.disk.events {
            let told = replay.tell(&event.to_string(), &mut recorder);
            assert!(told.is_ok(), "seed {}: {told:?}", self.seed);
        }
    }

    /// The time that workers were really held; the time of shared workers counts once.
    fn time_held(&self) -> f64 {
        let mut held = 0.0;
        for runs in self.held.values() {
            let mut spans: Vec<_> = runs.values().copied().collect();
            spans.sort_by(|one, other| one.0.total_cmp(&other.0));
            let mut until = 0.0f64;
            for (start, end) in spans {
                held += (end - start.max(until)).max(0.0);
                until = until.max(end);
            }
        }
        held
    }

    /// The time in the event log is no more than what really ran, nor are the steps.
    fn check_accounts(&self) {
        let slices = self.disk.events.iter().filter(|event| event["event"] == "slice");
        let (mut time, mut steps) = (0.0, 0.0);
        for slice in slices {
            time += slice["time"].as_f64().unwrap() * slice["n_workers"].as_f64().unwrap();
            steps += slice["steps"][0].as_f64().unwrap() + slice["steps"][1].as_f64().unwrap();
        }
        let done: f64 = self.disk.jobs.keys().filter_map(|number| self.checkpoints.get(number)).sum();
        let seed = self.seed;
        assert!(steps <= done * (1.0 + 1e-9) + 1e-9, "seed {seed}: {steps} steps in the log, {done} done");
        // A rank's end is known a report late, and its gang's end with it.
        let n_ranks = |job: &JobRecord| f64::from(job.incarnation * job.job.scale_factor);
        let slack = 3.0 * ROUND * self.disk.jobs.values().map(n_ranks).sum::<f64>();
        assert!(time <= self.ran + slack, "seed {seed}: {time} s of workers in the log, {} s ran", self.ran);
        if self.faults.agents == 0.0 && self.faults.late == 0.0 && self.nodes[0].ends == Ends::WithTime {
            // Servers say when ranks ended: up to what messages take, the log has what workers were held for.
            let n_runs: usize = self.held.values().map(BTreeMap::len).sum();
            let (held, slack) = (self.time_held(), 0.7 * n_runs as f64);
            assert!(
                (time - held).abs() <= slack,
                "seed {seed}: {time} s of workers in the log, {held} s held"
            );
        }
        if self.faults.agents == 0.0 {
            // A run on workers that another cluster does not have is not counted.
            log::check(&self.disk.events, &[4.0, 1.0], &format!("seed {seed}"));
            log::check_sums(&self.disk.events, self.disk.jobs.values(), &format!("seed {seed}"));
            if !self.shares() {
                log::check_costs(&self.disk.events, self.disk.jobs.values(), &format!("seed {seed}"));
            }
        }
    }
}
