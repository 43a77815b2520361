//! The prices of workers: `serve --prices`, which reads the documents of `simulate --prices`.

use crate::exit::Failure;
use apportion::Cluster;
use apportion::simulator::PriceChange;
use apportion::spec::{Source, read_prices};
use apportion::throughput::Throughputs;
use apportion::units::Seconds;
use apportion_studies::sweep::priced;

/// The cluster at the prices of a file, and their changes, by instants of the scheduler's clock. A file may price worker types that
/// only the throughputs have.
///
/// # Errors
/// If the file cannot be read, with the place at fault.
pub(super) fn read(
    path: &str,
    cluster: Cluster,
    throughputs: &Throughputs,
) -> Result<(Cluster, Vec<PriceChange>), Failure> {
    let source = Source::load(path)?;
    let known: Vec<&str> = throughputs.worker_types().iter().map(String::as_str).collect();
    let series = read_prices(&source, &known)?;
    Ok(priced(cluster, series, Seconds::ZERO))
}
