//! Observations of the two agents: sets of jobs, of servers and of candidates, each member a row of numbers.
//!
//! Rows beyond the last member are zero, and counts give the number of members; decisions depend neither on the room for rows nor
//! on their order. Numbers are scaled to about −1 to 1.

use crate::dual_agent::cloud::Cloud;
use crate::dual_agent::cluster::{N_TYPES, TYPES, type_of, workers_by_type};
use crate::dual_agent::speeds::Newcomer;
use crate::dual_agent::tables::SIZES;
use crate::world::ACCELERATOR;
use crate::world::{Part, WorldJob};
use apportion::index::{Id, JobId, ServerId};

/// Length of a waiting job's row: log waiting time; log estimated remaining time; workers; log worker-hours had;
/// remaining part; whether it may go on where it was; log estimated remaining fee; log of its owner's mean service time; its speed
/// on each type relative to its best; whether it fits now; the highest expected log speed on free servers, against its best; and
/// the relative speed of the type there.
pub const JOB_FEATURES: usize = 11 + N_TYPES;

/// Length of the row of a server with free workers: free part; speed of its type; expected log speed and its deviation;
/// load; log price; time since it was measured; size.
pub const SERVER_FEATURES: usize = 8;

/// Length of the row of a server on which the chosen job may go: free part; speed of its type for the job; expected log
/// speed and its deviation; log of the job's retention; load; log price; whether it is in the rack of a chosen server; part of the
/// gang that is placed; part of the rest that fits here; time since it was measured; whether the job ran here; the job's expected
/// log speed here, against its best.
pub const CANDIDATE_FEATURES: usize = 13;

/// Length of the numbers about the whole: free part of each type; log of the number of jobs waiting and of those placed; workers
/// wanted; utilization; log of the mean remaining time of waiting jobs.
pub const GLOBAL_FEATURES: usize = 5 + N_TYPES;

/// Position in a job's row of ln of its estimated remaining hours, / 4.
pub const JOB_TIME_LEFT: usize = 1;

/// Position in a job's row of its workers, / 16.
pub const JOB_WORKERS: usize = 2;

/// Position in a job's row of the relative speed of the type on which it is expected to be fastest now.
pub const JOB_RELATIVE: usize = 10 + N_TYPES;

/// Position in a job's row of its highest expected log speed on free servers.
pub const JOB_EXPECTED: usize = 9 + N_TYPES;

/// Position in a candidate's row of the job's expected log speed.
pub const CANDIDATE_EXPECTED: usize = 12;

/// Position in the numbers about the whole of the logarithm of the number of placed jobs.
pub const WHOLE_PLACED: usize = N_TYPES + 1;

/// Length of a critic's state: the numbers about the whole; means and maxima of the rows of jobs and servers; the
/// chosen job's row; the agent that acts next; of running jobs their number and their worker-weighted and plain remaining time; the
/// parts of all jobs that have arrived, are present, are done; the remaining time of running jobs at the true speeds of their
/// servers, which agents do not know; the plain and worker-weighted remaining time of waiting jobs.
pub const STATE_LEN: usize = GLOBAL_FEATURES + 3 * JOB_FEATURES + 2 * SERVER_FEATURES + 10;

/// The agents' knowledge of servers beside their types.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Knowledge {
    /// Mean and deviation of the filter.
    #[default]
    Posterior,
    /// Expected speed and deviation of the filter that tells stragglers apart.
    Switching,
    /// The mean alone.
    Mean,
    /// The last measurement, and its age.
    Last,
    /// Nothing.
    None,
    /// The true speeds.
    Oracle,
}

/// Numbers of rows in an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The most jobs; those with the least estimated remaining time are kept.
    pub n_jobs: usize,
    /// The most servers, and the most candidates; those with the best expected speed and room are kept.
    pub n_servers: usize,
}

impl Window {
    /// The length of the part that both agents see: numbers of jobs and of servers, numbers about the whole, rows of jobs, rows of
    /// servers.
    pub const fn team_length(&self) -> usize {
        2 + GLOBAL_FEATURES + self.n_jobs * JOB_FEATURES + self.n_servers * SERVER_FEATURES
    }

    /// The length of the placement agent's observation: the part that both see, the chosen job's row number, the number of
    /// candidates, and their rows, the first of which stands for the servers that the job was on.
    pub const fn placement_length(&self) -> usize {
        self.team_length() + 2 + self.n_candidates() * CANDIDATE_FEATURES
    }

    /// Keeps the servers with the least cost among (cost, id), as many as there is room for, in order of their ids.
    pub(super) fn keep_servers(&self, sorted: &mut Vec<(f64, u32)>, kept: &mut Vec<ServerId>) {
        if sorted.len() > self.n_servers {
            sorted.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
            sorted.truncate(self.n_servers);
        }
        kept.clear();
        kept.extend(sorted.iter().map(|(_, server)| ServerId::from_index(*server as usize)));
        kept.sort_unstable();
    }

    /// The most candidates.
    pub const fn n_candidates(&self) -> usize {
        self.n_servers + 1
    }
}

/// Time constant of a measurement's age as agents see it, 1 − e^(−age / `AGE_S`), in seconds.
pub const AGE_S: f64 = 7200.0;

/// Largest absolute value of a feature.
pub const FEATURE_MAX: f32 = 10.0;

/// Writes numbers, clamped to [`FEATURE_MAX`].
pub fn put(row: &mut [f32], numbers: &[f64]) {
    for (place, number) in row.iter_mut().zip(numbers) {
        #[expect(clippy::cast_possible_truncation, reason = "networks compute with 32-bit floats")]
        let number = *number as f32;
        *place = if number.is_finite() { number.clamp(-FEATURE_MAX, FEATURE_MAX) } else { FEATURE_MAX };
    }
}

/// The best expected log speeds, against the type, of free servers of each type for gangs of each size, on one server and over
/// several; −∞ where they do not fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Prospects {
    /// Log speeds: [type][size][on one, over several].
    log_speed: [[[f64; 2]; SIZES.len()]; N_TYPES],
}

impl Default for Prospects {
    fn default() -> Self {
        Self { log_speed: [[[f64::NEG_INFINITY; 2]; SIZES.len()]; N_TYPES] }
    }
}

impl Prospects {
    /// Computes the prospects of the servers that are free now. `sorted` is room to work in.
    pub fn look(&mut self, cloud: &Cloud, knowledge: Knowledge, sorted: &mut Vec<(f64, u32)>) {
        *self = Self::default();
        let world = cloud.world();
        for (kind, of_type) in self.log_speed.iter_mut().enumerate() {
            sorted.clear();
            for server in world.servers().ids().filter(|server| type_of(world.servers(), *server) == kind) {
                let free = u32::from(world.free(server)[ACCELERATOR]);
                if free > 0 {
                    sorted.push((known(cloud, knowledge, server, None)[0], free));
                }
            }
            sorted.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
            for (size, best) in SIZES.iter().zip(of_type) {
                let needed = u32::from(*size);
                best[0] = sorted.iter().find(|(_, free)| *free >= needed).map_or(best[0], |(mean, _)| *mean);
                let mut so_far = 0;
                let last = sorted.iter().find(|(_, free)| {
                    so_far += free;
                    so_far >= needed
                });
                best[1] = last.map_or(best[1], |(mean, _)| *mean);
            }
        }
    }

    /// The highest expected log speed of a job, and the relative speed of the type there, both against its best and without
    /// contention.
    pub fn of(&self, cloud: &Cloud, knowledge: Knowledge, job: JobId) -> Option<(f64, f64)> {
        let WorldJob { job_type, workers, .. } = *cloud.world().job(job);
        let size = SIZES.iter().position(|size| *size == workers)?;
        let best_speed = cloud.tables().best_speed(job_type);
        let mut best: Option<(f64, f64)> = None;
        let mut offer = |kind: usize, spread: bool, log_speed: f64| {
            let relative = cloud.tables().speed(job_type, kind, spread) / best_speed;
            let expected = relative.ln() + log_speed;
            if expected > best.map_or(f64::NEG_INFINITY, |(most, _)| most) {
                best = Some((expected, relative));
            }
        };
        for kind in 0..N_TYPES {
            offer(kind, false, self.log_speed[kind][size][0]);
            offer(kind, true, self.log_speed[kind][size][1]);
        }
        if cloud.may_stay(job) {
            let parts = cloud.last_parts(job);
            let speeds = parts.iter().map(|part| known(cloud, knowledge, part.server, Some(job))[0]);
            let kind = parts.first().map_or(0, |part| type_of(cloud.world().servers(), part.server));
            offer(kind, parts.len() > 1, speeds.fold(f64::INFINITY, f64::min));
        }
        best
    }
}

/// Writes the row of a job.
pub fn job_row(
    cloud: &Cloud,
    (knowledge, prospects): (Knowledge, &Prospects),
    job: JobId,
    free: &[u32; N_TYPES],
    row: &mut [f32],
) {
    let world = cloud.world();
    let WorldJob { job_type, workers, arrival_s, owner, .. } = *world.job(job);
    let gang = f64::from(workers);
    let service_s = world.service_s(job);
    let left_s = cloud.remaining_s(job, true);
    let best = cloud.tables().best_speed(job_type);
    let relative = |kind: usize| cloud.tables().speed_there(job_type, kind) / best;
    let fastest = (0..N_TYPES).max_by(|one, other| relative(*one).total_cmp(&relative(*other))).unwrap_or(0);
    let history = cloud.history_s(owner).map_or(0.0, |history_s| (history_s / 3600.0).max(0.01).ln() / 4.0);
    put(
        row,
        &[
            ((world.now_s() - arrival_s - service_s).max(0.0) / 600.0).ln_1p() / 4.0,
            (left_s / 3600.0).ln() / 4.0,
            gang / 16.0,
            (service_s * gang / 3600.0).ln_1p() / 8.0,
            world.remaining_fraction(job),
            f64::from(cloud.may_stay(job)),
            (left_s / 3600.0 * gang * TYPES[fastest].price).ln_1p() / 8.0,
            history,
        ],
    );
    for (kind, place) in row[8..8 + N_TYPES].iter_mut().enumerate() {
        put(std::slice::from_mut(place), &[relative(kind)]);
    }
    let (expected, relative) = prospects.of(cloud, knowledge, job).unwrap_or((-3.0, 0.0));
    put(&mut row[8 + N_TYPES..], &[f64::from(cloud.fits(job, free)), expected.max(-3.0), relative]);
}

/// [expected log speed of a server, its deviation, age of its measurement from 0 to 1].
pub(super) fn known(cloud: &Cloud, knowledge: Knowledge, server: ServerId, job: Option<JobId>) -> [f64; 3] {
    let filter = cloud.filter();
    let age = 1.0 - (-filter.since_s(server) / AGE_S).exp();
    match knowledge {
        Knowledge::Posterior => [filter.mean(server), filter.variance(server).sqrt(), age],
        Knowledge::Switching => {
            let switching = cloud.switching();
            [switching.expected(server), switching.variance(server).sqrt(), age]
        }
        Knowledge::Mean => [filter.mean(server), 0.0, 0.0],
        Knowledge::Last => [cloud.last_measured(server), 0.0, age],
        Knowledge::None => [0.0; 3],
        Knowledge::Oracle => {
            let sensitivity = job.map_or(1.0, |job| cloud.sensitivity[job.index()]);
            [cloud.drift().log_speed(server, sensitivity), 0.0, 0.0]
        }
    }
}

/// Writes the row of a server.
pub fn server_row(cloud: &Cloud, knowledge: Knowledge, server: ServerId, row: &mut [f32]) {
    let world = cloud.world();
    let kind = type_of(world.servers(), server);
    let capacity = f64::from(world.servers().capacity(server)[ACCELERATOR]);
    let free = f64::from(world.free(server)[ACCELERATOR]);
    let [mean, deviation, age] = known(cloud, knowledge, server, None);
    let speed = 1.0 - kind as f64 / N_TYPES as f64;
    let price = TYPES[kind].price.ln() / 2.0;
    put(row, &[free / capacity, speed, mean, deviation, 1.0 - free / capacity, price, age, capacity / 8.0]);
}

/// A gang being placed.
#[derive(Clone, Copy, Debug)]
pub struct Gang<'a> {
    /// The job of the gang.
    pub job: JobId,
    /// The parts that are placed.
    pub parts: &'a [Part],
    /// Workers still without a server.
    pub needed: u16,
}

/// Writes the row of a server as a candidate for a gang.
pub fn candidate_row(cloud: &Cloud, knowledge: Knowledge, gang: &Gang, server: ServerId, row: &mut [f32]) {
    let world = cloud.world();
    let servers = world.servers();
    let WorldJob { job_type, workers, .. } = *world.job(gang.job);
    let kind = type_of(servers, server);
    let capacity = f64::from(servers.capacity(server)[ACCELERATOR]);
    let free = world.free(server)[ACCELERATOR];
    let spread = !gang.parts.is_empty() || free < gang.needed;
    let there = Newcomer { job: gang.job, job_type, spread, workers: free.min(gang.needed) };
    let [mean, deviation, age] = known(cloud, knowledge, server, Some(gang.job));
    let beside = gang.parts.iter().any(|part| servers.rack(part.server) == servers.rack(server));
    let was = cloud.may_stay(gang.job) && cloud.last_parts(gang.job).iter().any(|part| part.server == server);
    let relative = cloud.tables().speed(job_type, kind, spread) / cloud.tables().best_speed(job_type);
    let retained = there.retention_on(world, cloud.tables(), server).ln();
    put(
        row,
        &[
            f64::from(free) / capacity,
            relative,
            mean,
            deviation,
            retained,
            1.0 - f64::from(free) / capacity,
            TYPES[kind].price.ln() / 2.0,
            f64::from(beside),
            1.0 - f64::from(gang.needed) / f64::from(workers),
            f64::from(free.min(gang.needed)) / f64::from(gang.needed.max(1)),
            age,
            f64::from(was),
            (relative.ln() + mean + retained).max(-3.0),
        ],
    );
}

/// Writes the row of the candidate that stands for all servers that a job was on, with the speed of the slowest.
pub fn stay_row(cloud: &Cloud, knowledge: Knowledge, job: JobId, row: &mut [f32]) {
    let world = cloud.world();
    let parts = cloud.last_parts(job);
    let Some(first) = parts.first() else { return };
    let job_type = world.job(job).job_type;
    let kind = type_of(world.servers(), first.server);
    let spread = parts.len() > 1;
    let (mut slowest, mut retained, mut free) = ([f64::INFINITY, 0.0, 0.0], 1.0, 0.0);
    for part in parts {
        let found = known(cloud, knowledge, part.server, Some(job));
        if found[0] < slowest[0] {
            slowest = found;
        }
        let there = Newcomer { job, job_type, spread, workers: part.count };
        retained = f64::min(retained, there.retention_on(world, cloud.tables(), part.server));
        let capacity = f64::from(world.servers().capacity(part.server)[ACCELERATOR]);
        free += f64::from(world.free(part.server)[ACCELERATOR]) / capacity / parts.len() as f64;
    }
    let speed = cloud.tables().speed(job_type, kind, spread) / cloud.tables().best_speed(job_type);
    let [mean, deviation, age] = slowest;
    let price = TYPES[kind].price.ln() / 2.0;
    let expected = (speed.ln() + mean + retained.ln()).max(-3.0);
    let retained = retained.ln();
    put(row, &[free, speed, mean, deviation, retained, 1.0 - free, price, 1.0, 0.0, 1.0, age, 1.0, expected]);
}

/// Writes the numbers about the whole.
pub fn global_row(cloud: &Cloud, free: &[u32; N_TYPES], row: &mut [f32]) {
    let world = cloud.world();
    let all = workers_by_type(world.servers());
    let waiting = world.waiting();
    let wanted: f64 = waiting.iter().map(|job| f64::from(world.job(*job).workers)).sum();
    let left: f64 = waiting.iter().map(|job| cloud.remaining_s(*job, true)).sum();
    let total: u32 = all.iter().sum();
    for (kind, place) in row[..N_TYPES].iter_mut().enumerate() {
        put(std::slice::from_mut(place), &[f64::from(free[kind]) / f64::from(all[kind].max(1))]);
    }
    put(
        &mut row[N_TYPES..],
        &[
            (waiting.len() as f64).ln_1p() / 5.0,
            (world.placed().len() as f64).ln_1p() / 5.0,
            (wanted / f64::from(total.max(1))).min(3.0),
            world.utilization(),
            (left / 3600.0 / waiting.len().max(1) as f64).ln_1p() / 3.0,
        ],
    );
}

/// Writes the part of a critic's state that no row of the agents shows.
pub fn running_row(cloud: &Cloud, row: &mut [f32]) {
    let world = cloud.world();
    let placed = world.placed();
    let n = world.n_jobs().max(1) as f64;
    let left_h = |job: &JobId| cloud.remaining_s(*job, true) / 3600.0;
    let workers = |job: &JobId| f64::from(world.job(*job).workers);
    let total = f64::from(workers_by_type(world.servers()).iter().sum::<u32>().max(1));
    let here = world.active().len() as f64;
    let waiting = world.waiting();
    let until_done: f64 = placed.iter().map(|job| cloud.until_done_s(*job) / 3600.0).sum();
    put(
        row,
        &[
            placed.len() as f64 / n,
            placed.iter().map(|job| left_h(job) * workers(job)).sum::<f64>() / total,
            placed.iter().map(left_h).sum::<f64>() / n,
            (here + world.n_done() as f64) / n,
            here / n,
            world.n_done() as f64 / n,
            until_done / n,
            waiting.iter().map(left_h).sum::<f64>() / n,
            waiting.iter().map(|job| left_h(job) * workers(job)).sum::<f64>() / total,
        ],
    );
}
