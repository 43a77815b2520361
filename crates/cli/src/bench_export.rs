//! Benchmark instances as files that other solvers read.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::Session;
use crate::bench_process::{End, Limits, MeasuredCase, READY, Said, Subject, say, say_end, say_json};
use crate::exit::Failure;
use crate::file::write;
use apportion::catalog::PolicyOptions;
use apportion::problem::Problem;
use apportion::program::Program;
use apportion::program::text::{TextError, to_cbf, to_lp, to_mps};
use apportion::spec::path_text;
use apportion::spec::snapshot::Label;
use apportion_published::plugin;
use apportion_studies::benchmark::programs::{PROGRAMS_FORMAT, PolicyPrograms, Programs};
use apportion_studies::file::PARTIAL;

/// The file that describes the exported programs.
const PROGRAMS: &str = "programs.json";

/// Writes `FOLDER/INSTANCE-JOBS-SEED/snapshot.json` of every instance, and beside it each program that a policy solves on it, in
/// order, as `POLICY-NUMBER.cbf`, and if it has no cones as `.lp` and `.mps`, too, and their descriptions as `programs.json`. Each
/// policy has a process of its own on each instance, under the limits of a case. Files of an earlier export of the same policy are
/// removed first, and the new export is described as not done until it is done.
pub(super) fn export(
    folder: &Path,
    cases: &[MeasuredCase],
    limits: &Limits,
    session: &Session,
) -> Result<(), Failure> {
    let mut written = BTreeSet::new();
    for case in cases.iter().filter(|case| case.partitions == 1) {
        let place = folder.join(folder_name(&case.subject));
        if !written.insert((case.policy.clone(), place.clone())) {
            continue;
        }
        session.interrupt.check(|| format!("{} instances are exported", written.len() - 1))?;
        session.note(format!("exporting {} to {}", case.policy, place.display()));
        fs::create_dir_all(&place).map_err(Failure::io(format!("make {}", place.display())))?;
        let n_stale = remove_programs(&place, &case.policy, &[])?;
        if n_stale > 0 {
            let policy = &case.policy;
            session.note(format!("{policy}: {n_stale} files of an earlier export are removed first"));
        }
        let undone = PolicyPrograms::none(&case.policy, "the export did not come to its end".to_owned());
        describe(&place.join(PROGRAMS), case, undone)?;
        let case = MeasuredCase { export: Some(path_text::of(&place)), changes: 0, ..case.clone() };
        let said = Said::by_child(&case, limits, session)?;
        let described = said.lines.last().and_then(|line| serde_json::from_str(line).ok());
        let described: PolicyPrograms = match (described, said.why(limits)) {
            _ if said.end == End::Stopped => {
                let message = format!("{} instances are exported", written.len() - 1);
                return Err(Failure::Interrupted { message });
            }
            (Some(described), None) => described,
            (_, Some((_, why))) if said.end == End::Broken && !said.refused => {
                let action = format!("export {} to {}", case.policy, place.display());
                return Err(Failure::io(action)(io::Error::other(why)));
            }
            (_, why) => {
                let why = why.map_or_else(|| "nothing was said".to_owned(), |(_, why)| why);
                PolicyPrograms::none(&case.policy, why)
            }
        };
        let messages = described.programs.iter().filter_map(|program| program.message.as_ref());
        for message in described.message.iter().chain(messages) {
            session.note(format!("{}: {message}", case.policy));
        }
        let written: Vec<&String> = described.programs.iter().flat_map(|program| &program.files).collect();
        remove_programs(&place, &case.policy, &written)?;
        describe(&place.join(PROGRAMS), &case, described)?;
    }
    Ok(())
}

/// Removes a policy's programs from a folder, but those in `kept`. Returns the number of removed files.
fn remove_programs(place: &Path, policy: &str, kept: &[&String]) -> Result<usize, Failure> {
    let mut n_removed = 0;
    for entry in fs::read_dir(place).map_err(Failure::io(format!("read {}", place.display())))? {
        let path = entry.map_err(Failure::io(format!("read {}", place.display())))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !is_program_of(name, policy) || kept.iter().any(|kept| *kept == name) {
            continue;
        }
        fs::remove_file(&path).map_err(Failure::io(format!("remove {}", path.display())))?;
        n_removed += 1;
    }
    Ok(n_removed)
}

/// Whether a file's name is that of a policy's exported program, `POLICY-NUMBER.lp`, `.mps` or `.cbf`, whole or unfinished.
fn is_program_of(name: &str, policy: &str) -> bool {
    // An unfinished file is named `.max_min-00.lp.Ab12Cd.partial`.
    let begun = name.strip_prefix('.').and_then(|name| name.strip_suffix(PARTIAL)?.rsplit_once('.'));
    let whole = begun.map_or(name, |(whole, _)| whole);
    let number = [".lp", ".mps", ".cbf"].iter().find_map(|ending| whole.strip_suffix(ending));
    let number = number.and_then(|name| name.strip_prefix(&file_name(policy))?.strip_prefix('-'));
    number.is_some_and(|number| number.len() >= 2 && number.bytes().all(|letter| letter.is_ascii_digit()))
}

/// Adds the description of a policy's programs to those of other policies.
fn describe(path: &Path, case: &MeasuredCase, described: PolicyPrograms) -> Result<(), Failure> {
    let known = fs::read_to_string(path).ok().and_then(|text| serde_json::from_str::<Programs>(&text).ok());
    let others = known.filter(|known| known.format == PROGRAMS_FORMAT).map_or_else(Vec::new, |known| {
        known.policies.into_iter().filter(|other| other.policy != described.policy).collect()
    });
    let mut programs = Programs {
        format: PROGRAMS_FORMAT.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instance: case.name(),
        n_jobs: case.row().n_jobs,
        seed: case.seed,
        policies: others,
    };
    programs.n_jobs = described.n_jobs().unwrap_or(programs.n_jobs);
    programs.policies.push(described);
    let text = serde_json::to_string_pretty(&programs)
        .map_err(|error| Failure::Bug { message: format!("programs are not JSON: {error}") })?;
    write(path, text.as_bytes())
}

/// The child's side: writes the files of one policy on one instance, and their description to standard output.
pub(super) fn run_one(case: &MeasuredCase, place: &Path) -> Result<(), Failure> {
    let problem = case.subject.problem()?;
    say(READY)?;
    write(&place.join("snapshot.json"), problem.to_snapshot(Label::from).to_json().as_bytes())?;
    say_json(&programs(case, &problem, place)?)?;
    say_end()
}

fn programs(case: &MeasuredCase, problem: &Problem, place: &Path) -> Result<PolicyPrograms, Failure> {
    let Some(mut policy) = plugin::catalog().program(&case.policy, &PolicyOptions::default())? else {
        return Ok(PolicyPrograms::none(&case.policy, "a rule solves no program".to_owned()));
    };
    let (mut described, programs) = match PolicyPrograms::of(&case.policy, &mut policy, problem) {
        Ok(of) => of,
        Err(error) => return Ok(PolicyPrograms::none(&case.policy, error.to_string())),
    };
    for (number, (program, file)) in programs.iter().zip(&mut described.programs).enumerate() {
        let name = format!("{}-{number:02}", file_name(&case.policy));
        match write_texts(place, &name, program)? {
            Ok(files) => file.files = files,
            Err(why) => file.message = Some(format!("{name}: {why}")),
        }
    }
    Ok(described)
}

/// Writes a program as LP and MPS if it is linear, and as CBF. Returns the files' names, or why there are none.
fn write_texts(place: &Path, name: &str, program: &Program) -> Result<Result<Vec<String>, String>, Failure> {
    let mut texts = match (to_lp(program), to_mps(program)) {
        (Ok(lp), Ok(mps)) => vec![(format!("{name}.lp"), lp), (format!("{name}.mps"), mps)],
        (Err(TextError::Cones { .. }), _) => Vec::new(),
        (Err(error), _) | (_, Err(error)) => return Ok(Err(error.to_string())),
    };
    texts.push((format!("{name}.cbf"), to_cbf(program)));
    for (file, text) in &texts {
        write(&place.join(file), text.as_bytes())?;
    }
    Ok(Ok(texts.into_iter().map(|(file, _)| file).collect()))
}

fn folder_name(subject: &Subject) -> String {
    match subject {
        Subject::Drawn { instance, n_jobs, seed } => {
            format!("{}-{n_jobs}-{seed}", file_name(&instance.to_string()))
        }
        Subject::Snapshot { path, .. } => file_name(path),
    }
}

/// A name or path, changed so that it can name one file or folder.
fn file_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_export_of_the_policy_writes_is_its_own() {
        for name in ["max_min-00.lp", "max_min-07.mps", "max_min-123.cbf", ".max_min-00.lp.Ab12Cd.partial"] {
            assert!(is_program_of(name, "max_min"), "{name}");
        }
        for name in [
            "max_min_perf-00.lp",
            "max_min-00-00.lp",
            "max_min-0.lp",
            "max_min-00.txt",
            "max_min-00.lp.partial",
        ] {
            assert!(!is_program_of(name, "max_min"), "{name}");
        }
        assert!(is_program_of("a_mine.yaml-00.lp", "a/mine.yaml"));
    }
}
