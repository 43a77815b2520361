//! The output of `explain` and `allocate` on small prices, on optima of 0, and without a program.

use super::command::{Ran, apportion};

/// Runs a command on a policy and a snapshot, which are written to a folder.
fn asked(command: &str, policy: &str, jobs: &str, more: &[&str]) -> Ran {
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("policy.yaml");
    let document = format!("format: apportion/policy-v1\nname: mine\nsummary: x\nkind: program\n{policy}\n");
    std::fs::write(&file, document).expect("written");
    let snapshot = format!("format: apportion/snapshot-v1\ncluster: {{v100: 2, p100: 1}}\njobs:\n{jobs}\n");
    let arguments = [&[command, "--policy", file.to_str().expect("UTF-8"), "-"], more].concat();
    apportion(&arguments, &snapshot)
}

#[test]
fn prices_that_are_small_beside_1_are_prices() {
    let policy = "maximize: min_over_jobs(throughput / steps_remaining)";
    let jobs = "  - {id: a, steps_remaining: 9.0e7, throughput: {v100: 4, p100: 1}}\n  - {id: b, scale_factor: 2, steps_remaining: 9.0e7, throughput: {v100: 3}}";
    let ran = asked("explain", policy, jobs, &["--job", "b"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // Two workers are limiting for the time that b has them, at 3 steps/s: one more is worth at least half of that, out of 9e7
    // steps.
    assert!(
        ran.stdout.contains("one worker more of v100 changes the objective by at most +"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("one worker more of p100 "), "{}", ran.stdout);
    let csv = asked("explain", policy, jobs, &["--format", "csv"]).stdout;
    let json = asked("explain", policy, jobs, &["--format", "json"]).stdout;
    let explained: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let price = explained["jobs"][1]["throughput_price"].as_f64().expect("a price");
    let line = csv.lines().nth(2).expect("a line of b");
    let cell: f64 = line.split(',').nth(4).expect("a price").parse().expect("a number");
    assert!(price < 0.0 && (cell / price - 1.0).abs() < 1e-12, "{price} {line}");
    // A loss is no smaller than its price.
    assert!(
        ran.stdout.contains("one step/s more asked of it changes the objective by at least -"),
        "{}",
        ran.stdout
    );
    let longest = "minimize: max_over_jobs(steps_remaining / throughput)";
    let ran = asked("explain", longest, jobs, &["--job", "b"]);
    assert!(
        ran.stdout.contains("one worker more of v100 changes the objective by at most -"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("one step/s more asked of it changes the objective by at least +"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_gang_is_not_told_of_idle_workers_that_are_too_few_for_it() {
    let snapshot = "format: apportion/snapshot-v1\ncluster: {v100: 4, p100: 2}\njobs:\n  - {id: a, steps_remaining: 100, throughput: {v100: 1}}\n  - {id: b, scale_factor: 4, steps_remaining: 9000, throughput: {v100: 3, p100: 0.2}}\n";
    let ran = apportion(&["explain", "--policy", "completion_rate", "-"], snapshot);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let gang = ran.stdout.lines().find(|line| line.starts_with("b ")).expect("a line of b");
    assert!(
        gang.ends_with("has time left, and of each worker type fewer workers idle than it needs at once"),
        "{gang}"
    );
}

#[test]
fn an_optimum_of_0_is_certified() {
    let jobs = "  - {id: a, throughput: {v100: 1}}\n  - {id: b, throughput: {v100: 2, p100: 1}}";
    for policy in [
        "maximize: min_over_jobs(throughput / isolated_throughput)\nfor_each_job:\n  - time_on(v100) <= 0",
        "maximize: min_over_jobs(throughput / isolated_throughput)\nconstraints:\n  - sum_over_jobs(workers_on(v100)) <= 0[workers]",
        "minimize: sum_over_jobs(sum_over_worker_types(workers_on(type)))",
    ] {
        let ran = asked("allocate", policy, jobs, &["--format", "json"]);
        assert_eq!(ran.code, Some(0), "{policy}: {}", ran.stderr);
        let decided: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert!(decided["objective"]["value"].as_f64().expect("a value").abs() < 1e-9, "{decided}");
        assert_eq!(asked("explain", policy, jobs, &[]).code, Some(0), "{policy}");
    }
}

#[test]
fn a_program_that_is_not_there_is_told_from_a_rule() {
    let ran = asked("explain", "maximize: sum_over_jobs(throughput)", "  []", &["--program", "lp"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("there are no jobs, so no program was solved"), "{}", ran.stderr);
    let ran = apportion(&["explain", "--policy", "fifo", "examples/snapshot.yaml", "--program", "lp"], "");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("this policy writes no program that could be printed"), "{}", ran.stderr);
}

#[test]
fn a_price_does_not_count_gangs_that_one_worker_more_would_let_in() {
    let jobs = "  - {id: a, throughput: {v100: 1, p100: 1}}\n  - {id: gang, scale_factor: 3, throughput: {v100: 10, p100: 0}}\n  - {id: b, throughput: {v100: 2, p100: 1}}";
    let snapshot = |v100: u32| {
        format!("format: apportion/snapshot-v1\ncluster: {{v100: {v100}, p100: 4}}\njobs:\n{jobs}\n")
    };
    let explained = |v100: u32, job: &str| {
        let ran = apportion(
            &["explain", "--policy", "max_sum_throughput_perf", "-", "--job", job],
            &snapshot(v100),
        );
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    let said = ", not counting that jobs of 4 workers would then fit there";
    let (three, four) = (explained(3, "a"), explained(4, "a"));
    assert!(!three.contains("not counting") && !four.contains("not counting"), "{three}{four}");
    let wider = jobs.replace("scale_factor: 3", "scale_factor: 4").replace("p100: 0", "p100: 5");
    let snapshot = format!("format: apportion/snapshot-v1\ncluster: {{v100: 3, p100: 4}}\njobs:\n{wider}\n");
    let ran = apportion(&["explain", "--policy", "max_sum_throughput_perf", "-", "--job", "a"], &snapshot);
    assert!(ran.stdout.contains(&format!("one worker more of v100 gains nothing{said}")), "{}", ran.stdout);
    assert!(ran.stdout.contains(&format!("(one worker more of v100{said})")), "{}", ran.stdout);
}

#[test]
fn small_shares_have_all_their_digits_in_csv() {
    let jobs = "  - {id: a, weight: 1.0e-7, throughput: {v100: 1, p100: 1}}\n  - {id: b, weight: 3, throughput: {v100: 1, p100: 1}}\n  - {id: c, weight: 3, throughput: {v100: 1, p100: 1}}\n  - {id: d, weight: 3, throughput: {v100: 1, p100: 1}}";
    let policy = "maximize: min_over_jobs(throughput / weight)";
    let csv = asked("allocate", policy, jobs, &["--format", "csv"]).stdout;
    let json = asked("allocate", policy, jobs, &["--format", "json"]).stdout;
    let decided: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let expected = decided["effective_throughput"]["a"].as_f64().expect("a number");
    let line = csv.lines().find(|line| line.starts_with("a,")).expect("a line of a");
    let found: f64 = line.rsplit(',').next().expect("a cell").parse().expect("a number");
    assert!(expected < 1e-6 && (found / expected - 1.0).abs() < 1e-12, "{line} {expected}");
}

#[test]
fn the_value_at_measured_speeds_stands_beside_that_of_a_policy_blind_to_them() {
    let snapshot = "format: apportion/snapshot-v1\ncluster: {a100: 2, t4: 2}\njobs:\n  \
                    - {id: 1, steps_remaining: 1000, throughput: {a100: 10, t4: 0}}\n  \
                    - {id: 2, steps_remaining: 1000, throughput: {a100: 10, t4: 5}}\n  \
                    - {id: 3, steps_remaining: 1000, throughput: {a100: 8, t4: 2}}\n";
    let json = |command: &str, policy: &str| -> serde_json::Value {
        let ran = apportion(&[command, "--policy", policy, "-", "--format", "json"], snapshot);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        serde_json::from_str(&ran.stdout).expect("JSON")
    };
    let value = |answer: &serde_json::Value| answer["objective"]["value_at_measured_throughputs"].as_f64();
    let [allocated, explained] = ["allocate", "explain"].map(|command| json(command, "min_total_duration"));
    let measured = value(&allocated).expect("a value");
    assert_eq!(value(&explained), Some(measured));
    assert!(
        (measured - explained["objective"]["value"].as_f64().expect("a value")).abs() > 1.0,
        "{measured}"
    );
    assert_eq!(value(&json("explain", "min_total_duration_perf")), None);
    let ran = apportion(&["explain", "--policy", "min_total_duration", "-"], snapshot);
    assert!(ran.stdout.contains(&format!("{measured} at measured throughputs")), "{}", ran.stdout);
    assert!(ran.stdout.contains(" at the throughputs that the policy sees, and no"), "{}", ran.stdout);
}

#[test]
fn a_decision_that_is_late_is_the_best_found_so_far() {
    for command in ["allocate", "explain"] {
        for policy in [
            "max_min_fairness_perf",
            "proportional_fairness",
            "min_total_duration_perf",
            "max_min_fairness_hierarchical_perf",
            "max_min_fairness_strategy_proof",
        ] {
            let late = [command, "--policy", policy, "examples/snapshot.yaml", "--time-limit", "1e-9"];
            let ran = apportion(&late, "");
            assert_eq!(ran.code, Some(4), "{policy}: {}", ran.stderr);
            let said = "the time for the decision was over: the shares are not proven to be optimal";
            assert!(ran.stderr.contains(said), "{}", ran.stderr);
            let ran = apportion(&[&late[..], &["--format", "json"]].concat(), "");
            let answer: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
            assert_eq!((ran.code, &answer["certificate"]["optimal"]), (Some(4), &false.into()), "{policy}");
            assert_eq!(answer["solve"]["out_of_time"], true);
            let is_undiscounted = answer["solve"]["undiscounted"] == true;
            assert_eq!(is_undiscounted, policy == "max_min_fairness_strategy_proof");
            assert!(answer["objective"]["before_discount"].is_null(), "{answer}");
            let number = |name: &str| answer["objective"][name].as_f64().expect("a number");
            let best =
                if answer["objective"]["sense"] == "maximize" { number("bound") } else { -number("bound") };
            let value =
                if answer["objective"]["sense"] == "maximize" { number("value") } else { -number("value") };
            assert!(value <= best, "{answer}");
        }
    }
}
