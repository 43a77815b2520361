use super::network::{Choices, SetActor};
use super::*;
use crate::dual_agent::RulePlayer;
use crate::dual_agent::observe::{CANDIDATE_FEATURES, GLOBAL_FEATURES, JOB_FEATURES, SERVER_FEATURES};
use crate::dual_agent::player;
use crate::dual_agent::residual::Residual;
use crate::dual_agent::rule::Rule;
use apportion::workload::random::SeedStreams;
use apportion_learn::actor::{Actor, Scratch, masked_softmax, most_probable};
use apportion_learn::checker::{CheckOptions, check};
use apportion_learn::tensors::Tensors;

fn world() -> DualAgentWorld {
    DualAgentWorld {
        jobs: Jobs::Fixed(10),
        scale: 0.01,
        seen_jobs: 6,
        seen_servers: 8,
        ..DualAgentWorld::default()
    }
}

fn tables() -> Arc<Tables> {
    Arc::new(Tables::embedded().unwrap())
}

#[test]
fn it_passes_the_check() {
    let tables = tables();
    let rules = [(None, None), (Some("las"), None), (None, Some("best_fit"))];
    let proposals = DualAgentWorld { proposals: true, seen_servers: 10, ..world() };
    check(
        || proposals.environment(&tables).unwrap(),
        CheckOptions { n_episodes: 2, ..CheckOptions::default() },
    )
    .assert_passed();
    for (order, placement) in rules {
        let name = |rule: Option<&str>| rule.map(str::to_owned);
        let world = DualAgentWorld { order: name(order), placement: name(placement), ..world() };
        let make = || world.environment(&tables).unwrap();
        let report = check(make, CheckOptions { n_episodes: 2, ..CheckOptions::default() });
        report.assert_passed();
        assert_eq!(report.n_terminated, 2);
    }
    let short = DualAgentWorld { step_limit: 9, ..world() };
    check(|| short.environment(&tables).unwrap(), CheckOptions { n_episodes: 1, ..CheckOptions::default() })
        .assert_passed();
}

#[test]
fn the_teacher_plays_as_its_rule_does() {
    let tables = tables();
    let mut environment = world().environment(&tables).unwrap();
    let (mut actions, mut reward) = (Vec::new(), 0.0);
    environment
        .demonstrate("srtf", 5, &mut |_, _, mask, action| {
            assert!(mask[action]);
            actions.push(action);
        })
        .unwrap();
    environment.reset(5);
    for action in actions {
        reward += f64::from(environment.step(action).unwrap().reward);
    }
    assert_eq!(environment.status, Some(Status::Terminated));
    assert!(environment.demonstrate("drf", 5, &mut |_, _, _, _| {}).unwrap_err().contains("`srtf_patient`"));
    let by_rule = by_rule("srtf_estimated/posterior");
    assert_eq!(environment.episode().cloud().summary().run.completion_s, by_rule);
    // Jobs are present from the start of the round after their arrival.
    let hours = by_rule / 3600.0;
    assert!((-reward - hours).abs() < 300.0 / 3600.0, "{reward} {hours}");
}

/// Mean completion time of the jobs of seed 5 under a rule, in seconds.
fn by_rule(text: &str) -> f64 {
    let tables = tables();
    let jobs = generate(&tables, &world().workload(0.0), 5).unwrap();
    let mut cloud = Cloud::new(Arc::clone(&tables), CloudOptions { scale: 0.01, ..CloudOptions::default() });
    cloud.reset(&jobs, 5);
    let rule: Rule = text.parse().unwrap();
    RulePlayer::new(rule, 0).run(&mut cloud).unwrap().run.completion_s
}

/// A teacher for one agent and a rule for the other play as the pair of rules does, with every knowledge of servers.
#[test]
fn one_agent_and_a_rule_play_as_the_pair_of_rules_does() {
    let knowledge = [
        (Knowledge::Posterior, "posterior"),
        (Knowledge::Last, "last_measured"),
        (Knowledge::Oracle, "oracle"),
    ];
    let mut found = Vec::new();
    for (knowledge, placement) in knowledge {
        let expected = by_rule(&format!("srtf_estimated/{placement}/patient"));
        found.push(expected);
        let halves = [(None, Some(placement)), (Some("srtf_estimated/patient"), None), (None, None)];
        for (order, placement) in halves {
            let name = |rule: Option<&str>| rule.map(str::to_owned);
            let (order, placement) = (name(order), name(placement));
            let world = DualAgentWorld { knowledge, order, placement, ..world() };
            let mut environment = world.environment(&tables()).unwrap();
            environment.demonstrate("srtf_patient", 5, &mut |_, _, _, _| {}).unwrap();
            let completion_s = environment.episode().cloud().summary().run.completion_s;
            assert_eq!(completion_s, expected, "{world:?}");
        }
    }
    assert!(found[0] != found[1] && found[1] != found[2] && found[0] != by_rule("srtf_estimated/posterior"));
}

/// Networks of random weights; beside a rule, their heads are 0.
fn actor(width: usize, summary: usize, beside: Option<Residual>) -> SetActor {
    actor_of(width, summary, beside, Choices::Servers { advised: beside.is_some() })
}

fn actor_of(width: usize, summary: usize, beside: Option<Residual>, choices: Choices) -> SetActor {
    let n_scores = if beside.is_some() { 2 } else { 1 };
    let pooled = 2 * width + GLOBAL_FEATURES;
    let mut draws = SeedStreams::new(4).stream("weights");
    let mut tensors = Tensors::default();
    let [candidate, place] = choices.heads();
    let networks: [(&str, &[usize]); 13] = [
        ("jobs", &[JOB_FEATURES, width, width]),
        ("servers", &[SERVER_FEATURES, width, width]),
        ("squeeze_jobs", &[pooled, width, summary]),
        ("squeeze_servers", &[pooled, width, summary]),
        ("job_gate", &[2 * summary, width]),
        ("job_message", &[2 * summary, width]),
        ("server_gate", &[2 * summary, width]),
        ("server_message", &[2 * summary, width]),
        ("score", &[width + summary, width, n_scores]),
        ("stop", &[2 * summary, width, 1]),
        (candidate, &[choices.n_features() + width + 2 * summary, width, 1]),
        ("job", &[JOB_FEATURES + GLOBAL_FEATURES, 2]),
        (place, &[choices.n_features(), 1]),
    ];
    for (name, sizes) in networks {
        for (layer, pair) in sizes.windows(2).enumerate() {
            let is_head =
                layer + 2 == sizes.len() && ["score", "stop", candidate, "job", place].contains(&name);
            let (weight, bias) = if is_head && beside.is_some() { (0.0, 0.0) } else { (0.4, 0.1) };
            let numbers = (0..pair[0] * pair[1]).map(|_| draws.normal(0.0, weight) as f32).collect();
            tensors.insert(format!("actor.{name}.{layer}.weight"), vec![pair[1], pair[0]], numbers).unwrap();
            tensors.insert(format!("actor.{name}.{layer}.bias"), vec![pair[1]], vec![bias; pair[1]]).unwrap();
        }
    }
    SetActor::from_tensors(&tensors, true, beside).unwrap()
}

/// The rule's scores alone play as the rule does, except that the rule plans whole gangs and the scores choose one server after
/// another.
#[test]
fn networks_that_say_nothing_play_as_the_rule_beside_them() {
    let world = DualAgentWorld { advised: true, jobs: Jobs::Fixed(40), gap_s: 30.0, ..world() };
    let patience = 0.5;
    let actor = actor(8, 4, Some(Residual::of(patience)));
    let mut environment = world.environment(&tables()).unwrap();
    let (mut agreed, mut turns) = ([0, 0], [0, 0]);
    environment.reset(5);
    while environment.status == Some(Status::Running) {
        let agent = environment.agent();
        let Space { n_actions, .. } = environment.spaces[agent];
        let mut seen = vec![0.0; environment.spaces[agent].observation_length()];
        let (mut mask, mut logits) = (vec![false; n_actions], vec![0.0; n_actions]);
        environment.observe(&mut seen, &mut mask);
        actor.logits(agent, &seen, &mut Scratch::default(), &mut logits).unwrap();
        masked_softmax(&mut logits, &mask).unwrap();
        let action = most_probable(&logits);
        turns[agent] += 1;
        agreed[agent] += usize::from(environment.episode().advice(patience) == Some(action));
        environment.step(action).unwrap();
    }
    for agent in [0, 1] {
        assert!(turns[agent] > 20 && agreed[agent] * 10 >= turns[agent] * 9, "{agreed:?} of {turns:?}");
    }
}

/// Whole placements are the rule's own, so networks of 0 place as the rule does, to the last bit.
#[test]
fn networks_that_say_nothing_choose_the_placements_of_the_rule() {
    let waiting_rule = "patient=0.45/expecting=0.6";
    let world = DualAgentWorld {
        advised: true,
        proposals: true,
        jobs: Jobs::Fixed(40),
        gap_s: 30.0,
        scale: 0.02,
        seen_servers: 10,
        knowledge: Knowledge::Switching,
        order: Some(format!("srtf_estimated/{waiting_rule}")),
        moving: 1.02,
        packing: 0.5,
        ..world()
    };
    let rule: Rule =
        format!("srtf_estimated/switching/{waiting_rule}/moving=1.02/packing=0.5").parse().unwrap();
    let actor = actor_of(8, 4, Some(Residual::of(0.45)), Choices::Proposals);
    let (tables, options) = (tables(), world.episode().unwrap());
    let cloud = Cloud::new(Arc::clone(&tables), CloudOptions { scale: 0.02, ..CloudOptions::default() });
    for seed in 1..6 {
        let jobs = generate(&tables, &world.workload(1.0), seed).unwrap();
        let mut own = cloud.clone();
        own.reset(&jobs, seed);
        let expected = RulePlayer::new(rule, 0).run(&mut own).unwrap();
        let found = player::play(cloud.clone(), options, &actor, &jobs, seed).unwrap();
        assert_eq!(found, expected, "seed {seed}");
    }
}

/// Sets of jobs, servers and candidates give the same logits with room for more rows, and in reverse order.
#[test]
fn logits_depend_neither_on_the_order_of_rows_nor_on_how_many_there_is_room_for() {
    let actor = actor(16, 8, None);
    let mut draws = SeedStreams::new(6).stream("rows");
    let mut rows = |n: usize, length: usize| -> Vec<Vec<f32>> {
        (0..n).map(|_| (0..length).map(|_| draws.uniform_in(-1.0, 1.0) as f32).collect()).collect()
    };
    let whole = rows(1, GLOBAL_FEATURES).remove(0);
    let (jobs, servers, candidates) =
        (rows(3, JOB_FEATURES), rows(4, SERVER_FEATURES), rows(5, CANDIDATE_FEATURES));
    let logits = |window: Window, agent: usize, reversed: bool| {
        let order = |rows: &[Vec<f32>], room: usize, length: usize| {
            let mut all: Vec<Vec<f32>> = rows.to_vec();
            if reversed {
                all.reverse();
            }
            let mut numbers = all.concat();
            numbers.resize(room * length, 0.0);
            numbers
        };
        let mut seen = vec![3.0, 4.0];
        seen.extend(&whole);
        seen.extend(order(&jobs, window.n_jobs, JOB_FEATURES));
        seen.extend(order(&servers, window.n_servers, SERVER_FEATURES));
        let n_actions = if agent == 0 { window.n_jobs + 1 } else { window.n_candidates() };
        if agent == 1 {
            seen.extend([if reversed { 2.0 } else { 0.0 }, 5.0]);
            seen.extend(order(&candidates, window.n_candidates(), CANDIDATE_FEATURES));
        }
        let mut logits = vec![0.0; n_actions];
        actor.logits(agent, &seen, &mut Scratch::default(), &mut logits).unwrap();
        let stop = logits[n_actions - 1];
        logits.truncate(if agent == 0 { 3 } else { 5 });
        if reversed {
            logits.reverse();
        }
        if agent == 0 {
            logits.push(stop);
        }
        logits
    };
    let small = Window { n_jobs: 3, n_servers: 4 };
    let large = Window { n_jobs: 30, n_servers: 17 };
    for agent in [0, 1] {
        let first = logits(small, agent, false);
        assert!(first.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 1e-3), "{first:?}");
        for other in [logits(large, agent, false), logits(small, agent, true), logits(large, agent, true)] {
            assert_eq!(first.len(), other.len());
            for (one, other) in first.iter().zip(&other) {
                assert!((one - other).abs() < 1e-5 * one.abs().max(1.0), "{first:?} {other:?}");
            }
        }
    }
}

#[test]
fn options_out_of_range_are_named() {
    let said = |change: &dyn Fn(&mut DualAgentWorld)| {
        let mut world = world();
        change(&mut world);
        world.environment(&tables()).unwrap_err()
    };
    assert!(said(&|world| world.jobs = Jobs::Growing { from: 0, to: 5 }).contains("`jobs` is 0"));
    assert!(said(&|world| world.scale = 0.0).contains("`scale` is 0"));
    assert!(said(&|world| world.moving = 0.5).contains("`moving` is 0.5"));
    assert!(said(&|world| world.packing = -1.0).contains("`packing` is -1"));
    assert!(said(&|world| world.proposals = true).contains("`seen_servers` is 8, expected at least 10"));
    assert!(said(&|world| world.gap_s = -1.0).contains("`gap_s` is -1"));
    assert!(said(&|world| world.order = Some("frtf".to_owned())).contains("`srtf`"));
    let both = |world: &mut DualAgentWorld| {
        world.order = Some("srtf".to_owned());
        world.placement = Some("oracle".to_owned());
    };
    assert!(said(&both).contains("nothing is left to learn"));
}
