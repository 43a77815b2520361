//! Jobs that may be given other numbers of workers: the conditions of a change, and its remains.

#![expect(clippy::float_cmp, reason = "speeds are those of the matrix, to the bit")]

use super::*;
use crate::policy::{Placed, RoundDecision, RoundPolicy, RoundView};

const TYPE: &str = "ResNet-50 (batch size 64)";

/// A policy that asks for one size of each job that is not placed, gives it the first free workers of the first type with enough,
/// and fails with the reason of any rejection.
#[derive(Debug)]
struct Resizer {
    size: u32,
    fails: bool,
    asked: Vec<JobId>,
}

impl RoundPolicy for Resizer {
    fn name(&self) -> &'static str {
        "resizer"
    }

    fn begin(&mut self, _: &RoundView<'_>) -> Result<(), PolicyError> {
        self.asked.clear();
        Ok(())
    }

    fn next(&mut self, view: &RoundView<'_>) -> Result<RoundDecision, PolicyError> {
        let undecided =
            |reason: &str| PolicyError::Undecided { policy: "resizer".into(), reason: reason.into() };
        if let Some(reason) = view.rejected {
            return Err(undecided(reason));
        }
        let is_placed = |id| view.placed.iter().any(|placed| placed.combination.contains(id));
        let Some(job) = view.problem.jobs().iter().find(|job| !is_placed(job.id)) else {
            return if self.fails { Err(undecided("told to fail")) } else { Ok(RoundDecision::EndRound) };
        };
        if job.scale_factor != self.size && !self.asked.contains(&job.id) {
            self.asked.push(job.id);
            return Ok(RoundDecision::Resize { job: job.id, workers: self.size });
        }
        let n = job.scale_factor as usize;
        let with_room = view.free.enumerate().find(|(_, free)| free.len() >= n);
        let Some((worker_type, free)) = with_room else { return Ok(RoundDecision::EndRound) };
        let workers = free.iter().take(n).copied().collect();
        Ok(RoundDecision::Place(Placed { combination: Combination::single(job.id), worker_type, workers }))
    }
}

fn resizer(cluster: &str, size: u32, fails: bool) -> Scheduler {
    let policy = Box::new(Resizer { size, fails, asked: Vec::new() });
    let options = Options::default();
    Scheduler::with_round_policy(&cluster.parse().unwrap(), throughputs(), policy, options).unwrap()
}

fn elastic(sizes: &[u32]) -> Job {
    Job::new(TYPE).steps(1_000_000).sizes(sizes)
}

fn failure(round: &Round) -> String {
    let Decided::Failed { error } = &round.decided else { panic!("{round:?}") };
    error.to_string()
}

#[test]
fn a_job_gets_those_numbers_of_workers_that_it_lists_and_no_other() {
    for (sizes, size, said) in [
        (&[1, 2][..], 4, "job 0 cannot have 4 workers, only one of 1, 2"),
        (&[], 2, "job 0 does not say that it can have other than 1 workers"),
        (&[1], 2, "job 0 does not say that it can have other than 1 workers"),
    ] {
        let mut scheduler = resizer("v100=4", size, false);
        let id = scheduler.submit(elastic(sizes)).unwrap();
        let round = scheduler.tick(start(0), None);
        assert!(failure(&round).ends_with(said), "{}", failure(&round));
        assert_eq!(scheduler.job(id).unwrap().scale_factor, 1);
    }
    let mut scheduler = resizer("v100=4", 2, false);
    let id = scheduler.submit(elastic(&[1, 2])).unwrap();
    let round = scheduler.tick(start(0), None);
    assert_eq!((round.decided, round.leases[0].workers.len()), (Decided::Fresh { asked: start(0) }, 2));
    assert_eq!(scheduler.job(id).unwrap().scale_factor, 2);
}

#[test]
fn a_size_is_kept_where_a_scheduler_goes_on() {
    let mut scheduler = resizer("v100=4", 2, false);
    let id = scheduler.submit_as("mine", elastic(&[1, 2, 4])).unwrap();
    let before = scheduler.tick(start(0), None);
    let text = serde_json::to_string(&scheduler.state()).unwrap();
    let mut again = resizer("v100=4", 2, false);
    again.restore(&serde_json::from_str(&text).unwrap()).unwrap();
    assert_eq!((again.job(id).unwrap().scale_factor, &*again.job(id).unwrap().sizes), (2, &[1, 2, 4][..]));
    let after = again.tick(start(1), None);
    assert!(after.leases[0].extended && after.leases[0].workers == before.leases[0].workers);
    // A state from before jobs had sizes has none.
    let old = text.replace("\"sizes\":[1,2,4],", "");
    assert_ne!(old, text);
    again.restore(&serde_json::from_str(&old).unwrap()).unwrap();
    assert!(again.job(id).unwrap().sizes.is_empty());
}

#[test]
fn a_policy_that_fails_leaves_jobs_as_large_as_they_were() {
    let mut scheduler = resizer("v100=4", 1, false);
    let id = scheduler.submit_as("mine", elastic(&[1, 2])).unwrap();
    let first = scheduler.tick(start(0), None);
    scheduler.measure(id, Id::from_index(0), StepsPerSecond::new(1.0)).unwrap();
    let shown = scheduler.problem().unwrap().throughput().row(Id::from_index(0)).to_vec();
    let mut failing = resizer("v100=4", 2, true);
    failing.restore(&scheduler.state()).unwrap();
    let round = failing.tick(start(1), None);
    assert!(failure(&round).ends_with("told to fail"));
    assert_eq!(round.leases[0].workers, first.leases[0].workers);
    assert_eq!(failing.job(id).unwrap().scale_factor, 1);
    assert_eq!(failing.problem().unwrap().throughput().row(Id::from_index(0)), shown);
}

#[test]
fn where_workers_go_down_a_job_shrinks_to_what_is_left() {
    let mut scheduler = resizer("v100=4", 4, false);
    let id = scheduler.submit(elastic(&[1, 2, 4])).unwrap();
    assert_eq!(scheduler.tick(start(0), None).leases[0].workers.len(), 4);
    scheduler.set_up(Id::from_index(0), false).unwrap();
    // The policy is shown it with two workers. Its request for four has no effect again: they are not free.
    let mut content = resizer("v100=4", 2, false);
    content.restore(&scheduler.state()).unwrap();
    assert_eq!(content.tick(start(1), None).leases[0].workers.len(), 2);
    assert_eq!(content.job(id).unwrap().scale_factor, 2);
}

#[test]
fn what_was_measured_at_one_size_is_in_what_is_shown_of_others() {
    let mut scheduler = resizer("v100=4", 2, false);
    let id = scheduler.submit(elastic(&[1, 2])).unwrap();
    let known = |size| {
        let throughputs = throughputs();
        throughputs
            .alone(throughputs.find(TYPE, size).unwrap(), throughputs.find_worker_type("v100").unwrap())
    };
    let shown = |scheduler: &Scheduler| {
        scheduler.problem().unwrap().throughput()[(Id::from_index(0), Id::from_index(0))]
    };
    assert_eq!(shown(&scheduler), known(1));
    // ½ of half as fast, and ½ of what is known.
    let half = StepsPerSecond::new(known(1) / 2.0);
    scheduler.measure(id, Id::from_index(0), half).unwrap();
    assert!((shown(&scheduler) - 0.75 * known(1)).abs() < 1e-9);
    scheduler.tick(start(0), None);
    assert!((shown(&scheduler) - 0.75 * known(2)).abs() < 1e-9);
}

#[test]
fn sizes_that_are_none_are_refused() {
    let mut scheduler = resizer("v100=4", 1, false);
    for (job, said) in [
        (elastic(&[2, 1]), "size 1 comes after 2, expected sizes in ascending order, each once"),
        (elastic(&[1, 1]), "size 1 comes after 1, expected sizes in ascending order, each once"),
        (elastic(&[0, 1]), "a size is 0, expected numbers of workers from 1"),
        (
            elastic(&[2, 4]),
            "the scale factor 1 is not among the sizes: add it, or take one of them as the scale factor",
        ),
        (elastic(&[1, 3]), "no throughputs for `ResNet-50 (batch size 64)` at scale factor 3 in `osdi20`"),
        (elastic(&[1, 8]), "the job can run on no worker type of the cluster `v100=4` at scale factor 8"),
        (
            elastic(&[1, 2]).throughput("v100", StepsPerSecond::new(1.0)),
            "the speeds that the job states are those at one size: leave out them or the sizes",
        ),
    ] {
        assert_eq!(scheduler.submit(job).unwrap_err().to_string(), said);
    }
    assert_eq!(scheduler.jobs().len(), 0);
}
