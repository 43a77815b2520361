//! Name → policy: the one place where programs, heuristics and the policies of plug-ins meet.
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
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::policy::heuristic::{
    AlloX, AlloXParameters, Fifo, FifoPacked, FifoPackedParameters, FifoPerf, Gandiva, GandivaParameters,
    Isolated, Las, LasParameters, Parameters, Proportional, ShortestParameters, Sjf, Srtf, Themis,
    ThemisParameters,
};
use crate::policy::objective::objective_of;
use crate::policy::program::ProgramPolicyError;
use crate::policy::{Policy, ProgramOptions, ProgramPolicy, Refine, RoundPolicy, Strategy, ThroughputView};
use crate::solver::Interrupt;
use crate::spec::lookup::Embedded;
use crate::spec::policy::{self as file, EMBEDDED, Heuristic, Plugged, Rule};
use crate::spec::run::sha256;
use crate::spec::{Fidelity, PolicyDocument, PolicyKind, Source, SpecError};

/// What a run may ask of a policy beyond its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyOptions {
    /// Whether published oddities are kept: of rules, and of programs as [`ProgramOptions::fidelity`] says.
    pub fidelity: Fidelity,
    /// Seed of the rules that draw.
    pub seed: u64,
    /// Which optimum, in place of the file's choice; rules have none.
    pub refine: Option<Refine>,
    /// A backend to try first.
    pub backend: Option<String>,
    /// The strategy of every decision, in place of the one that suits each problem; rules have none.
    pub strategy: Option<Strategy>,
    /// Wall time of a decision after which no further program is begun; rules need none.
    pub time_limit: Option<Duration>,
    /// What breaks off a decision, which is then an error; rules are not broken off.
    pub interrupt: Interrupt,
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
        "policy `{policy}` decides inside rounds, on concrete workers, and gives no allocation: use it with `simulate`, `sweep` \
         or `serve`"
    )]
    InRounds {
        /// The policy.
        policy: String,
    },
    /// A plug-in cannot make the policy.
    #[error("policy `{policy}`: {reason}")]
    Plugin {
        /// The policy.
        policy: String,
        /// Why not.
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

/// A kind of policies that the engine does not know: the value of `kind:` in its documents, and how they decide.
///
/// The published learned schedulers are one, in a crate of their own; `examples/plugin` is one of sixty lines.
pub trait Plugin: fmt::Debug + Send + Sync {
    /// The value of `kind:`.
    fn kind(&self) -> &'static str;

    /// Documents that ship with the plug-in, by name.
    fn documents(&self) -> &'static [Embedded] {
        &[]
    }

    /// Checks the fields that only this kind has, by [`PolicyDocument::own_fields`], and says what is known of the policy
    /// before it is built. `kind` of the answer is [`kind`](Self::kind).
    ///
    /// # Errors
    /// With the place of what does not fit.
    fn read(&self, document: &PolicyDocument) -> Result<Plugged, SpecError>;

    /// The bytes beside the document that decisions depend on, such as weights: results are kept under their digest.
    ///
    /// # Errors
    /// If they cannot be read.
    fn data(&self, document: &PolicyDocument) -> Result<Option<Vec<u8>>, SpecError> {
        let _ = document;
        Ok(None)
    }

    /// The policy, ready to decide. `catalog` is the one that asks.
    ///
    /// # Errors
    /// If the document and the options do not fit together.
    fn build(
        &self,
        catalog: &Catalog,
        document: &PolicyDocument,
        options: &PolicyOptions,
    ) -> Result<Ready, CatalogError>;
}

/// Policies by name: those of the engine, those of plug-ins, and files added to them.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    added: BTreeMap<String, PolicyDocument>,
    plugins: Vec<Arc<dyn Plugin>>,
    /// Documents of pipes and the like, which can be read only once, by path.
    piped: Arc<Mutex<BTreeMap<String, PolicyDocument>>>,
}

impl Catalog {
    /// The engine's own policies: programs and heuristics.
    pub fn embedded() -> Self {
        Self::default()
    }

    /// This catalog, and policies of one more kind; a plug-in of the same kind takes the place of the other.
    #[must_use]
    pub fn with(mut self, plugin: impl Plugin + 'static) -> Self {
        self.plugins.retain(|other| other.kind() != plugin.kind());
        self.plugins.push(Arc::new(plugin));
        self
    }

    /// Adds a policy file's text; one of the same name takes the place of the other.
    ///
    /// # Errors
    /// If the text is not a policy.
    pub fn add(&mut self, source: Source) -> Result<&mut Self, SpecError> {
        let document = self.read(source)?;
        objective_of(&document)?;
        self.added.insert(document.name.clone(), document);
        Ok(self)
    }

    /// Documents that ship with the engine and the plug-ins, by name, in order.
    pub fn shipped(&self) -> Vec<Embedded> {
        let of_plugins = self.plugins.iter().flat_map(|plugin| plugin.documents());
        let mut all: Vec<Embedded> = EMBEDDED.iter().chain(of_plugins).copied().collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all
    }

    /// Names of all policies, in order.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.shipped().into_iter().map(|(name, _)| name).collect();
        names.extend(self.added.keys().map(String::as_str));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The document of a policy: added, shipped, or the file at this path.
    ///
    /// # Errors
    /// If there is none, with the names there are and the nearest; or if it is not a policy of a known kind.
    pub fn document(&self, name_or_path: &str) -> Result<PolicyDocument, SpecError> {
        if let Some(document) = self.added.get(name_or_path) {
            return Ok(document.clone());
        }
        let read = || self.read(Source::find("policy", name_or_path, &self.shipped())?);
        if !is_pipe(Path::new(name_or_path)) {
            return read();
        }
        let mut piped = self.piped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(document) = piped.get(name_or_path) {
            return Ok(document.clone());
        }
        let document = read()?;
        piped.insert(name_or_path.to_owned(), document.clone());
        Ok(document)
    }

    /// A document, read by the plug-in of its kind where the engine does not know it.
    ///
    /// # Errors
    /// If it is not a policy of a known kind.
    pub fn read(&self, source: Source) -> Result<PolicyDocument, SpecError> {
        let mut document = PolicyDocument::read(source)?;
        if let PolicyKind::Plugin(Plugged { kind, .. }) = &document.kind {
            let Some(plugin) = self.plugin(kind) else {
                let mut known = vec!["program", "heuristic"];
                known.extend(self.plugins.iter().map(|plugin| plugin.kind()));
                return Err(document.source.unknown_name("kind", "kind of policy", kind, known));
            };
            document.kind = PolicyKind::Plugin(plugin.read(&document)?);
        }
        Ok(document)
    }

    fn plugin(&self, kind: &str) -> Option<&dyn Plugin> {
        self.plugins.iter().find(|plugin| plugin.kind() == kind).map(|plugin| &**plugin)
    }

    /// SHA-256 of what a policy's decisions depend on beside the program: its document's text, and its plug-in's data.
    ///
    /// # Errors
    /// If there is no such policy, or its data cannot be read.
    pub fn digest(&self, name_or_path: &str) -> Result<String, SpecError> {
        let document = self.document(name_or_path)?;
        let text = sha256(document.source.text.as_bytes());
        let data = match self.plugin(document.kind_name()) {
            Some(plugin) => plugin.data(&document)?,
            None => None,
        };
        Ok(match data {
            Some(data) => sha256(format!("{text}{}", sha256(&data)).as_bytes()),
            None => text,
        })
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
        match self.ready_of(&document, options)? {
            Ready::Allocating(policy) => Ok(policy),
            Ready::InRounds(_) => Err(CatalogError::InRounds { policy: document.name }),
        }
    }

    /// A policy ready to decide, in whichever way it does.
    ///
    /// # Errors
    /// If there is none of this name, its file is wrong, or the options do not fit it.
    pub fn ready(&self, name_or_path: &str, options: &PolicyOptions) -> Result<Ready, CatalogError> {
        self.ready_of(&self.document(name_or_path)?, options)
    }

    fn ready_of(&self, document: &PolicyDocument, options: &PolicyOptions) -> Result<Ready, CatalogError> {
        match &document.kind {
            PolicyKind::Heuristic(heuristic) => Ok(Ready::Allocating(rule(document, heuristic, options)?)),
            PolicyKind::Program(program) => {
                Ok(Ready::Allocating(Box::new(program_policy(document, program, options)?)))
            }
            PolicyKind::Plugin(plugged) => match self.plugin(&plugged.kind) {
                Some(plugin) => plugin.build(self, document, options),
                None => Err(CatalogError::Plugin {
                    policy: document.name.clone(),
                    reason: format!("no plug-in of this catalog makes policies of `kind: {}`", plugged.kind),
                }),
            },
        }
    }

    /// The policy as a program, with all that a program can do; `None` for rules and plug-ins.
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
            PolicyKind::Heuristic(_) | PolicyKind::Plugin(_) => Ok(None),
            PolicyKind::Program(program) => program_policy(&document, program, options).map(Some),
        }
    }
}

/// Is it at this path, and neither a file nor a folder?
fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir())
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
        view: view(&program.view, options.fidelity),
        pairs: program.colocation == file::Colocation::Pairs,
        refine: options.refine.unwrap_or_else(|| refine(program.refine)),
        hierarchical: program.hierarchical,
        discounted: program.discounted,
        fidelity: options.fidelity,
        backend: options.backend.clone(),
        strategy: options.strategy,
        time_limit: options.time_limit,
        interrupt: options.interrupt.clone(),
    });
    policy.map_err(|source| misfit(document, source))
}

/// What does not fit together; at its place, where the policy's file alone is at fault.
fn misfit(document: &PolicyDocument, source: ProgramPolicyError) -> CatalogError {
    let field = match source {
        ProgramPolicyError::NotHierarchical => "hierarchical",
        ProgramPolicyError::NotDiscountable => "discounted",
        _ => return CatalogError::Program { policy: document.name.clone(), source },
    };
    document.source.error_at(field, source.to_string(), None).into()
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

fn view(written: &file::View, fidelity: Fidelity) -> ThroughputView {
    let everywhere = fidelity == Fidelity::Published;
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
    let PolicyOptions { fidelity, seed, .. } = *options;
    Ok(match heuristic.rule {
        Rule::Isolated => Box::new(Isolated { fidelity }),
        Rule::Proportional => Box::new(Proportional { fidelity }),
        Rule::Fifo => Box::new(Fifo::new(fidelity, seed)),
        Rule::FifoPerf => Box::new(FifoPerf),
        Rule::FifoPacked => {
            let parameters: FifoPackedParameters = parameters(document)?;
            Box::new(FifoPacked::new(FifoPackedParameters { fidelity, ..parameters }))
        }
        Rule::Gandiva => {
            let parameters: GandivaParameters = parameters(document)?;
            Box::new(Gandiva::new(GandivaParameters { fidelity, ..parameters }, seed))
        }
        Rule::AlloX => {
            let parameters: AlloXParameters = parameters(document)?;
            Box::new(AlloX::new(AlloXParameters { fidelity, ..parameters }))
        }
        Rule::Srtf => Box::new(Srtf::new(parameters::<ShortestParameters>(document)?)),
        Rule::Sjf => Box::new(Sjf::new(parameters::<ShortestParameters>(document)?)),
        Rule::Las => Box::new(Las::new(parameters::<LasParameters>(document)?)),
        Rule::Themis => Box::new(Themis::new(parameters::<ThemisParameters>(document)?, seed)),
    })
}

/// The parameters of a rule, each within its range.
fn parameters<T: Parameters + DeserializeOwned + Default>(document: &PolicyDocument) -> Result<T, SpecError> {
    let parameters: T = document.parameters()?;
    let wrong = |(field, message): (&str, String)| {
        document.source.error_at(&format!("parameters.{field}"), message, None)
    };
    parameters.check().map_err(wrong)?;
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_out_of_their_range_are_refused_at_their_place() {
        for (rule, parameters, expected) in [
            ("allox", "alpha: 0", "6:21: `alpha` is 0.0, expected a number above 0, at most 1"),
            ("allox", "alpha: 1.5", "6:21: `alpha` is 1.5"),
            ("allox", "fidelity: published", "6:14: unknown key `fidelity`, expected `alpha`"),
            ("gandiva", "behaviour: published", "6:14: unknown key `behaviour`"),
            ("fifo_packed", "threshold: -1", "6:25: `threshold` is -1.0, expected a number from 0 to 100"),
            ("gandiva", "threshold: .inf", "6:25: `threshold` is inf"),
            ("las", "thresholds: [10, 5]", "6:26: `thresholds` is [10.0, 5.0], expected numbers"),
            ("las", "thresholds: [0, 5]", "6:26: `thresholds` is [0.0, 5.0]"),
            ("las", "promote_after: 0", "6:29: `promote_after` is 0.0, expected a number above 0, or null"),
            ("themis", "fairness: 7", "6:24: `fairness` is 7.0, expected a number from 0 to 1"),
            ("themis", "lease_s: .nan", "6:23: `lease_s` is NaN, expected a number of seconds above 0"),
            ("srtf", "measure: yards", "6:23: unknown name `yards`"),
            ("fifo", "alpha: 1", "6:1: this rule has no parameters"),
        ] {
            let text = format!(
                "format: apportion/policy-v1\nname: p\nsummary: s\nkind: heuristic\nrule: {rule}\n\
                 parameters: {{{parameters}}}\n"
            );
            let mut catalog = Catalog::embedded();
            let added = catalog.add(Source::new("p", text)).map(|_| ());
            let error = match added {
                Ok(()) => catalog.policy("p").unwrap_err().to_string(),
                Err(error) => error.to_string(),
            };
            assert!(error.contains(&format!("p:{expected}")), "{error}\nlacks {expected}");
        }
    }

    #[test]
    fn every_shipped_policy_is_built_at_either_fidelity() {
        let catalog = Catalog::embedded();
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
        let text = "format: apportion/policy-v1\nname: soft\nsummary: s\nkind: program\n\
                    maximize: min_over_jobs(throughput / isolated_throughput)\n\
                    constraints: [{constraint: sum_over_jobs(time_on(a)) <= 2, soft: 1}]\n";
        let mut catalog = Catalog::embedded();
        catalog.add(Source::new("soft.yaml", text)).unwrap();
        assert!(catalog.policy("soft").is_ok());
        let error = catalog.build("soft", &options).unwrap_err().to_string();
        assert!(error.contains("no constraint can be soft: use `min_over_jobs`"), "{error}");
        let options = PolicyOptions { backend: Some("abacus".to_owned()), ..PolicyOptions::default() };
        assert!(Catalog::embedded().build("max_min_fairness", &options).is_err());
    }
}
