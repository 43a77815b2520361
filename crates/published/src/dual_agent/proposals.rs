//! Whole placements for one job, of which the placement agent chooses one: the servers that the job was on, and for each type of
//! servers a rule's placement on one server and over several.
//!
//! A rule looks at its job's speed and at the workers that stay free. A row also has the cost of a placement to other jobs, on the
//! same servers and in the queue. It has products of properties, which differ between placements, with circumstances, which do not,
//! so that a linear function of rows can choose by circumstances.

use crate::dual_agent::cloud::Cloud;
use crate::dual_agent::cluster::{N_TYPES, type_of};
use crate::dual_agent::observe::{Knowledge, known, put};
use crate::dual_agent::speeds::{Newcomer, workers_on};
use crate::dual_agent::tables::{HOST_SLOWDOWN, Tables};
use crate::world::ACCELERATOR;
use crate::world::{Part, WorldJob};
use apportion::index::JobId;

/// The number of proposals: the servers that a job was on, and each type on one server and over several.
pub const N_PROPOSALS: usize = 1 + 2 * N_TYPES;

/// Length of a proposal's row: the logarithm of its merit against the best; the logarithm of the job's retention; time
/// since its slowest server was measured; restart time as a part of the job's remaining time; properties; its type; products of
/// properties with circumstances.
///
/// Properties are expected log speed against the job's best, workers that stay free on its servers, whether the job stays, whether
/// it is spread, the deviation of its slowest server, the slowdown of other jobs on its servers, and the loss of waiting jobs.
/// Circumstances are log remaining hours, log workers, and log of the number of waiting jobs.
pub const PROPOSAL_FEATURES: usize = 4 + N_PROPERTIES + N_TYPES + N_PROPERTIES * N_CIRCUMSTANCES;

/// Position in a proposal's row of the logarithm of its merit against the best, which has 0.
pub const PROPOSAL_MERIT: usize = 0;

const N_PROPERTIES: usize = 7;
const N_CIRCUMSTANCES: usize = 3;

/// The number of waiting jobs, by remaining time, whose loss by a proposal is computed.
const N_OTHERS: usize = 4;

/// The most seconds of a job's remaining time that count where losses of jobs are compared: a lease.
const COUNTED_S: f64 = 3600.0;

/// The relative speed that a job counts with where it does not fit.
const NOWHERE: f64 = 0.05;

/// A placement that a rule proposes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// Servers; none if there is no such placement now.
    pub parts: Vec<Part>,
    /// The rule's merit of the placement, the more the better; 0 if there is no such placement.
    pub merit: f64,
    /// The expected speed there, relative to the job's best.
    pub relative: f64,
}

/// All proposals for a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposals {
    pub(super) all: [Proposal; N_PROPOSALS],
}

impl Default for Proposals {
    fn default() -> Self {
        Self { all: std::array::from_fn(|_| Proposal::default()) }
    }
}

impl Proposals {
    /// The position of the rule's placement on one server of a type, or over several.
    pub const fn place_of(server_type: usize, spread: bool) -> usize {
        1 + 2 * server_type + if spread { 1 } else { 0 }
    }

    /// The proposals in order of positions; missing proposals have merit 0.
    pub fn all(&self) -> &[Proposal] {
        &self.all
    }

    /// The number of proposals that are not missing.
    pub fn count(&self) -> usize {
        self.all.iter().filter(|proposal| proposal.merit > 0.0).count()
    }

    /// The position of the proposal with the largest merit, which is the rule's choice; of equals, the first. None if all are
    /// missing.
    pub fn best(&self) -> Option<usize> {
        let mut best = None;
        let mut most = 0.0;
        for (place, proposal) in self.all.iter().enumerate() {
            if proposal.merit > most {
                (best, most) = (Some(place), proposal.merit);
            }
        }
        best
    }

    /// Writes a row for each proposal, zeros for missing ones. `waiting` are jobs by remaining time.
    pub fn rows(
        &self,
        (cloud, knowledge): (&Cloud, Knowledge),
        job: JobId,
        waiting: &[JobId],
        rows: &mut [f32],
    ) {
        rows.fill(0.0);
        let Some(best) = self.best() else { return };
        let others = Others::of(cloud, job, waiting);
        for (place, (proposal, row)) in
            self.all.iter().zip(rows.chunks_exact_mut(PROPOSAL_FEATURES)).enumerate()
        {
            if proposal.merit > 0.0 {
                let merit = (proposal.merit / self.all[best].merit).ln();
                proposal.row((cloud, knowledge), (job, place == 0), (merit, &others), row);
            }
        }
    }
}

impl Proposal {
    fn row(
        &self,
        (cloud, knowledge): (&Cloud, Knowledge),
        (job, stays): (JobId, bool),
        (merit, others): (f64, &Others),
        row: &mut [f32],
    ) {
        let world = cloud.world();
        let WorldJob { job_type, workers, .. } = *world.job(job);
        let spread = self.parts.len() > 1;
        let (mut slowest, mut retained, mut left_over) = ([f64::INFINITY, 0.0, 0.0], 1.0, 0);
        for part in &self.parts {
            let found = known(cloud, knowledge, part.server, Some(job));
            if found[0] < slowest[0] {
                slowest = found;
            }
            let there = Newcomer { job, job_type, spread, workers: part.count };
            retained = f64::min(retained, there.retention_on(world, cloud.tables(), part.server));
            left_over += world.free(part.server)[ACCELERATOR] - part.count;
        }
        let [_, deviation, age] = slowest;
        let left_s = cloud.remaining_s(job, true);
        let restarts = world.progress(job) > 0.0 && !stays;
        let restart = if restarts { (cloud.options().restart_s / left_s).min(1.0) } else { 0.0 };
        let properties: [f64; N_PROPERTIES] = [
            self.relative.ln().max(-3.0),
            f64::from(left_over) / 8.0,
            f64::from(stays),
            f64::from(spread),
            deviation,
            (3.0 * harm(cloud, job, &self.parts)).min(3.0),
            (others.loss(cloud, &self.parts, workers) / 3.0).min(3.0),
        ];
        let circumstances: [f64; N_CIRCUMSTANCES] = [
            (left_s / 3600.0).ln() / 3.0,
            f64::from(workers).log2() / 4.0,
            (world.waiting().len() as f64).ln_1p() / 2.0,
        ];
        let (own, rest) = row.split_at_mut(4 + N_PROPERTIES);
        let (kinds, products) = rest.split_at_mut(N_TYPES);
        put(own, &[merit, retained.ln(), age, restart]);
        put(&mut own[4..], &properties);
        if let Some(part) = self.parts.first() {
            kinds[type_of(world.servers(), part.server)] = 1.0;
        }
        for (products, circumstance) in products.chunks_exact_mut(N_PROPERTIES).zip(circumstances) {
            put(products, &properties.map(|property| property * circumstance));
        }
    }
}

/// The cost of a job to other jobs on its servers: the sum of each job's log slowdown times the time that both are there, over the
/// placed job's own time.
fn harm(cloud: &Cloud, job: JobId, parts: &[Part]) -> f64 {
    let (world, tables) = (cloud.world(), cloud.tables());
    let model = Tables::model(world.job(job).job_type);
    let own_s = cloud.remaining_s(job, true).min(COUNTED_S);
    let mut sum = 0.0;
    for part in parts {
        let capacity = f64::from(world.servers().capacity(part.server)[ACCELERATOR]);
        let host = |job: JobId| tables.host(Tables::model(world.job(job).job_type));
        let residents = world.residents(part.server);
        let load: f64 = residents
            .iter()
            .map(|other| f64::from(workers_on(world, *other, part.server)) * host(*other))
            .sum();
        let crowded = |load: f64| 1.0 + HOST_SLOWDOWN * (load / capacity - 1.0).max(0.0);
        let slower = (crowded(load + f64::from(part.count) * host(job)) / crowded(load)).ln();
        for other in residents {
            let n_servers = world.n_servers(*other);
            let network = if parts.len() > 1 && n_servers > 1 {
                -tables.retained(Tables::model(world.job(*other).job_type), model).ln()
            } else {
                0.0
            };
            let together_s = cloud.remaining_s(*other, true).min(own_s);
            sum += (slower + network) / f64::from(n_servers.max(1)) * together_s / own_s;
        }
    }
    sum
}

/// The next waiting jobs, and the workers that are free for them.
struct Others {
    /// The jobs, each with its weight against the job that is placed.
    jobs: Vec<(WorldJob, f64)>,
    free: [u32; N_TYPES],
    /// The most free workers of any server of each type.
    most: [u16; N_TYPES],
}

impl Others {
    fn of(cloud: &Cloud, job: JobId, waiting: &[JobId]) -> Self {
        let world = cloud.world();
        let counted_s = |job: JobId| cloud.remaining_s(job, true).min(COUNTED_S);
        let others = waiting.iter().filter(|other| **other != job).take(N_OTHERS);
        let jobs = others.map(|other| (*world.job(*other), counted_s(*other) / counted_s(job))).collect();
        let mut most = [0; N_TYPES];
        for server in world.servers().ids() {
            let most = &mut most[type_of(world.servers(), server)];
            *most = world.free(server)[ACCELERATOR].max(*most);
        }
        Self { jobs, free: cloud.free_by_type(), most }
    }

    /// The weighted sum of log slowdowns of the waiting jobs on their fastest free type once these workers are taken.
    fn loss(&self, cloud: &Cloud, parts: &[Part], workers: u16) -> f64 {
        let world = cloud.world();
        let Some(first) = parts.first() else { return 0.0 };
        let kind = type_of(world.servers(), first.server);
        let (mut free, mut most) = (self.free, self.most);
        free[kind] = free[kind].saturating_sub(u32::from(workers));
        let left = |server| {
            let taken: u16 = parts.iter().filter(|part| part.server == server).map(|part| part.count).sum();
            world.free(server)[ACCELERATOR].saturating_sub(taken)
        };
        let of_kind = world.servers().ids().filter(|server| type_of(world.servers(), *server) == kind);
        most[kind] = of_kind.map(left).max().unwrap_or(0);
        let fastest = |job: &WorldJob, free: &[u32; N_TYPES], most: &[u16; N_TYPES]| {
            let fits = (0..N_TYPES).filter(|kind| free[*kind] >= u32::from(job.workers));
            let speeds = fits.map(|kind| cloud.tables().speed(job.job_type, kind, most[kind] < job.workers));
            speeds.fold(NOWHERE * cloud.tables().best_speed(job.job_type), f64::max)
        };
        let lost = |(job, weight): &(WorldJob, f64)| {
            let before = fastest(job, &self.free, &self.most);
            weight * (before / fastest(job, &free, &most)).ln().min(1.0)
        };
        self.jobs.iter().map(lost).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::dual_agent::placement::{Placement, Placer};
    use crate::dual_agent::waiting_rule::WaitingRule;
    use crate::dual_agent::{CloudOptions, WorkloadOptions, generate};
    use apportion::index::{Id, ServerId};

    /// A cloud of one server of each type, with 8, 8, 2, 2 and 8 workers, and jobs of the model with the largest load on its host.
    fn cloud(sizes_and_hours: &[(usize, f64)]) -> Cloud {
        let tables = Arc::new(Tables::embedded().unwrap());
        let model = (0..tables.n_models()).find(|model| tables.host(*model) > 1.499).unwrap();
        let job = |(size, hours): &(usize, f64)| {
            let job_type = Tables::job_type(model, *size);
            let work = hours * 3600.0 * tables.best_speed(job_type);
            let workers = Tables::workers(job_type);
            WorldJob { job_type, workers, work, work_estimated: work, arrival_s: 0.0, owner: 0 }
        };
        let jobs: Vec<WorldJob> = sizes_and_hours.iter().map(job).collect();
        let options = CloudOptions { scale: 1e-6, ..CloudOptions::default() };
        let mut cloud = Cloud::new(tables, options);
        cloud.reset(&jobs, 1);
        cloud
    }

    fn workers(server: usize, count: u16) -> Part {
        Part::workers(ServerId::from_index(server), count)
    }

    #[test]
    fn what_others_lose_by_hand() {
        let mut cloud = cloud(&[(2, 0.5), (2, 2.0), (3, 0.25)]);
        let [first, own, last] = [0, 1, 2].map(JobId::from_index);
        cloud.place(first, &[workers(0, 4)]).unwrap();
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        // A load of 12 on 8 workers slows by 1/(1 + 0.5·0.5), for half of the hour that counts.
        close(harm(&cloud, own, &[workers(0, 4)]), 0.5 * 1.25_f64.ln());
        close(harm(&cloud, own, &[workers(1, 4)]), 0.0);
        // A job of eight workers has the second server or, once that is taken, the last one, for a quarter of the hour.
        let others = Others::of(&cloud, own, &[first, own, last]);
        let others = Others { jobs: others.jobs[1..].to_vec(), ..others };
        let speed = |kind: usize| cloud.tables().speed(cloud.world().job(last).job_type, kind, false);
        let loss = (speed(1) / speed(4).max(NOWHERE * speed(1))).ln().min(1.0);
        assert!(loss > 0.5, "{loss}");
        close(others.loss(&cloud, &[workers(1, 4)], 4), 0.25 * loss);
        close(others.loss(&cloud, &[workers(0, 4)], 4), 0.0);
        close(others.loss(&cloud, &[workers(4, 4)], 4), 0.0);
    }

    /// The best proposal is the rule's choice, and has the highest merit in its row.
    #[test]
    fn the_best_is_what_the_rule_does() {
        let tables = Arc::new(Tables::embedded().unwrap());
        let workload = WorkloadOptions { n_jobs: 30, gap_s: 60.0, ..WorkloadOptions::default() };
        let options = CloudOptions { scale: 0.02, ..CloudOptions::default() };
        let mut cloud = Cloud::new(Arc::clone(&tables), options);
        cloud.reset(&generate(&tables, &workload, 4).unwrap(), 4);
        let waiting_rule = WaitingRule { moving: 1.02, packing: 0.5, ..WaitingRule::default() };
        let mut placer = Placer::new(Placement::Switching, waiting_rule, 0);
        let (mut proposals, mut parts, mut n_stays) = (Proposals::default(), Vec::new(), 0);
        let mut rows = vec![0.0; N_PROPOSALS * PROPOSAL_FEATURES];
        for _ in 0..40 {
            for job in cloud.world().waiting().to_vec() {
                let placed = placer.place(&cloud, job, &mut parts);
                placer.propose(&cloud, job, &mut proposals);
                let best = proposals.best();
                assert_eq!(best.is_some(), placed.is_some());
                let Some(best) = best else { continue };
                n_stays += usize::from(best == 0);
                assert_eq!(proposals.all()[best].parts, parts);
                let waiting = cloud.world().waiting();
                proposals.rows((&cloud, Knowledge::Switching), job, waiting, &mut rows);
                for (row, proposal) in rows.chunks_exact(PROPOSAL_FEATURES).zip(proposals.all()) {
                    let there = proposal.merit > 0.0;
                    assert!(row[PROPOSAL_MERIT] <= 0.0 && there == row.iter().any(|number| *number != 0.0));
                }
                assert_eq!(rows[best * PROPOSAL_FEATURES + PROPOSAL_MERIT].to_bits(), 0);
                cloud.place(job, &parts).unwrap();
            }
            cloud.end_round();
            cloud.begin_round();
        }
        assert!(n_stays > 5, "{n_stays}");
    }
}
