//! The rules by which rows of a normalized log become jobs: a document.

use std::collections::BTreeMap;

use apportion::spec::{Source, SpecError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::row::{Row, Seen, State};

/// The format of the document.
pub const FORMAT: &str = "apportion/log-rules-v1";

/// The rules that are used where none are given.
pub const DEFAULT: &str = include_str!("../rules/default.yaml");

/// How rows of a log become jobs.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Names the format: `apportion/log-rules-v1`.
    pub format: String,
    /// What the rules assume, in words.
    #[serde(default)]
    pub description: String,
    /// Which time of a row is its arrival. Where a row lacks it, the next later one stands for it and is counted.
    #[serde(default)]
    pub arrival: Arrival,
    /// What becomes of jobs by how they ended. Those not named are kept.
    #[serde(default)]
    pub states: BTreeMap<State, Fate>,
    /// What becomes of jobs that asked for parts of accelerators.
    #[serde(default)]
    pub fractions: Fractions,
    /// What becomes of jobs that need more workers than the largest scale factor of the matrix.
    #[serde(default)]
    pub too_large: TooLarge,
    /// What of a row is the owner of its job.
    #[serde(default)]
    pub entity: EntityOf,
    /// Rows that are given the same job type: each row its own draw, all rows of one user, or all rows of one name. The
    /// latter two draw once for each size.
    #[serde(default)]
    pub draw_by: DrawBy,
    /// The worker type that a row's running time is of, by the log's name of its accelerator: the first entry that
    /// matches. Rows that none matches ran on the matrix's first worker type. At most 1,000 entries have a `*`.
    #[serde(default)]
    pub durations: Vec<DurationOf>,
    /// Which job types stand for which rows: the first entry that matches decides. Those that name a text without `*` are
    /// looked up by it: at most 1,000 have none such, or the same.
    #[serde(default = "any_job_type")]
    pub job_types: Vec<JobTypes>,
}

/// Which time of a row is its arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// Its submission.
    #[default]
    Submitted,
    /// When it could have run first.
    Eligible,
    /// When it started: arrivals hold the waiting on the original cluster.
    Started,
}

/// What becomes of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// They become jobs, as long as they ran.
    #[default]
    Keep,
    /// They are left out, and counted.
    LeaveOut,
}

/// How many workers a job of parts of accelerators needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fractions {
    /// The sum of its parts, rounded up: two halves need one.
    #[default]
    RoundUp,
    /// One for each part: two halves need two.
    EachWhole,
    /// It is left out, and counted.
    LeaveOut,
}

/// What becomes of a job that needs more workers than the matrix has throughputs for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TooLarge {
    /// It is given the largest scale factor there is, and counted.
    #[default]
    Largest,
    /// It is left out, and counted.
    LeaveOut,
}

/// What of a row is the owner of its job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EntityOf {
    /// Its group.
    #[default]
    Group,
    /// Its user.
    User,
    /// Nothing.
    None,
}

/// Rows that share a draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DrawBy {
    /// None do.
    #[default]
    Job,
    /// Those of one user and size.
    User,
    /// Those of one user, name and size.
    Name,
}

/// The worker type that running times of a kind of accelerator are of.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DurationOf {
    /// A pattern of the log's names of accelerators; `*` stands for any text.
    pub gpu_type: String,
    /// The matrix's worker type.
    pub worker_type: String,
}

/// Which job types stand for rows.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobTypes {
    /// The rows; all by default.
    #[serde(default)]
    pub when: When,
    /// Patterns of the matrix's job types; one of those that match is drawn, each as likely.
    #[serde(default)]
    pub draw: Vec<String>,
    /// Take the job type that the row's class names: so it is in the log of `apportion history`.
    #[serde(default)]
    pub named_by_class: bool,
    /// Leave these rows out.
    #[serde(default)]
    pub leave_out: bool,
    /// The weight of their jobs, above 0; 1 by default.
    #[serde(default)]
    pub weight: Option<f64>,
}

/// A choice of rows: all that is named must hold. Texts are patterns, in which `*` stands for any text.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// At least so many accelerators.
    pub gpus_from: Option<u32>,
    /// At most so many accelerators.
    pub gpus_to: Option<u32>,
    /// The accelerator's type.
    pub gpu_type: Option<String>,
    /// The class.
    pub class: Option<String>,
    /// What its owner calls the job.
    pub name: Option<String>,
    /// The owner.
    pub user: Option<String>,
    /// The group.
    pub group: Option<String>,
    /// How the job ended.
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
    /// With the place, if something of it is not understood or makes no sense.
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
    /// The patterns of a row's texts, in the order of [`texts`].
    pub(crate) fn patterns(&self) -> [Option<&str>; 5] {
        [&self.name, &self.user, &self.class, &self.group, &self.gpu_type].map(Option::as_deref)
    }

    /// Do the conditions on numbers and the state hold for a row? Its texts are compared by their patterns.
    pub(crate) fn holds<T>(&self, row: &Row<T>) -> bool {
        self.gpus_from.is_none_or(|from| row.n_workers.is_some_and(|n| n >= from))
            && self.gpus_to.is_none_or(|to| row.n_workers.is_some_and(|n| n <= to))
            && self.state.is_none_or(|state| state == row.state)
    }
}

/// The texts of a row that rules have patterns of.
pub(crate) fn texts<'a>(row: &Seen<'a>) -> [Option<&'a str>; 5] {
    [row.name, row.user, row.class, row.group, row.worker_type]
}
