//! A saved simulation in a file: a line with the format and a digest, then the state.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::watch::{EventsWritten, Watch};
use crate::exit::Failure;
use crate::file;
use apportion::metrics::Recorder;
use apportion::simulator::{Checkpoint, Simulation};
use apportion::spec::Source;
use apportion::spec::run::sha256;
use apportion_studies::sweep::Run;

/// The format that this version writes and reads.
const FORMAT: &str = "apportion/saved-simulation-v2";
/// The remedy for a file from which no simulation can go on.
const ANEW: &str = "remove it to start anew, or name another file";

/// The first line of the file.
#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    /// SHA-256 of the second line without its end, in hexadecimal.
    sha256: String,
}

/// The state of a simulation between two rounds, and of its records.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saved {
    /// The run's identity.
    digest: String,
    pub(super) round: u64,
    /// The part of the file of events that belongs to it; none if it writes no events.
    pub(super) events: Option<EventsWritten>,
    /// The number of decisions so far.
    pub(super) n_decisions: u64,
    pub(super) checkpoint: Checkpoint,
    pub(super) recorder: Recorder,
}

impl Saved {
    /// Reads a file that [`write`](Self::write) wrote.
    pub(super) fn read(path: &Path, run: &Run) -> Result<Self, Failure> {
        let name = path.display();
        let refused = |what: String| Failure::usage(format!("{name} {what}"), Some(ANEW.to_owned()));
        let source = Source::load(path)?;
        let (head, body) = source.text.split_once('\n').unwrap_or((&source.text, ""));
        let Ok(head) = serde_json::from_str::<Head>(head) else {
            let older = source.text.starts_with("{\"digest\":");
            let what = if older {
                "is of an older version of this program, which kept no digest of it"
            } else {
                "is not a simulation that was saved"
            };
            return Err(refused(what.to_owned()));
        };
        if head.format != FORMAT {
            return Err(refused(format!("is of format {}, this is {FORMAT}", head.format)));
        }
        let body = body.trim_end_matches('\n');
        if sha256(body.as_bytes()) != head.sha256 {
            return Err(refused("is damaged: its content is not that of its digest".to_owned()));
        }
        let saved: Self = serde_json::from_str(body)
            .map_err(|error| refused(format!("is not a simulation that was saved: {error}")))?;
        if saved.digest != run.digest {
            let help = "give the flags it was started with, or another file".to_owned();
            return Err(Failure::usage(format!("{name} is of another simulation"), Some(help)));
        }
        Ok(saved)
    }

    /// Writes the file whole or not at all.
    pub(super) fn write(
        path: &Path,
        run: &Run,
        simulation: &Simulation,
        watch: &mut Watch,
    ) -> Result<(), Failure> {
        let saved = Self {
            digest: run.digest.clone(),
            round: simulation.round(),
            events: watch.events_written()?,
            n_decisions: watch.n_decisions(),
            checkpoint: simulation.checkpoint(),
            recorder: watch.recorder().clone(),
        };
        let failed = |error| Failure::Bug { message: format!("a checkpoint is not JSON: {error}") };
        let body = serde_json::to_string(&saved).map_err(failed)?;
        let head = Head { format: FORMAT.to_owned(), sha256: sha256(body.as_bytes()) };
        let head = serde_json::to_string(&head).map_err(failed)?;
        file::write(path, format!("{head}\n{body}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use apportion::Catalog;
    use apportion::simulator::{Limits, Outcome};
    use apportion::spec::run::RunSpec;
    use apportion_studies::sweep::Inputs;
    use apportion_studies::sweep::simulation::begin;

    fn run() -> Run {
        let mut spec = RunSpec { policy: "fifo".to_owned(), ..RunSpec::default() };
        spec.cluster = "v100=2".parse().unwrap();
        spec.workload.n_static = Some(5);
        Inputs::new(Catalog::embedded()).load(&spec).unwrap()
    }

    #[test]
    fn what_was_saved_is_read_and_what_is_damaged_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        fs::write(folder.path().join("run.new"), "mine").unwrap();
        let run = run();
        let mut simulation = begin(&run, None, apportion::solver::Interrupt::default()).unwrap();
        let mut watch = Watch::silent(&simulation);
        let limits = Limits { rounds: Some(3), ..Limits::default() };
        assert_eq!(simulation.run(&mut watch, &limits).unwrap(), Outcome::RoundLimit);
        for _ in 0..2 {
            Saved::write(&path, &run, &simulation, &mut watch).unwrap();
        }
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "nothing is left beside it: {names:?}");
        assert_eq!(fs::read_to_string(folder.path().join("run.new")).unwrap(), "mine");
        assert_eq!(Saved::read(&path, &run).unwrap().round, 3);

        let text = fs::read_to_string(&path).unwrap();
        let refused = |text: &str| {
            fs::write(&path, text).unwrap();
            let failure = Saved::read(&path, &run).err().unwrap();
            assert_eq!(failure.status() as u8, 2);
            failure.to_string()
        };
        let digit = text.find("\"steps_run\":").unwrap() + "\"steps_run\":".len();
        let other = if text.as_bytes()[digit] == b'7' { "8" } else { "7" };
        let changed = format!("{}{other}{}", &text[..digit], &text[digit + 1..]);
        assert!(refused(&changed).ends_with("is damaged: its content is not that of its digest"));
        let (head, body) = text.split_once('\n').unwrap();
        assert!(refused(head).ends_with("is damaged: its content is not that of its digest"));
        assert!(
            refused(body).ends_with("is of an older version of this program, which kept no digest of it")
        );
        let newer = text.replace(FORMAT, "apportion/saved-simulation-v9");
        assert!(refused(&newer).contains("is of format apportion/saved-simulation-v9"));
        assert!(refused("{}").ends_with("is not a simulation that was saved"));
    }
}
