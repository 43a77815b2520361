//! The files of `apportion bench --export`, and their use by other programs.

use std::fs;
use std::path::Path;

use apportion::program::text::to_lp;
use apportion::solver::{Limits, registry};
use apportion::spec::{Snapshot, Source};
use apportion::{PolicyOptions, Problem};
use apportion_published::plugin;
use apportion_studies::benchmark::programs::Programs;

use crate::bench::{bench, osdi20, results};

#[test]
fn an_exported_instance_is_the_same_problem_for_us_and_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("its name is text");
    let common = ["--policy", "max_min_fairness_packed", "--backend", "default"];
    let drawn = results(&[&common[..], &["--sizes", "24", "--export", path]].concat());
    let inside = folder.path().join("osdi20-24-0");
    let mut files: Vec<String> = fs::read_dir(&inside)
        .expect("the instance's folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    files.sort();
    assert!(files.contains(&"snapshot.json".to_owned()), "{files:?}");
    assert!(files.contains(&"max_min_fairness_packed-00.lp".to_owned()), "{files:?}");
    assert!(files.contains(&"max_min_fairness_packed-00.mps".to_owned()), "{files:?}");
    assert!(files.contains(&"max_min_fairness_packed-00.cbf".to_owned()), "{files:?}");
    let snapshot = inside.join("snapshot.json");
    let read = results(&[&common[..], &["--snapshot", snapshot.to_str().expect("text")]].concat());
    assert_eq!(read.rows[0].objective, drawn.rows[0].objective);
    assert_eq!(read.rows[0].n_terms, drawn.rows[0].n_terms);
}

fn programs_of(folder: &Path) -> Programs {
    let text = fs::read_to_string(folder.join("programs.json")).expect("programs.json");
    serde_json::from_str(&text).expect("what is said of programs")
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs())
}

/// A solver of the files finds the printed objective by their formulas.
#[test]
fn exported_programs_say_how_their_optima_become_the_objective() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("its name is text");
    let policies = "max_min_fairness_perf,finish_time_fairness_perf,min_total_duration_perf,\
                    max_sum_throughput_perf,max_min_fairness_hierarchical_perf";
    let common = ["--policy", policies, "--instance", "osdi20", "--sizes", "40", "--backend", "default"];
    let rows = results(&[&common[..], &["--export", path, "--limit", "60"]].concat()).rows;
    let inside = folder.path().join("osdi20-40-0");
    let snapshot = Source::load(inside.join("snapshot.json")).expect("the instance");
    let snapshot = Snapshot::read(&snapshot).expect("a snapshot");
    let problem = Problem::from_snapshot(&snapshot, &osdi20()).expect("a problem");
    let described = programs_of(&inside);
    assert_eq!((described.format.as_str(), described.n_jobs), ("apportion/programs-v1", 40));
    assert_eq!(described.policies.len(), rows.len());
    for (of, row) in described.policies.iter().zip(&rows) {
        let printed = row.objective.expect("an objective");
        assert!(of.policy == row.policy && near(of.objective.expect("an objective"), printed), "{of:?}");
        let mut policy = plugin::catalog()
            .program(&of.policy, &PolicyOptions::default())
            .expect("a policy")
            .expect("a program");
        let programs = policy.programs(&problem).expect("programs");
        assert_eq!(programs.len(), of.programs.len(), "{}", of.policy);
        let mut found = Vec::new();
        for (program, file) in programs.iter().zip(&of.programs) {
            let text = fs::read_to_string(inside.join(&file.files[0])).expect("a file");
            assert_eq!(text, to_lp(program).expect("a linear program"), "{}", file.files[0]);
            let solved =
                registry::backend("clarabel").expect("there is one").solve(program, &Limits::default(), None);
            let optimum = program.objective(&solved.expect("an optimum").columns);
            assert!(near(optimum, file.optimum.expect("an optimum")), "{optimum} {file:?}");
            let Some(value) = &file.value else { continue };
            let scaled = value.scale.map(|scale| scale * optimum);
            match (value.kind.as_str(), scaled) {
                ("scaled", Some(scaled)) => found.push(scaled),
                ("inverse", Some(scaled)) => found.push(scaled.recip()),
                ("level", Some(part)) if near(part, 1.0) => found.extend(value.level),
                _ => {}
            }
        }
        assert!(!found.is_empty() && found.iter().all(|found| near(*found, printed)), "{found:?} {of:?}");
        let mut jobs: Vec<String> = of.groupings[0]
            .iter()
            .flat_map(|class| class.jobs.iter().flatten().map(ToString::to_string))
            .collect();
        jobs.sort_by_key(|job| job.parse::<usize>().expect("a number"));
        assert_eq!(jobs, (0..40).map(|job| job.to_string()).collect::<Vec<_>>(), "each job in one class");
    }
    let stages = |policy: usize| -> Vec<&str> {
        described.policies[policy].programs.iter().map(|program| program.stage.as_str()).collect()
    };
    assert_eq!(stages(0), ["optimum", "choice"]);
    assert_eq!(stages(1).iter().rev().take(2).rev().copied().collect::<Vec<_>>(), ["tried_level", "choice"]);
    assert!(stages(4)[0] == "level" && stages(4)[1..].contains(&"next_level"), "{:?}", stages(4));
}

/// Exports keep to the limits, one policy beside another in the same folder.
#[test]
fn an_export_keeps_to_the_limits_and_says_why_there_are_no_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("its name is text");
    let common = ["--instance", "random", "--sizes", "6", "--backend", "default", "--export", path];
    let (code, _, stderr) = bench(&[&["--policy", "isolated,proportional_fairness"], &common[..]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    if Path::new("/proc/self/status").exists() {
        let limited = ["--policy", "max_min_fairness_perf", "--memory-limit", "0"];
        let (code, _, stderr) = bench(&[&limited[..], &common].concat());
        assert_eq!(code, Some(4), "{stderr}");
        assert!(stderr.contains("more than 0 MiB"), "{stderr}");
    }
    let described = programs_of(&folder.path().join("random-3x10-6-0"));
    let why = |policy: &str| {
        let of = described.policies.iter().find(|of| of.policy == policy);
        let programs =
            of.into_iter().flat_map(|of| of.programs.iter().map(|program| program.message.clone()));
        of.and_then(|of| of.message.clone())
            .into_iter()
            .chain(programs.flatten())
            .collect::<Vec<_>>()
            .join("; ")
    };
    assert!(why("isolated").contains("a rule"), "{described:?}");
    assert_eq!(why("proportional_fairness"), "", "cones have a file, too");
    let limited = why("max_min_fairness_perf");
    assert!(limited.contains("more than 0 MiB") || !Path::new("/proc/self/status").exists(), "{described:?}");
}

/// Files of an earlier, larger export would pass for parts of the newer one.
#[test]
fn an_export_leaves_nothing_of_an_earlier_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = folder.path().join("random-3x10-6-0");
    fs::create_dir(&inside).expect("a folder");
    let others = ["max_min_fairness_perf-notes.txt", "max_min_fairness-07.lp"];
    for name in ["max_min_fairness_perf-07.lp", "max_min_fairness_perf-07.mps"].iter().chain(&others) {
        fs::write(inside.join(name), "earlier").expect("a file");
    }
    let path = folder.path().to_str().expect("its name is text");
    let asked = ["--policy", "max_min_fairness_perf", "--instance", "random", "--sizes", "6"];
    let (code, _, stderr) = bench(&[&asked[..], &["--backend", "default", "--export", path]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("2 files of an earlier export are removed first"), "{stderr}");
    let mut named: Vec<String> = others.map(str::to_owned).to_vec();
    named.extend(["programs.json", "snapshot.json"].map(str::to_owned));
    for policy in &programs_of(&inside).policies {
        named.extend(policy.programs.iter().flat_map(|program| program.files.clone()));
    }
    let files = fs::read_dir(&inside).expect("the instance's folder");
    let mut files: Vec<String> =
        files.map(|file| file.expect("a file").file_name().into_string().expect("a name")).collect();
    files.sort();
    named.sort();
    assert_eq!(files, named);
}
