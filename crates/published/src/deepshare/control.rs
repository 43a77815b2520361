//! Greedy placement by gains, the control that learned policies must be compared with.

use crate::deepshare::{DeepShareSpeeds, SERVER_SETS, decode, is_shape};
use crate::world::ACCELERATOR;
use crate::world::Part;
use crate::world::World;
use apportion::index::{Id, JobId, ServerId};
use apportion::spec::Fidelity;

/// The action whose placement gains most, and its gain: [own ρ · workers − the neighbours' losses] / workers; ties to the first
/// action. A neighbour's loss is ρ · workers that it would lose from its last retention, and counts once however many servers it
/// shares.
pub(super) fn greedy(world: &World, speeds: &DeepShareSpeeds, fidelity: Fidelity) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64)> = None;
    for (action, servers) in SERVER_SETS.into_iter().enumerate() {
        let Some(job) = decode(world, action, fidelity) else { continue };
        let Some(gain) = gain(world, speeds, job, servers) else { continue };
        if best.is_none_or(|(_, most)| gain > most) {
            best = Some((action, gain));
        }
    }
    best
}

/// The servers with room on which a job gains most, if it fits anywhere; ties to the first set.
pub(super) fn best_servers(world: &World, speeds: &DeepShareSpeeds, job: JobId) -> Option<&'static [usize]> {
    let workers = world.job(job).workers;
    let mut best: Option<(&'static [usize], f64)> = None;
    for servers in SERVER_SETS.into_iter().filter(|servers| is_shape(workers, servers.len())) {
        let each = usize::from(workers) / servers.len();
        let free = |server: &usize| usize::from(world.free(ServerId::from_index(*server))[ACCELERATOR]);
        let Some(gain) = gain(world, speeds, job, servers) else { continue };
        if servers.iter().all(|server| free(server) >= each) && best.is_none_or(|(_, most)| gain > most) {
            best = Some((servers, gain));
        }
    }
    best.map(|(servers, _)| servers)
}

/// The gain of starting a job on these servers, per worker of the job; none if its speed there was not measured.
fn gain(world: &World, speeds: &DeepShareSpeeds, job: JobId, servers: &[usize]) -> Option<f64> {
    let own = speeds.configuration(world, job, servers.len())?;
    let (mut retention, mut loss): (f64, f64) = (1.0, 0.0);
    for (position, &server) in servers.iter().enumerate() {
        let server = ServerId::from_index(server);
        retention = retention.min(speeds.retained_on(world, server, own, job));
        for &other in world.residents(server) {
            let earlier = |part: &Part| {
                servers[..position].iter().any(|server| ServerId::from_index(*server) == part.server)
            };
            if world.parts(other).iter().any(earlier) {
                continue;
            }
            let Some(configuration) = speeds.configuration(world, other, usize::from(world.n_servers(other)))
            else {
                continue;
            };
            // The last measured retention; 1 if the job was placed in this round.
            let before = world.retention(other);
            let after = before.min(speeds.retained(configuration, own));
            loss += f64::from(world.job(other).workers) * (before - after);
        }
    }
    let workers = f64::from(world.job(job).workers);
    Some((retention * workers - loss) / workers)
}
