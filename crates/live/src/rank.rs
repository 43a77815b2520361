//! The folder of a rank: the documents through which agent, shim and program communicate.
//!
//! | file | written by | says |
//! |---|---|---|
//! | `start.json` | agent | what is started, and where |
//! | `steer.json` | agent | the lease's end, and whether to stop |
//! | `lock` | agent | nothing; the shim holds it as long as it lives |
//! | `slurm.sh`, `slurm.out` | agent, Slurm | the batch script, and what was printed before a shim ran; where Slurm starts ranks |
//! | `shim.json` | shim | which processes are the rank's |
//! | `stopping.json` | shim | that the program has been asked to stop, and why |
//! | `end.json` | shim | how the rank ended, once no process of it is left |
//! | `end.room` | agent | nothing; it becomes `end.json` where the disk has no more room for that |
//! | `steer.room.1`, `.2`, `control.room.1`, `.2` | agent | nothing; the same for `steer.json` and `control.json`, as often as needed |
//! | `control.json` | shim | to the program: that it is to stop |
//! | `progress.json` | program | what it has done |
//! | `output.log` | program | all that it printed |

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use apportion::{Seconds, Steps};
use serde::{Deserialize, Serialize};

use crate::files;
use crate::process::boot_id;
use crate::protocol::{End, JobNumber, Program, Progress, Run, Stop};

/// One rank of a run: the program that is to be started, and its worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankStart {
    /// The run.
    pub run: Run,
    /// The job's submission; none where the scheduler does not tell submissions apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<u64>,
    /// The rank's number.
    pub rank: u32,
    /// Its worker, by its place on the server.
    pub worker: u32,
    /// Its place among the run's ranks on this server.
    pub local_rank: u32,
    /// Number of the run's ranks on this server.
    pub ranks_here: u32,
    /// Number of ranks on all servers.
    pub world_size: u32,
    /// The server of rank 0.
    pub first_server: String,
    /// Steps from the job's beginning to its end.
    pub total_steps: Steps,
    /// The program that is run.
    pub program: Program,
    /// The end of its lease.
    pub until: Seconds,
    /// Time after which it is killed, from the request to stop or from the lease's end.
    pub grace: Seconds,
}

/// The system that starts shims, which decides by which clock the instants in a rank's documents are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartedBy {
    /// An agent on the same node: instants are of the node's clock.
    #[default]
    Agent,
    /// Slurm, for a scheduler on another node: documents hold the time until an instant in place of the instant, and the shim
    /// counts that time from its reading.
    Slurm {
        /// The lowest rank of the Slurm job.
        first: u32,
        /// The rank's worker, by its place among those that Slurm gives the job.
        place: u32,
    },
}

/// The document `start.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) rank: RankStart,
    #[serde(default)]
    pub(crate) by: StartedBy,
    /// The folder in which each job has a folder for its checkpoints.
    pub(crate) checkpoints: PathBuf,
    pub(crate) worker_type: String,
}

/// The document `steer.json`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Steer {
    pub(crate) until: Seconds,
    pub(crate) grace: Seconds,
    pub(crate) stop: Option<Stop>,
}

/// Why a program has been asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Why {
    /// Its lease is over.
    Lease,
    /// The agent's orders say so.
    Orders,
    /// The shim was sent SIGTERM or SIGUSR1: the node goes down, or Slurm's time limit is near.
    Signal,
}

/// The document `stopping.json`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) why: Why,
    /// The instant of the request, by the node's clock.
    pub(crate) at: Seconds,
}

/// The document `end.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) end: End,
    /// The instant of the end, by the node's clock.
    pub(crate) at: Seconds,
    /// Time for which its processes existed, as its shim measured it; none where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ran: Option<Seconds>,
    /// The start of the node by which the instant is counted; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) boot: String,
}

impl Ended {
    /// The instant by the clock of the node that reads it; none where that is another node, or was started anew since.
    pub(crate) fn at_node(&self) -> Option<Seconds> {
        (!self.boot.is_empty() && self.boot == boot_id()).then_some(self.at)
    }
}

/// The document `control.json`, which programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Control {
    pub(crate) stop: Stop,
}

/// The version of `progress.json` that is read.
pub(crate) const PROGRESS_VERSION: u32 = 1;

/// The state of a program, as it reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Starting,
    Running,
    Saving,
    Stopped,
    Done,
}

/// The document `progress.json`, which programs write. Unknown fields in it are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) version: u32,
    pub(crate) steps: f64,
    #[serde(default)]
    pub(crate) checkpointed: f64,
    #[serde(default)]
    pub(crate) first: f64,
    #[serde(default)]
    pub(crate) seconds: f64,
    pub(crate) state: State,
    #[serde(default)]
    pub(crate) proposed: Option<u64>,
}

impl StartedBy {
    /// The instant, by the node's clock, that a time in the rank's documents means when they are read `now`.
    pub(crate) fn instant(self, now: Seconds, written: Seconds) -> Seconds {
        match self {
            Self::Agent => written,
            Self::Slurm { .. } => now + written,
        }
    }
}

impl Said {
    fn progress(self) -> Progress {
        Progress {
            speaks: true,
            steps: self.steps,
            checkpointed: self.checkpointed,
            first: self.first,
            seconds: self.seconds,
            proposed: self.proposed,
            done: self.state == State::Done,
        }
    }
}

/// Room on disk that is taken in advance for each document that must be written, in bytes.
const ROOM: usize = 4096;

/// The folder's name: `JOB.INCARNATION.RANK`.
pub(crate) fn name(run: Run, rank: u32) -> String {
    format!("{}.{}.{rank}", run.job, run.incarnation)
}

/// The rank whose folder has this name.
pub(crate) fn of_name(text: &str) -> Option<(Run, u32)> {
    let mut numbers = text.split('.');
    let job = JobNumber(numbers.next()?.parse().ok()?);
    let incarnation = numbers.next()?.parse().ok()?;
    let rank = numbers.next()?.parse().ok()?;
    let run = Run { job, incarnation };
    (numbers.next().is_none() && name(run, rank) == text).then_some((run, rank))
}

/// The folder of a rank.
#[derive(Clone, Debug)]
pub(crate) struct RankFolder(PathBuf);

impl RankFolder {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn start(&self) -> PathBuf {
        self.0.join("start.json")
    }

    pub(crate) fn steer(&self) -> PathBuf {
        self.0.join("steer.json")
    }

    pub(crate) fn owned(&self) -> PathBuf {
        self.0.join("shim.json")
    }

    pub(crate) fn asked(&self) -> PathBuf {
        self.0.join("stopping.json")
    }

    pub(crate) fn end(&self) -> PathBuf {
        self.0.join("end.json")
    }

    fn end_room(&self) -> PathBuf {
        self.0.join("end.room")
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.0.join("control.json")
    }

    pub(crate) fn progress(&self) -> PathBuf {
        self.0.join("progress.json")
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.0.join("output.log")
    }

    /// The batch script, in the folder of the lowest rank of a Slurm job.
    pub(crate) fn script(&self) -> PathBuf {
        self.0.join("slurm.sh")
    }

    /// The output of the Slurm job itself, beside the program's output.
    pub(crate) fn slurm_output(&self) -> PathBuf {
        self.0.join("slurm.out")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// The program's output, opened to append to it.
    pub(crate) fn open_output(&self) -> io::Result<File> {
        File::options().append(true).create(true).open(self.output())
    }

    /// The lock, unless another process holds it. It is held until the file is dropped.
    pub(crate) fn try_lock(&self) -> io::Result<Option<File>> {
        files::try_lock(File::options().write(true).open(self.lock())?)
    }

    /// The end of the rank, if that has been written.
    pub(crate) fn read_end(&self) -> Option<End> {
        files::read::<Ended>(&self.end()).ok().map(|ended| ended.end)
    }

    /// The rank's end, its instant, and the time that the rank ran, if these have been written.
    pub(crate) fn read_ended(&self) -> Option<Ended> {
        files::read(&self.end()).ok()
    }

    /// Takes the room on disk for the document of the rank's end, and for those that tell the shim and the program to stop.
    pub(crate) fn take_rooms(&self) -> io::Result<()> {
        let rooms = [self.end_room()].into_iter().chain(self.rooms("steer")).chain(self.rooms("control"));
        rooms.into_iter().try_for_each(|room| files::take_room(&room, ROOM))
    }

    /// Rooms for a document that is written more than once: the first becomes the document, and from then on document and
    /// room change places.
    fn rooms(&self, of: &str) -> [PathBuf; 2] {
        [1, 2].map(|number| self.0.join(format!("{of}.room.{number}")))
    }

    /// Writes the lease's end, and whether to stop, for the shim.
    pub(crate) fn write_steer(&self, steer: &Steer) -> io::Result<()> {
        files::write_in_any_case(&self.rooms("steer"), &self.steer(), steer)
    }

    /// Tells the program to stop.
    pub(crate) fn write_control(&self, stop: Stop) -> io::Result<()> {
        files::write_in_any_case(&self.rooms("control"), &self.control(), &Control { stop })
    }

    /// Writes how the rank ended, so that it survives the server; on a full disk, into the room that was taken for it.
    pub(crate) fn write_end(&self, end: End, at: Seconds) -> io::Result<()> {
        self.write_ended(&Ended { end, at, ran: None, boot: String::new() })
    }

    /// Writes how the rank ended, together with the time that it ran.
    pub(crate) fn write_ended(&self, ended: &Ended) -> io::Result<()> {
        files::write_durably(&self.end(), ended)
            .or_else(|error| files::write_into(&self.end_room(), &self.end(), ended).map_err(|_| error))
    }

    /// The program's progress as it reports it. None if it reports nothing, or nothing that can be read.
    pub(crate) fn read_progress(&self) -> Option<Progress> {
        let said = files::read::<Said>(&self.progress()).ok()?;
        (said.version == PROGRESS_VERSION).then(|| said.progress())
    }
}
