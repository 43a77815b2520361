//! The learned schedulers as policies of a catalog.
//!
//! ```
//! use apportion_published::plugin;
//!
//! let catalog = plugin::catalog();
//! assert_eq!(catalog.policy("learned_values")?.name(), "learned_values");
//! # Ok::<(), apportion::CatalogError>(())
//! ```

use apportion::catalog::{Catalog, CatalogError, Plugin, PolicyOptions, Ready};
use apportion::policy::RoundPolicy;
use apportion::spec::lookup::Embedded;
use apportion::spec::nearest::name_list;
use apportion::spec::policy::{Colocation, Plugged};
use apportion::spec::{Diagnostic, PolicyDocument, SpecError};
use apportion_learn::actor::Choice;
use apportion_learn::trained::{Trained, TrainedError};

use crate::document::{ActorName, AskedName, ChoiceName, Learned};
use crate::elastic::{Dl2Network, ElasticDecider, ElasticNetwork, ElasticRounds};
use crate::floor::Floored;
use crate::gangs::{
    Asked, ByValues, Decider, GangPolicy, ObservationKind, Rule as GangRule, Sequential, Weighing,
    read_scorer, read_window,
};
use crate::rounds::{ActionSchemeName, LearnedRounds, read_decider, uniform};
use crate::weights::load_weights;

/// The learned policies that ship with the program.
pub const EMBEDDED: [Embedded; 15] = [
    ("completion_rate", include_str!("../../../policies/completion_rate.yaml")),
    ("completion_rate_packed", include_str!("../../../policies/completion_rate_packed.yaml")),
    ("deepshare", include_str!("../../../policies/deepshare.yaml")),
    ("dl2", include_str!("../../../policies/dl2.yaml")),
    ("dual_agent", include_str!("../../../policies/dual_agent.yaml")),
    ("elastic", include_str!("../../../policies/elastic.yaml")),
    ("elastic_optimus", include_str!("../../../policies/elastic_optimus.yaml")),
    ("learned_pairs", include_str!("../../../policies/learned_pairs.yaml")),
    ("learned_values", include_str!("../../../policies/learned_values.yaml")),
    ("learned_values_packed", include_str!("../../../policies/learned_values_packed.yaml")),
    ("least_service_gangs", include_str!("../../../policies/least_service_gangs.yaml")),
    ("random_agents", include_str!("../../../policies/random_agents.yaml")),
    ("random_cells", include_str!("../../../policies/random_cells.yaml")),
    ("random_gangs", include_str!("../../../policies/random_gangs.yaml")),
    ("random_gangs_busy", include_str!("../../../policies/random_gangs_busy.yaml")),
];

/// The catalog of the engine's policies and the learned policies.
pub fn catalog() -> Catalog {
    Catalog::embedded().with(LearnedPolicies)
}

/// Policies of `kind: learned`.
#[derive(Clone, Copy, Debug, Default)]
pub struct LearnedPolicies;

impl Plugin for LearnedPolicies {
    fn kind(&self) -> &'static str {
        "learned"
    }

    fn documents(&self) -> &'static [Embedded] {
        &EMBEDDED
    }

    fn read(&self, document: &PolicyDocument) -> Result<Plugged, SpecError> {
        let learned = Learned::read(document)?;
        Ok(Plugged {
            kind: self.kind().to_owned(),
            inside_rounds: learned.actor.decides_inside_rounds(),
            pairs: learned.colocation == Colocation::Pairs,
        })
    }

    fn data(&self, document: &PolicyDocument) -> Result<Option<Vec<u8>>, SpecError> {
        Learned::read(document)?.weights.map(|weights| weights_of(document, &weights)).transpose()
    }

    fn build(
        &self,
        _catalog: &Catalog,
        document: &PolicyDocument,
        options: &PolicyOptions,
    ) -> Result<Ready, CatalogError> {
        let learned = Learned::read(document)?;
        if matches!(learned.actor, ActorName::Elastic | ActorName::Dl2) {
            let policy = Box::new(elastic_policy(document, &learned, options)?);
            return Ok(Ready::InRounds(floored(policy, &learned)));
        }
        Ok(match scheme_of(learned.actor) {
            Some(scheme) => {
                Ready::InRounds(floored(round_policy(document, &learned, scheme, options)?, &learned))
            }
            None => Ready::Allocating(Box::new(gang_policy(document, &learned, options)?)),
        })
    }
}

/// A policy inside rounds with its floor, if it has one.
fn floored(policy: Box<dyn RoundPolicy>, learned: &Learned) -> Box<dyn RoundPolicy> {
    match learned.floor {
        Some(floor) => Box::new(Floored::new(policy, floor)),
        None => policy,
    }
}

/// The action scheme of `actor: agents` and `actor: cells`; none for other actors.
fn scheme_of(actor: ActorName) -> Option<ActionSchemeName> {
    match actor {
        ActorName::Agents => Some(ActionSchemeName::Agents),
        ActorName::Cells => Some(ActionSchemeName::Cells),
        _ => None,
    }
}

/// The bytes of a policy's weights; an error is at the field of the document that names them.
fn weights_of(document: &PolicyDocument, weights: &str) -> Result<Vec<u8>, SpecError> {
    load_weights(weights).map_err(|error| {
        let Some(Diagnostic { source, message, help, .. }) = error.diagnostics.first() else { return error };
        let of_file = if source.is_empty() { String::new() } else { format!("{source}: ") };
        document.source.error_at_key("weights", format!("{of_file}{message}"), help.clone())
    })
}

/// The network in a policy's weights.
fn trained(document: &PolicyDocument, learned: &Learned) -> Result<Trained, CatalogError> {
    let weights = learned.weights.clone().unwrap_or_default();
    let bytes = weights_of(document, &weights)?;
    let found = Trained::read(&weights, &bytes).map_err(|error| at_fault(document, learned, &error))?;
    let (of, fits) = (found.spec()["system"].as_str(), learned.actor.systems());
    if let Some(of) = of.filter(|of| !fits.contains(of)) {
        let fits = name_list(fits.iter().copied());
        let reason = format!("they are of `system: {of}`, and this actor's are of {fits}");
        return Err(unfit(document, learned, &reason));
    }
    Ok(found)
}

fn at_fault(document: &PolicyDocument, learned: &Learned, error: &TrainedError) -> CatalogError {
    unfit(document, learned, &error.to_string())
}

/// The error of weights that a policy cannot use, at the field of the document that names them.
fn unfit(document: &PolicyDocument, learned: &Learned, reason: &str) -> CatalogError {
    let weights = learned.weights.as_deref().unwrap_or_default();
    let message = format!("policy `{}`: weights `{weights}`: {reason}", document.name);
    let fits = name_list(learned.actor.systems().iter().copied());
    let help = format!("give weights of the system {fits}, as `apportion train` keeps them");
    document.source.error_at("weights", message, Some(help)).into()
}

fn choice(learned: &Learned) -> Choice {
    match learned.choice {
        ChoiceName::MostProbable => Choice::MostProbable,
        ChoiceName::Sampled => Choice::Sampled,
    }
}

/// A learned policy that decides inside rounds; without weights, it acts uniformly at random.
fn round_policy(
    document: &PolicyDocument,
    learned: &Learned,
    scheme: ActionSchemeName,
    options: &PolicyOptions,
) -> Result<Box<dyn RoundPolicy>, CatalogError> {
    let ((actor, scheme), choice) = if learned.weights.is_some() {
        let found = read_decider(&trained(document, learned)?, scheme);
        (found.map_err(|error| at_fault(document, learned, &error))?, choice(learned))
    } else {
        (uniform(scheme), Choice::Sampled)
    };
    Ok(Box::new(LearnedRounds::new(&document.name, scheme, actor, choice, options.seed)))
}

/// A policy that resizes jobs, by its rule or its weights.
fn elastic_policy(
    document: &PolicyDocument,
    learned: &Learned,
    options: &PolicyOptions,
) -> Result<ElasticRounds, CatalogError> {
    let decider = if let Some(rule) = learned.rule {
        ElasticDecider::Rule(rule.into())
    } else {
        let trained = trained(document, learned)?;
        let found = match learned.actor {
            ActorName::Dl2 => Dl2Network::read(&trained, &learned.job_types).map(ElasticNetwork::Dl2),
            _ => ElasticNetwork::read(&trained),
        };
        let network = found.map_err(|error| at_fault(document, learned, &error))?;
        ElasticDecider::Network(network, choice(learned))
    };
    Ok(ElasticRounds::new(&document.name, decider, options.seed))
}

/// A policy that decides gang by gang or by values: learned, with its weights, or a control.
fn gang_policy(
    document: &PolicyDocument,
    learned: &Learned,
    options: &PolicyOptions,
) -> Result<GangPolicy, CatalogError> {
    let policy = || document.name.clone();
    let at_fault = |error: TrainedError| at_fault(document, learned, &error);
    let trained = || trained(document, learned);
    let choice = choice(learned);
    let decider = match learned.actor {
        ActorName::Window => {
            let (actor, observation_kind) = read_window(&trained()?).map_err(at_fault)?;
            Decider::Sequential(Sequential { actor, observation_kind, choice })
        }
        ActorName::Pairs => {
            let actor = read_scorer(&trained()?).map_err(at_fault)?;
            Decider::Sequential(Sequential {
                actor,
                observation_kind: ObservationKind::Pairs { n_slots: None },
                choice,
            })
        }
        ActorName::Values => {
            let scorer = match &learned.weights {
                Some(_) => Some(read_scorer(&trained()?).map_err(at_fault)?),
                None => None,
            };
            let pairs = learned.colocation == Colocation::Pairs;
            let weighing = Weighing { pairs, floor: learned.floor, exponent: learned.exponent };
            let values = ByValues::new(&document.name, scorer, weighing, options);
            let values = values.map_err(|source| CatalogError::Program { policy: policy(), source })?;
            Decider::Values(Box::new(values))
        }
        ActorName::Uniform => Decider::Rule(GangRule::Uniform),
        ActorName::UniformBusy => Decider::Rule(GangRule::UniformBusy),
        ActorName::LeastService => Decider::Rule(GangRule::LeastService),
        ActorName::Agents | ActorName::Cells | ActorName::Elastic | ActorName::Dl2 => {
            return Err(CatalogError::InRounds { policy: policy() });
        }
    };
    let asked = match learned.asked {
        AskedName::Events => Asked::Events,
        AskedName::Rounds => Asked::Rounds,
    };
    let policy = GangPolicy::new(&document.name, decider, asked, options.seed);
    // The program of values keeps its floor itself.
    Ok(match learned.floor.filter(|_| learned.actor != ActorName::Values) {
        Some(floor) => policy.with_floor(floor),
        None => policy,
    })
}

#[cfg(test)]
mod tests {
    use apportion::spec::Source;

    use super::*;

    #[test]
    fn every_learned_policy_of_the_folder_is_shipped() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies");
        let is_learned = |path: &std::path::PathBuf| {
            path.extension().is_some_and(|ending| ending == "yaml")
                && std::fs::read_to_string(path).unwrap().contains("\nkind: learned\n")
        };
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(is_learned);
        let mut names: Vec<String> =
            files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        names.sort();
        assert_eq!(names, EMBEDDED.map(|(name, _)| name));
    }

    #[test]
    fn weights_of_another_system_are_refused() {
        for (actor, weights, expected) in [
            ("values", "elastic", "of `system: elastic`, and this actor's are of `gangs`"),
            ("elastic", "learned_values", "of `system: gangs`, and this actor's are of `elastic`"),
            ("agents", "dual_agent_joint", "of `system: dual_agent`, and this actor's are of `rounds`"),
        ] {
            let text = format!(
                "format: apportion/policy-v1\nname: mine\nsummary: mine\nkind: learned\nactor: {actor}\nweights: {weights}\n"
            );
            let mut catalog = catalog();
            catalog.add(Source::new("mine.yaml", text)).unwrap();
            let error = catalog.ready("mine", &PolicyOptions::default()).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("mine.yaml:6:10"), "{error}");
        }
    }

    #[test]
    fn every_policy_is_built_at_either_fidelity() {
        use apportion::spec::Fidelity;
        let catalog = catalog();
        for name in catalog.names() {
            for fidelity in [Fidelity::Corrected, Fidelity::Published] {
                let options = PolicyOptions { fidelity, ..PolicyOptions::default() };
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
    fn fields_that_do_not_fit_together_are_refused_at_their_place() {
        let head = "format: apportion/policy-v1\nname: mine\nsummary: mine\nkind: learned\n";
        for (body, line, message) in [
            ("", 4, "a learned policy needs `actor`"),
            ("actor: pairs\n", 5, "this actor needs `weights`"),
            ("actor: uniform\nweights: x\n", 6, "would ignore `weights`"),
            ("actor: uniform\ncolocation: pairs\n", 6, "places one job at a time, alone"),
            ("actor: uniform\nfloor: -0.5\n", 6, "`floor` is not from 0 to 1"),
            ("actor: values\nfloor: 1.5\n", 6, "`floor` is not from 0 to 1"),
            ("actor: values\nexponent: 3\n", 6, "`exponent` is 3, expected a number from -2 to 2"),
            ("actor: values\nexponent: .nan\n", 6, "`exponent` is NaN, expected a number from -2 to 2"),
            ("actor: uniform\nexponent: 0.5\n", 6, "this actor has no exponent"),
            ("actor: uniform\nrefine: none\n", 6, "unknown key `refine`"),
            ("actor: elastic\n", 5, "this actor needs `rule` or `weights`"),
            ("actor: elastic\nweights: elastic\nrule: fifo\n", 7, "the rule would ignore `weights`"),
            ("actor: uniform\nrule: fifo\n", 6, "this actor has no rule"),
            ("actor: elastic\nrule: fifi\n", 6, "unknown name `fifi`"),
            ("actor: dl2\nweights: dl2_world\n", 5, "this actor needs `job_types`"),
            ("actor: dl2\njob_types: {}\n", 5, "this actor needs `weights`"),
            (
                "actor: dl2\nweights: dl2_world\njob_types:\n  LM: seqseq\n",
                8,
                "`seqseq` is no job type of DL2's",
            ),
            ("actor: pairs\nweights: x\njob_types: {}\n", 7, "would ignore `job_types`"),
            ("actor: unifrom\n", 5, "unknown name `unifrom`"),
        ] {
            let source = Source::new("mine.yaml", format!("{head}{body}"));
            let found = catalog().read(source).expect_err(body).diagnostics.remove(0);
            assert!(found.message.contains(message), "{body}: {}", found.message);
            assert_eq!(found.line, line, "{body}: {found:?}");
        }
    }

    #[test]
    fn an_exponent_decides_which_of_two_jobs_is_served() {
        use apportion::index::{Id, JobId};
        use apportion::problem::{ActiveJob, ProblemBuilder};
        use apportion::units::Steps;
        // One worker, and two jobs of 1 step/s with one hour and four hours left. All of the worker's time is worth 1 job an hour ·
        // 1
        // to the first, and 1/4 · 4^exponent to the second: 1/4 by exponent 0, 4 by exponent 2.
        for (policy, first) in [
            ("completion_rate:floor=0", 1.0),
            ("completion_rate:exponent=2:floor=0", 0.0),
            ("completion_rate_packed:exponent=0.75:floor=0", 1.0),
            ("completion_rate_packed:exponent=1.25:floor=0", 0.0),
        ] {
            let mut builder = ProblemBuilder::new(std::sync::Arc::new("a=1".parse().unwrap()));
            for (id, hours) in [1.0, 4.0].into_iter().enumerate() {
                let steps_remaining = Steps::new(hours * 3600.0);
                builder.job(ActiveJob { steps_remaining, ..ActiveJob::new(JobId::from_index(id)) }, &[1.0]);
            }
            let mut built = catalog().policy(policy).unwrap();
            assert_eq!(built.name(), policy);
            let decided = built.allocate(&builder.build().unwrap()).unwrap();
            let throughput: Vec<f64> = decided.allocation.effective_throughput().iter().copied().collect();
            let is_near = |found: f64, expected: f64| (found - expected).abs() < 1e-6;
            assert!(
                is_near(throughput[0], first) && is_near(throughput[1], 1.0 - first),
                "{policy}: {throughput:?}"
            );
        }
    }

    #[test]
    fn fields_of_a_learned_policy_are_set_where_it_is_named() {
        let catalog = catalog();
        let digest = |name: &str| catalog.digest(name).unwrap();
        assert_ne!(digest("completion_rate:exponent=0.5"), digest("completion_rate:exponent=0.75"));
        assert!(catalog.policy("learned_values:floor=0.25:choice=sampled").is_ok());
        assert!(catalog.document("completion_rate:colocation=pairs").unwrap().pairs());
        for (name, expected) in [
            (
                "completion_rate:exponent=3",
                "completion_rate:exponent=3: `exponent` is 3, expected a number from -2 to 2",
            ),
            ("completion_rate:exponnet=1", "unknown key `exponnet`, expected one of `actor`"),
            ("completion_rate:exponent=much", "`exponent` is the text \"much\", expected a number"),
            ("dl2:exponent=1", "dl2:exponent=1: this actor has no exponent"),
            ("completion_rate:name=mine", "unknown key `name`"),
        ] {
            let error = catalog.document(name).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}\nlacks {expected}");
        }
    }
}
