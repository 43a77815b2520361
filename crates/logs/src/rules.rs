//! The rules by which rows of a normalized log become jobs: a document.

use std::collections::BTreeMap;

use apportion::spec::{Source, SpecError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::row::{Row, Seen, State};

/// Name of the document's format.
pub const FORMAT: &str = "apportion/log-rules-v1";

/// Text of the rules that are used where none are given.
pub const DEFAULT: &str = include_str!("../rules/default.yaml");

/// Rules by which rows of a log become jobs.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Name of the format: `apportion/log-rules-v1`.
    pub format: String,
    /// Assumptions of the rules, in words.
    #[serde(default)]
    pub description: String,
    /// Time of a row that is its job's arrival. Where a row lacks it, the next later one stands for it and is counted.
    #[serde(default)]
    pub arrival: Arrival,
    /// Fate of jobs by the state in which they ended. States not named are kept.
    #[serde(default)]
    pub states: BTreeMap<State, Fate>,
    /// Treatment of jobs that asked for parts of accelerators.
    #[serde(default)]
    pub fractions: Fractions,
    /// Treatment of jobs that need more workers than the largest scale factor of the matrix.
    #[serde(default)]
    pub too_large: TooLarge,
    /// Column of a row that names the owner of its job.
    #[serde(default)]
    pub entity: EntityOf,
    /// Rows that share a draw of the job type: none, rows of one user, or rows of one user and name. The latter two draw
    /// once for each size.
    #[serde(default)]
    pub draw_by: DrawBy,
    /// Worker type on which a row's running time was measured, by the log's name of its accelerator: the first entry that
    /// matches decides. Rows that match none ran on the matrix's first worker type. At most 1,000 entries have a `*`.
    #[serde(default)]
    pub durations: Vec<DurationOf>,
    /// Job types that stand for rows: the first entry that matches decides. An entry that names a text without `*` is looked
    /// up by it: at most 1,000 entries have no such text, or the same one.
    #[serde(default = "any_job_type")]
    pub job_types: Vec<JobTypes>,
}

/// Time of a row that is its job's arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// The submission.
    #[default]
    Submitted,
    /// The time from which it could run.
    Eligible,
    /// The start, so that arrivals include the waiting on the original cluster.
    Started,
}

/// Fate of rows in a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// The rows become jobs with the running times that they have.
    #[default]
    Keep,
    /// The rows are left out, and counted.
    LeaveOut,
}

/// Number of workers of a job that asked for parts of accelerators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fractions {
    /// The sum of its parts, rounded up: two halves need one worker.
    #[default]
    RoundUp,
    /// One worker for each part: two halves need two.
    EachWhole,
    /// The job is left out, and counted.
    LeaveOut,
}

/// Treatment of a job that needs more workers than the largest scale factor of the matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TooLarge {
    /// The job is given the largest scale factor, and counted.
    #[default]
    Largest,
    /// The job is left out, and counted.
    LeaveOut,
}

/// Column of a row that names the owner of its job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntityOf {
    /// The group.
    #[default]
    Group,
    /// The user.
    User,
    /// No owner.
    None,
}

/// Rows that share a draw of the job type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DrawBy {
    /// Each row has its own draw.
    #[default]
    Job,
    /// Rows with the same user and size.
    User,
    /// Rows with the same user, name and size.
    Name,
}

/// Worker type on which running times of a type of accelerator were measured.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DurationOf {
    /// Pattern of the log's names of accelerators; `*` stands for any text.
    pub gpu_type: String,
    /// Worker type of the matrix.
    pub worker_type: String,
}

/// Job types that stand for a choice of rows.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobTypes {
    /// Choice of rows; all by default.
    #[serde(default)]
    pub when: When,
    /// Patterns of the matrix's job types; one of the job types that match is drawn, each with the same probability.
    #[serde(default)]
    pub draw: Vec<String>,
    /// Whether to take the job type that the row's class names, as in the log of `apportion history`.
    #[serde(default)]
    pub named_by_class: bool,
    /// Whether to leave these rows out.
    #[serde(default)]
    pub leave_out: bool,
    /// Weight of these rows' jobs, above 0; 1 by default.
    #[serde(default)]
    pub weight: Option<f64>,
}

/// A choice of rows: all conditions must hold. Texts are patterns, in which `*` stands for any text.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Least number of accelerators.
    pub gpus_from: Option<u32>,
    /// Greatest number of accelerators.
    pub gpus_to: Option<u32>,
    /// Accelerator type.
    pub gpu_type: Option<String>,
    /// Class of the row.
    pub class: Option<String>,
    /// Name that the owner gives the job.
    pub name: Option<String>,
    /// Owner of the job.
    pub user: Option<String>,
    /// Group of the owner.
    pub group: Option<String>,
    /// State in which the job ended.
    pub state: Option<State>,
}

fn any_job_type() -> Vec<JobTypes> {
    vec![JobTypes { draw: vec!["*".to_owned()], ..JobTypes::default() }]
}

impl Rules {
    /// The rules that are used where none are given.
    ///
    /// # Errors
    /// Never: a test reads them.
    pub fn embedded() -> Result<(Self, Source), SpecError> {
        let source = Source::new("<embedded default rules>", DEFAULT);
        Ok((Self::parse(&source)?, source))
    }

    /// Reads a document.
    ///
    /// # Errors
    /// If it is not understood or contradicts itself, with the position.
    pub fn parse(source: &Source) -> Result<Self, SpecError> {
        let rules: Self = source.parse_format(FORMAT)?;
        for (at, entry) in rules.job_types.iter().enumerate() {
            let path = format!("job_types[{at}]");
            let n_said = [!entry.draw.is_empty(), entry.named_by_class, entry.leave_out];
            if n_said.into_iter().filter(|said| *said).count() != 1 {
                let message = "expected one of `draw` with patterns of job types, `named_by_class: true` and `leave_out: true`";
                return Err(source.error_at(&path, message, None));
            }
            if entry.weight.is_some_and(|weight| !(1e-9..=1e9).contains(&weight)) {
                let message = "a weight out of range, expected a number from 1e-9 to 1e9";
                return Err(source.error_at(&format!("{path}.weight"), message, None));
            }
            let When { gpus_from, gpus_to, .. } = entry.when;
            if gpus_from.zip(gpus_to).is_some_and(|(from, to)| from > to) {
                let message = "no row has so few and so many accelerators";
                let help = "`gpus_from` is at most `gpus_to`".to_owned();
                return Err(source.error_at(&format!("{path}.when"), message, Some(help)));
            }
        }
        Ok(rules)
    }
}

impl When {
    /// Patterns of a row's texts, in the order of [`texts`].
    pub(crate) fn patterns(&self) -> [Option<&str>; 5] {
        [&self.name, &self.user, &self.class, &self.group, &self.gpu_type].map(Option::as_deref)
    }

    /// Whether the conditions on numbers and state hold for a row. Its texts are compared by their patterns.
    pub(crate) fn holds<T>(&self, row: &Row<T>) -> bool {
        self.gpus_from.is_none_or(|from| row.n_workers.is_some_and(|n| n >= from))
            && self.gpus_to.is_none_or(|to| row.n_workers.is_some_and(|n| n <= to))
            && self.state.is_none_or(|state| state == row.state)
    }
}

/// Texts of a row that rules have patterns for.
pub(crate) fn texts<'a>(row: &Seen<'a>) -> [Option<&'a str>; 5] {
    [row.name, row.user, row.class, row.group, row.worker_type]
}
