//! Ranks on nodes that Slurm has given up.

use std::fs;

use apportion::{Seconds, Steps};
use serde_json::json;
use tempfile::TempDir;

use super::Options;
use super::batch::{Batch, Event, Member, View};
use super::nodes::Node;
use super::queue::{Comment, Queue};
use crate::agent::server_rank::{News, ServerRank};
use crate::agent::{Home, RankStart};
use crate::protocol::{End, JobNumber, Run};
use crate::rank::{Start, StartedBy, Steer};

const RUN: Run = Run { job: JobNumber(7), incarnation: 1 };

/// The instant at which the lease ends.
const LEASE_END: Seconds = Seconds::new(100.0);

fn server_rank(home: &Home) -> ServerRank {
    fs::create_dir_all(home.ranks()).unwrap();
    let rank = RankStart {
        run: RUN,
        submission: None,
        rank: 0,
        worker: 0,
        local_rank: 0,
        ranks_here: 1,
        world_size: 1,
        first_server: "n1".to_owned(),
        total_steps: Steps::new(1.0),
        program: serde_json::from_value(json!({"command": ["true"]})).unwrap(),
        until: LEASE_END,
        grace: Seconds::new(10.0),
    };
    let by = StartedBy::Slurm { first: 0, place: 0 };
    ServerRank::make(
        home,
        &Start { rank, by, checkpoints: home.checkpoints.clone(), worker_type: "v100".to_owned() },
    )
    .unwrap()
}

/// The ends that are heard of when Slurm shows the job in this state from 1 s on, or none: each instant, and how it ended.
fn ends(state: Option<&str>, has_begun: bool) -> Vec<(f64, End)> {
    let folder = TempDir::new().unwrap();
    let home = Home::new(&folder.path().join("n1"), &folder.path().join("checkpoints"));
    let server_rank = server_rank(&home);
    if has_begun {
        fs::write(server_rank.folder().owned(), "").unwrap();
    }
    let comment = Comment { key: "ab12".to_owned(), node: "n1".to_owned(), run: RUN, first: 0 };
    let line = state.map(|state| format!("12|{state}|NodeDown|{}", comment.text(1)));
    let lines: Vec<String> = line.into_iter().collect();
    let steer = Steer { until: LEASE_END, grace: Seconds::new(10.0), stop: None };
    let mut batch = Batch::new(comment, vec![Member::new(0, server_rank)], steer, Some(Seconds::ZERO));
    let node = Node {
        name: "n1".to_owned(),
        address: "n1".to_owned(),
        gres_type: None,
        n_workers: 1,
        n_cpus: 1,
        memory_mib: 0,
        unusable: None,
        is_unknown: false,
    };
    let options = Options::new("gpu".to_owned(), folder.path().into(), "apportion".into(), Vec::new());
    let mut ends = Vec::new();
    for second in 1..200 {
        let now = Seconds::new(f64::from(second));
        let mut queue = Queue::parse(&lines, "ab12");
        queue.asked = now - Seconds::new(0.5);
        let view = View { queue: &queue, node: &node, options: &options, now, n_free: None };
        for event in batch.look(&view) {
            if let Event::News(_, News::Ended(end)) = event {
                ends.push((now.get(), end));
            }
        }
    }
    ends
}

#[test]
fn a_rank_on_a_node_that_is_down_is_waited_for_until_its_lease_is_over() {
    let of = ends(Some("NODE_FAIL"), true);
    let [(at, End::Cut { why, is_failure: false })] = of.as_slice() else { panic!("{of:?}") };
    // The lease, the grace and some patience.
    assert!((at - 120.0).abs() < 1e-9);
    assert!(why.contains("NODE_FAIL"), "{why}");
    // Where Slurm ended it itself, it is over.
    assert!(ends(Some("TIMEOUT"), true)[0].0 < 20.0);
    // A controller without its state knows none of the jobs that run.
    assert!((ends(None, true)[0].0 - 120.0).abs() < 1e-9);
    assert!(ends(None, false)[0].0 < 50.0, "it was never given to Slurm");
}
