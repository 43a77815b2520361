//! Name → policy: the one place where programs, heuristics and learned policies meet.
//!
//! ```
//! use apportion::{Catalog, Cluster, Job, Problem, Throughputs};
//!
//! let throughputs = Throughputs::embedded("osdi20")?;
//! let cluster: Cluster = "v100=36,p100=36,k80=36".parse()?;
//! let jobs = [Job::new("ResNet-50 (batch size 64)").scale_factor(2).steps(120_000)];
//!
//! let mut policy = Catalog::embedded().policy("max_min_fairness_perf")?;
//! let decision = policy.allocate(&Problem::new(&cluster, &jobs, &throughputs)?)?;
//! assert!(decision.objective.is_some_and(|objective| objective.optimal));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use thiserror::Error;

use crate::learning::actor::Choice;
use crate::learning::gangs::{
    Asked, ByValues, Decider, GangPolicy, Rule as GangRule, Sequential, Sight, read_scorer, read_window,
};
use crate::learning::rounds::{LearnedRounds, PlayName, read_decider, uniform};
use crate::learning::trained::{Trained, TrainedError};
use crate::policy::heuristic::{
    AlloX, AlloXParameters, Behaviour, Fifo, FifoPacked, FifoPackedParameters, FifoPerf, Gandiva,
    GandivaParameters, Isolated, Las, LasParameters, Proportional, ShortestParameters, Sjf, Srtf, Themis,
    ThemisParameters,
};
use crate::policy::objective::objective_of;
use crate::policy::program::ProgramPolicyError;
use crate::policy::{Policy, ProgramOptions, ProgramPolicy, Refine, RoundPolicy, ThroughputView};
use crate::spec::policy::{self as file, EMBEDDED, Heuristic, Rule};
use crate::spec::{PolicyDocument, PolicyKind, Source, SpecError, load_policy};

/// What a run may ask of a policy beyond its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyOptions {
    /// As published, or as meant: decides the behaviour of rules, whether a program gives time where a job cannot
    /// run, and what else [`ProgramOptions::behaviour`] says.
    pub behaviour: Behaviour,
    /// Seed of the rules that draw.
    pub seed: u64,
    /// Which optimum, in place of the file's choice; rules have none.
    pub refine: Option<Refine>,
    /// A backend to try first.
    pub backend: Option<String>,
}

/// Why there is no such policy.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The name or the file is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The file and the options do not fit together.
    #[error("policy `{policy}`: {source}")]
    Program {
        /// The policy.
        policy: String,
        /// What does not fit.
        source: ProgramPolicyError,
    },
    /// It decides inside rounds, where an allocation is asked for.
    #[error(
        "policy `{policy}` decides inside rounds, on the workers of a simulation, and gives no allocation: use it with \
         `simulate` or `sweep`"
    )]
    InRounds {
        /// The policy.
        policy: String,
    },
    /// The weights are not those of the file's actor.
    #[error("policy `{policy}`: weights `{weights}`: {reason}")]
    Weights {
        /// The policy.
        policy: String,
        /// Their name or path.
        weights: String,
        /// What is wrong with them.
        reason: String,
    },
}

/// A policy, by how it decides.
#[derive(Debug)]
pub enum Ready {
    /// By allocations, which the mechanism turns into rounds.
    Allocating(Box<dyn Policy>),
    /// Inside rounds, on concrete workers.
    InRounds(Box<dyn RoundPolicy>),
}

/// Policies by name: those of the binary, and files added to them.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    added: BTreeMap<String, PolicyDocument>,
}

impl Catalog {
    /// The policies of the binary.
    pub fn embedded() -> Self {
        Self::default()
    }

    /// Adds a policy file's text; one of the same name takes the place of the other.
    ///
    /// # Errors
    /// If the text is not a policy.
    pub fn add(&mut self, source: Source) -> Result<&mut Self, SpecError> {
        let document = PolicyDocument::read(source)?;
        objective_of(&document)?;
        self.added.insert(document.name.clone(), document);
        Ok(self)
    }

    /// Names of all policies, in order.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).collect();
        names.extend(
            self.added.keys().map(String::as_str).filter(|name| !EMBEDDED.iter().any(|(n, _)| n == name)),
        );
        names.sort_unstable();
        names
    }

    /// The document of a policy: added, embedded, or the file at this path.
    ///
    /// # Errors
    /// If there is none; says which names there are and which is nearest.
    pub fn document(&self, name_or_path: &str) -> Result<PolicyDocument, SpecError> {
        self.added
            .get(name_or_path)
            .map_or_else(|| load_policy(name_or_path), |document| Ok(document.clone()))
    }

    /// A policy ready to decide, with default options.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn policy(&self, name_or_path: &str) -> Result<Box<dyn Policy>, CatalogError> {
        self.build(name_or_path, &PolicyOptions::default())
    }

    /// A policy ready to decide.
    ///
    /// # Errors
    /// If there is none of this name, its file is wrong, the options do not fit it, or it decides inside rounds.
    pub fn build(
        &self,
        name_or_path: &str,
        options: &PolicyOptions,
    ) -> Result<Box<dyn Policy>, CatalogError> {
        let document = self.document(name_or_path)?;
        match ready(&document, options)? {
            Ready::Allocating(policy) => Ok(policy),
            Ready::InRounds(_) => Err(CatalogError::InRounds { policy: document.name }),
        }
    }

    /// A policy ready to decide, in whichever way it does.
    ///
    /// # Errors
    /// If there is none of this name, its file is wrong, or the options do not fit it.
    pub fn ready(&self, name_or_path: &str, options: &PolicyOptions) -> Result<Ready, CatalogError> {
        ready(&self.document(name_or_path)?, options)
    }

    /// The same where the policy is a program, with all that a program can do; `None` for rules.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn program(
        &self,
        name_or_path: &str,
        options: &PolicyOptions,
    ) -> Result<Option<ProgramPolicy>, CatalogError> {
        let document = self.document(name_or_path)?;
        match &document.kind {
            PolicyKind::Heuristic(_) | PolicyKind::Learned(_) => Ok(None),
            PolicyKind::Program(program) => program_policy(&document, program, options).map(Some),
        }
    }
}

fn ready(document: &PolicyDocument, options: &PolicyOptions) -> Result<Ready, CatalogError> {
    Ok(match &document.kind {
        PolicyKind::Heuristic(heuristic) => Ready::Allocating(rule(document, heuristic, options)?),
        PolicyKind::Program(program) => {
            Ready::Allocating(Box::new(program_policy(document, program, options)?))
        }
        PolicyKind::Learned(learned) => match play_of(learned.actor) {
            Some(play) => Ready::InRounds(round_policy(document, learned, play, options)?),
            None => Ready::Allocating(Box::new(gang_policy(document, learned, options)?)),
        },
    })
}

/// How it plays, if it decides inside rounds.
fn play_of(actor: file::ActorName) -> Option<PlayName> {
    match actor {
        file::ActorName::Agents => Some(PlayName::Agents),
        file::ActorName::Cells => Some(PlayName::Cells),
        _ => None,
    }
}

fn program_policy(
    document: &PolicyDocument,
    program: &file::Program,
    options: &PolicyOptions,
) -> Result<ProgramPolicy, CatalogError> {
    let objective = objective_of(document)?.unwrap_or_else(|| unreachable!("a program has an objective"));
    let policy = ProgramPolicy::try_new(ProgramOptions {
        name: document.name.clone(),
        objective,
        view: view(&program.view, options.behaviour),
        pairs: program.colocation == file::Colocation::Pairs,
        refine: options.refine.unwrap_or_else(|| refine(program.refine)),
        hierarchical: program.hierarchical,
        discounted: program.discounted,
        behaviour: options.behaviour,
        backend: options.backend.clone(),
    });
    policy.map_err(|source| CatalogError::Program { policy: document.name.clone(), source })
}

/// What a policy's weights are.
fn trained(document: &PolicyDocument, learned: &file::Learned) -> Result<Trained, CatalogError> {
    let weights = learned.weights.clone().unwrap_or_default();
    let bytes = file::load_weights(&weights)?;
    Trained::read(&weights, &bytes).map_err(|error| at_fault(document, learned, &error))
}

fn at_fault(document: &PolicyDocument, learned: &file::Learned, error: &TrainedError) -> CatalogError {
    CatalogError::Weights {
        policy: document.name.clone(),
        weights: learned.weights.clone().unwrap_or_default(),
        reason: error.to_string(),
    }
}

fn choice(learned: &file::Learned) -> Choice {
    match learned.choice {
        file::ChoiceName::MostProbable => Choice::MostProbable,
        file::ChoiceName::Sampled => Choice::Sampled,
    }
}

/// A learned policy that decides inside rounds; without weights, what it would be by chance.
fn round_policy(
    document: &PolicyDocument,
    learned: &file::Learned,
    play: PlayName,
    options: &PolicyOptions,
) -> Result<Box<dyn RoundPolicy>, CatalogError> {
    let ((actor, play), choice) = if learned.weights.is_some() {
        let found = read_decider(&trained(document, learned)?, play);
        (found.map_err(|error| at_fault(document, learned, &error))?, choice(learned))
    } else {
        (uniform(play), Choice::Sampled)
    };
    Ok(Box::new(LearnedRounds::new(&document.name, play, actor, choice, options.seed)))
}

/// A learned policy with its weights, or a control.
fn gang_policy(
    document: &PolicyDocument,
    learned: &file::Learned,
    options: &PolicyOptions,
) -> Result<GangPolicy, CatalogError> {
    let policy = || document.name.clone();
    let at_fault = |error: TrainedError| at_fault(document, learned, &error);
    let trained = || trained(document, learned);
    let choice = choice(learned);
    let decider = match learned.actor {
        file::ActorName::Window => {
            let (actor, sight) = read_window(&trained()?).map_err(at_fault)?;
            Decider::Sequential(Sequential { actor, sight, choice })
        }
        file::ActorName::Pairs => {
            let actor = read_scorer(&trained()?).map_err(at_fault)?;
            Decider::Sequential(Sequential { actor, sight: Sight::Pairs { n_slots: None }, choice })
        }
        file::ActorName::Values => {
            let scorer = match &learned.weights {
                Some(_) => Some(read_scorer(&trained()?).map_err(at_fault)?),
                None => None,
            };
            let pairs = learned.colocation == file::Colocation::Pairs;
            let values = ByValues::new(&document.name, scorer, pairs, options.backend.clone());
            let values = values.map_err(|source| CatalogError::Program { policy: policy(), source })?;
            Decider::Values(Box::new(values))
        }
        file::ActorName::Uniform => Decider::Rule(GangRule::Uniform),
        file::ActorName::UniformBusy => Decider::Rule(GangRule::UniformBusy),
        file::ActorName::LeastService => Decider::Rule(GangRule::LeastService),
        file::ActorName::Agents | file::ActorName::Cells => {
            return Err(CatalogError::InRounds { policy: policy() });
        }
    };
    let asked = match learned.asked {
        file::AskedName::Events => Asked::Events,
        file::AskedName::Rounds => Asked::Rounds,
    };
    Ok(GangPolicy::new(&document.name, decider, asked, options.seed))
}

/// The refinement of this name in a policy file.
pub fn refine(written: file::Refine) -> Refine {
    match written {
        file::Refine::Utilization => Refine::Utilization,
        file::Refine::WaterFilling => Refine::WaterFilling,
        file::Refine::Interior => Refine::Interior,
        file::Refine::None => Refine::None,
    }
}

fn view(written: &file::View, behaviour: Behaviour) -> ThroughputView {
    let everywhere = behaviour == Behaviour::Published;
    match written {
        file::View::Measured => ThroughputView::Measured,
        file::View::Unit => ThroughputView::Unit { everywhere },
        file::View::Reference { types, or_fastest } => {
            ThroughputView::Reference { worker_types: types.clone(), or_fastest: *or_fastest, everywhere }
        }
    }
}

fn rule(
    document: &PolicyDocument,
    heuristic: &Heuristic,
    options: &PolicyOptions,
) -> Result<Box<dyn Policy>, SpecError> {
    let PolicyOptions { behaviour, seed, .. } = *options;
    Ok(match heuristic.rule {
        Rule::Isolated => Box::new(Isolated { behaviour }),
        Rule::Proportional => Box::new(Proportional { behaviour }),
        Rule::Fifo => Box::new(Fifo::new(behaviour, seed)),
        Rule::FifoPerf => Box::new(FifoPerf),
        Rule::FifoPacked => {
            let parameters: FifoPackedParameters = document.parameters()?;
            Box::new(FifoPacked::new(FifoPackedParameters { behaviour, ..parameters }))
        }
        Rule::Gandiva => {
            let parameters: GandivaParameters = document.parameters()?;
            Box::new(Gandiva::new(GandivaParameters { behaviour, ..parameters }, seed))
        }
        Rule::AlloX => {
            let parameters: AlloXParameters = document.parameters()?;
            Box::new(AlloX::new(AlloXParameters { behaviour, ..parameters }))
        }
        Rule::Srtf => Box::new(Srtf::new(document.parameters::<ShortestParameters>()?)),
        Rule::Sjf => Box::new(Sjf::new(document.parameters::<ShortestParameters>()?)),
        Rule::Las => Box::new(Las::new(document.parameters::<LasParameters>()?)),
        Rule::Themis => Box::new(Themis::new(document.parameters::<ThemisParameters>()?, seed)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_policy_is_built_under_both_behaviours() {
        let catalog = Catalog::embedded();
        for name in catalog.names() {
            for behaviour in [Behaviour::Corrected, Behaviour::Published] {
                let options = PolicyOptions { behaviour, ..PolicyOptions::default() };
                let inside = catalog.document(name).unwrap().decides_inside_rounds();
                match catalog.ready(name, &options).unwrap() {
                    Ready::Allocating(policy) => assert!(policy.name() == name && !inside),
                    Ready::InRounds(_) => {
                        let error = catalog.build(name, &options).unwrap_err().to_string();
                        let said = format!("policy `{name}` decides inside rounds");
                        assert!(inside && error.starts_with(&said), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_policy_of_ten_lines_is_added_and_used_by_name() {
        let text = "format: apportion/policy-v1\nname: mine\nsummary: mine\nkind: program\n\
                    maximize: min_over_jobs(throughput / isolated_throughput)\n";
        let mut catalog = Catalog::embedded();
        catalog.add(Source::new("mine.yaml", text)).unwrap();
        assert_eq!(catalog.policy("mine").unwrap().name(), "mine");
        let error = catalog.policy("max_min_fairnes").unwrap_err().to_string();
        assert!(error.contains("unknown policy `max_min_fairnes`, expected a file or one of"), "{error}");
    }

    #[test]
    fn options_that_do_not_fit_are_refused() {
        let options = PolicyOptions { refine: Some(Refine::WaterFilling), ..PolicyOptions::default() };
        let error = Catalog::embedded().build("proportional_fairness", &options).unwrap_err();
        assert!(matches!(error, CatalogError::Program { .. }), "{error}");
        let options = PolicyOptions { backend: Some("abacus".to_owned()), ..PolicyOptions::default() };
        assert!(Catalog::embedded().build("max_min_fairness", &options).is_err());
    }
}
