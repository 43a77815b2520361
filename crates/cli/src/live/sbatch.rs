//! `--sbatch`: the arguments of `sbatch` that a site may add to apportion's.

use crate::exit::Failure;

/// Options of `sbatch` with which leases would not be single jobs on their workers: the long name, the short one, and the remedy.
const REFUSED: [(&str, Option<char>, &str); 38] = [
    ("array", Some('a'), NOT_ONE),
    ("wait", Some('W'), NOT_ONE),
    ("hold", Some('H'), NOT_NOW),
    ("begin", Some('b'), NOT_NOW),
    ("dependency", Some('d'), NOT_NOW),
    ("test-only", None, NOT_NOW),
    ("help", Some('h'), NOT_NOW),
    ("usage", None, NOT_NOW),
    ("version", Some('V'), NOT_NOW),
    ("clusters", Some('M'), "one scheduler has the nodes of one Slurm cluster"),
    ("partition", Some('p'), "`--partition NAME` of apportion names it"),
    ("time", Some('t'), "`--slurm-time TIME` of apportion states it"),
    ("time-min", None, "`--slurm-time TIME` of apportion states a time limit"),
    ("nodelist", Some('w'), OF_LEASE),
    ("nodefile", Some('F'), OF_LEASE),
    ("nodes", Some('N'), OF_LEASE),
    ("ntasks", Some('n'), OF_LEASE),
    ("ntasks-per-node", None, OF_LEASE),
    ("ntasks-per-gpu", None, OF_LEASE),
    ("cpus-per-task", Some('c'), OF_LEASE),
    ("cpus-per-gpu", None, OF_LEASE),
    ("gres", None, OF_LEASE),
    ("gpus", Some('G'), OF_LEASE),
    ("gpus-per-node", None, OF_LEASE),
    ("gpus-per-socket", None, OF_LEASE),
    ("gpus-per-task", None, OF_LEASE),
    ("exclusive", None, OF_LEASE),
    ("exclude", Some('x'), "`apportion drain SERVER` takes a node out"),
    ("requeue", None, OF_APPORTION),
    ("comment", None, OF_APPORTION),
    ("job-name", Some('J'), OF_APPORTION),
    ("signal", None, OF_APPORTION),
    ("output", Some('o'), OF_APPORTION),
    ("error", Some('e'), OF_APPORTION),
    ("chdir", Some('D'), OF_APPORTION),
    ("parsable", None, OF_APPORTION),
    ("wrap", None, OF_APPORTION),
    (
        "quiet",
        Some('Q'),
        "with it `sbatch` does not say the number of the Slurm job, by which that is followed",
    ),
];

const NOT_ONE: &str = "each lease is one Slurm job, which apportion submits and follows itself";
const NOT_NOW: &str = "with it no lease would begin when it is ordered";
const OF_LEASE: &str = "the lease says which workers of which node a Slurm job has, and what goes with them";
const OF_APPORTION: &str =
    "apportion states it itself: by it, it knows its Slurm jobs again, or what they do";

/// Refuses words of `--sbatch` that are no option, and options that apportion states itself.
///
/// # Errors
/// If there is such a word or option.
pub(super) fn check(words: &[String]) -> Result<(), Failure> {
    let mut takes_value = false;
    for word in words {
        let Some(option) = word.strip_prefix('-') else {
            if !std::mem::take(&mut takes_value) {
                let message = format!(
                    "--sbatch {word}: this is no option of `sbatch`, and would be taken for a script"
                );
                let help = "`--sbatch --account=NAME` is one; what has a blank in it cannot be given";
                return Err(Failure::usage(message, Some(help.to_owned())));
            }
            continue;
        };
        let name = option.strip_prefix('-').map(|long| long.split('=').next().unwrap_or_default());
        let refused = REFUSED.iter().find(|(long, short, _)| match name {
            // `sbatch` takes the beginning of a name for the name.
            Some(name) => !name.is_empty() && long.starts_with(name),
            None => short.is_some_and(|short| option.starts_with(short)),
        });
        if let Some((long, _, why)) = refused {
            let message = format!("--sbatch {word}: `sbatch --{long}` cannot be added to: {why}");
            return Err(Failure::usage(message, Some("leave it out".to_owned())));
        }
        takes_value = !word.contains('=') && (name.is_some() || option.len() == 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[&str]) -> Option<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        check(&words).err().map(|failure| failure.to_string())
    }

    #[test]
    fn options_that_make_a_lease_another_job_are_refused() {
        for (words, says) in [
            (&["--array=0-3"][..], "--sbatch --array=0-3: `sbatch --array` cannot"),
            (&["--arr=0-3"], "`sbatch --array`"),
            (&["-a0-3"], "`sbatch --array`"),
            (&["-a", "0-3"], "`sbatch --array`"),
            (&["--account=x", "--hold"], "`sbatch --hold`"),
            (&["--nodelist=n1"], "`sbatch --nodelist`"),
            (&["--test-only"], "`sbatch --test-only`"),
            (&["--partition=other"], "`--partition NAME` of apportion"),
            (&["-t", "5"], "`--slurm-time TIME` of apportion"),
            (&["--quiet"], "`sbatch --quiet`"),
            (&["-Q"], "`sbatch --quiet`"),
            (&["0-3"], "--sbatch 0-3: this is no option"),
            (&["--account=x", "0-3"], "--sbatch 0-3: this is no option"),
        ] {
            let said = said(words).unwrap_or_default();
            assert!(said.contains(says), "{words:?}: {said}");
        }
    }

    #[test]
    fn what_a_site_asks_for_is_let_through() {
        for words in [
            &["--account=x", "--qos=high", "--reservation=ours"][..],
            &["-A", "x", "-q", "high"],
            &["-Ax", "--constraint=nvlink", "--licenses=a:1", "--mail-type=NONE"],
            &["--mem=4G", "--export=ALL", "--gres-flags=enforce-binding", "--wait-all-nodes=0", "--nice=5"],
        ] {
            assert_eq!(said(words), None, "{words:?}");
        }
    }
}
