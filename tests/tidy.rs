//! Rules of the house that no compiler checks, read off the text. Every message names the fix.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Lines of code a file may have, its tests apart: longer ones hold two subjects.
const FILE_LINES_MAX: usize = 500;

/// Files that are longer, to be split; none may grow, and none may be added.
const LONG_FILES: [(&str, usize); 0] = [];

/// The islands, and the modules that each may mention beside itself.
const ISLANDS: [(&str, &[&str]); 4] = [
    ("program", &["units", "index"]),
    ("solver", &["units", "index", "program"]),
    ("decomposition", &["program", "solver"]),
    ("mechanism", &["units", "index", "cluster", "throughput", "workload", "spec", "problem", "allocation"]),
];

/// The crates of the workspace; each has an order of modules of its own, and Cargo keeps the order between them.
const CRATES: [&str; 8] = [
    "",
    "crates/learn/",
    "crates/published/",
    "crates/logs/",
    "crates/studies/",
    "crates/live/",
    "crates/cli/",
    "crates/python/",
];

/// Modules that `mechanism` needs from `policy`: the data of a decision, and the seam of a round.
const MECHANISM_FROM_POLICY: [&str; 12] = [
    "Decision",
    "RoundRules",
    "TypeOrder",
    "RoundPolicy",
    "RoundView",
    "RoundDecision",
    "Placed",
    "PolicyError",
    "Policy",
    "ObjectiveReport",
    "SolveReport",
    "round",
];

/// Words that are not the field's, with the one that is. Matched in identifiers of declarations only.
const NOT_OUR_WORDS: [(&str, &str); 14] = [
    ("gpu", "worker"),
    ("gpus", "workers"),
    ("device", "worker"),
    ("machine", "server"),
    ("packing", "space sharing"),
    ("quantum", "round"),
    ("tick", "round"),
    ("debt", "deficit"),
    ("tenant", "entity"),
    ("handle", "a verb that says what is done"),
    ("manager", "the subject"),
    ("helper", "the subject"),
    ("util", "the subject"),
    ("utils", "the subject"),
];

/// Names that say such a word all the same, with the file that may: `Scheduler::tick` starts a round, and is called as
/// schedulers that are driven from outside call it. `round` is taken by what it answers.
const THEIR_WORDS: [(&str, &str); 1] = [("src/scheduler/job_scheduler.rs", "tick")];

struct File {
    path: String,
    text: String,
}

impl File {
    /// `crates/cli/` for `crates/cli/src/main.rs`.
    fn of_crate(&self) -> &str {
        self.path.find("src/").map_or("", |at| &self.path[..at])
    }

    /// `policy` for `src/policy/program.rs`.
    fn module(&self) -> &str {
        let inside = self.path[self.of_crate().len()..].trim_start_matches("src/");
        inside.split('/').next().unwrap_or_default().trim_end_matches(".rs")
    }

    /// Whether it stands directly in `src`.
    fn is_at_the_root(&self) -> bool {
        self.path[self.of_crate().len()..].matches('/').count() == 1
    }

    /// Lines that are code: no comments, and nothing from the tests at the file's end.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_test_file = self.path.ends_with("tests.rs") || self.path.contains("/tests/");
        self.text
            .lines()
            .enumerate()
            .take_while(move |(_, line)| !is_test_file && line.trim() != "#[cfg(test)]")
            .map(|(number, line)| (number + 1, line.split_once("//").map_or(line, |(code, _)| code)))
    }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
    files.sort();
}

fn files(folder: &str, extensions: &[&str]) -> Vec<File> {
    let mut paths = Vec::new();
    walk(&Path::new(ROOT).join(folder), &mut paths);
    let wanted = |path: &PathBuf| {
        path.extension().and_then(|extension| extension.to_str()).is_some_and(|e| extensions.contains(&e))
    };
    let read = |path: PathBuf| File {
        path: path.strip_prefix(ROOT).unwrap().display().to_string(),
        text: fs::read_to_string(&path).unwrap(),
    };
    paths.into_iter().filter(wanted).map(read).collect()
}

fn sources() -> Vec<File> {
    CRATES.iter().flat_map(|of| files(&format!("{of}src"), &["rs"])).collect()
}

fn report(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Modules of a crate in the order of its `lib.rs`.
fn modules(of: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(ROOT).join(format!("{of}src/lib.rs"))).unwrap();
    let name = |line: &str| {
        let line = line.trim().trim_start_matches("pub ");
        line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')).map(str::to_owned)
    };
    text.lines().filter_map(name).collect()
}

/// The module that a crate's root re-exports each name from: `crate::Allocation` mentions `allocation`.
fn reexported(of: &str) -> BTreeMap<String, String> {
    let text = fs::read_to_string(Path::new(ROOT).join(format!("{of}src/lib.rs"))).unwrap();
    let of_line = |line: &str| {
        let (module, names) = line.strip_prefix("pub use ")?.trim_end_matches(';').split_once("::")?;
        let names = names.trim_matches(['{', '}']).split(", ");
        Some(names.map(|name| (name.to_owned(), module.to_owned())).collect::<Vec<_>>())
    };
    text.lines().filter_map(of_line).flatten().collect()
}

/// `policy` and `Decision` of every `crate::policy::Decision` in a line; of a group, every name.
fn mentions(line: &str) -> Vec<(String, Vec<String>)> {
    let word = |text: &str| -> String {
        text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
    };
    let mention = |rest: &str| {
        let module = word(rest);
        let inside = rest[module.len()..].strip_prefix("::").unwrap_or_default();
        let names = match inside.strip_prefix('{') {
            Some(group) => {
                group.split('}').next().unwrap_or_default().split(',').map(|name| word(name.trim())).collect()
            }
            None => vec![word(inside)],
        };
        (module, names)
    };
    line.split("crate::").skip(1).map(mention).collect()
}

#[test]
fn a_module_mentions_only_modules_declared_above_it() {
    let mut complaints = Vec::new();
    for of in CRATES {
        let (order, reexported) = (modules(of), reexported(of));
        let place = |name: &str| {
            let module = reexported.get(name).map_or(name, String::as_str);
            order.iter().position(|other| other == module)
        };
        for file in files(&format!("{of}src"), &["rs"]) {
            let Some(own) = place(file.module()) else { continue };
            for (number, line) in file.code() {
                // What stands inside a module of a file may mention the file.
                let hides = line.contains("crate::{")
                    || line.contains("super::super")
                    || line.starts_with("use super::") && file.is_at_the_root();
                if hides {
                    complaints.push(format!(
                        "{}:{number}: `use crate::{{…}}`, `super::super` and `super::` at the root hide the module: \
                         name it",
                        file.path
                    ));
                }
                for (module, _) in mentions(line) {
                    if place(&module).is_some_and(|other| other > own) {
                        complaints.push(format!(
                            "{}:{number}: `{}` mentions `{module}`, which lib.rs declares below it: move what is \
                             shared up, or the code down",
                            file.path,
                            file.module()
                        ));
                    }
                }
            }
        }
    }
    report(&complaints);
}

#[test]
fn islands_know_nothing_of_the_mainland() {
    let order = modules("");
    let mut complaints = Vec::new();
    for (island, allowed) in ISLANDS {
        for file in files("src", &["rs"]).iter().filter(|file| file.module() == island) {
            for (number, line) in file.code() {
                for (module, names) in mentions(line) {
                    let seam = island == "mechanism"
                        && module == "policy"
                        && names.iter().all(|name| MECHANISM_FROM_POLICY.contains(&name.as_str()));
                    let known = order.contains(&module);
                    if known && module != island && !allowed.contains(&module.as_str()) && !seam {
                        complaints.push(format!(
                            "{}:{number}: `{island}` may mention only {allowed:?}, not `{module}`: pass it as data",
                            file.path
                        ));
                    }
                }
            }
        }
    }
    report(&complaints);
}

#[test]
fn files_are_short() {
    let long = |file: &File| {
        let n_lines = file.code().last().map_or(0, |(number, _)| number);
        let listed = LONG_FILES.iter().find(|(path, _)| *path == file.path).map(|(_, n_lines)| *n_lines);
        let limit = listed.unwrap_or(FILE_LINES_MAX);
        (n_lines > limit).then(|| {
            format!("{}: {n_lines} lines, at most {limit}: it has two subjects, split them", file.path)
        })
    };
    report(&sources().iter().filter_map(long).collect::<Vec<_>>());
}

#[test]
fn names_are_the_fields_own() {
    let mut complaints = Vec::new();
    for file in sources() {
        for (number, line) in file.code() {
            let mut words = line.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
            let declares = ["fn", "struct", "enum", "trait", "mod", "let", "const", "static", "type"];
            while let Some(word) = words.next() {
                if !declares.contains(&word) {
                    continue;
                }
                let name = words.clone().find(|word| !word.is_empty() && *word != "mut").unwrap_or_default();
                for (not_ours, ours) in NOT_OUR_WORDS {
                    let excused = THEIR_WORDS.contains(&(file.path.as_str(), name));
                    if !excused && parts(name).iter().any(|part| part == not_ours) {
                        complaints
                            .push(format!("{}:{number}: `{name}` says `{not_ours}`; say {ours}", file.path));
                    }
                }
            }
        }
    }
    report(&complaints);
}

/// `max_gpu` and `MaxGpu` in lowercase parts.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() {
            parts.push(String::new());
        }
        if letter != '_'
            && let Some(part) = parts.last_mut()
        {
            part.extend(letter.to_lowercase());
        }
    }
    parts
}

#[test]
fn dangerous_calls_have_safe_replacements() {
    let calls = [
        ("partial_cmp(", "use `total_cmp`: NaN must not panic or reorder"),
        ("unsafe ", "only the bindings of HiGHS need it: src/solver/highs"),
        ("thread_rng", "draw from a named stream of the seed"),
        ("#[ignore", "assert today's answer and say why"),
        ("#[allow(", "use `#[expect(…, reason = …)]`"),
        ("process::exit", "return an error: only cli ends the process"),
    ];
    let mut complaints = Vec::new();
    for file in sources() {
        for (number, line) in file.code() {
            for (call, fix) in calls {
                let excused = match call {
                    "unsafe " => file.path.starts_with("src/solver/highs") || line.contains("unsafe_code"),
                    "process::exit" => file.of_crate() == "crates/cli/",
                    "partial_cmp(" => line.contains("fn partial_cmp("),
                    _ => false,
                };
                if line.contains(call) && !excused {
                    complaints.push(format!("{}:{number}: `{}`: {fix}", file.path, call.trim()));
                }
            }
        }
    }
    report(&complaints);
    let with_unsafe: Vec<_> = sources()
        .into_iter()
        .filter(|file| file.code().any(|(_, line)| line.contains("unsafe {") || line.contains("unsafe fn")))
        .map(|file| file.path)
        .collect();
    assert!(with_unsafe.len() <= 1, "`unsafe` in more than one file: {with_unsafe:?}");
}

#[test]
fn no_worker_type_or_job_type_is_named_in_code() {
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    for file in files("throughputs", &["yaml"]) {
        for line in file.text.lines() {
            if let Some(list) = line.strip_prefix("worker_types: [") {
                for name in list.split(']').next().unwrap_or_default().split(',') {
                    names.insert(name.trim().to_lowercase(), "worker type");
                }
            }
            if let Some(name) = line.split("job_type: ").nth(1) {
                let name = name.split([',', '(', '}']).next().unwrap_or_default().trim();
                if name.len() > 2 {
                    names.insert(name.to_lowercase(), "job type");
                }
            }
        }
    }
    assert!(
        !names.is_empty(),
        "no names in throughputs/: what a throughput file looks like has changed, teach this test"
    );
    let mut complaints = Vec::new();
    for file in sources().iter().filter(|file| !file.path.starts_with("src/workload/generator/gavel")) {
        for (number, line) in file.code() {
            let words: Vec<String> = line
                .split_inclusive(|letter: char| !(letter.is_alphanumeric() || letter == '-'))
                // In a help text, `type=36` and `type: 36` are examples of what to write.
                .filter(|word| !word.ends_with(['=', ':']))
                .map(|word| {
                    word.trim_end_matches(|l: char| !(l.is_alphanumeric() || l == '-')).to_lowercase()
                })
                .collect();
            for (name, what) in &names {
                if words.contains(name) {
                    complaints.push(format!(
                        "{}:{number}: names the {what} `{name}`: the code knows none, take it from a file",
                        file.path
                    ));
                }
            }
        }
    }
    report(&complaints);
}

#[test]
fn shipped_documents_say_what_they_are_and_where_from() {
    let mut complaints = Vec::new();
    let rules: [(&str, &[&str], &str); 3] = [
        (
            "policies",
            &["summary:", "source:"],
            "src/spec/policy/embedded.rs, or of `kind: learned` in crates/published/src/plugin.rs",
        ),
        ("throughputs", &["source:", "unit:"], "src/spec/throughputs.rs, or its kind's file in src/spec"),
        ("sweeps", &["source:", "name:"], "crates/studies/src/sweep/mod.rs"),
    ];
    let sources = sources();
    for (folder, keys, place) in rules {
        for file in files(folder, &["yaml"]) {
            let included = format!("/{}\")", file.path);
            if !sources.iter().any(|source| source.text.contains(&included)) {
                complaints.push(format!("{}: is not in the binary: include it in {place}", file.path));
            }
            for key in keys {
                let either = key == &"summary:" && file.text.contains("\ndescription:");
                let has = file.text.lines().any(|line| line.starts_with(key)) || either;
                if !has {
                    complaints.push(format!(
                        "{}: has no `{key}` line: say what it is and where it is from",
                        file.path
                    ));
                }
            }
        }
    }
    report(&complaints);
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    let mut all = sources();
    for folder in ["policies", "throughputs", "sweeps", "tests", "benches", "examples", "crates", ".ci"] {
        all.extend(files(folder, &["rs", "yaml", "md", "json", "txt", "py"]));
    }
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "NOTICE", "Makefile"] {
        if let Ok(text) = fs::read_to_string(Path::new(ROOT).join(name)) {
            all.push(File { path: name.to_owned(), text });
        }
    }
    let mut complaints = Vec::new();
    for file in all {
        for (number, line) in file.text.lines().enumerate() {
            // Spelt in two parts, so that this file is not its own offender.
            for prefix in
                [concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/Use", "rs/")]
            {
                if line.contains(prefix) {
                    complaints.push(format!(
                        "{}:{}: `{prefix}` is one machine's path",
                        file.path,
                        number + 1
                    ));
                }
            }
        }
    }
    report(&complaints);
}

#[test]
fn the_documents_of_the_project_are_there() {
    let version = env!("CARGO_PKG_VERSION");
    let read = |name: &str| {
        fs::read_to_string(Path::new(ROOT).join(name))
            .unwrap_or_else(|_| panic!("{name} is missing: write it"))
    };
    for name in ["README.md", "CONTRIBUTING.md", "LICENSE", "NOTICE"] {
        assert!(!read(name).trim().is_empty(), "{name} is empty");
    }
    let changelog = read("CHANGELOG.md");
    assert!(
        changelog.contains("## [Unreleased]") || changelog.contains(&format!("## [{version}]")),
        "CHANGELOG.md has neither an Unreleased section nor one for {version}: add one"
    );
    let n_lines = read("ARCHITECTURE.md").lines().count();
    assert!(n_lines <= 200, "ARCHITECTURE.md has {n_lines} lines, at most 200: it is a map, not the land");
}

#[test]
fn checklists_name_only_code_that_exists() {
    let text = fs::read_to_string(Path::new(ROOT).join("CONTRIBUTING.md")).unwrap();
    let mut all = sources();
    all.extend(["tests", "benches", "examples", "crates"].iter().flat_map(|folder| files(folder, &["rs"])));
    let is_known = |name: &str| all.iter().any(|file| file.text.contains(name));
    let mut complaints = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for quoted in line.split('`').skip(1).step_by(2) {
            let name = quoted.rsplit("::").next().unwrap_or_default();
            let is_name = name.starts_with(|letter: char| letter.is_ascii_uppercase())
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            // A name that begins like this is the reader's own.
            if is_name && !name.to_ascii_uppercase().starts_with("NAME") && !is_known(name) {
                complaints.push(format!("CONTRIBUTING.md:{}: `{quoted}` is nowhere in the code", number + 1));
            }
        }
    }
    report(&complaints);
}

#[test]
fn the_code_map_follows_the_modules() {
    let text = fs::read_to_string(Path::new(ROOT).join("ARCHITECTURE.md")).unwrap();
    let map = text.split("## Code map").nth(1).expect("ARCHITECTURE.md has a section `Code map`");
    let map = map.split("\n## ").next().unwrap_or_default();
    let mut from = 0;
    for module in modules("")
        .into_iter()
        .chain(CRATES[1..].iter().map(|of| format!("apportion-{}", of[7..].trim_end_matches('/'))))
    {
        let heading = format!("`{module}`");
        match map[from..].find(&heading) {
            Some(offset) => from += offset,
            None => panic!(
                "the code map of ARCHITECTURE.md lacks {heading}, or has it out of the order of lib.rs"
            ),
        }
    }
}
