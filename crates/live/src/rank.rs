//! The folder of a rank: the documents by which agent, shim and program know of each other.
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
use crate::protocol::{End, JobNumber, Program, Progress, Run, Stop};

/// One rank of a run: what is to be started, on which worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankStart {
    /// The run.
    pub run: Run,
    /// The job's submission, where the scheduler tells them apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<u64>,
    /// Which rank.
    pub rank: u32,
    /// Its worker, by its place on the server.
    pub worker: u32,
    /// Its place among the run's ranks on this server.
    pub local_rank: u32,
    /// How many ranks of the run are on this server.
    pub ranks_here: u32,
    /// Ranks on all servers.
    pub world_size: u32,
    /// The server of rank 0.
    pub first_server: String,
    /// Steps to the job's end.
    pub total_steps: Steps,
    /// What is run.
    pub program: Program,
    /// When its lease ends.
    pub until: Seconds,
    /// How long after it was asked to stop, or after the lease, it is killed.
    pub grace: Seconds,
}

/// What starts shims, and so whose clock the documents of a rank mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartedBy {
    /// An agent on the same node: instants are of the node's clock.
    #[default]
    Agent,
    /// Slurm, for a scheduler on another node: in place of an instant there is the time until then, which the shim counts
    /// from when it reads it.
    Slurm {
        /// The lowest rank of the Slurm job.
        first: u32,
        /// The rank's worker, by its place among those that Slurm gives the job.
        place: u32,
    },
}

/// `start.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) rank: RankStart,
    #[serde(default)]
    pub(crate) by: StartedBy,
    /// The folder in which each job has a folder for its checkpoints.
    pub(crate) checkpoints: PathBuf,
    pub(crate) worker_type: String,
}

/// `steer.json`.
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

/// `stopping.json`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) why: Why,
    /// When, by the node's clock.
    pub(crate) at: Seconds,
}

/// `end.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) end: End,
    /// When, by the node's clock.
    pub(crate) at: Seconds,
    /// How long its processes were there, as its shim measured; none where that did not come to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ran: Option<Seconds>,
}

/// `control.json`, which programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Control {
    pub(crate) stop: Stop,
}

/// The version of `progress.json` that is read.
pub(crate) const PROGRESS_VERSION: u32 = 1;

/// What a program is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Starting,
    Running,
    Saving,
    Stopped,
    Done,
}

/// `progress.json`, which programs write. What else stands in it is passed over.
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

/// How much room on disk is taken for each document that must be written, in bytes.
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

    /// What the Slurm job prints beside the program's output.
    pub(crate) fn slurm_output(&self) -> PathBuf {
        self.0.join("slurm.out")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// The program's output, to be added to.
    pub(crate) fn open_output(&self) -> io::Result<File> {
        File::options().append(true).create(true).open(self.output())
    }

    /// The lock, unless another process holds it. It is held until the file is dropped.
    pub(crate) fn try_lock(&self) -> io::Result<Option<File>> {
        files::try_lock(File::options().write(true).open(self.lock())?)
    }

    /// How the rank ended, if that has been written.
    pub(crate) fn read_end(&self) -> Option<End> {
        files::read::<Ended>(&self.end()).ok().map(|ended| ended.end)
    }

    /// How long the rank ran, if that has been written.
    pub(crate) fn read_ran(&self) -> Option<Seconds> {
        files::read::<Ended>(&self.end()).ok()?.ran
    }

    /// Takes the room on disk that the rank's end needs, its orders and its program's.
    pub(crate) fn take_rooms(&self) -> io::Result<()> {
        let rooms = [self.end_room()].into_iter().chain(self.rooms("steer")).chain(self.rooms("control"));
        rooms.into_iter().try_for_each(|room| files::take_room(&room, ROOM))
    }

    /// Rooms for a document that is written more than once: the first becomes the document, and from then on document and
    /// room change places.
    fn rooms(&self, of: &str) -> [PathBuf; 2] {
        [1, 2].map(|number| self.0.join(format!("{of}.room.{number}")))
    }

    /// Tells the shim.
    pub(crate) fn write_steer(&self, steer: &Steer) -> io::Result<()> {
        files::write_in_any_case(&self.rooms("steer"), &self.steer(), steer)
    }

    /// Tells the program to stop.
    pub(crate) fn write_control(&self, stop: Stop) -> io::Result<()> {
        files::write_in_any_case(&self.rooms("control"), &self.control(), &Control { stop })
    }

    /// Writes how the rank ended, so that it survives the server; into the room that was taken for it where it can be written
    /// no other way.
    pub(crate) fn write_end(&self, end: End, at: Seconds) -> io::Result<()> {
        self.write_ended(&Ended { end, at, ran: None })
    }

    /// Does so with how long the rank ran.
    pub(crate) fn write_ended(&self, ended: &Ended) -> io::Result<()> {
        files::write_durably(&self.end(), ended)
            .or_else(|error| files::write_into(&self.end_room(), &self.end(), ended).map_err(|_| error))
    }

    /// What the program says that it has done. None if it says nothing, or nothing that can be read.
    pub(crate) fn read_progress(&self) -> Option<Progress> {
        let said = files::read::<Said>(&self.progress()).ok()?;
        (said.version == PROGRESS_VERSION).then(|| said.progress())
    }
}
