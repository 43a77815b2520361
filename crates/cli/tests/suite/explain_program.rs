//! The output of `apportion explain --program`, read back by a reader of its own and solved by another backend.

use std::collections::BTreeMap;
use std::fs;

use apportion::program::{Program, Range, Sense};
use apportion::solver::{Limits, registry, solve_certified};

use crate::command::apportion;

const SNAPSHOT: &str = "
format: apportion/snapshot-v1
cluster: {fast: 4, slow: 4}
prices: {fast: 2.5, slow: 1.5}
entities: [{id: research, weight: 1}]
jobs:
  - {id: one, entity: research, steps_remaining: 90000, throughput: {fast: 4, slow: 1}}
  - {id: alike, entity: research, steps_remaining: 90000, throughput: {fast: 4, slow: 1}}
  - {id: gang, steps_remaining: 40000, scale_factor: 2, throughput: {fast: 6, slow: 5}}
  - {id: other, steps_remaining: 50000, throughput: {fast: 2, slow: 1.5}}
";

const BUDGET: &str = "
format: apportion/policy-v1
name: budget
summary: eight dollars an hour, and research has at most three workers
kind: program
maximize: min_over_jobs(throughput / isolated_throughput)
constraints:
  - sum_over_jobs(scale_factor * sum_over_worker_types(price(type) * time_on(type))) <= 8[$/h]
  - sum_over_jobs(owned_by(\"research\") * sum_over_worker_types(time_on(type))) <= 1.5
";

/// A reader of a linear program in LP text: the sections and forms that the command writes, and no others.
struct Reader {
    program: Program,
    columns: BTreeMap<String, usize>,
}

impl Reader {
    fn read(text: &str) -> Program {
        let lines = text.lines().filter(|line| !line.starts_with('\\'));
        let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
        let mut reader = Self { program: Program::new(Sense::Maximize), columns: BTreeMap::new() };
        if words[0] == "minimize" {
            reader.program.sense = Sense::Minimize;
        }
        let rows = words.windows(2).position(|two| two == ["subject", "to"]).expect("rows");
        let bounds = words.iter().position(|word| *word == "bounds").expect("bounds");
        let (cost, offset) = reader.form(&words[2..rows]);
        for (column, value) in cost {
            reader.program.cost[column] += value;
        }
        reader.program.offset = offset;
        let mut rest = &words[rows + 2..bounds];
        while let Some(end) = rest.iter().position(|word| ["<=", ">=", "="].contains(word)) {
            let (terms, _) = reader.form(&rest[1..end]);
            reader.program.push_row(range(rest[end], number(rest[end + 1])), terms);
            rest = &rest[end + 2..];
        }
        reader.bounds(&words[bounds + 1..words.len() - 1]);
        reader.program.implied = reader.program.columns.clone();
        reader.program
    }

    fn column(&mut self, name: &str) -> usize {
        let program = &mut self.program;
        let new = || program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 0.0);
        *self.columns.entry(name.to_owned()).or_insert_with(new)
    }

    /// Reads `+ 2 x - 3 y + 1`: terms, and the constant.
    fn form(&mut self, words: &[&str]) -> (Vec<(usize, f64)>, f64) {
        let (mut terms, mut constant, mut at) = (Vec::new(), 0.0, 0);
        while at < words.len() {
            let sign = match words[at] {
                "-" => -1.0,
                "+" => 1.0,
                _ => {
                    // A form without terms is written as 0 times a column.
                    at += 2;
                    continue;
                }
            };
            let value = sign * number(words[at + 1]);
            match words.get(at + 2).filter(|word| !["+", "-"].contains(word)) {
                Some(name) => terms.push((self.column(name), value)),
                None => constant += value,
            }
            at += if words.get(at + 2).is_some_and(|word| !["+", "-"].contains(word)) { 3 } else { 2 };
        }
        (terms, constant)
    }

    /// Reads `x free`, `x = 1`, `x >= 1`, `0 <= x <= 1`.
    fn bounds(&mut self, mut words: &[&str]) {
        while let Some(first) = words.first() {
            let (name, bounds, n_words) = match (words[1], first.parse::<f64>()) {
                ("free", _) => (*first, Range::FREE, 2),
                ("<=", Ok(lower)) => (words[2], Range { lower, upper: number(words[4]) }, 5),
                (relation, _) => (*first, range(relation, number(words[2])), 3),
            };
            let column = self.column(name);
            self.program.columns[column] = bounds;
            words = &words[n_words..];
        }
    }
}

fn number(word: &str) -> f64 {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is no number"))
}

fn range(relation: &str, value: f64) -> Range {
    match relation {
        "<=" => Range::at_most(value),
        ">=" => Range::at_least(value),
        _ => Range::exactly(value),
    }
}

/// A number behind `NAME = ` in the comments.
fn said(text: &str, name: &str) -> Option<f64> {
    let comments = text.lines().filter(|line| line.starts_with('\\'));
    let mut behind =
        comments.filter_map(|line| line.split_once(&format!(" {name} = ")).map(|(_, behind)| behind));
    behind.find_map(|behind| behind.split([',', ' ']).next()?.parse().ok())
}

/// The formats have no letters beyond ASCII, and the program covers all jobs.
#[test]
fn comments_of_a_program_are_ascii_and_about_all_jobs() {
    let snapshot = SNAPSHOT.replace("id: one,", "id: größe,");
    for form in ["lp", "mps", "cbf"] {
        let asked = ["explain", "--policy", "max_min_fairness_perf", "-", "--program", form];
        let text = apportion(&asked, &snapshot).stdout;
        assert!(text.is_ascii() && text.contains(": gr\\u{f6}\\u{df}e alike\n"), "{form}: {text}");
        let refused = apportion(&[&asked[..], &["--job", "gang"]].concat(), &snapshot);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{}", refused.stderr);
        assert!(refused.stderr.contains("leave out `--job`"), "{}", refused.stderr);
    }
}

#[test]
fn another_solver_finds_the_objective_from_the_text_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let [snapshot, budget] = [("snapshot.yaml", SNAPSHOT), ("budget.yaml", BUDGET)].map(|(name, text)| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path.to_str().expect("text").to_owned()
    });
    for policy in [
        &budget,
        "max_min_fairness_perf",
        "max_min_fairness_water_filling_perf",
        "max_sum_throughput_perf",
        "min_total_duration_perf",
        "finish_time_fairness_perf",
    ] {
        let explained = apportion(&["explain", "--policy", policy, &snapshot, "--format", "json"], "");
        let explained: serde_json::Value = serde_json::from_str(&explained.stdout).expect("JSON");
        let objective = explained["objective"]["value"].as_f64().expect("an objective");
        let text = apportion(&["explain", "--policy", policy, &snapshot, "--program", "lp"], "").stdout;
        let program = Reader::read(&text);
        let mut chain = vec![registry::backend("clarabel").expect("there is one")];
        let solved = solve_certified(&program, &mut chain, &Limits::default(), None).expect("an optimum");
        let scaled = said(&text, "scale").expect("a scale") * solved.certificate.primal;
        let found = match said(&text, "level") {
            // The level that just the whole time gives to all.
            Some(level) if (scaled - 1.0).abs() < 1e-6 => level,
            Some(level) => panic!("{policy}: {scaled} of level {level}"),
            None if text.contains("objective = 1 / (scale * optimum)") => scaled.recip(),
            None => scaled,
        };
        assert!((found - objective).abs() <= 1e-6 * objective.abs(), "{policy}: {found}, not {objective}");
        let classes = text.lines().filter_map(|line| line.strip_prefix("\\ job_class_"));
        let mut jobs: Vec<&str> = classes.flat_map(|line| line.split(' ').skip(1)).collect();
        jobs.sort_unstable();
        assert_eq!(jobs, ["alike", "gang", "one", "other"], "{policy}");
        assert!(text.contains(": one alike\n"), "{policy}: jobs that are alike are one class\n{text}");
        let mps = apportion(&["explain", "--policy", policy, &snapshot, "--program", "mps"], "").stdout;
        let comments = |text: &str, mark: &str| -> Vec<String> {
            text.lines().map_while(|line| line.strip_prefix(mark)).map(str::to_owned).collect()
        };
        let of_lp = comments(&text, "\\ ");
        assert_eq!(comments(&mps, "* "), of_lp[..of_lp.len() - 1], "{policy}: but for the number of rows");
    }
}
