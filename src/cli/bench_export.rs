//! Benchmark instances as files that other solvers read.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::catalog::{Catalog, PolicyOptions};
use crate::cli::Session;
use crate::cli::bench_process::{MeasuredCase, Subject};
use crate::cli::exit::Failure;
use crate::program::text::{to_lp, to_mps};
use crate::spec::snapshot::Label;

/// Writes `FOLDER/INSTANCE-JOBS-SEED/snapshot.json` of every instance, and beside it each program that a policy
/// solves on it, in order, as `POLICY-NUMBER.lp` and `.mps`. Programs with cones have no such text, and are named.
pub(super) fn export(folder: &Path, cases: &[MeasuredCase], session: &Session) -> Result<(), Failure> {
    let mut written = BTreeSet::new();
    for case in cases.iter().filter(|case| case.partitions == 1) {
        let place = folder.join(folder_name(&case.subject));
        if !written.insert((case.policy.clone(), place.clone())) {
            continue;
        }
        session.interrupt.check(|| format!("{} instances are exported", written.len() - 1))?;
        session.note(format!("exporting {} to {}", case.policy, place.display()));
        let problem = case.subject.problem()?;
        fs::create_dir_all(&place).map_err(Failure::io(format!("make {}", place.display())))?;
        write(&place.join("snapshot.json"), &problem.to_snapshot(Label::from).to_json())?;
        let Some(mut policy) = Catalog::embedded().program(&case.policy, &PolicyOptions::default())? else {
            continue;
        };
        for (number, program) in policy.programs(&problem)?.iter().enumerate() {
            let name = format!("{}-{number:02}", file_name(&case.policy));
            match (to_lp(program), to_mps(program)) {
                (Ok(lp), Ok(mps)) => {
                    write(&place.join(format!("{name}.lp")), &lp)?;
                    write(&place.join(format!("{name}.mps")), &mps)?;
                }
                (Err(error), _) | (_, Err(error)) => session.note(format!("{name}: {error}")),
            }
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(Failure::io(format!("write {}", path.display())))
}

fn folder_name(subject: &Subject) -> String {
    match subject {
        Subject::Drawn { instance, n_jobs, seed } => {
            format!("{}-{n_jobs}-{seed}", file_name(&instance.to_string()))
        }
        Subject::Snapshot { path, .. } => file_name(path),
    }
}

/// A name or path as the name of one file or folder.
fn file_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    name.chars().map(plain).collect()
}
