//! Agents in the scheduler's own process: the servers of the cluster are this machine.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::log::Log;
use apportion::Cluster;
use apportion::units::Seconds;
use apportion_live::agent::{self, Home, Link, LinkError, Server};
use apportion_live::driver::{Client, Closed};
use apportion_live::protocol::{Orders, Report};

/// An agent of this process, about to be run.
#[derive(Debug)]
pub(super) struct LocalAgent {
    pub(super) server: Server,
    home: Home,
    link: Direct,
    beat: Duration,
}

/// A link to a scheduler in the same process.
#[derive(Debug)]
pub(super) struct Direct {
    client: Client,
    orders: Receiver<Orders>,
}

impl Direct {
    /// The link of the server of this name.
    ///
    /// # Errors
    /// If the scheduler is ending.
    pub(super) fn new(client: &Client, server: &str) -> Result<Self, Closed> {
        Ok(Self { client: client.clone(), orders: client.listen(server)? })
    }
}

impl Link for Direct {
    fn send(&mut self, report: &Report) -> Result<(), LinkError> {
        self.client.report(report.clone()).map_err(|error| LinkError(error.to_string()))
    }

    fn receive(&mut self, wait: Duration) -> Option<Orders> {
        self.orders.recv_timeout(wait).ok()
    }
}

/// The number of servers of a cluster.
pub(super) fn n_servers(cluster: &Cluster) -> u32 {
    cluster.types().iter().map(|kind| kind.n_workers.div_ceil(kind.workers_per_server.max(1))).sum()
}

/// An agent for each server of the cluster. Their ranks are in folders of `state`.
///
/// # Errors
/// If the scheduler is ending.
pub(super) fn agents(
    cluster: &Cluster,
    client: &Client,
    state: &Path,
    beat: Seconds,
) -> Result<Vec<LocalAgent>, Closed> {
    let beat = Duration::from_secs_f64(beat.get());
    let mut agents = Vec::new();
    for kind in cluster.types() {
        let per_server = kind.workers_per_server.max(1);
        for place in 0..kind.n_workers.div_ceil(per_server) {
            let name = format!("{}-{place}", kind.name);
            let n_workers = per_server.min(kind.n_workers - place * per_server);
            let home = Home::new(&state.join("agents").join(&name), &state.join("checkpoints"));
            let link = Direct::new(client, &name)?;
            let server = Server { name, worker_type: kind.name.clone(), n_workers };
            agents.push(LocalAgent { server, home, link, beat });
        }
    }
    Ok(agents)
}

impl LocalAgent {
    /// Runs the agent until `stop`. Its ranks go on until their leases end, or a later agent takes them over.
    pub(super) fn follow(mut self, stop: &AtomicBool, log: &Log<'_>) {
        let name = self.server.name.clone();
        if let Err(error) = agent::run(self.server, self.home, &mut self.link, self.beat, stop) {
            log.warning(&format!("the agent of {name} cannot begin: {error}"));
        }
    }
}
