//! Properties of slices of an event log: no more workers are in use than there are, and no job is in two places.

use std::collections::{BTreeMap, BTreeSet};

use apportion::Dollars;
use apportion::metrics::Completions;
use apportion::metrics::log::{Header, Replay};
use apportion::simulator::{Event, Observer};
use apportion::spec::run::RunSpec;
use apportion_live::core::{JobRecord, Request};
use serde_json::Value;

use super::node::Ends;
use super::small::{ROUND, Small, job};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// The cost of a slice.
pub(crate) fn cost_of(slice: &Value) -> f64 {
    slice["price"].as_f64().unwrap_or(0.0) / 3600.0 * number(&slice["time"]) * number(&slice["n_workers"])
}

pub(crate) fn slices(events: &[Value]) -> impl Iterator<Item = &Value> {
    events.iter().filter(|event| event["event"] == "slice")
}

/// The jobs of a slice, each with its incarnation.
pub(crate) fn members(slice: &Value) -> Vec<(u64, Option<u64>)> {
    let ids = [&slice["jobs"]["first"], &slice["jobs"]["second"]];
    let members = ids.iter().zip([0, 1]);
    members.filter_map(|(id, at)| Some((id.as_u64()?, slice["incarnations"][at].as_u64()))).collect()
}

/// The most that is in use at any instant. Slices that follow each other may touch.
fn most_in_use(mut changes: Vec<(f64, f64)>) -> f64 {
    changes.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let (mut now, mut most) = (0.0, 0.0f64);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    most
}

/// Checks the slices that have a span: corrections have none.
pub(crate) fn check(events: &[Value], n_workers: &[f64], which: &str) {
    let mut types: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    let mut jobs: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for slice in slices(events) {
        let (start, end, time) = (number(&slice["start"]), number(&slice["end"]), number(&slice["time"]));
        assert!(end >= start, "{which}: {slice}");
        if end - start < 1e-6 {
            continue;
        }
        assert!(time <= end - start + 1e-9, "{which}: more time than it lasts: {slice}");
        // Ends are moved by the rounding errors of corrections.
        let span = [start + 1e-7, end - 1e-7];
        let held = number(&slice["n_workers"]);
        let worker_type = ["v100", "k80"].iter().position(|name| slice["worker_type"] == **name).unwrap();
        let changes = types.entry(worker_type).or_default();
        changes.extend([(span[0], held), (span[1], -held)]);
        let members = members(slice);
        assert!(members.iter().any(|(_, incarnation)| incarnation.is_some()), "{which}: whose is {slice}?");
        // In a slice of two that share, one job may be gone, or not be there yet, and be elsewhere.
        for (id, _) in members.into_iter().filter(|(_, incarnation)| incarnation.is_some()) {
            jobs.entry(id).or_default().extend([(span[0], 1.0), (span[1], -1.0)]);
        }
    }
    for (worker_type, changes) in types {
        let most = most_in_use(changes);
        assert!(most <= n_workers[worker_type], "{which}: {most} workers of type {worker_type} in use");
    }
    for (id, changes) in jobs {
        let of = || -> Vec<_> {
            slices(events).filter(|slice| members(slice).iter().any(|(member, _)| *member == id)).collect()
        };
        assert!(most_in_use(changes) < 1.5, "{which}: slices of job {id} overlap: {:?}", of());
    }
}

/// Checks each job's steps in the log against its record, over all starts of the scheduler, and the time of each job that never
/// shared.
pub(crate) fn check_sums<'a>(events: &[Value], jobs: impl Iterator<Item = &'a JobRecord>, which: &str) {
    let mut logged: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    let mut shared: BTreeSet<u64> = BTreeSet::new();
    for slice in slices(events) {
        let members = members(slice);
        for (place, (id, _)) in members.iter().enumerate() {
            let (time, steps) = logged.entry(*id).or_default();
            (*time, *steps) = (*time + number(&slice["time"]), *steps + number(&slice["steps"][place]));
            if members.len() > 1 {
                shared.insert(*id);
            }
        }
    }
    for job in jobs {
        let received: f64 = job.received.values().map(|time| time.get()).sum();
        let (time, steps) = logged.get(&job.number.0).copied().unwrap_or((0.0, 0.0));
        assert!((steps - job.checkpointed).abs() < 1e-6, "{which}: {steps} steps in the log: {job:?}");
        let is_right = shared.contains(&job.number.0) || (received - time).abs() < 1e-6;
        assert!(is_right, "{which}: {received} s received, {time} s in the log: {job:?}");
    }
}

/// Checks each job's cost in the log against its record; no job shares its workers.
pub(crate) fn check_costs<'a>(events: &[Value], jobs: impl Iterator<Item = &'a JobRecord>, which: &str) {
    for job in jobs {
        let of: Vec<_> = slices(events).filter(|slice| members(slice)[0].0 == job.number.0).collect();
        let (paid, logged) =
            (job.cost.map_or(0.0, Dollars::get), of.iter().copied().map(cost_of).sum::<f64>());
        assert!((paid - logged).abs() < 1e-4, "{which}: it cost {paid}, {logged} by the log: {job:?} {of:?}");
    }
}

/// The time of the slices of a small world, and their steps.
fn sums(small: &Small) -> (f64, f64) {
    let sum = |(time, steps), slice: &Value| {
        (time + number(&slice["time"]), steps + number(&slice["steps"][0]) + number(&slice["steps"][1]))
    };
    slices(&small.events).fold((0.0, 0.0), sum)
}

#[derive(Debug)]
struct Jobs(Completions);

impl Observer for Jobs {
    fn observe(&mut self, event: &Event<'_>) {
        self.0.fold(event);
    }
}

/// The time for which the only job of a small world had workers, in a report of its log.
fn service(small: &Small) -> f64 {
    let cluster = small.core.as_ref().unwrap().cluster();
    let header = Header::new("", cluster, &RunSpec::default(), &BTreeMap::new());
    let (mut replay, mut jobs) = (Replay::new(&header), Jobs(Completions::new(cluster)));
    for event in &small.events {
        replay.tell(&event.to_string(), &mut jobs).unwrap();
    }
    jobs.0.jobs()[0].service.service.get()
}

#[test]
fn what_a_run_had_before_it_was_known_to_run_is_a_correction_where_the_log_has_gone_on() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.nodes[0].ends = Ends::WithTime;
    small.start("v100=1");
    small.until(5.0);
    let number_of = small.submit(job(150));
    // It begins while the scheduler is away.
    small.core = None;
    small.sleep_until(25.0);
    small.start("v100=1");
    small.until(25.0 + 4.0 * ROUND);
    let record = &small.jobs[&number_of];
    assert!(record.outcome.is_some(), "{record:?}");
    check(&small.events, &[1.0], "small");
    let corrections: Vec<_> = slices(&small.events).filter(|slice| slice["start"] == slice["end"]).collect();
    let more: f64 = corrections.iter().map(|slice| number(&slice["time"])).sum();
    assert!((15.0..25.0).contains(&more), "{corrections:?}");
    // A report of the log has the corrections, too.
    assert!((service(&small) - record.received["v100"].get()).abs() < 1e-6, "{} s", service(&small));
    let (time, steps) = sums(&small);
    assert!((time - record.received["v100"].get()).abs() < 1e-6 && (time - 150.0).abs() < 2.0, "{time}");
    assert!((steps - 150.0).abs() < 1e-9, "{steps}");
}

#[test]
fn steps_that_came_with_the_first_word_of_a_run_are_in_the_log_after_another_restart() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.start("v100=1");
    small.until(5.0);
    let number_of = small.submit(job(50));
    small.until(5.25);
    small.core = None;
    small.sleep_until(20.0);
    small.start("v100=1");
    while small.jobs[&number_of].checkpointed < 1.0 {
        small.until(small.now + 0.25);
        assert!(small.now < 30.0, "its checkpoints are not heard of");
    }
    small.start("v100=1");
    small.until(20.0 + 2.0 * ROUND);
    assert!(small.jobs[&number_of].outcome.is_some());
    let (_, steps) = sums(&small);
    assert!((steps - 50.0).abs() < 1e-9, "{steps}");
}

#[test]
fn slices_say_which_start_of_their_jobs_they_are_of() {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 1)]);
    small.start("v100=1");
    small.until(5.0);
    let number_of = small.submit(job(200));
    small.until(30.0);
    small.ask(Request::Drain("a".into(), "a fan is broken".into())).unwrap();
    small.until(150.0);
    small.ask(Request::Resume("a".into())).unwrap();
    small.until(10.0 * ROUND);
    let record = &small.jobs[&number_of];
    assert!(record.outcome.is_some() && record.incarnation == 2, "{record:?}");
    let starts: Vec<_> = slices(&small.events).flat_map(members).collect();
    assert!([1, 2].iter().all(|start| starts.contains(&(number_of.0, Some(*start)))), "{starts:?}");
    assert!(starts.iter().all(|(_, start)| start.is_some()), "{starts:?}");
    check(&small.events, &[1.0], "small");
}

#[test]
fn a_run_that_an_earlier_version_recorded_is_in_the_log_once() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.start("v100=1");
    small.until(5.0);
    let number_of = small.submit(job(150));
    small.until(90.0);
    // The position in the log was noted together with the counted time.
    let mut record = serde_json::to_value(&small.jobs[&number_of]).unwrap();
    let run = record["run"].as_object_mut().unwrap();
    assert!(run.remove("untold").is_some());
    let logged = run.remove("logged").unwrap();
    assert!(number(&logged["checkpointed"]) > 50.0, "{logged}");
    run["counted"]["logged"] = logged;
    small.jobs.insert(number_of, serde_json::from_value(record).unwrap());
    small.start("v100=1");
    small.until(300.0);
    assert!(small.jobs[&number_of].outcome.is_some());
    check(&small.events, &[1.0], "small");
    let (time, steps) = sums(&small);
    assert!((steps - 150.0).abs() < 1e-9 && (time - 150.0).abs() < 2.0, "{steps} steps in {time} s");
}

#[test]
fn what_ran_before_a_kill_is_in_the_log_though_the_next_start_has_another_cluster() {
    for (killed, is_back) in [(40.0, false), (40.0, true), (100.0, false), (100.0, true)] {
        let mut small = Small::new("fifo", &[("v100", 1), ("k80", 1)]);
        small.nodes.iter_mut().for_each(|node| node.ends = Ends::WithTime);
        small.start("v100=1,k80=1");
        small.until(5.0);
        let jobs = [0, 1].map(|_| small.submit(job(400)));
        small.until(killed);
        // It is killed, and has workers of another type before those of the second job.
        small.core = None;
        small.start("v100=1,p100=1,k80=1");
        small.until(killed + 30.0);
        if is_back {
            small.core = None;
            small.start("v100=1,k80=1");
        }
        small.until(2_000.0);
        for number in jobs {
            let record = &small.jobs[&number];
            assert!(record.outcome.is_some(), "{record:?}");
        }
        check_sums(&small.events, small.jobs.values(), &format!("killed at {killed}, back: {is_back}"));
    }
}
