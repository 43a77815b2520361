//! The observer of a simulation: it counts, and writes events and snapshots if asked to.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::SimulateArguments;
use super::saved::Saved;
use crate::exit::{Failure, TO_STANDARD_OUTPUT};
use crate::file;
use crate::output::StandardOutput;
use apportion::Cluster;
use apportion::index::{Id, JobId};
use apportion::metrics::Recorder;
use apportion::metrics::log::Header;
use apportion::policy::{Decision, PolicyError};
use apportion::problem::Problem;
use apportion::simulator::{Event, Observer, Simulation};
use apportion::spec::run::Sha256;
use apportion::spec::snapshot::Label;
use apportion::units::Seconds;
use apportion_studies::file::NewFile;
use apportion_studies::sweep::Run;

/// The part of a file of events that has been written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsWritten {
    /// Its length in bytes.
    length: u64,
    /// SHA-256 of these bytes, in hexadecimal.
    sha256: String,
}

/// A file of events that is being written.
#[derive(Debug)]
struct EventsFile {
    path: PathBuf,
    writer: BufWriter<Target>,
    digest: Sha256,
    length: u64,
}

/// The target of events.
#[derive(Debug)]
enum Target {
    File(NewFile),
    StandardOutput(StandardOutput),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::StandardOutput(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::StandardOutput(output) => output.flush(),
        }
    }
}

impl EventsFile {
    /// Creates a file. If the simulation can go on after a kill, it exists from now on; else once it is whole.
    fn create(path: &Path, header: &Header, is_resumable: bool) -> Result<Self, Failure> {
        let open = || {
            let file = NewFile::create(path)?;
            Ok(if is_resumable { NewFile::Stream(file.keep()?) } else { file })
        };
        // A file behind standard output is not replaced: results follow the events there.
        let target = if file::is_standard_output(path) {
            Target::StandardOutput(StandardOutput)
        } else {
            Target::File(open().map_err(writing(path))?)
        };
        let (path, digest) = (path.to_owned(), Sha256::default());
        let mut events = Self { path, writer: BufWriter::new(target), digest, length: 0 };
        events.write(header.line().as_bytes())?;
        Ok(events)
    }

    /// Continues a file after checking, by length and digest, that it begins with the events `written` before the checkpoint; later
    /// events in it are cut off, as the simulation makes them again.
    fn go_on(path: &Path, written: &EventsWritten) -> Result<Self, Failure> {
        let name = path.display();
        let refused = |what: &str| {
            let help = "put the file back as it was, or remove the checkpoint to start anew".to_owned();
            let message = format!(
                "{name} {what}: it does not begin with the {} bytes of events that the saved simulation has written",
                written.length
            );
            Failure::usage(message, Some(help))
        };
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            return Err(refused("is no regular file"));
        }
        let mut file = match File::options().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(refused("is not there")),
            opened => opened.map_err(Failure::io(format!("open {name}")))?,
        };
        let (mut digest, mut length) = (Sha256::default(), 0);
        let mut reader = BufReader::new((&mut file).take(written.length));
        let mut bytes = vec![0; 1 << 16];
        loop {
            match reader.read(&mut bytes).map_err(Failure::io(format!("read {name}")))? {
                0 => break,
                n => {
                    digest.push(&bytes[..n]);
                    length += n as u64;
                }
            }
        }
        if length < written.length {
            return Err(refused("is too short"));
        }
        if digest.hexadecimal() != written.sha256 {
            return Err(refused("is another file"));
        }
        let failed = Failure::io(format!("write {name}"));
        file.set_len(length).and_then(|()| file.seek(SeekFrom::Start(length))).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            writer: BufWriter::new(Target::File(NewFile::Stream(file))),
            digest,
            length,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.digest.push(bytes);
        self.length += bytes.len() as u64;
        self.writer.write_all(bytes).map_err(writing(&self.path))
    }

    /// The part that has been written, after the buffer is flushed.
    fn written(&mut self) -> Result<EventsWritten, Failure> {
        self.writer.flush().map_err(writing(&self.path))?;
        Ok(EventsWritten { length: self.length, sha256: self.digest.hexadecimal() })
    }

    /// Puts the file in its place.
    fn keep(self) -> Result<(), Failure> {
        match self.writer.into_inner().map_err(io::IntoInnerError::into_error) {
            Ok(Target::File(file)) => file.keep().map(|_| ()),
            Ok(Target::StandardOutput(mut output)) => output.flush(),
            Err(error) => Err(error),
        }
        .map_err(writing(&self.path))
    }
}

fn writing(path: &Path) -> impl FnOnce(io::Error) -> Failure + use<> {
    Failure::io(match file::no_standard_output(Some(path)) {
        Some(path) => format!("write {}", path.display()),
        None => TO_STANDARD_OUTPUT.to_owned(),
    })
}

/// The observer.
#[derive(Debug)]
pub(super) struct Watch {
    recorder: Recorder,
    events: Option<EventsFile>,
    /// The cluster: events are written with the names that it gives its worker types.
    cluster: Cluster,
    snapshots: Option<PathBuf>,
    n_decisions: u64,
    /// The names of the trace's jobs, if they are not their positions.
    names: Vec<String>,
    /// Whether policies see estimates in place of the matrix.
    estimates: bool,
    /// The file with the input of the decision that failed, if it is kept.
    refused: Option<PathBuf>,
    /// The first failure to write.
    broken: Option<Failure>,
}

impl Watch {
    pub(super) fn new(
        arguments: &SimulateArguments,
        run: &Run,
        simulation: &Simulation,
        saved: Option<Saved>,
    ) -> Result<Self, Failure> {
        let events = match (&arguments.events, &saved) {
            (None, _) => None,
            (Some(path), None) => {
                let header = Header::new(&run.digest, simulation.cluster(), &run.spec, &run.data);
                Some(EventsFile::create(
                    path,
                    &Header { origin: run.origin, ..header },
                    arguments.checkpoint.is_some(),
                )?)
            }
            (Some(path), Some(Saved { events: Some(written), .. })) => {
                Some(EventsFile::go_on(path, written)?)
            }
            (Some(path), Some(Saved { events: None, .. })) => {
                let message = format!("--events: {} would lack its beginning", path.display());
                let help =
                    "the saved simulation wrote no events: leave `--events` out, or remove the checkpoint";
                return Err(Failure::usage(message, Some(help.to_owned())));
            }
        };
        if let Some(folder) = &arguments.save_snapshots {
            file::check_folder("--save-snapshots", Some(folder))?;
            fs::create_dir_all(folder).map_err(Failure::io(format!("make {}", folder.display())))?;
        }
        let n_decisions = saved.as_ref().map_or(0, |saved| saved.n_decisions);
        let recorder = saved.map_or_else(|| Recorder::new(simulation.cluster()), |saved| saved.recorder);
        let snapshots = arguments.save_snapshots.clone();
        let names = if snapshots.is_some() { run.job_names() } else { Vec::new() };
        let estimates = simulation.options().profiling.is_some();
        let cluster = simulation.cluster().clone();
        let (refused, broken) = (None, None);
        Ok(Self { recorder, events, cluster, snapshots, n_decisions, names, estimates, refused, broken })
    }

    /// An observer that only counts.
    #[cfg(test)]
    pub(super) fn silent(simulation: &Simulation) -> Self {
        let recorder = Recorder::new(simulation.cluster());
        Self {
            recorder,
            events: None,
            cluster: simulation.cluster().clone(),
            snapshots: None,
            n_decisions: 0,
            names: Vec::new(),
            estimates: false,
            refused: None,
            broken: None,
        }
    }

    /// The recorder with the counts so far.
    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The file with the input of a decision that failed, if it is kept.
    pub(super) fn refused_snapshot(&self) -> Option<&Path> {
        self.refused.as_deref()
    }

    /// Decisions so far.
    pub(super) fn n_decisions(&self) -> u64 {
        self.n_decisions
    }

    /// The written part of events, if they are written.
    pub(super) fn events_written(&mut self) -> Result<Option<EventsWritten>, Failure> {
        self.events.as_mut().map(EventsFile::written).transpose()
    }

    /// Puts the file of events in its place. If the simulation is interrupted, a file that does not exist yet is not made.
    pub(super) fn finish(&mut self, interrupted: bool) -> Result<(), Failure> {
        if interrupted {
            return self.events_written().map(|_| ());
        }
        self.events.take().map_or(Ok(()), EventsFile::keep)
    }

    /// The first failure to write, if there was one.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        self.broken.take().map_or(Ok(()), Err)
    }

    fn note_broken(&mut self, written: Result<(), Failure>) {
        if let Err(failure) = written {
            self.broken.get_or_insert(failure);
        }
    }
}

impl Observer for Watch {
    fn observe(&mut self, event: &Event<'_>) {
        self.recorder.observe(event);
        if let Some(events) = &mut self.events {
            let line = serde_json::to_vec(&event.named(&self.cluster)).map(|mut line| {
                line.push(b'\n');
                line
            });
            let failed = |error| Failure::Bug { message: format!("an event is not JSON: {error}") };
            let written = line.map_err(failed).and_then(|line| events.write(&line));
            self.note_broken(written);
        }
    }

    fn decided(&mut self, _now: Seconds, problem: &Problem, _decision: &Decision) {
        self.keep(problem);
    }

    fn refused(&mut self, _now: Seconds, problem: &Problem, _error: &PolicyError) {
        self.refused = self.keep(problem);
    }
}

impl Watch {
    /// Writes the input of a decision, if that is asked for. Returns the file.
    fn keep(&mut self, problem: &Problem) -> Option<PathBuf> {
        let number = self.n_decisions;
        self.n_decisions += 1;
        let folder = self.snapshots.as_ref()?;
        let path = folder.join(format!("{number:06}.json"));
        let label = |job: JobId| match self.names.get(job.index()) {
            Some(name) => Label::Text(name.clone()),
            None => Label::from(job),
        };
        let document =
            if self.estimates { problem.to_snapshot_with_pairs(label) } else { problem.to_snapshot(label) };
        let text = serde_json::to_string(&document).unwrap_or_default();
        let written = file::write(&path, text.as_bytes());
        let is_kept = written.is_ok();
        self.note_broken(written);
        is_kept.then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use apportion::spec::run::RunSpec;

    #[test]
    fn events_go_on_only_behind_those_that_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        let header = Header::new("digest", &"v100=1".parse().unwrap(), &RunSpec::default(), &BTreeMap::new());
        let mut events = EventsFile::create(&path, &header, true).unwrap();
        events.write(b"{\"event\":\"one\"}\n").unwrap();
        let written = events.written().unwrap();
        events.write(b"{\"event\":\"after the checkpoint\"}\n").unwrap();
        drop(events);
        let whole = fs::read(&path).unwrap();
        let kept = &whole[..usize::try_from(written.length).unwrap()];

        let mut again = EventsFile::go_on(&path, &written).unwrap();
        again.write(b"two\n").unwrap();
        let both = again.written().unwrap();
        let expected = [kept, b"two\n"].concat();
        assert_eq!(fs::read(&path).unwrap(), expected);
        let digest = apportion::spec::run::sha256(&expected);
        assert_eq!((both.length, both.sha256), (expected.len() as u64, digest));

        let refused = || {
            let before = fs::read(&path).ok();
            let failure = EventsFile::go_on(&path, &written).unwrap_err();
            assert_eq!(fs::read(&path).ok(), before, "nothing is written");
            assert_eq!(failure.status() as u8, 2);
            failure.to_string()
        };
        fs::write(&path, &kept[..kept.len() - 1]).unwrap();
        assert!(refused().contains("run.jsonl is too short: it does not begin with the"), "{}", refused());
        let mut changed = kept.to_owned();
        changed[20] ^= 1;
        fs::write(&path, &changed).unwrap();
        assert!(refused().contains("run.jsonl is another file"), "{}", refused());
        fs::remove_file(&path).unwrap();
        assert!(refused().contains("run.jsonl is not there"), "{}", refused());
    }
}
