//! A scheduler that was saved and restored goes on as the one that was not; measured speeds are what policies see.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::index::WorkerTypeId;

const CLUSTER: &str = "v100=3,p100=2,k80=2";
const POLICIES: [&str; 7] = [
    "max_min_fairness",
    "max_min_fairness_perf",
    "max_min_fairness_packed",
    "max_min_fairness_hierarchical_perf",
    "finish_time_fairness_perf",
    "fifo",
    "allox",
];
const JOB_TYPES: [&str; 4] =
    ["ResNet-18 (batch size 32)", "A3C", "Transformer (batch size 64)", "Recommendation (batch size 512)"];

/// The events before a round starts.
#[derive(Clone, Debug)]
struct Before {
    comes: Option<(usize, u32, bool)>,
    goes: Option<usize>,
    turns: Option<(usize, bool)>,
    measured: Option<(usize, usize, f64)>,
    projected: Option<(usize, usize)>,
    is_restored: bool,
    /// A job that is done inside the round, and whether the scheduler is restored before others get its workers.
    leaves: Option<(usize, bool)>,
}

fn before() -> impl Strategy<Value = Before> {
    let comes = proptest::option::weighted(0.5, (0..JOB_TYPES.len(), 1_u32..=2, any::<bool>()));
    let goes = proptest::option::weighted(0.2, 0_usize..8);
    let turns = proptest::option::weighted(0.15, (0_usize..7, any::<bool>()));
    let measured = proptest::option::weighted(0.3, (0_usize..8, 0_usize..3, 0.5_f64..20.0));
    let leaves = proptest::option::weighted(0.3, (0_usize..8, any::<bool>()));
    let projected = proptest::option::weighted(0.3, (0_usize..8, 0_usize..3));
    (comes, goes, turns, measured, projected, proptest::bool::weighted(0.3), leaves).prop_map(
        |(comes, goes, turns, measured, projected, is_restored, leaves)| Before {
            comes,
            goes,
            turns,
            measured,
            projected,
            is_restored,
            leaves,
        },
    )
}

fn made(policy: &str) -> Scheduler {
    let options = PolicyOptions::default();
    scheduler(CLUSTER, Catalog::embedded().build(policy, &options).unwrap())
}

/// Reports the events before a round to a scheduler.
fn tell(scheduler: &mut Scheduler, happens: &Before, number: u32) {
    if let Some((job_type, scale_factor, is_named)) = happens.comes {
        let owner = ["heavy", "light"][number as usize % 2];
        let job = Job::new(JOB_TYPES[job_type]).steps(50_000).entity(owner).arrival(start(number));
        let job = job.scale_factor(if job_type % 2 == 1 { 1 } else { scale_factor });
        let taken =
            if is_named { scheduler.submit_as(format!("job {number}"), job) } else { scheduler.submit(job) };
        taken.unwrap();
    }
    if let Some((worker, up)) = happens.turns {
        scheduler.set_up(WorkerId::from_index(worker), up).unwrap();
    }
    if let Some((job, worker_type, speed)) = happens.measured
        && let Some(id) = nth(scheduler, job)
    {
        // Refused where the job has no throughput.
        drop(scheduler.measure(id, WorkerTypeId::from_index(worker_type), StepsPerSecond::new(speed)));
    }
    if let Some((job, worker_type)) = happens.projected
        && let Some(id) = nth(scheduler, job)
    {
        let worker_type = WorkerTypeId::from_index(worker_type);
        scheduler.project(Combination::single(id), worker_type, Seconds::new(90.0)).unwrap();
    }
    if let Some(id) = happens.goes.and_then(|job| nth(scheduler, job)) {
        assert!(scheduler.finish(id));
    }
}

fn nth(scheduler: &Scheduler, nth: usize) -> Option<JobId> {
    let n_jobs = scheduler.jobs().len().max(1);
    scheduler.jobs().map(|(id, _)| id).nth(nth % n_jobs)
}

/// A scheduler that is restored from the state of this one, as written to a file.
fn restored(scheduler: &Scheduler, policy: &str) -> Scheduler {
    let text = serde_json::to_string(&scheduler.state()).unwrap();
    let mut again = made(policy);
    again.restore(&serde_json::from_str(&text).unwrap()).unwrap();
    again
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_restored_scheduler_grants_the_same_leases(
        policy in proptest::sample::select(POLICIES.to_vec()),
        course in proptest::collection::vec(before(), 10..40),
    ) {
        let (mut whole, mut pieces) = (made(policy), made(policy));
        let heavy = Entity { name: "heavy".into(), weight: 3.0, inner: InnerRule::Fairness, parent: None };
        for scheduler in [&mut whole, &mut pieces] {
            scheduler.declare(heavy.clone()).unwrap();
        }
        for (number, happens) in (0..).zip(&course) {
            for scheduler in [&mut whole, &mut pieces] {
                tell(scheduler, happens, number);
            }
            if happens.is_restored {
                pieces = restored(&pieces, policy);
            }
            let (expected, found) = (whole.tick(start(number), None), pieces.tick(start(number), None));
            prop_assert_eq!(&expected, &found, "{} in round {}", policy, number);
            for (scheduler, round) in [(&mut whole, &expected), (&mut pieces, &found)] {
                run(scheduler, round);
            }
            if let Some((job, is_restored)) = happens.leaves {
                for scheduler in [&mut whole, &mut pieces] {
                    nth(scheduler, job).map(|id| scheduler.finish(id));
                }
                if is_restored {
                    pieces = restored(&pieces, policy);
                }
                let inside = start(number) + Seconds::new(100.0);
                prop_assert_eq!(whole.refill(inside), pieces.refill(inside), "{} in round {}", policy, number);
            }
            let shares = |scheduler: &Scheduler| scheduler.in_force().map(|in_force| in_force.shares.clone());
            prop_assert_eq!(shares(&whole), shares(&pieces));
        }
        prop_assert_eq!(whole.jobs().collect::<Vec<_>>(), pieces.jobs().collect::<Vec<_>>());
    }
}

/// The leases of the rounds of a simulation.
#[derive(Debug, Default)]
struct Granted(Vec<(Combination<JobId>, WorkerTypeId, Vec<WorkerId>)>);

impl Observer for Granted {
    fn observe(&mut self, event: &Event<'_>) {
        if let Event::Lease { jobs, worker_type, workers, .. } = event {
            self.0.push((*jobs, *worker_type, workers.to_vec()));
        }
    }
}

/// The next round of a simulation that takes over from a scheduler as it is.
fn taken_over(scheduler: &Scheduler, policy: &str, (now, heavy): (Seconds, &Entity)) -> Granted {
    let ready = || Catalog::embedded().build(policy, &PolicyOptions::default()).unwrap();
    let cluster = CLUSTER.parse().unwrap();
    let parts = || (&cluster, throughputs());
    let nothing = || Box::new(Listed::new(Vec::new()));
    let fresh = Simulation::new(parts(), nothing(), ready(), simulator::Options::default()).unwrap();
    let checkpoint = fresh.checkpoint().taking_over(&scheduler.state(), now, &BTreeMap::new()).unwrap();
    let mut simulation =
        Simulation::resume(parts(), nothing(), ready(), &checkpoint).unwrap().with_entities([heavy.clone()]);
    let mut granted = Granted::default();
    simulation.start_round(&mut granted).unwrap();
    granted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn a_simulation_that_takes_over_grants_the_same_leases(
        policy in proptest::sample::select(POLICIES.to_vec()),
        course in proptest::collection::vec(before(), 5..25),
    ) {
        let mut scheduler = made(policy);
        let heavy = Entity { name: "heavy".into(), weight: 3.0, inner: InnerRule::Fairness, parent: None };
        scheduler.declare(heavy.clone()).unwrap();
        for (number, happens) in (0..).zip(&course) {
            // A checkpoint does not know of time that is only projected.
            tell(&mut scheduler, &Before { projected: None, ..happens.clone() }, number);
            // Allox refuses jobs of several workers, which ends a simulation and not a scheduler.
            prop_assume!(policy != "allox" || scheduler.state().active().all(|(_, job, _)| job.scale_factor == 1));
            let found = taken_over(&scheduler, policy, (start(number), &heavy));
            let round = scheduler.tick(start(number), None);
            let expected: Vec<_> = round
                .leases
                .iter()
                .map(|lease| (lease.jobs, lease.worker_type, lease.workers.clone()))
                .collect();
            prop_assert_eq!(&found.0, &expected, "{} in round {}", policy, number);
            run(&mut scheduler, &round);
        }
    }
}

#[test]
fn what_is_projected_counts_until_it_is_recorded() {
    let mut scheduler = scheduler("v100=1", Catalog::embedded().policy("max_min_fairness_perf").unwrap());
    let jobs = Combination::single(scheduler.submit(job(2.0, 1.0)).unwrap());
    let worker_type = scheduler.tick(start(0), None).leases[0].worker_type;
    // The initial credit of half a round is not counted.
    let received = |scheduler: &Scheduler| {
        scheduler.mechanism().unwrap().received(jobs, worker_type).unwrap().get() - 180.0
    };
    let record = |scheduler: &mut Scheduler, time: f64| {
        let (time, steps) = (Seconds::new(time), [Steps::new(1.0), Steps::ZERO]);
        scheduler.record(Received { jobs, worker_type, time, steps }).unwrap();
    };
    record(&mut scheduler, 300.0);
    scheduler.project(jobs, worker_type, Seconds::new(60.0)).unwrap();
    assert!((received(&scheduler) - 360.0).abs() < 1e-9);
    record(&mut scheduler, 40.0);
    assert!((received(&scheduler) - 340.0).abs() < 1e-9, "it had them for less");
    scheduler.project(jobs, worker_type, Seconds::new(60.0)).unwrap();
    scheduler.project(jobs, worker_type, Seconds::new(50.0)).unwrap();
    assert!((received(&scheduler) - 390.0).abs() < 1e-9, "the last counts");
    let error = scheduler.project(jobs, worker_type, Seconds::new(-1.0)).unwrap_err();
    assert!(matches!(error, ReportError::Value { field: "time", .. }), "{error}");
}

#[test]
fn workers_of_a_job_that_is_done_are_given_to_one_that_waits() {
    let mut scheduler = scheduler("v100=2", Catalog::embedded().policy("max_min_fairness_perf").unwrap());
    let [first, _, third] =
        ["first", "second", "third"].map(|name| scheduler.submit_as(name, job(2.0, 1.0)).unwrap());
    let round = scheduler.tick(start(0), None);
    assert_eq!(round.leases.len(), 2);
    assert_eq!(scheduler.refill(Seconds::new(50.0)), []);
    assert!(scheduler.finish(first));
    let late = scheduler.submit_as("late", job(2.0, 1.0)).unwrap();
    let refilled = scheduler.refill(Seconds::new(100.0));
    assert_eq!(refilled.len(), 1);
    let of_first = round.leases.iter().find(|lease| lease.jobs.contains(first)).unwrap();
    assert_eq!((refilled[0].jobs, &refilled[0].names[0][..]), (Combination::single(third), "third"));
    assert_eq!((&refilled[0].workers, refilled[0].extended), (&of_first.workers, false));
    // A job that is not in the allocation waits for the next round, which extends the refilled leases.
    assert!(scheduler.finish(third));
    assert_eq!(scheduler.refill(Seconds::new(200.0)), []);
    assert!(scheduler.tick(start(1), None).leases.iter().any(|lease| lease.jobs.contains(late)));
}

#[test]
fn a_scheduler_saved_while_its_policy_decides_asks_again() {
    let (permits, policy) = gated();
    let mut saved = scheduler("v100=1,k80=1", policy);
    saved.submit_as("stays", job(2.0, 1.0)).unwrap();
    permits.send(Permit::Decide).unwrap();
    assert_eq!(saved.tick(start(0), LONG).decided, Decided::Fresh { asked: start(0) });
    permits.send(Permit::Fail).unwrap();
    saved.submit_as("comes", job(2.0, 1.0)).unwrap();
    // It is asked at once because a job waits beside an idle worker, and fails; then again because it failed.
    assert!(matches!(saved.tick(start(1), LONG).decided, Decided::Failed { .. }));
    assert_eq!(saved.tick(start(2), NOT_AT_ALL).decided, Decided::Late { since: start(2) });
    let (permits, policy) = gated();
    let mut again = scheduler("v100=1,k80=1", policy);
    again.restore(&saved.state()).unwrap();
    assert_eq!(again.in_force().unwrap().asked, start(0));
    permits.send(Permit::Decide).unwrap();
    assert_eq!(again.tick(start(3), LONG).decided, Decided::Fresh { asked: start(3) });
}

#[test]
fn a_state_of_another_scheduler_is_refused_and_changes_nothing() {
    let mut here = made("fifo");
    here.submit_as("mine", Job::new("A3C").steps(1_000)).unwrap();
    let before = serde_json::to_string(&here.state()).unwrap();
    let refused = |here: &mut Scheduler, state: &serde_json::Value| {
        let state = serde_json::from_value(state.clone()).unwrap();
        here.restore(&state).unwrap_err().to_string()
    };
    let sound = serde_json::to_value(here.state()).unwrap();
    let other = scheduler("v100=1", Catalog::embedded().policy("fifo").unwrap()).state();
    let error = refused(&mut here, &serde_json::to_value(other).unwrap());
    assert!(error.ends_with("it is of cluster `v100=1`, expected `v100=3,p100=2,k80=2`"), "{error}");
    let error = refused(&mut here, &serde_json::to_value(made("allox").state()).unwrap());
    assert!(error.ends_with("it is of policy `allox`, expected `fifo`"), "{error}");
    let changed = |pointer: &str, value: serde_json::Value| {
        let mut state = sound.clone();
        *state.pointer_mut(pointer).unwrap() = value;
        state
    };
    for (pointer, value, expected) in [
        ("/format", "apportion/scheduler-v0".into(), "expected `apportion/scheduler-v1`"),
        ("/n_submitted", 0.into(), "it has jobs that were never submitted"),
        ("/jobs", serde_json::json!([]), "its mechanism has other jobs"),
        ("/by_name", serde_json::json!({"mine": 7}), "it has names of jobs that are not here"),
        ("/jobs/0/noise", serde_json::json!([1.0]), "its jobs are of another number of worker types"),
        (
            "/entities",
            serde_json::json!([{"name": "a", "weight": 1.0, "inner": "fifo", "parent": 0}]),
            "its owners are not a tree",
        ),
        ("/jobs/0/job/job_type", "unheard of".into(), "unheard of"),
        ("/rounds/mechanism/down", serde_json::json!([9]), "worker 9 is not in the cluster"),
    ] {
        let error = refused(&mut here, &changed(pointer, value));
        assert!(error.contains(expected), "{pointer}: {error}");
        assert_eq!(serde_json::to_string(&here.state()).unwrap(), before, "{pointer}");
    }
}

#[test]
fn measured_speeds_are_averaged_and_shown_to_policies() {
    let mut scheduler =
        scheduler("v100=1,k80=1", Catalog::embedded().policy("max_sum_throughput_perf").unwrap());
    let [v100, k80] = [0, 1].map(WorkerTypeId::from_index);
    let fast = scheduler.submit_as("fast", job(10.0, 1.0)).unwrap();
    let slow = scheduler.submit_as("slow", job(4.0, 1.0)).unwrap();
    let shown =
        |scheduler: &Scheduler| scheduler.problem().unwrap().throughput().row(Id::from_index(0)).to_vec();
    let round = scheduler.tick(start(0), None);
    assert_eq!(held(&round), [("fast".to_owned(), "v100"), ("slow".to_owned(), "k80")]);
    // 10, then ½ · 2 + ½ · 10 = 6, then ½ · 2 + ½ · 6 = 4, then 3: less than the other's 4.
    for expected in [6.0, 4.0, 3.0] {
        scheduler.measure(fast, v100, StepsPerSecond::new(2.0)).unwrap();
        assert_eq!(shown(&scheduler), [expected, 1.0]);
    }
    let round = scheduler.tick(Seconds::new(1_920.0), None);
    assert_eq!(held(&round), [("fast".to_owned(), "k80"), ("slow".to_owned(), "v100")]);

    // A measurement that changes little is shown, and is no reason to ask.
    scheduler.measure(fast, k80, StepsPerSecond::new(1.015_625)).unwrap();
    assert_eq!(shown(&scheduler), [3.0, 1.007_812_5]);
    assert!(!scheduler.mechanism().unwrap().has_changed());
    scheduler.measure(fast, k80, StepsPerSecond::new(1.492_187_5)).unwrap();
    assert!(scheduler.mechanism().unwrap().has_changed());
    assert_eq!(shown(&scheduler), [3.0, 1.25]);

    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = scheduler.measure(fast, v100, StepsPerSecond::new(speed)).unwrap_err();
        assert!(matches!(error, ReportError::Value { field: "speed", .. }), "{error}");
    }
    let never = JobId::from_index(2);
    let error = scheduler.measure(never, v100, StepsPerSecond::new(1.0)).unwrap_err();
    assert_eq!(error, ReportError::UnknownJob { id: never });
    let worker_type = WorkerTypeId::from_index(2);
    let error = scheduler.measure(fast, worker_type, StepsPerSecond::new(1.0)).unwrap_err();
    assert_eq!(error, ReportError::UnknownType { worker_type });
    let only = scheduler.submit(job(10.0, 0.0)).unwrap();
    let error = scheduler.measure(only, k80, StepsPerSecond::new(1.0)).unwrap_err();
    assert_eq!(error.to_string(), "job 2 has no throughput on worker type 1");
    assert!(scheduler.finish(slow));
    assert_eq!(scheduler.measure(slow, v100, StepsPerSecond::new(1.0)), Ok(()), "gone, but known");
    // However slow it is reported to be, it can be stated.
    for _ in 0..3_000 {
        scheduler.measure(fast, v100, StepsPerSecond::new(f64::MIN_POSITIVE)).unwrap();
    }
    assert!(scheduler.problem().is_ok());
}
