//! Numbers for people: none that is not 0 looks like 0, and none has hundreds of digits; programs get every digit.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

const THROUGHPUTS: &str = "\
format: apportion/throughputs-v1
name: far-apart
unit: steps/s
source: {who: a test, when: '2026', licence: none}
worker_types: [v100, k80]
rows:
  - {job_type: slow, scale_factor: 1, consolidated: [0.00002, 1e-9]}
  - {job_type: fast, scale_factor: 1, consolidated: [4e14, 0]}
colocation: {model: none}
";
const TRACE: &str = "id,job_type,total_steps,arrival\nslow,slow,1e-3,0\nfast,fast,1e14,1e-3\n";
const TWO: &str = "id,job_type,total_steps,arrival\na,A3C,1000,0\nb,A3C,1000,600\n";
/// A policy that no allocation satisfies, by far.
const POLICY: &str = "\
format: apportion/policy-v1
name: far
summary: a floor out of reach
kind: program
maximize: min_over_jobs(throughput)
for_each_job:
  - throughput >= 1000000[steps/s]
";

fn said(folder: &Path, line: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    let output = command.current_dir(folder).args(line.split(' ')).output().unwrap();
    [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat()
}

#[test]
fn no_number_looks_like_zero_and_none_has_hundreds_of_digits() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    for (name, text) in [
        ("t.yaml", THROUGHPUTS),
        ("t.csv", TRACE),
        ("two.csv", TWO),
        ("far.yaml", POLICY),
        ("s.yaml", "format: apportion/snapshot-v1\ncluster: {a: 1}\njobs: [{id: 1, throughput: {a: 3}}]\n"),
    ] {
        fs::write(at.join(name), text).unwrap();
    }
    for (line, expected) in [
        ("throughputs show t.yaml", " 0.00002  1.0e-9 "),
        ("throughputs show t.yaml --format csv", "slow,1,0.00002,0.000000001,"),
        ("trace show t.csv", "slow                 1     1            0.001"),
        (
            "simulate --policy fifo --cluster v100=1 --throughputs t.yaml --trace t.csv",
            "average job completion time",
        ),
        ("allocate --policy far.yaml s.yaml", "it reaches 0.0003 % of its right side"),
        (
            "forecast --policy fifo --cluster v100=1 --trace two.csv --at 600 --job b --known-durations --arrivals none \
             --limit 1e308",
            "A fork ends 2.78e304 h after then at the latest.",
        ),
    ] {
        let text = said(at, line);
        assert!(text.contains(expected), "{line}: {text}");
        let longest = text.split(|letter: char| !letter.is_ascii_digit()).map(str::len).max();
        assert!(longest < Some(60), "{line}: {text}");
    }
}
