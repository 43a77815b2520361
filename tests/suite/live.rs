//! The costs of the options of a live cluster, worked out by hand: rounds of 360 s, jobs of one step a second.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::sync::Arc;

use apportion::metrics::Recorder;
use apportion::policy::heuristic::{Fifo, FifoPerf, Isolated};
use apportion::policy::{Decision, Policy};
use apportion::scheduler::Rounds;
use apportion::simulator::{
    Checkpoint, Event, Limits, Live, Observer, Options, Outcome, PreemptionCost, Refill, Simulation, Slice,
};
use apportion::spec::Fidelity;
use apportion::workload::{Arrivals, Listed, Native, WorkloadOptions};
use apportion::{Cluster, Job, Problem, Seconds, StepsPerSecond, Throughputs};
use proptest::prelude::*;

/// A record of a simulation: its slices, and the data of the first job that policies were shown.
#[derive(Debug, Default)]
struct Seen {
    slices: Vec<Slice>,
    shown: Vec<(f64, f64, f64)>,
    all: Vec<String>,
}

impl Observer for Seen {
    fn observe(&mut self, event: &Event<'_>) {
        if let Event::Slice(slice) = event {
            self.slices.push(*slice);
        }
        self.all.push(serde_json::to_string(event).unwrap());
    }

    fn decided(&mut self, now: Seconds, problem: &Problem, _decision: &Decision) {
        if let Some((index, job)) = problem.jobs().enumerate().next() {
            let speed = problem.throughput().row(index)[0];
            self.shown.push((now.get(), job.steps_remaining.get(), speed));
        }
    }
}

fn throughputs() -> Arc<Throughputs> {
    Throughputs::embedded("osdi20").unwrap()
}

fn job(steps: u32, arrival: f64) -> Job {
    Job::new("hand-made")
        .steps(steps)
        .arrival(Seconds::new(arrival))
        .throughput("v100", StepsPerSecond::new(1.0))
}

fn fifo() -> Box<dyn Policy> {
    Box::new(Fifo::new(Fidelity::Corrected, 0))
}

fn isolated() -> Box<dyn Policy> {
    Box::new(Isolated::default())
}

/// Options under which every change is taken into account at once.
fn options(live: Live) -> Options {
    Options { live, ..Options::corrected().with_reset_interval(Seconds::ZERO) }
}

fn limits() -> Limits {
    Limits { rounds: Some(100_000), ..Limits::default() }
}

fn seen(jobs: Vec<Job>, cluster: &str, policy: Box<dyn Policy>, options: Options) -> (Vec<f64>, Seen) {
    let cluster: Cluster = cluster.parse().unwrap();
    let arrivals = Box::new(Listed::new(jobs));
    let mut simulation = Simulation::new((&cluster, throughputs()), arrivals, policy, options).unwrap();
    let mut observer = (Recorder::new(simulation.cluster()), Seen::default());
    let outcome = simulation.run(&mut observer, &limits()).unwrap();
    assert_eq!(outcome, Outcome::Finished);
    let summary = observer.0.summary();
    (summary.jobs.iter().map(|job| job.completion.unwrap().get()).collect(), observer.1)
}

/// The completion time of each job.
#[track_caller]
fn are_done(jobs: Vec<Job>, cluster: &str, policy: Box<dyn Policy>, options: Options, expected: &[f64]) {
    let (found, seen) = seen(jobs, cluster, policy, options);
    let close = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6);
    assert!(found.len() == expected.len() && close, "{found:?}, expected {expected:?}: {:#?}", seen.all);
}

fn ahead(look_ahead: f64) -> Live {
    Live { look_ahead: Seconds::new(look_ahead), ..Live::default() }
}

fn refilling() -> Live {
    Live { refill: Refill::Completion, ..Live::default() }
}

#[test]
fn what_is_known_when_the_next_round_is_decided_counts() {
    // The first job is done at 500, before the decision at 660: the second has the round from 720 on.
    let jobs = |first| vec![job(first, 0.0), job(100, 10.0)];
    are_done(jobs(500), "v100=1", fifo(), options(Live::default()), &[500.0, 600.0]);
    are_done(jobs(500), "v100=1", fifo(), options(ahead(60.0)), &[500.0, 820.0]);
    // It is done at 700, after the decision: its lease is empty from 720 to 1080, and the second waits.
    are_done(jobs(700), "v100=1", fifo(), options(Live::default()), &[700.0, 800.0]);
    are_done(jobs(700), "v100=1", fifo(), options(ahead(60.0)), &[700.0, 1180.0]);
}

#[test]
fn what_arrives_after_the_decision_waits_a_round_more() {
    for (arrival, expected) in [(290.0, 460.0), (300.0, 460.0), (310.0, 820.0)] {
        let jobs = vec![job(1000, 0.0), job(100, arrival)];
        are_done(jobs, "v100=2", fifo(), options(ahead(60.0)), &[1000.0, expected]);
    }
    // Nothing runs, so there is nothing to look ahead of.
    are_done(vec![job(100, 0.0), job(100, 900.0)], "v100=1", fifo(), options(ahead(60.0)), &[100.0, 1000.0]);
}

#[test]
fn the_decision_sees_the_steps_that_are_done_by_then() {
    let jobs = vec![job(1000, 0.0), job(100, 290.0)];
    let (_, seen) = seen(jobs, "v100=2", fifo(), options(ahead(60.0)));
    let steps: Vec<_> = seen.shown.iter().map(|(now, steps, _)| (*now, *steps)).collect();
    assert_eq!(steps[..2], [(0.0, 1000.0), (300.0, 700.0)]);
}

#[test]
fn received_time_is_the_same_ahead() {
    // Turns on one worker: the decision assumes that the job that has the worker then keeps it until the end of the round.
    let jobs = || vec![job(720, 0.0), job(720, 0.0)];
    let late = Options::corrected();
    are_done(jobs(), "v100=1", isolated(), late.clone(), &[1080.0, 1440.0]);
    are_done(jobs(), "v100=1", isolated(), Options { live: ahead(60.0), ..late }, &[1080.0, 1440.0]);
}

#[test]
fn every_new_lease_starts_up() {
    let with = |start_up| options(Live { start_up: Seconds::new(start_up), ..Live::default() });
    are_done(vec![job(1000, 0.0)], "v100=1", fifo(), with(60.0), &[1060.0]);
    // In addition to the cost of preemption, which applies only to a job that ran before.
    let mut both = with(30.0);
    let (checkpoint, restore) = (Seconds::new(20.0), Seconds::new(40.0));
    both.preemption_cost = Some(PreemptionCost { checkpoint, restore, job_types: Vec::new() });
    both.semantics.mechanism.reset_interval = Seconds::new(1920.0);
    let (_, seen) = seen(vec![job(720, 0.0), job(720, 0.0)], "v100=1", isolated(), both);
    let overheads: Vec<f64> = seen.slices.iter().take(3).map(|slice| slice.overhead.get()).collect();
    assert_eq!(overheads, [30.0, 30.0, 90.0]);
}

#[test]
fn what_comes_next_waits_for_what_stops() {
    // A runs to 360, B from 420 (it has received 300 s, A 360 s, so it goes on) to 1080, A from 1140 to 1440: 660 steps each,
    // and 840 s received. A goes on and is done at 1500, and B starts on a worker that no job has to leave.
    let stopping = Live { stop: Seconds::new(60.0), ..Live::default() };
    let options = Options { live: stopping, ..Options::corrected() };
    let jobs = vec![job(720, 0.0), job(720, 0.0)];
    are_done(jobs, "v100=1", isolated(), options, &[1500.0, 1560.0]);
}

#[test]
fn idle_workers_are_refilled() {
    let jobs = || vec![job(100, 0.0), job(1000, 0.0), job(500, 0.0)];
    are_done(jobs(), "v100=2", isolated(), options(Live::default()), &[100.0, 1000.0, 860.0]);
    // The third starts at 100, has 260 steps at 360 and keeps the worker.
    are_done(jobs(), "v100=2", isolated(), options(refilling()), &[100.0, 1000.0, 600.0]);
    // 100 steps take until 130; it starts then and has 200 steps at 360.
    let started = Live { start_up: Seconds::new(30.0), ..refilling() };
    are_done(jobs(), "v100=2", isolated(), options(started), &[130.0, 1030.0, 660.0]);
    // It starts at 300 and has 40 s of its start-up to go at 360.
    let started = Live { start_up: Seconds::new(100.0), ..refilling() };
    let jobs = vec![job(200, 0.0), job(1000, 0.0), job(500, 0.0)];
    are_done(jobs, "v100=2", isolated(), options(started), &[300.0, 1100.0, 900.0]);
}

#[test]
fn a_gang_is_refilled_when_enough_workers_are_idle() {
    let jobs = || vec![job(100, 0.0), job(200, 0.0), job(1000, 0.0), job(100, 0.0).scale_factor(2)];
    are_done(jobs(), "v100=3", isolated(), options(Live::default()), &[100.0, 200.0, 1000.0, 460.0]);
    are_done(jobs(), "v100=3", isolated(), options(refilling()), &[100.0, 200.0, 1000.0, 300.0]);
}

#[test]
fn a_lease_that_is_empty_when_its_round_starts_is_refilled() {
    // At 300 the third is owed a worker, the first keeps its own by its id, and is done at 350: the second, which has lost
    // its worker, gets that one from 360 on, or waits until 720.
    let jobs = || vec![job(350, 0.0), job(1000, 0.0), job(1000, 0.0)];
    let with = |live| Options { live, ..Options::corrected() };
    are_done(jobs(), "v100=2", isolated(), with(ahead(60.0)), &[350.0, 1360.0, 1360.0]);
    let both = Live { refill: Refill::Completion, ..ahead(60.0) };
    are_done(jobs(), "v100=2", isolated(), with(both), &[350.0, 1000.0, 1360.0]);
}

#[test]
fn a_job_that_comes_has_idle_workers_at_once() {
    let at_once = |look_ahead| options(Live { refill: Refill::AtOnce, ..ahead(look_ahead) });
    for policy in [fifo, isolated] {
        are_done(vec![job(1000, 0.0), job(100, 10.0)], "v100=2", policy(), at_once(0.0), &[1000.0, 110.0]);
        are_done(vec![job(1000, 0.0), job(100, 10.0)], "v100=2", policy(), at_once(60.0), &[1000.0, 110.0]);
    }
    // One that came while all workers were held has the first that idles.
    are_done(vec![job(500, 0.0), job(100, 10.0)], "v100=1", fifo(), at_once(60.0), &[500.0, 600.0]);
    // Workers that become idle after the next round was decided are given away at its start.
    are_done(vec![job(700, 0.0), job(100, 10.0)], "v100=1", fifo(), at_once(60.0), &[700.0, 820.0]);
    are_done(vec![job(1000, 0.0), job(100, 310.0)], "v100=2", fifo(), at_once(60.0), &[1000.0, 460.0]);
}

#[test]
fn measured_speeds_replace_noise() {
    let mut noisy = options(Live { measured: true, ..Live::default() });
    noisy.faults.throughput_noise = 0.5;
    let (_, seen) = seen(vec![job(2000, 0.0)], "v100=1", fifo(), noisy);
    let speeds: Vec<f64> = seen.shown.iter().map(|(_, _, speed)| *speed).collect();
    assert!((speeds[0] - 1.0).abs() > 0.01, "{speeds:?}");
    assert!(speeds.len() >= 3, "{speeds:?}");
    for pair in speeds.windows(2) {
        assert!((pair[1] - (0.5 * pair[0] + 0.5)).abs() < 1e-12, "{speeds:?}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |live, ideal| {
        let options = Options { ideal, ..options(live) };
        let arrivals = Box::new(Listed::new(Vec::new()));
        let cluster: Cluster = "v100=1".parse().unwrap();
        Simulation::new((&cluster, throughputs()), arrivals, fifo(), options).unwrap_err().to_string()
    };
    let finite = "expected a finite number of seconds, at least 0";
    let negative = Live { start_up: Seconds::new(-1.0), ..Live::default() };
    assert_eq!(refused(negative, false), format!("start_up is -1, {finite}"));
    let endless = Live { stop: Seconds::new(f64::INFINITY), ..Live::default() };
    assert_eq!(refused(endless, false), format!("stop is inf, {finite}"));
    assert_eq!(refused(ahead(360.0), false), "look_ahead is 360, expected less than the length of a round");
    let never = Live { start_up: Seconds::new(300.0), stop: Seconds::new(60.0), ..Live::default() };
    let expected = "start_up is 300, expected less than the length of a round, together with `stop`";
    assert_eq!(refused(never, false), expected);
    let expected = "look_ahead is 60, expected 0 where there are no rounds (`ideal`)";
    assert_eq!(refused(ahead(60.0), true), expected);
    let expected = "refill is completion, expected `never` where there are no rounds (`ideal`)";
    assert_eq!(refused(refilling(), true), expected);
    let expected = "refill is at_once, expected `never` where there are no rounds (`ideal`)";
    let at_once = Live { refill: Refill::AtOnce, ..Live::default() };
    assert_eq!(refused(at_once, true), expected);
    let direct = |live| {
        let arrivals = Box::new(Listed::new(Vec::new()));
        let cluster: Cluster = "v100=1".parse().unwrap();
        let rounds = Rounds::new(fifo(), &cluster, &Options::corrected().scheduler());
        let system = (&cluster, throughputs());
        let simulation = Simulation::with_round_policy(system, arrivals, Box::new(rounds), options(live));
        simulation.map(drop).map_err(|error| error.to_string())
    };
    let expected = "look_ahead is 60, expected 0 for a policy that decides inside rounds";
    assert_eq!(direct(ahead(60.0)), Err(expected.to_owned()));
    let expected = "refill is completion, expected `never` for a policy that decides inside rounds";
    assert_eq!(direct(refilling()), Err(expected.to_owned()));
    let (start_up, stop) = (Seconds::new(60.0), Seconds::new(30.0));
    assert_eq!(direct(Live { start_up, stop, measured: true, ..Live::default() }), Ok(()));
}

fn arrivals(seed: u64) -> Box<dyn Arrivals> {
    let workload = WorkloadOptions::continuous(Seconds::new(1_500.0)).jobs(20).multi_worker(true);
    let mut native = Native::try_new(workload, &throughputs(), seed).unwrap();
    let jobs = std::iter::from_fn(|| native.next_job()).map(|job| {
        let steps = job.total_steps / 20.0;
        job.total_steps(steps)
    });
    Box::new(Listed::new(jobs.filter(|job| job.scale_factor <= 4).collect()))
}

fn run(seed: u64, cluster: &str, options: Options, stop: Option<u64>) -> (Recorder, Seen) {
    let cluster: Cluster = cluster.parse().unwrap();
    let policy =
        || -> Box<dyn Policy> { if seed.is_multiple_of(2) { Box::new(FifoPerf) } else { isolated() } };
    let system = || (&cluster, throughputs());
    let mut simulation = Simulation::new(system(), arrivals(seed), policy(), options).unwrap();
    let mut observer = (Recorder::new(simulation.cluster()), Seen::default());
    if let Some(rounds) = stop {
        let until = Limits { rounds: Some(rounds), ..Limits::default() };
        simulation.run(&mut observer, &until).unwrap();
        let saved = serde_json::to_string(&simulation.checkpoint()).unwrap();
        let checkpoint: Checkpoint = serde_json::from_str(&saved).unwrap();
        simulation = Simulation::resume(system(), arrivals(seed), policy(), &checkpoint).unwrap();
    }
    assert_eq!(simulation.run(&mut observer, &limits()).unwrap(), Outcome::Finished);
    observer
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn without_times_and_waiting_jobs_nothing_changes(seed in 0_u64..1 << 40) {
        let cluster = "v100=80,p100=80,k80=80";
        let (_, expected) = run(seed, cluster, Options::corrected(), None);
        let zero = Live { look_ahead: Seconds::ZERO, start_up: Seconds::ZERO, stop: Seconds::ZERO, ..Live::default() };
        let (_, found) = run(seed, cluster, Options { live: zero, ..Options::corrected() }, None);
        prop_assert_eq!(&found.all, &expected.all);
        // No job can use an idle worker, and measurements are of known throughputs. Only the order of slices in the log differs.
        let useless = Live { measured: true, ..refilling() };
        let (_, found) = run(seed, cluster, Options { live: useless, ..Options::corrected() }, None);
        let sorted = |seen: &Seen| {
            let mut slices: Vec<String> = seen.slices.iter().map(|slice| format!("{slice:?}")).collect();
            slices.sort();
            slices
        };
        prop_assert_eq!(sorted(&found), sorted(&expected));
    }

    #[test]
    fn a_live_simulation_resumes_bit_for_bit(seed in 0_u64..1 << 40, stop in 1_u64..40, which in 0_u8..8) {
        let on = |bit: u8, time: f64| Seconds::new(if which & bit == 0 { time } else { 0.0 });
        let refill = [Refill::Completion, Refill::Never, Refill::AtOnce][usize::from(which) % 3];
        let live = Live { look_ahead: on(2, 45.0), start_up: on(4, 300.0), stop: on(1, 30.0), refill, measured: true };
        let mut options = Options { live, ..Options::corrected() };
        options.faults.throughput_noise = 0.3;
        let (whole, all) = run(seed, "v100=4,p100=4,k80=4", options.clone(), None);
        let (pieces, found) = run(seed, "v100=4,p100=4,k80=4", options, Some(stop));
        prop_assert_eq!(whole.summary(), pieces.summary());
        prop_assert!(all.all == found.all, "the events differ");
    }
}
