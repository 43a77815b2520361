//! Tests with a pretend Slurm that has one job: the requests for it, however Slurm and its users behave.

mod changed;

use std::collections::BTreeMap;

use apportion::{Seconds, Steps};

use super::commands::Command;
use super::intake::PROGRAM;
use super::jobs::HeldJob;
use super::kept::{Kept, Known, Place};
use super::look::{Event, View};
use super::ranks::want;
use super::steered::Steered;
use super::terms::Shape;
use crate::agent::RankStart;
use crate::protocol::{End, JobNumber, Program, Run};

const LONG: Seconds = Seconds::new(1e6);

/// An action of Slurm or of a user on the job.
type Act = fn(&mut World);

/// A job of Slurm, its steered job, and a clock.
struct World {
    job: Option<HeldJob>,
    boot: &'static str,
    steered: Steered,
    now: f64,
    over_here: Option<bool>,
    events: Vec<Event>,
}

impl World {
    fn new(n_nodes: u32, per_node: u32) -> Self {
        let job = HeldJob {
            id: 7,
            name: "one".to_owned(),
            user: "ann".to_owned(),
            terms: Some("steps=5".to_owned()),
            partitions: "gpu".to_owned(),
            n_nodes,
            per_node: format!("gres:gpu:{per_node}"),
            submitted_s: 50,
            may_requeue: true,
            state: "PENDING".to_owned(),
            reason: "JobHeldUser".to_owned(),
            ..HeldJob::default()
        };
        let shape = Shape { n_nodes, per_node, is_in_all: false };
        let terms = "steps=5".to_owned();
        let (number, task, order, boot, given_up, end) = (JobNumber(3), None, None, None, None, None);
        let known = Some(Known::of(&job, None));
        let kept = Kept { id: 7, task, number, terms, shape, order, boot, given_up, end, known };
        let (steered, events) = (Steered::new(kept, LONG), Vec::new());
        Self { job: Some(job), boot: "noon", steered, now: 0.0, over_here: None, events }
    }

    fn job(&mut self) -> &mut HeldJob {
        self.job.as_mut().unwrap()
    }

    fn run(incarnation: u32) -> Run {
        Run { job: JobNumber(3), incarnation }
    }

    fn want(&mut self, incarnation: u32, nodes: &[&str]) {
        let n_ranks = u32::try_from(nodes.len()).unwrap();
        for (rank, node) in (0..).zip(nodes) {
            let place = Place { node: (*node).to_owned(), rank, worker: rank };
            self.steered.want(Self::run(incarnation), n_ranks, place, LONG);
        }
    }

    /// Looks, some seconds later, at the state that Slurm shows then. The request, and its instant.
    fn asked(&mut self) -> (Option<Command>, Seconds) {
        self.now += 3.0;
        let now = Seconds::new(self.now);
        let (job, boot, over_here) = (self.job.as_ref(), self.boot, self.over_here);
        let view = View { job, asked: now, boot, partition: "gpu", now, over_here };
        let (command, events) = self.steered.look(&view);
        self.events.extend(events);
        (command, now)
    }

    /// Looks; the request is only acknowledged.
    fn look(&mut self) -> Option<Command> {
        let (command, now) = self.asked();
        if let Some(command) = &command {
            self.steered.note_command(command.clone(), now);
        }
        command
    }

    /// Looks; the request is refused.
    fn refused(&mut self, said: &str) -> Option<Command> {
        let (command, now) = self.asked();
        if let Some(command) = &command {
            self.events.extend(self.steered.note_refusal(command.clone(), said, now));
        }
        command
    }

    fn show(&mut self, state: &str, priority: u64, reason: &str) {
        let job = self.job();
        (job.state, job.priority, job.reason) = (state.to_owned(), priority, reason.to_owned());
        job.is_completing = false;
    }

    /// A world in which the job runs as it was ordered.
    fn running(nodes: &[&str]) -> Self {
        let mut world = Self::new(1, u32::try_from(nodes.len()).unwrap());
        world.want(1, nodes);
        assert_eq!(world.look(), Some(Command::Release(nodes[0].to_owned())));
        world.show("RUNNING", 9, "None");
        world.job().nodes = nodes[0].to_owned();
        assert_eq!(world.look(), None);
        assert!(matches!(world.events.pop(), Some(Event::Begun(_))));
        world
    }

    /// Puts the job back, as Slurm does.
    fn put_back(&mut self, priority: u64, reason: &str) {
        self.show("PENDING", priority, reason);
        self.job().n_restarts += 1;
        self.job().submitted_s += 60;
        self.job().nodes.clear();
    }

    fn ends(&self) -> Vec<End> {
        let end = |event: &Event| match event {
            Event::Ended(_, end) => Some(end.clone()),
            _ => None,
        };
        self.events.iter().filter_map(end).collect()
    }

    /// The times that the ended runs ran, in s.
    fn ran(&self) -> Vec<Option<f64>> {
        let ran = |event: &Event| match event {
            Event::Ended(order, _) => Some(order.ran().map(Seconds::get)),
            _ => None,
        };
        self.events.iter().filter_map(ran).collect()
    }

    fn given_up(&self) -> Option<String> {
        let why = |event: &Event| match event {
            Event::Withdrawn(why) => Some(why.clone()),
            _ => None,
        };
        self.events.iter().find_map(why)
    }
}

#[test]
fn a_job_is_released_put_back_and_released_elsewhere() {
    let mut world = World::running(&["n1"]);
    world.job().started_s = 90;
    assert!(world.steered.steer(World::run(1), LONG, true));
    assert_eq!(world.look(), Some(Command::Requeue));
    // While its processes end, it is asked nothing: a begin time set now would have it wait for two minutes.
    world.show("COMPLETING", 0, "None");
    world.job().is_completing = true;
    world.want(2, &["n2"]);
    assert_eq!(world.look(), None);
    world.put_back(0, "JobHeldUser");
    assert_eq!(world.look(), None, "the end of the one is told before the other begins");
    assert_eq!(world.ends(), [End::Stopped(None)]);
    assert_eq!(world.ran(), [Some(20.0)], "from its start to when its processes had ended");
    assert_eq!(world.look(), Some(Command::Release("n2".to_owned())));
    assert_eq!(world.steered.kept().order.unwrap().n_restarts, 1);
}

#[test]
fn what_is_acknowledged_and_not_done_is_asked_again() {
    let mut world = World::new(1, 1);
    world.want(1, &["n1"]);
    let release = Some(Command::Release("n1".to_owned()));
    assert_eq!((world.look(), world.look()), (release.clone(), release.clone()));
    world.show("PENDING", 9, "Resources");
    assert_eq!(world.look(), None);
    assert!(matches!(&world.events[..], [Event::Words(text)] if text.contains("Resources")));
    // A controller that was started anew has forgotten that it was released.
    (world.boot, world.events) = ("one", Vec::new());
    world.show("PENDING", 0, "JobHeldUser");
    assert_eq!(world.look(), release);
    assert_eq!((world.ends(), world.given_up()), (vec![], None));
    // It has forgotten, too, that a job was put back.
    let mut world = World::running(&["n1"]);
    world.steered.steer(World::run(1), LONG, true);
    world.look();
    world.put_back(0, "JobHeldUser");
    world.look();
    world.boot = "one";
    world.show("RUNNING", 9, "None");
    world.steered = Steered::new(world.steered.kept(), LONG);
    assert_eq!(world.look(), Some(Command::Requeue), "the scheduler was started anew, too");
    assert_eq!(world.given_up(), None);
}

#[test]
fn a_begin_time_that_slurm_has_set_is_set_back() {
    let mut world = World::new(1, 1);
    world.want(1, &["n1"]);
    world.look();
    world.show("PENDING", 9, "BeginTime");
    assert_eq!(world.look(), Some(Command::StartNow));
}

#[test]
fn a_run_that_is_to_end_before_it_began_is_held() {
    let mut world = World::new(1, 1);
    world.want(1, &["n1"]);
    world.look();
    world.show("PENDING", 9, "Resources");
    world.steered.steer(World::run(1), LONG, true);
    assert_eq!(world.look(), Some(Command::Hold));
    world.show("PENDING", 0, "JobHeldUser");
    assert_eq!(world.look(), None);
    assert_eq!((world.ends(), world.given_up()), (vec![End::Stopped(None)], None));
}

#[test]
fn a_lease_that_is_over_puts_the_job_back() {
    let mut world = World::new(1, 1);
    let place = Place { node: "n1".to_owned(), rank: 0, worker: 0 };
    world.steered.want(World::run(1), 1, place, Seconds::new(10.0));
    world.look();
    world.show("RUNNING", 9, "None");
    world.job().nodes = "n1".to_owned();
    assert_eq!((world.look(), world.look()), (None, None));
    assert_eq!(world.look(), Some(Command::Requeue));
}

#[test]
fn the_end_in_slurm_is_the_end() {
    for (state, end) in [("COMPLETED", End::Exit(0)), ("CANCELLED", End::Stopped(None))] {
        let mut world = World::running(&["n1"]);
        world.show(state, 9, "None");
        assert_eq!(world.look(), None);
        assert_eq!(world.ends(), [end], "{state}");
        assert_eq!(world.given_up().is_some(), state == "CANCELLED");
        assert!(
            world.steered.is_over && world.steered.kept().order.is_some(),
            "kept until the scheduler has it"
        );
    }
    let mut world = World::running(&["n1"]);
    world.show("TIMEOUT", 9, "TimeLimit");
    world.look();
    let said = "Slurm says of its job 7: TIMEOUT (TimeLimit)".to_owned();
    assert_eq!((world.ends(), world.given_up()), (vec![End::Final(said)], None));
    // A job that Slurm does not show is looked for elsewhere, not at once.
    let mut world = World::running(&["n1"]);
    world.job = None;
    world.look();
    assert!(world.events.is_empty());
    (0..4).for_each(|_| drop(world.look()));
    assert_eq!(world.events[0], Event::Missing);
    assert!(matches!(&world.steered.note_lost()[..], [Event::Ended(_, End::Final(_))]));
}

#[test]
fn an_end_that_the_scheduler_did_not_wait_for_is_that_of_every_later_run() {
    for (state, end) in [("COMPLETED", End::Exit(0)), ("CANCELLED", End::Stopped(None))] {
        let mut world = World::running(&["n1"]);
        // The scheduler has closed the first run, and orders a second.
        world.want(2, &["n2"]);
        world.show(state, 9, "None");
        assert_eq!(world.look(), None);
        assert_eq!(world.ends(), [end.clone(), end.clone()], "{state}");
        // It has not been told of that, either, and orders a third.
        assert_eq!(third(world.steered), Err(end), "{state}");
    }
    let mut world = World::running(&["n1"]);
    world.show("FAILED", 9, "NonZeroExitCode");
    world.look();
    let kept = world.steered.kept();
    assert!(matches!(third(world.steered), Err(End::Final(why)) if why.contains("FAILED")));
    // A scheduler that is started anew is told of the end, though Slurm has forgotten the job.
    let (mut world, boot) = (World::running(&["n1"]), "one");
    world = World { job: None, boot, steered: Steered::new(kept, LONG), ..world };
    world.look();
    assert!(matches!(&world.ends()[..], [End::Final(why)] if why.contains("FAILED")));
    // A waiting job that is given up ends for that reason.
    let mut world = World::new(1, 1);
    world.job().terms = None;
    world.look();
    assert!(matches!(third(world.steered), Err(End::Final(why)) if why.contains("taken back")));
}

/// The executor's answer to the order of a third run.
fn third(steered: Steered) -> Result<(), End> {
    let command = vec![PROGRAM.to_owned(), "7".to_owned()];
    let start = RankStart {
        run: World::run(3),
        submission: None,
        rank: 0,
        worker: 0,
        local_rank: 0,
        ranks_here: 1,
        world_size: 1,
        first_server: "n1".to_owned(),
        total_steps: Steps::new(5.0),
        program: Program { command, directory: None, environment: BTreeMap::new() },
        until: LONG,
        grace: Seconds::ZERO,
    };
    want(&mut BTreeMap::from([(7, steered)]), "n1", &start)
}

#[test]
fn one_that_others_put_back_is_held_and_lost_to_its_run() {
    let mut world = World::running(&["n1"]);
    world.put_back(9, "BeginTime");
    assert_eq!(world.look(), Some(Command::Hold));
    world.show("PENDING", 0, "JobHeldUser");
    assert_eq!(world.look(), None);
    assert!(matches!(&world.ends()[..], [End::Lost(_)]) && world.given_up().is_none());
}

#[test]
fn what_users_and_administrators_do_is_not_undone() {
    let acts: [(&str, Act); 5] = [
        ("released in Slurm", |world| world.show("PENDING", 9, "Priority")),
        ("released in Slurm", |world| world.show("RUNNING", 9, "None")),
        ("administrator", |world| world.show("PENDING", 0, "JobHeldAdmin")),
        ("taken back", |world| world.job().terms = None),
        ("Requeue=0", |world| world.job().may_requeue = false),
    ];
    for (says, act) in acts {
        let mut world = World::new(1, 1);
        act(&mut world);
        world.want(1, &["n1"]);
        assert_eq!((world.look(), world.look()), (None, None), "{says}");
        assert!(world.given_up().unwrap().contains(says), "{:?}", world.events);
        assert_eq!(world.ends(), [End::Stopped(None)], "{says}");
        // It is so after a restart, too.
        let mut world = World { steered: Steered::new(world.steered.kept(), LONG), ..world };
        assert_eq!(world.look(), None);
        assert!(world.given_up().unwrap().contains(says));
    }
    // Held, after it was seen to wait for its workers.
    let mut world = World::new(1, 1);
    world.want(1, &["n1"]);
    world.look();
    world.show("PENDING", 9, "Resources");
    world.look();
    world.show("PENDING", 0, "JobHeldUser");
    assert_eq!(world.look(), None);
    assert!(world.given_up().unwrap().contains("held after"));
    // A running job that is given up holds its workers until it has none.
    let mut world = World::running(&["n1"]);
    world.job().terms = None;
    assert_eq!((world.look(), world.look()), (None, None));
    assert!(world.ends().is_empty());
    world.steered.steer(World::run(1), LONG, true);
    assert_eq!(world.look(), None, "it is not its to stop any more");
    world.show("COMPLETED", 9, "None");
    world.look();
    assert_eq!(world.ends(), [End::Exit(0)]);
}

#[test]
fn what_slurm_cannot_start_fails_by_its_own_fault() {
    let mut world = World::new(1, 1);
    world.want(1, &["n1"]);
    world.look();
    world.show("PENDING", 9, "Resources");
    world.look();
    world.show("PENDING", 0, "BadConstraints");
    world.look();
    assert!(matches!(&world.ends()[..], [End::Declined(why)] if why.contains("BadConstraints")));
    assert_eq!(world.given_up(), None);
    // It is so as well if that is seen at once, and if the scheduler does not wait any more; but not for the earlier reason.
    let mut world = World::new(1, 1);
    world.show("PENDING", 0, "BadConstraints");
    world.want(1, &["n1"]);
    assert_eq!(world.look(), Some(Command::Release("n1".to_owned())));
    world.steered.steer(World::run(1), LONG, true);
    assert_eq!(world.look(), None);
    assert!(matches!(&world.ends()[..], [End::Declined(_)]), "{:?}", world.events);
    // It is so as well if the release is refused, again and again.
    let mut world = World::new(1, 1);
    world.want(1, &["n1"]);
    (0..4).for_each(|_| assert_eq!(world.refused("no such node"), Some(Command::Release("n1".to_owned()))));
    assert!(world.ends().is_empty(), "{:?}", world.events);
    world.refused("no such node");
    assert!(matches!(&world.ends()[..], [End::Declined(why)] if why == "no such node"), "{:?}", world.events);
}

#[test]
fn what_slurm_refuses_once_is_asked_again() {
    let mut world = World::running(&["n1"]);
    world.steered.steer(World::run(1), LONG, true);
    // A controller that ends, one that was just started, and so on.
    for _ in 0..3 {
        (0..4).for_each(|_| assert_eq!(world.refused("Unexpected"), Some(Command::Requeue)));
        world.steered.note_silence();
    }
    (0..4).for_each(|_| assert_eq!(world.refused("Unexpected"), Some(Command::Requeue)));
    assert_eq!(world.look(), Some(Command::Requeue), "one that is heeded ends the row");
    (0..4).for_each(|_| assert_eq!(world.refused("Access denied"), Some(Command::Requeue)));
    assert_eq!((world.given_up(), world.ends()), (None, vec![]));
    world.refused("Access denied");
    assert!(world.given_up().unwrap().contains("asked 5 times: Access denied"), "{:?}", world.events);
    // Sentences on a request that is sent again come once.
    let words = |event: &&Event| matches!(event, Event::Words(text) if text.contains("it is asked again"));
    assert_eq!(world.events.iter().filter(words).count(), 2);
}

#[test]
fn a_run_that_waited_for_nothing_but_its_node_and_did_not_begin_is_told_as_such() {
    let waited = |reasons: &[&str]| {
        let mut world = World::new(1, 1);
        world.want(1, &["n1"]);
        world.look();
        for reason in reasons {
            world.show("PENDING", 9, reason);
            assert_eq!(world.look(), None);
        }
        world.steered.steer(World::run(1), LONG, true);
        assert_eq!(world.look(), Some(Command::Hold));
        world.show("PENDING", 0, "JobHeldUser");
        world.look();
        assert_eq!(world.ends(), [End::Stopped(None)]);
        world.events.iter().find_map(|event| match event {
            Event::Unstarted(order, waited) => Some((order.nodes().join(","), waited.get())),
            _ => None,
        })
    };
    let of_node = ["None", "Resources", "ReqNodeNotAvail", "Resources", "Priority"];
    assert_eq!(waited(&of_node), Some(("n1".to_owned(), 12.0)));
    assert_eq!(waited(&["Resources", "Licenses"]), None, "it is not the node that is waited for");
    assert_eq!(waited(&["Resources", "Licenses", "Resources", "Resources"]), Some(("n1".to_owned(), 3.0)));
    // A job that has begun is none.
    let mut world = World::running(&["n1"]);
    world.steered.steer(World::run(1), LONG, true);
    world.look();
    world.put_back(0, "JobHeldUser");
    world.look();
    assert!(!world.events.iter().any(|event| matches!(event, Event::Unstarted(..))));
}

#[test]
fn a_job_of_several_nodes_has_them_all_or_waits() {
    let mut world = World::new(2, 2);
    world.want(1, &["n1", "n1"]);
    let place = Place { node: "n2".to_owned(), rank: 2, worker: 0 };
    let mut part = World::new(2, 2);
    part.steered.want(World::run(1), 4, place.clone(), LONG);
    assert_eq!(part.look(), None, "not all of its ranks are ordered");
    assert_eq!(world.look(), None, "two workers on one node are not two on each of two");
    assert!(matches!(&world.events[..], [Event::Words(text)] if text.contains("2 on each of 2")));
    world.want(2, &["n2", "n1", "n1", "n2"]);
    assert_eq!(world.look(), Some(Command::Release("n1,n2".to_owned())));
    assert_eq!(world.ends(), [End::Stopped(None)]);
}

#[test]
fn a_job_that_is_cancelled_here_is_cancelled_there() {
    let mut world = World::new(1, 1);
    world.over_here = Some(true);
    assert_eq!((world.look(), world.look()), (Some(Command::Cancel), Some(Command::Cancel)));
    world.show("CANCELLED", 0, "None");
    assert_eq!(world.look(), None);
    assert!(world.steered.is_over);
    // A job that was given up here is left to its user.
    let mut world = World::new(1, 1);
    world.over_here = Some(false);
    assert_eq!(world.look(), None);
    assert!(world.given_up().unwrap().contains("apportion why 3"));
}

#[test]
fn a_restart_goes_on_with_the_run() {
    let mut world = World::running(&["n1"]);
    world.steered = Steered::new(world.steered.kept(), LONG);
    assert_eq!(world.look(), None);
    assert_eq!((world.ends(), world.given_up()), (vec![], None));
    // Another start of it by Slurm itself, meanwhile, is the same run.
    world.job().n_restarts += 1;
    assert_eq!(world.look(), None);
    assert!(matches!(&world.events[..], [Event::Words(text)] if text.contains("by itself")));
    assert!(world.ends().is_empty());
}

#[test]
fn a_run_is_reported_with_the_time_that_slurm_says_over_restarts_of_all_parts() {
    let mut world = World::running(&["n1"]);
    world.job().started_s = 1000;
    world.look();
    // The scheduler is away, and Slurm starts the job again by itself after 30 s.
    world.steered = Steered::new(world.steered.kept(), LONG);
    (world.job().n_restarts, world.job().submitted_s, world.job().started_s) = (1, 1030, 1151);
    world.look();
    let kept = world.steered.kept();
    world.steered = Steered::new(kept, LONG);
    world.show("COMPLETED", 9, "None");
    world.job().ran_s = Some(16);
    world.look();
    assert_eq!(world.ran(), [Some(46.0)]);
    // A scheduler that was told of the end only gets the time, too.
    let mut again = World { steered: Steered::new(world.steered.kept(), LONG), events: Vec::new(), ..world };
    again.job = None;
    again.look();
    assert_eq!((again.ends(), again.ran()), (vec![End::Exit(0)], vec![Some(46.0)]));
    // If Slurm does not state the time, neither does this.
    let mut world = World::running(&["n1"]);
    world.put_back(0, "JobHeldUser");
    world.look();
    assert_eq!(world.ran(), [None]);
}
