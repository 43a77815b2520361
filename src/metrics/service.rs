//! The service of each job: its wait, its workers, its cost, and its share.

use std::collections::BTreeMap;
use std::hash::{BuildHasherDefault, Hasher};

use serde::{Deserialize, Serialize, Serializer};

use crate::cluster::Cluster;
use crate::index::{Id, JobId};
use crate::simulator::{AllocatedShares, Event, Slice};
use crate::units::{Dollars, DollarsPerWorkerHour, Seconds};

/// The service of a job from its arrival to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Service {
    /// The time from its arrival to its first workers; null if it never had any.
    #[serde(rename = "wait_s", alias = "wait")]
    pub wait: Option<Seconds>,
    /// Time that it had workers, alone or beside another job, saving and loading state included.
    #[serde(rename = "service_s", alias = "service")]
    pub service: Seconds,
    /// The number of times that it lost its workers, or the job that it shared them with, while it had work left.
    pub preemptions: u64,
    /// Busy time of its workers by worker type, in h; while it shared them with another job, half of it. Under the published
    /// semantics a slice is sometimes credited with more time than it lasted: that counts in the run's utilization and cost, as
    /// published, but neither here nor in the job's cost.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "worker-hours")))]
    pub worker_hours: BTreeMap<String, f64>,
    /// The price of this time, $; null without prices.
    pub cost: Option<Dollars>,
    /// The part of its time from arrival to end, from 0 to 1, for which it had workers.
    pub share_received: Option<f64>,
    /// The part of this time that allocations gave it: its share of all worker types, averaged over the time; null if the policy
    /// gives no shares, or a log does not have them.
    pub share_owed: Option<f64>,
}

/// The account of a job that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Account {
    arrival: Seconds,
    first: Option<Seconds>,
    service: Seconds,
    preemptions: u64,
    /// Busy worker-seconds: [type].
    busy_s: Vec<f64>,
    cost: Option<Dollars>,
    /// Its last slice.
    last: Option<Received>,
    /// Its share of all worker types by the allocation in force.
    share: f64,
    /// The instant since when this allocation is in force.
    since: Seconds,
    /// Share × time of the allocations before, s.
    owed_s: f64,
}

/// Time that a job had workers of a type.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Received {
    column: usize,
    /// The number of workers, halved if two jobs share them.
    n_workers: f64,
    price: Option<DollarsPerWorkerHour>,
    end: Seconds,
    /// The job that it shared them with; none if it had them alone.
    beside: Option<JobId>,
}

impl Account {
    /// Counts busy workers; a time below 0 takes back counted time.
    fn occupy(&mut self, time: Seconds, Received { column, n_workers, price, .. }: Received) {
        self.busy_s[column] += time.get() * n_workers;
        if let Some(price) = price {
            *self.cost.get_or_insert_default() += price * time.of_workers(n_workers);
        }
    }

    /// Counts the time that the allocation in force has given the job until an instant.
    fn owe_until(&mut self, now: Seconds) {
        self.owed_s += self.share * (now - self.since).get().max(0.0);
        self.since = now;
    }
}

/// Accounts by job. They are looked up several times a round for each job that runs.
#[expect(
    clippy::disallowed_types,
    reason = "nothing depends on its order; it is written in the order of ids"
)]
type Accounts = std::collections::HashMap<JobId, Account, BuildHasherDefault<IdHasher>>;

/// A hash of an id, by multiplication: ids count up from 0.
#[derive(Clone, Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, id: u32) {
        // 2^64 over the golden ratio, as in Knuth's multiplicative hashing.
        self.0 = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}

/// Writes accounts in the order of their jobs, so that equal states are equal bytes.
fn in_order<S: Serializer>(accounts: &Accounts, serializer: S) -> Result<S::Ok, S::Error> {
    accounts.iter().collect::<BTreeMap<_, _>>().serialize(serializer)
}

/// The accounts of all jobs that have not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Services {
    /// Worker types: [type].
    types: Vec<String>,
    is_priced: bool,
    #[serde(serialize_with = "in_order")]
    accounts: Accounts,
    /// Whether an allocation has come, and whether some allocation came without shares.
    has_shares: bool,
    lacks_shares: bool,
}

impl Services {
    /// The accounts before the first event, on this cluster.
    pub(super) fn new(cluster: &Cluster) -> Self {
        Self {
            types: cluster.types().iter().map(|kind| kind.name.clone()).collect(),
            is_priced: cluster.types().iter().any(|kind| kind.price.is_some()),
            accounts: Accounts::default(),
            has_shares: false,
            lacks_shares: false,
        }
    }

    /// Adds one event.
    pub(super) fn fold(&mut self, event: &Event<'_>) {
        match event {
            Event::Arrival { id, job, .. } => {
                let (arrival, busy_s) = (job.arrival, vec![0.0; self.types.len()]);
                let cost = self.is_priced.then_some(Dollars::ZERO);
                let account = Account { arrival, since: arrival, busy_s, cost, ..Account::default() };
                self.accounts.insert(*id, account);
            }
            Event::Slice(slice) => self.add(slice),
            Event::Preempted { jobs, .. } => {
                for id in jobs.members() {
                    if let Some(account) = self.accounts.get_mut(&id) {
                        account.preemptions += 1;
                    }
                }
            }
            Event::Allocated { now, shares, .. } => {
                (self.has_shares, self.lacks_shares) = (true, self.lacks_shares || shares.is_none());
                for account in self.accounts.values_mut() {
                    account.owe_until(*now);
                    account.share = 0.0;
                }
                for row in shares.iter().flat_map(AllocatedShares::iter) {
                    let share: f64 = row.shares.iter().map(|(_, share)| share).sum();
                    for id in row.jobs.members() {
                        if let Some(account) = self.accounts.get_mut(&id) {
                            account.share += share;
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, slice: &Slice) {
        // If shares are received exactly, a pair runs on with one job after the other has ended.
        let is_shared =
            slice.jobs.is_pair() && slice.jobs.members().all(|id| self.accounts.contains_key(&id));
        let part = if is_shared { 0.5 } else { 1.0 };
        let received = Received {
            column: slice.worker_type.index(),
            n_workers: part * f64::from(slice.n_workers),
            price: slice.price,
            end: slice.end,
            beside: None,
        };
        let lasted = slice.end - slice.start;
        // With the published mechanism's oddities, a slice is credited with more time than it lasted; a live scheduler's slice
        // without a span corrects earlier ones by its time.
        let time = if slice.incarnations.is_some() { slice.time } else { slice.time.min(lasted) };
        let before = (time - lasted).max(Seconds::ZERO);
        for id in slice.jobs.members() {
            let Some(account) = self.accounts.get_mut(&id) else { continue };
            account.first.get_or_insert((slice.start - before).max(account.arrival));
            account.service += time;
            account.occupy(time, received);
            let beside = slice.jobs.members().find(|other| is_shared && *other != id);
            account.last = Some(Received { beside, ..received });
        }
    }

    /// Ends a job at this instant: it is owed nothing from then on.
    pub(super) fn end(&mut self, id: JobId, at: Seconds) {
        if let Some(account) = self.accounts.get_mut(&id) {
            account.owe_until(at);
            account.share = 0.0;
        }
    }

    /// The service of a job that ended at this instant; its account is closed.
    pub(super) fn close(&mut self, id: JobId, at: Seconds) -> Service {
        self.end(id, at);
        let Some(mut account) = self.accounts.remove(&id) else { return Service::default() };
        // A job that ends before its partner has ended before their slice: the other has the workers alone for the rest.
        if let Some(last) = account.last.filter(|last| last.end > at) {
            let rest = last.end - at;
            account.service -= rest;
            account.occupy(Seconds::ZERO - rest, last);
            if let Some(other) = last.beside.and_then(|other| self.accounts.get_mut(&other)) {
                other.occupy(rest, last);
            }
        }
        let here_s = (at - account.arrival).get();
        let part = |time_s: f64| (here_s > 0.0).then(|| time_s / here_s);
        let hours = self.types.iter().zip(&account.busy_s);
        Service {
            wait: account.first.map(|first| first - account.arrival),
            service: account.service,
            preemptions: account.preemptions,
            worker_hours: hours.map(|(name, busy_s)| (name.clone(), busy_s / 3600.0)).collect(),
            cost: account.cost,
            share_received: part(account.service.get()),
            share_owed: part(account.owed_s).filter(|_| self.has_shares && !self.lacks_shares),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::WorkerTypeId;
    use crate::units::Steps;
    use crate::workload::{Combination, Job};

    fn slice(jobs: Combination<JobId>, [start, end]: [f64; 2], n_workers: u32) -> Event<'static> {
        Event::Slice(Slice {
            jobs,
            incarnations: None,
            worker_type: WorkerTypeId::from_index(0),
            n_workers,
            start: Seconds::new(start),
            end: Seconds::new(end),
            time: Seconds::new(end - start),
            overhead: Seconds::ZERO,
            price: Some(DollarsPerWorkerHour::new(3.0)),
            steps: [Steps::new(1.0); 2],
            throughput: [1.0; 2],
            succeeded: true,
        })
    }

    fn allocated<'a>(
        now: f64,
        cluster: &'a Cluster,
        rows: Option<&[(Combination<JobId>, [f64; 2])]>,
    ) -> Event<'a> {
        Event::Allocated {
            now: Seconds::new(now),
            n_jobs: 2,
            backend: None,
            route: None,
            iterations: 0,
            fallbacks: &[],
            dropped: Vec::new(),
            uncertified: false,
            shares: rows.map(|rows| AllocatedShares::of(rows.iter().copied(), cluster)),
            solve_seconds: 0.0,
        }
    }

    /// Two jobs that arrive at once.
    fn two_jobs() -> (Services, [JobId; 2]) {
        let cluster: Cluster = "fast=1,slow=1".parse().unwrap();
        let mut services = Services::new(&cluster);
        let ids = [0, 1].map(JobId::from_index);
        let job = Job::new("A");
        for id in ids {
            services.fold(&Event::Arrival { now: Seconds::ZERO, id, measured: true, job: &job });
        }
        (services, ids)
    }

    /// The service of two jobs: the first alone on two workers, then beside the second on one.
    fn folded(shares: bool) -> [Service; 2] {
        let cluster: Cluster = "fast=2,slow=1".parse().unwrap();
        let mut services = Services::new(&cluster);
        let [one, two] = [0, 1].map(JobId::from_index);
        let (alone, pair) = (Combination::single(one), Combination::pair(one, two));
        let jobs = [Job::new("A"), Job::new("A").arrival(Seconds::new(100.0))];
        for (id, job) in [one, two].into_iter().zip(&jobs) {
            services.fold(&Event::Arrival { now: job.arrival, id, measured: true, job });
        }
        let (first, second) = ([(alone, [0.5, 0.25])], [(pair, [0.5, 0.0])]);
        let rows = |rows| shares.then_some(rows);
        services.fold(&allocated(0.0, &cluster, rows(&first[..])));
        services.fold(&slice(alone, [50.0, 150.0], 2));
        services.fold(&Event::Preempted {
            now: Seconds::new(150.0),
            jobs: alone,
            worker_type: WorkerTypeId::from_index(0),
        });
        services.fold(&allocated(200.0, &cluster, rows(&second[..])));
        services.fold(&slice(pair, [300.0, 400.0], 1));
        [services.close(one, Seconds::new(400.0)), services.close(two, Seconds::new(400.0))]
    }

    #[test]
    fn a_job_is_owed_its_shares_while_they_are_in_force() {
        let [one, two] = folded(true);
        // For the first, 0.75 for 200 s and 0.5 for 200 s; for the second, 0.5 for 200 s of its 300 s.
        assert_eq!((one.share_owed, two.share_owed), (Some(0.625), Some(1.0 / 3.0)));
        assert_eq!((one.share_received, two.share_received), (Some(0.5), Some(1.0 / 3.0)));
        let [one, two] = folded(false);
        assert_eq!(
            (one.share_owed, two.share_owed),
            (None, None),
            "a log without shares says nothing of them"
        );
    }

    #[test]
    fn workers_that_two_jobs_share_are_each_ones_by_half() {
        let [one, two] = folded(true);
        let waits = [&one, &two].map(|service| service.wait.map(Seconds::get));
        assert_eq!((waits, one.preemptions, two.preemptions), ([Some(50.0), Some(200.0)], 1, 0));
        let hours =
            |fast_s: f64| BTreeMap::from([("fast".to_owned(), fast_s / 3600.0), ("slow".to_owned(), 0.0)]);
        assert_eq!((&one.worker_hours, &two.worker_hours), (&hours(250.0), &hours(50.0)));
        let close = |cost: Option<Dollars>, worker_s: f64| {
            (cost.unwrap().get() - 3.0 * worker_s / 3600.0).abs() < 1e-12
        };
        assert!(close(one.cost, 250.0) && close(two.cost, 50.0));
    }

    #[test]
    fn equal_accounts_are_equal_bytes_in_whatever_order_jobs_came() {
        let cluster: Cluster = "fast=1,slow=1".parse().unwrap();
        let job = Job::new("A");
        let written_by = |order: &mut dyn Iterator<Item = usize>| {
            let mut services = Services::new(&cluster);
            for id in order.map(JobId::from_index) {
                services.fold(&Event::Arrival { now: Seconds::ZERO, id, measured: true, job: &job });
            }
            serde_json::to_string(&services).unwrap()
        };
        let written = written_by(&mut (0..300));
        assert_eq!(written, written_by(&mut (0..300).rev()));
        let mut read: Services = serde_json::from_str(&written).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), written);
        assert!((0..300).all(|id| read.accounts.remove(&JobId::from_index(id)).is_some()));
    }

    #[test]
    fn a_job_that_ends_beside_another_has_had_no_workers_since() {
        let (mut services, [one, two]) = two_jobs();
        services.fold(&slice(Combination::pair(one, two), [100.0, 400.0], 1));
        let [one, two] = [(one, 250.0), (two, 400.0)].map(|(id, at)| services.close(id, Seconds::new(at)));
        // Half a worker each until the first ends, and the whole of it for the other after that.
        for (service, had_s, here_s, worker_s) in [(one, 150.0, 250.0, 75.0), (two, 300.0, 400.0, 225.0)] {
            assert_eq!((service.service, service.wait), (Seconds::new(had_s), Some(Seconds::new(100.0))));
            assert_eq!(service.share_received, Some(had_s / here_s));
            assert!((service.worker_hours["fast"] - worker_s / 3600.0).abs() < 1e-12);
            assert!((service.cost.unwrap().get() - 3.0 * worker_s / 3600.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_job_whose_partner_has_ended_has_the_workers_alone() {
        let (mut services, [one, two]) = two_jobs();
        let pair = Combination::pair(one, two);
        services.fold(&slice(pair, [0.0, 100.0], 1));
        let first = services.close(one, Seconds::new(100.0));
        services.fold(&slice(pair, [100.0, 400.0], 1));
        let other = services.close(two, Seconds::new(400.0));
        let hours = [&first, &other].map(|service| service.worker_hours["fast"] * 3600.0);
        assert!((hours[0] - 50.0).abs() < 1e-9 && (hours[1] - 350.0).abs() < 1e-9, "{hours:?}");
        let cost = [&first, &other].map(|service| service.cost.unwrap().get()).iter().sum::<f64>();
        assert!((cost - 3.0 * 400.0 / 3600.0).abs() < 1e-12, "{cost}");
    }

    #[test]
    fn a_job_receives_no_more_time_than_its_slices_last() {
        let cluster: Cluster = "fast=1,slow=1".parse().unwrap();
        let mut services = Services::new(&cluster);
        let (id, job) = (JobId::from_index(0), Job::new("A"));
        services.fold(&Event::Arrival { now: Seconds::ZERO, id, measured: true, job: &job });
        let Event::Slice(slice) = slice(Combination::single(id), [100.0, 400.0], 1) else { unreachable!() };
        services.fold(&Event::Slice(Slice { time: Seconds::new(5_000.0), ..slice }));
        let service = services.close(id, Seconds::new(400.0));
        assert_eq!((service.service, service.share_received), (Seconds::new(300.0), Some(0.75)));
    }

    #[test]
    fn a_correction_of_a_live_scheduler_counts_whole() {
        let cluster: Cluster = "fast=1,slow=1".parse().unwrap();
        let mut services = Services::new(&cluster);
        let (id, job) = (JobId::from_index(0), Job::new("A"));
        services.fold(&Event::Arrival { now: Seconds::ZERO, id, measured: true, job: &job });
        for ([start, end], time) in [([100.0, 100.0], 60.0), ([100.0, 400.0], 300.0), ([400.0, 400.0], -20.0)]
        {
            let Event::Slice(slice) = slice(Combination::single(id), [start, end], 1) else { unreachable!() };
            let incarnations = Some([Some(1), None]);
            services.fold(&Event::Slice(Slice { time: Seconds::new(time), incarnations, ..slice }));
        }
        let service = services.close(id, Seconds::new(400.0));
        assert_eq!((service.service, service.wait), (Seconds::new(340.0), Some(Seconds::new(40.0))));
    }
}
