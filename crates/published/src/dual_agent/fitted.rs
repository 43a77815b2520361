//! Filters with constants fitted to servers that drift in a given way, so that no filter is judged with constants for other
//! servers.

use crate::dual_agent::cloud::CloudOptions;
use crate::dual_agent::cluster::servers;
use crate::dual_agent::drift::{Drift, DriftOptions};
use apportion::index::{Id, JobId, ServerId};
use apportion::throughput::server_speeds::{FilterOptions, Record, SwitchingOptions, fit};
use apportion::workload::random::SeedStreams;

/// The number of rounds that constants are fitted to.
const N_ROUNDS: usize = 150;

/// Probability that a server is measured in one of these rounds.
const SEEN: f64 = 0.1;

/// The number of steps in which the fit improves the best point of its grid.
const N_STEPS: usize = 40;

/// Seed of the servers that constants are fitted to, which no workload has.
const SEED: u64 = u64::MAX;

/// The options with the constants of both filters fitted to other servers with the same law of drift. The filter with a state for
/// stragglers is given their fraction and their mean duration.
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
        // Each round has another job, for jobs differ in their sensitivity.
        let job = JobId::from_index(number);
        let sensitivity = drift.sensitivity(job);
        let seen: Vec<ServerId> = servers.ids().filter(|_| draws.uniform() < SEEN).collect();
        let value = |server: ServerId| (server, drift.measured(server, job, sensitivity));
        Record { elapsed_s: options.round_s, measured: seen.into_iter().map(value).collect() }
    };
    let records: Vec<Record> = (0..N_ROUNDS).map(round).collect();
    fit(servers.places(), &records, N_STEPS).0
}
