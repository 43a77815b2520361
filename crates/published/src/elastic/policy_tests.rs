//! Tests of the rules and the network of the elastic world on a cluster.

use std::sync::Arc;

use super::*;
use crate::plugin::catalog;
use crate::world::{Role, WorldJob};
use apportion::catalog::{PolicyOptions, Ready};
use apportion::policy::RoundPolicy;
use apportion::scheduler::{Decided, Lease, Options, Scheduler};
use apportion::simulator::{self, Event, Observer, Outcome, Simulation};
use apportion::throughput::Throughputs;
use apportion::workload::Listed;
use apportion::{Cluster, Job, Seconds};

const TRANSFORMER: &str = "Transformer (batch size 256)";
const MODEL: &str = "LM (batch size 10)";

fn throughputs() -> Arc<Throughputs> {
    Throughputs::embedded("osdi20").unwrap()
}

fn policy(name: &str) -> Box<dyn RoundPolicy> {
    match catalog().ready(name, &PolicyOptions::default()).unwrap() {
        Ready::InRounds(policy) => policy,
        Ready::Allocating(_) => panic!("`{name}` decides inside rounds"),
    }
}

fn scheduler(cluster: &str, name: &str) -> Scheduler {
    let cluster: Cluster = cluster.parse().unwrap();
    Scheduler::with_round_policy(&cluster, throughputs(), policy(name), Options::default()).unwrap()
}

fn round(scheduler: &mut Scheduler, number: u32) -> Vec<Lease> {
    let now = Seconds::new(360.0 * f64::from(number));
    let round = scheduler.tick(now, None);
    assert_eq!(round.decided, Decided::Fresh { asked: now });
    round.leases
}

fn job(job_type: &str, steps: u32, sizes: &[u32]) -> Job {
    Job::new(job_type).scale_factor(sizes[0]).steps(steps).sizes(sizes)
}

/// The workers that a rule gives the same jobs in a slot of its own world, with as many workers of each type.
fn of_world(rule: ElasticRule, jobs: &[(&str, f64)], workers_per_type: u16) -> Vec<Option<(usize, usize)>> {
    let (throughputs, ladders) = (throughputs(), Ladders::new(&throughputs()));
    let alone: Vec<_> = throughputs.rows().iter().filter(|row| row.scale_factor == 1).collect();
    let job = |(name, work): &(&str, f64)| {
        let job_type = alone.iter().position(|row| row.job_type == *name).unwrap();
        let job_type = Id::from_index(job_type);
        WorldJob { job_type, workers: 0, work: *work, work_estimated: *work, arrival_s: 0.0, owner: 0 }
    };
    let mut world = world(&ladders, workers_per_type, 0.0);
    world.reset(&jobs.iter().map(job).collect::<Vec<_>>());
    world.begin_round();
    ElasticPolicy::new(rule, ladders, 0).climb_all(&mut world);
    let held = |job: usize| {
        let job = JobId::from_index(job);
        let part = world.parts(job).first()?;
        Some((part.server.index(), usize::from(world.tasks(job, Role::Worker))))
    };
    (0..jobs.len()).map(held).collect()
}

#[test]
fn jobs_climb_as_in_the_world() {
    let jobs = [(TRANSFORMER, 1e6), (MODEL, 4e5), (TRANSFORMER, 1e4), (MODEL, 7e6), (TRANSFORMER, 3e5)];
    for (name, rule) in
        [("optimus", ElasticRule::Optimus), ("drf", ElasticRule::Drf(u16::MAX)), ("srtf", ElasticRule::Srtf)]
    {
        for n in [1, 3, 8] {
            let rule_named = ElasticDecider::Rule(rule);
            let policy = Box::new(ElasticRounds::new(name, rule_named, 0));
            let cluster: Cluster = format!("v100={n},p100={n},k80={n}").parse().unwrap();
            let mut scheduler =
                Scheduler::with_round_policy(&cluster, throughputs(), policy, Options::default()).unwrap();
            let sizes: Vec<u32> = [1, 2, 4, 8].into_iter().filter(|size| *size <= u32::from(n)).collect();
            for (job_type, steps) in jobs {
                let mut job = job(job_type, 0, &sizes);
                job.total_steps = apportion::Steps::new(steps);
                scheduler.submit(job).unwrap();
            }
            let leases = round(&mut scheduler, 0);
            let lease = |job: usize| leases.iter().find(|lease| lease.jobs.contains(JobId::from_index(job)));
            let held = |job| lease(job).map(|lease| (lease.worker_type.index(), lease.workers.len()));
            let held: Vec<_> = (0..jobs.len()).map(held).collect();
            assert_eq!(held, of_world(rule, &jobs, n), "{name} on {n}");
        }
    }
}

#[test]
fn a_job_grows_when_another_ends_and_keeps_its_workers_after() {
    let mut scheduler = scheduler("p100=3", "elastic_optimus");
    let long = scheduler.submit_as("long", job(TRANSFORMER, 2_000_000, &[1, 2])).unwrap();
    let short = scheduler.submit_as("short", job(TRANSFORMER, 1_000, &[1, 2])).unwrap();
    let third = scheduler.submit_as("third", job(TRANSFORMER, 1_000, &[1])).unwrap();
    let sizes = |leases: &[Lease]| {
        leases.iter().map(|lease| (lease.names[0].clone(), lease.workers.len())).collect::<Vec<_>>()
    };
    let leases = round(&mut scheduler, 0);
    assert_eq!(sizes(&leases), [("long".into(), 1), ("short".into(), 1), ("third".into(), 1)]);
    assert!(scheduler.finish(short) && scheduler.finish(third));
    let grown = round(&mut scheduler, 1);
    assert_eq!(sizes(&grown), [("long".into(), 2)]);
    assert!(!grown[0].extended && scheduler.job(long).unwrap().scale_factor == 2);
    let kept = round(&mut scheduler, 2);
    assert!(kept[0].extended && kept[0].workers == grown[0].workers);
    // A second job takes the third worker; for the next to arrive, the first gives up one of its two.
    scheduler.submit_as("rigid", job(TRANSFORMER, 1_000, &[1])).unwrap();
    assert!(round(&mut scheduler, 3)[0].extended);
    scheduler.submit_as("late", job(TRANSFORMER, 1_000, &[1])).unwrap();
    let shrunk = round(&mut scheduler, 4);
    let by_name = |name: &str| shrunk.iter().find(|lease| lease.names[0] == name).unwrap();
    assert_eq!(["long", "rigid", "late"].map(|name| by_name(name).workers.len()), [1, 1, 1]);
    assert!(by_name("rigid").extended);
}

/// An observer of completions (job, s) and of the workers of each slice, in order.
#[derive(Debug, Default)]
struct Seen {
    done: Vec<(usize, f64)>,
    slices: Vec<(usize, f64, u32)>,
}

impl Observer for Seen {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Completion { at, id, .. } => self.done.push((id.index(), at.get())),
            Event::Slice(slice) => {
                self.slices.push((slice.jobs.first().index(), slice.start.get(), slice.n_workers));
            }
            _ => {}
        }
    }
}

#[test]
fn a_job_that_grows_in_a_simulation_is_as_much_faster_and_pays_for_another_start() {
    let throughputs = throughputs();
    let p100 = throughputs.find_worker_type("p100").unwrap();
    let speed = |size| throughputs.alone(throughputs.find(TRANSFORMER, size).unwrap(), p100);
    // Two workers belong to another job until it is done, after 300 s. The first job has made its last whole step by almost 360 s,
    // and has two workers in the next round: it needs 100 s more, and starting again takes 20 s.
    let first_steps = (360.0 * speed(1)).floor();
    let next = first_steps / speed(1);
    let steps = first_steps + 100.0 * speed(2);
    let grows = Job::new(TRANSFORMER).total_steps(apportion::Steps::new(steps)).sizes([1, 2]);
    let ends = Job::new(TRANSFORMER).scale_factor(2).total_steps(apportion::Steps::new(300.0 * speed(2)));
    let mut options = simulator::Options::corrected();
    options.preemption_cost = Some(simulator::PreemptionCost {
        checkpoint: Seconds::new(5.0),
        restore: Seconds::new(15.0),
        job_types: Vec::new(),
    });
    let (cluster, jobs): (Cluster, _) = ("p100=3".parse().unwrap(), Box::new(Listed::new(vec![grows, ends])));
    let policy = policy("elastic_optimus");
    let mut simulation =
        Simulation::with_round_policy((&cluster, throughputs.clone()), jobs, policy, options).unwrap();
    let mut seen = Seen::default();
    assert_eq!(simulation.run(&mut seen, &simulator::Limits::default()).unwrap(), Outcome::Finished);
    let [(1, other), (0, grown)] = seen.done[..] else { panic!("{seen:?}") };
    assert!((other - 300.0).abs() < 1e-6 && (grown - (next + 120.0)).abs() < 1e-6, "{seen:?}");
    assert_eq!(seen.slices, [(0, 0.0, 1), (1, 0.0, 2), (0, next, 2)]);
}

#[test]
fn jobs_that_keep_their_size_run_at_it_or_not_at_all() {
    for name in ["elastic_optimus", "elastic"] {
        let mut scheduler = scheduler("v100=4,p100=4,k80=4", name);
        let rigid = |scale_factor| Job::new(TRANSFORMER).steps(100_000).scale_factor(scale_factor);
        for scale_factor in [4, 4, 2, 1] {
            scheduler.submit(rigid(scale_factor)).unwrap();
        }
        let leases = round(&mut scheduler, 0);
        let n_workers: Vec<usize> = leases.iter().map(|lease| lease.workers.len()).collect();
        assert_eq!(n_workers.iter().sum::<usize>(), 11, "{name}: {n_workers:?}");
        for lease in &leases {
            let job = scheduler.job(lease.jobs.first()).unwrap();
            assert_eq!(job.scale_factor as usize, lease.workers.len(), "{name}");
        }
    }
}

#[test]
fn workers_of_one_server_go_together() {
    use apportion::index::WorkerId;
    let cluster: Cluster = "v100=8".parse().unwrap();
    let cluster = cluster.with_workers_per_server("v100", 4).unwrap();
    let policy = policy("elastic_optimus");
    let mut scheduler =
        Scheduler::with_round_policy(&cluster, throughputs(), policy, Options::default()).unwrap();
    for sizes in [[1], [4], [2], [1]] {
        scheduler.submit(job(TRANSFORMER, 1_000_000, &sizes)).unwrap();
    }
    let leases = round(&mut scheduler, 0);
    let servers = |lease: &Lease| {
        let server = |worker: &WorkerId| scheduler.workers().server(*worker).index();
        lease.workers.iter().map(server).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(leases.iter().map(servers).collect::<Vec<_>>(), [1, 1, 1, 1]);
}

#[test]
fn the_network_decides_alike_after_a_restart() {
    let mut first = scheduler("v100=4,p100=4,k80=4", "elastic");
    for steps in [1_000, 50_000, 2_000_000, 9_000, 300_000, 70_000] {
        first.submit_as(steps.to_string(), job(TRANSFORMER, steps, &[1, 2, 4])).unwrap();
    }
    let leases = round(&mut first, 0);
    assert!(leases.iter().any(|lease| lease.workers.len() > 1), "{leases:?}");
    let text = serde_json::to_string(&first.state()).unwrap();
    let mut again = scheduler("v100=4,p100=4,k80=4", "elastic");
    again.restore(&serde_json::from_str(&text).unwrap()).unwrap();
    assert_eq!(round(&mut again, 1), round(&mut first, 1));
}
