//! Documents about exported programs: the purpose of each, and how a policy's objective follows from its optimum.
//!
//! Programs are scaled, some maximize the inverse of a minimized objective, and alike jobs form one class. So the optimum of
//! a file is hardly ever the number that `apportion bench` prints. `programs.json`, beside the files, says how one is
//! converted to the other:
//!
//! ```json
//! {
//!   "format": "apportion/programs-v1", "version": "0.1.0", "instance": "osdi20", "n_jobs": 24, "seed": 0,
//!   "policies": [
//!     {"policy": "min_total_duration_perf", "message": null,
//!      "sense": "minimize", "objective": 8012.5, "bound": 8012.5,
//!      "programs": [
//!        {"files": ["min_total_duration_perf-00.lp", "min_total_duration_perf-00.mps", "min_total_duration_perf-00.cbf"],
//!         "message": null,
//!         "stage": "optimum", "meaning": "…", "sense": "maximize", "optimum": 0.93,
//!         "value": {"kind": "inverse", "formula": "objective = 1 / (scale · optimum)", "scale": 1.3e-4, "level": null},
//!         "grouping": 0}],
//!      "groupings": [[{"class": "job_class_0", "n_jobs": 2, "first_job": 7, "jobs": [7, 19]}]]}
//!   ]
//! }
//! ```
//!
//! Each field is explained at its definition.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use apportion::index::{Id, JobIndex};
use apportion::policy::{PolicyError, ProgramPolicy, Purpose, SolvedProgram};
use apportion::problem::Problem;
use apportion::program::{Classes, Program, ValueMap};
use apportion::spec::snapshot::Label;

/// Name of the document's format.
pub const PROGRAMS_FORMAT: &str = "apportion/programs-v1";
/// The most jobs of an instance whose classes list their jobs.
const LISTED_MAX: usize = 4_096;

/// All programs of one instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Programs {
    /// Name of the format: `apportion/programs-v1`.
    pub format: String,
    /// Version of apportion.
    pub version: String,
    /// Instance, by its kind or path.
    pub instance: String,
    /// Number of jobs of the instance.
    pub n_jobs: usize,
    /// Seed by which the instance was drawn.
    pub seed: u64,
    /// Programs by policy.
    pub policies: Vec<PolicyPrograms>,
}

/// The programs of one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyPrograms {
    /// Name or path of the policy.
    pub policy: String,
    /// Reason why there are no programs.
    pub message: Option<String>,
    /// Sense of the policy's objective: `maximize` or `minimize`.
    pub sense: Option<String>,
    /// Objective of the policy's decision.
    pub objective: Option<f64>,
    /// Bound on the objective that no allocation betters.
    pub bound: Option<f64>,
    /// Programs in the order in which they are solved.
    pub programs: Vec<ProgramFile>,
    /// Classes of jobs after which columns and rows are named, by grouping; most often there is one grouping.
    pub groupings: Vec<Vec<JobClass>>,
}

/// One program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramFile {
    /// Names of its files: LP and MPS for linear programs, CBF for all.
    pub files: Vec<String>,
    /// Reason why there are no files.
    pub message: Option<String>,
    /// Purpose: `optimum`, `level`, `next_level`, `tried_level`, `promises`, `choice` or `without_a_class`.
    pub stage: String,
    /// Purpose in words.
    pub meaning: String,
    /// Sense of the program's objective: `maximize` or `minimize`.
    pub sense: String,
    /// Optimum of the file as certified here, including the constant of its objective; null if none was certified.
    pub optimum: Option<f64>,
    /// Conversion of the optimum to the policy's objective; null where there is none.
    pub value: Option<Value>,
    /// Position in `groupings`, from 0, of the classes after which the file's columns and rows are named:
    /// `time_job_class_3_v100` is the time of all jobs of class 3 together on `v100`, `time_job_class_3_7_v100` that of
    /// pairs of classes 3 and 7.
    pub grouping: usize,
}

/// Conversion of the optimum of a file to a policy's objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// Kind: `scaled`, `inverse`, `constant` (the objective is `level`, whatever the optimum) or `level` (the objective is
    /// `level` where scale · optimum is 1; below 1 the level is not feasible, above 1 a better one is).
    pub kind: String,
    /// Conversion as a formula.
    pub formula: String,
    /// Scale in the formula.
    pub scale: Option<f64>,
    /// Level in the formula.
    pub level: Option<f64>,
}

/// A class of jobs that programs do not tell apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobClass {
    /// Name of the class in the names of columns and rows.
    pub class: String,
    /// Number of its jobs.
    pub n_jobs: usize,
    /// Id of its first job.
    pub first_job: Option<Label>,
    /// Ids of its jobs, as in `snapshot.json`; absent where the instance has more than 4,096 jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<Label>>,
}

impl PolicyPrograms {
    /// A policy without programs, and the reason.
    pub fn none(policy: &str, why: String) -> Self {
        Self {
            policy: policy.to_owned(),
            message: Some(why),
            sense: None,
            objective: None,
            bound: None,
            programs: Vec::new(),
            groupings: Vec::new(),
        }
    }

    /// Number of jobs in the classes; none if there are no classes.
    pub fn n_jobs(&self) -> Option<usize> {
        self.groupings.first().map(|classes| classes.iter().map(|class| class.n_jobs).sum())
    }

    /// The programs that a policy solves on a problem, in the same order twice: described, with files yet to be named, and
    /// the programs themselves.
    ///
    /// # Errors
    /// If there is no decision.
    pub fn of(
        name: &str,
        policy: &mut ProgramPolicy,
        problem: &Problem,
    ) -> Result<(Self, Vec<Program>), PolicyError> {
        let (decision, solved) = policy.solved_programs(problem)?;
        let mut groupings: Vec<Arc<Classes>> = Vec::new();
        let (mut programs, mut texts) = (Vec::with_capacity(solved.len()), Vec::with_capacity(solved.len()));
        for solved in solved {
            let known = groupings.iter().position(|classes| Arc::ptr_eq(classes, &solved.classes));
            let grouping = known.unwrap_or(groupings.len());
            if known.is_none() {
                groupings.push(Arc::clone(&solved.classes));
            }
            programs.push(file(&solved, grouping));
            texts.push(solved.program);
        }
        let objective = decision.objective;
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let of = Self {
            policy: name.to_owned(),
            message: None,
            sense: objective.as_ref().map(|objective| objective.sense.name().to_owned()),
            objective: objective.as_ref().and_then(|objective| finite(objective.value)),
            bound: objective.as_ref().and_then(|objective| finite(objective.bound)),
            programs,
            groupings: groupings.iter().map(|classes| named(classes, problem)).collect(),
        };
        Ok((of, texts))
    }
}

fn file(solved: &SolvedProgram, grouping: usize) -> ProgramFile {
    let (stage, meaning) = stage(solved.purpose);
    ProgramFile {
        files: Vec::new(),
        message: None,
        stage: stage.to_owned(),
        meaning: meaning.to_owned(),
        sense: solved.program.sense.name().to_owned(),
        optimum: solved.optimum,
        value: Value::of(solved),
        grouping,
    }
}

/// Purpose of a program: its key, and the purpose in words.
pub fn stage(purpose: Purpose) -> (&'static str, &'static str) {
    match purpose {
        Purpose::Optimum => ("optimum", "finds the policy's optimum"),
        Purpose::FirstLevel { .. } => {
            ("level", "raises the level that all reach together, which is the policy's objective")
        }
        Purpose::NextLevel => (
            "next_level",
            "raises the jobs that no earlier level has fixed, with all others held where they are: by its optimum less \
             its objective's constant more, which is no objective of the policy",
        ),
        Purpose::Tried { .. } => {
            ("tried_level", "finds the part that all can have at once of what one level asks for them")
        }
        Purpose::Droppable => (
            "promises",
            "finds the jobs whose droppable constraints can be kept, before its optimum is looked for",
        ),
        Purpose::Without => {
            ("without_a_class", "finds the optimum without some jobs, which says what they cost the others")
        }
        _ => (
            "choice",
            "chooses among the optima that the stages before found, and holds those up to one part in a billion: what \
             it optimizes is no objective of the policy",
        ),
    }
}

impl Value {
    /// The conversion of a program; none if the objective does not follow from its optimum.
    pub fn of(solved: &SolvedProgram) -> Option<Self> {
        let (kind, formula, scale, level) = match (solved.purpose, solved.value_map, solved.objective_map()) {
            (Purpose::Tried { level }, Some(ValueMap::Scaled(scale)), _) => {
                ("level", "objective = level where scale · optimum = 1", Some(scale), Some(level))
            }
            (_, _, Some(ValueMap::Scaled(scale))) => {
                ("scaled", "objective = scale · optimum", Some(scale), None)
            }
            (_, _, Some(ValueMap::Inverse(scale))) => {
                ("inverse", "objective = 1 / (scale · optimum)", Some(scale), None)
            }
            (_, _, Some(ValueMap::Level(level))) => ("constant", "objective = level", None, Some(level)),
            (_, _, None) => return None,
        };
        Some(Self { kind: kind.to_owned(), formula: formula.to_owned(), scale, level })
    }
}

fn named(classes: &Classes, problem: &Problem) -> Vec<JobClass> {
    let label = |job: &u32| Label::from(problem.jobs()[JobIndex::from_index(*job as usize)].id);
    let class = |class: usize| {
        let members = classes.members(class);
        JobClass {
            class: format!("job_class_{class}"),
            n_jobs: members.len(),
            first_job: members.first().map(label),
            jobs: (classes.n_jobs() <= LISTED_MAX).then(|| members.iter().map(label).collect()),
        }
    };
    (0..classes.len()).map(class).collect()
}
