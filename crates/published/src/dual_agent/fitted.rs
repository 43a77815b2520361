//! Filters whose constants are fitted to servers that drift in a given way, so that none is judged by another's.

use crate::dual_agent::cloud::CloudOptions;
use crate::dual_agent::cluster::servers;
use crate::dual_agent::drift::{Drift, DriftOptions};
use apportion::index::{Id, JobId, ServerId};
use apportion::throughput::server_speeds::{FilterOptions, Record, SwitchingOptions, fit};
use apportion::workload::random::SeedStreams;

/// Rounds that constants are fitted to.
const N_ROUNDS: usize = 150;

/// Chance of a server to be measured in one of these.
const SEEN: f64 = 0.1;

/// Steps in which the fit improves the best of its grid.
const N_STEPS: usize = 40;

/// Seed of the servers that constants are fitted to: of no workload.
const SEED: u64 = u64::MAX;

/// The options, with the constants of both filters fitted to other servers that drift as theirs do. The one that tells
/// stragglers apart knows how many there are, and for how long.
#[must_use]
pub fn fitted(options: CloudOptions) -> CloudOptions {
    let DriftOptions { stragglers, straggle_s, .. } = options.drift;
    let steady = fitted_to(&options, DriftOptions { stragglers: 0.0, ..options.drift });
    CloudOptions {
        filter: fitted_to(&options, options.drift),
        switching: SwitchingOptions { steady, stragglers, straggle_s, ..options.switching },
        ..options
    }
}

fn fitted_to(options: &CloudOptions, drift: DriftOptions) -> FilterOptions {
    let servers = servers(options.scale);
    let mut drift = Drift::new(&servers, drift, options.round_s, SEED);
    let mut draws = SeedStreams::new(SEED).stream("who is seen");
    let round = |number: usize| {
        drift.step();
        // Jobs come and go, and differ in what they feel.
        let job = JobId::from_index(number);
        let sensitivity = drift.sensitivity(job);
        let seen: Vec<ServerId> = servers.ids().filter(|_| draws.uniform() < SEEN).collect();
        let value = |server: ServerId| (server, drift.measured(server, job, sensitivity));
        Record { elapsed_s: options.round_s, measured: seen.into_iter().map(value).collect() }
    };
    let records: Vec<Record> = (0..N_ROUNDS).map(round).collect();
    fit(servers.places(), &records, N_STEPS).0
}
