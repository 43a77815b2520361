//! Tests of the drift against published statistics, of the cloud's rules by hand, and of rules against slow implementations.

#![expect(clippy::float_cmp, reason = "numbers chosen so that sums are exact, or copies compared")]

use std::sync::Arc;

use super::cluster::{N_TYPES, servers, type_of, workers_by_type};
use super::observe::{Knowledge, Prospects};
use super::placement::Placement;
use super::rule::Order;
use super::*;
use crate::world::ACCELERATOR;
use crate::world::{Part, WorldJob};
use apportion::index::{Id, JobId, ServerId};
use apportion::workload::random::SeedStreams;

fn tables() -> Arc<Tables> {
    Arc::new(Tables::embedded().unwrap())
}

#[test]
fn the_cluster_is_the_published_one_scaled() {
    let servers = servers(0.05);
    let mut counts = [0; N_TYPES];
    servers.ids().for_each(|server| counts[type_of(&servers, server)] += 1);
    assert_eq!(counts, [7, 5, 40, 25, 14]);
    assert_eq!(workers_by_type(&servers), [56, 40, 80, 50, 112]);
    let alike = |one: ServerId, other: ServerId| {
        servers.rack(one) != servers.rack(other) || type_of(&servers, one) == type_of(&servers, other)
    };
    assert!(servers.ids().all(|one| servers.ids().all(|other| alike(one, other))), "a rack has one type");
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank of the list")]
fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[(part * (sorted.len() - 1) as f64).round() as usize]
}

/// The quantiles of the coefficient of variation of step times over workers, against those of 100 jobs of ten workers that Alibaba
/// publishes. Stragglers begin at the third quartile, so it varies most.
#[test]
fn gangs_of_ten_vary_as_published() {
    let servers = servers(0.05);
    let mut draws = SeedStreams::new(3).stream("gangs");
    let mut found = Vec::new();
    for seed in 0..300 {
        let drift = Drift::new(&servers, DriftOptions::default(), 300.0, seed);
        let mut all: Vec<ServerId> = servers.ids().collect();
        draws.shuffle(&mut all);
        for (gang, members) in all.chunks_exact(10).enumerate() {
            let sensitivity = drift.sensitivity(JobId::from_index(gang));
            let steps: Vec<f64> =
                members.iter().map(|server| (-drift.log_speed(*server, sensitivity)).exp()).collect();
            let mean = steps.iter().sum::<f64>() / 10.0;
            let square = steps.iter().map(|step| (step - mean).powi(2)).sum::<f64>() / 10.0;
            found.push(square.sqrt() / mean);
        }
    }
    found.sort_by(f64::total_cmp);
    let mean = found.iter().sum::<f64>() / found.len() as f64;
    assert!((mean / 0.40 - 1.0).abs() < 0.15, "mean {mean}");
    let published = [
        (0.10, 0.039, 0.3),
        (0.25, 0.059, 0.3),
        (0.50, 0.103, 0.3),
        (0.75, 0.61, 0.5),
        (0.90, 1.11, 0.2),
        (0.95, 1.18, 0.2),
    ];
    for (part, expected, tolerance) in published {
        let value = quantile(&found, part);
        assert!((value / expected - 1.0).abs() < tolerance, "{part}: {value}, published {expected}");
    }
}

#[test]
fn stragglers_come_and_go_at_their_rate() {
    let servers = servers(0.05);
    let mut drift = Drift::new(&servers, DriftOptions::default(), 300.0, 5);
    let (mut slow, mut ends, mut walks) = (0.0, 0.0, Vec::new());
    let n_rounds = 4000;
    for _ in 0..n_rounds {
        let was: Vec<bool> = servers.ids().map(|server| drift.log_speed(server, 0.0) < 0.0).collect();
        drift.step();
        for (server, was) in servers.ids().zip(was) {
            let is = drift.log_speed(server, 0.0) < 0.0;
            slow += f64::from(is);
            ends += f64::from(was && !is);
        }
        walks.push(
            drift.log_speed(ServerId::from_index(0), 1.0) - drift.log_speed(ServerId::from_index(0), 0.0),
        );
    }
    let fraction = slow / f64::from(n_rounds) / servers.len() as f64;
    assert!((fraction - 0.05).abs() < 0.005, "{fraction}");
    // In rounds of 300 s an exponential hour is 12.5 rounds long on average.
    let rounds = slow / ends;
    assert!((rounds - 12.5).abs() < 1.0, "{rounds}");
    let mean = walks.iter().sum::<f64>() / walks.len() as f64;
    let deviation = (walks.iter().map(|walk| (walk - mean).powi(2)).sum::<f64>() / walks.len() as f64).sqrt();
    assert!((deviation - 0.05).abs() < 0.015, "{deviation}");
}

#[test]
fn speeds_do_not_depend_on_what_is_scheduled() {
    let tables = tables();
    let jobs = generate(&tables, &WorkloadOptions { n_jobs: 12, ..WorkloadOptions::default() }, 4).unwrap();
    let after = |text: &str| {
        let mut cloud =
            Cloud::new(Arc::clone(&tables), CloudOptions { scale: 0.01, ..CloudOptions::default() });
        cloud.reset(&jobs, 9);
        let mut player = RulePlayer::new(text.parse().unwrap(), 1);
        for _ in 0..20 {
            player.begin();
            while let Some(job) = player.next_job(&cloud) {
                player.pass(job);
                if let Some(parts) = player.placement(&cloud, job).map(<[Part]>::to_vec) {
                    cloud.place(job, &parts).unwrap();
                }
            }
            cloud.end_round();
            cloud.begin_round();
        }
        let log_speed = |server| cloud.drift().log_speed(server, 1.0);
        cloud.world().servers().ids().map(log_speed).collect::<Vec<_>>()
    };
    assert_eq!(after("fifo/first_fit"), after("random/random"));
}

/// A job of one worker for a number of minutes.
fn small(tables: &Tables, minutes: f64, arrival_s: f64) -> WorldJob {
    let job_type = Tables::job_type(0, 0);
    let work = minutes * 60.0 * tables.speed(job_type, 0, false);
    WorldJob { job_type, workers: 1, work, work_estimated: work, arrival_s, owner: 0 }
}

fn still() -> DriftOptions {
    DriftOptions { bias: 0.0, walk: 0.0, stragglers: 0.0, noise: 0.0, ..DriftOptions::default() }
}

#[test]
fn leases_restarts_and_fees_by_hand() {
    let tables = tables();
    // One server of each type: 8, 8, 2, 2 and 8 workers.
    let options = CloudOptions { scale: 1e-6, drift: still(), lease_rounds: 2, ..CloudOptions::default() };
    let mut cloud = Cloud::new(Arc::clone(&tables), options);
    let (first, second) = (JobId::from_index(0), JobId::from_index(1));
    cloud.reset(&[small(&tables, 60.0, 0.0), small(&tables, 60.0, 700.0)], 0);
    let parts = [Part::workers(ServerId::from_index(0), 1)];
    let minutes_left = |cloud: &Cloud| {
        (cloud.world().job(first).work - cloud.world().progress(first))
            / tables.speed(Tables::job_type(0, 0), 0, false)
            / 60.0
    };
    let round = |cloud: &mut Cloud| {
        let outcome = cloud.end_round();
        cloud.begin_round();
        outcome
    };
    cloud.place(first, &parts).unwrap();
    let outcome = round(&mut cloud);
    assert_eq!(outcome.job_s, 300.0);
    assert!((outcome.fee - 3.16 * 300.0 / 3600.0).abs() < 1e-12);
    assert!((minutes_left(&cloud) - 55.0).abs() < 1e-9);
    assert_eq!(cloud.world().placed(), [first]);
    round(&mut cloud);
    // Its lease is over.
    assert_eq!(cloud.world().waiting(), [first]);
    cloud.place(first, &parts).unwrap();
    round(&mut cloud);
    assert_eq!(cloud.world().waiting(), [second]);
    round(&mut cloud);
    assert_eq!(cloud.world().waiting(), [second, first]);
    assert!(cloud.may_stay(first) && !cloud.may_stay(second));
    // Going on in place costs nothing; on other servers, a minute.
    cloud.place(first, &parts).unwrap();
    round(&mut cloud);
    assert!((minutes_left(&cloud) - 35.0).abs() < 1e-9);
    round(&mut cloud);
    let elsewhere = [Part::workers(ServerId::from_index(1), 1)];
    cloud.place(first, &elsewhere).unwrap();
    assert_eq!(round(&mut cloud).job_s, 600.0);
    assert!((minutes_left(&cloud) - 26.0).abs() < 1e-9);
    // A job that stood still restarts even where it was.
    round(&mut cloud);
    round(&mut cloud);
    assert!(!cloud.may_stay(first));
    let before = minutes_left(&cloud);
    cloud.place(first, &elsewhere).unwrap();
    round(&mut cloud);
    assert!((before - minutes_left(&cloud) - 4.0).abs() < 1e-9);
    assert_eq!(cloud.filter().mean(ServerId::from_index(0)), 0.0);
}

#[test]
fn crowded_servers_slow_their_jobs() {
    let tables = tables();
    let options = CloudOptions { scale: 1e-6, drift: still(), ..CloudOptions::default() };
    let mut cloud = Cloud::new(Arc::clone(&tables), options);
    // The model with the largest load on its host.
    let busiest = (0..tables.n_models())
        .max_by(|one, other| tables.host(*one).total_cmp(&tables.host(*other)))
        .unwrap();
    let job_type = Tables::job_type(busiest, 0);
    assert_eq!(tables.host(busiest), 1.5);
    let job = WorldJob { job_type, workers: 1, work: 1e9, work_estimated: 1e9, arrival_s: 0.0, owner: 0 };
    cloud.reset(&[job; 8], 0);
    for number in 0..8 {
        cloud.place(JobId::from_index(number), &[Part::workers(ServerId::from_index(0), 1)]).unwrap();
    }
    cloud.end_round();
    // A load of 1.5 slows by 1/(1 + 0.5·0.5).
    assert!(
        (cloud.world().progress(JobId::from_index(0)) - 0.8 * 300.0 * tables.speed(job_type, 0, false)).abs()
            < 1e-6
    );
}

#[test]
fn names_of_rules_are_read_as_they_are_written() {
    let all: Vec<Rule> = Rule::all().collect();
    assert_eq!(all.len(), 54);
    for rule in all {
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
    let waiting_rule = WaitingRule { patience: 0.3, ..WaitingRule::default() };
    let patient = Rule { order: Order::Srtf, placement: Placement::Posterior, waiting_rule };
    assert_eq!("srtf/posterior/patient".parse(), Ok(patient));
    let more = Rule { waiting_rule: WaitingRule { patience: 0.5, ..waiting_rule }, ..patient };
    assert_eq!("srtf/posterior/patient=0.5".parse(), Ok(more));
    assert_eq!(more.to_string(), "srtf/posterior/patient=0.5");
    for wrong in ["srtf/posterior/patient=2", "srtf/posterior/patient0.5", "srtf/posterior/patient=nan"] {
        assert!(wrong.parse::<Rule>().is_err(), "{wrong}");
    }
    let said = |text: &str| {
        let error = text.parse::<Rule>().unwrap_err().to_string();
        error.strip_prefix(&format!("unknown rule `{text}`: ")).unwrap().to_owned()
    };
    let order = said("srtf_estimatd/patience=0.4");
    assert!(order.starts_with("there is no order `srtf_estimatd`, expected one of `fifo`, "), "{order}");
    assert!(order.ends_with("; did you mean `srtf_estimated`?"), "{order}");
    assert_eq!(said("srtf/patience=0.4"), "a placement comes before `/patient=0.4`");
    assert!(said("srtf/postrior").ends_with("; did you mean `posterior`?"));
    assert!(said("srtf/posterior/patience=0.4/moving=2").ends_with("; did you mean `/patient=0.4`?"));
    assert_eq!(
        said("srtf/posterior/packing=7"),
        "`/packing=7`, expected `/packing=` and a number from 0 to 1"
    );
    assert!(said("srtf").starts_with("expected ORDER/PLACEMENT, with a placement of `first_fit`, "));
}

/// The oracle's choice for a job that one server can hold, by trying them all.
#[test]
fn the_oracle_finds_the_fastest_server() {
    let tables = tables();
    let mut cloud = Cloud::new(Arc::clone(&tables), CloudOptions { scale: 0.02, ..CloudOptions::default() });
    let jobs = [small(&tables, 60.0, 0.0)];
    for seed in 0..20 {
        cloud.reset(&jobs, seed);
        let job = JobId::from_index(0);
        let sensitivity = cloud.drift().sensitivity(job);
        let speed = |server: ServerId| {
            let kind = type_of(cloud.world().servers(), server);
            tables.speed(jobs[0].job_type, kind, false) * cloud.drift().log_speed(server, sensitivity).exp()
        };
        let best = cloud.world().servers().ids().map(speed).fold(0.0, f64::max);
        let mut player = RulePlayer::new("srtf/oracle".parse().unwrap(), 0);
        let parts = player.placement(&cloud, job).unwrap().to_vec();
        // Servers whose speeds differ by less than a tenth count as equal.
        assert!(speed(parts[0].server) > 0.9 * best, "seed {seed}");
    }
}

#[test]
fn every_rule_finishes_and_knowing_more_is_better() {
    let tables = tables();
    let workload = WorkloadOptions { n_jobs: 40, gap_s: 60.0, ..WorkloadOptions::default() };
    let options = CloudOptions { scale: 0.02, ..CloudOptions::default() };
    let play = |rule: Rule, seed: u64| {
        let mut cloud = Cloud::new(Arc::clone(&tables), options);
        cloud.reset(&generate(&tables, &workload, seed).unwrap(), seed);
        let summary = RulePlayer::new(rule, seed).run(&mut cloud).unwrap();
        assert!(cloud.world().servers().ids().all(|server| cloud.world().used(server)[ACCELERATOR] == 0));
        assert!(summary.slowdown > 1.0 && summary.fee > 0.0 && summary.run.n_done == 40);
        summary
    };
    for rule in Rule::all() {
        assert_eq!(play(rule, 1), play(rule, 1));
    }
    let mean = |text: &str| {
        (10..16).map(|seed| play(text.parse().unwrap(), seed).run.completion_s).sum::<f64>() / 6.0
    };
    let (oracle, posterior, blind) = (mean("srtf/oracle"), mean("srtf/posterior"), mean("srtf/fastest_type"));
    assert!(oracle < blind && posterior < blind, "{oracle} {posterior} {blind}");
    assert!(mean("srtf/fastest_type") < mean("random/random"));
}

/// Prospects of the free servers and last measurements, against slow implementations.
#[test]
fn prospects_and_last_measurements_are_what_a_slow_look_finds() {
    let tables = tables();
    let jobs =
        generate(&tables, &WorkloadOptions { n_jobs: 30, gap_s: 60.0, ..WorkloadOptions::default() }, 4);
    let mut cloud = Cloud::new(Arc::clone(&tables), CloudOptions { scale: 0.02, ..CloudOptions::default() });
    cloud.reset(&jobs.unwrap(), 9);
    let mut player = RulePlayer::new("srtf/posterior".parse().unwrap(), 1);
    // Round and value of each server's last measurement, which is forgotten twelve rounds later.
    let mut measured = vec![(0, 0.0); cloud.world().servers().len()];
    let (mut prospects, mut sorted) = (Prospects::default(), Vec::new());
    let (mut n_found, mut n_forgotten) = (0, 0);
    for round in 0..40 {
        player.begin();
        prospects.look(&cloud, Knowledge::Posterior, &mut sorted);
        for &job in cloud.world().waiting() {
            let found = prospects.of(&cloud, Knowledge::Posterior, job);
            n_found += usize::from(found.is_some());
            let slow = slow_prospect(&cloud, job);
            let close = |one: (f64, f64), other: f64| (one.0 - other).abs() < 1e-12;
            assert!(found.map_or(slow == f64::NEG_INFINITY, |found| close(found, slow)), "{found:?} {slow}");
        }
        // At most twelve jobs are placed, so that some wait.
        while let Some(job) = player.next_job(&cloud).filter(|_| cloud.world().placed().len() < 12) {
            player.pass(job);
            if let Some(parts) = player.placement(&cloud, job).map(<[Part]>::to_vec) {
                cloud.place(job, &parts).unwrap();
            }
        }
        cloud.end_round();
        cloud.measured().iter().for_each(|(server, found)| measured[server.index()] = (round, *found));
        for server in cloud.world().servers().ids() {
            let (when, found) = measured[server.index()];
            let forgotten = round - when > 12 || found == 0.0;
            n_forgotten += usize::from(found != 0.0 && forgotten);
            assert_eq!(cloud.last_measured(server), if forgotten { 0.0 } else { found });
        }
        cloud.begin_round();
    }
    assert!(n_found > 50 && n_forgotten > 10, "{n_found} {n_forgotten}");
}

/// The highest log speed of a job, against its best, on servers of one type that are all expected to be at least so fast.
fn slow_prospect(cloud: &Cloud, job: JobId) -> f64 {
    let (world, tables) = (cloud.world(), cloud.tables());
    let WorldJob { job_type, workers, .. } = *world.job(job);
    let mut best = f64::NEG_INFINITY;
    for least in world.servers().ids() {
        let kind = type_of(world.servers(), least);
        let expected = cloud.filter().mean(least);
        let fine = |server: &ServerId| {
            type_of(world.servers(), *server) == kind && cloud.filter().mean(*server) >= expected
        };
        let free = |server: ServerId| world.free(server)[ACCELERATOR];
        let together: u16 = world.servers().ids().filter(fine).map(free).sum();
        for (spread, fits) in [(false, free(least) >= workers), (true, together >= workers)] {
            if fits && free(least) > 0 {
                let speed = tables.speed(job_type, kind, spread) / tables.best_speed(job_type);
                best = best.max(speed.ln() + expected);
            }
        }
    }
    if cloud.may_stay(job) {
        let parts = cloud.last_parts(job);
        let kind = type_of(world.servers(), parts[0].server);
        let speed = tables.speed(job_type, kind, parts.len() > 1) / tables.best_speed(job_type);
        let slowest = parts.iter().map(|part| cloud.filter().mean(part.server)).fold(f64::INFINITY, f64::min);
        best = best.max(speed.ln() + slowest);
    }
    best
}
