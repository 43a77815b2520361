//! Fields of learned policies in policy files: the network that decides, its weights, and when it decides.

use std::collections::BTreeMap;
use std::path::Path;

use apportion::spec::nearest::{name_list, suggestion};
use apportion::spec::policy::Colocation;
use apportion::spec::{PolicyDocument, SpecError, path_text};
use apportion::throughput::elastic::ElasticThroughputs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::weights::{is_path, ships};

/// The largest `exponent`, up or down: beyond it, values of short and long jobs are so far apart that small ones cannot be told
/// from 0.
const EXPONENT_MAX: f64 = 2.0;

/// A learned policy: a network, or a rule to compare one with.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LearnedFields {
    /// The actor, which decides which job gets its workers of which type.
    actor: Option<ActorName>,
    /// Which jobs may share workers; `none` by default.
    colocation: Option<Colocation>,
    /// The weights: a name of weights that ship with the program, or the path of a file that `apportion train` made, from
    /// this file's folder.
    weights: Option<String>,
    /// The part of an isolated share that every job has at least, from 0 to 1; 0 by default, where jobs can starve. With `actor: values`
    /// it is a constraint of each allocation, on the share's value. With other actors it is on the progress of a job since it came: a job
    /// that is more than a day behind this part of its isolated share is served first, until it has caught up.
    floor: Option<f64>,
    /// The power, from -2 to 2, of a job's weight: its value is multiplied by this power of the hours that it has left alone on its
    /// fastest worker type. 0 by default, for no weight. For `actor: values`.
    exponent: Option<f64>,
    /// The rule that decides in the place of weights. For `actor: elastic`.
    rule: Option<ElasticRuleName>,
    /// For each job type of the workload, the job type of DL2's that it is like. A key is a job type's name, with or without the
    /// parentheses at its end; a value is one of `resnet-50`, `vgg-16`, `resnext-110`, `inception-bn`, `seq2seq`,
    /// `cnn-text-classification`, `dssm` and `wlm`. Job types with one of these names need no entry. For `actor: dl2`, which needs
    /// the field.
    job_types: Option<BTreeMap<String, String>>,
    /// When the policy decides anew; `events` by default.
    asked: Option<AskedName>,
    /// How an action is chosen from probabilities; `most_probable` by default.
    choice: Option<ChoiceName>,
}

/// An actor of learned policies, which decides which job gets its workers of which type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorName {
    /// One gang after another, by a network over a window of jobs, as in DL2.
    Window,
    /// One gang after another, by a network that scores each job on each type alike.
    Pairs,
    /// All gangs at once: the allocation with the largest sum of values, which a network scores. Without weights, all scores are 0.
    Values,
    /// One gang after another, drawn uniformly from the gangs that fit and, once a job has workers, the choice to stop.
    Uniform,
    /// One gang after another, drawn uniformly from the gangs that fit, until none fits.
    UniformBusy,
    /// One gang after another, in order of remaining time × workers, the least first.
    LeastService,
    /// Inside rounds, on concrete workers: one agent picks the next job and another its servers, as in the dual-agent scheduler.
    /// Without weights, by chance.
    Agents,
    /// Inside rounds, on concrete workers: one job after another on a set of four servers, as in DeepShare. Without weights, by
    /// chance.
    Cells,
    /// Inside rounds, the number of workers of each job among the sizes that it can be resized to, as in DL2: one climb to the next
    /// size after another, by a network of the elastic world, or by a rule.
    Elastic,
    /// Inside rounds, the number of workers of each job, by a network of DL2's own world. Any of its three actions for a job (a
    /// worker, a parameter server or one of both) takes the job to its next size, on its own worker type, or else the fastest with
    /// room.
    Dl2,
}

impl ActorName {
    /// Whether the actor decides inside rounds, rather than by allocations.
    pub fn decides_inside_rounds(self) -> bool {
        matches!(self, Self::Agents | Self::Cells | Self::Elastic | Self::Dl2)
    }

    /// Names of the systems that the actor's weights may be trained in. Weights of another system may have as many inputs, with
    /// other meanings.
    pub(crate) fn systems(self) -> &'static [&'static str] {
        match self {
            Self::Window
            | Self::Pairs
            | Self::Values
            | Self::Uniform
            | Self::UniformBusy
            | Self::LeastService => &["gangs"],
            Self::Agents | Self::Cells => &["rounds"],
            Self::Elastic => &["elastic"],
            Self::Dl2 => &["dl2"],
        }
    }

    /// Whether the actor can decide without weights, and whether it uses weights at all.
    fn weights(self) -> (bool, bool) {
        match self {
            Self::Window | Self::Pairs | Self::Dl2 => (false, true),
            Self::Values | Self::Agents | Self::Cells | Self::Elastic => (true, true),
            Self::Uniform | Self::UniformBusy | Self::LeastService => (true, false),
        }
    }
}

/// A rule of `actor: elastic`, which picks the job that climbs to its next size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ElasticRuleName {
    /// Dominant resource fairness: the job with the smallest dominant share, whatever it gains.
    Drf,
    /// The earliest job that a climb makes faster.
    Fifo,
    /// The job with the least remaining time on its fewest workers, among jobs that a climb makes faster.
    Srtf,
    /// Optimus: a first worker for every job in order of arrival, then one climb after another, each for the job that saves the
    /// most remaining time by it, for each worker more.
    Optimus,
    /// Optimus, but with first workers to the jobs that are done soonest by them.
    ShortestOptimus,
}

/// A rule of when a learned policy decides anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskedName {
    /// At the first boundary after a job, or a worker, has come or gone.
    #[default]
    Events,
    /// At every boundary.
    Rounds,
}

/// A way to choose an action from probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceName {
    /// The most probable action.
    #[default]
    MostProbable,
    /// An action drawn from the probabilities.
    Sampled,
}

/// A learned policy, or a control of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// The actor that decides.
    pub actor: ActorName,
    /// Which jobs may share workers.
    pub colocation: Colocation,
    /// The weights: a name, or the path of a file. A path that the policy's file gives relative to its own folder is already joined
    /// to it.
    pub weights: Option<String>,
    /// The part of an isolated share that every job has at least, if any.
    pub floor: Option<f64>,
    /// The power of a job's remaining hours that its value is multiplied by; 0 for no weight.
    pub exponent: f64,
    /// The rule in the place of weights, if any.
    pub rule: Option<ElasticRuleName>,
    /// By job type, the job type of DL2's that it is like; empty for other actors than DL2's.
    pub job_types: BTreeMap<String, String>,
    /// When it decides anew.
    pub asked: AskedName,
    /// How an action is chosen.
    pub choice: ChoiceName,
}

impl Learned {
    /// Reads the fields of a learned policy, and checks that they fit together.
    ///
    /// # Errors
    /// If a field is unknown or fields do not fit together, with the place in the document.
    pub fn read(document: &PolicyDocument) -> Result<Self, SpecError> {
        let source = &document.source;
        let fields: LearnedFields = document.own_fields()?;
        let Some(actor) = fields.actor else {
            let help = Some("as in `actor: pairs`".to_owned());
            return Err(source.error_at("kind", "a learned policy needs `actor`", help));
        };
        let colocation = fields.colocation.unwrap_or_default();
        if colocation == Colocation::Pairs && actor != ActorName::Values {
            let help = Some("`actor: values` lets jobs share workers".to_owned());
            return Err(document.error_at_field(
                "colocation",
                "this actor places one job at a time, alone",
                help,
            ));
        }
        let floor = fields.floor.filter(|floor| *floor != 0.0);
        if fields.floor.is_some_and(|floor| !(0.0..=1.0).contains(&floor)) {
            let help = Some("as in `floor: 0.25`, a quarter of an isolated share".to_owned());
            return Err(document.error_at_field("floor", "`floor` is not from 0 to 1", help));
        }
        let exponent = fields.exponent.unwrap_or_default();
        if !(-EXPONENT_MAX..=EXPONENT_MAX).contains(&exponent) {
            let message =
                format!("`exponent` is {exponent}, expected a number from -{EXPONENT_MAX} to {EXPONENT_MAX}");
            return Err(document.error_at_field("exponent", message, None));
        }
        if fields.exponent.is_some() && actor != ActorName::Values {
            let help = Some("`actor: values` weighs jobs by one".to_owned());
            return Err(document.error_at_field("exponent", "this actor has no exponent", help));
        }
        if actor.decides_inside_rounds() && fields.asked.is_some() {
            let help = Some("leave `asked` out".to_owned());
            return Err(document.error_at_field("asked", "this actor is asked in every round", help));
        }
        check_rule(document, actor, &fields)?;
        check_job_types(document, actor, fields.job_types.as_ref())?;
        let (optional, looked_at) = actor.weights();
        match &fields.weights {
            None if !optional => {
                let help = Some(
                    "the name of weights that ship with the program, a file that `apportion train` made, or an ONNX file",
                );
                Err(source.error_at("actor", "this actor needs `weights`", help.map(str::to_owned)))
            }
            Some(_) if !looked_at => Err(document.error_at_field(
                "weights",
                "this actor is a rule and would ignore `weights`",
                None,
            )),
            _ => Ok(Learned {
                actor,
                colocation,
                weights: fields.weights.as_deref().map(|weights| from_folder(&source.folder(), weights)),
                floor,
                exponent,
                rule: fields.rule,
                job_types: fields.job_types.unwrap_or_default(),
                asked: fields.asked.unwrap_or_default(),
                choice: fields.choice.unwrap_or_default(),
            }),
        }
    }
}

/// Checks `rule`: `actor: elastic` has exactly one of `rule` and `weights`, other actors have no rule.
fn check_rule(document: &PolicyDocument, actor: ActorName, fields: &LearnedFields) -> Result<(), SpecError> {
    let source = &document.source;
    match (actor, fields.rule, &fields.weights) {
        (ActorName::Elastic, None, None) => {
            let help = Some("as in `rule: optimus`, or `weights: elastic`".to_owned());
            Err(source.error_at("actor", "this actor needs `rule` or `weights`", help))
        }
        (ActorName::Elastic, Some(_), Some(_)) => Err(document.error_at_field(
            "rule",
            "the rule would ignore `weights`: leave out one of them",
            None,
        )),
        (ActorName::Elastic, ..) | (_, None, _) => Ok(()),
        (_, Some(_), _) => {
            let help = Some("`actor: elastic` decides by one".to_owned());
            Err(document.error_at_field("rule", "this actor has no rule", help))
        }
    }
}

/// Checks `job_types`: `actor: dl2` has it, with values that are job types of DL2's; other actors do not.
fn check_job_types(
    document: &PolicyDocument,
    actor: ActorName,
    job_types: Option<&BTreeMap<String, String>>,
) -> Result<(), SpecError> {
    let source = &document.source;
    let dl2 = ElasticThroughputs::dl2();
    let known = || dl2.job_types.iter().map(|job_type| job_type.name.as_str());
    match (actor, job_types) {
        (ActorName::Dl2, None) => {
            let help = format!("as in `job_types: {{LM: seq2seq}}`, with one of {}", name_list(known()));
            let message = "this actor needs `job_types`: which of DL2's job types each job type is like";
            Err(source.error_at("actor", message, Some(help)))
        }
        (ActorName::Dl2, Some(job_types)) => {
            let is_unknown = |like: &str| !known().any(|name| name == like);
            let unknown = job_types.iter().find(|(_, like)| is_unknown(like));
            unknown.map_or(Ok(()), |(name, like)| {
                let message =
                    format!("`{like}` is no job type of DL2's, expected one of {}", name_list(known()));
                Err(source.error_at(&format!("job_types.{name}"), message, suggestion(like, known())))
            })
        }
        (_, None) => Ok(()),
        (_, Some(_)) => {
            let help = Some("`actor: dl2` sees job types as DL2 does".to_owned());
            Err(source.error_at_key("job_types", "this actor would ignore `job_types`", help))
        }
    }
}

/// Weights as a document names them: a name as it is, a path joined to the document's folder.
fn from_folder(folder: &Path, name_or_path: &str) -> String {
    let path = folder.join(path_text::to_path(name_or_path));
    if !ships(name_or_path) && (is_path(name_or_path) || path.exists()) {
        return path_text::of(path);
    }
    name_or_path.to_owned()
}
