//! Tests of the engine against a slow, obvious one, and of its rules by hand.

#![expect(clippy::float_cmp, reason = "numbers chosen so that sums are exact")]

use proptest::prelude::*;

use crate::world::{
    AfterRound, Completions, Decision, JobKind, Limits, Part, Rate, Rejected, Retention, Role, Rules,
    Servers, Speeds, Status, World, WorldError, WorldJob, WorldPolicy, run,
};
use apportion::index::{Id, JobId, JobTypeId, ServerId, WorkerTypeId};

fn rules() -> Rules {
    Rules {
        round_s: 100.0,
        parts_max: 3,
        retention: Retention::EachRound,
        completions: Completions::Exact,
        after_round: AfterRound::Stay,
        scaling_cost_s: 0.0,
    }
}

fn job(workers: u16, work: f64, arrival_s: f64) -> WorldJob {
    WorldJob { job_type: JobTypeId::from_index(0), workers, work, work_estimated: work, arrival_s, owner: 0 }
}

/// Three servers of 4 processor and 2, 3 and 4 accelerator slots; workers need (1, 1), parameter servers (2, 0).
fn world_of(rules: Rules, jobs: &[WorldJob]) -> World {
    let mut servers = Servers::new();
    for accelerators in [2, 3, 4] {
        servers.push([4, accelerators], WorkerTypeId::from_index(0), 0);
    }
    let mut world = World::new(servers, vec![JobKind { task: [[1, 1], [2, 0]] }], rules);
    world.reset(jobs);
    world.begin_round();
    world
}

fn id(job: usize) -> JobId {
    JobId::from_index(job)
}

fn part(server: usize, role: Role, count: u16) -> Part {
    Part { server: ServerId::from_index(server), role, count }
}

/// Speeds of one sample per second and task, half of it beside other jobs.
#[derive(Debug)]
struct Halved;

impl Speeds for Halved {
    fn rate(&mut self, world: &World, job: JobId) -> Rate {
        let crowded = world.parts(job).iter().any(|part| world.residents(part.server).len() > 1);
        let retention = if crowded { 0.5 } else { 1.0 };
        Rate { alone_per_s: f64::from(world.tasks(job, Role::Worker)), retention, finish_below: 0.0 }
    }
}

/// A slow engine: lists of placed and waiting jobs, from which everything else is computed when needed.
#[derive(Debug, Default)]
struct Slow {
    /// (job, its parts) in order of placement.
    placed: Vec<(usize, Vec<Part>)>,
    waiting: Vec<usize>,
}

impl Slow {
    fn used(&self, server: usize) -> [u32; 2] {
        let all =
            self.placed.iter().flat_map(|(_, parts)| parts).filter(|part| part.server.index() == server);
        all.fold([0, 0], |[processor, accelerator], part| {
            let n = u32::from(part.count);
            match part.role {
                Role::Worker => [processor + n, accelerator + n],
                Role::ParameterServer => [processor + 2 * n, accelerator],
            }
        })
    }

    fn is_sound(&self, jobs: &[WorldJob]) -> bool {
        let capacity = [[4, 2], [4, 3], [4, 4]];
        let fits = (0..3).all(|server| {
            self.used(server).iter().zip(capacity[server]).all(|(used, capacity)| *used <= capacity)
        });
        let shaped = self.placed.iter().all(|(job, parts)| {
            let tasks =
                |role| parts.iter().filter(|part| part.role == role).map(|part| part.count).sum::<u16>();
            let rigid = jobs[*job].workers;
            let once = parts.iter().enumerate().all(|(position, part)| {
                parts[..position].iter().all(|other| (other.server, other.role) != (part.server, part.role))
            });
            let whole = rigid == 0 || (tasks(Role::Worker), tasks(Role::ParameterServer)) == (rigid, 0);
            (1..=3).contains(&parts.len()) && parts.iter().all(|part| part.count > 0) && once && whole
        });
        fits && shaped
    }

    /// Applies a decision, checks the result, and undoes it if it is not valid.
    fn apply(&mut self, jobs: &[WorldJob], decision: Decision<'_>) -> bool {
        let (placed, waiting) = (self.placed.clone(), self.waiting.clone());
        let at = |job: JobId| placed.iter().position(|(other, _)| *other == job.index());
        let known = |parts: &[Part]| parts.iter().all(|part| part.server.index() < 3);
        let done = match decision {
            Decision::Place { job, parts } if waiting.contains(&job.index()) && known(parts) => {
                self.waiting.retain(|other| *other != job.index());
                self.placed.push((job.index(), parts.to_vec()));
                true
            }
            Decision::Resize { job, parts } if known(parts) && at(job).is_some() => {
                self.placed[at(job).unwrap()].1 = parts.to_vec();
                jobs[job.index()].workers == 0
            }
            Decision::Preempt { job } if at(job).is_some() => {
                self.placed.remove(at(job).unwrap());
                self.waiting.push(job.index());
                true
            }
            _ => false,
        };
        if done && self.is_sound(jobs) {
            return true;
        }
        (self.placed, self.waiting) = (placed, waiting);
        false
    }
}

fn parts_strategy() -> impl Strategy<Value = Vec<Part>> {
    let one = (0_usize..4, prop::bool::ANY, 0_u16..4).prop_map(|(server, worker, count)| {
        part(server, if worker { Role::Worker } else { Role::ParameterServer }, count)
    });
    prop::collection::vec(one, 0..5)
}

proptest! {
    #[test]
    fn whatever_is_asked_the_world_is_the_slow_ones(
        decisions in prop::collection::vec((0_u8..6, 0_usize..7, parts_strategy()), 1..80)
    ) {
        let jobs = [job(0, 9.0, 0.0), job(2, 9.0, 0.0), job(0, 9.0, 0.0), job(3, 9.0, 0.0), job(1, 9.0, 0.0), job(0, 9.0, 500.0)];
        let mut world = world_of(rules(), &jobs);
        let mut slow = Slow { waiting: vec![0, 1, 2, 3, 4], ..Slow::default() };
        for (kind, at, parts) in &decisions {
            let (job, parts) = (id(*at), parts.as_slice());
            let decision = match kind {
                0..=2 => Decision::Place { job, parts },
                3 | 4 => Decision::Resize { job, parts },
                _ => Decision::Preempt { job },
            };
            let applied = world.apply(decision);
            prop_assert_eq!(applied.is_ok(), slow.apply(&jobs, decision), "{:?}: {:?}", decision, applied);
            prop_assert_eq!(world.rejected(), applied.err());
            let waiting: Vec<usize> = world.waiting().iter().map(|job| job.index()).collect();
            prop_assert_eq!(&waiting, &slow.waiting);
            let placed: Vec<_> = world.placed().iter().map(|job| (job.index(), world.parts(*job).to_vec())).collect();
            prop_assert_eq!(&placed, &slow.placed);
            let mut totals = [0, 0];
            for server in 0..3 {
                let used = world.used(ServerId::from_index(server)).map(u32::from);
                prop_assert_eq!(used, slow.used(server));
                totals = [totals[0] + used[0], totals[1] + used[1]];
                let mut on: Vec<usize> =
                    world.residents(ServerId::from_index(server)).iter().map(|job| job.index()).collect();
                on.sort_unstable();
                let mut expected: Vec<usize> = slow.placed.iter()
                    .filter(|(_, parts)| parts.iter().any(|part| part.server.index() == server))
                    .map(|(job, _)| *job).collect();
                expected.sort_unstable();
                prop_assert_eq!(on, expected);
            }
            prop_assert_eq!(world.used_total(), totals);
            let least = (0..3).min_by_key(|server| slow.used(*server).iter().sum::<u32>()).unwrap();
            prop_assert_eq!(world.least_loaded().index(), least);
        }
    }
}

#[test]
fn rejections_say_why() {
    let mut world = world_of(rules(), &[job(2, 9.0, 0.0), job(0, 9.0, 0.0), job(1, 9.0, 500.0)]);
    let server = ServerId::from_index;
    let two = [part(0, Role::Worker, 2)];
    for (decision, expected) in [
        (Decision::Place { job: id(3), parts: &two }, Rejected::UnknownJob(id(3))),
        (Decision::Place { job: id(2), parts: &two }, Rejected::NotWaiting(id(2))),
        (Decision::Preempt { job: id(0) }, Rejected::NotPlaced(id(0))),
        (Decision::Place { job: id(0), parts: &[part(0, Role::Worker, 1)] }, Rejected::WrongTasks(id(0))),
        (Decision::Place { job: id(0), parts: &[] }, Rejected::WrongParts(id(0))),
        (
            Decision::Place { job: id(0), parts: &[part(3, Role::Worker, 2)] },
            Rejected::UnknownServer(server(3)),
        ),
        (Decision::Place { job: id(1), parts: &[part(0, Role::Worker, 3)] }, Rejected::Full(server(0))),
        (
            Decision::Place { job: id(1), parts: &[part(0, Role::Worker, 1), part(0, Role::Worker, 1)] },
            Rejected::RepeatedPart(server(0)),
        ),
    ] {
        assert_eq!(world.apply(decision), Err(expected));
        assert_eq!(world.used_total(), [0, 0], "after {decision:?}");
    }
    world.apply(Decision::Place { job: id(0), parts: &two }).unwrap();
    assert_eq!(world.apply(Decision::Resize { job: id(0), parts: &two }), Err(Rejected::NotElastic(id(0))));
    assert_eq!((world.summary().decisions, world.summary().rejections), (10, 9));
}

#[test]
fn a_round_by_hand() {
    // Two jobs share server 2 at half speed: 2 workers × 0.5 × 100 s = 100, 1 × 0.5 × 100 = 50 of 200 and 30.
    let mut world = world_of(rules(), &[job(2, 200.0, 0.0), job(1, 30.0, 0.0), job(1, 10.0, 150.0)]);
    world.apply(Decision::Place { job: id(0), parts: &[part(2, Role::Worker, 2)] }).unwrap();
    world.apply(Decision::Place { job: id(1), parts: &[part(2, Role::Worker, 1)] }).unwrap();
    let gained = world.advance(&mut Halved);
    assert!((gained - (100.0 / 200.0 + 1.0)).abs() < 1e-12);
    assert_eq!((world.status(id(0)), world.status(id(1))), (Status::Placed, Status::Done));
    assert_eq!(world.free(ServerId::from_index(2)), [2, 2]);
    // The second round starts at 100 s: the job of 150 s is not there yet.
    world.begin_round();
    assert_eq!(world.status(id(2)), Status::Future);
    world.advance(&mut Halved);
    // 100 left at full speed 2: done at 150 s. The third arrives, waits, runs from 200 s.
    world.begin_round();
    assert_eq!(world.waiting(), [id(2)]);
    world.apply(Decision::Place { job: id(2), parts: &[part(0, Role::Worker, 1)] }).unwrap();
    world.advance(&mut Halved);
    let outcomes: Vec<_> =
        world.outcomes().map(|one| (one.completion_s, one.service_s, one.queueing_s())).collect();
    assert_eq!(outcomes, [(150.0, 150.0, 0.0), (60.0, 60.0, 0.0), (60.0, 10.0, 50.0)]);
    let summary = world.summary();
    assert_eq!(summary.makespan_s, 210.0);
    assert!((summary.utilization - (2.0 * 150.0 + 60.0 + 10.0) / (9.0 * 210.0)).abs() < 1e-12);
    assert!((summary.retention - (0.5 + 0.5 + 1.0 + 1.0) / 4.0).abs() < 1e-12);
}

#[test]
fn whole_rounds_may_cost_the_next_job_its_round() {
    let jobs = [job(1, 10.0, 0.0), job(1, 500.0, 0.0), job(1, 500.0, 0.0)];
    let after_one_round = |completions| {
        let mut world = world_of(Rules { completions, ..rules() }, &jobs);
        for (job, server) in [(0, 0), (1, 1), (2, 2)] {
            world.apply(Decision::Place { job: id(job), parts: &[part(server, Role::Worker, 1)] }).unwrap();
        }
        world.advance(&mut Halved);
        let outcome = world.outcomes().next().unwrap();
        (outcome.completion_s, world.progress(id(1)), world.progress(id(2)))
    };
    assert_eq!(after_one_round(Completions::Exact), (10.0, 100.0, 100.0));
    assert_eq!(after_one_round(Completions::RoundEnd), (100.0, 100.0, 100.0));
    assert_eq!(after_one_round(Completions::RoundEndSkippingNext), (100.0, 0.0, 100.0));
}

#[test]
fn rules_after_a_round() {
    let jobs = [job(1, 500.0, 0.0), job(1, 500.0, 0.0), job(1, 500.0, 0.0), job(1, 500.0, 0.0)];
    let after = |after_round, retention| {
        let mut world = world_of(Rules { retention, after_round, ..rules() }, &jobs);
        for (job, server) in [(2, 1), (0, 1), (1, 0)] {
            world.apply(Decision::Place { job: id(job), parts: &[part(server, Role::Worker, 1)] }).unwrap();
        }
        world.advance(&mut Halved);
        world
    };
    let ids = |jobs: &[JobId]| jobs.iter().map(|job| job.index()).collect::<Vec<_>>();
    let stayed = after(AfterRound::Stay, Retention::EachRound);
    assert_eq!((ids(stayed.waiting()), ids(stayed.placed())), (vec![3], vec![2, 0, 1]));
    let crowded = after(AfterRound::PreemptAtOrBelow(0.5), Retention::EachRound);
    assert_eq!((ids(crowded.waiting()), ids(crowded.placed())), (vec![3, 2, 0], vec![1]));
    let all = after(AfterRound::PreemptAll, Retention::EachRound);
    assert_eq!((ids(all.waiting()), ids(all.placed())), (vec![3, 2, 0, 1], vec![]));
    let rebuilt = after(AfterRound::Rebuild, Retention::EachRound);
    assert_eq!((ids(rebuilt.waiting()), rebuilt.used_total()), (vec![0, 1, 2, 3], [0, 0]));
    // A neighbour leaves: the retention rises, unless the rule is that it never does.
    for (retention, expected) in [(Retention::EachRound, 1.0), (Retention::NeverRises, 0.5)] {
        let mut world = after(AfterRound::Stay, retention);
        world.apply(Decision::Preempt { job: id(2) }).unwrap();
        world.advance(&mut Halved);
        assert_eq!(world.retention(id(0)), expected);
        world.apply(Decision::Place { job: id(2), parts: &[part(2, Role::Worker, 1)] }).unwrap();
        world.advance(&mut Halved);
        assert_eq!(world.preemptions[id(2)], 1);
    }
}

/// The work of one job in each of these rounds, at a unit a second and worker, where scaling costs 30 of 100 seconds. The job is
/// given the parts of each round, and waits where there are none.
fn paid(rounds: &[&[Part]], work: f64) -> (Vec<f64>, f64) {
    let rules = Rules { after_round: AfterRound::Rebuild, scaling_cost_s: 30.0, ..rules() };
    let mut servers = Servers::new();
    for worker_type in [0, 0, 1] {
        servers.push([4, 4], WorkerTypeId::from_index(worker_type), 0);
    }
    let mut world = World::new(servers, vec![JobKind { task: [[1, 1], [2, 0]] }], rules);
    world.reset(&[job(0, work, 0.0)]);
    let mut done = Vec::new();
    for parts in rounds {
        world.begin_round();
        if !parts.is_empty() {
            world.apply(Decision::Place { job: id(0), parts }).unwrap();
        }
        let before = world.progress(id(0));
        world.advance(&mut Halved);
        done.push(world.progress(id(0)) - before);
    }
    (done, world.completion_s[id(0)])
}

#[test]
fn who_is_resized_stands_still_for_a_while() {
    let one = |server: usize| [part(server, Role::Worker, 1)];
    let with_server = [part(0, Role::Worker, 1), part(1, Role::ParameterServer, 1)];
    let (done, _) = paid(&[&one(0), &one(1), &[part(1, Role::Worker, 2)], &one(0), &one(2)], 1e6);
    assert_eq!(done, [100.0, 100.0, 140.0, 70.0, 70.0], "its type's other server is no other");
    let (done, _) = paid(&[&one(0), &with_server, &with_server, &[], &with_server], 1e6);
    assert_eq!(done, [100.0, 70.0, 100.0, 0.0, 70.0], "roles count, and so does a round without");
    let (done, completion_s) = paid(&[&one(0), &one(2)], 150.0);
    assert_eq!((done, completion_s), (vec![100.0, 50.0], 180.0));
    let rules = Rules { after_round: AfterRound::Rebuild, scaling_cost_s: 1000.0, ..rules() };
    let mut world = world_of(rules, &[job(0, 500.0, 0.0)]);
    for parts in [[part(0, Role::Worker, 1), part(2, Role::Worker, 1)].as_slice(), &one(2)] {
        world.begin_round();
        world.apply(Decision::Place { job: id(0), parts }).unwrap();
        world.advance(&mut Halved);
    }
    assert_eq!((world.progress(id(0)), world.service_s[id(0)]), (200.0, 200.0), "a round at most");
}

#[derive(Debug)]
struct Asks(Decision<'static>);

impl WorldPolicy for Asks {
    fn next(&mut self, _: &World) -> Decision<'_> {
        self.0
    }
}

#[test]
fn a_policy_that_never_ends_is_an_error() {
    let mut world = world_of(rules(), &[job(1, 10.0, 0.0)]);
    let limits = Limits { decisions_max: 7, rounds_max: 5 };
    let mut asks = Asks(Decision::Preempt { job: id(0) });
    let livelock = run(&mut world, &mut Halved, &mut asks, limits).unwrap_err();
    assert_eq!(livelock, WorldError::Livelock { round: 0, decisions_max: 7 });
    let idle = run(&mut world, &mut Halved, &mut Asks(Decision::EndRound), limits).unwrap_err();
    assert_eq!(idle.to_string(), "0 of 1 jobs were done after 5 rounds");
}
