//! A job whose number is given to another one, and a job that was changed after it was taken in.

use super::*;

/// Gives the number to another job, while the controller is started anew.
fn give_out_again(world: &mut World) {
    world.show("PENDING", 0, "JobHeldUser");
    let job = world.job();
    (job.submitted_s, job.name, job.nodes) = (90, "two".to_owned(), String::new());
    world.boot = "one";
}

#[test]
fn a_number_that_was_given_out_again_is_not_taken_for_the_job() {
    let mut world = World::new(1, 1);
    assert_eq!(world.look(), None);
    give_out_again(&mut world);
    world.want(1, &["n1"]);
    assert_eq!(world.look(), None, "nothing is asked of the other");
    assert!(world.given_up().unwrap().contains("Slurm forgot its job 7"), "{:?}", world.events);
    assert!(world.given_up().unwrap().contains("`two` of ann"));
    assert!(matches!(&world.ends()[..], [End::Final(_)]) && world.steered.is_over);
    // A job that ran is lost, and the end of the other job is not its own.
    let mut world = World::running(&["n1"]);
    give_out_again(&mut world);
    world.show("COMPLETED", 9, "None");
    world.look();
    assert!(matches!(&world.ends()[..], [End::Final(why)] if why.contains("forgot")), "{:?}", world.events);
    // The two are told apart after a restart of the scheduler, too; and by their users alone.
    let mut world = World::new(1, 1);
    world.look();
    world.steered = Steered::new(world.steered.kept(), LONG);
    world.job().user = "eve".to_owned();
    world.look();
    assert!(world.given_up().unwrap().contains("of eve"));
}

#[test]
fn a_job_that_is_put_back_or_renamed_is_the_same() {
    let mut world = World::running(&["n1"]);
    world.job().name = "renamed".to_owned();
    assert_eq!((world.look(), world.given_up()), (None, None));
    world.steered.steer(World::run(1), LONG, true);
    world.look();
    world.put_back(0, "JobHeldUser");
    world.look();
    assert_eq!((world.ends(), world.given_up()), (vec![End::Stopped(None)], None));
    // A controller that forgot a change shows the state before it.
    (world.boot, world.job().n_restarts, world.job().submitted_s) = ("one", 0, 50);
    world.look();
    assert_eq!(world.given_up(), None);
    // With another name it is another job if the controller was started anew.
    world.boot = "two";
    world.job().name = "two".to_owned();
    world.look();
    assert!(world.given_up().unwrap().contains("forgot"));
}

#[test]
fn a_state_of_before_takes_over_what_slurm_shows() {
    let mut world = World::new(1, 1);
    let mut kept = world.steered.kept();
    kept.known = None;
    assert!(!serde_json::to_string(&kept).unwrap().contains("known"));
    world.steered = Steered::new(kept, LONG);
    (world.job().name, world.job().submitted_s) = ("any".to_owned(), 77);
    assert_eq!((world.look(), world.given_up()), (None, None));
    assert_eq!(world.steered.kept().known.map(|known| known.submitted_s), Some(77));
}

#[test]
fn a_job_that_asks_for_other_workers_than_before_is_let_go() {
    let changes: [(&str, Act); 6] = [
        ("asks for 2 on each of 1, and asked for 1", |world| world.job().per_node = "gres:gpu:2".to_owned()),
        ("asks for 1 on each of 2", |world| world.job().n_nodes = 2),
        ("asks for `gres:gpu:v100:1`", |world| world.job().per_node = "gres:gpu:v100:1".to_owned()),
        ("it asks for no GPU", |world| world.job().per_node = String::new()),
        ("the partition `cpu`", |world| world.job().partitions = "cpu".to_owned()),
        ("the partition `cpu,gpu`", |world| world.job().partitions = "cpu,gpu".to_owned()),
    ];
    for (says, change) in changes {
        let mut world = World::new(1, 1);
        assert_eq!(world.look(), None);
        change(&mut world);
        world.want(1, &["n1"]);
        assert_eq!((world.look(), world.look()), (None, None), "{says}");
        assert!(world.given_up().unwrap().contains(says), "{says}: {:?}", world.events);
        assert_eq!(world.ends(), [End::Stopped(None)], "{says}");
        // A job that was released for its earlier resources is held, and then let go.
        let mut world = World::new(1, 1);
        world.want(1, &["n1"]);
        world.look();
        world.show("PENDING", 9, "Resources");
        change(&mut world);
        assert_eq!(world.look(), Some(Command::Hold), "{says}");
        world.show("PENDING", 0, "JobHeldUser");
        assert_eq!(world.look(), None, "{says}");
        assert!(world.given_up().unwrap().contains(says), "{says}: {:?}", world.events);
    }
    // A job whose processes end has fewer nodes from one instant to the next.
    let mut world = World::running(&["n1"]);
    (world.job().is_completing, world.job().n_nodes) = (true, 0);
    world.look();
    assert_eq!(world.given_up(), None);
    world.job().per_node = "gres:gpu:2".to_owned();
    world.job().is_completing = false;
    world.look();
    assert!(world.given_up().unwrap().contains("asks for 2 on each of"), "{:?}", world.events);
    // A job that runs in another partition has its workers until it is over.
    let mut world = World::running(&["n1"]);
    world.job().partitions = "cpu".to_owned();
    assert_eq!(world.look(), None);
    assert!(world.given_up().unwrap().contains("the partition `cpu`") && world.ends().is_empty());
    world.show("COMPLETED", 9, "None");
    world.look();
    assert_eq!(world.ends(), [End::Exit(0)]);
}
