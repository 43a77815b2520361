//! Learned policies and their files, as a user runs them.

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

#[test]
fn a_file_that_is_no_saved_policy_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (path(folder.path(), "ppo.zip"), path(folder.path(), "out.safetensors"));
    let import = ["policies", "import-sb3", &file, "--out", &out];
    assert_refused(&import, "there is no such file");
    std::fs::write(&file, b"PK\x03\x04 nothing").expect("written");
    assert_refused(&import, "no zip archive");
    assert!(!Path::new(&out).exists());
}

#[test]
fn learned_policies_run_where_others_do() {
    for policy in ["dl2", "learned_pairs", "learned_values", "learned_values_packed", "random_gangs"] {
        let cluster = "v100=2,p100=2,k80=2";
        let run = ["simulate", "--policy", policy, "--cluster", cluster, "--rate", "0.2", "--jobs", "8"];
        let output = apportion(&[&run[..], &["--format", "json"]].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{policy}: {message}");
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let average = result["average_jct_s"].as_f64().expect("a number");
        assert!(average > 0.0, "{policy}: {average}");
    }
}

/// Gangs on servers of four, some of them slow: the output is the same in every run, even after a stop in between.
#[test]
fn policies_that_decide_inside_rounds_are_simulated_and_stopped_and_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    for policy in ["deepshare", "dual_agent", "random_cells", "random_agents"] {
        let run = ["simulate", "--policy", policy, "--format", "json", "--cluster", "v100=8,p100=8,k80=8"];
        let gangs = ["--servers", "v100=4,p100=4,k80=4", "--multi-worker", "--rate", "0.6", "--jobs", "12"];
        let plain = [&run[..], &gangs].concat();
        let run = [&plain[..], &["--contention", "0.5", "--straggling", "0.4"]].concat();
        let jct = |arguments: &[&str]| {
            let output = apportion(arguments);
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{policy}: {message}");
            let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            (result["average_jct_s"].clone(), result["utilization"].clone())
        };
        let once = jct(&run);
        assert!(once.0.as_f64().expect("a number") > 0.0);
        let checkpoint = path(folder.path(), policy);
        let kept = [&run[..], &["--checkpoint", &checkpoint]].concat();
        assert_eq!((jct(&run), jct(&kept)), (once.clone(), once), "{policy}");
        let ideal = [&plain[..], &["--ideal"]].concat();
        assert_refused(&ideal, "false for a policy that decides inside rounds");
        if policy.ends_with("share") || policy.ends_with("cells") {
            // There is one worker on each server, as without `--servers`: no cell of four holds eight.
            let apart: Vec<&str> =
                run.iter().copied().filter(|word| *word != gangs[0] && *word != gangs[1]).collect();
            assert_refused(&apart, "workers, which no cell of four servers of one type");
        }
        let said = format!("policy `{policy}` decides inside rounds");
        assert_refused(&["bench", "--policy", policy, "--sizes", "8"], &said);
    }
}

#[test]
fn weights_of_another_actor_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |actor: &str, weights: &str, expected: &str| {
        let file = policy_file(folder.path(), actor, weights);
        assert_refused(&["policies", "check", &file], expected);
    };
    check("window", "learned_pairs", "its network is `gangs_scorer`, not dense layers");
    check("values", "dl2", "its network is not a scorer");
    check("cells", "dual_agent_rounds", "its network is not a network over cells");
    check("agents", "deepshare_cells", "its network is not a network of two agents");
    check("agents", "dual_agent_joint", "they are of `system: dual_agent`, and this actor's are of `rounds`");
    check("agents", "dl2", "they are of `system: gangs`");
    check("pairs", "learned_pair", "unknown weights `learned_pair`");
    check("pairs", "nowhere.safetensors", "there is no such file");
    let damaged = path(folder.path(), "damaged.safetensors");
    std::fs::write(&damaged, b"nothing").expect("written");
    check("pairs", &damaged, "not a whole safetensors file");
}

/// A policy file with this actor and these weights, in `folder`.
fn policy_file(folder: &Path, actor: &str, weights: &str) -> String {
    let file = path(folder, &format!("{actor}.yaml"));
    let text = format!(
        "format: apportion/policy-v1\nname: mine\nsummary: mine\nkind: learned\nactor: {actor}\nweights: {weights}\n"
    );
    std::fs::write(&file, text).expect("written");
    file
}

#[test]
fn weights_beside_a_policy_are_found_from_anywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("mine/trained")).expect("made");
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../training/learned_pairs.safetensors");
    std::fs::copy(shipped, folder.path().join("mine/trained/best.safetensors")).expect("copied");
    policy_file(&folder.path().join("mine"), "pairs", "trained/best.safetensors");
    let check = |within: &str, file: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
        command.current_dir(folder.path().join(within)).args(["policies", "check", file]);
        command.output().expect("the command runs")
    };
    for (within, file) in [("", "mine/pairs.yaml"), ("mine", "pairs.yaml"), ("mine/trained", "../pairs.yaml")]
    {
        let output = check(within, file);
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let policy = path(folder.path(), "mine/pairs.yaml");
    let workload = ["--cluster", "v100=2,p100=2,k80=2", "--rate", "0.2", "--jobs", "4"];
    let output = apportion(&[&["simulate", "--policy", &policy], &workload[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The path does not begin where the command runs, and the message has the whole path.
    std::fs::rename(folder.path().join("mine/trained"), folder.path().join("trained")).expect("moved");
    let output = check("", "mine/pairs.yaml");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("mine/trained/best.safetensors: there is no such file\n  --> mine/pairs.yaml:"),
        "{message}"
    );
}

#[test]
fn networks_are_written_for_other_tools() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = path(folder.path(), "pairs.onnx");
    let export =
        |policy: &str| apportion(&["policies", "export-onnx", policy, "--out", &out, "--format", "csv"]);
    let output = export("learned_pairs");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && table.contains("actor.0.0.weight,"), "{table}");
    assert!(std::fs::read(&out).expect("written").starts_with(b"\x08\x08\x12\x09apportion"));
    assert_refused(&["policies", "export-onnx", "las", "--out", &out], "this policy has no network");
    assert_refused(
        &["policies", "export-onnx", "nowhere.safetensors", "--out", &out],
        "there is no such file",
    );
    let output = export("../published/tests/fixtures/agents_alone.safetensors");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && table.contains("actor.candidate.0.weight,"), "{table}");
    for (name, _) in apportion_published::weights::WEIGHTS {
        let output = export(name);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[cfg(not(feature = "onnx"))]
#[test]
fn a_build_without_onnx_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let weights = path(folder.path(), "my.onnx");
    let output = apportion(&["policies", "export-onnx", "learned_pairs", "--out", &weights]);
    assert!(output.status.success());
    let file = policy_file(folder.path(), "pairs", &weights);
    let expected = format!(
        "policy `mine`: weights `{weights}`: it is an ONNX file, which this build does not read: build with `--features onnx`"
    );
    assert_refused(&["policies", "check", &file], &expected);
    assert_refused(&["world", "dual-agent", "--weights", &weights], "--features onnx");
}

#[cfg(feature = "onnx")]
mod onnx {
    use apportion_learn::network::Activation;
    use apportion_learn::onnx::write;
    use apportion_learn::tensors::Tensors;
    use apportion_published::dual_agent::observe::Window;

    use super::*;

    /// All events of a simulation under this policy, after the header line, but for allocations: what two networks score alike differs in the
    /// last digits, and with it shares that an interior-point method computes.
    fn simulated(folder: &Path, policy: &str) -> String {
        let events = path(folder, "events.jsonl");
        let run = ["simulate", "--cluster", "v100=2,p100=2,k80=2", "--rate", "1", "--jobs", "12"];
        let output = apportion(&[&run[..], &["--policy", policy, "--events", &events, "--quiet"]].concat());
        assert!(output.status.success(), "{policy}: {}", String::from_utf8_lossy(&output.stderr));
        let events = std::fs::read_to_string(&events).expect("written");
        assert!(events.lines().count() > 100, "{policy}");
        let rest = events.lines().skip(1).filter(|line| !line.contains(r#""event":"allocated""#));
        rest.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_shipped_networks_decide_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        // A policy file of the network alone has no floor.
        for (network, policy, actor) in [
            ("dl2", "dl2", "window"),
            ("learned_pairs", "learned_pairs", "pairs"),
            ("learned_values", "learned_values:floor=0", "values"),
        ] {
            let weights = path(folder.path(), &format!("{network}.onnx"));
            let output = apportion(&["policies", "export-onnx", network, "--out", &weights]);
            assert!(output.status.success());
            let file = policy_file(folder.path(), actor, &weights);
            assert!(simulated(folder.path(), policy) == simulated(folder.path(), &file), "{policy}");
        }
    }

    /// A network with one layer for each of these sizes, with all biases equal to `bias`.
    fn one_layer(folder: &Path, sizes: &[(usize, usize)], bias: f32) -> String {
        let mut tensors = Tensors::default();
        for (agent, (inputs, outputs)) in sizes.iter().enumerate() {
            let mut insert = |part: &str, shape: Vec<usize>, number: f32| {
                let numbers = vec![number; shape.iter().product()];
                tensors.insert(format!("actor.{agent}.0.{part}"), shape, numbers).expect("as many");
            };
            insert("weight", vec![*outputs, *inputs], 0.0);
            insert("bias", vec![*outputs], bias);
        }
        let file = path(folder, "layer.onnx");
        let bytes = write(&tensors, (Activation::Tanh, sizes.len()), "").expect("a network");
        std::fs::write(&file, bytes).expect("written");
        file
    }

    #[test]
    fn worlds_take_the_shipped_networks_alike() {
        let folder = tempfile::tempdir().expect("a folder");
        for (world, weights, policy) in [
            ("dl2", "dl2_world", "drf"),
            ("deepshare", "deepshare_e", "las"),
            ("deepshare", "deepshare_hybrid", "las"),
            ("elastic", "elastic", "drf"),
        ] {
            let shipped = format!("{}/../../training/{weights}.safetensors", env!("CARGO_MANIFEST_DIR"));
            let file = path(folder.path(), &format!("{weights}.onnx"));
            assert!(apportion(&["policies", "export-onnx", &shipped, "--out", &file]).status.success());
            let rows = |weights: &str| {
                let small = ["world", world, "--jobs", "8", "--policy", policy];
                let output = apportion(&[&small[..], &["--weights", weights, "--format", "csv"]].concat());
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                String::from_utf8(output.stdout).expect("text")
            };
            assert!(rows(&file).contains(weights), "{}", rows(&file));
            assert_eq!(rows(&file), rows(weights));
            let narrow = one_layer(folder.path(), &[(7, 4)], 0.0);
            assert_refused(&["world", world, "--weights", &narrow], "its input `observation` has 7 numbers");
        }
        let scores_nothing = one_layer(folder.path(), &[(13, 1)], f32::NAN);
        let run = ["world", "elastic", "--jobs", "8", "--weights", &scores_nothing];
        assert_refused(&run, "layer on seed 0: the logit of action 0 is NaN");
    }

    #[test]
    fn two_agents_of_one_file_play_as_the_shipped_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        for (place, weights) in [
            ("../published/tests/fixtures", "agents_alone"),
            ("../../training", "dual_agent_longer"),
            ("../../training", "dual_agent_joint"),
        ] {
            let shipped = format!("{}/{place}/{weights}.safetensors", env!("CARGO_MANIFEST_DIR"));
            let file = path(folder.path(), &format!("{weights}.onnx"));
            assert!(apportion(&["policies", "export-onnx", &shipped, "--out", &file]).status.success());
            let rows = |weights: &str| {
                let small = ["world", "dual-agent", "--jobs", "12", "--gap", "30", "--scale", "0.01"];
                let more = ["--policy", "srtf/posterior", "--weights", weights, "--format", "csv"];
                let output = apportion(&[&small[..], &more[..]].concat());
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                String::from_utf8(output.stdout).expect("text")
            };
            assert!(rows(&file).contains(weights), "{}", rows(&file));
            assert_eq!(rows(&file), rows(&shipped));
        }
    }

    fn words(run: &[String]) -> Vec<&str> {
        run.iter().map(String::as_str).collect()
    }

    #[test]
    fn both_agents_come_from_one_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let window = Window { n_jobs: 4, n_servers: 6 };
        let order = (window.team_length(), window.n_jobs + 1);
        let placement = (window.placement_length(), window.n_candidates());
        let run = |sizes: &[(usize, usize)], bias: f32| {
            let weights = one_layer(folder.path(), sizes, bias);
            [
                "world",
                "dual-agent",
                "--jobs",
                "6",
                "--policy",
                "srtf/posterior",
                "--format",
                "csv",
                "--weights",
            ]
            .map(str::to_owned)
            .into_iter()
            .chain([weights])
            .collect::<Vec<_>>()
        };
        let refused = |run: Vec<String>, expected: &str| assert_refused(&words(&run), expected);
        let output = apportion(&words(&run(&[order, placement], 0.0)));
        let table = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && table.contains("\nlayer,"), "{table}");
        refused(run(&[order, placement], f32::NAN), "layer on seed 0: the logit of action 0 is NaN");
        refused(run(&[order, (placement.0 - 1, placement.1)], 0.0), "its input `observation.1` has");
        refused(run(&[order], 0.0), "it has networks for 1 agents, expected 2");
    }

    #[test]
    fn a_network_that_does_not_fit_its_actor_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |actor: &str, sizes: (usize, usize), expected: &str| {
            let weights = one_layer(folder.path(), &[sizes], 0.0);
            let expected = format!("policy `mine`: weights `{weights}`: {expected}");
            assert_refused(&["policies", "check", &policy_file(folder.path(), actor, &weights)], &expected);
        };
        check("pairs", (12, 1), "its input `observation` has 12 numbers, expected 13");
        check("values", (13, 2), "its output `logits` has 2 numbers, expected 1");
        check("window", (40, 13), "its input `observation` has 40 numbers, expected 9 for each job");
        check("window", (36, 12), "its output `logits` has 12 numbers, expected 13: 3 for each of 4 jobs");
        let damaged = path(folder.path(), "damaged.onnx");
        std::fs::write(&damaged, b"nothing").expect("written");
        let file = policy_file(folder.path(), "pairs", &damaged);
        assert_refused(&["policies", "check", &file], "damaged.onnx`: not a whole ONNX file");
    }

    #[test]
    fn what_is_not_a_number_ends_the_run() {
        let folder = tempfile::tempdir().expect("a folder");
        for (actor, sizes) in [("window", (36, 13)), ("pairs", (13, 1)), ("values", (13, 1))] {
            let weights = one_layer(folder.path(), &[sizes], f32::NAN);
            let file = policy_file(folder.path(), actor, &weights);
            let run = [
                "simulate",
                "--policy",
                &file,
                "--cluster",
                "v100=2,p100=2,k80=2",
                "--rate",
                "1",
                "--jobs",
                "4",
            ];
            assert_refused(
                &run,
                "policy `mine` cannot decide: the logit of action 0 is NaN, expected a number",
            );
        }
    }
}
