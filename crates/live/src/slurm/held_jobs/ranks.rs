//! Ranks in the orders of the scheduler, as parts of the Slurm jobs that are steered.

use std::collections::BTreeMap;

use apportion::Seconds;

use super::intake::PROGRAM;
use super::kept::Place;
use super::steered::Steered;
use crate::agent::{Adopted, RankStart};
use crate::protocol::{End, Phase, Progress, RankReport};

/// Adds the rank of an order to the run that its job wants. The error is how the rank ended before it began.
pub(super) fn want(steered: &mut BTreeMap<u64, Steered>, node: &str, start: &RankStart) -> Result<(), End> {
    let id = match start.program.command.as_slice() {
        [what, id] if what == PROGRAM => id.parse::<u64>().ok(),
        _ => None,
    };
    let Some(id) = id else {
        let why = "it was submitted to apportion itself, which starts no programs with `--front-door sbatch`";
        return Err(End::NotExecutable(why.to_owned()));
    };
    let steered = steered.get_mut(&id).filter(|steered| steered.kept.number == start.run.job);
    let Some(steered) = steered else {
        return Err(End::NotExecutable(format!("Slurm job {id} is not known here")));
    };
    if let Some(end) = steered.last_word() {
        return Err(end);
    }
    let place = Place { node: node.to_owned(), rank: start.rank, worker: start.worker };
    steered.want(start.run, start.world_size, place, start.until);
    Ok(())
}

/// The ranks of a node that an earlier start left.
pub(super) fn adopted(steered: &BTreeMap<u64, Steered>, node: &str, until: Seconds) -> Vec<Adopted> {
    let orders = steered.values().filter_map(Steered::order);
    let places = orders.flat_map(|order| order.places.iter().map(move |place| (order, place)));
    let here = places.filter(|(_, place)| place.node == node);
    here.map(|(order, place)| {
        let phase = if order.has_begun { Phase::Running } else { Phase::Waiting };
        let (run, rank, worker) = (order.run, place.rank, place.worker);
        let progress = Progress::default();
        let report = RankReport { run, rank, worker, phase, progress, ran: None, ended_ago: None };
        Adopted { report, ended: None, until, grace: Seconds::ZERO }
    })
    .collect()
}
