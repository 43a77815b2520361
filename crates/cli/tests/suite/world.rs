//! The worlds of learned schedulers against published and independently measured figures.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on should stop, and says what it skips"
)]

use std::path::{Path, PathBuf};

use apportion::spec::Fidelity;
use apportion::spec::Source;
use apportion::throughput::elastic::{ElasticThroughputs, SurfaceOptions};
use apportion::throughput::spread::SpreadThroughputs;
use apportion_published::deepshare::trace::read_deepshare_trace;
use apportion_published::deepshare::{self, DeepSharePolicy, DeepShareSpeeds};
use apportion_published::dl2::{
    self, Dl2Options, Dl2Policy, Dl2Speeds, SpeedModel, SpeedOptions, WorkloadOptions,
};
use apportion_published::world::{Summary, WorldJob, run};

/// The traces that DeepShare bundles; none if they are not at hand.
fn deepshare_traces() -> Option<Vec<Vec<WorldJob>>> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/deepshare/traces"));
    if !folder.is_dir() {
        eprintln!("skipped: DeepShare's traces are not at {}", folder.display());
        return None;
    }
    let train = (0..9).map(|n| format!("train/jobset{}/episode{}", n / 3, n % 3));
    let paths = train.chain(["simulate/trace0".to_owned(), "real/trace0".to_owned()]);
    let tables = SpreadThroughputs::deepshare();
    let read = |path: PathBuf| {
        let traced = read_deepshare_trace(&Source::load(path).unwrap()).unwrap();
        deepshare::from_trace(&tables, &traced).unwrap()
    };
    Some(paths.map(|path| read(folder.join(path))).collect())
}

fn play_deepshare(name: &str, traces: &[Vec<WorldJob>]) -> Vec<Summary> {
    let tables = SpreadThroughputs::deepshare();
    let (_, policy) = deepshare::parse_named(name).unwrap();
    let play = |(seed, jobs): (usize, &Vec<WorldJob>)| {
        let fidelity = Fidelity::Published;
        let mut world = deepshare::world(&tables, fidelity, policy.after_round());
        let mut speeds = DeepShareSpeeds::new(&tables, fidelity);
        let mut policy = DeepSharePolicy::new(policy, speeds.clone(), fidelity, seed as u64);
        world.reset(jobs);
        run(&mut world, &mut speeds, &mut policy, deepshare::LIMITS).unwrap()
    };
    traces.iter().enumerate().map(play).collect()
}

/// Service hours, its 90th and 99th percentile in seconds, utilization, completion and makespan hours: means over the
/// eleven bundled traces of a second implementation, in Python, of the published simulator. Rules without chance agree
/// to the digits it printed; random ones within what another seed changes.
#[test]
fn deepshares_published_simulator_is_repeated() {
    let Some(traces) = deepshare_traces() else { return };
    let exact = [
        ("las", [1.75, 8809.0, 9870.0, 0.915, 38.7, 76.8]),
        ("srtf", [1.72, 8468.0, 9285.0, 0.932, 69.7, 73.0]),
        ("greedy_always", [1.52, 7309.0, 8779.0, 0.997, 24.6, 57.7]),
        ("greedy_gain", [1.42, 6477.0, 7810.0, 0.788, 30.5, 69.2]),
        ("greedy_gain_0.4", [1.22, 5345.0, 5973.0, 0.645, 34.7, 75.3]),
    ];
    let random = [
        ("random_base", [1.51, 6845.0, 9000.0, 0.633, 36.5, 89.2]),
        ("random_hybrid", [1.56, 7405.0, 9307.0, 0.969, 24.5, 60.3]),
    ];
    let controls = [
        ("true_las", [1.73, 0.0, 9387.0, 0.925, 60.8]),
        ("true_srtf", [1.73, 0.0, 9720.0, 0.909, 39.0]),
        ("true_las_narrow", [1.44, 0.0, 8814.0, 0.932, 51.3]),
        ("true_srtf_narrow", [1.44, 0.0, 8328.0, 0.933, 30.6]),
        ("fifo", [1.81, 0.0, 10827.0, 0.920, 40.6]),
        ("fifo_narrow", [1.62, 0.0, 10767.0, 0.919, 35.3]),
    ];
    let units = [0.01, 1.0, 1.0, 0.001, 0.1, 0.1];
    // The controls were measured on the first episode of each job set, and the last two.
    let five: Vec<_> = [0, 3, 6, 9, 10].into_iter().map(|trace| traces[trace].clone()).collect();
    let all = exact.iter().chain(&random).map(|(name, expected)| (name, expected.as_slice(), &traces));
    let controls = controls.iter().map(|(name, expected)| (name, expected.as_slice(), &five));
    for (name, expected, traces) in all.chain(controls) {
        let runs = play_deepshare(name, traces);
        let mean = |of: fn(&Summary) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let found = [
            mean(|run| run.service_s / 3600.0),
            mean(|run| run.service_p90_s),
            mean(|run| run.service_p99_s),
            mean(|run| run.utilization),
            mean(|run| run.completion_s / 3600.0),
            mean(|run| run.makespan_s / 3600.0),
        ];
        for ((found, expected), unit) in found.into_iter().zip(expected).zip(units) {
            let by_chance = if name.starts_with("random") { 0.05 * expected } else { 0.0 };
            let tolerance = 0.51 * unit + by_chance;
            let not_stated = *expected == 0.0;
            let close = (found - expected).abs() <= tolerance;
            assert!(close || not_stated, "{name}: {found}, expected {expected} ± {tolerance}");
        }
    }
}

/// Mean completion time in slots over 20 workloads of our own generator on the published small cluster.
fn play_dl2(names: &[&str]) -> Vec<f64> {
    let tables = ElasticThroughputs::dl2();
    let cluster = Dl2Options::default();
    let model = SpeedModel::Measured(SurfaceOptions::PUBLISHED);
    let options = SpeedOptions { model, error: 0.0, seed: 0, tasks_max: cluster.tasks_max };
    let speeds = Dl2Speeds::new(&tables, options).unwrap();
    let mean = |name: &&str| {
        let (_, rule) = dl2::parse_named(name).unwrap();
        let runs = (100..120).map(|seed| {
            let mut world = dl2::world(&tables, cluster);
            world.reset(&dl2::generate(&tables, &WorkloadOptions::default(), seed).unwrap());
            let mut policy = Dl2Policy::new(rule, speeds.clone(), cluster.tasks_max, seed);
            run(&mut world, &mut speeds.clone(), &mut policy, dl2::LIMITS).unwrap().completion_s
        });
        runs.sum::<f64>() / 20.0 / dl2::SLOT_S
    };
    names.iter().map(mean).collect()
}

/// A port to Python of the published simulator gave, as means over ten workloads of its generator, slots of completion
/// time DRF 5.66, SRTF 18.0, FIFO 18.0, Tetris 24.4, Optimus 3.90; over five others, where DRF was 5.45, the controls as
/// parts of DRF's. Ours are other workloads of the same law: means of ten differ by 7 % for DRF and Optimus and by 15 %
/// for the others, ratios by far less.
#[test]
fn dl2s_published_simulator_is_repeated() {
    let close = |name: &str, found: f64, expected: f64, relative: f64| {
        assert!((found / expected - 1.0).abs() <= relative, "{name}: {found}, expected {expected}");
    };
    let found = play_dl2(&["optimus", "drf", "fifo", "srtf", "tetris"]);
    let [optimus, drf, fifo, srtf, tetris] = found[..] else { panic!("a figure for each") };
    close("optimus", optimus, 3.90, 0.07);
    close("drf", drf, 5.66, 0.07);
    close("fifo", fifo, 18.0, 0.15);
    close("srtf", srtf, 18.0, 0.15);
    close("tetris", tetris, 24.4, 0.15);
    assert!((0.65..0.72).contains(&(optimus / drf)), "{found:?}");
    assert!(optimus < drf && drf < fifo.min(srtf) && fifo.max(srtf) < tetris, "{found:?}");
    close("srtf beside fifo", srtf, fifo, 0.02);
    let controls = [
        ("parameter_servers", 0.618),
        ("parameter_servers_bundles", 0.679),
        ("workers_parameter_servers", 0.990),
        ("drf_capped", 0.837),
        ("starting_bundle", 1.414),
        ("random", 1.10),
    ];
    let names = controls.map(|(name, _)| name);
    for ((name, expected), found) in controls.into_iter().zip(play_dl2(&names)) {
        close(name, found / drf, expected, 0.05);
    }
}

/// The table of the command over two small workloads, and its exit code.
fn dual_agent(arguments: &[&str]) -> (Option<i32>, String, String) {
    let small = [["--jobs", "8"], ["--scale", "0.01"], ["--traces", "2"], ["--format", "csv"]];
    let small = small.iter().filter(|pair| !arguments.contains(&pair[0])).flatten();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = command.args(["world", "dual-agent"]).args(small).args(arguments).output();
    let output = output.expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn rules_are_compared_in_pairs() {
    let (code, table, message) = dual_agent(&["--policy", "fifo/best_fit", "--against", "srtf/oracle"]);
    assert_eq!(code, Some(0), "{message}");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][..6], ["policy", "times_against", "times_low", "times_high", "p", "completion_h"]);
    assert_eq!(rows[1][..3], ["srtf/oracle", "1", "1"]);
    assert_eq!(rows[2][0], "fifo/best_fit");
    let (_, per_trace, _) = dual_agent(&["--policy", "srtf/posterior", "--per-trace"]);
    assert_eq!(per_trace.lines().count(), 3, "{per_trace}");
}

#[test]
fn trained_agents_of_two_kinds_play_by_name() {
    let names =
        ["_joint", "_longer", "_order", "_server", "_switching"].map(|name| format!("dual_agent{name}"));
    let file = |name: &str| format!("{}/../../training/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
    let table = |weights: &[String]| {
        let small = ["--policy", "srtf/posterior", "--traces", "1"];
        let weights = weights.iter().flat_map(|weights| ["--weights", weights]);
        let arguments: Vec<&str> = small.into_iter().chain(weights).collect();
        let (code, table, message) = dual_agent(&arguments);
        assert_eq!(code, Some(0), "{message}");
        table
    };
    let named = table(&names);
    let rows: Vec<&str> = named.lines().skip(2).map(|line| line.split(',').next().unwrap_or("")).collect();
    assert_eq!(rows, names);
    assert_eq!(named, table(&names.map(|name| file(&name))));
}

#[test]
fn what_is_no_rule_and_no_weights_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("weights.safetensors").display().to_string();
    std::fs::write(&file, b"nothing").expect("written");
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let refused = [
        (["--policy", "srft/posterior"], "unknown rule `srft/posterior`"),
        (["--weights", &file], "not a whole safetensors file"),
        (["--scale", "0"], "`--scale` is 0"),
        (["--straggle", "0"], "`--straggle` is 0"),
        (["--stragglers", "1"], "`--stragglers` is 1"),
        (["--drift", "11"], "`--drift` is 11"),
        (["--rack-correlation", "1.5"], "`--rack-correlation` is 1.5"),
        (["--jobs", "0"], "0 is not in 1..=10000000"),
        (["--weights", "dual_agent_jiont"], "did you mean `dual_agent_joint`?"),
        (["--weights", "nowhere.safetensors"], "there is no such file"),
        (["--weights", "dl2_world"], "it is of `system: dl2`, expected `system: dual_agent`"),
        (["--weights", "learned_pairs"], "it is of `system: gangs`, expected `system: dual_agent`"),
        (["--weights", readme], "not a whole safetensors file"),
    ];
    for (arguments, expected) in refused {
        let (code, _, message) = dual_agent(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{message}");
    }
}

/// The table of a world of eight jobs, as rows of cells.
fn rows_of(world: &str, arguments: &[&str]) -> Vec<Vec<String>> {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_apportion"));
    let small = ["world", world, "--jobs", "8", "--traces", "2", "--format", "csv"];
    let output = command.args(small).args(arguments).output().expect("the command runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).expect("text");
    table.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn trained_weights_are_rows_beside_rules() {
    let dl2 = ["--policy", "drf", "--weights", "dl2_world"];
    let rows = rows_of("dl2", &dl2);
    let names: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["policy", "drf", "dl2_world"]);
    assert_eq!(rows, rows_of("dl2", &dl2), "sampled by the seeds of the workloads");
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../training/dl2_world.safetensors");
    assert_eq!(rows, rows_of("dl2", &["--policy", "drf", "--weights", shipped]));
    let rows = rows_of("deepshare", &["--policy", "las", "--weights", "deepshare_e"]);
    let names: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["policy", "las", "deepshare_e", "deepshare_e/hybrid"]);
    assert_ne!(rows[2][1..], rows[3][1..]);
}

/// Published: 0.73 of the service time of `las`, and 0.62 of its 99th percentile. On workloads that validation never saw.
#[test]
fn the_shipped_deepshare_agent_serves_as_the_published_one() {
    let arguments = ["world", "deepshare", "--traces", "3", "--policy", "las", "--weights", "deepshare_e"];
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = command.args(arguments).args(["--format", "csv"]).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).expect("text");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    let ratio = |name: &str| {
        let column = rows[0].iter().position(|other| *other == name).expect("a column");
        let of = |row: usize| rows[row][column].parse::<f64>().expect("a number");
        of(2) / of(1)
    };
    let (mean, tail) = (ratio("service_h"), ratio("service_p99_s"));
    assert!(mean < 0.73 && tail < 0.65, "{mean} {tail}\n{table}");
}

/// Better than random actions with the same fallback, and than the released E hybrid, which takes 0.866 of the service time
/// of `las` and 0.938 of the completion time of `random_hybrid`. On workloads that validation never saw.
#[test]
fn the_shipped_hybrid_is_better_than_a_random_one() {
    let policies = ["--policy", "las", "--policy", "random_hybrid", "--weights", "deepshare_hybrid"];
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_apportion"));
    let command = command.args(["world", "deepshare", "--traces", "3", "--format", "csv"]).args(policies);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).expect("text");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    let of = |row: usize, name: &str| {
        let column = rows[0].iter().position(|other| *other == name).expect("a column");
        rows[row][column].parse::<f64>().expect("a number")
    };
    assert_eq!(rows[4][0], "deepshare_hybrid/hybrid");
    let [of_las, of_random] = [1, 2].map(|row| of(4, "service_h") / of(row, "service_h"));
    let completion = of(4, "completion_h") / of(2, "completion_h");
    assert!(of_las < 0.866 && of_random < 0.97 && completion < 0.93, "{of_las} {of_random} {completion}");
    assert!(of(4, "utilization") > 0.97, "{rows:?}");
}

#[test]
fn policies_of_time_shares_are_rows_beside_rules() {
    let allocated = ["--policy", "las", "--allocated", "completion_rate", "--allocated", "fifo_perf"];
    let rows = rows_of("deepshare", &allocated);
    let names: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["policy", "las", "allocated/completion_rate", "allocated/fifo_perf"]);
    assert_eq!(rows, rows_of("deepshare", &allocated));
    assert!(rows[2][1..] != rows[3][1..] && rows[2][1..] != rows[1][1..], "each its own: {rows:?}");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = command.args(["world", "deepshare", "--allocated", "completion"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("completion_rate"), "it names the nearest");
}

#[test]
fn elastic_jobs_grow_where_workers_are_free() {
    let small = "--policy drf_1 --policy drf --policy optimus --weights elastic --rate 0.5";
    let small: Vec<&str> = small.split(' ').collect();
    let rows = rows_of("elastic", &small);
    let names: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, ["policy", "drf_1", "drf", "optimus", "elastic"]);
    assert_eq!(rows, rows_of("elastic", &small));
    let completion_h: Vec<f64> = rows[1..].iter().map(|row| row[1].parse().expect("a number")).collect();
    assert!(completion_h[0] > completion_h[1], "one worker each is slower: {completion_h:?}");
    let crowded = "--policy srtf --policy shortest_optimus --weights elastic --workers 4 --rate 3";
    let rows = rows_of("elastic", &crowded.split(' ').collect::<Vec<_>>());
    let completion_h: Vec<f64> = rows[1..].iter().map(|row| row[1].parse().expect("a number")).collect();
    assert!(completion_h[2] < completion_h[0].min(completion_h[1]), "what was learned: {completion_h:?}");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = command.args(["world", "elastic", "--rate", "0"]).output().expect("the command runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("the rate is 0, expected a number of jobs a slot above 0"), "{message}");
}

/// Median and 99th percentile are printed beside the mean, and how many jobs ended, in text and JSON.
#[test]
fn tails_and_jobs_done_are_beside_the_mean() {
    let worlds = [
        ("deepshare", "--policy las --jobs 12 --traces 2", "_h"),
        ("dl2", "--policy drf --jobs 12 --traces 2", "_slots"),
        ("elastic", "--policy drf --jobs 12 --traces 2", "_h"),
        ("dual-agent", "--policy srtf/oracle --jobs 12 --scale 0.01 --traces 2", "_h"),
    ];
    for (world, arguments, unit) in worlds {
        let table = |format: &str| {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_apportion"));
            let arguments = arguments.split(' ').chain(["--format", format]);
            let output = command.args(["world", world]).args(arguments).output().expect("it runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).expect("text")
        };
        let rows: serde_json::Value = serde_json::from_str(&table("json")).expect("JSON");
        let row = rows["rows"].as_array().and_then(|rows| rows.last()).expect("a row").clone();
        let of = |column: &str| row[format!("completion{column}{unit}")].as_f64().expect(column);
        let (mean, median, tail) = (of(""), of("_p50"), of("_p99"));
        assert!(0.0 < median && median < tail && mean < tail, "{world}: {mean} {median} {tail}");
        assert_eq!(row["jobs_done"], 12.0, "{world}");
        let text = table("table");
        assert!(text.contains(&format!("completion_p99{unit}")) && text.contains("jobs_done"), "{text}");
    }
}

#[test]
fn what_scaling_costs_is_paid() {
    for (world, shown) in
        [("elastic", "--policy optimus --weights elastic"), ("dl2", "--policy drf --servers 6")]
    {
        let completion = |cost: &str| -> Vec<f64> {
            let arguments = format!("{shown} --scaling-cost {cost}");
            let rows = rows_of(world, &arguments.split(' ').collect::<Vec<_>>());
            rows[1..].iter().map(|row| row[1].parse().expect("a number")).collect()
        };
        let [free, second, checkpoint] = ["0", "1", "360"].map(completion);
        assert!(free.iter().zip(&checkpoint).all(|(free, paid)| free < paid), "{free:?} {checkpoint:?}");
        assert!(second.iter().zip(&checkpoint).all(|(hot, paid)| hot < paid), "{second:?} {checkpoint:?}");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_apportion"));
        let output =
            command.args(["world", world, "--scaling-cost", "-1"]).output().expect("the command runs");
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn nothing_to_play_is_refused() {
    for world in ["deepshare", "dl2", "elastic"] {
        for flag in ["--traces", "--jobs"] {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_apportion"));
            let output = command.args(["world", world, flag, "0"]).output().expect("the command runs");
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{world} {flag}: {message}");
            assert!(message.contains(&format!("invalid value '0' for '{flag} <N>'")), "{message}");
        }
    }
}

#[test]
fn weights_of_another_system_are_refused() {
    for (world, weights, expected) in [
        ("dl2", "dl2", "it is of `system: gangs`, expected `system: dl2`"),
        ("dl2", "dl2_word", "did you mean `dl2_world`"),
        ("deepshare", "dl2_world", "it is of `system: dl2`, expected `system: deepshare`"),
        ("deepshare", "nowhere.safetensors", "nowhere.safetensors"),
        ("elastic", "dl2_world", "it is of `system: dl2`, expected `system: elastic`"),
        ("dl2", "elastic", "it is of `system: elastic`, expected `system: dl2`"),
        ("elastic", concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md"), "not a whole safetensors file"),
        ("dl2", "dual_agent_order", "it is of `system: dual_agent`, expected `system: dl2`"),
        ("deepshare", "dual_agent_joint", "it is of `system: dual_agent`, expected `system: deepshare`"),
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_apportion"));
        let output = command.args(["world", world, "--weights", weights]).output().expect("the command runs");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}
