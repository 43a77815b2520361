//! The worker types for which jobs state throughputs of their own.

use apportion::Job;
use apportion::scheduler::SubmitError;
use apportion::spec::nearest::{name_list, suggestion};

use super::Core;
use super::requests::Refusal;

impl Core {
    /// Warnings about worker types for which a job states throughputs and that the cluster does not have.
    ///
    /// # Errors
    /// If the cluster has none of these worker types.
    pub(super) fn check_types(&self, job: &Job) -> Result<Vec<String>, Refusal> {
        let throughputs = self.scheduler.throughputs();
        let has = |name: &str| self.scheduler.cluster().types().iter().any(|kind| kind.name == name);
        let mut lacking = Vec::new();
        let named = job.throughput.iter().flatten().map(|(name, _)| name.as_str());
        for name in named.filter(|name| !has(name)) {
            if throughputs.find_worker_type(name).is_none() {
                let known = || throughputs.worker_types().iter().map(String::as_str);
                let nearest = suggestion(name, known()).map_or(String::new(), |text| format!(". {text}"));
                return Err(Refusal::Invalid {
                    text: format!(
                        "the job's throughput names the worker type `{name}`, which the throughputs `{}` do not have, expected one of \
                         {}{nearest}",
                        throughputs.name(),
                        name_list(known())
                    ),
                });
            }
            lacking.push(name);
        }
        let warning = || {
            let (are, counts) = match lacking.len() {
                1 => ("is", "the speed that the job states there counts"),
                _ => ("are", "the speeds that the job states there count"),
            };
            let (names, types) = (name_list(lacking.iter().copied()), self.types_in_words());
            format!("{names} {are} not in this cluster, which has {types}: {counts} for nothing")
        };
        Ok(if lacking.is_empty() { Vec::new() } else { vec![warning()] })
    }

    /// Advice on a job that is not taken in, to be added to the reason.
    pub(super) fn remedy(&self, error: &SubmitError, job: &Job) -> String {
        match error {
            SubmitError::NoThroughput { throughputs, .. } => format!(
                ". `apportion throughputs show {throughputs}` lists the types and scale factors that it has; `--throughput \
                 TYPE=X,…` (`throughput` over HTTP) states the job's own speeds"
            ),
            SubmitError::FitsNowhere { .. } if job.throughput.is_some() => {
                let types = self.scheduler.worker_types_of(job);
                if types.is_empty() {
                    return ": its throughput is 0 on every worker type that it names".to_owned();
                }
                format!(
                    ": its throughput names {}, and the cluster has {}",
                    name_list(types.iter().map(String::as_str)),
                    self.types_in_words()
                )
            }
            _ => String::new(),
        }
    }

    /// The worker types of the cluster, with the number of workers of each, in words.
    fn types_in_words(&self) -> String {
        let kinds = self.scheduler.cluster().types().iter();
        let words: Vec<_> = kinds.map(|kind| format!("{} of `{}`", kind.n_workers, kind.name)).collect();
        words.join(", ")
    }
}
