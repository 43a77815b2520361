//! `apportion bench` as scripts run it, and the partitioned baseline against the exact optimum.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use apportion::index::Id;
use apportion::{PolicyOptions, Problem, Throughputs};
use apportion_published::plugin;
use apportion_studies::benchmark::{Instance, Part, Results, Status, partition, split};
use proptest::prelude::*;

pub(crate) fn bench(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_apportion"))
        .arg("bench")
        .args(arguments)
        .output()
        .expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

pub(crate) fn results(arguments: &[&str]) -> Results {
    let (code, stdout, stderr) = bench(&[arguments, &["--format", "json"]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    serde_json::from_str(&stdout).expect("results are JSON of their own format")
}

#[test]
fn every_backend_agrees_on_the_optimum_and_says_what_it_took() {
    let results = results(&[
        "--policy",
        "max_min_fairness_perf,isolated",
        "--instance",
        "osdi20,random",
        "--sizes",
        "40",
        "--limit",
        "60",
    ]);
    assert_eq!(results.format, "apportion/bench-v1");
    let done = |row: &&apportion_studies::benchmark::Row| row.status == Status::Done;
    for instance in ["osdi20", "random-3x10"] {
        let values: Vec<f64> = results
            .rows
            .iter()
            .filter(done)
            .filter(|row| row.instance == instance && row.optimal == Some(true))
            .filter_map(|row| row.objective)
            .collect();
        assert!(values.len() >= 2, "{instance}: default and clarabel at least");
        assert!(values.iter().all(|value| (value - values[0]).abs() <= 1e-6 * values[0]), "{values:?}");
    }
    for row in results.rows.iter().filter(done) {
        let seconds = row.seconds.expect("a done case has times");
        assert!(seconds.total > 0.0 && row.repeats >= 1 && row.warm_ups == Some(1), "{row:?}");
        let (least, most) = (row.clock_min_seconds, row.clock_max_seconds);
        assert!(least <= Some(seconds.total) && Some(seconds.total) <= most, "{row:?}");
        let (least, most) = (row.processor_min_seconds, row.processor_max_seconds);
        assert!(least <= seconds.processor && seconds.processor <= most, "{row:?}");
        assert_eq!(row.backend == "rule", row.policy == "isolated");
    }
}

/// Each decision but the first counts, as many as are asked for, and all results but times are reproducible.
#[test]
fn a_case_is_repeated_as_often_as_asked_after_one_to_warm_up() {
    let asked = ["--policy", "max_min_fairness_perf,isolated", "--instance", "random", "--sizes", "12"];
    let more = ["--backend", "default", "--partitions", "2", "--limit", "60"];
    let of = |repeats: &str| results(&[&asked[..], &more, &["--repeats", repeats]].concat());
    let (three, one) = (of("3"), of("1"));
    assert!(!three.system.processor.is_empty());
    for (many, single) in three.rows.iter().zip(&one.rows) {
        assert_eq!((many.repeats, many.warm_ups), (3, Some(1)), "{many:?}");
        assert_eq!((single.repeats, single.warm_ups), (1, Some(1)), "{single:?}");
        assert!(many.cost_range_seconds().is_some() && single.cost_range_seconds().is_none());
        let untimed = |row: &apportion_studies::benchmark::Row| {
            let mut row = row.clone();
            (row.seconds, row.repeats) = (None, 0);
            (row.processor_min_seconds, row.processor_max_seconds) = (None, None);
            (row.clock_min_seconds, row.clock_max_seconds) = (None, None);
            (row.memory_before_bytes, row.memory_peak_bytes) = (None, None);
            row
        };
        assert_eq!(untimed(many), untimed(single));
    }
    let (code, _, stderr) = bench(&[&asked[..], &["--repeats", "0"]].concat());
    assert!(code == Some(2) && stderr.contains("--repeats"), "{stderr}");
}

/// A limit that ends the repeats early leaves the finished ones to count.
#[test]
fn the_limit_leaves_the_decisions_that_were_done() {
    let asked = ["--policy", "max_min_fairness_perf", "--instance", "random", "--sizes", "300"];
    let more = ["--backend", "default", "--repeats", "10000", "--limit", "0.3"];
    let row = &results(&[&asked[..], &more].concat()).rows[0];
    assert!(row.status == Status::Done && row.repeats < 10_000, "{row:?}");
    assert!(row.seconds.is_some() && row.objective.is_some(), "{row:?}");
}

#[test]
fn a_table_says_of_what_processor_and_measure_its_times_are() {
    let asked = ["--policy", "max_min_fairness_perf", "--instance", "random", "--sizes", "6"];
    let (code, stdout, stderr) = bench(&[&asked[..], &["--backend", "default", "--repeats", "3"]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains(" time of one decision, after one to warm up: median (least-most)"), "{stdout}");
    assert!(stdout.contains("\nprocessor: ") && stdout.contains(" cores; "), "{stdout}");
    let line = stdout.lines().find(|line| line.starts_with("max_min_fairness_perf")).expect("a row");
    assert!(line.contains('(') && line.contains('-') && line.ends_with(" ms"), "{line}");
    assert!(stdout.contains("repeats  processor ms  clock ms"), "{stdout}");
}

/// Policies that repeat their last answer while no job comes or goes are timed where they decide.
#[test]
fn every_repetition_is_a_decision_from_nothing() {
    let arguments = ["--policy", "completion_rate", "--instance", "osdi20-distinct", "--sizes", "12"];
    let row = &results(&[&arguments[..], &["--limit", "60"]].concat()).rows[0];
    assert!(row.repeats > 1, "{row:?}");
    assert!(row.objective.is_some() && row.solves == Some(1), "{row:?}");
}

/// A limit that ends the repeats is reported, and one below a single decision leaves nothing done.
#[test]
fn a_limit_says_how_many_repeats_were_made() {
    let asked = [
        "--policy",
        "max_min_fairness_perf",
        "--instance",
        "random",
        "--sizes",
        "200",
        "--backend",
        "default",
    ];
    let cut = [&asked[..], &["--repeats", "10000", "--limit", "0.5"]].concat();
    let rows = results(&cut).rows;
    let row = &rows[0];
    assert_eq!((row.status, row.cut_by), (Status::Done, Some(Status::Limit)), "{row:?}");
    assert!((1..10_000).contains(&row.repeats), "{row:?}");
    let said = format!("{} of 10000 repeats were made: not done within 0.5 s", row.repeats);
    assert_eq!(row.message.as_ref(), Some(&said));
    let (_, table, _) = bench(&cut);
    assert!(table.contains(", cut short\n") && table.contains(" of 10000 repeats were made"), "{table}");
    assert_eq!(results(&[&asked[..], &["--repeats", "2", "--limit", "60"]].concat()).rows[0].cut_by, None);
    let (code, csv, _) = bench(&[&asked[..], &["--limit", "0.000001", "--format", "csv"]].concat());
    assert!(code == Some(4) && csv.contains(",limit,not done within 0.000001 s,"), "{csv}");
    assert!(csv.lines().next().is_some_and(|head| head.ends_with(",cut_by")), "{csv}");
}

#[test]
fn levels_of_jobs_that_are_much_alike_need_no_program() {
    let policies =
        "max_min_fairness_perf,max_min_fairness_hierarchical_perf,max_min_fairness_water_filling_perf";
    let asked = ["--policy", policies, "--sizes", "2048", "--seeds", "0,1", "--backend", "default"];
    for row in results(&[&asked[..], &["--limit", "600"]].concat()).rows {
        assert_eq!(
            (row.strategy.as_deref(), row.backend_used.as_deref()),
            (Some("singles"), None),
            "{row:?}"
        );
        assert!(row.optimal == Some(true) && row.fallbacks == Some(0), "{row:?}");
        assert!(row.gap_relative.is_some_and(|gap| gap < 2e-9), "{row:?}");
        let expected = if row.policy.contains("hierarchical") { 2..9 } else { 1..3 };
        assert!(
            row.solves.is_some_and(|solves| expected.contains(&solves)),
            "a level a scarce type: {row:?}"
        );
    }
}

#[test]
fn pairs_of_unlike_jobs_take_programs_over_their_kinds() {
    let policies = "max_min_fairness_packed,finish_time_fairness_packed,min_total_duration_packed,\
                    max_min_fairness_water_filling_packed,max_min_fairness_hierarchical_packed";
    let jobs = ["--instance", "osdi20-distinct", "--sizes", "300", "--backend", "default", "--limit", "600"];
    for row in results(&[&["--policy", policies], &jobs[..]].concat()).rows {
        assert!(row.optimal == Some(true) && row.fallbacks == Some(0), "{row:?}");
        assert!(row.gap_relative.is_some_and(|gap| gap < 2e-9), "{row:?}");
        // Over jobs, there would be two for each.
        let few = row.n_rows.is_some_and(|rows| rows < 300);
        assert!(few || cfg!(not(feature = "highs")), "{row:?}");
    }
}

#[test]
fn jobs_on_a_few_of_many_types_are_not_tried_in_vain() {
    let on = |policy: &str, sizes: &str, types: &str| {
        let asked = ["--policy", policy, "--instance", "restricted", "--sizes", sizes, "--types", types];
        results(&[&asked[..], &["--backend", "default", "--limit", "600"]].concat()).rows.swap_remove(0)
    };
    for (policy, jobs, types) in [
        ("max_min_fairness_perf", "500", "456"),
        ("max_min_fairness_perf", "600", "100"),
        ("max_sum_throughput_perf", "600", "100"),
    ] {
        let row = on(policy, jobs, types);
        assert!(row.n_columns.is_some_and(|columns| columns >= 2000) && row.optimal == Some(true), "{row:?}");
        assert!(row.solves == Some(2) && row.fallbacks == Some(0), "{row:?}");
    }
}

#[test]
fn a_backend_that_lacks_what_a_program_needs_declines() {
    let policy = ["--policy", "proportional_fairness", "--instance", "random", "--sizes", "12"];
    let results = results(&[&policy[..], &["--backend", "default,good_lp-microlp"]].concat());
    let status: Vec<Status> = results.rows.iter().map(|row| row.status).collect();
    assert_eq!(status, [Status::Done, Status::Declined]);
    assert!(results.rows[1].message.as_ref().is_some_and(|message| message.contains("does not support")));
}

#[test]
fn what_runs_out_of_memory_is_marked_and_larger_ones_are_not_tried() {
    let arguments = ["--policy", "max_min_fairness_perf", "--backend", "default", "--memory-limit", "0"];
    let (code, stdout, stderr) = bench(&[&arguments[..], &["--sizes", "20,40", "--format", "csv"]].concat());
    if !Path::new("/proc/self/status").exists() {
        eprintln!("skipped: this system does not tell a process's memory");
        return;
    }
    assert_eq!(code, Some(4), "{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].starts_with("policy,instance,n_jobs,n_types,seed,backend,partitions,status,message,"));
    assert!(lines[1].contains(",memory,"), "{stdout}");
    assert!(lines[2].contains(",skipped,memory at 20 jobs,"), "{stdout}");
}

#[test]
fn names_that_do_not_exist_are_refused() {
    for (arguments, expected) in [
        (["--policy", "max_min_fairnes", "--sizes", "5"], "max_min_fairness"),
        (["--policy", "fifo", "--instance", "osdi21"], "osdi20"),
        (["--policy", "max_min_fairness", "--backend", "abacus"], "highs-simplex"),
        (["--policy", "max_min_fairness", "--partitions", "0"], "0 parts"),
        (["--policy", "max_min_fairness", "--limit", "0"], "limit"),
        (["--instance", "random", "--sizes", "5"], "--policy"),
    ] {
        let (code, _, stderr) = bench(&arguments);
        if expected == "highs-simplex" && !cfg!(feature = "highs") {
            continue;
        }
        assert_eq!(code, Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

/// Instances of which no case can be made are refused before any is run, with their flag or file.
#[test]
fn bad_instances_are_refused_before_any_case_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("its name is text").to_owned()
    };
    let good = file("good.json", include_str!("../../../../examples/snapshot.yaml"));
    let corrupt = file("corrupt.json", "{\"format\": \"apportion/snapshot-v1\", \"clus");
    let (missing, inside) = (format!("{good}.not"), folder.path().to_str().expect("text"));
    let random: [&[&str]; 8] = [
        &["--sizes", "0"],
        &["--types", "0"],
        &["--types", "1000000000000"],
        &["--sizes", "1000000000000"],
        &["--heterogeneity", "0.5"],
        &["--heterogeneity", "nan"],
        &["--density", "0"],
        &["--density", "2"],
    ];
    for flag in random {
        let drawn = ["--policy", "isolated", "--instance", "random"];
        let sized: &[&str] = if flag[0] == "--sizes" { &[] } else { &["--sizes", "5"] };
        let (code, stdout, stderr) = bench(&[&drawn[..], sized, flag].concat());
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{flag:?}: {stderr}");
        assert!(stderr.contains("expected") && stderr.contains(flag[0]), "{flag:?}: {stderr}");
    }
    for (snapshots, named) in [
        (vec![good.as_str(), &missing], missing.as_str()),
        (vec![&corrupt], &corrupt),
        (vec![inside], inside),
        (vec!["-"], "--snapshot -"),
    ] {
        let (code, stdout, stderr) =
            bench(&[&["--policy", "isolated", "--snapshot"], &snapshots[..]].concat());
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{snapshots:?}: {stderr}");
        assert!(stderr.contains(named), "{snapshots:?}: {stderr}");
    }
    let (code, stdout, stderr) = bench(&["--policy", "isolated", "--snapshot", &good, "--sizes", "20,200"]);
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    assert!(stderr.contains("a snapshot has jobs of its own") && stderr.contains("`--instance`"), "{stderr}");
    let (code, _, stderr) = bench(&["--policy", "isolated", "--types", "5", "--sizes", "5"]);
    assert!(code == Some(2) && stderr.contains("`--types` is of random and restricted"), "{stderr}");
    let throughputs = ["--policy", "isolated", "--throughputs", "nope", "--snapshot", &good];
    let (code, _, stderr) = bench(&throughputs);
    assert!(code == Some(2) && stderr.contains("unknown throughputs `nope`"), "{stderr}");
}

/// A large snapshot is read where it is measured: its fault is reported in full.
#[test]
fn a_large_snapshot_that_is_none_is_bad_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large.json");
    let blank = " ".repeat(5 << 20);
    fs::write(&path, format!("{{\"format\": \"apportion/snapshot-v1\",{blank}\"clusters\": 1}}"))
        .expect("a file");
    let path = path.to_str().expect("its name is text");
    let (code, stdout, stderr) = bench(&["--policy", "isolated", "--snapshot", path, "--format", "json"]);
    assert_eq!(code, Some(2), "{stderr}");
    let results: Results = serde_json::from_str(&stdout).expect("what was found is shown");
    let message = results.rows[0].message.as_deref().expect("a reason");
    assert!(message.contains("clusters") && message.contains("large.json:1:"), "{message}");
}

#[test]
fn a_table_says_why_cases_were_not_done() {
    let arguments = ["--policy", "max_min_fairness_perf,proportional_fairness", "--instance", "random"];
    let rest = ["--sizes", "6,6", "--seeds", "0,0", "--backend", "default,good_lp-microlp,separable,default"];
    let (code, stdout, stderr) = bench(&[&arguments[..], &rest].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let (_, why) = stdout.split_once("\nwhy:\n").expect("reasons under the tables");
    let reason = |policy: &str, backend: &str| {
        let place = format!("  {policy}, random-3x10, 6 jobs, {backend}: ");
        let found: Vec<&str> = why.lines().filter_map(|line| line.strip_prefix(&place)).collect();
        assert!(found.len() <= 1, "asked for twice, measured once: {why}");
        found.first().copied().unwrap_or_default().to_owned()
    };
    assert!(reason("proportional_fairness", "good_lp-microlp").starts_with("declined: "), "{why}");
    assert!(reason("max_min_fairness_perf", "separable").starts_with("declined: "), "{why}");
    assert_eq!(reason("max_min_fairness_perf", "good_lp-microlp"), "", "noted above");
    assert_eq!(reason("max_min_fairness_perf", "default"), "", "done");
}

/// A backend without dual values proves nothing about any program: that is no failure, and is noted once.
#[test]
fn a_backend_that_proves_nothing_is_noted_once_for_all_cases() {
    let asked = ["--policy", "max_min_fairness_perf,min_total_duration_perf", "--instance", "random,osdi20"];
    let more = ["--sizes", "6", "--backend", "default,good_lp-microlp,separable", "--limit", "60"];
    let (code, stdout, stderr) = bench(&[&asked[..], &more].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let note =
        "note: good_lp-microlp gives no dual values, so nothing proves its optima: 4 cases without a time";
    assert_eq!(stdout.matches(note).count(), 1, "{stdout}");
    assert_eq!(stdout.matches("dual values").count(), 1, "{stdout}");
    assert!(!stdout.contains("failed") && stdout.contains("unproven"), "{stdout}");
    assert_eq!(stdout.matches("\n  4 cases, separable: declined: ").count(), 1, "{stdout}");
    let rows = results(&[&asked[..], &more].concat()).rows;
    let of = |backend: &str| {
        rows.iter().filter(|row| row.backend == backend).map(|row| row.status).collect::<Vec<_>>()
    };
    assert_eq!(of("good_lp-microlp"), [Status::Unproven; 4]);
    let alone = ["--policy", "max_min_fairness_perf", "--sizes", "6", "--backend", "good_lp-microlp"];
    assert_eq!(bench(&alone).0, Some(4), "no case is done");
}

#[test]
fn more_parts_than_jobs_are_refused_or_declined() {
    let common = ["--policy", "max_min_fairness_perf", "--instance", "random", "--backend", "default"];
    let many = ["--sizes", "5,20", "--partitions", "1000000000000"];
    let (code, _, stderr) = bench(&[&common[..], &many].concat());
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("--partitions") && stderr.contains("at most 20"), "{stderr}");
    let rows = results(&[&common[..], &["--sizes", "5,20", "--partitions", "6"]].concat()).rows;
    let status: Vec<Status> = rows.iter().map(|row| row.status).collect();
    assert_eq!(status, [Status::Done, Status::Declined, Status::Done, Status::Done]);
}

/// The measured decision stays, whatever becomes of the changes after it.
#[test]
fn a_decision_is_done_though_changes_are_not_measured() {
    let jobs = ["--instance", "random", "--sizes", "10", "--backend", "default", "--partitions", "2"];
    let policies = "max_min_fairness_perf,max_min_fairness_packed,isolated";
    let rows = results(&[&["--policy", policies, "--changes", "4"], &jobs[..]].concat()).rows;
    for row in &rows {
        assert!(row.status == Status::Done && row.seconds.is_some(), "{row:?}");
        let measured = row.policy == "max_min_fairness_perf" && row.partitions == 1;
        assert_eq!(row.change_p50_seconds.is_some(), measured, "{row:?}");
        let said =
            row.message.as_ref().is_some_and(|message| message.starts_with("changes were not measured: "));
        assert_eq!(said, !measured, "{row:?}");
    }
    // These are more changes than there is time for.
    let long = ["--policy", "max_min_fairness_perf", "--changes", "100000000", "--limit", "1"];
    let rows =
        results(&[&long[..], &["--instance", "random", "--sizes", "10", "--backend", "default"]].concat())
            .rows;
    assert!(rows[0].status == Status::Done && rows[0].seconds.is_some(), "{rows:?}");
    assert!(
        rows[0].message.as_ref().is_some_and(|message| message.ends_with("not done within 1 s")),
        "{rows:?}"
    );
}

pub(crate) fn osdi20() -> Arc<Throughputs> {
    Throughputs::embedded("osdi20").expect("embedded")
}

fn exact(problem: &Problem, policy: &str) -> f64 {
    let mut policy = plugin::catalog().policy(policy).expect("a policy");
    policy.allocate(problem).expect("an optimum").objective.expect("a program").value
}

fn in_parts(problem: &Problem, parts: &[Part], policy: &str) -> f64 {
    let catalog = plugin::catalog();
    let make = || {
        let built = catalog.program(policy, &PolicyOptions::default());
        built.expect("a policy").expect("a program")
    };
    let partitioned = partition::decide(problem, parts, make).expect("parts that are solved");
    make().value_of(problem, &partitioned.allocation).expect("a value")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn parts_are_a_partition_and_lose_what_the_whole_does_not(
        n_jobs in 30_usize..90, n_parts in 1_usize..4, seed in 0_u64..1000, packed in any::<bool>(),
    ) {
        let kind = if packed {
            Instance::Matrix { throughputs: "osdi20".to_owned(), distinct: false }
        } else {
            Instance::Random { types: 3, heterogeneity: 10.0, density: 0.8 }
        };
        let problem = kind.problem(n_jobs, seed, &osdi20()).expect("a problem");
        let Ok(parts) = split(&problem, n_parts, seed) else {
            // Jobs of 8 workers need parts of 8.
            return Ok(());
        };
        let mut jobs: Vec<usize> = parts.iter().flat_map(|part| part.jobs.iter().map(|job| job.index())).collect();
        jobs.sort_unstable();
        prop_assert_eq!(jobs, (0..n_jobs).collect::<Vec<_>>());
        for kind in problem.cluster().types().ids() {
            let n = |of: &Problem| of.cluster().types()[kind].n_workers;
            prop_assert_eq!(parts.iter().map(|part| n(&part.problem)).sum::<u32>(), n(&problem));
        }
        let policies: &[&str] = if packed {
            &["max_min_fairness_packed"]
        } else {
            &["max_min_fairness_perf", "max_sum_throughput_perf", "min_total_duration_perf"]
        };
        for policy in policies {
            let (whole, apart) = (exact(&problem, policy), in_parts(&problem, &parts, policy));
            let loss = if *policy == "min_total_duration_perf" { apart - whole } else { whole - apart };
            prop_assert!(loss >= -1e-6 * whole.abs(), "{policy}: {whole} {apart}");
            if n_parts == 1 {
                prop_assert!(loss <= 1e-6 * whole.abs(), "{policy}: {whole} {apart}");
            }
        }
    }
}

#[test]
fn a_policy_without_a_solution_is_told_as_such() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let policy = |name: &str, floor: &str| {
        let head = format!("format: apportion/policy-v1\nname: {name}\nsummary: s\nkind: program\n");
        let body = format!("maximize: sum_over_jobs(throughput)\nfor_each_job:\n  - time_on(a) >= {floor}\n");
        file(&format!("{name}.yaml"), &(head + &body))
    };
    let jobs = "format: apportion/snapshot-v1\ncluster: {a: 1}\njobs:\n- {id: red, throughput: {a: 1}}\n- {id: blue, throughput: {a: 2}}\n";
    let jobs = file("jobs.yaml", jobs);
    let (never, well) = (policy("never", "0.9"), policy("well", "0.1"));
    let run = |policies: &str| bench(&["--policy", policies, "--snapshot", &jobs, "--format", "json"]);
    let (code, stdout, stderr) = run(&never);
    assert_eq!(code, Some(3), "{stderr}");
    let found: Results = serde_json::from_str(&stdout).expect("results");
    let default = found.rows.iter().find(|row| row.backend == "default").expect("a row");
    assert_eq!(default.status, Status::Infeasible, "{default:?}");
    let message = default.message.as_deref().expect("a reason");
    assert!(message.contains("job `red`") || message.contains("job `blue`"), "{message}");
    assert!(!message.contains("at position"), "{message}");
    assert!(stderr.contains("no case was done: the rows say why"), "{stderr}");
    assert_eq!(run(&format!("{never},{well}")).0, Some(0), "one is done");
}
