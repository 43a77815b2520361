//! A live scheduler with prices of workers.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::live::{Served, comes_true, command, said_with_2};

const SERVE: &str = "serve --local --cluster v100=1 --round-length 2 --state=state \
                     --policy max_sum_throughput_normalized_by_cost_perf --prices";

const SUBMIT: &str = "submit --job-type x --throughput v100=3 --steps 9 --";

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[test]
fn jobs_cost_what_the_prices_of_this_start_say() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("flat.yaml"), "{v100: 3600, k80: 1}\n").unwrap();
    fs::write(at.join("rising.csv"), "time,worker_type,price\n0,v100,3600\n1,v100,7200\n").unwrap();
    let cost = |jobs: &Value, number: usize| {
        let found = jobs.as_array().unwrap().iter().find(|one| one["job"] == number);
        found.filter(|one| one["state"] == "completed").map(|one| one["cost"].as_f64().unwrap())
    };
    let served = Served::start(at, &words(&format!("{SERVE} flat.yaml")));
    served.ask(at, &words(&format!("{SUBMIT} sleep 1")));
    served.ask(at, &words(&format!("{SUBMIT} sleep 1000")));
    let jobs = || served.json(at, &["jobs"]);
    assert!(comes_true(|| cost(&jobs(), 0).is_some()));
    let first = cost(&jobs(), 0).unwrap();
    assert!((0.8..10.0).contains(&first), "at one dollar a second, it cost {first}");
    assert_eq!(served.json(at, &["history"])[0]["cost"], json!(first));
    let csv = served.ask(at, &["jobs", "--format", "csv"]);
    assert!(csv.lines().next().unwrap().contains("starts,cost,last_end"), "{csv}");
    served.ask(at, &words("when 1 --forks 2 --limit 1h"));
    drop(served);

    let served = Served::start(at, &words(&format!("{SERVE} rising.csv")));
    assert!(served.ask(at, &["events"]).contains(r#""event":"price_change""#));
    assert_eq!(cost(&served.json(at, &["jobs"]), 0), Some(first), "what was had is paid");
    served.ask(at, &["cancel", "1"]);
    served.ask(at, &words(&format!("{SUBMIT} sleep 1")));
    let second = || cost(&served.json(at, &["jobs"]), 2);
    assert!(comes_true(|| second().is_some()));
    assert!((1.6..20.0).contains(&second().unwrap()), "at two dollars a second, it cost {:?}", second());
}

#[test]
fn prices_at_fault_are_refused_with_their_place() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("odd.yaml"), "{v100: 3600,\n p999: 1}\n").unwrap();
    fs::write(at.join("other.yaml"), "{k80: 1}\n").unwrap();
    for (file, says) in [
        ("odd.yaml", "odd.yaml:2"),
        ("other.yaml", "needs the prices of workers, and there is none of `v100`"),
        ("none.yaml", "none.yaml"),
    ] {
        let said = said_with_2(command(at, &words(&format!("{SERVE} {file}"))).output().unwrap());
        assert!(said.contains(says), "{file}: {said}");
    }
}

#[cfg(unix)]
#[test]
fn what_was_had_before_a_restart_costs_what_it_did_then() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("dear.yaml"), "{v100: 3600}\n").unwrap();
    fs::write(at.join("cheap.yaml"), "{v100: 0.0036}\n").unwrap();
    // Nothing is written at the end of a round, since none ends.
    let serve = "serve --local --cluster v100=1 --round-length 600 --state=state --policy fifo --prices";
    let served = Served::start(at, &words(&format!("{serve} dear.yaml")));
    served.ask(at, &words(&format!("{SUBMIT} sleep 1000")));
    let cost = |served: &Served| served.json(at, &["jobs"])[0]["cost"].as_f64().unwrap();
    assert!(comes_true(|| cost(&served) > 2.0));
    let before = cost(&served);
    assert_eq!(served.end(), Some(0));
    let served = Served::start(at, &words(&format!("{serve} cheap.yaml")));
    let kept = cost(&served);
    assert!(kept >= before, "it had cost {before}, and costs {kept} now");
    served.ask(at, &["cancel", "0"]);
    assert!(comes_true(|| served.json(at, &["jobs"])[0]["state"] == "cancelled"));
    let (all, last) = (cost(&served), served.json(at, &["history"])[0]["cost"].as_f64().unwrap());
    assert!(all >= before - 1.0 && (all - last).abs() < 1e-9, "{before}, then {all}, {last} in its history");
}
