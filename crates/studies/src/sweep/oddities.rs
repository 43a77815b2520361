//! Valid inputs of a run that are probably a mistake. Each gives a warning, and the run continues.
//!
//! | what is odd | why it is hardly meant |
//! |---|---|
//! | [`NoJobs`](Oddity::NoJobs) | a trace of which the jobs were left out, as by a filter |
//! | [`AllAtOnce`](Oddity::AllAtOnce) | a trace without a column of arrivals reads so |
//! | [`LargeServers`](Oddity::LargeServers) | no server can be full; a slip of a digit, or of the type |
//! | [`IdleType`](Oddity::IdleType) | workers that cost and count as idle, and can never run anything |
//! | [`ShortTrace`](Oddity::ShortTrace) | fewer jobs are measured than was asked for |
//!
//! Impossible inputs are refused instead, when the run is loaded.

use std::fmt;

use crate::sweep::inputs::Run;
use apportion::spec::nearest::name_list;

/// A probable mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Oddity {
    /// A trace has no jobs.
    NoJobs {
        /// Name of the trace in the run.
        trace: String,
    },
    /// All jobs of a trace arrive at one instant.
    AllAtOnce {
        /// Name of the trace in the run.
        trace: String,
        /// Number of its jobs.
        n_jobs: usize,
    },
    /// A server is given more workers than there are of their type.
    LargeServers {
        /// Name of the worker type.
        worker_type: String,
        /// Number of workers on each server.
        per_server: u32,
        /// Number of workers of the type.
        n_workers: u32,
    },
    /// Worker types on which no job of the run can run.
    IdleType {
        /// Names of the worker types.
        worker_types: Vec<String>,
    },
    /// The measured jobs end after the last job of a trace.
    ShortTrace {
        /// Name of the trace in the run.
        trace: String,
        /// Number of its jobs.
        n_jobs: usize,
        /// End of the measured jobs.
        end: u64,
    },
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoJobs { trace } => write!(f, "the trace `{trace}` has no jobs: nothing is simulated"),
            Self::AllAtOnce { trace, n_jobs } => write!(
                f,
                "all {n_jobs} jobs of the trace `{trace}` arrive at once: its column `arrival` would say when each does"
            ),
            Self::LargeServers { worker_type, per_server, n_workers } => write!(
                f,
                "{per_server} workers of `{worker_type}` on a server, and the cluster has {n_workers} of them: \
                 all are on one server"
            ),
            Self::IdleType { worker_types } => {
                let names = name_list(worker_types.iter().map(String::as_str));
                write!(f, "no job can run on {names}: such workers stay idle")
            }
            Self::ShortTrace { trace, n_jobs, end } => write!(
                f,
                "jobs are measured up to number {end}, and the trace `{trace}` has {n_jobs}: fewer are measured"
            ),
        }
    }
}

/// Oddities of a run, in the order of the table in [the module](self).
pub fn oddities(run: &Run) -> Vec<Oddity> {
    let mut found = Vec::new();
    if let (Some(trace), Some(jobs)) = (&run.spec.workload.trace, &run.trace) {
        if jobs.is_empty() {
            found.push(Oddity::NoJobs { trace: trace.clone() });
        }
        let mut arrivals = jobs.iter().map(|job| job.arrival);
        let first = arrivals.next();
        if jobs.len() > 1 && arrivals.all(|arrival| Some(arrival) == first) {
            found.push(Oddity::AllAtOnce { trace: trace.clone(), n_jobs: jobs.len() });
        }
    }
    let large = |name: &str, per_server: u32| {
        let n_workers = run.cluster.types().iter().find(|kind| kind.name == name)?.n_workers;
        let worker_type = name.to_owned();
        (per_server > n_workers).then_some(Oddity::LargeServers { worker_type, per_server, n_workers })
    };
    found.extend(run.spec.servers.0.iter().filter_map(|(name, per_server)| large(name, *per_server)));
    let kinds = run.kinds();
    let is_idle = |name: &str, n_workers: u32| {
        let Some(column) = run.throughputs.find_worker_type(name) else { return false };
        let runs = |(job_type, scale_factor): &(&str, u32)| {
            let row = run.throughputs.find(job_type, *scale_factor);
            *scale_factor <= n_workers && row.is_some_and(|row| run.throughputs.alone(row, column) > 0.0)
        };
        n_workers > 0 && !kinds.is_empty() && !kinds.iter().any(runs)
    };
    let idle = run.cluster.types().iter().filter(|kind| is_idle(&kind.name, kind.n_workers));
    let worker_types: Vec<String> = idle.map(|kind| kind.name.clone()).collect();
    if !worker_types.is_empty() {
        found.push(Oddity::IdleType { worker_types });
    }
    if let (Some(trace), Some(jobs), Some([_, end])) =
        (&run.spec.workload.trace, &run.trace, run.spec.measure)
        && end > jobs.len() as u64
    {
        found.push(Oddity::ShortTrace { trace: trace.clone(), n_jobs: jobs.len(), end });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Inputs;
    use apportion::catalog::Catalog;
    use apportion::spec::Source;
    use apportion::spec::run::{RunSpec, WorkerCounts};

    const TRACE: &str = "job_type,total_steps,arrival\nA3C,1000,0\nA3C,1000,60\n";

    fn said(trace: &str, change: impl FnOnce(&mut RunSpec)) -> Vec<String> {
        let counts = |name: &str, n| WorkerCounts(vec![(name.to_owned(), n)]);
        let mut spec =
            RunSpec { policy: "fifo".to_owned(), cluster: counts("v100", 2), ..RunSpec::default() };
        spec.workload.trace = Some("t".to_owned());
        change(&mut spec);
        let inputs = Inputs::new(Catalog::embedded()).with_text(Source::new("t", trace));
        let run = inputs.load(&spec).unwrap();
        oddities(&run).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_odd_is_told_and_nothing_else() {
        assert_eq!(said(TRACE, |_| {}), Vec::<String>::new());
        let at_once = said("job_type,total_steps\nA3C,1000\nA3C,1000\n", |_| {});
        assert_eq!(at_once.len(), 1, "{at_once:?}");
        assert!(at_once[0].starts_with("all 2 jobs of the trace `t` arrive at once"), "{at_once:?}");
        assert_eq!(said("job_type,total_steps\nA3C,1000\n", |_| {}), Vec::<String>::new(), "one is no crowd");
        let none = said("job_type,total_steps,arrival\n", |_| {});
        assert_eq!(none, ["the trace `t` has no jobs: nothing is simulated"]);
        let servers = |n: u32| move |spec: &mut RunSpec| spec.servers.0 = vec![("v100".to_owned(), n)];
        assert_eq!(said(TRACE, servers(2)), Vec::<String>::new());
        assert!(said(TRACE, servers(9))[0].starts_with("9 workers of `v100` on a server"));
        assert!(said(TRACE, |spec| spec.measure = Some([0, 7]))[0].contains("up to number 7"));
        assert_eq!(said(TRACE, |spec| spec.measure = Some([0, 2])), Vec::<String>::new());
        let gangs = "job_type,total_steps,arrival,scale_factor\nResNet-18 (batch size 64),1000,0,2\n\
                     ResNet-18 (batch size 64),1000,9,2\n";
        let lone = said(gangs, |spec| spec.cluster.0.push(("k80".to_owned(), 1)));
        assert_eq!(lone, ["no job can run on `k80`: such workers stay idle"]);
    }
}
