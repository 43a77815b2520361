//! Application of decisions, or rejection with a reason: the only way for jobs to get servers.

use thiserror::Error;

use crate::world::job::{Part, Role};
use crate::world::servers::{N_RESOURCES, Slots};
use crate::world::state::{Status, World};
use apportion::index::{Id, JobId, ServerId};

/// One decision inside a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision<'a> {
    /// Run a waiting job on these servers.
    Place {
        /// The job.
        job: JobId,
        /// Its new parts: each (server, role) at most once.
        parts: &'a [Part],
    },
    /// Replace the parts of a placed, elastic job.
    Resize {
        /// The job.
        job: JobId,
        /// Its new parts.
        parts: &'a [Part],
    },
    /// Take a placed job off its servers: it waits, at the end of the queue.
    Preempt {
        /// The job.
        job: JobId,
    },
    /// End the round.
    EndRound,
}

/// Why a decision was not applied. The world is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Rejected {
    /// There is no such job.
    #[error("there is no job {0}")]
    UnknownJob(JobId),
    /// Only waiting jobs can be placed.
    #[error("job {0} is not waiting")]
    NotWaiting(JobId),
    /// Only placed jobs can be resized or preempted.
    #[error("job {0} is not placed")]
    NotPlaced(JobId),
    /// Only elastic jobs can be resized.
    #[error("job {0} is not elastic")]
    NotElastic(JobId),
    /// A rigid job needs all its workers, and nothing else.
    #[error("job {0} needs another number of tasks")]
    WrongTasks(JobId),
    /// A job needs at least one part, at least one task in each, and at most as many parts as the rules allow.
    #[error("job {0} is given no parts, empty parts, or too many")]
    WrongParts(JobId),
    /// Two parts have the same server and role.
    #[error("server {0} is named twice in one role")]
    RepeatedPart(ServerId),
    /// There is no such server.
    #[error("there is no server {0}")]
    UnknownServer(ServerId),
    /// A server lacks the slots.
    #[error("server {0} is full")]
    Full(ServerId),
}

impl World {
    /// Applies a decision. [`Decision::EndRound`] changes nothing here: the caller ends the round.
    ///
    /// # Errors
    /// If the decision cannot be applied; the world is then unchanged, apart from its counts of decisions.
    pub fn apply(&mut self, decision: Decision<'_>) -> Result<(), Rejected> {
        self.totals.decisions += 1;
        let applied = match decision {
            Decision::Place { job, parts } => self.place(job, parts),
            Decision::Resize { job, parts } => self.resize(job, parts),
            Decision::Preempt { job } => self.preempt(job),
            Decision::EndRound => Ok(()),
        };
        self.totals.rejections += u64::from(applied.is_err());
        self.rejected = applied.err();
        applied
    }

    fn place(&mut self, job: JobId, parts: &[Part]) -> Result<(), Rejected> {
        match self.status.get(job) {
            None => return Err(Rejected::UnknownJob(job)),
            Some(Status::Waiting) => {}
            Some(_) => return Err(Rejected::NotWaiting(job)),
        }
        self.occupy(job, parts)?;
        self.waiting.retain(|other| *other != job);
        self.placed.push(job);
        self.status[job] = Status::Placed;
        self.retention[job] = 1.0;
        Ok(())
    }

    fn resize(&mut self, job: JobId, parts: &[Part]) -> Result<(), Rejected> {
        self.placed_job(job)?;
        if self.jobs[job].workers != 0 {
            return Err(Rejected::NotElastic(job));
        }
        let mut held = std::mem::take(&mut self.held);
        held.clear();
        held.extend_from_slice(&self.parts[job]);
        self.release(job);
        let applied = self.occupy(job, parts);
        if applied.is_err() {
            let restored = self.occupy(job, &held);
            debug_assert!(restored.is_ok(), "what was held fits");
        }
        self.held = held;
        applied
    }

    fn preempt(&mut self, job: JobId) -> Result<(), Rejected> {
        self.placed_job(job)?;
        self.placed.retain(|other| *other != job);
        self.suspend(job);
        Ok(())
    }

    fn placed_job(&self, job: JobId) -> Result<(), Rejected> {
        match self.status.get(job) {
            None => Err(Rejected::UnknownJob(job)),
            Some(Status::Placed) => Ok(()),
            Some(_) => Err(Rejected::NotPlaced(job)),
        }
    }

    /// Takes a job off its servers and appends it to the queue; the caller takes it out of `placed`.
    pub(crate) fn suspend(&mut self, job: JobId) {
        self.release(job);
        self.status[job] = Status::Waiting;
        self.waiting.push(job);
    }

    /// Gives a job that holds nothing these parts, or changes nothing if they do not fit.
    fn occupy(&mut self, job: JobId, parts: &[Part]) -> Result<(), Rejected> {
        let mut tasks = [0_u16; Role::COUNT];
        if parts.is_empty() || parts.len() > self.rules.parts_max {
            return Err(Rejected::WrongParts(job));
        }
        for (position, part) in parts.iter().enumerate() {
            if part.server.index() >= self.servers.len() {
                return Err(Rejected::UnknownServer(part.server));
            }
            let same = |other: &Part| other.server == part.server && other.role == part.role;
            if parts[..position].iter().any(same) {
                return Err(Rejected::RepeatedPart(part.server));
            }
            let of_role = &mut tasks[part.role.index()];
            *of_role = of_role
                .checked_add(part.count)
                .filter(|_| part.count > 0)
                .ok_or(Rejected::WrongParts(job))?;
        }
        let rigid = self.jobs[job].workers;
        if rigid != 0 && tasks != [rigid, 0] {
            return Err(Rejected::WrongTasks(job));
        }
        for (position, part) in parts.iter().enumerate() {
            let Some(slots) = self.slots_of(job, *part).filter(|slots| self.fits(part.server, *slots)) else {
                for taken in &parts[..position] {
                    self.give_back(job, *taken);
                }
                return Err(Rejected::Full(part.server));
            };
            for (resource, slots) in slots.into_iter().enumerate() {
                self.used[part.server][resource] += slots;
                self.used_total[resource] += u32::from(slots);
                self.load[part.server.index()] += u32::from(slots);
            }
        }
        let mut n_servers = 0;
        for (position, part) in parts.iter().enumerate() {
            if parts[..position].iter().all(|other| other.server != part.server) {
                n_servers += 1;
                self.residents[part.server].push(job);
            }
        }
        self.parts[job].extend_from_slice(parts);
        self.tasks[job] = tasks;
        self.n_servers[job] = n_servers;
        Ok(())
    }

    /// Takes all parts from a job.
    pub(crate) fn release(&mut self, job: JobId) {
        for position in 0..self.parts[job].len() {
            let part = self.parts[job][position];
            self.give_back(job, part);
            self.residents[part.server].retain(|other| *other != job);
        }
        self.parts[job].clear();
        self.tasks[job] = [0; Role::COUNT];
        self.n_servers[job] = 0;
    }

    fn give_back(&mut self, job: JobId, part: Part) {
        let slots = self.slots_of(job, part).unwrap_or_default();
        for (resource, slots) in slots.into_iter().enumerate() {
            self.used[part.server][resource] -= slots;
            self.used_total[resource] -= u32::from(slots);
            self.load[part.server.index()] -= u32::from(slots);
        }
    }

    /// Slots that a part takes; none if they are more than a server could have.
    fn slots_of(&self, job: JobId, part: Part) -> Option<Slots> {
        let task = self.task_slots(job, part.role);
        let mut slots = [0; N_RESOURCES];
        for (slots, task) in slots.iter_mut().zip(task) {
            *slots = task.checked_mul(part.count)?;
        }
        Some(slots)
    }
}
