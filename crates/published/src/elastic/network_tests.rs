//! Tests of networks on a cluster: over a window of the elastic world, and of DL2's own world.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::dl2_network::KnownJob;
use super::*;
use crate::plugin::catalog;
use crate::world::{Role, WorldJob};
use apportion::catalog::{PolicyOptions, Ready};
use apportion::policy::RoundPolicy;
use apportion::scheduler::{Decided, Lease, Options, Scheduler};
use apportion::spec::Source;
use apportion::throughput::Throughputs;
use apportion::workload::random::SeedStreams;
use apportion::{Cluster, Job, Seconds, Steps};
use apportion_learn::actor::{Actor, ActorError, Choice, Scratch, most_probable};
use apportion_learn::checkpoint::{Checkpoint, NetworkKind, Provenance};
use apportion_learn::network::Activation;
use apportion_learn::tensors::Tensors;
use apportion_learn::trained::Trained;

const TRANSFORMER: &str = "Transformer (batch size 256)";
const MODEL: &str = "LM (batch size 10)";

/// A network of one layer of random weights, as a file of weights with this document in its header.
fn trained((n_seen, n_actions): (usize, usize), spec: Value) -> Trained {
    let mut draws = SeedStreams::new(7).stream("test weights");
    let mut numbers = |n: usize| (0..n).map(|_| draws.uniform_in(-1.0, 1.0) as f32).collect::<Vec<f32>>();
    let mut tensors = Tensors::default();
    tensors.insert("actor.0.0.weight", vec![n_actions, n_seen], numbers(n_actions * n_seen)).unwrap();
    tensors.insert("actor.0.0.bias", vec![n_actions], numbers(n_actions)).unwrap();
    let provenance = Provenance {
        network: NetworkKind::Mlp { activation: Activation::Tanh, n_agents: 1 },
        spec,
        data_digest: String::new(),
        from_digest: None,
        raised: Vec::new(),
        seed: 0,
        n_updates: 0,
        n_decisions: 0,
    };
    Trained::Own(Box::new(Checkpoint::of_weights(provenance, &tensors)))
}

fn scheduler(cluster: &str, policy: Box<dyn RoundPolicy>) -> Scheduler {
    let cluster: Cluster = cluster.parse().unwrap();
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    Scheduler::with_round_policy(&cluster, throughputs, policy, Options::default()).unwrap()
}

fn job(job_type: &str, steps: f64, sizes: &[u32]) -> Job {
    Job::new(job_type).scale_factor(sizes[0]).total_steps(Steps::new(steps)).sizes(sizes)
}

/// Worker type and number of workers of each job.
fn held(leases: &[Lease], n_jobs: usize) -> Vec<Option<(usize, usize)>> {
    let lease = |job: usize| leases.iter().find(|lease| lease.jobs.contains(JobId::from_index(job)));
    (0..n_jobs).map(|job| lease(job).map(|lease| (lease.worker_type.index(), lease.workers.len()))).collect()
}

/// The workers that a network gives the same jobs in the first slot of its own world.
fn of_world(
    trained: &Trained,
    seen: (ObservationKind, usize),
    jobs: &[(&str, f64)],
) -> Vec<Option<(usize, usize)>> {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let ladders = Arc::new(Ladders::new(&throughputs));
    let alone: Vec<_> = throughputs.rows().iter().filter(|row| row.scale_factor == 1).collect();
    let job = |(name, work): &(&str, f64)| {
        let job_type = alone.iter().position(|row| row.job_type == *name).unwrap();
        let job_type = Id::from_index(job_type);
        WorldJob { job_type, workers: 0, work: *work, work_estimated: *work, arrival_s: 0.0, owner: 0 }
    };
    let world = world(&ladders, 8, 0.0);
    let mut slot = ElasticEpisode::new(world, ladders, seen, ElasticReward::default());
    slot.reset(&jobs.iter().map(job).collect::<Vec<_>>());
    let (actor, _) = trained.actor().unwrap();
    let (mut seen, mut mask) = (vec![0.0; slot.window().length()], vec![false; slot.window().n_actions()]);
    let mut is_open = slot.is_open();
    while is_open {
        slot.observe(&mut seen);
        slot.mask(&mut mask);
        let mut logits = vec![0.0; mask.len()];
        actor.logits(0, &seen, &mut Scratch::default(), &mut logits).unwrap();
        let forbidden = logits.iter_mut().zip(&mask).filter(|(_, allowed)| !**allowed);
        forbidden.for_each(|(logit, _)| *logit = f32::NEG_INFINITY);
        is_open = slot.play(most_probable(&logits));
    }
    let world = slot.world();
    let held = |job: JobId| {
        Some((world.parts(job).first()?.server.index(), usize::from(world.tasks(job, Role::Worker))))
    };
    (0..jobs.len()).map(|job| held(JobId::from_index(job))).collect()
}

#[test]
fn a_network_over_a_window_decides_as_in_its_world() {
    let jobs = [(TRANSFORMER, 1e6), (MODEL, 4e5), (TRANSFORMER, 1e4), (MODEL, 7e6), (TRANSFORMER, 3e5)];
    for (sizes, seen) in
        [((13 * 4 + 3, 13), (ObservationKind::Window, 4)), ((13 * 10, 10), (ObservationKind::Pairs, 3))]
    {
        let trained = trained(sizes, json!({ "exported_for": "elastic" }));
        let network = ElasticNetwork::read(&trained).unwrap();
        let decider = ElasticDecider::Network(network, Choice::MostProbable);
        let mut scheduler =
            scheduler("v100=8,p100=8,k80=8", Box::new(ElasticRounds::new("mine", decider, 0)));
        for (job_type, steps) in jobs {
            scheduler.submit(job(job_type, steps, &[1, 2, 4, 8])).unwrap();
        }
        let round = scheduler.tick(Seconds::ZERO, None);
        assert_eq!(round.decided, Decided::Fresh { asked: Seconds::ZERO });
        let found = held(&round.leases, jobs.len());
        assert_eq!(found, of_world(&trained, seen, &jobs), "{seen:?}");
        assert!(found.iter().flatten().any(|(_, workers)| *workers > 1), "{found:?}");
    }
}

#[test]
fn worker_types_that_the_cluster_lacks_are_seen_without_workers() {
    let trained = trained((13 * 4 + 3, 13), Value::Null);
    let decider = ElasticDecider::Network(ElasticNetwork::read(&trained).unwrap(), Choice::MostProbable);
    let mut scheduler = scheduler("k80=4", Box::new(ElasticRounds::new("mine", decider, 0)));
    scheduler.submit(job(TRANSFORMER, 1e6, &[1, 2])).unwrap();
    scheduler.submit(job(TRANSFORMER, 1e6, &[2])).unwrap();
    let round = scheduler.tick(Seconds::ZERO, None);
    assert_eq!(round.decided, Decided::Fresh { asked: Seconds::ZERO });
}

#[test]
fn networks_of_other_sizes_are_refused() {
    let said = |sizes, spec| ElasticNetwork::read(&trained(sizes, spec)).unwrap_err().to_string();
    assert!(
        said((260, 13), Value::Null).contains("has 260 numbers, expected as many as the elastic world shows")
    );
    let kept = json!({ "system": "elastic", "world": { "sight": "kept_pairs" } });
    assert!(
        said((130, 10), kept).contains("not a network of `system: elastic` with `sight: pairs` or `window`")
    );
    assert!(said((55, 13), json!({ "system": "dl2" })).contains("`system: elastic`"));
    let like = BTreeMap::new();
    let said = |sizes, spec| Dl2Network::read(&trained(sizes, spec), &like).unwrap_err().to_string();
    assert!(said((259, 61), Value::Null).contains("expected 13 or 6 for each of 20 jobs"));
    let paper = json!({ "system": "dl2", "world": { "observation": "paper" } });
    assert!(said((260, 61), paper).contains("rounds know no epochs"));
    // A network of two worker types, where throughputs have three.
    let of_two = ElasticNetwork::read(&trained((10 * 4 + 2, 9), Value::Null)).unwrap();
    let decider = ElasticDecider::Network(of_two, Choice::MostProbable);
    let policy = Box::new(ElasticRounds::new("mine", decider, 0));
    let (cluster, throughputs): (Cluster, _) =
        ("v100=4,k80=4".parse().unwrap(), Throughputs::embedded("osdi20").unwrap());
    let made = Scheduler::with_round_policy(&cluster, throughputs, policy, Options::default());
    let error = made.unwrap_err().to_string();
    assert!(error.contains("another number of worker types than the 3 of the throughputs"), "{error}");
}

/// An actor that prefers jobs of one of DL2's types, and records its observations.
#[derive(Debug, Default)]
struct Prefers {
    job_type: usize,
    seen: Mutex<Vec<Vec<f32>>>,
}

impl Actor for Prefers {
    fn logits(
        &self,
        _agent: usize,
        observation: &[f32],
        _scratch: &mut Scratch,
        logits: &mut [f32],
    ) -> Result<(), ActorError> {
        self.seen.lock().unwrap().push(observation.to_vec());
        let n_jobs = observation.len() / 13;
        logits.fill(-1.0);
        for column in 0..n_jobs {
            // The middle of the job's three actions: a parameter server.
            logits[3 * column + 1] = observation[self.job_type * n_jobs + column] - 0.5;
        }
        logits[3 * n_jobs] = 0.0;
        Ok(())
    }
}

#[test]
fn a_network_of_dl2_sees_jobs_as_there_and_each_of_its_actions_is_a_next_size() {
    let actor = Arc::new(Prefers { job_type: 4, ..Prefers::default() });
    let like = BTreeMap::from([(MODEL.to_owned(), "seq2seq".to_owned())]);
    let network =
        Dl2Network::read(&trained((13 * 3, 10), Value::Null), &like).unwrap().played_by(actor.clone());
    // Two types of 8 workers; the last has other speeds. The jobs have 1, 2 or 4 workers, and the third 1.
    let sizes = |most: u16| -> Vec<(u16, Vec<f64>)> {
        let all = [1, 2, 4].into_iter().filter(|size| *size <= most);
        all.map(|size| (size, vec![f64::from(size), 3.0 * f64::from(size)])).collect()
    };
    let ladders = Ladders::of_jobs(2, &[sizes(4), sizes(4), sizes(1)]);
    let mut world = world_of(&ladders, &[8, 8], 0.0);
    let job = |job_type: usize, arrival_s: f64| {
        let job_type = Id::from_index(job_type);
        WorldJob { job_type, workers: 0, work: 10.0, work_estimated: 10.0, arrival_s, owner: 0 }
    };
    world.reset(&[job(0, -2400.0), job(1, 0.0), job(2, 0.0)]);
    let known = |job_type, left| KnownJob { job_type, left };
    let known = [known(4, 0.25), known(7, 1.0), known(4, 0.5)];
    let choose = &mut |actor: &dyn Actor, seen: &[f32], mask: &[bool]| {
        let mut logits = vec![0.0; mask.len()];
        actor.logits(0, seen, &mut Scratch::default(), &mut logits)?;
        let forbidden = logits.iter_mut().zip(mask).filter(|(_, allowed)| !**allowed);
        forbidden.for_each(|(logit, _)| *logit = f32::NEG_INFINITY);
        Ok(most_probable(&logits))
    };
    network.play((&mut world, &ladders), &known, choose).unwrap();
    let workers: Vec<u16> = (0..3).map(|job| world.tasks(JobId::from_index(job), Role::Worker)).collect();
    assert_eq!(workers, [4, 1, 1]);
    let seen = actor.seen.lock().unwrap();
    // All jobs began with one worker of the faster type. In view are the two that may grow: types, slots since arrival / 100, the
    // part left, an eighth of a worker type, a sixteenth of the most workers and parameter servers.
    let mut expected = vec![0.0; 39];
    for (row, column, number) in [
        (4, 0, 1.0),
        (7, 1, 1.0),
        (8, 0, 0.02),
        (9, 0, 0.25),
        (9, 1, 1.0),
        (10, 0, 0.125),
        (10, 1, 0.125),
        (11, 0, 0.0625),
        (11, 1, 0.0625),
        (12, 0, 0.0625),
        (12, 1, 0.0625),
    ] {
        expected[row * 3 + column] = number;
    }
    assert_eq!(seen[0], expected);
    // Two climbs, and then nothing.
    assert_eq!(seen.len(), 3);
}

/// The policy of a document with the shipped network of DL2's own world.
fn dl2(job_types: &str) -> Box<dyn RoundPolicy> {
    let text = format!(
        "format: apportion/policy-v1\nname: mine\nsummary: mine\nkind: learned\nactor: dl2\nweights: dl2_world\n\
         job_types: {job_types}\n"
    );
    let mut catalog = catalog();
    catalog.add(Source::new("mine.yaml", text)).unwrap();
    match catalog.ready("mine", &PolicyOptions::default()).unwrap() {
        Ready::InRounds(policy) => policy,
        Ready::Allocating(_) => panic!("it decides inside rounds"),
    }
}

#[test]
fn dl2s_own_network_resizes_jobs_and_goes_on_after_a_restart() {
    let like = "{Transformer: seq2seq, LM (batch size 10): wlm}";
    let mut first = scheduler("v100=4,p100=4,k80=4", dl2(like));
    for (name, job_type, steps) in [("a", TRANSFORMER, 1e6), ("b", MODEL, 4e5), ("c", TRANSFORMER, 1e4)] {
        first.submit_as(name, job(job_type, steps, &[1, 2, 4])).unwrap();
    }
    let leases = first.tick(Seconds::ZERO, None).leases;
    assert!(leases.len() == 3 && leases.iter().any(|lease| lease.workers.len() > 1), "{leases:?}");
    let state = serde_json::to_string(&first.state()).unwrap();
    assert!(state.contains("steps_at_first"), "{state}");
    let mut again = scheduler("v100=4,p100=4,k80=4", dl2(like));
    again.restore(&serde_json::from_str(&state).unwrap()).unwrap();
    let next = Seconds::new(360.0);
    assert_eq!(again.tick(next, None).leases, first.tick(next, None).leases);
}

#[test]
fn a_job_type_that_is_like_none_of_dl2s_is_refused() {
    let mut scheduler = scheduler("v100=4", dl2("{Transformer: seq2seq}"));
    scheduler.submit(job(TRANSFORMER, 1e6, &[1, 2])).unwrap();
    let error = scheduler.submit(job(MODEL, 1e6, &[1, 2])).unwrap_err().to_string();
    assert!(
        error.contains("does not say which of DL2's job types `LM (batch size 10)` is like: add it"),
        "{error}"
    );
}
