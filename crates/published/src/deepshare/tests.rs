//! Tests of the world's functions by hand, on its own tables.

#![expect(clippy::float_cmp, reason = "numbers chosen so that sums are exact")]

use crate::deepshare::trace::DeepShareJob;
use crate::deepshare::{
    DEMANDS, DecisionsPerRound, DeepShareEpisode, DeepSharePolicy, DeepShareSpeeds, EpisodeOptions, LIMITS,
    Mix, NOTHING, OBSERVATION_LEN, ObservationKind, PREEMPT_AT, PolicyName, SERVER_SETS, UtilizationMean,
    all, candidates, decode, from_trace, generate, job_type, mask, observe, observe_counts, parse_named,
    reward, spread, world,
};
use crate::world::AfterRound;
use crate::world::Decision;
use crate::world::World;
use crate::world::WorldJob;
use crate::world::run;
use apportion::index::{Id, JobId};
use apportion::spec::Fidelity;
use apportion::throughput::spread::SpreadThroughputs;

fn job(model: usize, demand: usize, work: f64) -> WorldJob {
    let job_type = job_type(model, demand);
    WorldJob { job_type, workers: DEMANDS[demand], work, work_estimated: work, arrival_s: 0.0, owner: 0 }
}

fn world_with(jobs: &[WorldJob]) -> World {
    let tables = SpreadThroughputs::deepshare();
    let mut world = world(&tables, Fidelity::Published, AfterRound::PreemptAtOrBelow(PREEMPT_AT));
    world.reset(jobs);
    world.begin_round();
    world
}

fn act(world: &mut World, action: usize) -> JobId {
    let job = decode(world, action, Fidelity::Published).unwrap();
    let mut parts = Vec::new();
    spread(&mut parts, world.job(job).workers, SERVER_SETS[action]);
    world.apply(Decision::Place { job, parts: &parts }).unwrap();
    job
}

#[test]
fn an_observation_by_hand() {
    // Serials: (model 1, 8 workers) 6, (2, 4) 8, (0, 2) 1, (3, 8) 12.
    let mut world = world_with(&[job(1, 2, 1e9), job(2, 1, 1e9), job(0, 0, 1e9), job(3, 2, 1e9)]);
    assert_eq!(candidates(&world).map(|job| job.map(Id::index)), [Some(2), Some(1), Some(0)]);
    // Four servers: 2 workers cannot be spread over them, so the first job to fit is that of 4, one worker each.
    assert_eq!(act(&mut world, 6).index(), 1);
    // Servers 0 and 1: now 2 workers fit.
    assert_eq!(act(&mut world, 0).index(), 2);
    let mut observation = [0.0; OBSERVATION_LEN];
    observe(&world, Fidelity::Published, &mut observation);
    let mut expected = [0.0; OBSERVATION_LEN];
    for server in 0..4 {
        expected[server * 16] = 8.0;
    }
    (expected[1], expected[17]) = (1.0, 1.0);
    // The candidate of 8 is the first, serial 6: on 1, 2, 4 servers with 8, 4, 2 workers each.
    (expected[15], expected[16 + 11], expected[3 * 16 + 9]) = (6.0, 6.0, 6.0);
    assert_eq!(observation, expected);
    // As counts, each server has a worker of model 2, the first two also one of model 0; each is an eighth of a server.
    let mut counts = vec![9.0; ObservationKind::Counts.length()];
    observe_counts(&world, Fidelity::Published, &mut counts);
    let servers = [[0.125, 0.0, 0.125, 0.0, 0.0, 0.0, 0.75], [0.0, 0.0, 0.125, 0.0, 0.0, 0.0, 0.875]];
    assert_eq!(counts[..28], [servers[0], servers[0], servers[1], servers[1]].concat());
    // Only one of 8 workers is a candidate, of model 1.
    let of_eight = 28 + 2 * 6 + 1;
    assert!((28..46).all(|number| counts[number] == f32::from(u8::from(number == of_eight))));
    assert_eq!(mask(&world, Fidelity::Published), [true; 8]);
    // A job of 8 on servers 0 and 1 needs 4 of the 6 free workers of each: one such job fits, a second does not.
    assert_eq!(act(&mut world, 0).index(), 0);
    assert_eq!(decode(&world, 0, Fidelity::Published), None);
    assert_eq!(decode(&world, NOTHING, Fidelity::Published), None);
    assert!(mask(&world, Fidelity::Published)[5] && mask(&world, Fidelity::Published)[NOTHING]);
}

#[test]
fn retention_is_the_least_over_servers_and_neighbours() {
    let tables = SpreadThroughputs::deepshare();
    let speeds = DeepShareSpeeds::new(&tables, Fidelity::Published);
    let mut world = world_with(&[job(5, 2, 1e9), job(2, 2, 1e9), job(1, 2, 1e9)]);
    let (one, two, three) = (act(&mut world, 0), act(&mut world, 3), act(&mut world, 5));
    let at = |model| tables.position(model, 8, 2).unwrap();
    // Server 1 is shared by the first and second, server 2 by the second and third.
    let pair = |row, column| tables.retained(at(row), at(column)).max(0.35);
    assert_eq!(speeds.retention(&world, one), pair(5, 2));
    assert_eq!(speeds.retention(&world, two), pair(2, 5).min(pair(2, 1)));
    assert_eq!(speeds.retention(&world, three), pair(1, 2));
}

#[test]
fn rewards_weigh_contention_and_utilization() {
    let mut mean = UtilizationMean::default();
    assert_eq!(mean.get(), 0.0);
    mean.add(0.5);
    assert_eq!(mean.get(), 0.5);
    mean.add(1.0);
    // (1 + 0.5 · 9/11) / (1 + 9/11)
    assert!((mean.get() - (1.0 + 4.5 / 11.0) / (20.0 / 11.0)).abs() < 1e-12);
    let mut world = world_with(&[job(5, 2, 1e9), job(2, 2, 1e9)]);
    assert_eq!(reward(&world, 0.7, 0.3, 0.9), 0.0);
    act(&mut world, 0);
    assert!((reward(&world, 0.7, 0.3, 0.9) - 0.27).abs() < 1e-12);
    act(&mut world, 0);
    let tables = SpreadThroughputs::deepshare();
    let mut speeds = DeepShareSpeeds::new(&tables, Fidelity::Published);
    world.find_rates(&mut speeds);
    let lost: f64 = world.placed().iter().map(|job| 1.0 - world.retention(*job)).sum();
    assert!(lost > 0.5 && (reward(&world, 0.7, 0.3, 0.9) - (0.27 - 0.35 * lost)).abs() < 1e-12);
}

#[test]
fn workloads_are_drawn_as_published() {
    let tables = SpreadThroughputs::deepshare();
    let jobs = generate(&tables, &Mix::Named("heavy".to_owned()), 6000, 3).unwrap();
    let mut counts = [0.0; 6];
    for job in &jobs {
        let model = job.job_type.index() / 3;
        counts[model] += 1.0;
        assert_eq!(Some(job.work), tables.samples_of(model, u32::from(job.workers)));
    }
    let expected = &tables.mixes[0].1;
    assert!(
        counts.iter().zip(expected).all(|(count, share)| (count / 6000.0 - share).abs() < 0.02),
        "{counts:?}"
    );
    assert_eq!(jobs, generate(&tables, &Mix::Named("heavy".to_owned()), 6000, 3).unwrap());
    let unknown = generate(&tables, &Mix::Named("odd".to_owned()), 1, 0).unwrap_err().to_string();
    assert_eq!(unknown, "unknown mix `odd`, expected one of `random`, `equal`, `heavy`, `medium`, `low`");
    let traced = DeepShareJob { model: tables.job_types[0].clone(), workers: 3, samples: 1.0 };
    assert!(from_trace(&tables, &[traced]).is_err());
}

fn play(name: &str, fidelity: Fidelity, seed: u64) -> crate::world::Summary {
    let tables = SpreadThroughputs::deepshare();
    let (_, policy) = parse_named(name).unwrap();
    let mut world = world(&tables, fidelity, policy.after_round());
    let mut speeds = DeepShareSpeeds::new(&tables, fidelity);
    world.reset(&generate(&tables, &Mix::Random, 64, seed).unwrap());
    let mut policy = DeepSharePolicy::new(policy, speeds.clone(), fidelity, seed);
    run(&mut world, &mut speeds, &mut policy, LIMITS).unwrap()
}

#[test]
fn every_policy_finishes_and_repeats_itself() {
    for fidelity in [Fidelity::Published, Fidelity::Corrected] {
        for (name, _) in all() {
            let summary = play(name, fidelity, 5);
            assert_eq!(summary.n_done, 64, "{name}");
            assert_eq!(summary, play(name, fidelity, 5), "{name}");
            // Jobs take an hour alone, and run at no more than their speed alone; rounds are counted whole or exactly.
            assert!((0.75..3.0).contains(&(summary.service_s / 3600.0)), "{name}: {summary:?}");
            assert!(summary.completion_s >= summary.service_s, "{name}");
        }
    }
    assert!(parse_named("las_").unwrap_err().starts_with("unknown policy `las_`, expected one of `las`"));
    assert!(matches!(parse_named("las").unwrap().1, PolicyName::Ordered(..)));
}

#[test]
fn an_episode_is_the_run_of_its_actions() {
    // Actions until the first invalid one, with no fallback: the random policy's own run, action by action.
    let tables = SpreadThroughputs::deepshare();
    let options = EpisodeOptions {
        fidelity: Fidelity::Published,
        decisions: DecisionsPerRound::UntilInvalid,
        hybrid: false,
        preempts_first: false,
        contention_weight: 0.7,
        utilization_weight: 0.3,
    };
    let mut episode = DeepShareEpisode::new(&tables, options);
    episode.reset(&generate(&tables, &Mix::Random, 64, 5).unwrap());
    let mut actions = apportion::workload::random::SeedStreams::new(5).stream("deepshare actions");
    let mut done = false;
    while !done {
        let outcome = episode.step(actions.below(8));
        assert!((-0.7..=0.3).contains(&outcome.reward));
        assert_eq!(outcome.round_ended, !outcome.valid);
        done = outcome.done;
    }
    assert_eq!(episode.world().summary(), play("random_base", Fidelity::Published, 5));
    // Training: one action a round, and no job runs at a retention of 0.6 or below.
    let options = EpisodeOptions { decisions: DecisionsPerRound::One, preempts_first: true, ..options };
    let mut episode = DeepShareEpisode::new(&tables, options);
    episode.reset(&generate(&tables, &Mix::Random, 16, 5).unwrap());
    while !episode.step(actions.below(8)).done {
        assert!(episode.world().placed().iter().all(|job| episode.world().retention(*job) > PREEMPT_AT));
    }
}

#[test]
fn an_episode_of_a_hybrid_is_the_run_of_its_actions() {
    // Actions until not even the baselines' placement finds room: the random hybrid's own run, action by action.
    let tables = SpreadThroughputs::deepshare();
    let options = EpisodeOptions {
        fidelity: Fidelity::Corrected,
        decisions: DecisionsPerRound::UntilInvalid,
        hybrid: true,
        preempts_first: false,
        contention_weight: 0.7,
        utilization_weight: 0.3,
    };
    let mut episode = DeepShareEpisode::new(&tables, options);
    episode.reset(&generate(&tables, &Mix::Random, 64, 5).unwrap());
    let mut actions = apportion::workload::random::SeedStreams::new(5).stream("deepshare actions");
    let (mut gained, mut fallbacks) = (0.0, 0);
    loop {
        let action = actions.below(8);
        fallbacks += usize::from(decode(episode.world(), action, options.fidelity).is_none());
        let outcome = episode.step(action);
        assert!(outcome.round_ended || (outcome.valid && outcome.progress == 0.0));
        gained += outcome.progress;
        if outcome.done {
            break;
        }
    }
    assert_eq!(episode.world().summary(), play("random_hybrid", Fidelity::Corrected, 5));
    assert!((gained - 64.0).abs() < 1e-9, "each of 64 jobs is done: {gained}");
    assert!(fallbacks > 200, "{fallbacks}");
}
