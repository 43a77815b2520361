//! Orders to servers.

use std::collections::BTreeMap;

use apportion::Seconds;
use apportion::index::Id;

use super::server::Told;
use super::{Core, Effect};
use crate::protocol::{JobNumber, LeaseOrder, Orders, Run};

impl Core {
    /// Notes that there may be news for the servers of a job's run.
    pub(super) fn note_news(&mut self, number: JobNumber) {
        let run = self.jobs.get(&number).and_then(|job| job.run.as_ref());
        for rank in run.iter().flat_map(|run| &run.ranks) {
            if !self.to_tell.contains(&rank.server) {
                self.to_tell.insert(rank.server.clone());
            }
        }
    }

    /// Sends orders to each present server for which there may be news, if they differ from its last ones.
    pub(super) fn send_orders(&mut self) {
        let (now, silence) = (self.now, self.settings.silence);
        for name in std::mem::take(&mut self.to_tell) {
            if !self.servers.get(&name).is_some_and(|server| server.is_reachable(now, silence)) {
                continue;
            }
            let told = self.all_to_tell(&name);
            let Some(server) = self.servers.get_mut(&name) else { continue };
            if server.told.as_ref() == Some(&told) {
                continue;
            }
            server.n_orders += 1;
            let received = server.heard.unwrap_or(now);
            let lease = |(lease, until): &(LeaseOrder, Seconds)| {
                let lease_left = (*until - received).max(Seconds::ZERO);
                LeaseOrder { lease: lease_left, ..lease.clone() }
            };
            let orders = Orders {
                epoch: server.epoch,
                number: server.n_orders,
                answers: server.last,
                leases: told.leases.iter().map(lease).collect(),
                forget: told.forget.clone(),
            };
            server.told = Some(told);
            self.step.effects.push(Effect::Send(name, orders));
        }
    }

    /// The complete orders for a server.
    fn all_to_tell(&self, name: &str) -> Told {
        let Some(server) = self.servers.get(name) else { return Told::default() };
        let mut leases: BTreeMap<Run, (LeaseOrder, Seconds)> = BTreeMap::new();
        let mut numbers: Vec<_> =
            server.record.workers.iter().flat_map(|worker| &self.holders[worker.index()]).copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            let Some(job) = self.jobs.get(&number) else { continue };
            let Some(run) = &job.run else { continue };
            let here = (0u32..)
                .zip(&run.ranks)
                .filter(|(_, rank)| rank.server == name && Self::is_ordered(&rank.known));
            let ranks: Vec<_> = here
                .filter_map(|(number, rank)| Some((number, self.places[rank.worker?.index()].as_ref()?.1)))
                .collect();
            if ranks.is_empty() {
                continue;
            }
            let order = LeaseOrder {
                run: run.run,
                submission: job.record.submission,
                ranks,
                world_size: u32::try_from(run.ranks.len()).unwrap_or(u32::MAX),
                first_server: run.ranks.first().map_or_else(String::new, |first| first.server.clone()),
                beside: job.placement.as_ref().and_then(|placement| placement.beside),
                lease: Seconds::ZERO,
                grace: self.settings.grace,
                stop: run.stop(name, self.now, self.settings.grace),
                total_steps: job.record.job.total_steps,
                program: job.record.program.clone(),
            };
            leases.insert(run.run, (order, run.until));
        }
        let mut forget = server.forget.clone();
        forget.retain(|run| !leases.contains_key(run) && !self.is_live(*run));
        Told { leases: leases.into_values().collect(), forget }
    }

    /// Whether a run may still hold its workers.
    fn is_live(&self, run: Run) -> bool {
        self.jobs.get(&run.job).and_then(|job| job.run.as_ref()).is_some_and(|live| live.run == run)
    }
}
