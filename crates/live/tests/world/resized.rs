//! Jobs that a policy gives another number of workers: they stop, and start again with it from their checkpoints.

use std::cell::Cell;
use std::collections::BTreeSet;

use apportion::Job;
use apportion::policy::{Placed, PolicyError, RoundDecision, RoundPolicy, RoundView};
use apportion::workload::Combination;
use apportion_live::core::{How, State};
use apportion_live::protocol::JobNumber;

use super::small::{GOOD, Small};

const TYPE: &str = "ResNet-50 (batch size 64)";

thread_local! {
    /// The size that the policy of this test asks for.
    static SIZE: Cell<u32> = const { Cell::new(1) };
}

/// A policy that gives every job the size that is asked for, and the first free workers.
#[derive(Debug)]
struct Sizing;

impl RoundPolicy for Sizing {
    fn name(&self) -> &'static str {
        "sizing"
    }

    fn begin(&mut self, _: &RoundView<'_>) -> Result<(), PolicyError> {
        Ok(())
    }

    fn next(&mut self, view: &RoundView<'_>) -> Result<RoundDecision, PolicyError> {
        let is_placed = |id| view.placed.iter().any(|placed| placed.combination.contains(id));
        let Some(job) = view.problem.jobs().iter().find(|job| !is_placed(job.id)) else {
            return Ok(RoundDecision::EndRound);
        };
        let size = SIZE.get();
        if job.scale_factor != size && view.resizable.iter().any(|other| other.job == job.id) {
            return Ok(RoundDecision::Resize { job: job.id, workers: size });
        }
        let n_workers = job.scale_factor as usize;
        let with_room = view.free.enumerate().find(|(_, free)| free.len() >= n_workers);
        let Some((worker_type, free)) = with_room else { return Ok(RoundDecision::EndRound) };
        let workers = free.iter().take(n_workers).copied().collect();
        Ok(RoundDecision::Place(Placed { combination: Combination::single(job.id), worker_type, workers }))
    }
}

fn sizing() -> Small {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 2), ("v100", 2)]);
    small.placing = Some(|_| Box::new(Sizing));
    small.start("v100=4");
    small.until(5.0);
    small
}

fn elastic(steps: u32) -> Job {
    Job::new(TYPE).steps(steps).sizes([1, 2, 4])
}

/// The starts of a job that really run, and the ranks of each.
fn running(small: &Small, job: JobNumber) -> (BTreeSet<u32>, usize) {
    let processes = small.nodes.iter().flat_map(|node| &node.processes);
    let alive: Vec<_> =
        processes.filter(|((run, _), process)| run.job == job && process.end.is_none()).collect();
    (alive.iter().map(|((run, _), _)| run.incarnation).collect(), alive.len())
}

#[test]
fn a_job_goes_on_from_its_checkpoint_with_as_many_ranks_as_it_is_given() {
    let mut small = sizing();
    let job = small.submit(elastic(400));
    small.until(30.0);
    assert_eq!(running(&small, job), (BTreeSet::from([1]), 1));
    SIZE.set(4);
    let mut seen = BTreeSet::new();
    while small.now < 125.0 {
        small.until(small.now + 0.25);
        let (starts, ranks) = running(&small, job);
        assert!(starts.len() <= 1, "two starts run at {}", small.now);
        seen.insert((starts.first().copied(), ranks));
        if small.why(job).job.state == State::Stopping {
            let said = small.why(job).because.join(" ");
            assert!(said.contains("the policy has resized it from 1 to 4 workers"), "{said}");
        }
    }
    assert!(seen.contains(&(Some(1), 1)) && seen.contains(&(Some(2), 4)), "{seen:?}");
    assert!(!seen.contains(&(Some(1), 4)) && !seen.contains(&(Some(3), 4)), "{seen:?}");
    let why = small.why(job);
    assert_eq!((why.job.scale_factor, &*why.job.sizes, why.job.servers.len()), (4, &[1, 2, 4][..], 2));
    assert!(why.because.join(" ").contains("4, resized from the 1 that it was submitted with"), "{why:?}");
    // The steps of the first start count.
    assert!(why.job.steps > 60.0 && why.job.checkpointed >= 50.0, "{why:?}");
    let noted = small.notes.iter().filter(|note| note.text == "it is resized from 1 to 4 workers").count();
    assert_eq!(noted, 1);
    small.until(600.0);
    let record = &small.jobs[&job];
    assert_eq!(
        (record.outcome.as_ref().map(|outcome| outcome.how), record.incarnation),
        (Some(How::Completed), 2)
    );
}

#[test]
fn a_scheduler_that_is_started_again_keeps_the_size() {
    let mut small = sizing();
    SIZE.set(2);
    let job = small.submit(elastic(1_000));
    small.until(130.0);
    let (starts, ranks) = running(&small, job);
    assert_eq!((starts.len(), ranks), (1, 2));
    let before = small.jobs[&job].incarnation;
    small.start("v100=4");
    assert_eq!(small.why(job).job.scale_factor, 2);
    small.until(300.0);
    assert_eq!((running(&small, job).1, small.jobs[&job].incarnation), (2, before));
    assert_eq!(small.warnings("the saved state"), 0);
}

#[test]
fn a_job_that_lists_no_sizes_keeps_its_own_and_others_are_refused() {
    let mut small = sizing();
    SIZE.set(2);
    let job = small.submit(Job::new(TYPE).steps(1_000));
    small.until(130.0);
    assert_eq!((running(&small, job).1, small.why(job).job.scale_factor), (1, 1));
    let refusal = small.try_submit(elastic(10).sizes([1, 8]), GOOD).unwrap_err().to_string();
    let said = "the job cannot be taken in: the job can run on no worker type of the cluster `v100=4` at scale factor 8";
    assert_eq!(refusal, said);
}

#[test]
fn a_job_is_resized_once_wherever_the_scheduler_is_killed_meanwhile() {
    // The round from 65 s on is decided at 55 s: then the job stops, and starts with the new number of ranks.
    for (place, away) in (0..60).flat_map(|place| [0.25, 6.0].map(|away| (place, away))) {
        SIZE.set(1);
        let mut small = sizing();
        let job = small.submit(elastic(400));
        small.until(30.0);
        SIZE.set(4);
        small.until(53.0 + 0.25 * f64::from(place));
        let killed = small.now;
        small.core = None;
        small.sleep_until(killed + away);
        small.start("v100=4");
        let mut seen = BTreeSet::new();
        while small.now < 200.0 {
            small.until(small.now + 0.25);
            let (starts, ranks) = running(&small, job);
            assert!(starts.len() <= 1, "killed at {killed}: two starts run at {}", small.now);
            seen.extend(starts.first().map(|start| (*start, ranks)));
        }
        let resized: Vec<_> = seen.iter().filter(|(_, ranks)| *ranks == 4).collect();
        assert_eq!(resized.len(), 1, "killed at {killed} for {away} s: {seen:?}");
        let why = small.why(job);
        assert_eq!((why.job.scale_factor, why.job.state), (4, State::Running), "killed at {killed}: {why:?}");
        // What the first start saved when it was asked to stop counts.
        assert!(why.job.checkpointed >= 40.0 && why.job.steps > 100.0, "killed at {killed}: {why:?}");
        small.until(900.0);
        let record = &small.jobs[&job];
        assert_eq!(record.outcome.as_ref().map(|outcome| outcome.how), Some(How::Completed), "{record:?}");
        super::log::check_sums(&small.events, small.jobs.values(), "resized");
        super::log::check(&small.events, &[4.0], "resized");
    }
}
