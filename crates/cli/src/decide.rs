//! The common part of `allocate` and `explain`: a snapshot and a policy from the command line.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use crate::exit::Failure;
use crate::paths::name_or_path;
use apportion::catalog::PolicyOptions;
use apportion::index::{Id, JobIndex, WorkerTypeId};
use apportion::policy::naming::{check_owners, check_worker_types};
use apportion::policy::{Decision, Policy, PolicyError, ProgramPolicy, Refine, Strategy};
use apportion::problem::Problem;
use apportion::spec::Fidelity;
use apportion::spec::nearest::{name_list, suggestion};
use apportion::spec::snapshot::Label;
use apportion::spec::{PolicyDocument, PolicyKind, Snapshot, Source, SpecError, load_throughputs};
use apportion::workload::Combination;
use apportion_published::plugin;
use apportion_studies::report::plain::plain;

/// The input of one decision.
#[derive(Args, Clone, Debug)]
pub struct DecisionArguments {
    /// The policy: a name (`apportion policies list`), or the path of a policy file
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    pub policy: String,
    /// The snapshot, YAML or JSON; `-` reads standard input
    #[arg(value_name = "SNAPSHOT", value_parser = name_or_path())]
    pub snapshot: String,
    /// The throughputs in which jobs without their own are looked up by job type
    #[arg(long, value_name = "NAME|FILE", default_value = "osdi20", value_parser = name_or_path())]
    pub throughputs: String,
    /// The solver to try first, in place of the one that suits the program
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// The strategy by which the optimum is found, in place of the one that suits the problem
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Strategy::ALL.map(Strategy::name)))]
    pub strategy: Option<String>,
    /// Wall time in s after which no further program is begun: the answer is the best found until then, with exit code 4
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub time_limit: Option<Duration>,
    /// The optimum to take among several, in place of the policy's own choice
    #[arg(long, value_name = "NAME")]
    pub refine: Option<Refinement>,
    /// The policy as described, or as published, quirks included (then an interior optimum unless `--refine` says another)
    #[arg(long, value_enum, default_value = "corrected")]
    pub semantics: SemanticsFlag,
}

/// Whether the published system's quirks are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SemanticsFlag {
    /// Without them
    Corrected,
    /// With those of the published system
    Gavel,
}

impl From<SemanticsFlag> for Fidelity {
    fn from(flag: SemanticsFlag) -> Self {
        match flag {
            SemanticsFlag::Corrected => Self::Corrected,
            SemanticsFlag::Gavel => Self::Published,
        }
    }
}

/// The optimum to take among several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Refinement {
    /// Hold the optimum and let no worker idle that a job could use
    Utilization,
    /// The lexicographic optimum
    WaterFilling,
    /// Near the centre of all optima
    Interior,
    /// Any optimum, as the solver finds it
    None,
}

impl Refinement {
    /// Its name in documents.
    pub fn name(self) -> String {
        Refine::from(self).name().to_owned()
    }
}

impl From<Refinement> for Refine {
    fn from(named: Refinement) -> Self {
        match named {
            Refinement::Utilization => Self::Utilization,
            Refinement::WaterFilling => Self::WaterFilling,
            Refinement::Interior => Self::Interior,
            Refinement::None => Self::None,
        }
    }
}

/// A decision to be made.
#[derive(Debug)]
pub struct Question {
    /// The snapshot, with the text that error messages point into.
    pub snapshot: Snapshot,
    /// The problem that the snapshot states.
    pub problem: Problem,
    /// The policy that decides.
    pub policy: Box<dyn Policy>,
    /// A second copy of the policy, if it is a program: for its options, and for the objective at measured throughputs.
    program: Option<ProgramPolicy>,
    /// The document of the policy.
    document: PolicyDocument,
    /// Remarks on the problem for standard error: jobs that are over, gangs without time on types that are too small.
    pub remark: Option<String>,
}

impl Question {
    /// Reads the documents that the arguments name.
    ///
    /// # Errors
    /// If a document is at fault, or there is no such policy.
    pub fn read(arguments: &DecisionArguments) -> Result<Self, Failure> {
        let fidelity = Fidelity::from(arguments.semantics);
        let published = fidelity == Fidelity::Published;
        let options = PolicyOptions {
            backend: arguments.backend.clone(),
            strategy: arguments.strategy.as_deref().and_then(Strategy::named),
            refine: arguments.refine.map(Refine::from).or_else(|| published.then_some(Refine::Interior)),
            fidelity,
            time_limit: arguments.time_limit,
            ..PolicyOptions::default()
        };
        let catalog = plugin::catalog();
        let document = catalog.document(&arguments.policy)?;
        let given = [
            ("--backend", options.backend.is_some()),
            ("--refine", arguments.refine.is_some()),
            ("--strategy", arguments.strategy.is_some()),
            ("--time-limit", arguments.time_limit.is_some()),
        ];
        for (flag, _) in given.into_iter().filter(|(_, given)| *given) {
            if !matches!(document.kind, PolicyKind::Program(_)) {
                let message = format!("policy `{}` is not a program: it has no `{flag}`", document.name);
                return Err(Failure::usage(message, Some(format!("leave `{flag}` out"))));
            }
        }
        let program = catalog.program(&arguments.policy, &options)?;
        let policy: Box<dyn Policy> = match catalog.program(&arguments.policy, &options)? {
            Some(program) => Box::new(program.exchanging().best_so_far()),
            None => catalog.build(&arguments.policy, &options)?,
        };
        let throughputs = load_throughputs(&arguments.throughputs)?;
        let snapshot = Snapshot::read(&Source::load(&arguments.snapshot)?)?;
        let problem = Problem::from_snapshot(&snapshot, &throughputs)?;
        check_worker_types(&document, problem.cluster())?;
        check_owners(
            &document,
            || problem.entities().iter().map(|entity| entity.name.as_str()),
            "the snapshot",
        )?;
        let asked = !published && matches!(document.kind, PolicyKind::Program(_));
        let remarks = [over(snapshot.finished()), asked.then(|| too_small(&problem)).flatten()];
        let remarks: Vec<String> = remarks.into_iter().flatten().collect();
        let remark = (!remarks.is_empty()).then(|| remarks.join("\n"));
        Ok(Self { snapshot, problem, policy, program, document, remark })
    }

    /// The failure of a policy's error, at the place in the snapshot that it is about, if it is about one.
    pub fn place(&self, error: PolicyError) -> Failure {
        match &error {
            PolicyError::Missing { field, job, .. } => {
                let path = format!("{}.{field}", self.snapshot.path_of(*job));
                let message = format!("{error}").replace(
                    &format!("of job {job},"),
                    &format!("of job `{}`,", self.snapshot.document().jobs[*job].id),
                );
                self.snapshot.source().error_at(&path, message, Some(remedy_of(field))).into()
            }
            PolicyError::Conflict { .. } => {
                let job = |at: usize| format!("job `{}`", self.snapshot.document().jobs[at].id);
                let kind = |kind: WorkerTypeId| {
                    format!("worker type `{}`", self.problem.cluster().types()[kind].name)
                };
                Failure::Policy(error.named(job, kind))
            }
            PolicyError::Data { field, .. } => {
                self.document.error_naming(field, error.to_string(), None).into()
            }
            PolicyError::Overflow { .. } => {
                SpecError::about(self.document.source.name.as_str(), error.to_string(), None).into()
            }
            _ => Failure::Policy(error),
        }
    }

    /// Whether the shares of a decision are less than those of the objective, by the policy's discount.
    pub fn is_discounted(&self, decision: &Decision) -> bool {
        let is_left_out = decision.solve.as_ref().is_some_and(|solve| solve.undiscounted);
        !is_left_out && self.program.as_ref().is_some_and(|program| program.options().discounted)
    }

    /// The objective at measured throughputs; none unless the policy sees other ones.
    ///
    /// # Errors
    /// If the problem lacks data that the objective reads.
    pub fn measured_value(&self, decision: &Decision) -> Result<Option<f64>, Failure> {
        let value = |program: &ProgramPolicy| program.measured_value_of(&self.problem, &decision.allocation);
        let value = self.program.as_ref().filter(|_| decision.objective.is_some()).map(value);
        value.transpose().map(Option::flatten).map_err(|error| self.place(error))
    }

    /// The id of a job, as in the snapshot.
    pub fn label(&self, job: JobIndex) -> &Label {
        &self.snapshot.document().jobs[job.index()].id
    }

    /// The ids of the jobs that share workers.
    pub fn labels(&self, combination: Combination<JobIndex>) -> Vec<&Label> {
        combination.members().map(|job| self.label(job)).collect()
    }

    /// The ids of the jobs that share workers, as text: `17+23`.
    pub fn name(&self, combination: Combination<JobIndex>) -> String {
        let labels: Vec<String> = self.labels(combination).into_iter().map(Label::to_string).collect();
        labels.join("+")
    }

    /// The names of the cluster's worker types.
    pub fn worker_types(&self) -> impl Iterator<Item = &str> {
        self.problem.cluster().types().iter().map(|worker_type| worker_type.name.as_str())
    }

    /// The positions of the jobs with these ids; of all jobs, if none is named.
    ///
    /// # Errors
    /// If the snapshot has no job of some id.
    pub fn positions(&self, ids: &[String]) -> Result<Vec<JobIndex>, Failure> {
        if ids.is_empty() {
            return Ok(self.problem.jobs().ids().collect());
        }
        let position = |id: &String| {
            let label = Label::Text(id.clone());
            self.snapshot.position(&label).map(JobIndex::from_index).ok_or_else(|| {
                if self.snapshot.finished().iter().any(|over| over.to_string() == *id) {
                    let message = format!("job `{}` has no steps left: nothing is decided for it", plain(id));
                    return Failure::usage(message, Some("name another job".to_owned()));
                }
                let jobs = &self.snapshot.document().jobs;
                let known: Vec<String> =
                    jobs.iter().map(|job| plain(&job.id.to_string()).into_owned()).collect();
                let known = || known.iter().map(String::as_str);
                let (id, expected) = (plain(id), name_list(known()));
                let message = format!("the snapshot has no job `{id}`, expected one of {expected}");
                Failure::usage(message, suggestion(&id, known()))
            })
        };
        ids.iter().map(position).collect()
    }
}

/// The remedy where a policy cannot do with this field of a job.
fn remedy_of(field: &str) -> String {
    match field {
        "scale_factor" => "leave the job out, or decide by another policy".to_owned(),
        _ => format!("state `{field}` for the job, or leave the job out"),
    }
}

/// A positive number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds is expected".to_owned())?;
    let duration = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    duration.ok_or_else(|| "a number of seconds above 0 is expected".to_owned())
}

/// A remark that jobs are left out, as no steps of them remain; none if there are no such jobs.
fn over(finished: &[Label]) -> Option<String> {
    match finished {
        [] => None,
        [one] => Some(format!("job `{}` has no steps left and gets nothing", plain(&one.to_string()))),
        several => Some(format!("{} jobs have no steps left and get nothing", several.len())),
    }
}

/// A remark that gangs have no time on worker types with fewer workers than they need; none if there are no such gangs.
fn too_small(problem: &Problem) -> Option<String> {
    let too_small = |job: JobIndex, worker_type: WorkerTypeId| {
        let n_workers = problem.cluster().types()[worker_type].n_workers;
        // A type without workers gives no job time, in the published system neither.
        n_workers > 0
            && problem.jobs()[job].scale_factor > n_workers
            && problem.throughput()[(job, worker_type)] > 0.0
    };
    let types = problem.cluster().types();
    let of = |id: WorkerTypeId| problem.jobs().ids().filter(|job| too_small(*job, id)).count();
    let pieces: Vec<String> = types
        .ids()
        .filter(|id| of(*id) > 0)
        .map(|id| format!("on `{}` for {}", types[id].name, of(id)))
        .collect();
    (!pieces.is_empty()).then(|| {
        format!(
            "no time {} of {} jobs, which need more workers than there are; `--semantics gavel` gives them some there, \
             as published",
            pieces.join(", "),
            problem.n_jobs()
        )
    })
}
