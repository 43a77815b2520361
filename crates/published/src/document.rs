//! Learned policies in files: which network decides, from which weights, and when.

use std::collections::BTreeMap;
use std::path::Path;

use apportion::spec::nearest::{name_list, suggestion};
use apportion::spec::policy::Colocation;
use apportion::spec::{PolicyDocument, SpecError, path_text};
use apportion::throughput::elastic::ElasticThroughputs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::weights::{is_path, ships};

/// The largest power of the hours that a job has left: beyond it values of short and long jobs are too far apart to tell small
/// ones from 0.
const EXPONENT_MAX: f64 = 2.0;

/// A learned policy: a network, or a rule to compare one with.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LearnedFields {
    /// What decides which job gets its workers of which type.
    actor: Option<ActorName>,
    /// Which jobs may share workers; `none` by default.
    colocation: Option<Colocation>,
    /// The weights: a name of weights that ship with the program, or the path of a file that `apportion train` made, from
    /// this file's folder.
    weights: Option<String>,
    /// The part of the value of an isolated share that every job has at least, from 0 to 1; 0 by default, where jobs can
    /// starve. For `actor: values`.
    floor: Option<f64>,
    /// The power of the hours that a job has left alone on its fastest worker type by which its value is weighed, from -2 to 2; 0
    /// by default, for no weight. For `actor: values`.
    exponent: Option<f64>,
    /// The rule that decides in the place of weights. For `actor: elastic`.
    rule: Option<ElasticRuleName>,
    /// Which of DL2's job types each job type of the workload is like: the name of a job type, whole or without what it ends in in
    /// parentheses, with one of `resnet-50`, `vgg-16`, `resnext-110`, `inception-bn`, `seq2seq`, `cnn-text-classification`,
    /// `dssm` and `wlm`. Those names are like themselves. For `actor: dl2`, which needs it.
    job_types: Option<BTreeMap<String, String>>,
    /// When the policy decides anew; `events` by default.
    asked: Option<AskedName>,
    /// How an action is chosen from probabilities; `most_probable` by default.
    choice: Option<ChoiceName>,
}

/// What decides which job gets its workers of which type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorName {
    /// One gang after another, by a network over a window of jobs, as in DL2.
    Window,
    /// One gang after another, by a network that scores each job on each type alike.
    Pairs,
    /// All at once: the allocation of the largest sum of values, which a network scores; without weights all scores are 0.
    Values,
    /// One gang after another, each that fits as likely, and as likely to stop.
    Uniform,
    /// One gang after another, each that fits as likely, until none fits.
    UniformBusy,
    /// One gang after another, that with the least time left × workers first.
    LeastService,
    /// Inside rounds, on concrete workers: one agent says which job is next, another gives it servers, as in the dual-agent
    /// scheduler; without weights, by chance.
    Agents,
    /// Inside rounds, on concrete workers: a job after another on a set of four servers, as in DeepShare; without weights,
    /// by chance.
    Cells,
    /// Inside rounds, how many workers each job gets, of those numbers that it can be resized to, as in DL2: one climb after
    /// another, by a network of the elastic world, or by a rule.
    Elastic,
    /// The same by a network of DL2's own world: whether it adds a worker to a job, a parameter server or one of both, the job
    /// climbs to its next size, on its own worker type, or else the fastest with room.
    Dl2,
}

impl ActorName {
    /// Does it decide inside rounds, rather than by allocations?
    pub fn decides_inside_rounds(self) -> bool {
        matches!(self, Self::Agents | Self::Cells | Self::Elastic | Self::Dl2)
    }

    /// The systems in which weights for it are trained: those of others may have as many inputs, and mean other things by them.
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

    /// Can it decide without weights? Does it look at any?
    fn weights(self) -> (bool, bool) {
        match self {
            Self::Window | Self::Pairs | Self::Dl2 => (false, true),
            Self::Values | Self::Agents | Self::Cells | Self::Elastic => (true, true),
            Self::Uniform | Self::UniformBusy | Self::LeastService => (true, false),
        }
    }
}

/// A rule that says which job climbs to its next size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ElasticRuleName {
    /// The job with the least part of a worker type, whatever it gains.
    Drf,
    /// The earliest, as long as that makes it faster.
    Fifo,
    /// That with the least time left on its fewest workers, as long as that makes it faster.
    Srtf,
    /// Optimus: a first worker for every job in order of arrival; then one worker after another, each for the job that it saves
    /// the most remaining time.
    Optimus,
    /// The same, but first workers to the jobs that are done soonest.
    ShortestOptimus,
}

/// When a learned policy decides anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskedName {
    /// At the first boundary after a job has come or gone.
    #[default]
    Events,
    /// At every boundary.
    Rounds,
}

/// How an action is chosen from probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceName {
    /// The most probable.
    #[default]
    MostProbable,
    /// Drawn with its probability.
    Sampled,
}

/// A learned policy, or a control of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// The actor that decides.
    pub actor: ActorName,
    /// Which jobs may share workers.
    pub colocation: Colocation,
    /// The weights: a name, or the path of a file. What the policy's file says relative to its own folder is a path from
    /// there already.
    pub weights: Option<String>,
    /// The part of the value of an isolated share that every job has at least, if any.
    pub floor: Option<f64>,
    /// The power of the hours that a job has left by which its value is weighed; 0 for no weight.
    pub exponent: f64,
    /// The rule in the place of weights, if any.
    pub rule: Option<ElasticRuleName>,
    /// Which of DL2's job types each job type is like; empty for other actors than DL2's.
    pub job_types: BTreeMap<String, String>,
    /// When it decides anew.
    pub asked: AskedName,
    /// How an action is chosen.
    pub choice: ChoiceName,
}

impl Learned {
    /// Reads the fields that a learned policy has of its own, and checks that they fit together.
    ///
    /// # Errors
    /// With the place of what does not fit.
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
        if floor.is_some() && actor != ActorName::Values {
            let help = Some("`actor: values` has a program that can keep one".to_owned());
            return Err(document.error_at_field("floor", "this actor has no floor", help));
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

/// Refuses a rule where none decides; where one may, exactly one of it and weights does.
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

/// Refuses likenesses where nothing heeds them, and where the likeness is to none of DL2's job types.
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

/// A name as it is; a path from the folder of the document that states it.
fn from_folder(folder: &Path, name_or_path: &str) -> String {
    let path = folder.join(path_text::to_path(name_or_path));
    if !ships(name_or_path) && (is_path(name_or_path) || path.exists()) {
        return path_text::of(path);
    }
    name_or_path.to_owned()
}
