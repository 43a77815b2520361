//! Documents and command lines, drawn at random.

use std::fs;
use std::path::Path;

use apportion::spec::snapshot::{Label, SnapshotDocument};
use apportion::workload::random::Stream;
use apportion_published::plugin;
use apportion_studies::check;

use super::{Case, Step, path};

const TYPES: [&str; 3] = ["v100", "p100", "k80"];
const FORMATS: [&str; 3] = ["table", "json", "csv"];
/// The texts that may replace another in a document.
const TOKENS: [&str; 16] = [
    "",
    "null",
    "-1",
    "1e400",
    ".nan",
    "99999999999999999999",
    "{",
    "]",
    "&a [*a]",
    "\0",
    "\t",
    "''",
    "0",
    "1e-300",
    "é",
    ",",
];
/// Names that are valid, but unexpected for their readers.
const NAMES: [&str; 14] = [
    "a b",
    "a,b",
    "a\"b",
    "=1+1",
    "\u{1b}[2J\u{1b}[31mred",
    "bell\u{7}",
    "cr\rover",
    "line\nbreak",
    "ü",
    "日本",
    "'",
    "-x",
    "null",
    "\u{202e}right",
];
const JOB_TYPES: [&str; 4] =
    ["A3C", "ResNet-50 (batch size 64)", "LM (batch size 20)", "Recommendation (batch size 512)"];

struct Draw<'a> {
    stream: &'a mut Stream,
    folder: &'a Path,
    wild: bool,
}

/// A case, with its inputs written into the folder.
pub(super) fn case(stream: &mut Stream, folder: &Path, wild: bool) -> Case {
    let mut draw = Draw { stream, folder, wild };
    match draw.stream.below(16) {
        0..4 => draw.decision("allocate"),
        4..6 => draw.decision("explain"),
        6..9 => draw.simulation(),
        9 | 10 => draw.sweep(),
        11 | 12 => draw.trace(),
        13 => draw.throughputs(),
        14 => draw.policies(),
        _ => draw.bench(),
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn step(arguments: Vec<String>) -> Step {
    Step { arguments, formatted: true }
}

/// A step whose standard output is a document, whatever the format.
fn document(arguments: Vec<String>) -> Step {
    Step { arguments, formatted: false }
}

impl Draw<'_> {
    fn chance(&mut self, part: f64) -> bool {
        self.stream.uniform() < part
    }

    fn one<'b>(&mut self, of: &[&'b str]) -> &'b str {
        of[self.stream.below(of.len())]
    }

    /// A number over many decades, or an odd one.
    fn number(&mut self) -> String {
        if self.wild && self.chance(0.05) {
            return self.one(&["0", "1e-12", "1e15", "-1", "1e300"]).to_owned();
        }
        let decades = if self.wild { 6.0 } else { 1.0 };
        format!("{:.3e}", 10.0_f64.powf(self.stream.uniform_in(-decades, decades)))
    }

    /// Writes an input, now and then damaged.
    fn input(&mut self, name: &str, text: &str) {
        let text = if self.chance(0.12) { self.damaged(text) } else { text.to_owned() };
        fs::write(path(self.folder, name), text).expect("a file in target");
    }

    fn damaged(&mut self, text: &str) -> String {
        let mut letters: Vec<char> = text.chars().collect();
        for _ in 0..=self.stream.below(3) {
            let at = self.stream.below(letters.len() + 1);
            let to = (at + self.stream.below(12)).min(letters.len());
            match self.stream.below(8) {
                0 => letters.truncate(at),
                1 => {
                    let stretch: Vec<char> = letters[at..to].repeat(5);
                    letters.splice(to..to, stretch);
                }
                _ => {
                    let token = self.one(&TOKENS);
                    letters.splice(at..to, token.chars());
                }
            }
        }
        letters.into_iter().collect()
    }

    fn policy(&mut self) -> String {
        let catalog = plugin::catalog();
        let names = catalog.names();
        (*self.stream.choice(&names)).to_owned()
    }

    fn format(&mut self) -> Vec<String> {
        vec!["--format".to_owned(), self.one(&FORMATS).to_owned()]
    }

    fn snapshot(&mut self) -> SnapshotDocument {
        let decades = if self.wild { *self.stream.choice(&[1.0, 3.0, 6.0, 9.0, 12.0, 15.0]) } else { 1.0 };
        let number = self.stream.next_u64();
        let mut document = check::draw(0, number, decades, &TYPES.map(str::to_owned));
        if self.wild && self.chance(0.3) {
            for job in 0..document.jobs.len() {
                if self.chance(0.3) && document.pairs.is_empty() {
                    document.jobs[job].id = Label::Text(format!("{}{job}", self.one(&NAMES)));
                }
            }
        }
        document
    }

    fn decision(&mut self, command: &'static str) -> Case {
        let text = self.snapshot().to_json();
        self.input("snapshot.json", &text);
        let mut arguments = vec![command.to_owned(), "--policy".to_owned(), self.policy()];
        for (flag, values, part) in [
            (
                "--backend",
                &["highs-simplex", "highs-ipm", "clarabel", "good_lp-microlp", "simplex", "separable"][..],
                0.2,
            ),
            ("--refine", &["utilization", "water_filling", "interior", "none"][..], 0.2),
            ("--strategy", &["singles", "kinds", "pairs", "written"][..], 0.1),
            ("--semantics", &["gavel"][..], 0.1),
        ] {
            if self.chance(part) {
                arguments.extend([flag.to_owned(), self.one(values).to_owned()]);
            }
        }
        let program = command == "explain" && self.chance(0.2);
        if program {
            arguments.extend(["--program".to_owned(), self.one(&["lp", "mps"]).to_owned()]);
        }
        // Only JSON has all that can be recomputed.
        let json = self.chance(0.5);
        arguments.extend(if json { words("--format json") } else { self.format() });
        arguments.push("snapshot.json".to_owned());
        Case { kind: command, steps: vec![if program { document(arguments) } else { step(arguments) }] }
    }

    /// A trace of a few jobs in our form.
    fn jobs(&mut self) -> String {
        let mut lines = vec!["id,job_type,scale_factor,total_steps,arrival,weight,slo".to_owned()];
        let mut arrival = 0.0;
        for number in 0..=self.stream.below(6) {
            let odd = self.wild && self.chance(0.1);
            let name = if odd {
                format!("\"{}{number}\"", self.one(&NAMES).replace('"', "\"\""))
            } else {
                number.to_string()
            };
            let kind = self.one(&JOB_TYPES);
            let size = *self.stream.choice(&[1, 1, 1, 2, 4]);
            let steps = 1 + self.stream.below(200_000);
            let slo = if self.chance(0.3) { self.number() } else { String::new() };
            lines.push(format!("{name},{kind},{size},{steps},{arrival},{},{slo}", 1 + self.stream.below(3)));
            arrival += if self.chance(0.5) { 0.0 } else { (1e4 * self.stream.uniform()).round() };
        }
        lines.join("\n") + "\n"
    }

    fn cluster(&mut self) -> String {
        let counts: Vec<String> =
            TYPES.iter().map(|name| format!("{name}={}", self.stream.choice(&[4, 4, 5, 8]))).collect();
        counts[..=self.stream.below(3)].join(",")
    }

    fn simulation(&mut self) -> Case {
        let trace = self.jobs();
        self.input("trace.csv", &trace);
        let workload = match self.stream.below(4) {
            0 => format!("--rate {} --jobs {}", 1 + self.stream.below(4), 1 + self.stream.below(12)),
            1 => format!("--static {}", 1 + self.stream.below(8)),
            _ => "--trace trace.csv".to_owned(),
        };
        let (policy, cluster, seed) = (self.policy(), self.cluster(), self.stream.below(9));
        let mut arguments = words(&format!(
            "simulate --policy {policy} --cluster {cluster} {workload} --seed {seed} --progress never"
        ));
        let costs: &[&str] = if self.wild { &["0", "60", "359", "360", "1e4"] } else { &["0", "60"] };
        for (flag, values, part) in [
            ("--preemption-cost", costs, 0.4),
            ("--round", &["60", "360", "2h"][..], 0.2),
            ("--reset-interval", &["0", "360", "1d"][..], 0.2),
            ("--semantics", &["gavel"][..], 0.15),
            ("--refine", &["utilization", "interior", "none"][..], 0.1),
            ("--servers", &["v100=4", "v100=2"][..], 0.1),
            ("--job-failure", &["0.1", "0.9"][..], 0.1),
            ("--noise", &["0.3", "1"][..], 0.1),
            ("--straggling", &["0.5", "0.99"][..], 0.1),
            ("--look-ahead", &["1", "30", "360"][..], 0.1),
            ("--start-up", &["20", "300"][..], 0.1),
            ("--stop", &["10", "100"][..], 0.1),
            ("--refill", &["never", "completion"][..], 0.1),
        ] {
            if self.chance(part) {
                arguments.extend([flag.to_owned(), self.one(values).to_owned()]);
            }
        }
        if self.chance(0.1) {
            arguments.push("--ideal".to_owned());
        }
        if self.chance(0.3) {
            let prices: Vec<String> = TYPES.iter().map(|name| format!("{name}: {}", self.number())).collect();
            self.input("prices.yaml", &format!("{{{}}}\n", prices.join(", ")));
            arguments.extend(words("--prices prices.yaml"));
        }
        let watched = self.chance(0.4);
        if watched {
            arguments.extend(words("--events events.jsonl"));
        }
        arguments.extend(self.format());
        let mut steps = vec![step(arguments)];
        if watched {
            steps.push(document(words("report events.jsonl --out page.html")));
        }
        Case { kind: "simulate", steps }
    }

    fn sweep(&mut self) -> Case {
        let policies = [self.policy(), self.one(&["fifo", "isolated", "max_min_fairness_perf"]).to_owned()];
        let rates = [1 + self.stream.below(3), 4 + self.stream.below(3)];
        let name = if self.wild && self.chance(0.1) { self.one(&NAMES) } else { "tiny" };
        let text = format!(
            "format: apportion/sweep-v1\nname: {}\nrun:\n  cluster: {{v100: 2, p100: 2, k80: 2}}\n  \
             workload: {{generator: gavel, duration: {}h}}\n  measure: [2, {}]\naxes:\n  policy: [{}]\n  rate: [{}, {}]\n  \
             seed: [0, 1]\nstop: {{saturated: true, wall: 10s}}\n",
            serde_json::json!(name),
            1 + self.stream.below(3),
            4 + self.stream.below(6),
            policies.join(", "),
            rates[0],
            rates[1],
        );
        self.input("sweep.yaml", &text);
        let metric = self.one(&["average_jct_s", "makespan_s", "p99_jct_s", "utilization", "nothing"]);
        let show = format!("results show out --metric {metric}");
        let with_format = |draw: &mut Self, text: &str| step([words(text), draw.format()].concat());
        let mut steps = vec![document(words("sweep sweep.yaml --out out --progress never"))];
        for _ in 0..=self.stream.below(3) {
            let next = match self.stream.below(5) {
                0 => with_format(self, &show),
                1 => with_format(self, "results show out --runs"),
                2 => with_format(self, "compare out out --bound average_jct<=1.01"),
                3 => document(words("report out --out page.html --assets assets")),
                _ => document(words("results merge out --out merged")),
            };
            steps.push(next);
        }
        Case { kind: "sweep", steps }
    }

    fn trace(&mut self) -> Case {
        let convert = "trace convert trace.csv --out converted.csv";
        let mut steps = if self.chance(0.5) {
            let trace = self.jobs();
            self.input("trace.csv", &trace);
            vec![document(
                [words(convert), words(self.one(&["", "--sort", "--throughputs osdi20 --drop-unknown"]))]
                    .concat(),
            )]
        } else {
            let generator = self.one(&["native", "gavel", "gavel_osdi20"]);
            let flags = self.one(&[
                "",
                "--multi-worker",
                "--slos",
                "--multi-priority",
                "--duration 90min",
                "--duration 0",
            ]);
            let (jobs, seed) = (self.stream.below(30), self.stream.below(9));
            let how = if self.chance(0.5) {
                format!("--rate {} --jobs {jobs}", self.number())
            } else {
                format!("--static {jobs}")
            };
            vec![document(words(&format!(
                "trace generate {how} --generator {generator} --seed {seed} {flags} --out converted.csv"
            )))]
        };
        steps.push(step([words("trace show converted.csv"), self.format()].concat()));
        steps.push(document(words("trace convert converted.csv --out again.csv")));
        Case { kind: "trace", steps }
    }

    fn throughputs(&mut self) -> Case {
        let n = |draw: &mut Self| draw.number();
        let text = format!(
            "format: apportion/throughputs-v1\nname: {}\nunit: steps/s\nsource: {{who: x, where: y, when: '2026', licence: none}}\n\
             worker_types: [v100, k80]\nrows:\n  - {{job_type: {}, scale_factor: 1, consolidated: [{}, {}]}}\n  \
             - {{job_type: B, scale_factor: 1, consolidated: [{}, null], unconsolidated: [{}, null]}}\ncolocation:\n  \
             model: measured\n  retained:\n    v100:\n      - {{job_type: B, scale_factor: 1, beside: [{:.2}, {:.2}]}}\n",
            serde_json::json!(self.one(&["tiny", "a b", "é"])),
            serde_json::json!(self.one(if self.wild { &NAMES[..] } else { &["A"] })),
            n(self),
            n(self),
            n(self),
            n(self),
            self.stream.uniform(),
            self.stream.uniform(),
        );
        self.input("speeds.yaml", &text);
        let shown = step([words("throughputs show speeds.yaml"), self.format()].concat());
        let others = [
            "throughputs import speeds.yaml --out imported.yaml",
            "throughputs fit speeds.yaml --model resource --out fit.yaml",
        ];
        let other = document(words(self.one(&others)));
        Case { kind: "throughputs", steps: vec![step(words("throughputs check speeds.yaml")), shown, other] }
    }

    fn policies(&mut self) -> Case {
        let name = self.policy();
        let text = plugin::catalog().document(&name).expect("one that ships").source.text.to_string();
        let text = if self.chance(0.7) { self.damaged(&text) } else { text };
        self.input("mine.yaml", &text);
        let snapshot = self.snapshot().to_json();
        self.input("snapshot.json", &snapshot);
        let list = step([words("policies list"), self.format()].concat());
        let decide = [words("allocate --policy mine.yaml"), self.format(), words("snapshot.json")].concat();
        Case {
            kind: "policies",
            steps: vec![list, document(words("policies check mine.yaml")), step(decide)],
        }
    }

    fn bench(&mut self) -> Case {
        let policy = self.policy();
        let limit = "--limit 0.5 --progress never";
        let text = if self.chance(0.5) {
            let snapshot = self.snapshot().to_json();
            self.input("snapshot.json", &snapshot);
            format!("bench --policy {policy} --snapshot snapshot.json {limit} --backend default")
        } else {
            let instance = self.one(&["osdi20", "osdi20-distinct", "random", "restricted"]);
            let partitions = self.one(&["", "--partitions 2", "--changes 3"]);
            format!(
                "bench --policy {policy} --instance {instance} --sizes {} {limit} {partitions} --backend default",
                1 + self.stream.below(20)
            )
        };
        Case { kind: "bench", steps: vec![step([words(&text), self.format()].concat())] }
    }
}
