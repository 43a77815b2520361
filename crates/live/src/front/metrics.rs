//! Metrics of the scheduler, in the text form of Prometheus.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use crate::core::{Counters, JobView, ServerView, State};
use crate::driver::Health;

/// All states of jobs, in the order in which a job has them, with their labels.
const STATES: [(State, &str); 8] = [
    (State::Waiting, "waiting"),
    (State::Placed, "placed"),
    (State::Starting, "starting"),
    (State::Running, "running"),
    (State::Stopping, "stopping"),
    (State::Completed, "completed"),
    (State::Failed, "failed"),
    (State::Cancelled, "cancelled"),
];

/// The page of metrics. Metrics of jobs and servers are left out where these are not known at present.
pub(super) fn text(health: &Health, jobs: Option<&[JobView]>, servers: Option<&[ServerView]>) -> String {
    let mut text = String::new();
    let Counters { rounds, late_decisions, failed_decisions, starts, completed, failed, unconfirmed } =
        health.counters;
    let counters = [
        ("rounds", "Rounds decided since the scheduler's start", rounds),
        ("late_decisions", "Decisions that did not come in time", late_decisions),
        ("failed_decisions", "Decisions that failed", failed_decisions),
        ("starts", "Starts of jobs", starts),
        ("completed_jobs", "Jobs that were completed", completed),
        ("failed_jobs", "Jobs that were given up", failed),
        ("unconfirmed_ends", "Runs that were over without a word of their end", unconfirmed),
    ];
    for (name, help, value) in counters {
        metric(&mut text, &format!("{name}_total"), ("counter", help), [(String::new(), value)]);
    }
    let gauge = |text: &mut String, name: &str, help: &str, value: f64| {
        metric(text, name, ("gauge", help), [(String::new(), value)]);
    };
    let refuses = f64::from(u8::from(health.disk.is_some()));
    gauge(&mut text, "disk_refuses", "1 while the disk takes nothing", refuses);
    metric(
        &mut text,
        "epoch",
        ("gauge", "Which start of the scheduler this is"),
        [(String::new(), health.epoch)],
    );
    gauge(&mut text, "idle_seconds", "Time since the scheduler last did something", health.idle_s);
    if let Some(age) = health.decided_s_ago {
        let help = "Time since the first round of the newest decision began, 0 before";
        gauge(&mut text, "decision_age_seconds", help, age);
    }
    if let Some(jobs) = jobs {
        let count = |(state, name): (State, &str)| {
            (format!("{{state=\"{name}\"}}"), jobs.iter().filter(|job| job.state == state).count())
        };
        let help = "Jobs by state; of those that are over, the last 1000";
        metric(&mut text, "jobs", ("gauge", help), STATES.map(count));
    }
    if let Some(servers) = servers {
        workers(&mut text, servers);
    }
    text
}

fn workers(text: &mut String, servers: &[ServerView]) {
    let mut by_type: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for server in servers {
        let [joined, up, held] = by_type.entry(&server.worker_type).or_default();
        *joined += server.n_workers;
        if server.is_reachable && server.drained.is_none() {
            *up += server.n_offered;
        }
        *held += server.jobs.iter().filter(|jobs| !jobs.is_empty()).count();
    }
    let sets = [
        ("workers_joined", "Workers of servers that have joined"),
        ("workers_up", "Workers that are given jobs"),
        ("workers_held", "Workers that a job holds"),
    ];
    for (place, (name, help)) in sets.into_iter().enumerate() {
        let samples = by_type.iter().map(|(worker_type, counts)| {
            (format!("{{worker_type=\"{}\"}}", escaped(worker_type)), counts[place])
        });
        metric(text, name, ("gauge", help), samples);
    }
}

fn metric<V: Display>(
    text: &mut String,
    name: &str,
    (kind, help): (&str, &str),
    samples: impl IntoIterator<Item = (String, V)>,
) {
    // Writing to text does not fail.
    let _ = writeln!(text, "# HELP apportion_{name} {help}.\n# TYPE apportion_{name} {kind}");
    for (labels, value) in samples {
        let _ = writeln!(text, "apportion_{name}{labels} {value}");
    }
}

/// A label's value, escaped as between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_by_state_and_type() {
        let health = Health {
            epoch: 3,
            now_s: 9.0,
            idle_s: 0.5,
            decided_s_ago: Some(2.0),
            disk: Some("full".into()),
            counters: Counters { rounds: 7, ..Counters::default() },
        };
        let server = |name: &str, drained: Option<String>| ServerView {
            server: name.into(),
            worker_type: "a\"b".into(),
            n_workers: 2,
            n_offered: 2,
            is_reachable: true,
            heard_s_ago: Some(0.1),
            drained,
            is_leaving: false,
            disk: None,
            closed: None,
            workers: [0, 1].map(apportion::index::Id::from_index).to_vec(),
            jobs: vec![vec![crate::protocol::JobNumber(4)], Vec::new()],
        };
        let servers = [server("one", None), server("two", Some("repairs".into()))];
        let said = text(&health, Some(&[]), Some(&servers));
        for line in [
            "apportion_rounds_total 7",
            "apportion_disk_refuses 1",
            "apportion_epoch 3",
            "apportion_decision_age_seconds 2",
            "apportion_jobs{state=\"running\"} 0",
            "apportion_workers_joined{worker_type=\"a\\\"b\"} 4",
            "apportion_workers_up{worker_type=\"a\\\"b\"} 2",
            "apportion_workers_held{worker_type=\"a\\\"b\"} 2",
        ] {
            assert!(said.lines().any(|other| other == line), "{line} in\n{said}");
        }
        assert!(!text(&health, None, None).contains("apportion_jobs"));
    }
}
