#![expect(clippy::float_cmp, reason = "what is looked up is compared to the bit")]

use proptest::prelude::*;

use super::*;
use crate::world::Status;
use crate::world::shares::Goal;
use crate::world::{Role, WorldJob};
use crate::world::{WorldPolicy as _, run};
use apportion::index::{JobTypeId, ServerId};
use apportion::throughput::Throughputs;

fn ladders() -> Ladders {
    Ladders::new(&Throughputs::embedded("osdi20").unwrap())
}

fn of_type(ladders: &Ladders, name: &str) -> JobTypeId {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let alone = throughputs.rows().iter().filter(|row| row.scale_factor == 1);
    let names: Vec<&str> = alone.map(|row| row.job_type.as_str()).collect();
    assert_eq!(names.len(), ladders.n_job_types());
    JobTypeId::from_index(names.iter().position(|other| *other == name).unwrap())
}

fn job(job_type: JobTypeId, work: f64) -> WorldJob {
    WorldJob { job_type, workers: 0, work, work_estimated: work, arrival_s: 0.0, owner: 0 }
}

/// The workers of each job in the first slot: (worker type, number), or none.
fn first_slot(rule: ElasticRule, jobs: &[WorldJob], workers_per_type: u16) -> Vec<Option<(usize, u16)>> {
    let ladders = ladders();
    let mut world = world(&ladders, workers_per_type, 0.0);
    world.reset(jobs);
    world.begin_round();
    let mut policy = ElasticPolicy::new(rule, ladders, 1);
    loop {
        let decision = policy.next(&world);
        if decision == crate::world::Decision::EndRound {
            break;
        }
        world.apply(decision).unwrap();
    }
    let held = |job: usize| {
        let part = world.parts(JobId::from_index(job)).first()?;
        Some((part.server.index(), part.count))
    };
    (0..jobs.len()).map(held).collect()
}

#[test]
fn speeds_are_those_measured_for_that_many_workers() {
    let ladders = ladders();
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let v100 = throughputs.find_worker_type("v100").unwrap();
    let transformer = of_type(&ladders, "Transformer (batch size 256)");
    for (workers, row) in
        RUNGS.map(|n| (n, throughputs.find("Transformer (batch size 256)", u32::from(n)).unwrap()))
    {
        assert!(ladders.steps_per_s(transformer, v100, workers) == throughputs.alone(row, v100));
    }
    assert!(ladders.steps_per_s(transformer, v100, 3) == 0.0, "not a rung");
    assert!(ladders.steps_per_s(of_type(&ladders, "A3C"), v100, 2) == 0.0, "not measured");
}

#[test]
fn equal_jobs_share_by_drf_up_to_its_cap() {
    let ladders = ladders();
    let transformer = of_type(&ladders, "Transformer (batch size 256)");
    // With one worker the job is fastest on the second type, p100; when none is free there, on the first, v100.
    let jobs = [job(transformer, 1e6); 3];
    let p100 = Some((1, 1));
    assert_eq!(first_slot(ElasticRule::Drf(1), &jobs, 2), [p100, p100, Some((0, 1))]);
    assert_eq!(first_slot(ElasticRule::Drf(8), &jobs, 2), [p100, p100, Some((0, 2))]);
    assert_eq!(first_slot(ElasticRule::Drf(8), &jobs[..1], 16), [Some((1, 8))]);
}

#[test]
fn the_first_in_order_climbs_while_it_gets_faster() {
    let ladders = ladders();
    let (transformer, model) =
        (of_type(&ladders, "Transformer (batch size 256)"), of_type(&ladders, "LM (batch size 10)"));
    let jobs = [job(transformer, 1e6), job(transformer, 1e3)];
    assert_eq!(first_slot(ElasticRule::Fifo, &jobs, 8), [Some((1, 8)), Some((0, 8))]);
    assert_eq!(first_slot(ElasticRule::Srtf, &jobs, 8), [Some((0, 8)), Some((1, 8))]);
    // On v100, the language model's fastest type with one worker, it is slower with four workers than with two.
    assert_eq!(first_slot(ElasticRule::Fifo, &[job(model, 1e6)], 8), [Some((0, 2))]);
}

#[test]
fn optimus_gives_workers_where_they_shorten_most() {
    let ladders = ladders();
    let transformer = of_type(&ladders, "Transformer (batch size 256)");
    let jobs = [job(transformer, 1e4), job(transformer, 1e6)];
    // Each job has one of the two fast workers; then the longer job cannot gain more there, and may not hold another type.
    assert_eq!(first_slot(ElasticRule::Optimus, &jobs, 2), [Some((1, 1)), Some((1, 1))]);
    // One worker is left after the two first workers, and goes to the longer job, which has a hundred times the work.
    assert_eq!(first_slot(ElasticRule::Optimus, &jobs, 3), [Some((1, 1)), Some((1, 2))]);
    let contended =
        [job(transformer, 1e6), job(transformer, 1e6), job(transformer, 1e3), job(transformer, 1e6)];
    let first = first_slot(ElasticRule::ShortestOptimus, &contended, 1);
    assert_eq!(first, [Some((0, 1)), Some((2, 1)), Some((1, 1)), None], "the shortest has the fastest");
}

#[test]
fn shares_go_to_the_fastest_sizes_and_to_what_is_soon_done() {
    let ladders = ladders();
    let (transformer, model) =
        (of_type(&ladders, "Transformer (batch size 256)"), of_type(&ladders, "LM (batch size 10)"));
    for goal in [Goal::LeastSpeed, Goal::Completions] {
        for (job_type, n_workers) in [(transformer, 8), (transformer, 3), (model, 8), (model, 1)] {
            let held = first_slot(ElasticRule::Shares(goal), &[job(job_type, 1e6)], n_workers)[0].unwrap();
            let speed = |(kind, workers): (usize, u16)| {
                ladders.steps_per_s(job_type, WorkerTypeId::from_index(kind), workers)
            };
            let there_are = RUNGS.into_iter().filter(|workers| *workers <= n_workers);
            let all = there_are.flat_map(|workers| (0..3).map(move |kind| (kind, workers)));
            assert_eq!(speed(held), all.map(speed).fold(0.0, f64::max), "{goal:?}, {n_workers}: {held:?}");
        }
    }
    let jobs = [job(transformer, 1e6), job(transformer, 1e6), job(transformer, 1e3), job(transformer, 1e6)];
    let first = first_slot(ElasticRule::Shares(Goal::Completions), &jobs, 1);
    assert_eq!(first[2], Some((1, 1)), "the shortest has the fastest");
    assert_eq!(first.iter().flatten().count(), 3, "no worker is left idle");
}

#[test]
fn shares_of_jobs_alike_are_had_in_turn() {
    let ladders = ladders();
    let transformer = of_type(&ladders, "Transformer (batch size 256)");
    let mut world = world(&ladders, 1, 0.0);
    world.reset(&[job(transformer, 1e9); 5]);
    let mut policy = ElasticPolicy::new(ElasticRule::Shares(Goal::LeastSpeed), ladders.clone(), 1);
    assert!(run(&mut world, &mut &ladders, &mut policy, Limits { rounds_max: 60, ..LIMITS }).is_err());
    let done: Vec<f64> = (0..5).map(|job| world.progress(JobId::from_index(job))).collect();
    let (least, most) =
        (done.iter().copied().fold(f64::INFINITY, f64::min), done.iter().copied().fold(0.0, f64::max));
    assert!(least > 0.9 * most, "{done:?}");
}

#[test]
fn a_climb_needs_room_and_its_own_type() {
    let ladders = ladders();
    let transformer = of_type(&ladders, "Transformer (batch size 256)");
    let mut world = world(&ladders, 3, 0.0);
    world.reset(&[job(transformer, 1e6)]);
    world.begin_round();
    let (one, kinds) = (JobId::from_index(0), [0, 1].map(WorkerTypeId::from_index));
    let mut part = [Part::workers(ServerId::from_index(0), 1)];
    for workers in [1, 2] {
        let climb = Climb::find(&world, &ladders, one, kinds[0]).unwrap();
        assert_eq!(climb.workers, workers);
        world.apply(climb.decision(&world.clone(), &mut part)).unwrap();
    }
    assert_eq!(world.tasks(one, Role::Worker), 2);
    assert_eq!(Climb::find(&world, &ladders, one, kinds[0]), None, "four would not fit on three");
    assert_eq!(Climb::find(&world, &ladders, one, kinds[1]), None, "it is on another type");
}

#[test]
fn workloads_are_of_the_asked_size_and_rate() {
    let ladders = ladders();
    let options = WorkloadOptions { n_jobs: 4000, rate_per_slot: 2.5, ..WorkloadOptions::default() };
    let jobs = generate(&ladders, &options, 7).unwrap();
    assert_eq!(jobs, generate(&ladders, &options, 7).unwrap());
    let slots = jobs.last().unwrap().arrival_s / SLOT_S;
    assert!((jobs.len() as f64 / slots / 2.5 - 1.0).abs() < 0.06, "{slots}");
    let minutes = |job: &WorldJob| job.work / ladders.fastest_alone(job.job_type) / 60.0;
    let mean_log10 = jobs.iter().map(|job| minutes(job).log10()).sum::<f64>() / jobs.len() as f64;
    assert!((mean_log10 - 2.25).abs() < 0.03, "{mean_log10}");
    for (options, expected) in [
        (WorkloadOptions { rate_per_slot: 0.0, ..options }, "the rate is 0"),
        (WorkloadOptions { rate_per_slot: f64::NAN, ..options }, "the rate is NaN"),
        (WorkloadOptions { minutes_log10: (3.0, 1.0), ..options }, "the range of minutes is 10^3 to 10^1"),
    ] {
        let error = generate(&ladders, &options, 1).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_rule_does_all_jobs_within_the_cluster(seed in 0_u64..1000, workers in 1_u16..12, rule in 0..ALL_RULES) {
        let ladders = ladders();
        let options = WorkloadOptions { n_jobs: 12, ..WorkloadOptions::default() };
        let jobs = generate(&ladders, &options, seed).unwrap();
        let (_, rule) = all().nth(rule).unwrap();
        let mut world = world(&ladders, workers, 0.0);
        world.reset(&jobs);
        let mut policy = ElasticPolicy::new(rule, ladders.clone(), seed);
        let summary = run(&mut world, &mut &ladders, &mut policy, LIMITS).unwrap();
        prop_assert_eq!(summary.n_done, 12);
        prop_assert_eq!(summary.rejections, 0);
        prop_assert!(summary.utilization <= 1.0);
        for outcome in world.outcomes() {
            prop_assert_eq!(world.status(outcome.job), Status::Done);
            // No job is faster than at the fastest of all types and rungs.
            let most = (0..3).flat_map(|kind| RUNGS.map(|n| {
                ladders.steps_per_s(jobs[outcome.job.index()].job_type, WorkerTypeId::from_index(kind), n)
            }));
            let least_s = jobs[outcome.job.index()].work / most.fold(0.0, f64::max);
            prop_assert!(outcome.service_s >= least_s * (1.0 - 1e-9));
        }
    }
}

const ALL_RULES: usize = 11;

/// A job that grows, two hours long on one p100, its fastest, and one that does not, three hours on a v100.
const JOBS_SEEN: [(&str, f64, usize); 2] = [("Transformer (batch size 256)", 2.0, 1), ("A3C", 3.0, 0)];

fn speed(name: &str, workers: u32, kind: usize) -> f64 {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let row = throughputs.find(name, workers).unwrap();
    throughputs.alone(row, WorkerTypeId::from_index(kind))
}

/// The observation of both jobs, in a window of three, after a first climb on p100 of the job that grows.
fn seen(observation_kind: ObservationKind) -> Vec<f32> {
    let ladders = std::sync::Arc::new(ladders());
    let steps = |(name, hours, kind)| job(of_type(&ladders, name), hours * 3600.0 * speed(name, 1, kind));
    let reward = ElasticReward::Progress;
    let empty = world(&ladders, 4, 0.0);
    let mut episode =
        ElasticEpisode::new(empty, std::sync::Arc::clone(&ladders), (observation_kind, 3), reward);
    episode.reset(&JOBS_SEEN.map(steps));
    episode.step(1);
    let mut observation = vec![0.0; episode.window().length()];
    let mut mask = vec![false; episode.window().n_actions()];
    episode.observe(&mut observation);
    episode.mask(&mut mask);
    assert_eq!(mask, [false, true, false, true, true, true, false, false, false, true]);
    observation
}

/// The speed of the job that grows, over its speed on one p100.
fn grown(workers: u32, kind: usize) -> f64 {
    let [(name, _, fastest), _] = JOBS_SEEN;
    speed(name, workers, kind) / speed(name, 1, fastest)
}

/// The speed of the job that does not grow, over its speed on one v100.
fn not_grown(kind: usize) -> f64 {
    let [_, (name, _, fastest)] = JOBS_SEEN;
    speed(name, 1, kind) / speed(name, 1, fastest)
}

fn close(found: &[f32], expected: &[f64]) -> bool {
    let same = |(found, expected): (&f32, &f64)| (f64::from(*found) - expected).abs() < 1e-5;
    found.len() == expected.len() && found.iter().zip(expected).all(same)
}

/// (reward, whether the slot ended) of each step of an episode in which the first allowed action is always chosen.
fn worth(reward: ElasticReward) -> Vec<(f64, bool)> {
    let ladders = std::sync::Arc::new(ladders());
    let jobs = generate(&ladders, &WorkloadOptions { n_jobs: 9, ..WorkloadOptions::default() }, 3).unwrap();
    let empty = world(&ladders, 4, 0.0);
    let mut episode =
        ElasticEpisode::new(empty, std::sync::Arc::clone(&ladders), (ObservationKind::Pairs, 9), reward);
    episode.reset(&jobs);
    let mut mask = vec![false; episode.window().n_actions()];
    std::iter::from_fn(|| {
        if episode.world().is_done() {
            return None;
        }
        episode.mask(&mut mask);
        let outcome = episode.step(mask.iter().position(|allowed| *allowed).unwrap());
        Some((outcome.reward, outcome.slot_ended))
    })
    .collect()
}

#[test]
fn a_slot_is_worth_what_its_climbs_are() {
    let (slots, climbs) = (worth(ElasticReward::Progress), worth(ElasticReward::OwnProgress));
    assert_eq!(slots.len(), climbs.len());
    let (mut own, mut n_slots) = (0.0, 0);
    for ((of_slot, ended), (of_climb, _)) in slots.iter().zip(&climbs) {
        assert!(*ended || *of_slot == 0.0, "{of_slot}");
        own += of_climb;
        if *ended {
            assert!((own - of_slot).abs() < 1e-9, "{own} {of_slot}");
            (own, n_slots) = (0.0, n_slots + 1);
        }
    }
    let all: f64 = climbs.iter().map(|(of_climb, _)| of_climb).sum();
    assert!((all - 9.0).abs() < 1e-9 && n_slots > 10, "each of nine jobs is done: {all} in {n_slots} slots");
}

#[test]
fn what_is_seen_of_climbs_is_what_the_table_says() {
    let pairs = seen(ObservationKind::Pairs);
    let rows: Vec<&[f32]> = pairs.chunks(N_OF_PAIR).collect();
    // One job waits, 11 of 12 workers are free.
    let crowding = (2.0_f64 / 12.0).ln() / 2.0;
    let two = grown(2, 1);
    let hours = [0.0, 3.0_f64.ln() / 4.0, (2.0 / two).ln_1p() / 4.0];
    let speeds = [1.0, two - 1.0, 1.0 / 3.0, 3.0_f64.log2() / 3.0, two.ln()];
    let two = [&hours[..], &speeds, &[0.25, 0.75, crowding, 0.0, 0.0]].concat();
    assert!(close(rows[1], &two), "{:?} {two:?}", rows[1]);
    let slower = not_grown(2);
    let hours = [0.0, 4.0_f64.ln() / 4.0, (3.0 / slower).ln_1p() / 4.0];
    let speeds = [slower, slower, 0.0, 1.0 / 3.0, 0.0];
    let first = [&hours[..], &speeds, &[0.0, 1.0, crowding, 1.0, 0.0]].concat();
    assert!(close(rows[5], &first), "{:?} {first:?}", rows[5]);
    let nothing = [&[0.0; 10][..], &[crowding, 0.0, 1.0]].concat();
    assert!(close(rows[9], &nothing) && close(rows[0], &[0.0; N_OF_PAIR]), "{:?}", rows[9]);
}

#[test]
fn what_a_job_ran_with_is_seen_where_scaling_costs_something() {
    let ladders = std::sync::Arc::new(ladders());
    let kept = |scaling_cost_s: f64, observation_kind: ObservationKind| {
        let empty = world(&ladders, 4, scaling_cost_s);
        let mut episode = ElasticEpisode::new(
            empty,
            std::sync::Arc::clone(&ladders),
            (observation_kind, 1),
            ElasticReward::Progress,
        );
        let (name, kind) = ("Transformer (batch size 256)", 1);
        episode.reset(&[job(of_type(&ladders, name), 9.0 * 3600.0 * speed(name, 1, kind))]);
        let mut observation = vec![0.0; episode.window().length()];
        let mut seen = |episode: &ElasticEpisode| {
            episode.observe(&mut observation);
            observation.chunks(N_OF_PAIR).map(|row| row[N_OF_PAIR - 1]).collect::<Vec<_>>()
        };
        let first = seen(&episode);
        episode.step(kind);
        episode.step(3);
        assert_eq!(episode.world().round(), 1);
        let second = seen(&episode);
        episode.step(kind);
        (first, second, seen(&episode))
    };
    let (first, second, third) = kept(60.0, ObservationKind::KeptPairs);
    assert_eq!(first, [0.0, 0.0, 0.0, 1.0], "it never ran");
    assert_eq!(second, [-0.5, 0.5, -0.5, 1.0], "it had one p100");
    assert_eq!(third, [0.0, -0.5, 0.0, 1.0], "another would be new");
    for (scaling_cost_s, observation_kind) in
        [(0.0, ObservationKind::KeptPairs), (60.0, ObservationKind::Pairs)]
    {
        assert_eq!(kept(scaling_cost_s, observation_kind).1, first);
    }
}

#[test]
fn what_is_seen_of_jobs_is_what_the_table_says() {
    let window = seen(ObservationKind::Window);
    let column = |at: usize| window[..13 * 3].iter().skip(at).step_by(3).copied().collect::<Vec<_>>();
    let holds = [0.0, 3.0_f64.ln() / 4.0, 0.25, 0.125];
    let types = [0.0, grown(1, 0), 0.0, 1.0, 1.0, grown(2, 1) - 1.0, 0.0, grown(1, 2), 0.0];
    assert!(close(&column(0), &[&holds[..], &types].concat()), "{:?}", column(0));
    let waits = [0.0, 4.0_f64.ln() / 4.0, 0.0, 0.0];
    let [p100, k80] = [not_grown(1), not_grown(2)];
    let types = [0.0, 1.0, 1.0, 0.0, p100, p100, 0.0, k80, k80];
    assert!(close(&column(1), &[&waits[..], &types].concat()), "{:?}", column(1));
    assert!(close(&column(2), &[0.0; 13]) && close(&window[13 * 3..], &[1.0, 0.75, 1.0]));
}
