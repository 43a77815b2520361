//! DeepShare's decisions (Ryu and Eo, ICPADS 2023) on a [`RoundState`]: servers are grouped in cells of four of one type. An action
//! starts a job on a set of a cell's servers, spread evenly, or leaves the cell.
//!
//! As in its own world, a job goes on where it is as long as its throughput is more than 0.6 of that expected of its workers;
//! otherwise it goes to the end of the queue. An action starts the first job of 1, 2, 4, 8 workers for which there is room.
//! Unlike there, jobs may be on one server; there are several cells, offered one after another, cells of the first type first;
//! and observations have a job's properties in place of a serial number.

use std::ops::Range;

use super::action_scheme::{ActionScheme, Continuation};
use super::memory::Memory;
use super::round_state::{RoundState, SERVERS_PER_CELL, Server};
use crate::deepshare::PREEMPT_AT;
use crate::dual_agent::observe::{FEATURE_MAX, put};
use apportion::index::{Id, JobIndex, WorkerId};
use apportion::policy::RoundView;
use apportion_learn::environment::Space;

/// Numbers of workers that jobs need.
const DEMANDS: [u32; 4] = [1, 2, 4, 8];

/// The servers of each action but the last, which leaves the cell.
const SERVER_SETS: [&[usize]; 11] =
    [&[0], &[1], &[2], &[3], &[0, 1], &[0, 2], &[0, 3], &[1, 2], &[1, 3], &[2, 3], &[0, 1, 2, 3]];

/// The action that leaves the cell.
const NOTHING: usize = SERVER_SETS.len();

/// Length of a server's numbers: free part; log speed of its fastest free worker; number of its jobs that are on other
/// servers too; whether the server exists.
const OF_SERVER: usize = 4;

/// Length of the numbers about the first job of a demand: whether there is one; its speed here against its best; log remaining
/// hours; log hours since its arrival; the part of its speed that it retains if it is scattered.
const OF_JOB: usize = 5;

/// Length of the numbers about the whole: position of the cell's type; number of waiting jobs; free parts of the workers of the
/// types before, of this type and of the types after.
const OF_WHOLE: usize = 5;

const LENGTH: usize = SERVERS_PER_CELL * OF_SERVER + DEMANDS.len() * OF_JOB + OF_WHOLE;

/// The agent at work on a round.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// The servers of each cell, as a range of all servers.
    groups: Vec<Range<usize>>,
    /// The cell that is being offered; the number of cells once none is left.
    offered: usize,
    allowed: [bool; NOTHING + 1],
}

impl Cells {
    /// The servers of the cell that is being offered.
    fn cell<'a>(&self, round: &'a RoundState) -> Option<&'a [Server]> {
        Some(&round.servers().as_slice()[self.groups.get(self.offered)?.clone()])
    }

    /// The job that an action starts, with its workers.
    fn decode(&self, round: &RoundState, action: usize) -> Option<(JobIndex, Vec<WorkerId>)> {
        let cell = self.cell(round)?;
        let job = started(round, &first_of_demands(round), cell, action)?;
        let set = SERVER_SETS[action];
        let each = round.problem().jobs()[job].scale_factor as usize / set.len();
        let workers = set.iter().flat_map(|place| cell[*place].free[..each].iter().copied()).collect();
        Some((job, workers))
    }

    /// Goes on to a cell in which some job can be started.
    fn settle(&mut self, round: &RoundState) {
        let waiting = first_of_demands(round);
        while let Some(cell) = self.cell(round) {
            for (action, allowed) in self.allowed[..NOTHING].iter_mut().enumerate() {
                *allowed = started(round, &waiting, cell, action).is_some();
            }
            if self.allowed[..NOTHING].contains(&true) {
                // The cell cannot be left while no job is placed.
                self.allowed[NOTHING] = !round.placed().is_empty();
                return;
            }
            self.offered += 1;
        }
    }
}

/// The servers of each cell.
fn cells(round: &RoundState) -> impl Iterator<Item = &[Server]> {
    round.servers().as_slice().chunk_by(|one, other| one.group == other.group)
}

/// The first waiting job of each demand; a job with another number of workers counts to the next larger demand.
fn first_of_demands(round: &RoundState) -> [Option<JobIndex>; DEMANDS.len()] {
    let mut found = [None; DEMANDS.len()];
    for &job in round.waiting() {
        let workers = round.problem().jobs()[job].scale_factor;
        let demand = DEMANDS.iter().position(|most| workers <= *most).unwrap_or(DEMANDS.len() - 1);
        found[demand] = found[demand].or(Some(job));
    }
    found
}

/// The job that an action starts in a cell: the first of the `waiting` jobs for which there is room.
fn started(
    round: &RoundState,
    waiting: &[Option<JobIndex>],
    cell: &[Server],
    action: usize,
) -> Option<JobIndex> {
    let set = SERVER_SETS.get(action)?;
    let kind = cell.first()?.kind;
    // None if the cell lacks a server of the set.
    let room = set.iter().map(|place| cell.get(*place).map(|server| server.free.len())).min()??;
    let fits = |job: &JobIndex| {
        let workers = round.problem().jobs()[*job].scale_factor as usize;
        let even = workers.is_multiple_of(set.len());
        even && workers / set.len() <= room && round.speed(*job, kind) > 0.0
    };
    waiting.iter().flatten().copied().find(fits)
}

/// Whether a cell of `n_servers` servers can hold a gang with equally many workers on each of one, two or four of them.
pub(super) fn cell_holds(n_servers: usize, per_server: usize, n_workers: usize) -> bool {
    let fits = |n: usize| n <= n_servers && n_workers.is_multiple_of(n) && n_workers / n <= per_server;
    [1, 2, SERVERS_PER_CELL].into_iter().any(fits)
}

impl ActionScheme for Cells {
    fn spaces(&self) -> Vec<Space> {
        vec![Space::uniform(LENGTH, (-FEATURE_MAX, FEATURE_MAX), NOTHING + 1)]
    }

    fn check(&self, round: &RoundState) -> Result<(), String> {
        let types = round.problem().cluster().types();
        for (job, active) in round.problem().jobs().enumerate() {
            let n_workers = active.scale_factor as usize;
            let holds = |cell: &[Server]| {
                let kind = cell[0].kind;
                let per_server = types[kind].workers_per_server.max(1) as usize;
                round.speed(job, kind) > 0.0 && cell_holds(cell.len(), per_server, n_workers)
            };
            if !cells(round).any(holds) {
                return Err(format!(
                    "a job needs {n_workers} workers, which no cell of four servers of one type on which it runs \
                     holds, as many on each of one, two or four of them; `servers` says how many a server has"
                ));
            }
        }
        Ok(())
    }

    fn begin(&mut self, round: &mut RoundState) {
        self.groups.clear();
        for cell in cells(round) {
            let start = self.groups.last().map_or(0, |before| before.end);
            self.groups.push(start..start + cell.len());
        }
        self.offered = 0;
        self.settle(round);
    }

    fn pass(&mut self) {
        self.offered = self.groups.len();
        self.allowed[..NOTHING].fill(false);
    }

    fn is_over(&self) -> bool {
        self.offered >= self.groups.len()
    }

    fn observe(&self, round: &RoundState, observation: &mut [f32]) {
        observation.fill(0.0);
        let Some(cell) = self.cell(round) else { return };
        let (servers, rest) = observation.split_at_mut(SERVERS_PER_CELL * OF_SERVER);
        for (row, server) in servers.chunks_exact_mut(OF_SERVER).zip(cell) {
            let free = server.free.len() as f64 / server.n_workers.max(1) as f64;
            let fastest = server.free.first().map_or(0.0, |worker| round.known(*worker).log_speed);
            put(row, &[free, fastest, server.n_spread as f64 / 4.0, 1.0]);
        }
        let kind = cell[0].kind;
        let (jobs, whole) = rest.split_at_mut(DEMANDS.len() * OF_JOB);
        for (row, job) in jobs.chunks_exact_mut(OF_JOB).zip(first_of_demands(round)) {
            let Some(job) = job else { continue };
            let hours = (round.job_state(job).left_s / 3600.0).max(1e-3);
            let since = round.problem().jobs()[job].elapsed.get() / 3600.0;
            let kept = round.kept(job, kind);
            put(row, &[1.0, round.relative(job, kind), hours.ln() / 4.0, since.ln_1p() / 4.0, kept]);
        }
        let types = round.problem().cluster().types();
        let free = round.free_by_type();
        let part = |keep: &dyn Fn(usize) -> bool| {
            let chosen = || types.ids().filter(|id| keep(id.index()));
            let all: f64 = chosen().map(|id| f64::from(types[id].n_workers)).sum();
            chosen().map(|id| f64::from(free[id])).sum::<f64>() / all.max(1.0)
        };
        let place = kind.index();
        put(
            whole,
            &[
                place as f64 / types.len().max(2) as f64,
                (round.waiting().len() as f64).ln_1p() / 4.0,
                part(&|other| other < place),
                part(&|other| other == place),
                part(&|other| other > place),
            ],
        );
    }

    fn mask(&self, _board: &RoundState, mask: &mut [bool]) {
        mask.copy_from_slice(&self.allowed);
    }

    fn act(&mut self, round: &mut RoundState, action: usize) {
        match self.decode(round, action) {
            Some((job, workers)) => round.place(job, workers),
            None => self.offered += 1,
        }
        self.settle(round);
    }

    /// The action of the smallest allowed set of servers, and of equal sets, that with the fewest free workers.
    fn advice(&self, round: &RoundState) -> Option<usize> {
        let cell = self.cell(round)?;
        let room = |action: usize| {
            let free = |place: &usize| cell[*place].free.len();
            SERVER_SETS[action].iter().map(free).sum::<usize>()
        };
        let allowed = (0..NOTHING).filter(|action| self.allowed[*action]);
        allowed.min_by_key(|action| (SERVER_SETS[*action].len(), room(*action)))
    }

    fn continuation(&self, _memory: &mut Memory, _view: &RoundView<'_>) -> Continuation {
        Continuation::Retaining(PREEMPT_AT)
    }
}
