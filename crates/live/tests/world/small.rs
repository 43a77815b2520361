//! A small cluster without faults of its own: only a test causes them.

use std::collections::BTreeMap;

use apportion::policy::RoundPolicy;
use apportion::scheduler::{Options, Rounds, Scheduler};
use apportion::simulator::PriceChange;
use apportion::{Catalog, Cluster, Job, Seconds, StepsPerSecond, Throughputs};
use apportion_live::agent::Server;
use apportion_live::core::{
    Answer, Core, Effect, Input, JobRecord, JobView, Note, Record, Refusal, Request, ServerRecord, Settings,
    Step, Stored, Submission, Why,
};
use apportion_live::protocol::{JobNumber, Program};

use super::node::{Checkpoints, Manners, Node};
use super::random::Random;

/// Length of a round, s.
pub(crate) const ROUND: f64 = 60.0;
const STEP: f64 = 0.25;
const BEAT: f64 = 0.5;

/// A program that reports progress, makes a step a second, and stops as soon as it is asked to.
pub(crate) const GOOD: Manners = Manners {
    speaks: true,
    is_deaf: false,
    failure_rate: 0.0,
    speed: 1.0,
    slow_speed: 1.0,
    start_up: 0.0,
    stop_time: 0.0,
};

/// A scheduler, its records, and servers `a`, `b`, … of the cluster's types, in order.
pub(crate) struct Small {
    pub(crate) core: Option<Core>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) now: f64,
    pub(crate) settings: Settings,
    pub(crate) policy: &'static str,
    /// The policy, if it decides inside rounds; none if it is behind the mechanism.
    pub(crate) placing: Option<fn(Rounds) -> Box<dyn RoundPolicy>>,
    /// Changes of the prices of workers.
    pub(crate) prices: Vec<PriceChange>,
    pub(crate) jobs: BTreeMap<JobNumber, JobRecord>,
    pub(crate) notes: Vec<Note>,
    /// The warnings about submissions.
    pub(crate) warned: Vec<String>,
    pub(crate) events: Vec<serde_json::Value>,
    /// Whether a start knows how long the scheduler was away.
    pub(crate) is_clock_sure: bool,
    servers: BTreeMap<String, ServerRecord>,
    scheduler: Option<String>,
    epoch: u64,
    manners: BTreeMap<JobNumber, Manners>,
    pub(crate) checkpoints: Checkpoints,
    random: Random,
}

/// A job of one step per second on both types, with this many steps.
pub(crate) fn job(steps: u32) -> Job {
    let speed = StepsPerSecond::new(1.0);
    Job::new("my own").steps(steps).throughput("v100", speed).throughput("k80", speed)
}

impl Small {
    /// Starts a scheduler of rounds of 60 s that are decided 10 s ahead, and one server for each part of the cluster.
    pub(crate) fn new(policy: &'static str, servers: &[(&str, u32)]) -> Self {
        let mut random = Random::new(1);
        let mut settings = Settings::of_round(Seconds::new(ROUND));
        settings.look_ahead = Seconds::new(10.0);
        settings.decision_limit = None;
        let node = |((worker_type, n_workers), name): (&(&str, u32), &str)| {
            let (worker_type, n_workers) = ((*worker_type).to_owned(), *n_workers);
            Node::new(Server { name: name.to_owned(), worker_type, n_workers }, &mut random)
        };
        Self {
            core: None,
            nodes: servers.iter().zip(["a", "b", "c"]).map(node).collect(),
            now: 0.0,
            settings,
            policy,
            placing: None,
            prices: Vec::new(),
            jobs: BTreeMap::new(),
            notes: Vec::new(),
            warned: Vec::new(),
            events: Vec::new(),
            is_clock_sure: true,
            servers: BTreeMap::new(),
            scheduler: None,
            epoch: 0,
            manners: BTreeMap::new(),
            checkpoints: Checkpoints::new(),
            random: Random::new(2),
        }
    }

    /// Starts the scheduler on the records of an earlier start.
    pub(crate) fn start(&mut self, cluster: &str) {
        let mut cluster: Cluster = cluster.parse().unwrap();
        for node in &self.nodes {
            let Server { worker_type, n_workers, .. } = &node.server;
            if let Ok(with) = cluster.clone().with_workers_per_server(worker_type, *n_workers) {
                cluster = with;
            }
        }
        let options = Options::corrected()
            .with_round_length(Seconds::new(ROUND))
            .with_reset_interval(Seconds::new(ROUND * 16.0 / 3.0));
        let policy = Catalog::embedded().policy(self.policy).unwrap();
        let throughputs = Throughputs::embedded("osdi20").unwrap();
        let scheduler = match self.placing {
            None => Scheduler::new(&cluster, throughputs, policy, options),
            Some(placing) => {
                let usable = options.usable(&cluster, &throughputs);
                let placing = placing(Rounds::new(policy, &usable, &options));
                Scheduler::with_round_policy(&cluster, throughputs, placing, options)
            }
        };
        let scheduler = scheduler.unwrap();
        self.epoch += 1;
        let is_over = |job: &&JobRecord| job.outcome.is_some();
        let (over, jobs) = self.jobs.values().partition(is_over);
        let cloned = |records: Vec<&JobRecord>| records.into_iter().cloned().collect();
        let stored = Stored {
            epoch: self.epoch,
            jobs: cloned(jobs),
            over: cloned(over),
            next_job: self.jobs.len() as u64,
            servers: self.servers.values().cloned().collect(),
            scheduler: self.scheduler.clone(),
            n_rounds: self.events.iter().filter(|event| event["event"] == "round_started").count() as u64,
            is_clock_sure: self.is_clock_sure,
            drawn: self.now.to_bits(),
            set_aside: Vec::new(),
        };
        let (mut core, step) = Core::open(self.settings, scheduler, stored, Seconds::new(self.now)).unwrap();
        let priced = core.set_prices(self.prices.clone());
        self.core = Some(core);
        self.put(step);
        self.put(priced);
    }

    /// Ends the scheduler as an operator does.
    pub(crate) fn close(&mut self) {
        let step = self.core.as_mut().map(|core| core.close(Seconds::new(self.now)));
        self.put(step.unwrap());
        self.core = None;
    }

    /// Puts back a copy from before the first decision, for the next start.
    pub(crate) fn put_back(&mut self) {
        (self.scheduler, self.epoch) = (None, 0);
    }

    fn put(&mut self, step: Step) -> Option<Result<Answer, Refusal>> {
        for record in step.records {
            match record {
                Record::Job(job) => drop(self.jobs.insert(job.number, *job)),
                Record::Server(server) => drop(self.servers.insert(server.name.clone(), server)),
                Record::ServerRemoved(name) => drop(self.servers.remove(&name)),
                Record::Scheduler(state) => self.scheduler = Some(state),
                Record::Event(_, line) => self.events.push(serde_json::from_str(&line).unwrap()),
                Record::Note(_, note) => self.notes.push(note),
            }
        }
        let mut answered = None;
        for effect in step.effects {
            match effect {
                Effect::Send(name, orders) => {
                    let node = self.nodes.iter_mut().find(|node| node.server.name == name).unwrap();
                    if !node.is_stopped {
                        node.take(self.now, &orders, &self.checkpoints);
                    }
                }
                Effect::Answer(_, answer) => answered = Some(answer),
            }
        }
        answered
    }

    fn tell(&mut self, input: Input) -> Option<Result<Answer, Refusal>> {
        let step = self.core.as_mut()?.take(Seconds::new(self.now), input);
        self.put(step)
    }

    pub(crate) fn ask(&mut self, request: Request) -> Result<Answer, Refusal> {
        self.tell(Input::Request(1, request)).unwrap()
    }

    pub(crate) fn try_submit(&mut self, job: Job, manners: Manners) -> Result<JobNumber, Refusal> {
        let program =
            Program { command: vec!["train".into()], directory: None, environment: BTreeMap::new() };
        let submission = Submission { name: None, user: None, key: None, job, program };
        let request = if self.settings.front_door { Request::TakeIn } else { Request::Submit };
        match self.ask(request(Box::new(submission)))? {
            Answer::Submitted { job, warnings } => {
                self.warned.extend(warnings);
                self.manners.insert(job, manners);
                Ok(job)
            }
            answer => panic!("{answer:?}"),
        }
    }

    pub(crate) fn submit(&mut self, job: Job) -> JobNumber {
        self.try_submit(job, GOOD).unwrap()
    }

    /// Advances the nodes, and the scheduler if it is there, to this instant.
    pub(crate) fn until(&mut self, end: f64) {
        while self.now < end {
            self.nodes_go_on();
            for place in 0..self.nodes.len() {
                if let Some(report) = self.nodes[place].report(self.now, BEAT) {
                    self.tell(Input::Report(report));
                }
            }
            if self.core.as_ref().is_some_and(|core| core.wake_at().get() <= self.now) {
                self.tell(Input::Wake);
            }
        }
    }

    /// Advances the nodes while the scheduler's process is stopped: reports wait, or are lost.
    pub(crate) fn sleep_until(&mut self, end: f64) {
        while self.now < end {
            self.nodes_go_on();
        }
    }

    /// Wakes the scheduler, before it takes any report.
    pub(crate) fn wake(&mut self) {
        self.tell(Input::Wake);
    }

    fn nodes_go_on(&mut self) {
        let since = self.now;
        self.now += STEP;
        for node in &mut self.nodes {
            node.go_on((self.now, since), &self.manners, &mut self.checkpoints, &mut self.random);
        }
    }

    pub(crate) fn why(&mut self, job: JobNumber) -> Why {
        match self.ask(Request::Why(job)).unwrap() {
            Answer::Why(why) => *why,
            answer => panic!("{answer:?}"),
        }
    }

    pub(crate) fn views(&mut self) -> Vec<JobView> {
        match self.ask(Request::Jobs).unwrap() {
            Answer::Jobs(views) => views,
            answer => panic!("{answer:?}"),
        }
    }

    /// Sets the end of every start of this job.
    pub(crate) fn doom(&mut self, job: JobNumber, end: &apportion_live::protocol::End) {
        for node in &mut self.nodes {
            node.fates.insert(job, end.clone());
        }
    }

    /// The number of warnings so far that contain this text.
    pub(crate) fn warnings(&self, text: &str) -> usize {
        self.notes.iter().filter(|note| note.is_warning && note.text.contains(text)).count()
    }
}
