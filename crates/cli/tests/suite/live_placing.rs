//! `serve` with policies that decide in each round on which workers jobs run, without shares.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::live::{Served, comes_true, command, said_with_2};

fn submit(served: &Served, at: &Path, (workers, steps): (&str, &str), sleep: &str) {
    let job = ["submit", "--job-type", "mine", "--throughput", "v100=1", "--scale-factor", workers];
    let program = ["--steps", steps, "--", "sleep", sleep];
    served.ask(at, &[&job[..], &program].concat());
}

#[test]
fn they_run_jobs_to_their_end_and_over_a_restart() {
    for policy in ["deepshare", "dual_agent", "random_cells"] {
        let folder = TempDir::new().unwrap();
        let at = folder.path();
        let words =
            ["serve", "--local", "--cluster", "v100=2", "--state=state", "--round-length", "2", "--policy"];
        let arguments = [&words[..], &[policy]].concat();
        let mut served = Served::start(at, &arguments);
        for workers in ["1", "2", "1", "1"] {
            submit(&served, at, (workers, "5"), "0.3");
        }
        let states = |served: &Served| -> Vec<Value> {
            let jobs = served.json(at, &["jobs"]);
            jobs.as_array().unwrap().iter().map(|job| job["state"].clone()).collect()
        };
        assert!(comes_true(|| states(&served).iter().any(|state| state == "completed")), "{policy}");
        assert_eq!(served.end(), Some(0));
        served = Served::start(at, &arguments);
        assert!(comes_true(|| states(&served).iter().all(|state| state == "completed")), "{policy}");

        // The two jobs cannot run beside each other.
        submit(&served, at, ("2", "900"), "900");
        submit(&served, at, ("2", "900"), "900");
        assert!(comes_true(|| ["4", "5"].iter().any(|job| {
            let why = served.ask(at, &["why", job]);
            assert!(!why.contains("% of the time") && !why.contains("priority on"), "{policy}: {why}");
            why.contains("The policy places jobs itself, each round anew")
        })));
        let why = served.json(at, &["why", "4"]);
        let of_type = &why["worker_types"][0];
        assert!(of_type["share"].is_null() && of_type["deficit_s"].is_null(), "{policy}: {why}");
        for job in ["4", "5"] {
            served.ask(at, &["cancel", job]);
        }
        assert!(comes_true(|| states(&served)
            .iter()
            .all(|state| state == "completed" || state == "cancelled")));
        let log = served.ask(at, &["events"]);
        assert!(
            log.contains(policy) && log.contains("\"event\":\"lease\"") && !log.contains("allocated"),
            "{log}"
        );
    }
}

#[test]
fn what_they_cannot_do_is_refused_with_the_reason() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let usual =
        ["serve", "--cluster", "v100=32", "--servers", "v100=2", "--policy", "deepshare", "--state=state"];
    for flag in ["--decision-limit", "--reset-interval"] {
        let said = said_with_2(command(at, &[&usual[..], &[flag, "5"]].concat()).output().unwrap());
        let says = format!("{flag}: the policy `deepshare` places jobs itself, each round");
        assert!(said.contains(&says) && said.contains("leave it out"), "{said}");
    }
    let served = Served::start(at, &usual);
    submit(&served, at, ("8", "5"), "1");
    let large = "submit --job-type mine --throughput v100=1 --scale-factor 16 --steps 5 -- true";
    let said = served.refused(at, &large.split(' ').collect::<Vec<_>>());
    let says = "the policy `deepshare` could place it on no workers of the cluster: a job needs 16 workers, which no cell";
    assert!(said.contains(says), "{said}");
    assert_eq!(served.json(at, &["jobs"]).as_array().unwrap().len(), 1);

    let names = ["a", "b", "c", "d", "e", "f"];
    let speeds = names.map(|_| "1.0").join(", ");
    let table = format!(
        "format: apportion/throughputs-v1\nname: six\nunit: steps/s\nsource: {{who: a test}}\n\
         worker_types: [{}]\nrows: [{{job_type: x, scale_factor: 1, consolidated: [{speeds}]}}]\n",
        names.join(", ")
    );
    fs::write(at.join("six.yaml"), table).unwrap();
    let cluster = names.map(|name| format!("{name}=1")).join(",");
    let six = [
        "serve",
        "--cluster",
        &cluster,
        "--throughputs",
        "six.yaml",
        "--state=six",
        "--policy",
        "dual_agent",
    ];
    let said = said_with_2(command(at, &six).output().unwrap());
    assert!(said.contains("the policy `dual_agent` cannot place jobs on the cluster `a=1,"), "{said}");
    assert!(
        said.contains("6 worker types, and at most 5") && said.contains("max_min_fairness_perf"),
        "{said}"
    );
}
