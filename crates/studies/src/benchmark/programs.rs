//! What programs that other solvers read are for, and how a policy's objective follows from their optima.
//!
//! Programs are scaled, some raise the inverse of what a policy lowers, and many jobs are one class, so that the optimum of a
//! file is hardly ever the number that `apportion bench` prints. `programs.json`, beside the files, says how one becomes the
//! other:
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
//! What each field means stands at the field.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use apportion::index::{Id, JobIndex};
use apportion::policy::{PolicyError, ProgramPolicy, Purpose, SolvedProgram};
use apportion::problem::Problem;
use apportion::program::{Classes, Program, ValueMap};
use apportion::spec::snapshot::Label;

/// The `format:` of what is said of programs.
pub const PROGRAMS_FORMAT: &str = "apportion/programs-v1";
/// The most jobs whose classes list all of theirs.
const LISTED_MAX: usize = 4_096;

/// All programs of one instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Programs {
    /// Names the format: `apportion/programs-v1`.
    pub format: String,
    /// The program's version.
    pub version: String,
    /// The instance, by its kind or path.
    pub instance: String,
    /// Its jobs.
    pub n_jobs: usize,
    /// The seed that it was drawn by.
    pub seed: u64,
    /// The programs of each policy.
    pub policies: Vec<PolicyPrograms>,
}

/// The programs of one policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyPrograms {
    /// The policy, by its name or path.
    pub policy: String,
    /// Why there are no programs.
    pub message: Option<String>,
    /// Whether the objective is to be `maximize`d or `minimize`d.
    pub sense: Option<String>,
    /// The objective that its decision reaches.
    pub objective: Option<f64>,
    /// What no allocation betters.
    pub bound: Option<f64>,
    /// Its programs, in the order in which they are solved.
    pub programs: Vec<ProgramFile>,
    /// The classes of jobs that columns and rows are named by; most often one grouping.
    pub groupings: Vec<Vec<JobClass>>,
}

/// One program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramFile {
    /// Its files: LP and MPS of linear programs, CBF of all.
    pub files: Vec<String>,
    /// Why there are no files.
    pub message: Option<String>,
    /// What it is for: `optimum`, `level`, `next_level`, `tried_level`, `promises`, `choice` or `without_a_class`.
    pub stage: String,
    /// The same in words.
    pub meaning: String,
    /// Whether it is to be `maximize`d or `minimize`d.
    pub sense: String,
    /// The optimum of the file, the constant in its objective included, as found here; null if none was certified.
    pub optimum: Option<f64>,
    /// How the policy's objective follows from that; null where it does not.
    pub value: Option<Value>,
    /// Which of `groupings`, from 0, names the classes of the file's columns and rows: `time_job_class_3_v100` is the time of all
    /// jobs of class 3 together on `v100`, `time_job_class_3_7_v100` of pairs of classes 3 and 7.
    pub grouping: usize,
}

/// How a policy's objective follows from the optimum of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// `scaled`, `inverse`, `constant` (it is `level`, whatever the optimum) or `level` (it is `level` where scale · optimum is 1;
    /// below that the level cannot be had by all, above there is a better one).
    pub kind: String,
    /// The same as a formula.
    pub formula: String,
    /// The scale of the formula.
    pub scale: Option<f64>,
    /// The level of the formula.
    pub level: Option<f64>,
}

/// Jobs that programs do not tell apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobClass {
    /// The class, by the name that columns and rows have.
    pub class: String,
    /// Its jobs.
    pub n_jobs: usize,
    /// The id of the first of them.
    pub first_job: Option<Label>,
    /// The ids of all, as in `snapshot.json`; not there where the instance has more than 4,096 jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<Label>>,
}

impl PolicyPrograms {
    /// A policy that there are no programs of, and why.
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

    /// How many jobs there are, if classes of them are known.
    pub fn n_jobs(&self) -> Option<usize> {
        self.groupings.first().map(|classes| classes.iter().map(|class| class.n_jobs).sum())
    }

    /// What there is to say of the programs that a policy solves on a problem, their files yet to be named, and the
    /// programs, in the same order.
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

/// The name of what a program is for, and the same in words.
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
    /// That of a program; nothing if the objective does not follow from its optimum.
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
