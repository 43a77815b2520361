//! The time that the mechanism is told as received: up to the end of the present round, and without lost work.

use std::collections::BTreeMap;

use apportion::scheduler::{Options, Scheduler};
use apportion::{Catalog, Job, Seconds, StepsPerSecond, Throughputs};
use apportion_live::agent::Server;
use apportion_live::core::{Answer, Core, Effect, How, Input, Request, Settings, Stored, Submission};
use apportion_live::protocol::{JobNumber, Program};

use super::node::{Checkpoints, Ends, Manners, Node};
use super::random::Random;
use super::small::{GOOD, Small, job};

const STEP: f64 = 0.25;

/// One job on one worker, in rounds of 60 s that are decided 10 s ahead.
struct Alone {
    core: Core,
    node: Node,
    manners: BTreeMap<JobNumber, Manners>,
    now: f64,
}

impl Alone {
    fn start() -> Self {
        let options =
            Options::corrected().with_round_length(Seconds::new(60.0)).with_reset_interval(Seconds::new(1e6));
        let policy = Catalog::embedded().policy("max_min_fairness_perf").unwrap();
        let cluster = "v100=1".parse().unwrap();
        let scheduler =
            Scheduler::new(&cluster, Throughputs::embedded("osdi20").unwrap(), policy, options).unwrap();
        let mut settings = Settings::of_round(Seconds::new(60.0));
        settings.look_ahead = Seconds::new(10.0);
        settings.decision_limit = None;
        let stored = Stored { epoch: 1, ..Stored::default() };
        let (core, _) = Core::open(settings, scheduler, stored, Seconds::ZERO).unwrap();
        let server = Server { name: "a".into(), worker_type: "v100".into(), n_workers: 1 };
        let node = Node::new(server, &mut Random::new(1));
        let mut alone = Self { core, node, manners: BTreeMap::new(), now: 0.0 };
        let manners = Manners {
            speaks: false,
            is_deaf: false,
            failure_rate: 0.0,
            speed: 1.0,
            slow_speed: 1.0,
            start_up: 0.0,
            stop_time: 0.0,
        };
        alone.manners.insert(JobNumber(0), manners);
        let job = Job::new("my own").steps(10_000).throughput("v100", StepsPerSecond::new(1.0));
        let program =
            Program { command: vec!["train".into()], directory: None, environment: BTreeMap::new() };
        let submission = Submission { name: None, user: None, key: None, job, program };
        alone.ask(Request::Submit(Box::new(submission)));
        alone
    }

    fn ask(&mut self, request: Request) -> Answer {
        let step = self.core.take(Seconds::new(self.now), Input::Request(1, request));
        let answer = step.effects.into_iter().find_map(|effect| match effect {
            Effect::Answer(1, answer) => answer.ok(),
            _ => None,
        });
        answer.unwrap()
    }

    fn until(&mut self, end: f64) {
        let (mut random, mut checkpoints) = (Random::new(2), Checkpoints::new());
        while self.now < end {
            let since = self.now;
            self.now += STEP;
            self.node.go_on((self.now, since), &self.manners, &mut checkpoints, &mut random);
            let report = self.node.report(self.now, STEP).map(Input::Report);
            for input in report.into_iter().chain([Input::Wake]) {
                for effect in self.core.take(Seconds::new(self.now), input).effects {
                    if let Effect::Send(_, orders) = effect {
                        self.node.take(self.now, &orders, &checkpoints);
                    }
                }
            }
        }
    }

    /// The time that the mechanism has as received, in s.
    fn received(&mut self) -> f64 {
        let Answer::Why(why) = self.ask(Request::Why(JobNumber(0))) else { return f64::NAN };
        why.worker_types[0].since_reset_s.unwrap()
    }
}

#[test]
fn time_is_told_until_the_end_of_the_round_and_lost_work_is_held_against_what_follows() {
    let mut alone = Alone::start();
    alone.until(55.0);
    // At 50 s all of the round from 0 to 60 s is told, but for the second or so until the job was reported to run.
    let first = alone.received();
    assert!((58.0..=60.0).contains(&first), "{first}");

    // It fails at 70 s, and is started again some seconds later: the time in between counts no more.
    alone.until(70.0);
    let mut failing = alone.manners[&JobNumber(0)];
    failing.failure_rate = 1e9;
    let before = alone.manners.insert(JobNumber(0), failing).unwrap();
    alone.until(70.5);
    alone.manners.insert(JobNumber(0), before);
    alone.until(83.0);
    assert!(alone.received().abs() < 1e-9, "{}", alone.received());
    for (at, end) in [(115.0, 120.0), (175.0, 180.0)] {
        alone.until(at);
        let (said, held) = (alone.received(), end - 70.5 - 15.0);
        assert!((held - 3.0..=held + 3.0).contains(&said), "{said}, {held} held");
    }
}

#[test]
fn the_log_says_how_fast_programs_are_and_what_starting_takes() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.start("v100=1");
    small.until(5.0);
    let manners = Manners { speed: 2.0, start_up: 8.0, ..GOOD };
    small.try_submit(job(1000), manners).unwrap();
    small.until(200.0);
    let slices: Vec<_> = small.events.iter().filter(|event| event["event"] == "slice").collect();
    assert_eq!(slices.len(), 3);
    for (place, slice) in slices.iter().enumerate() {
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        let (speed, overhead) = (number(&slice["throughput"][0]), number(&slice["overhead"]));
        let expected = if place == 0 { 8.0 } else { 0.0 };
        assert!((1.9..=2.1).contains(&speed) && (overhead - expected).abs() < 2.0, "{slice}");
    }
}

/// The time that a job ran according to the event log, in s, and its steps.
fn logged(small: &Small) -> (f64, f64) {
    let slices = small.events.iter().filter(|event| event["event"] == "slice");
    slices.fold((0.0, 0.0), |(time, steps), slice| {
        let number = |value: &serde_json::Value| value.as_f64().unwrap();
        let lasted = number(&slice["end"]) - number(&slice["start"]);
        assert!(number(&slice["time"]) <= lasted + 1e-9, "more time than it lasts: {slice}");
        (time + number(&slice["time"]), steps + number(&slice["steps"][0]))
    })
}

#[test]
fn the_log_adds_up_to_what_was_received_though_an_end_is_heard_of_late() {
    // The scheduler is away before and after the round in which the job ends is written to the log.
    for back in [40.0, 80.0] {
        let mut small = Small::new("fifo", &[("v100", 1)]);
        small.start("v100=1");
        small.until(5.0);
        let number = small.submit(job(25));
        small.nodes[0].ends = Ends::WithTime;
        small.until(20.0);
        small.nodes[0].is_stopped = true;
        small.until(back);
        small.nodes[0].start_agent(small.now);
        small.until(back + 100.0);
        let record = &small.jobs[&number];
        assert!(record.outcome.is_some(), "{record:?}");
        let received = record.received["v100"].get();
        let (time, steps) = logged(&small);
        assert!((time - received).abs() < 1e-6, "{time} logged, {received} received, back at {back}");
        assert!((steps - 25.0).abs() < 1e-6, "{steps} steps logged");
        assert!((24.0..27.0).contains(&received), "{received}");
    }
}

#[test]
fn a_gang_one_rank_of_which_says_how_long_it_ran_has_run() {
    let mut small = Small::new("fifo", &[("v100", 1), ("v100", 1)]);
    small.start("v100=2");
    small.until(5.0);
    small.nodes[0].ends = Ends::WithTime;
    let number = small.submit(job(4).scale_factor(2));
    small.until(5.25);
    let core = small.core.take();
    small.sleep_until(12.0);
    drop(core);
    small.start("v100=2");
    small.until(100.0);
    let record = &small.jobs[&number];
    assert_eq!(record.outcome.as_ref().map(|outcome| outcome.how), Some(How::Completed), "{record:?}");
    let received = record.received.get("v100").map_or(0.0, |time| time.get());
    assert!((3.0..6.0).contains(&received), "{record:?}");
    assert!((logged(&small).0 - received).abs() < 1e-6);
}

#[test]
fn a_restart_between_a_decision_and_its_round_counts_nothing_twice() {
    // At 55 s all of the round from 5 to 65 s is told; the next start of the scheduler knows that.
    for restarted in [58.0, 63.0, 80.0] {
        let mut small = Small::new("max_min_fairness_perf", &[("v100", 1)]);
        small.start("v100=1");
        small.until(5.0);
        let number = small.submit(job(10_000));
        small.until(restarted);
        small.start("v100=1");
        let view = |small: &mut Small| small.why(number).worker_types.remove(0);
        let at_once = view(&mut small);
        let since_reset = at_once.since_reset_s.unwrap();
        assert!((since_reset - at_once.received_s).abs() < 1.0, "{restarted}: {at_once:?}");
        small.until(restarted + 12.0);
        let later = view(&mut small);
        let (since_reset, ahead) =
            (later.since_reset_s.unwrap(), later.since_reset_s.unwrap() - later.received_s);
        assert!((-1.0..=11.0).contains(&ahead), "{restarted}: {since_reset}, {later:?}");
        small.until(150.0);
        let later = view(&mut small);
        assert!((later.since_reset_s.unwrap() - later.received_s).abs() < 1.5, "{restarted}: {later:?}");
    }
}
