//! Observations of the two agents on a [`RoundState`]: the rows of the dual-agent scheduler's own world
//! ([`observe`](crate::dual_agent::observe)), so that its networks serve here too. Worker types take the places of that world's
//! five, and the type that the cluster lists first counts as the fastest. The logarithm of a job's workers is in the place of its
//! owner's history.

use super::gang::{expected, plan};
use super::round_state::{RoundState, Server};
use crate::dual_agent::cluster::N_TYPES;
use crate::dual_agent::observe::{AGE_S, put};
use apportion::index::{Id, JobIndex, ServerId, WorkerId, WorkerTypeId};
use apportion::units::DollarsPerWorkerHour;

/// The price of workers, in dollars an hour, where a cluster has none.
const PRICE: f64 = 1.0;

fn age(since_s: f64) -> f64 {
    1.0 - (-since_s / AGE_S).exp()
}

fn log_price(round: &RoundState, kind: WorkerTypeId) -> f64 {
    let price = round.problem().cluster().types()[kind].price;
    price.map_or(PRICE, DollarsPerWorkerHour::get).max(0.01).ln() / 2.0
}

/// Writes the numbers about the whole.
pub(super) fn global_row(round: &RoundState, row: &mut [f32]) {
    let types = round.problem().cluster().types();
    let free = round.free_by_type();
    for (kind, place) in types.ids().zip(row[..N_TYPES].iter_mut()) {
        put(std::slice::from_mut(place), &[f64::from(free[kind]) / f64::from(types[kind].n_workers.max(1))]);
    }
    let total: f64 = types.iter().map(|kind| f64::from(kind.n_workers)).sum::<f64>().max(1.0);
    let all_free: f64 = free.iter().map(|free| f64::from(*free)).sum();
    let waiting = round.waiting();
    let gang = |job: &JobIndex| f64::from(round.problem().jobs()[*job].scale_factor);
    let wanted: f64 = waiting.iter().map(gang).sum();
    let left_s: f64 = waiting.iter().map(|job| round.job_state(*job).left_s).sum();
    let n_waiting = waiting.len() as f64;
    put(
        &mut row[N_TYPES..],
        &[
            n_waiting.ln_1p() / 5.0,
            (round.placed().len() as f64).ln_1p() / 5.0,
            (wanted / total).min(3.0),
            1.0 - all_free / total,
            (left_s / 3600.0 / n_waiting.max(1.0)).ln_1p() / 3.0,
        ],
    );
}

/// Writes the row of a waiting job.
pub(super) fn job_row(round: &RoundState, job: JobIndex, row: &mut [f32]) {
    let active = &round.problem().jobs()[job];
    let job_state = round.job_state(job);
    let gang = f64::from(active.scale_factor);
    let hours = (job_state.left_s / 3600.0).max(1e-3);
    let types = round.problem().cluster().types();
    let fastest = types.ids().max_by(|one, other| {
        round
            .relative(job, *one)
            .total_cmp(&round.relative(job, *other))
            .then(other.index().cmp(&one.index()))
    });
    let price = fastest.map_or(0.0, |kind| log_price(round, kind));
    put(
        row,
        &[
            ((active.elapsed.get() - job_state.service_s).max(0.0) / 600.0).ln_1p() / 4.0,
            hours.ln() / 4.0,
            gang / 16.0,
            (job_state.service_s * gang / 3600.0).ln_1p() / 8.0,
            job_state.part_left,
            f64::from(round.may_stay(job)),
            (hours * gang * (2.0 * price).exp()).ln_1p() / 8.0,
            gang.ln(),
        ],
    );
    for (kind, place) in types.ids().zip(row[8..8 + N_TYPES].iter_mut()) {
        put(std::slice::from_mut(place), &[round.relative(job, kind)]);
    }
    let found = plan(round, job);
    let there = found.as_ref().and_then(|plan| plan.servers.first());
    let relative = there.map_or(0.0, |server| round.relative(job, round.servers()[*server].kind));
    let log_speed = found.as_ref().map_or(-3.0, |plan| plan.expected.ln().max(-3.0));
    put(&mut row[8 + N_TYPES..], &[f64::from(found.is_some()), log_speed, relative]);
}

/// Writes the row of a server that has free workers.
pub(super) fn server_row(round: &RoundState, server: ServerId, row: &mut [f32]) {
    let found = &round.servers()[server];
    let capacity = found.n_workers.max(1) as f64;
    let free = found.free.len() as f64;
    let known = found.free.first().map(|worker| round.known(*worker));
    let (log_speed, deviation, since_s) =
        known.map_or((0.0, 0.0, f64::INFINITY), |known| (known.log_speed, known.deviation, known.since_s));
    let speed = 1.0 - found.kind.index() as f64 / N_TYPES as f64;
    let price = log_price(round, found.kind);
    let part = free / capacity;
    put(row, &[part, speed, log_speed, deviation, 1.0 - part, price, age(since_s), capacity / 8.0]);
}

/// A gang that is being placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gang<'a> {
    /// The job of the gang.
    pub(super) job: JobIndex,
    /// Workers that it has been given.
    pub(super) chosen: &'a [WorkerId],
    /// Workers that it still needs.
    pub(super) needed: usize,
}

/// Writes the row of a server as a candidate for a gang, with the workers that it gives.
pub(super) fn candidate_row(
    round: &RoundState,
    gang: &Gang<'_>,
    (server, taken): (ServerId, &[WorkerId]),
    row: &mut [f32],
) {
    let found = &round.servers()[server];
    let beside = gang.chosen.iter().any(|worker| {
        let other = &round.servers()[round.server_of(*worker)];
        (other.kind, other.group) == (found.kind, found.group)
    });
    let previous = round.job_state(gang.job).previous.as_ref();
    let was =
        previous.is_some_and(|placed| placed.workers.iter().any(|worker| round.server_of(*worker) == server));
    write_candidate(round, gang, (found.kind, taken), [f64::from(beside), f64::from(was)], row);
}

/// Writes the row of the candidate that stands for all workers that a job had in the round before.
pub(super) fn stay_row(round: &RoundState, job: JobIndex, row: &mut [f32]) {
    if let Some(placed) = &round.job_state(job).previous {
        let gang = Gang { job, chosen: &[], needed: placed.workers.len() };
        write_candidate(round, &gang, (placed.worker_type, &placed.workers), [1.0, 1.0], row);
    }
}

fn write_candidate(
    round: &RoundState,
    gang: &Gang<'_>,
    (kind, taken): (WorkerTypeId, &[WorkerId]),
    [beside, was]: [f64; 2],
    row: &mut [f32],
) {
    let on = round.servers_of(taken);
    let of_servers = |part: &dyn Fn(&Server) -> f64| {
        on.iter().map(|server| part(&round.servers()[*server])).sum::<f64>() / on.len().max(1) as f64
    };
    let free = of_servers(&|server| server.free.len() as f64 / server.n_workers.max(1) as f64);
    let crowd = of_servers(&|server| server.n_spread as f64);
    let slowest = taken.iter().map(|worker| round.known(*worker));
    let slowest = slowest.min_by(|one, other| one.log_speed.total_cmp(&other.log_speed));
    let (log_speed, deviation, since_s) =
        slowest.map_or((0.0, 0.0, f64::INFINITY), |known| (known.log_speed, known.deviation, known.since_s));
    let size = f64::from(round.problem().jobs()[gang.job].scale_factor);
    let all: Vec<WorkerId> = gang.chosen.iter().chain(taken).copied().collect();
    let needed = gang.needed.max(1) as f64;
    put(
        row,
        &[
            free,
            round.relative(gang.job, kind),
            log_speed,
            deviation,
            -0.1 * crowd,
            1.0 - free,
            log_price(round, kind),
            beside,
            1.0 - gang.needed as f64 / size,
            taken.len() as f64 / needed,
            age(since_s),
            was,
            expected(round, gang.job, kind, &all).ln().max(-3.0),
        ],
    );
}
