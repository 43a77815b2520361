//! Servers that can start nothing for a while, as the nodes of a Slurm whose controller is away.

use apportion_live::core::{Request, State};
use apportion_live::protocol::End;

use super::node::Heed;
use super::small::{Small, job};

#[test]
fn nothing_is_stopped_for_jobs_that_could_not_begin() {
    let mut small = Small::new("max_min_fairness_perf", &[("v100", 1)]);
    small.start("v100=1");
    small.until(5.0);
    let jobs = [0, 1].map(|_| small.submit(job(100_000)));
    let starts = |small: &Small| jobs.map(|job| small.jobs[&job].incarnation);
    let running = |small: &mut Small| jobs.map(|job| small.why(job).job.state == State::Running);
    // From the policy's second decision on they have the worker by turns, a round each.
    small.until(620.0);
    let before = (starts(&small), running(&mut small));
    small.until(740.0);
    assert_ne!(starts(&small), before.0);

    let before = (starts(&small), running(&mut small));
    assert!(before.1.contains(&true));
    small.nodes[0].is_frozen = true;
    small.until(1100.0);
    assert_eq!((starts(&small), running(&mut small)), before, "its lease is extended, round by round");
    small.nodes[0].is_frozen = false;
    small.until(1300.0);
    assert_ne!(starts(&small), before.0, "the other has its turn");
}

#[test]
fn a_run_of_the_door_is_over_when_slurm_says_so_and_not_before() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.settings.front_door = true;
    small.start("v100=1");
    small.until(5.0);
    let first = small.submit(job(100_000));
    small.until(20.0);
    (small.nodes[0].is_frozen, small.nodes[0].heed) = (true, Heed::Nothing);
    small.ask(Request::Cancel(first)).unwrap();
    small.until(400.0);
    let why = small.why(first);
    assert_eq!(why.job.state, State::Stopping);
    assert!(why.because.iter().any(|text| text.starts_with("Slurm does not answer")), "{:?}", why.because);
    // Slurm answers, and takes its time.
    small.nodes[0].is_frozen = false;
    small.until(430.0);
    let why = small.why(first);
    assert_eq!(why.job.state, State::Stopping);
    assert!(!why.because.iter().any(|text| text.starts_with("Slurm does not answer")), "{:?}", why.because);
    small.nodes[0].heed = Heed::All;
    small.until(440.0);
    assert_eq!(small.why(first).job.state, State::Cancelled);
}

#[test]
fn a_server_that_offers_no_worker_is_not_asked_to_start_again_and_again() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.start("v100=1");
    small.until(5.0);
    let first = small.submit(job(100_000));
    small.until(20.0);
    small.doom(first, &End::Lost("its folder cannot be written".to_owned()));
    small.until(21.0);
    small.nodes[0].n_offered = Some(0);
    small.until(58.0);
    let starts = small.jobs[&first].incarnation;
    assert!(starts <= 4, "{starts}");
    small.nodes[0].fates.clear();
    small.nodes[0].n_offered = None;
    small.until(70.0);
    assert_eq!((small.why(first).job.state, small.jobs[&first].incarnation), (State::Running, starts + 1));
}
