//! The real processes of an [`Agent`]: its acts are carried out, and kept so that a later agent finds them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use apportion::Seconds;

use crate::agent::disk::Disk;
use crate::agent::server_rank::{News, ServerRank};
use crate::agent::{Act, Adopted, Agent, Server};
use crate::clock;
use crate::files;
use crate::process::kill_without_folder;
use crate::protocol::{End, Orders, Report, Run, Stop};
use crate::rank::{self, RankFolder, Start, StartedBy, Steer};

/// The number of outputs of forgotten ranks that are kept.
const LOGS_KEPT: usize = 1000;

/// The number of random bits in a boot's number.
const DRAWN_BITS: u32 = 12;

/// Time for which an agent waits for the ends of processes that it kills at its start.
const LOST_TRIED: Seconds = Seconds::new(10.0);

/// Time for which an agent waits for another with its folder to end.
const TAKEN_TRIED: Seconds = Seconds::new(1.0);

/// The folders of an agent, which survive its end, and the command that starts ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The agent's own folder, for it alone.
    pub state: PathBuf,
    /// The folder in which each job has a folder for its checkpoints, named by its number and its submission. All servers should
    /// have the same.
    pub checkpoints: PathBuf,
    /// The program that calls [`shim::run`](crate::shim::run), and the arguments before the rank's folder.
    pub shim: Vec<OsString>,
}

impl Home {
    /// A home whose ranks are started by the program that runs now, by its subcommand `shim`.
    pub fn new(state: &Path, checkpoints: &Path) -> Self {
        // The program as it runs, even if its file is replaced meanwhile.
        let shim = vec!["/proc/self/exe".into(), "shim".into()];
        Self { state: state.to_owned(), checkpoints: checkpoints.to_owned(), shim }
    }

    pub(crate) fn ranks(&self) -> PathBuf {
        self.state.join("ranks")
    }

    /// The folder for documents that are set aside because they cannot be read.
    fn aside(&self) -> PathBuf {
        self.state.join("aside")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.state.join("logs")
    }

    fn boot(&self) -> PathBuf {
        self.state.join("boot.json")
    }

    /// The file with the folder's own number.
    fn number(&self) -> PathBuf {
        self.state.join("home.json")
    }
}

/// Why an agent cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum ProcessesError {
    /// Its folder cannot be used.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: String,
        /// The error.
        source: io::Error,
    },
    /// Another agent uses the folder.
    #[error(
        "{0} is the folder of an agent that is running: a server has one agent, or each has a folder of its own"
    )]
    Taken(String),
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> ProcessesError {
    let path = path.display().to_string();
    move |source| ProcessesError::Io { path, source }
}

/// The ranks of a server, with their processes. When it is dropped, they go on, and their leases end in time.
#[derive(Debug)]
pub struct Processes {
    home: Home,
    agent: Agent,
    ranks: BTreeMap<(Run, u32), ServerRank>,
    disk: Disk,
    /// The lock of the folder, held while this value lives.
    _lock: File,
}

impl Processes {
    /// Takes over the ranks that an earlier agent left in the folder, and ends those whose folders are gone, as where an older copy
    /// was put in the place of the agent's folder.
    ///
    /// # Errors
    /// If another agent uses this folder, it cannot be used, or processes do not end.
    pub fn open(server: Server, home: Home) -> Result<Self, ProcessesError> {
        let absolute = |path: &Path| std::path::absolute(path).map_err(at(path));
        let home = Home {
            state: absolute(&home.state)?,
            checkpoints: absolute(&home.checkpoints)?,
            shim: home.shim,
        };
        for folder in [home.ranks(), home.logs(), home.checkpoints.clone()] {
            fs::create_dir_all(&folder).map_err(at(&folder))?;
        }
        let path = home.state.join("lock");
        let Some(lock) = lock(&path).map_err(at(&path))? else {
            return Err(ProcessesError::Taken(home.state.display().to_string()));
        };
        let number = number(&home).map_err(at(&home.number()))?;
        let boot = next_boot(&home).map_err(at(&home.boot()))?;
        end_lost(&home.ranks()).map_err(at(&home.ranks()))?;
        let (ranks, adopted) = adopt_all(&home)?;
        let agent = Agent::new(server, boot, adopted).with_home(number);
        let disk = Disk::of(home.state.clone());
        Ok(Self { home, agent, ranks, disk, _lock: lock })
    }

    /// A report that is sent now, or later.
    pub fn report(&mut self) -> Report {
        let disk = self.disk.full().map(str::to_owned);
        Report { disk, ..self.agent.report(clock::node_now()) }
    }

    /// Looks at the disk of the agent's folder. Returns whether it has become full, or has room again.
    pub(crate) fn look_at_disk(&mut self) -> bool {
        self.disk.look(clock::node_now())
    }

    /// Why nothing can be started, the disk being full, in words; none if there is room.
    pub(crate) fn full_disk(&self) -> Option<&str> {
        self.disk.full()
    }

    /// Takes orders and carries them out. Returns whether something has changed that a scheduler waits for: that ranks were
    /// started. (Longer leases are no such change, or each report would be answered by another.)
    pub fn take(&mut self, orders: &Orders) -> bool {
        let acts = self.agent.take(clock::node_now(), orders);
        let has_changed = acts.iter().any(|act| matches!(act, Act::Start(_)));
        for act in acts {
            self.perform(act);
        }
        let Self { home, agent, ranks, .. } = self;
        ranks.retain(|&(run, rank), server_rank| {
            agent.has(run, rank) || forget(home, &rank::name(run, rank), server_rank.folder()).is_err()
        });
        has_changed
    }

    fn perform(&mut self, act: Act) {
        match act {
            Act::Start(start) => {
                let key = (start.run, start.rank);
                let checkpoints = self.home.checkpoints.clone();
                let worker_type = self.agent.server().worker_type.clone();
                match ServerRank::start(
                    &self.home,
                    &Start { rank: *start, by: StartedBy::Agent, checkpoints, worker_type },
                ) {
                    Ok(server_rank) => {
                        self.ranks.insert(key, server_rank);
                    }
                    Err(why) => self.agent.note_end(key.0, key.1, End::NotStarted(why)),
                }
            }
            Act::Steer { run, rank, until, grace, stop } => {
                if let Some(server_rank) = self.ranks.get_mut(&(run, rank)) {
                    server_rank.steer(Steer { until, grace, stop });
                }
            }
        }
    }

    /// Looks at the ranks. Returns whether something has changed that a scheduler waits for: that a rank stops, ended, or made a
    /// proposal.
    pub fn look(&mut self) -> bool {
        let mut has_changed = false;
        for (&(run, rank), server_rank) in &mut self.ranks {
            for news in server_rank.look() {
                match news {
                    News::Progress(progress) => {
                        has_changed |= self.agent.note_progress(run, rank, progress);
                        continue;
                    }
                    News::Stopping => self.agent.note_stopping(run, rank),
                    News::Ran(ran) => self.agent.note_ran(run, rank, ran),
                    News::EndedAt(at) => self.agent.note_ended(run, rank, at),
                    News::Ended(end) => self.agent.note_end(run, rank, end),
                }
                has_changed = true;
            }
        }
        has_changed
    }
}

/// The lock of an agent's folder; none if another agent keeps it.
///
/// A process that an agent is just starting has the lock, too, until it executes its program: for an instant after the
/// end of an agent, its lock may still be held.
pub(crate) fn lock(path: &Path) -> io::Result<Option<File>> {
    let until = clock::node_now() + TAKEN_TRIED;
    loop {
        let file = File::options().write(true).create(true).truncate(false).open(path)?;
        let lock = files::try_lock(file)?;
        if lock.is_some() || clock::node_now() > until {
            return Ok(lock);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Ends the processes of ranks whose folders are gone: nothing steers them, and no report names them.
fn end_lost(ranks: &Path) -> io::Result<()> {
    let until = clock::node_now() + LOST_TRIED;
    loop {
        match kill_without_folder(ranks) {
            0 => return Ok(()),
            left if clock::node_now() > until => {
                let why = format!("{left} processes of jobs that are no longer in it do not end by signal 9");
                return Err(io::Error::other(why));
            }
            _ => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// The number of this boot: larger than all before, even if the folder is lost or the calendar is set back.
pub(crate) fn next_boot(home: &Home) -> io::Result<u64> {
    let last: u64 = files::read(&home.boot()).unwrap_or_default();
    let boot = wall().max(last.saturating_add(1));
    files::write_durably(&home.boot(), &boot)?;
    Ok(boot)
}

/// The folder's own number, drawn at the first start.
pub(crate) fn number(home: &Home) -> io::Result<u64> {
    if let Ok(number) = files::read(&home.number()) {
        return Ok(number);
    }
    let number = getrandom::u64()?;
    files::write_durably(&home.number(), &number)?;
    Ok(number)
}

/// The wall clock in µs, followed by random bits, so that no two agents have the same number by chance. The clock may be set: it
/// only makes the number larger than earlier ones, should the folder be lost.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is not negative")]
fn wall() -> u64 {
    let micros = (clock::wall_s() * 1e6) as u64;
    // If the system has no random numbers, the clock has to do.
    let drawn = getrandom::u64().unwrap_or_default();
    (micros << DRAWN_BITS) | (drawn >> (u64::BITS - DRAWN_BITS))
}

pub(crate) type ServerRanks = BTreeMap<(Run, u32), ServerRank>;

/// Takes over the folders of ranks; a folder that cannot be read is set aside.
pub(crate) fn adopt_all(home: &Home) -> Result<(ServerRanks, Vec<Adopted>), ProcessesError> {
    let ranks = home.ranks();
    let mut server_ranks = BTreeMap::new();
    let mut adopted = Vec::new();
    for entry in fs::read_dir(&ranks).map_err(at(&ranks))? {
        let path = entry.map_err(at(&ranks))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        if name.starts_with('.') {
            // The folder is half made, or half removed.
            let _ = fs::remove_dir_all(&path);
            continue;
        }
        let Some((run, rank)) = rank::of_name(&name) else { continue };
        match ServerRank::adopt(run, rank, RankFolder::at(path.clone())) {
            Some((one, report)) => {
                server_ranks.insert((run, rank), one);
                adopted.push(report);
            }
            None => set_aside(home, &name, &RankFolder::at(path)),
        }
    }
    Ok((server_ranks, adopted))
}

/// Moves a rank's folder that cannot be read to where ranks are not looked for. If a shim owns it, the rank is killed, and the next
/// agent moves the folder.
fn set_aside(home: &Home, name: &str, folder: &RankFolder) {
    if folder.lock().exists() && !matches!(folder.try_lock(), Ok(Some(_))) {
        let now = clock::node_now();
        let kill = Steer { until: now, grace: Seconds::ZERO, stop: Some(Stop::Kill) };
        let _ = files::write(&folder.steer(), &kill);
        return;
    }
    let _ = fs::create_dir_all(home.aside());
    let _ = fs::rename(folder.path(), home.aside().join(name));
}

/// Removes the folder of a rank, and keeps its output.
pub(crate) fn forget(home: &Home, name: &str, folder: &RankFolder) -> io::Result<()> {
    let gone = home.ranks().join(format!(".gone-{name}"));
    let logs = home.logs();
    if folder.path().exists() {
        let _ = keep_log(&folder.output(), &logs, &format!("{name}.log"));
        if fs::metadata(folder.slurm_output()).is_ok_and(|data| data.len() > 0) {
            let _ = keep_log(&folder.slurm_output(), &logs, &format!("{name}.slurm.log"));
        }
        fs::rename(folder.path(), &gone)?;
    }
    let _ = fs::remove_dir_all(&gone);
    drop_old_logs(&logs, LOGS_KEPT)
}

/// Moves an output to the kept ones. If an output of the same name is there, it is of a job of another state, and the new one gets
/// a number at the end of its name.
fn keep_log(output: &Path, logs: &Path, name: &str) -> io::Result<()> {
    let kept = logs.join(name);
    if kept.exists() && output.exists() {
        let mut others = (1u64..).map(|number| logs.join(format!("{name}.{number}")));
        if let Some(other) = others.find(|other| !other.exists()) {
            fs::rename(&kept, other)?;
        }
    }
    fs::rename(output, kept)
}

/// Removes the oldest outputs but the newest `n_kept`.
fn drop_old_logs(logs: &Path, n_kept: usize) -> io::Result<()> {
    let entries: Vec<fs::DirEntry> = fs::read_dir(logs)?.collect::<io::Result<_>>()?;
    if entries.len() <= n_kept {
        return Ok(());
    }
    let age = |entry: &fs::DirEntry| entry.metadata().and_then(|data| data.modified()).ok();
    let mut by_age: Vec<_> = entries.iter().map(|entry| (age(entry), entry.path())).collect();
    by_age.sort();
    for (_, path) in &by_age[..by_age.len() - n_kept] {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_outputs_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..5 {
            let file = File::create(folder.path().join(format!("{number}.log"))).unwrap();
            let at = std::time::UNIX_EPOCH + Duration::from_secs(1000 - number);
            file.set_modified(at).unwrap();
        }
        drop_old_logs(folder.path(), 2).unwrap();
        let left = |number: i32| folder.path().join(format!("{number}.log")).exists();
        assert_eq!((0..5).map(left).collect::<Vec<_>>(), [true, true, false, false, false]);
    }

    #[test]
    fn an_output_of_the_same_name_is_kept_beside_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path(), folder.path());
        fs::create_dir_all(home.logs()).unwrap();
        for words in ["ann's", "bob's", "eve's"] {
            let rank = RankFolder::at(home.ranks().join("1.1.0"));
            fs::create_dir_all(rank.path()).unwrap();
            fs::write(rank.output(), words).unwrap();
            forget(&home, "1.1.0", &rank).unwrap();
        }
        let read = |name: &str| fs::read_to_string(home.logs().join(name)).unwrap();
        assert_eq!(["1.1.0.log", "1.1.0.log.1", "1.1.0.log.2"].map(read), ["eve's", "ann's", "bob's"]);
    }

    #[test]
    fn each_start_has_a_larger_number() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path(), folder.path());
        let first = next_boot(&home).unwrap();
        assert!(next_boot(&home).unwrap() > first);
        // An earlier boot while the calendar was ahead.
        files::write(&home.boot(), &(first + (1 << 60))).unwrap();
        assert_eq!(next_boot(&home).unwrap(), first + (1 << 60) + 1);
        fs::write(home.boot(), "not a number").unwrap();
        assert!(next_boot(&home).unwrap() >= first);
    }
}
