//! Rounds worked by hand.

use super::*;

/// A mechanism with one type of `n` workers; every job runs there.
fn mechanism(n: u32, options: MechanismOptions) -> Mechanism {
    Mechanism::new(&Cluster::try_new([("only", n)]).unwrap(), options)
}

fn adopt(mechanism: &mut Mechanism, shares: &[f64], rules: Rules) {
    let cluster = Cluster::try_new([("only", 8)]).unwrap();
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for job in 0..shares.len() {
        builder.job(ActiveJob::new(id(job)), &[1.0]);
    }
    let problem = builder.build().unwrap();
    let rows = shares.iter().enumerate().map(|(job, share)| (Combination::single(id(job)), vec![*share]));
    let allocation = Allocation::check(&problem, rows).unwrap();
    let ids = problem.jobs().iter().map(|job| job.id).collect();
    mechanism.adopt(&allocation, &ids, rules, &|_, _| 1.0);
}

#[test]
fn two_jobs_with_shares_two_to_one_run_two_rounds_to_one() {
    let mut mechanism = mechanism(1, MechanismOptions::corrected());
    for job in 0..2 {
        mechanism.add_job(id(job), 1, &|_, _| 1.0);
    }
    mechanism.reset(Seconds::ZERO);
    adopt(&mut mechanism, &[2.0 / 3.0, 1.0 / 3.0], Rules::default());
    let mut ran = [0; 2];
    for _ in 0..300 {
        mechanism.assign(&[id(0)]);
        let lease = mechanism.lease(0);
        ran[lease.combination.first().index()] += 1;
        mechanism.record_lease(0, Seconds::new(360.0));
    }
    assert_eq!(ran, [200, 100]);
    // Time owed and time run agree, so nothing is left over.
    mechanism.reset(Seconds::new(300.0 * 360.0));
    for job in 0..2 {
        let deficit = mechanism.deficit(Combination::single(id(job)), id(0)).unwrap();
        assert!(deficit.get().abs() < 1e-6, "{deficit}");
    }
}

#[test]
fn a_late_job_blocks_a_worker_only_as_published() {
    for (options, n_leases) in [(MechanismOptions::corrected(), 1), (MechanismOptions::gavel(), 1)] {
        let published = options.unallocated == Unallocated::Block;
        let mut mechanism = mechanism(2, options);
        mechanism.add_job(id(0), 1, &|_, _| 1.0);
        mechanism.reset(Seconds::new(100.0));
        adopt(&mut mechanism, &[1.0], Rules::default());
        mechanism.add_job(id(1), 1, &|_, _| 1.0);
        mechanism.assign(&[id(0)]);
        assert_eq!(mechanism.leases().len(), n_leases);
        // As described, the worker is left, so that the caller asks for an allocation at once.
        assert_eq!(mechanism.waits_beside_idle(), !published);
        assert!(!mechanism.due(Seconds::new(200.0)));
        assert!(mechanism.due(Seconds::new(100.0 + 1920.0)));
    }
}

#[test]
fn a_reset_at_time_zero_counts_for_nothing_as_published() {
    for (options, due) in [(MechanismOptions::corrected(), false), (MechanismOptions::gavel(), true)] {
        let mut mechanism = mechanism(1, options);
        assert!(mechanism.due(Seconds::ZERO));
        mechanism.reset(Seconds::ZERO);
        mechanism.note_change();
        assert_eq!(mechanism.due(Seconds::new(360.0)), due);
    }
}

#[test]
fn jobs_without_a_share_fill_workers_unless_the_policy_forbids() {
    for (skip_zero_priority, n_leases) in [(false, 2), (true, 1)] {
        let mut mechanism = mechanism(2, MechanismOptions::corrected());
        for job in 0..2 {
            mechanism.add_job(id(job), 1, &|_, _| 1.0);
        }
        mechanism.reset(Seconds::ZERO);
        adopt(&mut mechanism, &[1.0, 0.0], Rules { skip_zero_priority, ..Rules::default() });
        mechanism.assign(&[id(0)]);
        assert_eq!(mechanism.leases().len(), n_leases);
    }
}

/// Two of three workers' time is given: a job's received time is never further from its share than half a round, and a job without
/// a share gets none, at whatever instants accounts are settled. A mechanism that is saved and restored goes on.
#[test]
fn nothing_runs_beyond_its_share_where_the_policy_forbids() {
    let shares = [0.9, 0.5, 0.35, 0.25, 0.0];
    let rules = Rules { within_shares: true, ..Rules::default() };
    let cluster = Cluster::try_new([("only", 3)]).unwrap();
    let mut mechanism = mechanism(3, MechanismOptions::corrected());
    for job in 0..shares.len() {
        mechanism.add_job(id(job), 1, &|_, _| 1.0);
    }
    let mut ran = [0.0; 5];
    let mut n_idle = 0;
    for round in 0..200 {
        let now = 360.0 * f64::from(round);
        if round % 7 == 0 {
            mechanism.reset(Seconds::new(now));
            adopt(&mut mechanism, &shares, rules);
        }
        mechanism.begin_round(Seconds::new(now));
        mechanism.assign(&[id(0)]);
        let n_leases = mechanism.leases().len();
        for lease in 0..n_leases {
            ran[mechanism.lease(lease).combination.first().index()] += 1.0;
            mechanism.record_lease(lease, Seconds::new(360.0));
        }
        n_idle += 3 - n_leases;
        assert_eq!(
            mechanism.refill(Seconds::new(now), &[id(0)]),
            0,
            "what is owed to jobs that wait is less than half a round"
        );
        for (ran, share) in ran.iter().zip(shares) {
            let owed: f64 = share * f64::from(round + 1);
            assert!((owed - ran).abs() <= 0.5 + 1e-6, "round {round}: {ran} rounds, share {share}");
        }
        mechanism = Mechanism::restore(&cluster, *mechanism.options(), &mechanism.state()).unwrap();
    }
    assert!(n_idle > 100, "{n_idle}");
}

#[test]
fn pairs_without_a_share_fill_workers_only_where_the_policy_shares_space() {
    for (pair_fillers, found) in [(true, vec![(0, Some(1)), (2, None)]), (false, vec![(2, None)])] {
        for options in [MechanismOptions::corrected(), MechanismOptions::gavel()] {
            let mut mechanism = mechanism(2, options);
            // Alone, the first two run nowhere; together they do.
            let runs = |jobs: Jobs, _| f64::from(jobs.is_pair() || jobs.first() == id(2));
            for job in 0..3 {
                mechanism.add_job(id(job), 1, &runs);
            }
            let mut builder = ProblemBuilder::new(Arc::new(Cluster::try_new([("only", 2)]).unwrap()));
            for job in 0..3 {
                builder.job(ActiveJob::new(id(job)), &[1.0]);
            }
            let pairs = [(Combination::pair(id(0), id(1)), vec![[0.5, 0.5]])];
            builder.colocation(Colocation::Pairs(BTreeMap::from(pairs)));
            let problem = builder.build().unwrap();
            let ids = problem.jobs().iter().map(|job| job.id).collect();
            let rules = Rules { pair_fillers, ..Rules::default() };
            // The pair had a share once, so that it has an account whatever the options say.
            for share in [1.0, 0.0] {
                let pair = (share > 0.0).then(|| (Combination::pair(id(0), id(1)), vec![share]));
                let rows = pair.into_iter().chain([(Combination::single(id(2)), vec![1.0])]);
                let allocation = Allocation::check(&problem, rows).unwrap();
                mechanism.reset(Seconds::ZERO);
                mechanism.adopt(&allocation, &ids, rules, &runs);
            }
            mechanism.assign(&[id(0)]);
            let mut leased: Vec<(usize, Option<usize>)> = mechanism
                .leases()
                .map(|lease| (lease.combination.first().index(), lease.combination.second().map(Id::index)))
                .collect();
            leased.sort_unstable();
            assert_eq!(leased, found, "{options:?}");
        }
    }
}

#[test]
fn a_filler_moves_to_idle_workers_on_which_it_is_faster_and_makes_room() {
    // Job 0 is faster on the second type, and has a share of it alone. Job 1 runs on the first alone, and has no share.
    let throughput = |jobs: Jobs, kind: WorkerTypeId| match (jobs.first().index(), kind.index()) {
        (0, 0) => 1.0,
        (0, 1) => 2.0,
        (1, 0) => 3.0,
        _ => 0.0,
    };
    let places = |mechanism: &Mechanism| -> Vec<(usize, usize)> {
        let place = |lease: GrantedLease<'_>| (lease.combination.first().index(), lease.worker_type.index());
        mechanism.leases().map(place).collect()
    };
    let cluster = Cluster::try_new([("first", 1), ("second", 1)]).unwrap();
    let mut builder = ProblemBuilder::new(Arc::new(cluster.clone()));
    builder.job(ActiveJob::new(id(0)), &[1.0, 2.0]);
    builder.job(ActiveJob::new(id(1)), &[3.0, 0.0]);
    let problem = builder.build().unwrap();
    let ids = problem.jobs().iter().map(|job| job.id).collect();
    let rows = [(Combination::single(id(0)), vec![0.0, 1.0]), (Combination::single(id(1)), vec![0.0, 0.0])];
    let allocation = Allocation::check(&problem, rows).unwrap();
    for (slow_fillers, by_speed, expected) in [
        (SlowFillers::Stay, true, vec![(0, 0)]),
        (SlowFillers::Move, true, vec![(1, 0), (0, 1)]),
        (SlowFillers::Move, false, vec![(0, 0)]),
    ] {
        let options = MechanismOptions { slow_fillers, ..MechanismOptions::corrected() };
        let mut mechanism = Mechanism::new(&cluster, options);
        for job in 0..2 {
            mechanism.add_job(id(job), 1, &throughput);
        }
        mechanism.reset(Seconds::ZERO);
        mechanism.adopt(&allocation, &ids, Rules { by_speed, ..Rules::default() }, &throughput);
        mechanism.assign(&[id(0), id(1)]);
        assert_eq!(places(&mechanism), expected, "{slow_fillers:?}");
        // If the faster type's worker is down, it stays.
        mechanism.set_up(id(1), false);
        mechanism.assign(&[id(0), id(1)]);
        assert_eq!(places(&mechanism), [(0, 0)], "{slow_fillers:?}");
    }
}

#[test]
fn a_small_share_is_served_however_often_allocations_are_computed_anew() {
    // One worker; nine tenths of it are job 0's, a tenth is job 1's, and every second round begins with equal credits.
    let throughput = |_: Jobs, _: WorkerTypeId| 1.0;
    let cluster = Cluster::try_new([("only", 1)]).unwrap();
    let mut builder = ProblemBuilder::new(Arc::new(cluster.clone()));
    for job in 0..2 {
        builder.job(ActiveJob::new(id(job)), &[1.0]);
    }
    let problem = builder.build().unwrap();
    let ids = problem.jobs().iter().map(|job| job.id).collect();
    let rows = [(Combination::single(id(0)), vec![0.9]), (Combination::single(id(1)), vec![0.1])];
    let allocation = Allocation::check(&problem, rows).unwrap();
    for (overdue_jobs, expected) in [
        (OverdueJobs::Wait, vec![]),
        // A tenth of twenty rounds is two. Then the rest after a round, and a tenth of ten, beside the two in which it runs.
        (OverdueJobs::First, vec![20, 32, 44, 56, 68, 80, 92]),
    ] {
        let options = MechanismOptions { overdue_jobs, ..MechanismOptions::corrected() };
        let mut mechanism = Mechanism::new(&cluster, options);
        (0..2).for_each(|job| mechanism.add_job(id(job), 1, &throughput));
        let mut served = Vec::new();
        for round in 0..100_u32 {
            if round % 2 == 0 {
                mechanism.reset(Seconds::new(f64::from(round) * 360.0));
                mechanism.adopt(&allocation, &ids, Rules::default(), &throughput);
            }
            mechanism.assign(&[id(0)]);
            if mechanism.lease(0).combination.first() == id(1) {
                served.push(round);
            }
            mechanism.record_lease(0, Seconds::new(360.0));
        }
        assert_eq!(served, expected, "{overdue_jobs:?}");
    }
}
