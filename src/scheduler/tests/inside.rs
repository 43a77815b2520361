//! What happens inside a round: idle workers for jobs that have come since the last allocation.

use super::*;

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
