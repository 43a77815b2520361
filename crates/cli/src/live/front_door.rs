//! `apportion serve --executor slurm --front-door sbatch`: users submit held jobs to Slurm, and apportion steers them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::comment;
use super::local::Direct;
use super::log::Log;
use super::slurm::{self, Partition};
use crate::Session;
use crate::exit::Failure;
use apportion::spec::nearest::{name_list, suggestion};
use apportion::throughput::Throughputs;
use apportion::units::Seconds;
use apportion_live::agent::LinkError;
use apportion_live::core::{Answer, Refusal, Request, Settings, State};
use apportion_live::driver::Client;
use apportion_live::front::{Form, JobForm};
use apportion_live::protocol::JobNumber;
use apportion_live::slurm::{
    HeldJobExecutor, HeldJobOptions, Intake, Newcomer, NotTaken, SlurmError, ToolError, kill_wait,
};

/// The name of its folder in the state folder.
const FOLDER: &str = "sbatch";

/// The most bytes of a job's name.
const NAME_MAX: usize = 256;

/// The text that replaces the rest of a name that is cut.
const ELLIPSIS: &str = "…";

/// The longest time that the scheduler may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The grace in addition to Slurm's own, if none is given: Slurm's nodes tidy up after a job.
const TIDYING: Seconds = Seconds::new(5.0);

/// The settings with the changes that this door needs: users submit elsewhere, and Slurm has a part of the grace.
///
/// # Errors
/// If the grace that is `given` is shorter than Slurm's.
pub(super) fn settings(
    settings: Settings,
    given: Option<Seconds>,
    session: &Session,
) -> Result<Settings, Failure> {
    let wait = slurm::asked(session, kill_wait, |error| matches!(error, ToolError::Unreachable { .. }));
    let wait = wait.ok().flatten().map_or(Seconds::ZERO, Seconds::new);
    match given {
        Some(grace) if grace < wait => {
            let message = format!(
                "--grace is {grace}, and Slurm gives a job that it ends {wait} before it kills it (KillWait): expected at least that"
            );
            Err(Failure::usage(message, Some("leave it out, or change KillWait in slurm.conf".to_owned())))
        }
        Some(_) => Ok(Settings { front_door: true, ..settings }),
        None => Ok(Settings { front_door: true, grace: settings.grace.max(wait + TIDYING), ..settings }),
    }
}

/// The executor of the held jobs of a partition.
///
/// # Errors
/// If its folder cannot be used.
pub(super) fn open(
    partition: &Partition,
    state: &Path,
    start_limit: Seconds,
) -> Result<HeldJobExecutor, Failure> {
    let folder = state.join(FOLDER);
    let options = HeldJobOptions {
        partition: partition.name().to_owned(),
        folder: std::path::absolute(&folder).map_err(Failure::io("find the folder of the state"))?,
        nodes: partition.nodes().to_vec(),
        start_limit,
    };
    HeldJobExecutor::open(options).map_err(|error| {
        let help = match error {
            SlurmError::Claimed { .. } => {
                "one scheduler has a partition: end that one, or name another `--partition`"
            }
            _ => "`--state DIR` names a folder on a local disk, which this user may write",
        };
        Failure::usage(error.to_string(), Some(help.to_owned()))
    })
}

/// Runs the executor until `stop`.
pub(super) fn run(
    executor: &mut HeldJobExecutor,
    intake: &mut ByRequests,
    beat: Seconds,
    log: &Log<'_>,
    stop: &AtomicBool,
) {
    let client = intake.client.clone();
    let link = |name: &str| Direct::new(&client, name).map_err(|error| LinkError(error.to_string()));
    let (beat, say) = (Duration::from_secs_f64(beat.get()), |words: &str| log.warning(words));
    if let Err(error) = executor.run(link, intake, (beat, &say), stop) {
        log.warning(&format!("no job of Slurm is steered: {error}"));
    }
}

/// By type, the number of workers, and the number on each of its servers.
type Workers = BTreeMap<String, (u32, u32)>;

/// An intake that passes jobs to the scheduler by requests.
#[derive(Debug)]
pub(super) struct ByRequests {
    client: Client,
    throughputs: Arc<Throughputs>,
    /// By type, the number of workers, and the number on each of its servers.
    workers: Workers,
    /// Slurm's names of the workers' GPUs by worker type; none where Slurm states only their number.
    gres_types: BTreeMap<String, BTreeSet<Option<String>>>,
}

impl ByRequests {
    pub(super) fn new(client: Client, throughputs: Arc<Throughputs>, partition: &Partition) -> Self {
        let (counts, servers) = partition.workers();
        let with_size = |(name, count): (String, u32)| {
            let size = servers.0.iter().find(|(other, _)| **other == name).map_or(1, |(_, size)| *size);
            (name, (count, size))
        };
        let mut gres_types: BTreeMap<String, BTreeSet<Option<String>>> = BTreeMap::new();
        for (node, worker_type) in partition.nodes() {
            gres_types.entry(worker_type.clone()).or_default().insert(node.gres_type.clone());
        }
        Self { client, throughputs, workers: counts.0.into_iter().map(with_size).collect(), gres_types }
    }

    /// A job in the form that the policy is to know.
    ///
    /// # Errors
    /// Why it cannot be taken in, in words.
    fn form(&self, newcomer: &Newcomer<'_>) -> Result<JobForm, String> {
        let Newcomer { job, n_nodes, per_node, gres_type } = *newcomer;
        let mut form = comment::read(job.terms.as_deref().unwrap_or_default())?;
        form.scale_factor = n_nodes.saturating_mul(per_node);
        let mut fits = types_for(&self.workers, newcomer);
        if let Some(asked) = gres_type {
            let known = || self.gres_types.values().flatten().flatten();
            if !known().any(|known| known == asked) {
                let known: BTreeSet<&str> = known().map(String::as_str).collect();
                let known = if known.is_empty() { "no type".to_owned() } else { name_list(known) };
                return Err(format!(
                    "it asks for GPUs of the type `{asked}`, and Slurm knows {known} in this partition"
                ));
            }
            fits.retain(|name| self.is_only(name, asked));
            if fits.is_empty() {
                return Err(format!(
                    "it asks for {per_node} GPUs of the type `{asked}` on each of {n_nodes} nodes, and apportion cannot be sure to \
                     give it these: a job of several nodes has all GPUs of each; a type that `--slurm-types` calls as it calls another \
                     is not asked for by name; ask for `--gres=gpu:{per_node}`, and keep it from other types by `throughput=TYPE=X`"
                ));
            }
        }
        if fits.is_empty() {
            return Err(why_unfit(&self.workers, newcomer));
        }
        let speeds = self.speeds(&form, n_nodes)?;
        let speeds: BTreeMap<String, f64> =
            speeds.into_iter().filter(|(name, speed)| *speed > 0.0 && fits.contains(name.as_str())).collect();
        if speeds.is_empty() {
            let types = name_list(fits.iter().copied());
            return Err(format!(
                "it has a speed on none of the types whose nodes are as it asks for: {types}"
            ));
        }
        form.throughput = Some(speeds);
        Ok(form)
    }

    /// Whether all workers of a type have this type of GPU in Slurm.
    fn is_only(&self, worker_type: &str, gres_type: &str) -> bool {
        let all = self.gres_types.get(worker_type);
        all.is_some_and(|all| all.iter().all(|one| one.as_deref() == Some(gres_type)))
    }

    /// The throughputs of a job by worker type: its own, or those of its job type.
    fn speeds(&self, form: &JobForm, n_nodes: u32) -> Result<BTreeMap<String, f64>, String> {
        if let Some(own) = &form.throughput {
            let strange = own.keys().find(|name| self.throughputs.find_worker_type(name).is_none());
            return match strange {
                Some(name) => {
                    Err(format!("its comment has a speed on `{name}`, which is no type of worker here"))
                }
                None => Ok(own.clone()),
            };
        }
        let Some(row) = self.throughputs.find(&form.job_type, form.scale_factor) else {
            let known = self.throughputs.rows().iter().map(|row| row.job_type.as_str());
            let nearest = suggestion(&form.job_type, known).map_or(String::new(), |text| format!(". {text}"));
            let on = match form.scale_factor {
                1 => "1 worker".to_owned(),
                n => format!("{n} workers"),
            };
            return Err(format!(
                "the throughputs `{}` have no job type `{}` on {on}: state its speeds by `throughput=TYPE=X,…`{nearest}",
                self.throughputs.name(),
                form.job_type,
            ));
        };
        let of_type = |(column, name): (_, &String)| {
            let alone = self.throughputs.alone(row, column);
            let spread = self.throughputs.spread(row, column).filter(|_| n_nodes > 1);
            (name.clone(), spread.unwrap_or(alone))
        };
        Ok(self.throughputs.worker_types().enumerate().map(of_type).collect())
    }

    fn ask(&self, request: Request) -> Option<Result<Answer, Refusal>> {
        self.client.ask_within(request, PATIENCE).ok()
    }
}

/// Worker types that a job may have in rounds. A type fits if its nodes can hold the job in one of two ways: on a part of one node,
/// or on all workers of one or several nodes that it shares with no other job.
fn types_for<'a>(workers: &'a Workers, newcomer: &Newcomer<'_>) -> BTreeSet<&'a str> {
    let Newcomer { job, n_nodes, per_node, .. } = *newcomer;
    let n_workers = n_nodes.saturating_mul(per_node);
    let is_part = n_nodes == 1 && !job.has_whole_nodes();
    let fits = |count: u32, size: u32| {
        n_workers <= count && if is_part { per_node <= size } else { per_node == size }
    };
    let of = workers.iter().filter(|(_, (count, size))| fits(*count, *size));
    of.map(|(name, _)| name.as_str()).collect()
}

/// Why no type has nodes that fit a job, and a remedy for its user.
fn why_unfit(workers: &Workers, newcomer: &Newcomer<'_>) -> String {
    let Newcomer { job, n_nodes, per_node, .. } = *newcomer;
    let most = workers.values().map(|(_, size)| *size).max().unwrap_or(0);
    if per_node > most {
        return format!(
            "it asks for {} on a node: no node of this partition has more than {most}",
            in_words(per_node)
        );
    }
    if n_nodes == 1 && job.has_whole_nodes() {
        return format!(
            "it asks for a whole node (`--exclusive`), and for {} of it: ask for all that a node has, which are {}, or leave \
             `--exclusive` out",
            in_words(per_node),
            sizes(workers)
        );
    }
    let are = if n_nodes == 1 { "1 node".to_owned() } else { format!("each of {n_nodes} nodes") };
    format!(
        "it asks for {} on {are}: a job of several nodes has all GPUs of each, which are {}, and no type of this partition \
         has enough such nodes",
        in_words(per_node),
        sizes(workers)
    )
}

/// The number of GPUs on the nodes of each type, in words.
fn sizes(workers: &Workers) -> String {
    let words = workers.iter().map(|(name, (_, size))| format!("{size} ({name})"));
    words.collect::<Vec<_>>().join(", ")
}

fn in_words(n: u32) -> String {
    if n == 1 { "1 GPU".to_owned() } else { format!("{n} GPUs") }
}

/// The name of a Slurm job in this scheduler: its own name, cut if it is too long, and its number.
fn name(of_slurm: &str, address: &str) -> String {
    let number = format!(" (Slurm {address})");
    let most = NAME_MAX - number.len();
    if of_slurm.len() <= most {
        return format!("{of_slurm}{number}");
    }
    let cut = of_slurm.floor_char_boundary(most - ELLIPSIS.len());
    format!("{}{ELLIPSIS}{number}", &of_slurm[..cut])
}

impl Intake for ByRequests {
    fn take_in(&mut self, newcomer: &Newcomer<'_>) -> Result<JobNumber, NotTaken> {
        let job = self.form(newcomer).map_err(NotTaken::Refused)?;
        let slurm = newcomer.job;
        let form = Form {
            name: Some(name(&slurm.name, &slurm.address())),
            user: Some(slurm.user.clone()).filter(|user| !user.is_empty()),
            key: Some(newcomer.key()),
            job,
            program: newcomer.program(),
        };
        match self.ask(Request::TakeIn(Box::new(form.into()))) {
            Some(Ok(Answer::Submitted { job, .. })) => Ok(job),
            Some(Err(refusal)) => Err(NotTaken::Refused(refusal.to_string())),
            Some(Ok(_)) | None => Err(NotTaken::Later),
        }
    }

    fn withdraw(&mut self, job: JobNumber, why: &str) -> bool {
        // A job that is over already is as wished.
        self.ask(Request::Withdraw(job, why.to_owned())).is_some()
    }

    fn remark(&mut self, job: Option<JobNumber>, text: &str) {
        // A remark that is not taken is repeated when its cause is found again.
        let _ = self.ask(Request::Remark(job, text.to_owned()));
    }

    fn over(&mut self) -> Option<BTreeMap<JobNumber, bool>> {
        match self.ask(Request::Jobs)? {
            Ok(Answer::Jobs(jobs)) => {
                let over = jobs.into_iter().filter(|job| job.ended_s.is_some());
                Some(over.map(|job| (job.job, job.state == State::Cancelled)).collect())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_live::slurm::HeldJob;

    #[test]
    fn a_name_that_is_too_long_with_its_number_is_cut() {
        assert_eq!(name("train.sh", "77"), "train.sh (Slurm 77)");
        for letter in ["n", "ä"] {
            let cut = name(&letter.repeat(250), "77");
            assert!(cut.len() <= NAME_MAX && cut.len() > NAME_MAX - 4, "{cut}");
            assert!(cut.starts_with(&letter.repeat(100)) && cut.ends_with("… (Slurm 77)"), "{cut}");
        }
    }

    #[test]
    fn a_job_that_no_nodes_fit_is_told_what_there_is() {
        let workers = Workers::from([("k80".to_owned(), (4, 4)), ("v100".to_owned(), (4, 2))]);
        let (plain, mut exclusive) = (HeldJob::default(), HeldJob::default());
        exclusive.shared = "none".to_owned();
        let fits = |job, n_nodes, per_node| {
            let newcomer = Newcomer { job, n_nodes, per_node, gres_type: None };
            types_for(&workers, &newcomer).into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!([fits(&plain, 1, 1), fits(&plain, 1, 3), fits(&plain, 2, 2)], ["k80 v100", "k80", "v100"]);
        assert_eq!(
            [fits(&exclusive, 1, 2), fits(&exclusive, 1, 4), fits(&exclusive, 1, 1)],
            ["v100", "k80", ""]
        );
        for (job, n_nodes, per_node, says) in [
            (&plain, 1, 5, "it asks for 5 GPUs on a node: no node of this partition has more than 4"),
            (
                &plain,
                2,
                1,
                "it asks for 1 GPU on each of 2 nodes: a job of several nodes has all GPUs of each, which are 4 (k80), 2 (v100)",
            ),
            (
                &exclusive,
                1,
                1,
                "it asks for a whole node (`--exclusive`), and for 1 GPU of it: ask for all that a node has",
            ),
        ] {
            let said = why_unfit(&workers, &Newcomer { job, n_nodes, per_node, gres_type: None });
            assert!(said.starts_with(says), "{said}");
        }
    }
}
