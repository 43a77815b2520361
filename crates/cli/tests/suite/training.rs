//! `apportion train`, as a user runs it.

use std::path::Path;
use std::process::{Command, Output};

fn apportion(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_apportion")).args(arguments).output().expect("the command runs")
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// Checks for exit code 2 and a message that contains `expected`.
fn assert_refused(arguments: &[&str], expected: &str) {
    let output = apportion(arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(message.contains(expected), "{message}\nlacks: {expected}");
}

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
    assert!(message.contains("validation is mean reward of a round"), "{message}");
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
        let [one, other] = [&first, &second].map(|out| std::fs::read(Path::new(out).join(name)).expect(name));
        assert_eq!(one, other, "{name}");
    }
    let curve = std::fs::read_to_string(Path::new(&first).join("curve.csv")).expect("a curve");
    assert_eq!(curve.lines().count(), 5, "{curve}");
    assert_eq!(result, train(&file, &first));
    assert_eq!(curve, std::fs::read_to_string(Path::new(&first).join("curve.csv")).expect("a curve"));
}

#[test]
fn what_is_set_is_as_if_the_document_had_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "training.yaml"), path(folder.path(), "a"));
    std::fs::write(&file, TRAINING).expect("written");
    let set = ["--set", "seed=6", "--set", "ppo.n_epochs=2", "--set", "world.contention_weight=0.5"];
    let output = apportion(&[&["train", &file, "--out", &out], &set[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let other = TRAINING.replace("seed: 5", "seed: 6").replace("n_epochs: 1", "n_epochs: 2");
    std::fs::write(&file, other.replace("jobs: 8", "jobs: 8, contention_weight: 0.5")).expect("written");
    // The same training has nothing left to do.
    train(&file, &out);
    let said = |set: &str, expected: &str| {
        assert_refused(&["train", &file, "--out", &out, "--set", set], expected);
    };
    said("seed", "`--set seed`: expected FIELD=VALUE");
    said("ppo.n_stepps=3", "unknown field `n_stepps`");
    said("seed.of=3", "nothing above `of` that has fields");
    said("seed=[", "`--set seed=[`");
    said("world.jobs=0", "error: `--set world.jobs=0`: `jobs` is 0");
    said("ppo.n_steps=0", "error: `--set ppo.n_steps=0`: `n_steps` is 0");
    said("network.hidden=[1000000,1000000]", "at most 10,000,000");
    // A change elsewhere may be why the document's own value is wrong.
    said("test={seeds: [2]}", "error: `--set test={seeds: [2]}`: `test.seeds` is 2");
    std::fs::write(&file, format!("{TRAINING}test: {{ seeds: [3] }}\n")).expect("written");
    said("validation.seeds=[3]", "error: `--set validation.seeds=[3]`: `test.seeds` is 3");
    // A fault of the document itself is shown there.
    std::fs::write(&file, TRAINING.replace("n_steps: 64", "n_steps: 0")).expect("written");
    said("seed=3", "training.yaml:4:17");
}

/// The output on the way, and the last words.
fn said(text: &str, flags: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "training.yaml"), path(folder.path(), "out"));
    std::fs::write(&file, text).expect("written");
    let output = apportion(&[&["train", &file, "--out", &out], flags].concat());
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}");
    message
}

#[test]
fn a_training_ends_with_what_its_best_weights_do_in_test() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "training.yaml"), path(folder.path(), "out"));
    std::fs::write(&file, format!("{TRAINING}test: {{ seeds: [7, 8, 9] }}\n")).expect("written");
    let run = || {
        let output = apportion(&["train", &file, "--out", &out]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{message}");
        let kept = ["curve.csv", "checkpoint.safetensors", "best.safetensors"];
        let kept = kept.map(|name| std::fs::read(Path::new(&out).join(name)).expect(name));
        let last = message.lines().filter(|line| line.starts_with("test ")).map(str::to_owned);
        (last.collect::<Vec<_>>(), kept)
    };
    let (told, kept) = run();
    let [line] = &told[..] else { panic!("one line: {told:?}") };
    assert!(line.contains(": 3 episodes of sampled actions by the weights of update "), "{line}");
    let again = run();
    assert_eq!(
        (&told, &kept),
        (&again.0, &again.1),
        "played again, it is the same, and the training stays as it was"
    );
    // Validation would choose this update, with these as its seeds and the best weights as the only ones.
    let update = line.rsplit(' ').next().expect("a number").to_owned();
    let judged = TRAINING
        .replace("seeds: [1, 2]", "seeds: [7, 8, 9]")
        .replace("validate_every: 2", "validate_every: 1");
    let found = line.split(' ').nth(1).expect("a number").trim_end_matches(':').to_owned();
    let expected = format!("update {update}, ");
    let message = said(&judged, &[]);
    let of_update = message.lines().find(|line| line.starts_with(&expected)).expect("that update");
    assert!(of_update.ends_with(&format!("validation {found}")), "{of_update}: {line}");
}

const REPLAYED: &str = "\
format: apportion/training-v1
system: elastic
world: { workers: 2, jobs: 6, sight: pairs, window: 6 }
actor_critic: { batch: 16, replay: 400 }
network: { hidden: [4] }
seed: 1
budget: { decisions: 600, validate_every: 1, patience: 1 }
validation: { seeds: [1] }
";

#[test]
fn a_replay_that_is_filled_first_is_said_to_be() {
    let message = said(REPLAYED, &[]);
    assert!(message.contains("still filling the replay: "), "{message}");
    assert!(message.contains("nothing was learned: the replay has "), "{message}");
    let learned = said(REPLAYED, &["--set", "budget.patience=null"]);
    assert!(!learned.contains("nothing was learned"), "{learned}");
    let copied =
        "warm_up={teacher: drf, updates: 2, examples_per_update: 2, cloning: {batch: 4, capacity: 8}}";
    let copied = said(REPLAYED, &["--set", copied, "--set", "budget.decisions=1"]);
    assert!(copied.contains("nothing was learned since the beginning: "), "{copied}");
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "training.yaml"), path(folder.path(), "out"));
    std::fs::write(&file, REPLAYED.replace("600", "300")).expect("written");
    assert_refused(&["train", &file, "--out", &out], "`decisions` is 300 where `actor_critic.replay` is 400");
    let set = ["--set", "budget.decisions=200"];
    let expected = "error: `--set budget.decisions=200`: `decisions` is 200";
    assert_refused(&[&["train", &file, "--out", &out], &set[..]].concat(), expected);
    assert!(!Path::new(&out).exists());
}

#[test]
fn evolution_counts_episodes() {
    let evolution =
        REPLAYED.replace("actor_critic: { batch: 16, replay: 400 }", "evolution: { pairs: 2, episodes: 2 }");
    let evolution = evolution
        .replace("decisions: 600, validate_every: 1, patience: 1", "decisions: 12, validate_every: 1");
    let message = said(&evolution, &[]);
    assert!(message.contains("update 1, 8 of 16 episodes: validation "), "{message}");
    assert!(message.contains("update 2, 16 of 16 episodes: validation "), "{message}");
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "training.yaml"), path(folder.path(), "out"));
    std::fs::write(&file, evolution).expect("written");
    let output = apportion(&["train", &file, "--out", &out, "--format", "csv", "--progress", "never"]);
    assert!(output.stdout.starts_with(b"system,updates,episodes,"), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!message.contains("update"), "none of the progress: {message}");
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
    said("jobs: 8", "jobs: 0", "training.yaml:3:16");
    said("jobs: 8", "jobs: .nan", "training.yaml:3:16");
    said("n_steps: 64", "n_steps: 0", "training.yaml:4:17");
    said("n_epochs: 1", "n_epochs: 1, learning_rate: 1.0e+308", "training.yaml:4:49");
    said("ppo: { n_steps: 64, n_epochs: 1 }", "evolution: { deviation: 1.0e+308 }", "training.yaml:4:25");
    said("n_steps", "n_stepps", "n_steps");
    said("seeds: [1, 2]", "seeds: []", "training.yaml:8:22");
    said("seeds: [1, 2]", "seeds: [1, 2], measure: servise", "training.yaml:8:39");
    let elsewhere = TRAINING.replace("deepshare", "elastic");
    let elsewhere = elsewhere.replace("[1, 2]", "[1, 2], measure: service");
    said(TRAINING, &elsewhere, "training.yaml:8:39");
    assert!(!Path::new(&out).exists(), "nothing is written for a document that is refused");
}

#[test]
fn a_checkpoint_of_another_document_or_a_damaged_one_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "training.yaml"), path(folder.path(), "out"));
    std::fs::write(&file, TRAINING).expect("written");
    train(&file, &out);
    std::fs::write(&file, TRAINING.replace("seed: 5", "seed: 6")).expect("written");
    assert_refused(&["train", &file, "--out", &out], "by another document: `seed` is not the same");
    std::fs::write(&file, TRAINING).expect("written");
    let checkpoint = Path::new(&out).join("checkpoint.safetensors");
    let mut bytes = std::fs::read(&checkpoint).expect("a checkpoint");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&checkpoint, bytes).expect("written");
    assert_refused(&["train", &file, "--out", &out], "the file is damaged");
}

#[test]
fn a_training_goes_on_from_the_weights_of_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, first) = (path(folder.path(), "training.yaml"), path(folder.path(), "first"));
    std::fs::write(&file, TRAINING).expect("written");
    train(&file, &first);
    let weights = path(Path::new(&first), "best.safetensors");
    let begun = |from: &str| TRAINING.replace("seed: 5", &format!("seed: 6\nfrom: {from}"));
    // The path begins in the document's folder, wherever the command runs.
    std::fs::write(&file, begun("first/best.safetensors")).expect("written");
    let second = path(folder.path(), "second");
    let result = train(&file, &second);
    let kept = std::fs::read(Path::new(&second).join("checkpoint.safetensors")).expect("kept");
    let header = String::from_utf8_lossy(&kept).into_owned();
    assert!(header.contains("from_digest") && header.contains("first/best.safetensors"));
    assert_eq!(result, train(&file, &second), "it is not done twice");
    // Other weights lie under the same name.
    std::fs::copy(path(Path::new(&first), "checkpoint.safetensors"), &weights).expect("copied");
    assert_refused(&["train", &file, "--out", &second], "it began with other weights");
    let said = |from: &str, to: &str, expected: &str| {
        std::fs::write(&file, begun(&weights).replace(from, to)).expect("written");
        assert_refused(&["train", &file, "--out", &path(folder.path(), "none")], expected);
    };
    said(&weights, "elastik", "training.yaml:7:7");
    said(&weights, "frist/best.safetensors", "/frist/best.safetensors`: there is no such file");
    said(&weights, "first/bets.safetensors", "did you mean `");
    said(&weights, "elastik", "error: unknown weights `elastik`");
    said(
        "hidden: [8]",
        "hidden: [9]",
        "`actor.0.0.weight` has shape [8, 64], and this training's has [9, 64]",
    );
}

#[test]
fn a_larger_budget_goes_on_with_what_a_folder_keeps() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "training.yaml"), path(folder.path(), "out"));
    std::fs::write(&file, TRAINING).expect("written");
    train(&file, &out);
    let run = |set: &[&str]| {
        let output = apportion(&[&["train", &file, "--out", &out], set].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{message}");
        message
    };
    let more = ["--set", "budget.decisions=512"];
    assert!(run(&more).contains("going on after update 4, with a larger budget"));
    let curve = std::fs::read_to_string(Path::new(&out).join("curve.csv")).expect("a curve");
    assert_eq!(curve.lines().count(), 9, "{curve}");
    assert!(run(&more).contains("going on after update 8\n"), "it is not raised twice");
    let refused = |set: &str, expected: &str| {
        assert_refused(&["train", &file, "--out", &out, "--set", set], expected);
    };
    refused("budget.decisions=256", "its `budget.decisions` was 512, expected as many, or more");
    refused("budget={decisions: 600, validate_every: 1}", "its `budget.validate_every` was 2");
    refused("budget={decisions: 600, validate_every: 2, patience: 3}", "its `budget.patience` was none");
}

/// A folder's files after its budget was raised are those of one training with the larger budget, byte by byte: also where
/// the smaller budget ended at an update without a validation of the schedule, or by patience.
#[test]
fn a_raised_budget_keeps_the_bytes_of_one_training() {
    let folder = tempfile::tempdir().expect("a folder");
    let evolved = TRAINING.replace(
        "ppo: { n_steps: 64, n_epochs: 1 }",
        "evolution: { pairs: 2, episodes: 2, deviation: 0.5, learning_rate: 1.0 }",
    );
    let budgets = [
        (TRAINING, "{decisions: 320, validate_every: 2}", "{decisions: 640, validate_every: 2}"),
        (&evolved, "{decisions: 24, validate_every: 2}", "{decisions: 48, validate_every: 2}"),
        (
            &evolved,
            "{decisions: 96, validate_every: 1, patience: 1}",
            "{decisions: 96, validate_every: 1, patience: 4}",
        ),
    ];
    for (number, (document, smaller, larger)) in budgets.into_iter().enumerate() {
        let file = path(folder.path(), &format!("{number}.yaml"));
        std::fs::write(&file, document).expect("written");
        let kept = |out: &str, budgets: &[&str]| {
            let out = path(folder.path(), &format!("{number}_{out}"));
            for budget in budgets {
                let set = format!("budget={budget}");
                let output = apportion(&["train", &file, "--out", &out, "--set", &set]);
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
            ["best.safetensors", "curve.csv"]
                .map(|name| std::fs::read(Path::new(&out).join(name)).expect(name))
        };
        let [raised, whole] = [kept("raised", &[smaller, larger]), kept("whole", &[larger])];
        assert!(raised == whole, "{document}{larger}");
        assert!(kept("smaller", &[smaller])[1] != whole[1], "{larger} has nothing to do");
    }
}

/// A training by evolution that is warmed up, with a rate that falls.
const EVOLVED: &str = "\
format: apportion/training-v1
system: elastic
world: { jobs: 4, workers: 2 }
warm_up: { teacher: drf, updates: 1, examples_per_update: 1, cloning: { batch: 4, capacity: 8 } }
evolution: { pairs: 2, episodes: 2, learning_rate: { from: 1.0, to: 0.5 } }
network: { hidden: [4] }
seed: 5
budget: { decisions: 8, validate_every: 2 }
validation: { seeds: [1] }
";

#[test]
fn a_budget_along_which_rates_fall_is_not_raised() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "training.yaml"), path(folder.path(), "out"));
    let falling = "ppo: { learning_rate: { from: 0.001, to: 0 },";
    std::fs::write(&file, TRAINING.replace("ppo: {", falling)).expect("written");
    train(&file, &out);
    let before = std::fs::read(Path::new(&out).join("best.safetensors")).expect("weights");
    let more = ["train", &file, "--out", &out, "--set", "budget.decisions=512"];
    assert_refused(&more, "its `ppo.learning_rate` changes along its budget of 256 decisions");
    assert_eq!(before, std::fs::read(Path::new(&out).join("best.safetensors")).expect("weights"));
    // The way that the error names leads on.
    let from = format!("from={}", Path::new(&out).join("best.safetensors").display());
    assert_refused(&more, &format!("`--set {from}` and another `--out`"));
    let further = path(folder.path(), "further");
    let output = apportion(&["train", &file, "--out", &further, "--set", &from]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    std::fs::write(&file, EVOLVED).expect("written");
    let out = path(folder.path(), "evolved");
    let output = apportion(&["train", &file, "--out", &out]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let more = ["train", &file, "--out", &out, "--set", "budget.decisions=16"];
    assert_refused(&more, "along its budget of 8 episodes");
    assert_refused(&more, "best.safetensors --set warm_up=null` and another `--out`");
}

#[test]
fn programs_are_told_in_lines_of_json() {
    let tested = format!("{TRAINING}test: {{ seeds: [7, 8, 9], choice: most_probable }}\n");
    let message = said(&tested, &["--progress", "json"]);
    let events: Vec<serde_json::Value> =
        message.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).collect::<Vec<_>>();
    let updates = of("update");
    assert_eq!(updates.len(), 2, "{message}");
    let numbers = ["update", "done", "total"].map(|field| updates[1][field].as_u64());
    assert_eq!(numbers, [Some(4), Some(256), Some(256)]);
    assert_eq!(updates[1]["unit"], "decisions");
    assert!(updates[1]["validation"].is_f64() && updates[1]["best_validation"].is_f64());
    let [test] = of("test")[..] else { panic!("one test: {message}") };
    assert_eq!((&test["episodes"], &test["choice"]), (&3.into(), &"most_probable".into()));
    assert!(of("note").len() == 1, "{message}");

    // Refusals are events, too: of the command line, and of the document.
    for (set, expected) in [("seed=no", "`--set seed=no`"), ("ppo.n_steps=0", "`n_steps` is 0")] {
        assert_eq!(
            error_event(&["--set", set], expected)["message"].as_str().map(str::is_empty),
            Some(false)
        );
    }
    let _ = error_event(&["--checkpoint-every", "0"], "--checkpoint-every");
}

/// The event of a training that is refused.
fn error_event(flags: &[&str], expected: &str) -> serde_json::Value {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "training.yaml"), path(folder.path(), "out"));
    std::fs::write(&file, TRAINING).expect("written");
    let output = apportion(&[&["train", &file, "--out", &out, "--progress", "json"], flags].concat());
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    let event: serde_json::Value = serde_json::from_str(&message).expect(&message);
    assert!(event["event"] == "error" && message.contains(expected), "{message}");
    event
}

#[test]
fn a_test_is_played_as_validation_is_and_says_how() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "training.yaml"), path(folder.path(), "out"));
    let most_probable = TRAINING.replace("seeds: [1, 2]", "seeds: [1, 2], choice: most_probable");
    std::fs::write(&file, format!("{most_probable}test: {{ seeds: [7, 8] }}\n")).expect("written");
    let run = ["train", &file, "--out", &out, "--format", "json"];
    let output = apportion(&run);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}");
    assert!(message.contains("validation is mean reward of a round, of the most probable actions"));
    let told = message.lines().find_map(|line| line.strip_prefix("test ")).expect("a line");
    assert!(told.contains(": 2 episodes of the most probable actions by the weights of update "), "{told}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let row = &answer["rows"][0];
    assert_eq!(row["test_episodes"], 2, "{answer}");
    let test = row["test"].as_f64().expect("a number");
    assert_eq!(format!("{test:.4}"), told.split(':').next().expect("a number"));
}

#[test]
fn an_option_of_the_world_is_named_by_what_is_wrong_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "training.yaml"), path(folder.path(), "out"));
    let world = REPLAYED.replace("system: elastic", "system: dl2");
    let world = world.replace("{ workers: 2, jobs: 6, sight: pairs, window: 6 }", "{ jobs: 6, tasks: -1 }");
    std::fs::write(&file, &world).expect("written");
    let run = ["train", &file, "--out", &out];
    assert_refused(&run, "`tasks` is `-1`, expected a whole number from 0 to 65535");
    assert_refused(&run, "training.yaml:3:26");
    let set = ["--set", "world.tasks=many"];
    std::fs::write(&file, world.replace("-1", "2")).expect("written");
    assert_refused(&[&run[..], &set[..]].concat(), "`--set world.tasks=many`: `tasks` is the text \"many\"");
}

/// A shipped training runs by its name, and a printed one is read.
#[test]
fn a_shipped_training_is_known_by_its_name() {
    assert_refused(&["train", "dl3", "--out", "nowhere"], "did you mean `dl2`?");
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "mine.yaml"), path(folder.path(), "out"));
    std::fs::write(&file, apportion(&["train", "show", "dl2"]).stdout).expect("written");
    let wrong = ["--out", &out, "--set", "warm_up.teacher=nobody"];
    for training in ["dl2", &file] {
        assert_refused(&[&["train", training], &wrong[..]].concat(), "nobody");
    }
}
