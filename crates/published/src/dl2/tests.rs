//! Tests of the world's functions by hand, on its own tables.

#![expect(clippy::float_cmp, reason = "numbers chosen so that they are exact")]

use crate::dl2::task::{Tasks, add, least_loaded};
use crate::dl2::{
    Arrivals, Dl2Episode, Dl2Options, Dl2Policy, Dl2Speeds, EpisodeOptions, LIMITS, ObservationKind,
    RewardKind, SLOT_S, SpeedModel, SpeedOptions, Window, WorkloadOptions, all, dominant_share, generate,
    parse_named, world,
};
use crate::world::World;
use crate::world::{AfterRound, Summary, run};
use crate::world::{Role, WorldJob};
use apportion::index::{Id, JobId, JobTypeId, ServerId};
use apportion::throughput::elastic::{ElasticThroughputs, SurfaceOptions};
use apportion::workload::random::SeedStreams;

fn job(job_type: usize, work: f64, arrival_s: f64) -> WorldJob {
    let job_type = JobTypeId::from_index(job_type);
    WorldJob { job_type, workers: 0, work, work_estimated: work, arrival_s, owner: 0 }
}

fn id(job: usize) -> JobId {
    JobId::from_index(job)
}

fn speeds(model: SpeedModel) -> Dl2Speeds {
    let options = SpeedOptions { model, error: 0.0, seed: 0, tasks_max: 16 };
    Dl2Speeds::new(&ElasticThroughputs::dl2(), options).unwrap()
}

fn small(n_servers: usize, jobs: &[WorldJob]) -> World {
    let options = Dl2Options { n_servers, ..Dl2Options::default() };
    let mut world = world(&ElasticThroughputs::dl2(), options);
    world.reset(jobs);
    world.begin_round();
    world
}

fn put(world: &mut World, job: usize, tasks: Tasks) -> ServerId {
    let server = least_loaded(world, id(job), tasks).unwrap();
    let mut parts = Vec::new();
    let decision = add(world, id(job), tasks, server, &mut parts);
    world.apply(decision).unwrap();
    server
}

#[test]
fn tasks_go_to_the_least_loaded_server() {
    let mut world = small(2, &[job(0, 1e9, 0.0), job(5, 1e9, 0.0)]);
    // A bundle of the first job takes (4, 4) slots; a worker of the second (2, 0).
    assert_eq!(put(&mut world, 0, Tasks::Bundle).index(), 0);
    assert_eq!(put(&mut world, 1, Tasks::Worker).index(), 1);
    assert_eq!(put(&mut world, 1, Tasks::ParameterServer).index(), 1);
    assert_eq!(put(&mut world, 0, Tasks::Worker).index(), 1);
    assert_eq!(
        (world.tasks(id(0), Role::Worker), world.n_servers(id(0)), world.parts(id(0)).len()),
        (2, 2, 3)
    );
    // Two workers and a parameter server: 6 of 16 processor slots, 8 of 16 accelerator slots.
    assert_eq!(dominant_share(&world, id(0)), 0.5);
    // Server 0 now has 8 slots in use, server 1 ten: a worker fits neither's processor and accelerator but the first's.
    assert_eq!(least_loaded(&world, id(0), Tasks::Bundle).map(Id::index), Some(0));
}

#[test]
fn windows_and_masks_by_hand() {
    let elastic = ElasticThroughputs::dl2();
    let epochs: Vec<f64> = elastic.job_types.iter().map(|job_type| job_type.samples_per_epoch).collect();
    let mut world = small(48, &[job(2, 390.0, 0.0), job(7, 1650.0, 0.0), job(0, 1.0, 0.0), job(1, 1.0, 9e9)]);
    for _ in 0..16 {
        put(&mut world, 2, Tasks::Bundle);
    }
    put(&mut world, 1, Tasks::Worker);
    let mut released = Window::new(ObservationKind::Released, 3, 16, epochs.clone());
    released.look(&world);
    // The third job has the most tasks of both roles, and the fourth has not arrived.
    assert_eq!(released.jobs(), [id(0), id(1)]);
    let mut observation = vec![9.0; 18];
    released.observe(&world, &mut observation);
    // Types, slots, remaining parts, shares (4 of 384 accelerator slots), workers, parameter servers.
    let share = 4.0_f32 / 384.0;
    assert_eq!(
        observation,
        [3.0, 8.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, share, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    );
    let mut paper = Window::new(ObservationKind::Paper, 3, 16, epochs);
    paper.look(&world);
    assert_eq!((paper.n_rows(), paper.n_actions()), (13, 10));
    let mut observation = vec![0.0; 39];
    paper.observe(&world, &mut observation);
    assert_eq!((observation[2 * 3], observation[7 * 3 + 1]), (1.0, 1.0));
    // Remaining epochs: 390 / 390 and 1650 / 165.
    assert_eq!((observation[9 * 3], observation[9 * 3 + 1]), (1.0, 10.0));
    let mut mask = [false; 10];
    paper.mask(&world, &mut mask);
    assert_eq!(mask, [true, true, true, true, true, true, false, false, false, true]);
    for _ in 0..16 {
        put(&mut world, 0, Tasks::ParameterServer);
    }
    paper.look(&world);
    paper.mask(&world, &mut mask);
    assert_eq!(mask[..3], [true, false, false]);
}

fn play(name: &str, servers: usize, seed: u64) -> Summary {
    let tables = ElasticThroughputs::dl2();
    let speeds = speeds(SpeedModel::Measured(SurfaceOptions::CORRECTED));
    let options = Dl2Options { n_servers: servers, ..Dl2Options::default() };
    let mut world = world(&tables, options);
    let workload = WorkloadOptions { n_jobs: 10, epochs_max: 1000, ..WorkloadOptions::default() };
    world.reset(&generate(&tables, &workload, seed).unwrap());
    let (_, rule) = parse_named(name).unwrap();
    let mut policy = Dl2Policy::new(rule, speeds.clone(), 16, seed);
    run(&mut world, &mut speeds.clone(), &mut policy, LIMITS).unwrap()
}

#[test]
fn every_rule_finishes_and_repeats_itself_and_is_refused_nothing() {
    for (name, _) in all() {
        for servers in [3, 12] {
            let summary = play(name, servers, 4);
            assert_eq!((summary.n_done, summary.rejections), (10, 0), "{name}");
            assert_eq!(summary, play(name, servers, 4), "{name}");
        }
    }
    assert!(parse_named("DRF").unwrap_err().starts_with("unknown policy `DRF`, expected one of `drf`"));
}

#[test]
fn drf_gives_bundles_in_turn() {
    // Two servers hold two bundles of (4, 4) each; three equal jobs get one each, and the fourth bundle goes to the first.
    let mut world = small(2, &[job(0, 1e9, 0.0), job(0, 1e9, 0.0), job(0, 1e9, 0.0)]);
    let speeds = speeds(SpeedModel::Measured(SurfaceOptions::CORRECTED));
    let (_, rule) = parse_named("drf").unwrap();
    let mut policy = Dl2Policy::new(rule, speeds.clone(), 16, 0);
    let limits = crate::world::Limits { rounds_max: 1, ..LIMITS };
    let mut slots = speeds.clone();
    assert!(run(&mut world, &mut slots, &mut policy, limits).is_err());
    // Each slot is decided from nothing; progress shows the tasks that each job had: (2, 2) is faster than (1, 1).
    let alone = |n| speeds.samples_per_s(&world, id(0), [n, n], &[]) * SLOT_S;
    assert_eq!(world.progress(id(0)), alone(2));
    assert_eq!((world.progress(id(1)), world.progress(id(2))), (alone(1), alone(1)));
    assert_eq!((world.rules().after_round, world.used_total()), (AfterRound::Rebuild, [0, 0]));
}

#[test]
fn optimus_stops_where_more_is_slower() {
    // One job with room for everything: it stops where no single further task shortens it.
    let mut world = small(48, &[job(3, 1e12, 0.0)]);
    let speeds = speeds(SpeedModel::Measured(SurfaceOptions::CORRECTED));
    let (_, rule) = parse_named("optimus").unwrap();
    let mut policy = Dl2Policy::new(rule, speeds.clone(), 16, 0);
    let limits = crate::world::Limits { rounds_max: 1, ..LIMITS };
    assert!(run(&mut world, &mut speeds.clone(), &mut policy, limits).is_err());
    let rate = world.progress(id(0)) / SLOT_S;
    let at = |workers, servers| speeds.samples_per_s(&world, id(0), [workers, servers], &[]);
    let all = (1..=16).flat_map(|workers| (1..=16).map(move |servers| (workers, servers)));
    let tops = all.filter(|&(workers, servers)| {
        let here = at(workers, servers);
        here >= at(workers + 1, servers) && here >= at(workers, servers + 1)
    });
    assert!(tops.into_iter().any(|(workers, servers)| (at(workers, servers) - rate).abs() < 1e-9 * rate));
}

fn after_slots(name: &str, world: &mut World, n_slots: u64) {
    let speeds = speeds(SpeedModel::Measured(SurfaceOptions::CORRECTED));
    let (_, rule) = parse_named(name).unwrap();
    let mut policy = Dl2Policy::new(rule, speeds.clone(), 16, 0);
    let limits = crate::world::Limits { rounds_max: n_slots, ..LIMITS };
    assert!(run(world, &mut speeds.clone(), &mut policy, limits).is_err());
}

#[test]
fn shares_give_a_lone_job_its_fastest_size() {
    let speeds = speeds(SpeedModel::Measured(SurfaceOptions::CORRECTED));
    for (name, job_type) in [("max_min_fairness", 0), ("max_sum_completions", 0), ("max_min_fairness", 5)] {
        let mut world = small(48, &[job(job_type, 1e12, 0.0)]);
        let at = |workers, servers| speeds.samples_per_s(&world, id(0), [workers, servers], &[]);
        let all = (1..=16).flat_map(|workers| (1..=16).map(move |servers| at(workers, servers)));
        let fastest = all.fold(0.0, f64::max);
        after_slots(name, &mut world, 1);
        assert_eq!(world.progress(id(0)), fastest * SLOT_S, "{name}");
    }
}

#[test]
fn shares_that_slots_cannot_have_at_once_are_had_in_turn() {
    // One server of (8, 8); a bundle of each of three equal jobs takes (4, 4), and each has the same share.
    let jobs = [job(0, 1e9, 0.0), job(0, 1e9, 0.0), job(0, 1e9, 0.0)];
    let mut world = small(1, &jobs);
    after_slots("max_min_fairness", &mut world, 60);
    let done: Vec<f64> = (0..3).map(|job| world.progress(id(job))).collect();
    let (least, most) =
        (done.iter().copied().fold(f64::INFINITY, f64::min), done.iter().copied().fold(0.0, f64::max));
    assert!(least > 0.95 * most, "{done:?}");
    // For completions, the job with more work left waits as long as the job with less can use the server.
    let mut world = small(1, &[job(0, 9e9, 0.0), job(0, 1e9, 0.0)]);
    after_slots("max_sum_completions", &mut world, 3);
    assert!(world.progress(id(1)) > 0.0);
    assert!(world.progress(id(0)) < world.progress(id(1)), "{}", world.progress(id(0)));
}

#[test]
fn arrivals_are_as_published() {
    let tables = ElasticThroughputs::dl2();
    for arrivals in [Arrivals::Google, Arrivals::Uniform, Arrivals::Poisson] {
        let options = WorkloadOptions { arrivals, n_jobs: 200, ..WorkloadOptions::default() };
        let jobs = generate(&tables, &options, 7).unwrap();
        assert_eq!((jobs.len(), jobs.clone()), (200, generate(&tables, &options, 7).unwrap()));
        let mut counts = std::collections::BTreeMap::<u64, u32>::new();
        for job in &jobs {
            *counts.entry(job.arrival_s.to_bits()).or_default() += 1;
        }
        assert!(counts.values().all(|count| *count <= 3));
        let last_s = jobs.last().unwrap().arrival_s;
        let mean = 200.0 / (last_s / SLOT_S + 1.0);
        // min(3, Poisson 3) has mean 2.3; the published counts, cut at 3, 2.2.
        let expected = if arrivals == Arrivals::Uniform { 3.0 } else { 2.25 };
        assert!((mean - expected).abs() < 0.3, "{arrivals:?}: {mean}");
    }
    let odd = WorkloadOptions { rate: 7, ..WorkloadOptions::default() };
    let error = generate(&tables, &odd, 0).unwrap_err().to_string();
    assert!(error.starts_with("no arrivals were published at 7 a slot, expected one of `1`, `2`"), "{error}");
}

#[test]
fn rewards_add_up() {
    let tables = ElasticThroughputs::dl2();
    let epochs: Vec<f64> = tables.job_types.iter().map(|job_type| job_type.samples_per_epoch).collect();
    let workload = WorkloadOptions { n_jobs: 15, epochs_max: 1000, ..WorkloadOptions::default() };
    let jobs = generate(&tables, &workload, 2).unwrap();
    let cluster = Dl2Options { n_servers: 12, ..Dl2Options::default() };
    for model in [SpeedModel::Measured(SurfaceOptions::PUBLISHED), SpeedModel::Analytic] {
        for reward in [RewardKind::Progress, RewardKind::ActiveJobs] {
            let options = EpisodeOptions { cluster, starting_bundle: true, reward };
            let window = Window::new(ObservationKind::Scaled, 10, 16, epochs.clone());
            let mut episode = Dl2Episode::new(world(&tables, cluster), speeds(model), window, options);
            episode.reset(&jobs, 0);
            let mut draws = SeedStreams::new(1).stream("test actions");
            let (mut sum, mut mask, mut observation) = (0.0, [false; 31], [0.0; 130]);
            loop {
                let window = episode.window();
                window.mask(episode.world(), &mut mask);
                window.observe(episode.world(), &mut observation);
                assert!(observation.iter().all(|number| (0.0..=2.0).contains(number)));
                let allowed: Vec<usize> = (0..31).filter(|action| mask[*action]).collect();
                let outcome = episode.step(*draws.choice(&allowed));
                sum += outcome.reward;
                if outcome.done {
                    break;
                }
            }
            let summary = episode.world().summary();
            match reward {
                RewardKind::Progress => assert!((sum - 15.0).abs() < 1e-9, "{sum}"),
                // Each job counts once for each slot in which it was active.
                RewardKind::ActiveJobs => {
                    let slots = -sum * SLOT_S / 15.0;
                    assert!(
                        (summary.completion_s..=summary.completion_s + SLOT_S).contains(&slots),
                        "{slots}"
                    );
                }
            }
        }
    }
}
