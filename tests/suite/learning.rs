//! `apportion policies import-sb3` and `apportion train`, as a user runs them.

use std::path::Path;
use std::process::{Command, Output};

fn apportion(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_apportion")).args(arguments).output().expect("the command runs")
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// Exit code 2 and a message that contains `expected`.
fn assert_refused(arguments: &[&str], expected: &str) {
    let output = apportion(arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(message.contains(expected), "{message}\nlacks: {expected}");
}

#[test]
fn a_file_that_is_no_saved_policy_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "ppo.zip"), path(folder.path(), "out.safetensors"));
    let import = ["policies", "import-sb3", &file, "--out", &out];
    assert_refused(&import, "cannot read it");
    std::fs::write(&file, b"PK\x03\x04 nothing").expect("written");
    assert_refused(&import, "no zip archive");
    assert!(!Path::new(&out).exists());
}

#[test]
fn learned_policies_run_where_others_do() {
    for policy in ["dl2", "learned_pairs", "learned_values", "random_gangs"] {
        let cluster = "v100=2,p100=2,k80=2";
        let run = ["simulate", "--policy", policy, "--cluster", cluster, "--rate", "0.2", "--jobs", "8"];
        let output = apportion(&[&run[..], &["--format", "json"]].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{policy}: {message}");
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let average = result["average_jct"].as_f64().expect("a number");
        assert!(average > 0.0, "{policy}: {average}");
    }
}

#[test]
fn weights_of_another_actor_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = path(folder.path(), "mine.yaml");
    let check = |actor: &str, weights: &str, expected: &str| {
        let text = format!(
            "format: apportion/policy-v1\nname: mine\nsummary: mine\nkind: learned\nactor: {actor}\nweights: {weights}\n"
        );
        std::fs::write(&file, text).expect("written");
        assert_refused(&["policies", "check", &file], expected);
    };
    check("window", "learned_pairs", "its network is not a network over a window of jobs");
    check("values", "dl2", "its network is not a scorer");
    check("pairs", "learned_pair", "unknown weights `learned_pair`");
    check("pairs", "nowhere.safetensors", "there is no such file");
    let damaged = path(folder.path(), "damaged.safetensors");
    std::fs::write(&damaged, b"nothing").expect("written");
    check("pairs", &damaged, "not a whole safetensors file");
}

#[cfg(not(feature = "learn"))]
#[test]
fn a_build_without_training_says_so() {
    assert_refused(&["train", "x.yaml", "--out", "x"], "--features learn");
}

#[cfg(feature = "learn")]
mod train {
    use super::*;

    const TRAINING: &str = "\
format: apportion/training-v1
system: deepshare
world: { jobs: 8 }
ppo: { n_steps: 64, n_epochs: 1 }
network: { hidden: [8] }
seed: 5
budget: { decisions: 256, validate_every: 2 }
validation: { seeds: [1, 2] }
";

    fn train(file: &str, out: &str) -> String {
        let output = apportion(&["train", file, "--out", out, "--checkpoint-every", "1", "--format", "csv"]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{message}");
        String::from_utf8(output.stdout).expect("text")
    }

    #[test]
    fn the_same_document_gives_the_same_files_and_is_not_done_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = path(folder.path(), "training.yaml");
        std::fs::write(&file, TRAINING).expect("written");
        let (first, second) = (path(folder.path(), "a"), path(folder.path(), "b"));
        let result = train(&file, &first);
        assert!(result.contains("deepshare,4,256,budget,"), "{result}");
        assert_eq!(result, train(&file, &second));
        for name in ["curve.csv", "checkpoint.safetensors", "best.safetensors"] {
            let [one, other] =
                [&first, &second].map(|out| std::fs::read(Path::new(out).join(name)).expect(name));
            assert_eq!(one, other, "{name}");
        }
        let curve = std::fs::read_to_string(Path::new(&first).join("curve.csv")).expect("a curve");
        assert_eq!(curve.lines().count(), 5, "{curve}");
        assert_eq!(result, train(&file, &first));
        assert_eq!(curve, std::fs::read_to_string(Path::new(&first).join("curve.csv")).expect("a curve"));
    }

    #[test]
    fn faults_are_shown_where_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, out) = (path(folder.path(), "training.yaml"), path(folder.path(), "out"));
        let said = |from: &str, to: &str, expected: &str| {
            std::fs::write(&file, TRAINING.replace(from, to)).expect("written");
            assert_refused(&["train", &file, "--out", &out], expected);
        };
        said("deepshare", "deepshaer", "training.yaml:2:9");
        said("jobs: 8", "jobs: 0", "training.yaml:3:8");
        said("n_steps: 64", "n_steps: 0", "training.yaml:4:17");
        said("n_steps", "n_stepps", "n_steps");
        said("seeds: [1, 2]", "seeds: []", "training.yaml:8:22");
        assert!(!Path::new(&out).exists(), "nothing is written for a document that is refused");
    }

    #[test]
    fn a_checkpoint_of_another_document_or_a_damaged_one_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, out) = (path(folder.path(), "training.yaml"), path(folder.path(), "out"));
        std::fs::write(&file, TRAINING).expect("written");
        train(&file, &out);
        std::fs::write(&file, TRAINING.replace("seed: 5", "seed: 6")).expect("written");
        assert_refused(&["train", &file, "--out", &out], "of a training by another document");
        std::fs::write(&file, TRAINING).expect("written");
        let checkpoint = Path::new(&out).join("checkpoint.safetensors");
        let mut bytes = std::fs::read(&checkpoint).expect("a checkpoint");
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        std::fs::write(&checkpoint, bytes).expect("written");
        assert_refused(&["train", &file, "--out", &out], "the file is damaged");
    }
}
