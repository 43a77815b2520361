//! Floors of policies that value jobs: a gang, and a job of ten hours with the worst ratio of throughputs everywhere, each beside a stream of jobs
//! of one worker that does not end.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A stream of jobs for this many hours, and a job among them.
struct Stream {
    cluster: &'static str,
    trace: String,
    /// The place of the job in the trace.
    job: u32,
    hours: f64,
}

const COLUMNS: &str = "job_type,total_steps,arrival,scale_factor\n";

/// Four workers. A job of one worker and of most of an hour comes every quarter of an hour; a gang needs all four workers for half an hour.
fn gang() -> Stream {
    let mut trace = COLUMNS.to_owned();
    for number in 0..300 {
        if number == 1 {
            trace += "ResNet-50 (batch size 64),17000,600,4\n";
        }
        writeln!(trace, "A3C,24500,{},1", 900 * number).expect("written");
    }
    Stream { cluster: "v100=4", trace, job: 1, hours: 75.0 }
}

/// Six workers of three types. Every 800 seconds comes a job of an hour that is fastest on v100 or on p100, in turn; one job of ten hours has
/// less of its equal share's throughput on each type than one kind of these jobs or the other.
fn worst_ratio() -> Stream {
    let mut trace = COLUMNS.to_owned();
    for number in 0..675 {
        if number == 9 {
            trace += "A3C,258336,7200,1\n";
        }
        let job = ["ResNet-50 (batch size 128),8989", "Recommendation (batch size 1024),110678"][number % 2];
        writeln!(trace, "{job},{},1", 800 * number).expect("written");
    }
    Stream { cluster: "v100=2,p100=2,k80=2", trace, job: 9, hours: 150.0 }
}

/// Hours at which the job and the last one end.
fn ends(policy: &str, Stream { cluster, trace, job, .. }: &Stream) -> (f64, f64) {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, events) = (folder.path().join("t.csv"), folder.path().join("events.jsonl"));
    fs::write(&file, trace).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_apportion"));
    command.args(["simulate", "--cluster", cluster, "--policy", policy, "--trace"]).arg(file);
    let prices = folder.path().join("prices.yaml");
    fs::write(&prices, "{v100: 2.5, p100: 1.5, k80: 0.5}").expect("written");
    command.arg("--prices").arg(prices);
    let output = command.arg("--events").arg(&events).output().expect("the command runs");
    assert!(output.status.success(), "{policy}: {}", String::from_utf8_lossy(&output.stderr));
    let events = fs::read_to_string(events).expect("events");
    let events = events.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let (mut end, mut last) = (None, 0.0_f64);
    for completion in events.filter(|event| event["event"] == "completion") {
        let at = completion["at"].as_f64().expect("a time") / 3600.0;
        last = last.max(at);
        if completion["id"] == *job {
            end = Some(at);
        }
    }
    (end.expect("the job ends"), last)
}

/// Names of the policies that ship, and their files.
fn shipped() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies");
    let files = fs::read_dir(folder).expect("the policies").map(|entry| entry.expect("a file").path());
    let policies = files.filter(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    let named = policies.map(|path| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("text"))
    });
    named.collect()
}

/// Policies that value jobs and have a floor in each decision.
const IN_EACH_DECISION: [&str; 9] = [
    "completion_rate",
    "completion_rate_packed",
    "elastic_optimus",
    "learned_values",
    "learned_values_packed",
    "low_average_jct",
    "low_average_jct_packed",
    "tempered_completion_rate",
    "tempered_completion_rate_packed",
];

/// Policies that serve a job first once it is a day behind.
const AFTER_A_DAY: [&str; 5] = ["deepshare", "dl2", "dual_agent", "elastic", "learned_pairs"];

/// Checks that the job ends within these hours under each policy with a floor, as its kind of floor has it, and under these policies not
/// before the stream does.
fn check(stream: &Stream, [in_each_decision, after_a_day]: [f64; 2], starving: &[&str]) {
    let with_a_floor = IN_EACH_DECISION.iter().map(|policy| (policy, in_each_decision));
    // Of the other stream than the gang's, `dl2` does not do as much as comes.
    let after_a_day = AFTER_A_DAY.iter().map(|policy| (policy, after_a_day));
    let after_a_day = after_a_day.filter(|(policy, _)| **policy != "dl2" || stream.job == 1);
    for (policy, bound) in with_a_floor.chain(after_a_day) {
        let (job, last) = ends(policy, stream);
        assert!(
            job < bound && last > stream.hours,
            "{policy}: the job ends after {job} h, the stream after {last} h"
        );
    }
    for policy in starving {
        let (job, _) = ends(policy, stream);
        assert!(job > stream.hours, "{policy}: the job ends after {job} h");
    }
}

#[test]
fn a_gang_ends_beside_an_endless_stream_under_every_policy_with_a_floor() {
    let starving = [
        "completion_rate:floor=0",
        "completion_rate_packed:floor=0",
        "deepshare:floor=0",
        "dual_agent:floor=0",
        "elastic:floor=0",
        "learned_values:floor=0",
        "tempered_completion_rate:floor=0",
        "tempered_completion_rate_packed:floor=0",
        "themis",
        "themis:fairness=0",
    ];
    check(&gang(), [20.0, 30.0], &starving);
}

#[test]
fn the_job_with_the_worst_ratio_everywhere_ends_under_every_policy_with_a_floor() {
    check(&worst_ratio(), [60.0, 130.0], &["srtf", "dual_agent:floor=0"]);
}

/// Policies that learn, or weigh jobs by what is left of them or by what they make, say what keeps a job from starving, or that nothing does.
#[test]
fn policies_that_value_jobs_say_what_floor_they_have() {
    let values_jobs = [
        "kind: learned",
        "rule: srtf",
        "rule: sjf",
        "rule: las",
        "rule: themis",
        "rule: allox",
        "sum_over_jobs(",
    ];
    let mut n_files = 0;
    for (name, text) in shipped() {
        // A logarithm of throughput is a floor by itself.
        if text.contains("log(") || !values_jobs.iter().any(|part| text.contains(part)) {
            continue;
        }
        let (_, notes) = text.split_once("notes:").unwrap_or_default();
        assert!(notes.contains("floor"), "{name} says nothing of a floor");
        n_files += 1;
    }
    assert!(n_files > 22, "{n_files}");
}

/// Every policy that ships is played beside the stream: what starves the gang says so.
#[test]
fn policies_that_starve_a_gang_say_that_they_have_no_floor() {
    let mut starving = Vec::new();
    let stream = gang();
    // Allox refuses gangs.
    for (name, text) in shipped().into_iter().filter(|(name, _)| name != "allox") {
        let (gang, _) = ends(&name, &stream);
        if gang > 75.0 {
            let (_, notes) = text.split_once("notes:").unwrap_or_default();
            let words = notes.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
            assert!(
                words.contains("no floor") || words.contains("has none"),
                "{name}: {gang} h, and no word of it"
            );
            starving.push(name);
        }
    }
    assert!(starving.len() > 5, "{starving:?}");
}
