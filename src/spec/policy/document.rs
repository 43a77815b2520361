//! The policy document as it is written, and after it is checked.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::constraint::ConstraintDocument;
use super::parameters::{Parameter, declared};
use crate::spec::document::{Source, SpecError};
use crate::spec::entries::Entries;

/// The format's name, first line of every policy.
pub const FORMAT: &str = "apportion/policy-v1";

/// A policy: an optimization program, or a built-in rule. Policies are named by `--policy`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Kind and version of the document.
    #[cfg_attr(feature = "schema", schemars(extend("const" = FORMAT)))]
    #[expect(dead_code, reason = "checked before the document is read")]
    format: String,
    /// The name of the policy; for a file that ships with the program, also the name of the file.
    #[expect(dead_code, reason = "of every kind, read before")]
    name: String,
    /// The purpose of the policy, in a line.
    #[expect(dead_code, reason = "of every kind, read before")]
    summary: String,
    /// Its source: paper and section.
    #[expect(dead_code, reason = "of every kind, read before")]
    source: Option<String>,
    /// Further notes for readers.
    #[expect(dead_code, reason = "of every kind, read before")]
    notes: Option<String>,
    /// Its differences from Gavel, and their effects.
    #[expect(dead_code, reason = "of every kind, read before")]
    differs_from_gavel: Option<String>,
    /// Whether the policy is a program or a heuristic. Other kinds belong to plug-ins, which have other fields.
    kind: Kind,
    /// The throughputs that the program sees. `measured`, the default: as they are. `unit`: 1 wherever a job runs. `reference(TYPE,
    /// …)`: on every worker type as on the first of these that the cluster has, and with `fastest` at the end, where it has none of
    /// them, as on the first, by convention the fastest.
    throughput: Option<String>,
    /// The jobs that may share workers; `none` by default.
    colocation: Option<Colocation>,
    /// The expression that is maximized. A program has this or `minimize`.
    maximize: Option<String>,
    /// The expression that is minimized.
    minimize: Option<String>,
    /// Constraints on every job, in addition to those that every allocation keeps.
    #[serde(default)]
    for_each_job: Vec<ConstraintDocument>,
    /// Constraints on every worker type.
    #[serde(default)]
    for_each_worker_type: Vec<ConstraintDocument>,
    /// Constraints on the whole cluster, each one row over all jobs: terms of jobs are added up by `sum_over_jobs`, or are the
    /// least or the most of all jobs.
    #[serde(default)]
    constraints: Vec<ConstraintDocument>,
    /// The optimum that is taken among several; `utilization` by default.
    refine: Option<Refine>,
    /// Whether each job's weight falls to it through its owners. Needs `lexicographic_min_over_jobs`.
    #[serde(default)]
    hierarchical: bool,
    /// Whether each job's time is discounted by the cost of its presence to the others: the partial allocation mechanism.
    #[serde(default)]
    discounted: bool,
    /// Numbers of each job that its snapshot has in `extra`, with unit and sign: `{deadline: "s > 0", bonus: "1"}`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, String>"))]
    columns: Entries<String>,
    /// The rule of a heuristic.
    rule: Option<Rule>,
    /// Named numbers. A heuristic's are those of its rule, each with a default. A program's are declared here with their defaults,
    /// and are used by name in its expressions.
    #[serde(default)]
    parameters: serde_json::Map<String, serde_json::Value>,
}

impl Document {
    /// The fields that belong to one kind alone: the field's name, the kind, and whether the field is given.
    fn own_fields(&self) -> [(&'static str, Kind, bool); 12] {
        use Kind::{Heuristic, Program};
        [
            ("throughput", Program, self.throughput.is_some()),
            ("colocation", Program, self.colocation.is_some()),
            ("maximize", Program, self.maximize.is_some()),
            ("minimize", Program, self.minimize.is_some()),
            ("for_each_job", Program, !self.for_each_job.is_empty()),
            ("for_each_worker_type", Program, !self.for_each_worker_type.is_empty()),
            ("constraints", Program, !self.constraints.is_empty()),
            ("refine", Program, self.refine.is_some()),
            ("hierarchical", Program, self.hierarchical),
            ("discounted", Program, self.discounted),
            ("columns", Program, !self.columns.is_empty()),
            ("rule", Heuristic, self.rule.is_some()),
        ]
    }

    /// Errors about fields that belong to another kind.
    fn strangers(&self, source: &Source) -> Vec<SpecError> {
        let reason = match self.kind {
            Kind::Program => "a program says what it optimizes",
            Kind::Heuristic => "a rule would ignore it",
        };
        let strange = self.own_fields().into_iter().filter(|(_, kind, given)| *given && *kind != self.kind);
        let complain = |(field, kind, _): (&str, Kind, bool)| {
            let kind = match kind {
                Kind::Program => "program",
                Kind::Heuristic => "heuristic",
            };
            let message = format!("`{field}` belongs to `kind: {kind}`; {reason}");
            source.error_at_key(field, message, None)
        };
        strange.map(complain).collect()
    }
}

/// The kind of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An optimization program.
    Program,
    /// A built-in rule.
    Heuristic,
}

/// The jobs that may share workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Colocation {
    /// No jobs.
    #[default]
    None,
    /// Any two of one scale factor that both run beside each other.
    Pairs,
}

/// The optimum that is taken among several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Refine {
    /// The one of largest Σ throughput / equal_share_throughput: no worker idles that a job could use.
    #[default]
    Utilization,
    /// The lexicographic optimum of the jobs' levels.
    WaterFilling,
    /// The analytic centre of all optima, where an interior-point method ends. A minimum or a maximum that is part of a sum counts
    /// as a variable there.
    Interior,
    /// Any optimum, as the solver finds it.
    None,
}

/// The rules that are built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Every job gets 1/n of the cluster.
    Isolated,
    /// Every job gets the cluster's mix of worker types.
    Proportional,
    /// First come, first served, on a random worker type.
    Fifo,
    /// First come, first served, on the fastest free worker type.
    FifoPerf,
    /// First come, first served, on the fastest free worker type, and the rest of the queue packed onto running jobs.
    FifoPacked,
    /// Equal shares, with random pairs where workers are short.
    Gandiva,
    /// Matching of jobs to workers and positions in their queues.
    #[serde(rename = "allox")]
    AlloX,
    /// Shortest remaining time first.
    Srtf,
    /// Shortest job first.
    Sjf,
    /// Least attained service, in discretized queues.
    Las,
    /// Leases to the jobs with the worst finish-time fairness.
    Themis,
}

impl Rule {
    /// Whether the rule lets jobs share workers.
    pub fn pairs(self) -> bool {
        self.pairs_and_parameters().0
    }

    /// Whether the rule has parameters.
    pub(super) fn is_parametric(self) -> bool {
        self.pairs_and_parameters().1
    }

    /// Both properties in one match, so that a new rule cannot get a default by mistake.
    fn pairs_and_parameters(self) -> (bool, bool) {
        match self {
            Self::FifoPacked | Self::Gandiva => (true, true),
            Self::AlloX | Self::Srtf | Self::Sjf | Self::Las | Self::Themis => (false, true),
            Self::Isolated | Self::Proportional | Self::Fifo | Self::FifoPerf => (false, false),
        }
    }
}

/// The throughputs that a policy sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// As they are.
    #[default]
    Measured,
    /// A throughput of 1 wherever a job runs.
    Unit,
    /// On every type the throughput of a reference type.
    Reference {
        /// The reference: the first of these that the cluster has.
        types: Vec<String>,
        /// Whether, if the cluster has none of them, the reference is the first worker type in the order of the throughput matrix,
        /// its fastest.
        or_fastest: bool,
    },
}

impl View {
    /// Reads `measured`, `unit`, `reference(v100)`, `reference(v100, fastest)`.
    fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "measured" => return Some(Self::Measured),
            "unit" => return Some(Self::Unit),
            _ => {}
        }
        let inside = text.trim().strip_prefix("reference")?.trim().strip_prefix('(')?.strip_suffix(')')?;
        let mut types: Vec<String> = inside.split(',').map(|name| name.trim().to_owned()).collect();
        let or_fastest = types.last().is_some_and(|name| name == "fastest");
        if or_fastest {
            types.pop();
        }
        let odd = |name: &String| name.is_empty() || name == "fastest" || name.contains(['(', ')']);
        let named = or_fastest || !types.is_empty();
        (named && !types.iter().any(odd)).then_some(Self::Reference { types, or_fastest })
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured => f.write_str("measured"),
            Self::Unit => f.write_str("unit"),
            Self::Reference { types, or_fastest } => {
                let fastest = or_fastest.then_some("fastest");
                let names: Vec<&str> = types.iter().map(String::as_str).chain(fastest).collect();
                write!(f, "reference({})", names.join(", "))
            }
        }
    }
}

/// An optimization program, as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Whether the objective is maximized, and not minimized.
    pub maximize: bool,
    /// The objective.
    pub objective: String,
    /// Constraints on every job.
    pub for_each_job: Vec<ConstraintDocument>,
    /// Constraints on every worker type.
    pub for_each_worker_type: Vec<ConstraintDocument>,
    /// Constraints on the whole cluster.
    pub constraints: Vec<ConstraintDocument>,
    /// The optimum that is taken among several.
    pub refine: Refine,
    /// Whether each job's weight falls to it through its owners.
    pub hierarchical: bool,
    /// Whether each job's time is discounted by the cost of its presence to the others.
    pub discounted: bool,
    /// Per-job columns that the caller supplies: name, and unit with sign.
    pub columns: Vec<(String, String)>,
    /// The numbers that its expressions name.
    pub parameters: Vec<Parameter>,
    /// The throughputs that it sees.
    pub view: View,
    /// The jobs that may share workers.
    pub colocation: Colocation,
}

/// A built-in rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Heuristic {
    /// The rule.
    pub rule: Rule,
    /// Its parameters as written; [`PolicyDocument::parameters`] reads them.
    pub parameters: serde_json::Map<String, serde_json::Value>,
}

/// The kind of a policy, with all its data.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyKind {
    /// An optimization program.
    Program(Program),
    /// A built-in rule.
    Heuristic(Heuristic),
    /// A policy of a plug-in.
    Plugin(Plugged),
}

/// A policy of a kind that the engine does not know: a plug-in of the catalog reads its own fields ([`PolicyDocument::own_fields`])
/// and fills in these before the policy is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugged {
    /// The value of `kind:`.
    pub kind: String,
    /// Whether it decides inside rounds, rather than by allocations.
    pub inside_rounds: bool,
    /// Whether it can let jobs share workers.
    pub pairs: bool,
}

/// The fields that documents of every kind have.
#[derive(Debug, Deserialize)]
struct Common {
    name: String,
    summary: String,
    source: Option<String>,
    notes: Option<String>,
    differs_from_gavel: Option<String>,
    kind: String,
}

/// The names of these fields: a plug-in's own fields are the others.
pub(super) const COMMON: [&str; 7] =
    ["format", "name", "summary", "source", "notes", "differs_from_gavel", "kind"];

/// A checked policy file.
#[derive(Clone, Debug)]
pub struct PolicyDocument {
    /// The name by which documents and commands refer to it.
    pub name: String,
    /// Its purpose.
    pub summary: String,
    /// Its source: paper and section.
    pub origin: Option<String>,
    /// Further notes for readers.
    pub notes: Option<String>,
    /// Its differences from the published system.
    pub differs_from_gavel: Option<String>,
    /// Its kind, with all its data.
    pub kind: PolicyKind,
    /// Parameters whose values differ from the text's, set where the policy was named.
    pub set: BTreeMap<String, serde_json::Value>,
    /// The text, for errors that are found later.
    pub source: Source,
}

impl PolicyDocument {
    /// Whether it decides inside rounds, rather than by allocations.
    pub fn decides_inside_rounds(&self) -> bool {
        matches!(&self.kind, PolicyKind::Plugin(plugged) if plugged.inside_rounds)
    }

    /// Whether it can let jobs share workers.
    pub fn pairs(&self) -> bool {
        match &self.kind {
            PolicyKind::Program(program) => program.colocation == Colocation::Pairs,
            PolicyKind::Heuristic(heuristic) => heuristic.rule.pairs(),
            PolicyKind::Plugin(plugged) => plugged.pairs,
        }
    }

    /// The name of its kind in documents.
    pub fn kind_name(&self) -> &str {
        match &self.kind {
            PolicyKind::Program(_) => "program",
            PolicyKind::Heuristic(_) => "heuristic",
            PolicyKind::Plugin(plugged) => &plugged.kind,
        }
    }

    /// Reads a document and checks that its fields fit together.
    ///
    /// # Errors
    /// With the place of every field that does not fit.
    pub fn read(source: Source) -> Result<Self, SpecError> {
        let common: Common = source.parse_format(FORMAT)?;
        let empty = |(field, text): (&str, &String)| {
            text.trim()
                .is_empty()
                .then(|| source.error_at(field, format!("`{field}` is empty, expected text"), None))
        };
        let mut errors: Vec<_> =
            [("name", &common.name), ("summary", &common.summary)].into_iter().filter_map(empty).collect();
        let document = || source.parse::<Document>();
        let kind = match common.kind.as_str() {
            "program" => document().and_then(|document| program(&document, &source)).map(PolicyKind::Program),
            "heuristic" => {
                document().and_then(|document| heuristic(&document, &source)).map(PolicyKind::Heuristic)
            }
            other => {
                let kind = other.to_owned();
                Ok(PolicyKind::Plugin(Plugged { kind, inside_rounds: false, pairs: false }))
            }
        };
        let kind = match kind {
            Ok(kind) => {
                SpecError::join(errors)?;
                kind
            }
            Err(error) => {
                errors.push(error);
                return Err(SpecError::join(errors).err().unwrap_or_else(|| unreachable!("one was pushed")));
            }
        };
        let Common { name, summary, source: origin, notes, differs_from_gavel, .. } = common;
        let set = BTreeMap::new();
        Ok(Self { name, summary, origin, notes, differs_from_gavel, kind, set, source })
    }
}

fn program(document: &Document, source: &Source) -> Result<Program, SpecError> {
    let mut errors = document.strangers(source);
    let objective = match (&document.maximize, &document.minimize) {
        (Some(text), None) => Some((true, text)),
        (None, Some(text)) => Some((false, text)),
        (Some(_), Some(_)) => {
            let message = "both `maximize` and `minimize` are given, expected one";
            errors.push(source.error_at_key("minimize", message, None));
            None
        }
        (None, None) => {
            let help = "as in `maximize: sum_over_jobs(throughput)`".to_owned();
            let message = "a program needs `maximize` or `minimize`";
            errors.push(source.error_at("kind", message, Some(help)));
            None
        }
    };
    let view = document.throughput.as_deref().map_or(Some(View::default()), View::parse);
    if view.is_none() {
        let message = format!(
            "throughput view `{}`, expected `measured`, `unit` or `reference(TYPE, …)`",
            document.throughput.as_deref().unwrap_or_default()
        );
        let help = "`reference(TYPE, fastest)` takes the fastest type where there is no TYPE".to_owned();
        errors.push(source.error_at("throughput", message, Some(help)));
    }
    SpecError::join(errors)?;
    let (Some((maximize, objective)), Some(view)) = (objective, view) else {
        unreachable!("either was complained about");
    };
    Ok(Program {
        maximize,
        objective: objective.clone(),
        for_each_job: document.for_each_job.clone(),
        for_each_worker_type: document.for_each_worker_type.clone(),
        constraints: document.constraints.clone(),
        refine: document.refine.unwrap_or_default(),
        hierarchical: document.hierarchical,
        discounted: document.discounted,
        columns: document.columns.iter().map(|(name, unit)| (name.to_owned(), unit.clone())).collect(),
        parameters: if document.parameters.is_empty() { Vec::new() } else { declared(source)? },
        view,
        colocation: document.colocation.unwrap_or_default(),
    })
}

fn heuristic(document: &Document, source: &Source) -> Result<Heuristic, SpecError> {
    let mut errors = document.strangers(source);
    if document.rule.is_none() {
        let help = Some("as in `rule: fifo`".to_owned());
        errors.push(source.error_at("kind", "a heuristic needs `rule`", help));
    }
    SpecError::join(errors)?;
    let Some(rule) = document.rule else { unreachable!("its absence was complained about") };
    if !rule.is_parametric() && !document.parameters.is_empty() {
        return Err(source.error_at_key("parameters", "this rule has no parameters", None));
    }
    Ok(Heuristic { rule, parameters: document.parameters.clone() })
}
