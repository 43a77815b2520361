//! Pretend jobs for a demonstration.

use std::collections::BTreeMap;
use std::env;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::exit::Failure;
use apportion::Cluster;
use apportion::index::WorkerTypeId;
use apportion::spec::run::WorkerCounts;
use apportion::throughput::Throughputs;
use apportion_live::core::{Answer, Request};
use apportion_live::driver::{Client, Closed};
use apportion_live::front::{Form, JobForm};
use apportion_live::protocol::Program;

/// The policy of the demo.
pub(super) const POLICY: &str = "max_min_fairness_perf";

/// The folder of its state.
pub(super) const STATE: &str = "apportion-state";

/// Its workers: two of a type on each server.
const CLUSTER: &str = "v100=2,p100=2,k80=2";

/// The number of jobs that are submitted at once.
const FIRST: usize = 6;

/// The number of active jobs from which on the demo submits no further one.
const ACTIVE_MAX: usize = 12;

/// The number of looks between two jobs that come later.
const LOOKS_BETWEEN: u32 = 25;

/// The interval at which it looks whether to stop.
const LOOK: Duration = Duration::from_millis(200);

/// The distance in the throughputs between the job types of two successive jobs: any number coprime to the number of types reaches
/// all of them.
const STRIDE: usize = 7;

/// Pretend jobs of the types that the cluster can run.
#[derive(Debug)]
pub(super) struct Demo {
    kinds: Vec<Kind>,
    program: String,
}

/// A kind of pretend job.
#[derive(Debug)]
struct Kind {
    job_type: String,
    scale_factor: u32,
    /// Its throughputs in steps/s, by worker type.
    speeds: Vec<(String, f64)>,
}

impl Demo {
    /// The cluster of the demo; each server has all workers of one type.
    ///
    /// # Errors
    /// Never: the cluster is a constant.
    pub(super) fn defaults() -> Result<WorkerCounts, Failure> {
        CLUSTER.parse().map_err(|error| Failure::Bug { message: format!("{CLUSTER}: {error}") })
    }

    /// Pretend jobs of the types that the cluster can run.
    ///
    /// # Errors
    /// If the program's own path cannot be found.
    pub(super) fn new(cluster: &Cluster, throughputs: &Throughputs) -> io::Result<Self> {
        let types: Vec<(WorkerTypeId, &str)> = cluster
            .types()
            .iter()
            .filter_map(|kind| Some((throughputs.find_worker_type(&kind.name)?, kind.name.as_str())))
            .collect();
        let largest = cluster.types().iter().map(|kind| kind.workers_per_server.max(1)).max().unwrap_or(1);
        let rows = throughputs.rows().enumerate().filter(|(_, row)| row.scale_factor <= largest);
        let kinds = rows.filter_map(|(id, row)| {
            let speeds: Vec<(String, f64)> = types
                .iter()
                .map(|(kind, name)| ((*name).to_owned(), throughputs.alone(id, *kind)))
                .filter(|(_, speed)| *speed > 0.0)
                .collect();
            let is_whole = speeds.len() == types.len();
            is_whole.then(|| Kind { job_type: row.job_type.clone(), scale_factor: row.scale_factor, speeds })
        });
        let program = env::current_exe()?.display().to_string();
        Ok(Self { kinds: kinds.collect(), program })
    }

    /// The pretend job of this number.
    fn job(&self, epoch: u64, number: usize) -> Option<Form> {
        let Kind { job_type, scale_factor, speeds } =
            self.kinds.get(number * STRIDE % self.kinds.len().max(1))?;
        let fastest = speeds.iter().map(|(_, speed)| *speed).fold(0.0, f64::max);
        // It takes from 15 to 45 s on the fastest workers.
        let seconds = 15.0 + (number * 11 % 31) as f64;
        let by_type: Vec<String> = speeds.iter().map(|(name, speed)| format!("{name}={speed}")).collect();
        let command = [self.program.as_str(), "trainer", "--speed", &by_type.join(",")];
        Some(Form {
            name: Some(format!("demo-{number}")),
            user: Some("demo".to_owned()),
            key: Some(format!("demo-{epoch}-{number}")),
            job: JobForm {
                job_type: job_type.clone(),
                scale_factor: *scale_factor,
                sizes: Vec::new(),
                total_steps: (fastest * seconds).ceil().max(1.0),
                weight: 1.0,
                slo: None,
                owner: None,
                throughput: None,
            },
            program: Program {
                command: command.map(str::to_owned).to_vec(),
                directory: None,
                environment: BTreeMap::new(),
            },
        })
    }

    /// Submits some jobs at once and others later, until `stop`; answers a refusal, in words.
    pub(super) fn run(&self, client: &Client, stop: &AtomicBool) -> Result<(), String> {
        let epoch = client.health().epoch;
        let mut looks = 0;
        let mut number = 0;
        while !stop.load(Ordering::Relaxed) {
            let comes = number < FIRST || looks % LOOKS_BETWEEN == 0;
            if comes && n_active(client).map_err(|error| error.to_string())? < ACTIVE_MAX {
                let Some(job) = self.job(epoch, number) else {
                    return Err("the throughputs have no job type that every worker type can run".to_owned());
                };
                number += 1;
                let taken = client.ask(Request::Submit(Box::new(job.into())));
                taken.map_err(|error| error.to_string())?.map_err(|refusal| refusal.to_string())?;
                if number < FIRST {
                    continue;
                }
            }
            looks += 1;
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

fn n_active(client: &Client) -> Result<usize, Closed> {
    Ok(match client.ask(Request::Jobs)? {
        Ok(Answer::Jobs(jobs)) => jobs.iter().filter(|job| job.ended_s.is_none()).count(),
        _ => 0,
    })
}
