//! The command as people and scripts run it: the examples of README, output formats, exit codes.

use std::io::Write;
use std::process::{Command, Stdio};

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn apportion(arguments: &[&str], input: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_apportion"))
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // A command that does not read its input closes it: that is no fault of the test.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("the command ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Whether `actual` is as `expected` shows. A line `...` stands for any lines, `...` within a line for any text.
fn shows(expected: &[&str], actual: &[&str]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((&"...", rest)) => (0..=actual.len()).any(|from| shows(rest, &actual[from..])),
        Some((line, rest)) => actual.split_first().is_some_and(|(first, others)| {
            let fits = match line.split_once("...") {
                None => first == line,
                Some((start, end)) => first.starts_with(start) && first.ends_with(end),
            };
            fits && shows(rest, others)
        }),
    }
}

/// A text without figures if the solver is not HiGHS: other solvers choose among optima by other last digits, and README's figures
/// are those of HiGHS.
fn figures(text: &str) -> String {
    if cfg!(feature = "highs") {
        return text.to_owned();
    }
    text.replace(|letter: char| letter.is_ascii_digit(), "0")
}

/// Runs the command lines in the `console` blocks of a page, in order, and answers how many there are. Where the page shows the output
/// of one, it is as the page shows it.
fn run_blocks(name: &str, page: &str) -> usize {
    let mut n_commands = 0;
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        for shown in block.split("$ ").skip(1) {
            let Some((command, expected)) = shown.split_once('\n') else { continue };
            let Some(arguments) = command.strip_prefix("apportion ") else { continue };
            let words: Vec<&str> = arguments.split(' ').map(|word| word.trim_matches('\'')).collect();
            let ran = apportion(&words, "");
            assert_eq!(ran.code, Some(0), "{name}: $ {command}\n{}", ran.stderr);
            let actual = format!("{}{}", ran.stdout, ran.stderr);
            let (promised, printed) = (figures(expected), figures(&actual));
            let (expected, lines): (Vec<&str>, Vec<&str>) =
                (promised.lines().collect(), printed.lines().collect());
            assert!(shows(&expected, &lines), "{name} shows other output than\n$ {command}\n{actual}");
            n_commands += 1;
        }
    }
    n_commands
}

#[test]
fn the_readme_and_the_page_of_studies_show_what_the_command_prints() {
    // Kept results would be shown again, whichever build made them.
    for name in ["sweep", "study", "costly", "policy", "traced"] {
        let folder = format!("{}/../../target/readme-{name}", env!("CARGO_MANIFEST_DIR"));
        let _ = std::fs::remove_dir_all(folder);
    }
    let readme = run_blocks("README", include_str!("../../../../README.md"));
    let study = run_blocks("docs/study.md", include_str!("../../../../docs/study.md"));
    assert!(
        readme >= 3 && study >= 9,
        "{readme} and {study} commands: the form has changed, teach this test"
    );
}

#[test]
fn an_allocation_in_json_has_every_documented_field() {
    for (policy, solved) in [("max_min_fairness_perf", true), ("isolated", false)] {
        let ran =
            apportion(&["allocate", "--policy", policy, "--format", "json", "examples/snapshot.yaml"], "");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let answer: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!(answer["policy"], policy);
        assert_eq!(answer["allocation"][0]["jobs"], serde_json::json!([17]));
        assert!(answer["allocation"][0]["shares"]["v100"].is_f64());
        assert!(answer["effective_throughput"]["23"].as_f64().is_some_and(|throughput| throughput > 0.0));
        assert!(answer["certificate"]["violation_max"].as_f64().is_some_and(|violation| violation < 1e-6));
        assert!(answer["dropped"].as_array().is_some_and(Vec::is_empty));
        assert_eq!(answer["objective"].is_object(), solved);
        if solved {
            assert_eq!(answer["certificate"]["optimal"], true);
            assert_eq!(answer["objective"]["sense"], "maximize");
            for field in ["value", "bound", "gap_relative"] {
                assert!(answer["objective"][field].is_f64(), "{field}");
            }
            for field in ["build", "solve", "expand"] {
                assert!(answer["solve"]["seconds"][field].is_f64(), "{field}");
            }
            assert!(answer["solve"]["route"].is_string() && answer["solve"]["reason"].is_string());
            assert_eq!(answer["solve"]["strategy"], "singles");
            assert_eq!(
                (&answer["solve"]["backend"], &answer["solve"]["solves"]),
                (&serde_json::Value::Null, &serde_json::json!(0))
            );
        }
    }
}

#[test]
fn a_strategy_that_is_asked_for_decides_or_says_why_not() {
    let asked = |policy: &str, strategy: &str, rest: &[&str]| {
        let asked = ["allocate", "--policy", policy, "--strategy", strategy, "examples/snapshot.yaml"];
        apportion(&[&asked[..], rest].concat(), "")
    };
    let ran = asked("max_min_fairness_perf", "written", &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("strategy   written: it was asked for\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("programs, the optimum by "), "{}", ran.stdout);
    let ran = asked("max_min_fairness_perf", "singles", &[]);
    assert!(ran.stdout.contains(": 2 searches for prices, "), "{}", ran.stdout);
    let ran = asked("max_min_fairness_perf", "kinds", &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    let message = "cannot decide by `kinds`: there are no pairs of jobs";
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
    let ran = asked("max_min_fairness_perf", "singles", &["--backend", "clarabel"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    let ran = asked("isolated", "written", &[]);
    assert!(ran.stderr.contains("is not a program: it has no `--strategy`"), "{}", ran.stderr);
    let ran = apportion(&["explain", "--policy", "max_min_fairness_perf", "examples/snapshot.yaml"], "");
    assert!(ran.stdout.contains("\ndecided by singles: no two jobs share workers\n"), "{}", ran.stdout);
}

#[test]
fn a_snapshot_is_read_from_standard_input_and_ids_keep_their_kind() {
    let snapshot =
        "{format: apportion/snapshot-v1, cluster: {v100: 1}, jobs: [{id: late, throughput: {v100: 2}}]}";
    let ran = apportion(&["allocate", "--policy", "fifo_perf", "--format", "csv", "-"], snapshot);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "jobs,v100,throughput\nlate,1,2\n"),
        "{}",
        ran.stderr
    );
}

#[test]
fn gangs_that_a_type_is_too_small_for_are_told() {
    let snapshot = "{format: apportion/snapshot-v1, cluster: {v100: 4, k80: 2}, jobs: [
        {id: 1, throughput: {v100: 4, k80: 1}}, {id: 2, scale_factor: 4, throughput: {v100: 16, k80: 4}}]}";
    let asked = ["allocate", "--policy", "max_min_fairness_perf", "--format", "csv", "-"];
    let time_on_k80 = |ran: &Ran| {
        let row = ran.stdout.lines().find_map(|line| line.strip_prefix("2,")).expect("job 2 has a row");
        row.split(',').nth(1).expect("two types").parse::<f64>().expect("a number")
    };
    let ran = apportion(&asked, snapshot);
    assert!(ran.stderr.contains("no time on `k80` for 1 of 2 jobs"), "{}", ran.stderr);
    assert!(time_on_k80(&ran) <= 0.0, "{}", ran.stdout);
    let ran =
        apportion(&["allocate", "--policy", "max_sum_throughput_normalized_by_cost_perf", "-"], snapshot);
    assert!(ran.code == Some(2) && !ran.stderr.contains("no time"), "one complaint: {}", ran.stderr);
    let ran = apportion(&[&asked[..], &["--semantics", "gavel"]].concat(), snapshot);
    assert!(ran.stderr.is_empty() && time_on_k80(&ran) > 0.0, "{}{}", ran.stdout, ran.stderr);
    let snapshot = "{format: apportion/snapshot-v1, cluster: {v100: 4, k80: 2, p100: 1, t4: 0}, jobs: [
        {id: 1, scale_factor: 2, throughput: {v100: 4, p100: 1, t4: 1}},
        {id: 2, scale_factor: 4, throughput: {v100: 16, k80: 4, p100: 1, t4: 1}}]}";
    let said = apportion(&asked, snapshot).stderr;
    assert!(said.contains("no time on `k80` for 1, on `p100` for 2 of 2 jobs"), "{said}");
}

#[test]
fn ids_are_spelt_out_for_people_and_whole_for_programs() {
    let snapshot = "{format: apportion/snapshot-v1, cluster: {v100: 1}, jobs: [
        {id: \"a\\n9  1.0\\e[2J\\u202e\", throughput: {v100: 4}}]}";
    for command in ["allocate", "explain"] {
        let asked = [command, "--policy", "max_min_fairness_perf", "-"];
        let ran = apportion(&asked, snapshot);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.contains("a\\n9  1.0\\u{1b}[2J\\u{202e}"), "{command}: {}", ran.stdout);
        let ran = apportion(&[&asked[..], &["--format", "json"]].concat(), snapshot);
        assert!(ran.stdout.contains("a\\n9  1.0\\u001b[2J\u{202e}"), "{command}: {}", ran.stdout);
    }
}

#[test]
fn counts_of_workers_have_a_range() {
    for (counts, expected) in [
        ("v100=10000001", "`v100=10000001`: expected a whole number of workers from 0 to 10000000"),
        ("v100=4,k80=-1", "`k80=-1`: expected a whole number of workers"),
        ("v100=5000000000", "from 0 to 10000000"),
        ("v100", "`v100` is not `worker_type=count`"),
        ("=3", "`=3` is not `worker_type=count`"),
    ] {
        let ran = apportion(&["simulate", "--policy", "fifo", "--cluster", counts, "--static", "1"], "");
        assert!(ran.code == Some(2) && ran.stderr.contains(expected), "{counts}: {}", ran.stderr);
    }
}

#[test]
fn every_job_and_worker_type_is_explained() {
    let ran = apportion(&["explain", "--policy", "max_min_fairness_perf", "examples/snapshot.yaml"], "");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for words in [
        "perf: linear: one linear program",
        "decided by singles: no two",
        "one worker more",
        "sets the objective",
        "v100",
        "25",
    ] {
        assert!(ran.stdout.contains(words), "`{words}` is not in\n{}", ran.stdout);
    }
    // A packed program, a parametric one and water filling: a job in words, with the effect of more workers.
    for policy in
        ["max_min_fairness_packed", "finish_time_fairness_perf", "max_min_fairness_water_filling_perf"]
    {
        let asked = ["explain", "--policy", policy, "examples/snapshot.yaml", "--job", "24"];
        let ran = apportion(&asked, "");
        for words in ["\n24: ", "one worker more of v100 ", "one worker more of k80 "] {
            assert!(ran.stdout.contains(words), "`{words}` is not in\n{}{}", ran.stdout, ran.stderr);
        }
        assert!(!ran.stdout.contains("-0.000000"), "{}", ran.stdout);
    }
    // The phases by time, and the step at which a level that rose further was fixed.
    for (policy, words) in [
        ("max_min_fairness_strategy_proof", "the discount took "),
        ("max_min_fairness_water_filling_perf", "fixed at step 2 of "),
        ("max_min_fairness_hierarchical_packed", "fixed at step 2 of "),
    ] {
        let ran = apportion(&["explain", "--policy", policy, "examples/snapshot.yaml"], "");
        assert!(ran.stdout.contains(words), "`{words}` is not in\n{}{}", ran.stdout, ran.stderr);
    }
    let ran = apportion(&["explain", "--policy", "fifo_perf", "examples/snapshot.yaml", "--job", "71"], "");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("has no job `71`"), "{}", ran.stderr);
}

#[test]
fn bad_input_ends_in_code_2_with_one_complaint() {
    let base = "format: apportion/snapshot-v1\ncluster: {v100: 1}\njobs: ";
    let cases = [
        (base.replace("v100: 1", "v100: 0") + "[]", "the cluster has no workers, expected at least one"),
        (format!("{base}[{{id: 1, throughput: {{v100: .nan}}}}]"), "`v100` is NaN"),
        (format!("{base}[{{id: 1, throughput: {{v100: 0}}}}]"), "job `1` can run on no worker type"),
        (format!("{base}[{{id: 1, job_type: nope}}]"), "unknown job type `nope`"),
        (format!("{base}[{{id: 1, throughput: {{v10: 1}}}}]"), "unknown worker type `v10`"),
        (format!("{base}[{{id: 1"), "not YAML"),
        ("\0\u{1}\u{2}".to_owned(), "this one is binary"),
        (String::new(), "the document is empty"),
    ];
    for (snapshot, words) in cases {
        let ran = apportion(&["allocate", "--policy", "isolated", "-"], &snapshot);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{snapshot:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{snapshot:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("error: ").count(), 1, "{}", ran.stderr);
    }
    for arguments in [
        &["allocate", "--policy", "nope", "examples/snapshot.yaml"][..],
        &["allocate", "--policy", "isolated", "no/such/file"],
        &["allocate", "--policy", "fifo", "--backend", "clarabel", "examples/snapshot.yaml"],
        &["allocate", "--policy", "max_min_fairness_perf", "--backend", "nope", "examples/snapshot.yaml"],
        &["allocate", "examples/snapshot.yaml"],
        &["nonsense"],
        &["policies", "check", "examples/snapshot.yaml"],
    ] {
        let ran = apportion(arguments, "");
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn policies_are_listed_shown_and_checked() {
    let ran = apportion(&["policies", "list", "--format", "json"], "");
    let listed: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let begins = [&listed["format"], &listed["version"]].map(|field| field.as_str());
    assert_eq!(begins, [Some("apportion/table-v1"), Some(env!("CARGO_PKG_VERSION"))]);
    let listed = listed["rows"].as_array().expect("rows");
    assert!(listed.len() >= 15, "{}", ran.stdout);
    for policy in listed {
        let name = policy["policy"].as_str().expect("a name");
        let shown = apportion(&["policies", "show", name], "");
        assert!(shown.stdout.contains(&format!("name: {name}")), "{}", shown.stdout);
        assert_eq!(apportion(&["policies", "check", name], "").code, Some(0), "{name}");
    }
    let schema = apportion(&["policies", "schema"], "");
    let schema: serde_json::Value = serde_json::from_str(&schema.stdout).expect("JSON");
    assert!(schema["anyOf"][0]["properties"]["maximize"].is_object(), "{schema}");
    assert!(schema["anyOf"][1]["properties"]["actor"].is_object(), "{schema}");
}

#[test]
fn a_constraint_that_is_wrong_is_shown_with_what_would_do() {
    let policy = |constraint: &str| {
        let text = format!(
            "format: apportion/policy-v1\nname: x\nsummary: s\nkind: program\nmaximize: sum_over_jobs(throughput)\nfor_each_job:\n  - {constraint}\n"
        );
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("x.yaml");
        std::fs::write(&file, text).expect("written");
        let ran = apportion(&["policies", "check", file.to_str().expect("UTF-8")], "");
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        ran.stderr
    };
    let said = policy("throughput > 3[steps/s]");
    assert!(said.contains("7:16") && said.contains("help: use `>=`"), "{said}");
    let said = policy("throughput < 3[steps/s]");
    assert!(said.contains("help: use `<=`"), "{said}");
    let said = policy("{constraint: \"throughput >= 3[steps/s]\", soft: -1}");
    assert!(said.contains("penalty -1, expected a finite number above 0") && said.contains("7:52"), "{said}");
}

#[test]
fn a_program_is_printed_for_another_solver() {
    let snapshot = "examples/snapshot.yaml";
    let lp = apportion(&["explain", "--policy", "max_min_fairness_perf", snapshot, "--program", "lp"], "");
    assert_eq!(lp.code, Some(0), "{}", lp.stderr);
    assert!(lp.stdout.contains("capacity") && lp.stdout.to_lowercase().contains("maximize"), "{}", lp.stdout);
    let mps = apportion(&["explain", "--policy", "max_min_fairness_perf", snapshot, "--program", "mps"], "");
    assert!(mps.stdout.contains("ROWS") && mps.stdout.contains("ENDATA"), "{}", mps.stdout);
    for (policy, complaint) in [("fifo", "a rule"), ("proportional_fairness", "cone")] {
        let refused = apportion(&["explain", "--policy", policy, snapshot, "--program", "lp"], "");
        assert_eq!(refused.code, Some(2), "{policy}");
        assert!(refused.stderr.contains(complaint), "{}", refused.stderr);
    }
}

/// Eight workers at 10 dollars an hour and two jobs that may cost 4 each: the policy's own constraint holds both.
#[test]
fn what_the_policy_s_own_constraint_limits_is_explained_by_its_price() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let policy = folder.path().join("capped.yaml");
    let cap = "scale_factor * sum_over_worker_types(price(type) * time_on(type)) <= 4[$/h]";
    let document = format!(
        "format: apportion/policy-v1\nname: capped\nsummary: x\nkind: program\n\
         maximize: min_over_jobs(throughput / isolated_throughput)\nfor_each_job:\n  - {cap}\n"
    );
    std::fs::write(&policy, document).expect("written");
    let snapshot = "format: apportion/snapshot-v1\ncluster: {a: 8}\nprices: {a: 10}\njobs:\n  \
                    - {id: x, scale_factor: 1, throughput: {a: 1.0}}\n  - {id: 7, scale_factor: 1, throughput: {a: 1.0}}\n";
    let policy = policy.to_str().expect("UTF-8");
    let ran = apportion(&["explain", "--policy", policy, "-", "--job", "x"], snapshot);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let held = format!("x: sets the objective; is held by `{cap}`\n");
    let priced =
        format!("  `{cap}` binds: 1[$/h] more on its right changes the objective by at most +0.050000\n");
    for words in [&held[..], &priced, "  more time than there is gains nothing\n"] {
        assert!(ran.stdout.contains(words), "`{words}` is not in\n{}", ran.stdout);
    }
    assert!(!ran.stdout.contains("given away"), "{}", ran.stdout);
    let ran = apportion(&["explain", "--policy", policy, "-", "--format", "json"], snapshot);
    let explained: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let rows = explained["constraints"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{explained:#}");
    for (row, id) in rows.iter().zip([serde_json::json!("x"), serde_json::json!(7)]) {
        assert_eq!((&row["constraint"], &row["job"], &row["unit"]), (&cap.into(), &id, &"$/h".into()));
        assert_eq!(
            (&row["binds"], &row["dropped"], &row["penalty"]),
            (&true.into(), &false.into(), &().into())
        );
        assert!((row["price"].as_f64().expect("a price") - 0.05).abs() < 1e-6, "{row}");
    }
    assert_eq!(explained["jobs"][0]["binding"], "constraint");
    assert_eq!(explained["jobs"][0]["limits"], serde_json::json!([{"row": "constraint", "constraint": 0}]));
    assert_eq!(explained["worker_types"][0]["binds"], false);
}

/// Two jobs of research share one worker's time: each has half, and half of what they had more.
#[test]
fn a_constraint_on_the_whole_cluster_is_one_row_with_a_price() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("quota.yaml");
    let quota = |owner: &str, more: &str| {
        let row = format!("sum_over_jobs(owned_by(\"{owner}\") * time_on(a)) <= 1");
        let document = format!(
            "format: apportion/policy-v1\nname: quota\nsummary: x\nkind: program\n\
             maximize: min_over_jobs(throughput)\nconstraints:\n  - {row}\n{more}"
        );
        std::fs::write(&path, document).expect("written");
        row
    };
    let policy = path.to_str().expect("UTF-8");
    let snapshot = "format: apportion/snapshot-v1\ncluster: {a: 8}\nentities: [{id: research, weight: 1}]\njobs:\n  \
                    - {id: x, entity: research, throughput: {a: 1.0}}\n  - {id: y, entity: research, throughput: {a: 1.0}}\n  \
                    - {id: z, throughput: {a: 1.0}}\n";
    let row = quota("research", "");
    let ran = apportion(&["explain", "--policy", policy, "-"], snapshot);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains(&format!("{row}  the whole cluster  binds")), "{}", ran.stdout);
    let ran = apportion(&["explain", "--policy", policy, "-", "--format", "json"], snapshot);
    let explained: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let [of] = &explained["constraints"].as_array().expect("rows")[..] else { panic!("{explained:#}") };
    assert_eq!((&of["constraint"], &of["for_each"]), (&row.into(), &"cluster".into()));
    assert!((of["price"].as_f64().expect("a price") - 0.5).abs() < 1e-6, "{of}");

    let stranger = quota("reserch", "");
    let ran = apportion(&["allocate", "--policy", policy, "-"], snapshot);
    assert_eq!(ran.code, Some(2), "{stranger}: {}", ran.stdout);
    for words in [
        "names the owner `reserch`",
        "expected one of the snapshot's, `research`",
        "did you mean `research`?",
    ] {
        assert!(ran.stderr.contains(words), "`{words}` is not in\n{}", ran.stderr);
    }

    let _ = quota("research", "  - sum_over_jobs(owned_by(\"research\") * throughput) >= 1.5[steps/s]\n");
    let ran = apportion(&["allocate", "--policy", policy, "-"], snapshot);
    assert_eq!(ran.code, Some(3), "{}", ran.stdout);
    let named =
        "<= 1` for the whole cluster (could be kept beside the others with 150.0 % of its right side); ";
    assert!(ran.stderr.contains(named), "{}", ran.stderr);
}

#[test]
fn identical_jobs_get_identical_rows_from_a_network() {
    let job = |id: usize| {
        format!(r#"{{"id": {id}, "steps_remaining": 1e5, "throughput": {{"v100": 2, "p100": 1}}}}"#)
    };
    let jobs: Vec<String> = (0..3).map(job).collect();
    let jobs = jobs.join(",");
    let snapshot = format!(
        r#"{{"format": "apportion/snapshot-v1", "cluster": {{"v100": 1, "p100": 1}}, "jobs": [{jobs}]}}"#
    );
    let ran = apportion(&["allocate", "--policy", "learned_values", "--format", "json", "-"], &snapshot);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let rows = answer["allocation"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row["shares"] == rows[0]["shares"]), "{rows:?}");
}

#[test]
fn owners_in_a_longer_chain_than_is_believed_are_refused_at_their_place() {
    let owners: Vec<String> = (0..1_001)
        .map(|at| match at {
            0 => "{id: o0}".to_owned(),
            _ => format!("{{id: o{at}, parent: o{}}}", at - 1),
        })
        .collect();
    let snapshot = |n: usize| {
        format!(
            "format: apportion/snapshot-v1\ncluster: {{v100: 1}}\nentities:\n- {}\njobs: \
             [{{id: 1, entity: o{}, throughput: {{v100: 1}}}}]\n",
            owners[..n].join("\n- "),
            n - 1
        )
    };
    let allocate =
        |n: usize| apportion(&["allocate", "--policy", "max_min_fairness_hierarchical", "-"], &snapshot(n));
    assert_eq!(allocate(1_000).code, Some(0));
    let ran = allocate(1_001);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("`o1000` is number 1001 of a chain of owners, expected at most 1000"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains(" --> -:1004:"), "{}", ran.stderr);
}
