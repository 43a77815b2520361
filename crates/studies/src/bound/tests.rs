use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::ascent::Valued;
use super::*;
use apportion::solver::Interrupt;
use apportion::units::StepsPerSecond;
use apportion::workload::random::SeedStreams;
use apportion::workload::{Arrivals, Gavel, Job, WorkloadOptions};
use apportion::{Cluster, Throughputs};

/// A job with these throughputs on `fast` and `slow`, steps/s.
fn job(arrival: f64, steps: u32, speeds: [f64; 2]) -> Job {
    let [fast, slow] = speeds.map(StepsPerSecond::new);
    Job::new("own")
        .arrival(Seconds::new(arrival))
        .steps(steps)
        .throughput("v100", fast)
        .throughput("k80", slow)
}

fn found(cluster: &str, jobs: &[Job]) -> f64 {
    let (cluster, throughputs): (Cluster, _) =
        (cluster.parse().unwrap(), Throughputs::embedded("osdi20").unwrap());
    let instance = Instance { cluster: &cluster, throughputs: &throughputs, jobs, pairs: false };
    let settings = Settings { steps_max: 60 };
    bound(&instance, &settings, &Attended::default()).unwrap().average_jct.get()
}

#[test]
fn one_worker_runs_the_shortest_first() {
    let jobs = [300, 100, 200, 50].map(|steps| job(0.0, steps, [1.0, 0.0]));
    let bound = found("v100=1,k80=1", &jobs);
    let best = (50.0 + 150.0 + 350.0 + 650.0) / 4.0;
    assert!(bound <= best + 1e-9 && bound > 0.995 * best, "{bound} of {best}");
}

#[test]
fn a_job_that_is_alone_takes_its_time() {
    let bound = found("v100=1,k80=1", &[job(7.0, 120, [2.0, 1.0])]);
    assert!((bound - 60.0).abs() < 1e-6, "{bound}");
}

#[test]
fn idle_time_between_jobs_costs_nothing() {
    let at = |start: f64| [0.0, 1.0, 2.0].map(|gap| job(start + gap, 10, [1.0, 0.0])).to_vec();
    let apart = [at(0.0), at(1e9)].concat();
    let (near, far) = (found("v100=1,k80=1", &at(0.0)), found("v100=1,k80=1", &apart));
    // Jobs of 10 s one after another take 19 s on average; how near the ascent comes depends on the prices that solvers find.
    assert!(near > 17.0 && far > 0.99 * near && far <= 19.0, "{near} {far}");
}

/// Average completion time if jobs are served in an order, each on the fastest worker that those before it leave, with
/// changes whenever a job comes or goes, s.
fn served(jobs: &[Job], order: &[usize], workers: [usize; 2]) -> f64 {
    let speed = |job: usize, kind: usize| jobs[job].throughput.as_ref().unwrap()[kind].1.get();
    let mut left: Vec<f64> = jobs.iter().map(|job| job.total_steps.get()).collect();
    let (mut ends, mut now) = (vec![0.0; jobs.len()], 0.0);
    while left.iter().any(|left| *left > 0.0) {
        let mut free = workers;
        let mut rates = vec![0.0; jobs.len()];
        for job in order.iter().copied().filter(|job| left[*job] > 0.0 && jobs[*job].arrival.get() <= now) {
            let kinds = (0..2).filter(|kind| free[*kind] > 0 && speed(job, *kind) > 0.0);
            let Some(kind) = kinds.max_by(|one, other| speed(job, *one).total_cmp(&speed(job, *other)))
            else {
                continue;
            };
            free[kind] -= 1;
            rates[job] = speed(job, kind);
        }
        let done = left.iter().zip(&rates).filter(|(_, rate)| **rate > 0.0).map(|(left, rate)| left / rate);
        let come = jobs.iter().map(|job| job.arrival.get() - now).filter(|time| *time > 0.0);
        let span = done.chain(come).fold(f64::INFINITY, f64::min);
        now += span;
        for (job, rate) in rates.iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
            left[job] -= rate * span;
            if left[job] < 1e-6 {
                (left[job], ends[job]) = (0.0, now);
            }
        }
    }
    let sum: f64 = ends.iter().zip(jobs).map(|(end, job)| end - job.arrival.get()).sum();
    sum / jobs.len() as f64
}

fn orders(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for next in 0..n {
        let put = |order: &Vec<usize>, at: usize| [&order[..at], &[next], &order[at..]].concat();
        all = all.iter().flat_map(|order| (0..=order.len()).map(move |at| put(order, at))).collect();
    }
    all
}

#[test]
fn no_order_of_service_is_below() {
    let mut draw = SeedStreams::new(11).stream("bound");
    for case in 0..12 {
        let jobs: Vec<Job> = (0..5)
            .map(|_| {
                let fast = draw.uniform_in(1.0, 4.0);
                let steps = 20 + u32::try_from(draw.below(380)).unwrap();
                job(draw.uniform_in(0.0, 60.0).round(), steps, [fast, fast * draw.uniform_in(0.2, 1.2)])
            })
            .collect();
        let best = orders(5).iter().map(|order| served(&jobs, order, [1, 2])).fold(f64::INFINITY, f64::min);
        let bound = found("v100=1,k80=2", &jobs);
        assert!(bound <= best * (1.0 + 1e-9), "case {case}: {bound} above {best}");
        assert!(bound > 0.8 * best, "case {case}: {bound} says little of {best}");
    }
}

/// A published workload's first jobs.
fn drawn(n: usize) -> (Vec<Job>, Arc<Throughputs>, Cluster) {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let options = WorkloadOptions::continuous(Seconds::new(1800.0));
    let mut gavel = Gavel::try_new(options, Arc::clone(&throughputs), 3).unwrap();
    let jobs: Vec<Job> = std::iter::from_fn(|| gavel.next_job()).take(n).collect();
    let cluster: Cluster = "v100=2,p100=2,k80=2".parse().unwrap();
    (jobs, throughputs, cluster)
}

#[test]
fn gradients_are_differences_of_values() {
    let (jobs, throughputs, cluster) = drawn(6);
    let instance = Instance { cluster: &cluster, throughputs: &throughputs, jobs: &jobs, pairs: true };
    let attended = Attended::default();
    let mut dual = Dual::new(&instance, &attended).unwrap();
    dual.refine(dual.mean_fastest() / 8.0 / 1500.0);
    let point = dual.multipliers(2.0);
    let mut value = |point: &[f64]| -> Valued { dual.value(point).unwrap().unwrap() };
    let here = value(&point);
    for (at, slope) in here.gradient.iter().enumerate() {
        let step = 1e-6 * point[at].abs();
        let moved = |by: f64| {
            let mut moved = point.clone();
            moved[at] += by;
            moved
        };
        // Values have a kink where an allocation changes, or the last instant moves.
        let [up, down] = [step, -step].map(|by| (value(&moved(by)).value - here.value) / by);
        let (low, high) = (up.min(down), up.max(down));
        let slack = 1e-2 * (1.0 + high.abs().max(low.abs()));
        assert!(low - slack <= *slope && *slope <= high + slack, "{at}: {slope} outside {low} to {high}");
    }
}

#[test]
fn threads_and_sharing_of_workers() {
    let (jobs, throughputs, cluster) = drawn(30);
    let on = |threads: usize, pairs: bool| {
        let instance = Instance { cluster: &cluster, throughputs: &throughputs, jobs: &jobs, pairs };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| bound(&instance, &Settings { steps_max: 4 }, &Attended::default())).unwrap()
    };
    let shared = on(1, true);
    assert_eq!(shared, on(3, true));
    let alone = on(2, false);
    assert!(shared.average_jct < alone.average_jct, "{shared:?} {alone:?}");
    assert!(alone.fastest < alone.average_jct && !alone.is_broken_off && alone.n_steps > 0);
}

#[test]
fn what_is_broken_off_still_holds() {
    let (jobs, throughputs, cluster) = drawn(10);
    let instance = Instance { cluster: &cluster, throughputs: &throughputs, jobs: &jobs, pairs: false };
    let interrupt = Interrupt::default().with_flag(Arc::new(AtomicBool::new(true)));
    let attended = Attended { interrupt, stepped: None };
    let found = bound(&instance, &Settings::default(), &attended).unwrap();
    assert!(found.is_broken_off && found.n_programs == 0);
    assert_eq!(found.average_jct, found.fastest);
}

#[test]
fn what_has_no_bound_says_why() {
    let (_, throughputs, cluster) = drawn(1);
    let instance = |jobs| Instance { cluster: &cluster, throughputs: &throughputs, jobs, pairs: false };
    let why =
        |jobs| bound(&instance(jobs), &Settings::default(), &Attended::default()).unwrap_err().to_string();
    assert_eq!(why(&[]), "there are no jobs");
    let none = [Job::new("ResNet-50 (batch size 64)").steps(0)];
    assert_eq!(why(&none), "job 0: 0 steps, expected a finite number above 0");
    let gang = [Job::new("ResNet-50 (batch size 64)").scale_factor(4).steps(10)];
    assert_eq!(why(&gang), "job 0 can run on no worker type of the cluster at scale factor 4");
}

/// The function −Σ (i + 1) (x_i − i)², where x_0 may not exceed −1.
struct Bowl;

impl Function for Bowl {
    type Error = ();

    fn value(&mut self, point: &[f64]) -> Result<Option<Valued>, ()> {
        let terms = || point.iter().enumerate().map(|(i, x)| (i as f64 + 1.0, x - i as f64));
        let value = terms().map(|(factor, away)| -factor * away * away).sum();
        Ok(Some(Valued { value, gradient: terms().map(|(factor, away)| -2.0 * factor * away).collect() }))
    }

    fn project(&self, point: &mut [f64]) {
        point[0] = point[0].min(-1.0);
    }

    fn stepped(&self, _: f64) {}
}

#[test]
fn a_climb_ends_at_the_top() {
    let climbed = climb(&mut Bowl, vec![-9.0, 5.0, -7.0, 4.0], &[1.0; 4], 50).unwrap();
    let (top, value) = climbed.best.unwrap();
    let expected = [-1.0, 1.0, 2.0, 3.0];
    assert!(top.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-2), "{top:?}");
    assert!((value + 1.0).abs() < 1e-3 && climbed.n_steps < 50 && !climbed.is_broken_off);
}
