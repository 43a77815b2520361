//! One rank of a server, as its agent holds it: a folder, and a shim that owns it, started by the agent or by Slurm.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use apportion::Seconds;

use crate::agent::processes::Home;
use crate::agent::{Adopted, RankStart};
use crate::clock;
use crate::files::{self, Version};
use crate::process::Owned;
use crate::protocol::{End, Phase, Progress, RankReport, Run, Stop};
use crate::rank::{self, RankFolder, Start, StartedBy, Steer};

/// News of a rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum News {
    Progress(Progress),
    /// It has been asked to stop.
    Stopping,
    /// The time that it ran: it has ended.
    Ran(Seconds),
    /// The instant of its end, by the node's clock.
    EndedAt(Seconds),
    /// No process of it is left.
    Ended(End),
}

/// A rank that has a folder.
#[derive(Debug)]
pub(crate) struct ServerRank {
    folder: RankFolder,
    by: StartedBy,
    /// The shim, if this agent started it.
    shim: Option<Child>,
    /// The rank's lock, once the shim has let go of it.
    lock: Option<File>,
    /// The orders that could not be written for the shim yet.
    steer: Option<Steer>,
    /// The version of the program's progress that has been read.
    progress: Version,
    is_stopping: bool,
    /// Whether its shim was gone before this agent began.
    is_found_gone: bool,
    is_over: bool,
}

/// The reason for the end of a rank that was gone when its agent was started.
const FOUND_GONE: &str = "it was gone when its agent was started again";

/// An error of the system at a path, in words.
fn at(path: &Path) -> impl FnOnce(io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

impl ServerRank {
    fn new(folder: RankFolder, by: StartedBy) -> Self {
        Self {
            folder,
            by,
            shim: None,
            lock: None,
            steer: None,
            progress: Version::default(),
            is_stopping: false,
            is_found_gone: false,
            is_over: false,
        }
    }

    /// Makes the rank's folder, and starts its shim once the folder is on disk. The error is the reason why not, in words.
    pub(crate) fn start(home: &Home, start: &Start) -> Result<Self, String> {
        let mut server_rank = Self::make(home, start)?;
        match server_rank.spawn(home) {
            Ok(shim) => server_rank.shim = Some(shim),
            Err(why) => {
                let _ = fs::remove_dir_all(server_rank.folder.path());
                return Err(why);
            }
        }
        Ok(server_rank)
    }

    /// Makes the rank's folder, and returns when it is on disk. The error is the reason why not, in words.
    pub(crate) fn make(home: &Home, start: &Start) -> Result<Self, String> {
        let ranks = home.ranks();
        let name = rank::name(start.rank.run, start.rank.rank);
        let folder = RankFolder::at(ranks.join(&name));
        let new = RankFolder::at(ranks.join(format!(".new-{name}")));
        let made = make(&new, start).and_then(|()| {
            fs::rename(new.path(), folder.path()).map_err(at(folder.path()))?;
            files::sync_folder(&ranks).map_err(at(&ranks))
        });
        if let Err(why) = made {
            let _ = fs::remove_dir_all(new.path());
            return Err(why);
        }
        Ok(Self::new(folder, start.by))
    }

    fn spawn(&self, home: &Home) -> Result<Child, String> {
        let Some((program, arguments)) = home.shim.split_first() else {
            return Err("the agent knows no program to start its ranks by".to_owned());
        };
        let output = self.folder.open_output().map_err(at(&self.folder.output()))?;
        let errors = output.try_clone().map_err(at(&self.folder.output()))?;
        let mut shim = Command::new(program);
        shim.args(arguments).arg(self.folder.path());
        shim.stdin(Stdio::null()).stdout(output).stderr(errors);
        shim.spawn().map_err(at(Path::new(program)))
    }

    /// Takes over a rank that an earlier agent started. None if the folder has no rank that can be read.
    pub(crate) fn adopt(run: Run, rank: u32, folder: RankFolder) -> Option<(Self, Adopted)> {
        let Start { rank: start, by, .. } = files::read(&folder.start()).ok()?;
        let start = Some(start).filter(|start| (start.run, start.rank) == (run, rank))?;
        let RankStart { worker, until, grace, .. } = start;
        let at_start = Steer { until, grace, stop: None };
        let steer = files::read(&folder.steer()).unwrap_or(at_start);
        let mut server_rank = Self::new(folder, by);
        let mut report = RankReport {
            run,
            rank,
            worker,
            phase: Phase::Running,
            progress: Progress::default(),
            ran: None,
            ended_ago: None,
        };
        let mut ended = None;
        if steer.stop.is_some_and(|stop| stop != Stop::Propose) {
            report.phase = Phase::Stopping;
            server_rank.is_stopping = true;
        }
        server_rank.is_found_gone = by == StartedBy::Agent
            && server_rank.folder.read_end().is_none()
            && server_rank.is_without_shim();
        for news in server_rank.look() {
            match news {
                News::Progress(progress) => report.progress = progress,
                News::Stopping => report.phase = Phase::Stopping,
                News::Ran(ran) => report.ran = Some(ran),
                News::EndedAt(at) => ended = Some(at),
                News::Ended(end) => report.phase = Phase::Ended(end),
            }
        }
        if by != StartedBy::Agent && report.phase == Phase::Running && !server_rank.has_begun() {
            report.phase = Phase::Waiting;
        }
        let until = by.instant(clock::node_now(), steer.until);
        Some((server_rank, Adopted { report, ended, until, grace: steer.grace }))
    }

    /// Whether no process of it is left.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The system that started its shim, or is to start it.
    pub(crate) fn by(&self) -> StartedBy {
        self.by
    }

    /// Whether its shim has written down its processes.
    pub(crate) fn has_begun(&self) -> bool {
        self.folder.owned().exists()
    }

    pub(crate) fn folder(&self) -> &RankFolder {
        &self.folder
    }

    /// Writes orders for the shim; if they cannot be written, the next look tries again.
    pub(crate) fn steer(&mut self, steer: Steer) {
        self.steer = Some(steer);
        self.write_steer();
    }

    fn write_steer(&mut self) {
        if let Some(steer) = self.steer
            && self.folder.write_steer(&steer).is_ok()
        {
            self.steer = None;
        }
    }

    /// The news since the last look.
    pub(crate) fn look(&mut self) -> Vec<News> {
        if self.is_over {
            self.reap();
            return Vec::new();
        }
        self.write_steer();
        let end = self.look_for_end();
        let mut news = Vec::new();
        // The progress is read after the end, which may have come with a last progress.
        news.extend(self.look_for_progress().map(News::Progress));
        if !self.is_stopping && Version::of(&self.folder.asked()).is_there() {
            self.is_stopping = true;
            news.push(News::Stopping);
        }
        if let Some(end) = end {
            self.is_over = true;
            if let Some(ended) = self.folder.read_ended() {
                news.extend(ended.ran.map(News::Ran));
                news.extend(ended.at_node().map(News::EndedAt));
            }
            news.push(News::Ended(end));
        }
        news
    }

    /// Gives up a rank that according to Slurm is over, or never existed. A shim that holds its lock reports for itself. The end
    /// that is written keeps a late shim from starting anything.
    pub(crate) fn give_up(&mut self, end: End) -> Option<End> {
        let _lock = self.folder.try_lock().ok().flatten()?;
        let end = self.folder.read_end().unwrap_or(end);
        self.folder.write_end(end.clone(), clock::node_now()).ok()?;
        self.is_over = true;
        Some(end)
    }

    fn look_for_progress(&mut self) -> Option<Progress> {
        let version = Version::of(&self.folder.progress());
        if version == self.progress {
            return None;
        }
        self.progress = version;
        self.folder.read_progress()
    }

    fn look_for_end(&mut self) -> Option<End> {
        let end = self.folder.read_end();
        if self.by != StartedBy::Agent {
            // A Slurm job that ended before its program began is no failure of the job's.
            return match end {
                Some(End::NotStarted(why)) if !self.has_begun() => Some(End::Lost(why)),
                end => end,
            };
        }
        if end.is_some() || !self.is_without_shim() {
            return end;
        }
        // It may have written the end between the two looks. From here on the lock is held here: no late shim starts anything.
        let end = self.folder.read_end();
        if end.is_some() || !self.nothing_is_left() {
            return end;
        }
        // The event that ended the agent, or the whole server, may have ended the rank, too.
        let end = if self.is_found_gone { End::Lost(FOUND_GONE.to_owned()) } else { End::Vanished };
        let _ = self.folder.write_end(end.clone(), clock::node_now());
        Some(end)
    }

    /// Whether the shim is gone. If so, the rank's lock is held in its place.
    fn is_without_shim(&mut self) -> bool {
        if self.lock.is_none() && self.reap() {
            self.lock = self.folder.try_lock().ok().flatten();
        }
        self.lock.is_some()
    }

    /// Whether this agent has no child that owns the rank. A shim that was just started may not have its lock yet.
    fn reap(&mut self) -> bool {
        if let Some(shim) = &mut self.shim
            && matches!(shim.try_wait(), Ok(Some(_)))
        {
            self.shim = None;
        }
        self.shim.is_none()
    }

    /// Kills all processes that a shim has left. Returns whether none is left. No program runs that its shim has not written down.
    fn nothing_is_left(&self) -> bool {
        files::read::<Owned>(&self.folder.owned()).map_or(true, |owned| owned.kill_rest(self.folder.path()))
    }
}

/// Makes a rank's folder on disk.
fn make(folder: &RankFolder, start: &Start) -> Result<(), String> {
    let path = folder.path();
    if path.exists() {
        fs::remove_dir_all(path).map_err(at(path))?;
    }
    fs::create_dir(path).map_err(at(path))?;
    File::create(folder.lock()).map_err(at(&folder.lock()))?;
    folder.open_output().map_err(at(&folder.output()))?;
    folder.take_rooms().map_err(at(path))?;
    files::write_durably(&folder.start(), start).map_err(at(&folder.start()))
}
