//! A sweep as a job array of a real Slurm, on two nodes. Skipped where Slurm is not installed or the user may not start it.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::{Path, PathBuf};

use apportion_studies::sweep::Store;
use tempfile::TempDir;

use crate::slurm_cluster::Slurm;

/// A study with a run long enough that a task can be killed in it, and short enough to wait for.
const STUDY: &str = "\
format: apportion/sweep-v1
name: shared
run:
  cluster: {v100: 2, p100: 2, k80: 2}
  workload: {generator: gavel, duration: 2h}
  measure: [100, 1500]
axes:
  policy: [fifo_perf, isolated, max_min_fairness_perf]
  rate: [0.5, 1.0]
  seed: [0, 1, 2, 3]
";

/// Rows in each part's results.
fn n_rows(out: &Path) -> Vec<usize> {
    let Ok(parts) = fs::read_dir(out.join("parts")) else { return Vec::new() };
    let rows = |path: PathBuf| Store::open_to_read(&path).ok()?.digests().ok().map(|digests| digests.len());
    parts.filter_map(|part| rows(part.unwrap().path())).collect()
}

#[test]
fn a_killed_array_is_submitted_again_and_only_its_gaps_are_run() {
    let mut slurm = match Slurm::start(&[("n1", "CPUs=1"), ("n2", "CPUs=1")]) {
        Ok(slurm) => slurm,
        Err(lacking) => {
            eprintln!("skipped: a sweep on a real Slurm: {lacking}");
            return;
        }
    };
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("shared.yaml"), STUDY).unwrap();
    slurm.apportion(folder.path(), &["sweep", "shared.yaml", "--out", "alone"]);
    let alone = fs::read(folder.path().join("alone/results.csv")).unwrap();

    let out = folder.path().join("out");
    let submit = ["sweep", "shared.yaml", "--out", "out", "--slurm", "--tasks", "4", "--format", "json"];
    let submitted = |slurm: &Slurm| -> serde_json::Value {
        serde_json::from_slice(&slurm.apportion(folder.path(), &submit).stdout).unwrap()
    };
    let first = submitted(&slurm);
    assert_eq!((&first["tasks"], &first["pending"]), (&4.into(), &24.into()));
    slurm.wait_for(|_| n_rows(&out).iter().sum::<usize>() >= 3).unwrap();
    // All queued or running tasks end at once, wherever they are.
    let job = first["job"].as_str().unwrap();
    slurm.client("scancel", &["--full", "--signal=KILL", job]).status().unwrap();
    slurm.client("scancel", &[job]).status().unwrap();
    slurm.drain();
    let n_kept: usize = n_rows(&out).iter().sum();
    assert!((3..24).contains(&n_kept), "{n_kept} of 24 runs are kept");

    let second = submitted(&slurm);
    assert_eq!((&second["kept"], &second["pending"]), (&n_kept.into(), &(24 - n_kept).into()));
    slurm.drain();
    let third = slurm.apportion(folder.path(), &submit);
    let said = String::from_utf8_lossy(&third.stderr).into_owned();
    assert!(said.contains("all 24 runs are in") && said.contains("nothing to submit"), "{said}");
    assert_eq!(fs::read(out.join("results.csv")).unwrap(), alone);
    assert_eq!(n_rows(&out).iter().sum::<usize>(), 24, "no run was made twice");
    eprintln!("{n_kept} of 24 runs outlived the first array");
}
