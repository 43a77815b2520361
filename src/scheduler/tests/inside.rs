//! The inside of a round: idle workers for jobs that have come since the last allocation; and the known data of jobs.

use super::*;
use crate::mechanism::Priority;

fn named(leases: &[Lease]) -> Vec<(&str, &str)> {
    leases.iter().map(|lease| (lease.names[0].as_str(), lease.type_name.as_str())).collect()
}

#[test]
fn a_job_that_comes_inside_a_round_has_idle_workers_at_once_and_keeps_them() {
    for (name, asks) in [("max_min_fairness_perf", false), ("isolated", false), ("fifo", true)] {
        let policy = Catalog::embedded().policy(name).unwrap();
        let mut scheduler = scheduler("v100=2,k80=1", policy);
        scheduler.submit_as("first", job(2.0, 1.0)).unwrap();
        let round = scheduler.tick(start(0), None);
        assert_eq!(round.leases.len(), 1);
        scheduler.submit_as("second", job(2.0, 1.0)).unwrap();
        let vast = scheduler.submit_as("vast", job(2.0, 1.0).scale_factor(2)).unwrap();
        let at = Seconds::new(100.0);
        assert_eq!(scheduler.refill(at), [], "{name}: it is not in the allocation");
        let (decided, leases) = scheduler.refill_with_arrivals(at, None);
        assert_eq!(named(&leases), [("second", "v100")], "{name}");
        assert_eq!(matches!(decided, Decided::Fresh { .. }), asks, "{name}: {decided:?}");
        let (decided, leases) = scheduler.refill_with_arrivals(at, None);
        assert_eq!((decided, leases), (Decided::Unchanged, vec![]), "{name}: no worker for two idles");

        // It goes on where it is, as a job that has a share. (`isolated` draws the order of worker types.)
        scheduler.finish(vast);
        run(&mut scheduler, &round);
        let next = scheduler.tick(start(1), None);
        let goes_on = |lease: &&Lease| lease.names[0] == "second" && (lease.extended || name == "isolated");
        assert_eq!(next.leases.iter().filter(goes_on).count(), 1, "{name}: {next:?}");
    }
}

#[test]
fn where_a_job_stands_follows_from_its_share_and_what_it_received() {
    let policy = Catalog::embedded().policy("isolated").unwrap();
    let mut scheduler = scheduler("v100=1", policy);
    let [one, other] = ["one", "other"].map(|name| scheduler.submit_as(name, job(2.0, 1.0)).unwrap());
    let round = scheduler.tick(start(0), None);
    let held = round.leases[0].jobs;
    let waiting = if held.contains(one) { Combination::single(other) } else { Combination::single(one) };
    let v100 = round.leases[0].worker_type;
    run(&mut scheduler, &round);
    let of = |jobs| scheduler.mechanism().unwrap().standing(jobs, v100).unwrap();
    let (holder, waits) = (of(held), of(waiting));
    assert_eq!((holder.received, waits.received), (Seconds::new(360.0), Seconds::ZERO));
    assert_eq!((holder.share, holder.deficit), (waits.share, Seconds::ZERO));
    // A credit of 180 s each: 540 of 720 s were the one's, and 180 s the other's.
    let (Priority::Ratio(low), Priority::Ratio(high)) = (holder.priority, waits.priority) else {
        panic!("{holder:?}, {waits:?}")
    };
    assert!((low - waits.share / 0.75).abs() < 1e-12 && (high - waits.share / 0.25).abs() < 1e-12);
    let gone = Combination::single(JobId::from_index(7));
    assert_eq!(scheduler.mechanism().unwrap().standing(gone, v100), None);
}

#[test]
fn the_worker_types_of_a_job_are_those_that_it_has_a_throughput_on() {
    let scheduler = scheduler("v100=1", Box::new(Isolated::default()));
    assert_eq!(scheduler.worker_types_of(&job(2.0, 0.0)), ["v100"]);
    let known = scheduler.worker_types_of(&Job::new("A3C"));
    assert!(known.contains(&"k80".to_owned()), "{known:?}");
    assert_eq!(scheduler.worker_types_of(&Job::new("none such")), Vec::<String>::new());
}

#[test]
fn a_job_that_rests_leaves_its_workers_to_others_and_comes_back() {
    for name in ["max_min_fairness_perf", "isolated", "max_min_fairness_packed"] {
        let fresh = || scheduler("v100=1", Catalog::embedded().policy(name).unwrap());
        let mut scheduler = fresh();
        for name in ["one", "other"] {
            scheduler.submit_as(name, job(2.0, 1.0).steps(1_000_000)).unwrap();
        }
        let round = scheduler.tick(start(0), None);
        let [first] = &round.leases[..] else { panic!("{name}: {round:?}") };
        let (resting, lost) = (first.names[0].clone(), first.jobs);
        let others = ["one", "other"].into_iter().find(|other| *other != resting).unwrap();
        let id = scheduler.find(&resting).unwrap();
        assert!(!scheduler.rest(JobId::from_index(7), start(2)));
        assert!(scheduler.rest(id, start(2)), "{name}");
        let at = Seconds::new(10.0);
        assert_eq!(named(&scheduler.refill(at)), [(others, "v100")], "{name}");
        assert_eq!(scheduler.refill(at), [], "{name}");

        // It is left out of the next round, and does not count as having lost its lease; likewise after a restore.
        let mut restored = fresh();
        restored.restore(&scheduler.state()).unwrap();
        for scheduler in [&mut scheduler, &mut restored] {
            let next = scheduler.tick(start(1), None);
            assert_eq!(named(&next.leases), [(others, "v100")], "{name}");
            assert_eq!(next.preempted, [], "{name}: {lost:?}");
            let back = scheduler.tick(start(2), None);
            assert_eq!(named(&back.leases), [(resting.as_str(), "v100")], "{name}");
        }
    }
}
