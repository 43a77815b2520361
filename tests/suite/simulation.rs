//! Simulations checked event by event, stopped and resumed, and run through the seam.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion::index::{Id, JobId, WorkerId};
use apportion::mechanism::Workers;
use apportion::metrics::Recorder;
use apportion::policy::Policy;
use apportion::policy::heuristic::{Fifo, FifoPacked, FifoPackedParameters, FifoPerf, Isolated};
use apportion::scheduler::Rounds;
use apportion::simulator::{
    Checkpoint, Contention, Event, JobFaults, Limits, Live, Observer, Options, Outcome, PreemptionCost,
    PriceChange, Refill, Simulation, Slice, Stragglers, WorkerFaults,
};
use apportion::spec::Fidelity;
use apportion::workload::random::SeedStreams;
use apportion::workload::{Arrivals, Combination, Listed, Native, WorkloadOptions};
use apportion::{Cluster, DollarsPerWorkerHour, Job, Seconds, Throughputs};
use proptest::prelude::*;

/// Follows every event and objects to what cannot be.
#[derive(Debug)]
struct Checker {
    workers: Workers,
    busy: Vec<bool>,
    leased: BTreeMap<Combination<JobId>, Vec<WorkerId>>,
    /// Of the round before.
    held: BTreeMap<JobId, Vec<WorkerId>>,
    stop: f64,
    /// Until when something stops on workers, and jobs stop.
    stops: (BTreeMap<WorkerId, f64>, BTreeMap<JobId, f64>),
    placed: Vec<JobId>,
    done: BTreeMap<JobId, f64>,
    total: BTreeMap<JobId, (f64, f64)>,
    jcts: Vec<f64>,
    now: f64,
    round_length: f64,
    /// Busy time of all workers.
    busy_s: f64,
}

impl Checker {
    fn new(simulation: &Simulation) -> Self {
        let options = simulation.options();
        let workers = Workers::new(simulation.cluster(), options.semantics.mechanism.last_server);
        Self {
            busy: vec![false; workers.len()],
            workers,
            leased: BTreeMap::new(),
            held: BTreeMap::new(),
            stop: options.live.stop.get(),
            stops: (BTreeMap::new(), BTreeMap::new()),
            placed: Vec::new(),
            done: BTreeMap::new(),
            total: BTreeMap::new(),
            jcts: Vec::new(),
            now: 0.0,
            round_length: options.round_length.get(),
            busy_s: 0.0,
        }
    }

    /// Adds the run of a lease.
    fn ran(&mut self, slice: &Slice) {
        // Where the published mechanism's oddities count, a slice is credited with more time than it had.
        let busy_s = slice.time.min(slice.end - slice.start).get();
        self.busy_s += busy_s * f64::from(slice.n_workers);
        let workers = &self.leased[&slice.jobs];
        assert_eq!(workers.len(), slice.n_workers as usize);
        for worker in workers {
            // Idle for the rest of the round, unless it is refilled.
            self.busy[worker.index()] = false;
            assert!(
                self.stops
                    .0
                    .get(worker)
                    .is_none_or(|at| *at <= slice.start.get() || slice.end == slice.start)
            );
        }
        assert!(slice.start.get() >= self.now && slice.end.get() <= self.now + self.round_length * 1.0001);
        for (index, job) in slice.jobs.members().enumerate() {
            self.placed.retain(|placed| *placed != job);
            assert!(
                self.stops.1.get(&job).is_none_or(|at| *at <= slice.start.get() || slice.end == slice.start)
            );
            let steps = slice.steps[index].get();
            *self.done.get_mut(&job).unwrap() += steps;
            let held = slice.end.get() - slice.start.get() - slice.overhead.get();
            // Work is conserved: at most throughput × time in steps; exactly that for a job alone.
            // A worker may fail before the job has even been restored.
            let most = slice.throughput[index] * held.max(0.0);
            assert!(steps <= most * (1.0 + 1e-9) + 1e-6, "{steps} steps of {most}: {slice:?}");
            if slice.succeeded && !slice.jobs.is_pair() {
                assert!((steps - slice.throughput[index] * held).abs() <= 1e-6 * steps.max(1.0));
            }
        }
    }
}

impl Observer for Checker {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Arrival { id, job, now, .. } => {
                assert!(job.arrival.get() <= now.get());
                self.total.insert(*id, (job.total_steps.get(), job.arrival.get()));
                self.done.insert(*id, 0.0);
            }
            Event::RoundStarted { now, .. } => {
                assert!(now.get() >= self.now, "time runs backwards");
                self.now = now.get();
                self.busy.fill(false);
                let leased = std::mem::take(&mut self.leased);
                let members =
                    leased.iter().flat_map(|(jobs, workers)| jobs.members().map(move |job| (job, workers)));
                self.held = members.map(|(job, workers)| (job, workers.clone())).collect();
                self.placed.clear();
            }
            Event::Preempted { now, jobs, .. } if self.stop > 0.0 => {
                let until = now.get() + self.stop;
                for job in jobs.members() {
                    let workers = self.held.get(&job).into_iter().flatten();
                    self.stops.0.extend(workers.map(|worker| (*worker, until)));
                    self.stops.1.insert(job, until);
                }
            }
            Event::Lease { jobs, worker_type, workers, .. } => {
                for worker in *workers {
                    assert_eq!(self.workers.worker_type(*worker), Some(*worker_type));
                    assert!(!std::mem::replace(&mut self.busy[worker.index()], true), "{worker} twice");
                }
                for job in jobs.members() {
                    assert!(!self.placed.contains(&job), "job {job} twice");
                    self.placed.push(job);
                }
                self.leased.insert(*jobs, workers.to_vec());
            }
            Event::Slice(slice) => self.ran(slice),
            Event::Completion { at, id, .. } => {
                let (total, arrival) = self.total[id];
                assert!(
                    (self.done[id] - total).abs() <= 1e-9 * total,
                    "job {id}: {} of {total}",
                    self.done[id]
                );
                self.jcts.push(at.get() - arrival);
            }
            _ => {}
        }
    }
}

/// All events as text.
#[derive(Debug, Default)]
struct Log(Vec<String>);

impl Observer for Log {
    fn observe(&mut self, event: &Event<'_>) {
        self.0.push(serde_json::to_string(event).unwrap());
    }
}

const N_JOBS: usize = 25;

fn throughputs() -> Arc<Throughputs> {
    Throughputs::embedded("osdi20").unwrap()
}

fn cluster() -> Cluster {
    let mut cluster: Cluster = "v100=8,p100=4,k80=6".parse().unwrap();
    for (name, per_server) in [("v100", 4), ("p100", 2), ("k80", 4)] {
        cluster = cluster.with_workers_per_server(name, per_server).unwrap();
        cluster = cluster.with_price(name, DollarsPerWorkerHour::new(1.0)).unwrap();
    }
    cluster
}

fn arrivals(seed: u64) -> Box<dyn Arrivals> {
    let options = WorkloadOptions::continuous(Seconds::new(1500.0)).jobs(N_JOBS).multi_worker(true);
    let mut native = Native::try_new(options, &throughputs(), seed).unwrap();
    // Durations of published jobs are weeks; a hundredth of them ends soon and leaves short tails.
    let jobs = std::iter::from_fn(|| native.next_job()).map(|job| {
        let steps = job.total_steps / 20.0;
        job.total_steps(steps)
    });
    Box::new(Listed::new(jobs.filter(|job| job.scale_factor <= 4).collect()))
}

fn policy(which: u64, seed: u64) -> Box<dyn Policy> {
    match which % 4 {
        0 => Box::new(Isolated::default()),
        1 => Box::new(FifoPerf),
        2 => Box::new(FifoPacked::new(FifoPackedParameters::default())),
        _ => Box::new(Fifo::new(Fidelity::Corrected, seed)),
    }
}

/// Random options: either semantics, and any of what can go wrong.
fn options(seed: u64) -> Options {
    let mut draws = SeedStreams::new(seed).stream("options");
    let mut options =
        if draws.below(2) == 0 { Options::corrected() } else { Options::published() }.with_seed(seed);
    if draws.below(2) == 0 {
        let job_types = vec![("A3C".to_owned(), Seconds::new(20.0))];
        let (checkpoint, restore) = (Seconds::new(5.0), Seconds::new(10.0));
        options.preemption_cost = Some(PreemptionCost { checkpoint, restore, job_types });
    }
    if draws.below(3) == 0 {
        options.faults.workers = Some(WorkerFaults {
            mean_time_between_failures: Seconds::new(200_000.0),
            mean_time_to_repair: Seconds::new(3_000.0),
        });
    }
    if draws.below(3) == 0 {
        options.faults.jobs = JobFaults { probability: 0.05, attempts_max: 5 };
    }
    if draws.below(3) == 0 {
        options.faults.stragglers = Some(Stragglers { spread: 0.2, redraw_rounds: Some(3) });
    }
    if draws.below(3) == 0 {
        options.faults.throughput_noise = 0.1;
    }
    if draws.below(3) == 0 {
        options.contention = Some(Contention { slowdown: 0.3 });
    }
    if draws.below(3) == 0 {
        let change = |at, price| PriceChange {
            at: Seconds::new(at),
            worker_type: "p100".to_owned(),
            price: DollarsPerWorkerHour::new(price),
        };
        options.prices = vec![change(5_000.0, 2.0), change(20_000.0, 0.5)];
    }
    if draws.below(2) == 0 {
        let mut time = |chance, longest| {
            Seconds::new(if draws.below(chance) == 0 { 1.0 + draws.uniform() * longest } else { 0.0 })
        };
        let (look_ahead, start_up, stop) = (time(2, 300.0), time(2, 250.0), time(2, 100.0));
        let refill = [Refill::Completion, Refill::Never, Refill::AtOnce][draws.below(3)];
        options.live = Live { look_ahead, start_up, stop, refill, measured: draws.below(2) == 0 };
    }
    options
}

fn simulation(seed: u64, options: Options) -> Simulation {
    let system = (&cluster(), throughputs());
    Simulation::new(system, arrivals(seed), policy(seed, seed), options).unwrap()
}

/// Enough for every simulation here; a stall or an endless run shows as another outcome.
fn limits() -> Limits {
    Limits { rounds: Some(200_000), ..Limits::default() }
}

#[test]
fn a_job_that_starts_late_in_a_round_is_through_with_it_at_its_end() {
    // In one round of this simulation workers idle 10 s before its end, and the job that gets them takes 15 s to load.
    let seed = 701_850_500_658;
    let mut simulation = simulation(seed, options(seed));
    let mut checker = Checker::new(&simulation);
    assert_eq!(simulation.run(&mut checker, &limits()).unwrap(), Outcome::Finished);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_round_gives_what_it_does_not_have(seed in 0_u64..1 << 40) {
        let mut simulation = simulation(seed, options(seed));
        let mut observer = (Checker::new(&simulation), Recorder::new(simulation.cluster()));
        let outcome = simulation.run(&mut observer, &limits()).unwrap();
        prop_assert_eq!(outcome, Outcome::Finished);
        let (checker, recorder) = observer;
        let summary = recorder.summary();
        // The same averages by a second path, from raw events.
        prop_assert_eq!(checker.jcts.len() + summary.jobs_dropped, summary.jobs.len());
        if let Some(average) = summary.average_jct {
            let second = checker.jcts.iter().sum::<f64>() / checker.jcts.len() as f64;
            prop_assert!((average / second - 1.0).abs() < 1e-12);
        }
        prop_assert!(summary.utilization["all"] >= 0.0);
        // All jobs are measured: the time that they received is the busy time of workers.
        let received: f64 = summary.jobs.iter().flat_map(|job| job.service.worker_hours.values()).sum();
        prop_assert!((received - checker.busy_s / 3600.0).abs() <= 1e-9 * received.max(1.0));
        for job in &summary.jobs {
            let part = job.service.share_owed.unwrap_or(0.0);
            prop_assert!((0.0..=1.0 + 1e-9).contains(&part), "job {:?} is owed {part}", job.id);
            let received = job.service.share_received.unwrap_or(0.0);
            prop_assert!((0.0..=1.0 + 1e-9).contains(&received), "job {:?} received {received}", job.id);
            let had = job.service.service + job.service.wait.unwrap_or_default();
            let here = job.jct.unwrap_or(Seconds::new(f64::INFINITY));
            prop_assert!(had <= here * (1.0 + 1e-9), "job {:?} waited and had workers for {had} of {here}", job.id);
        }
        prop_assert!(summary.lease_extensions + summary.preemptions <= summary.leases);
    }

    #[test]
    fn a_resumed_simulation_is_one_never_stopped(seed in 0_u64..1 << 40, stop in 1_u64..60) {
        let mut options = options(seed);
        if seed.is_multiple_of(7) {
            options.ideal = true;
            options.live = Live { measured: options.live.measured, ..Live::default() };
        }
        let mut whole = simulation(seed, options.clone());
        let mut observer = (Log::default(), Recorder::new(whole.cluster()));
        let outcome = whole.run(&mut observer, &limits()).unwrap();
        prop_assert_eq!(outcome, Outcome::Finished);
        let (all, expected) = (observer.0.0, observer.1.summary());

        let mut first = simulation(seed, options);
        let mut observer = (Log::default(), Recorder::new(first.cluster()));
        let until = Limits { rounds: Some(stop), ..Limits::default() };
        first.run(&mut observer, &until).unwrap();
        let saved = serde_json::to_string(&(first.checkpoint(), &observer.1)).unwrap();
        let (checkpoint, recorder): (Checkpoint, Recorder) = serde_json::from_str(&saved).unwrap();
        let system = (&cluster(), throughputs());
        let mut second = Simulation::resume(system, arrivals(seed), policy(seed, seed), &checkpoint).unwrap();
        let mut observer = (Log(observer.0.0), recorder);
        prop_assert_eq!(second.run(&mut observer, &limits()).unwrap(), outcome);
        prop_assert_eq!(observer.1.summary(), expected);
        prop_assert!(observer.0.0 == all, "the events differ");
    }

    #[test]
    fn the_seam_and_the_short_way_are_the_same(seed in 0_u64..1 << 40) {
        let options = Options::corrected().with_seed(seed);
        let mut direct = simulation(seed, options.clone());
        let mut expected = Recorder::new(direct.cluster());
        direct.run(&mut expected, &limits()).unwrap();
        let rounds = Rounds::new(policy(seed, seed), direct.cluster(), &options.scheduler());
        let system = (&cluster(), throughputs());
        let mut seam =
            Simulation::with_round_policy(system, arrivals(seed), Box::new(rounds), options).unwrap();
        let mut found = Recorder::new(seam.cluster());
        seam.run(&mut found, &limits()).unwrap();
        let jct = |recorder: &Recorder| {
            recorder.summary().jobs.iter().map(|job| (job.order(), job.completion)).collect::<Vec<_>>()
        };
        prop_assert_eq!(jct(&found), jct(&expected));
    }
}

/// A job with a number of steps.
fn job(steps: u32, arrival: f64) -> Job {
    let speed = apportion::StepsPerSecond::new(1.0);
    Job::new("hand-made").steps(steps).arrival(Seconds::new(arrival)).throughput("v100", speed)
}

fn jcts(jobs: Vec<Job>, cluster: &str, policy: Box<dyn Policy>, options: Options) -> Vec<f64> {
    let cluster: Cluster = cluster.parse().unwrap();
    let arrivals = Box::new(Listed::new(jobs));
    let mut simulation = Simulation::new((&cluster, throughputs()), arrivals, policy, options).unwrap();
    let mut recorder = Recorder::new(simulation.cluster());
    let outcome = simulation.run(&mut recorder, &limits()).unwrap();
    assert_eq!(outcome, Outcome::Finished);
    recorder.summary().jobs.iter().map(|job| job.jct.unwrap().get()).collect()
}

#[test]
fn an_arrival_at_an_idle_cluster_waits_only_as_published() {
    let jobs = || vec![job(100, 0.0), job(67, 800.0), job(67, 900.0), job(10, 50_000.0)];
    let described = jcts(jobs(), "v100=4", Box::new(FifoPerf), Options::corrected());
    assert_eq!(described, [100.0, 67.0, 67.0, 10.0]);
    // The change at 100 s is taken at once and starts the interval, so the job of 800 s waits for the next
    // arrival beside four idle workers, and again, until the interval is over.
    let published = jcts(jobs(), "v100=4", Box::new(FifoPerf), Options::published());
    assert_eq!(published, [100.0, 49_267.0, 49_167.0, 10.0]);
}

#[test]
fn ideal_runs_shares_exactly() {
    let mut options = Options::corrected();
    options.ideal = true;
    // Two jobs on one worker, half of it each: the shorter ends at 2·1000 s, the change is held back until the
    // reset interval is over, which it is.
    let found = jcts(vec![job(1000, 0.0), job(2000, 0.0)], "v100=1", Box::new(Isolated::default()), options);
    assert!((found[0] - 2000.0).abs() < 1e-9 && (found[1] - 3000.0).abs() < 1e-9, "{found:?}");
}

#[test]
fn a_preempted_job_pays() {
    // Two jobs of two rounds take turns on one worker; each is stopped once, and pays 60 s when it starts again.
    let mut options = Options::corrected();
    let without =
        jcts(vec![job(720, 0.0), job(720, 0.0)], "v100=1", Box::new(Isolated::default()), options.clone());
    let (checkpoint, restore) = (Seconds::new(20.0), Seconds::new(40.0));
    options.preemption_cost = Some(PreemptionCost { checkpoint, restore, job_types: Vec::new() });
    let with = jcts(vec![job(720, 0.0), job(720, 0.0)], "v100=1", Box::new(Isolated::default()), options);
    assert!((without[0] - 1080.0).abs() < 1e-9 && (without[1] - 1440.0).abs() < 1e-9, "{without:?}");
    assert!(with[0] > without[0] && with[1] > without[1], "{with:?} after {without:?}");
}

#[test]
fn the_window_ends_the_simulation() {
    let jobs = (0..10).map(|index| job(3600, 100.0 * f64::from(index))).collect();
    let found = jcts(jobs, "v100=1", Box::new(FifoPerf), Options::corrected().with_measure(1..3));
    assert_eq!(found.len(), 2);
}

#[test]
fn bad_options_and_jobs_are_refused() {
    let refused = |jobs: Vec<Job>, options: Options| {
        let cluster: Cluster = "v100=1".parse().unwrap();
        let arrivals = Box::new(Listed::new(jobs));
        let simulation =
            Simulation::new((&cluster, throughputs()), arrivals, Box::new(Isolated::default()), options);
        let error = simulation.and_then(|mut simulation| {
            simulation.run(&mut apportion::simulator::Unobserved, &limits()).map(|_| ())
        });
        error.unwrap_err().to_string()
    };
    let zero = Options::corrected().with_round_length(Seconds::ZERO);
    assert_eq!(refused(vec![], zero), "round_length is 0, expected a finite number of seconds above 0");
    let unknown = vec![Job::new("nothing like it").steps(1)];
    assert!(refused(unknown, Options::corrected()).contains("nothing like it"));
    let wide = vec![job(1, 0.0).scale_factor(2)];
    assert!(refused(wide, Options::corrected()).contains("no worker type"));
    let mut prices = Options::corrected();
    let (at, price) = (Seconds::ZERO, DollarsPerWorkerHour::new(1.0));
    prices.prices = vec![PriceChange { at, worker_type: "v1000".to_owned(), price }];
    assert!(refused(vec![], prices).contains("v1000"));
}
