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
use crate::spec::policy::{self as file, EMBEDDED, Heuristic, Plugged, PolicyReference, Rule};
use crate::spec::run::sha256;
use crate::spec::{Fidelity, PolicyDocument, PolicyKind, Source, SpecError};

/// Options of a policy that its file does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyOptions {
    /// Whether published oddities are kept: of rules, and of programs as [`ProgramOptions::fidelity`] says.
    pub fidelity: Fidelity,
    /// Seed of the rules that draw random numbers.
    pub seed: u64,
    /// Refinement (which of several optima), in place of the file's choice; rules ignore it.
    pub refine: Option<Refine>,
    /// Name of the solver backend to try first.
    pub backend: Option<String>,
    /// The strategy of every decision, in place of the one that suits each problem; rules ignore it.
    pub strategy: Option<Strategy>,
    /// Wall time of a decision after which no further program is begun; rules ignore it.
    pub time_limit: Option<Duration>,
    /// Signal that breaks off a decision, which then ends in an error; rules ignore it.
    pub interrupt: Interrupt,
}

/// Reason why a policy cannot be found or built.
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
        /// Reason why the file and the options do not fit.
        source: ProgramPolicyError,
    },
    /// The policy decides inside rounds, but an allocation is asked for.
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
        /// Reason in words.
        reason: String,
    },
}

/// A policy, by how it decides.
#[derive(Debug)]
pub enum Ready {
    /// By allocations, which the mechanism turns into rounds.
    Allocating(Box<dyn Policy>),
    /// By placing jobs on concrete workers inside rounds.
    InRounds(Box<dyn RoundPolicy>),
}

/// A plug-in: a kind of policies that the engine does not know, with the value of `kind:` in its documents and the way to build
/// them.
///
/// The published learned schedulers are one, in a crate of their own; `examples/plugin` is a small one.
pub trait Plugin: fmt::Debug + Send + Sync {
    /// The value of `kind:`.
    fn kind(&self) -> &'static str;

    /// Documents that ship with the plug-in, by name.
    fn documents(&self) -> &'static [Embedded] {
        &[]
    }

    /// Checks the fields that only this kind has, by [`PolicyDocument::own_fields`], and returns the properties of the policy
    /// that are known before it is built. `kind` of the answer is [`kind`](Self::kind).
    ///
    /// # Errors
    /// If a field is wrong, with its place in the document.
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

    /// This catalog with one more plug-in, in place of a plug-in of the same kind.
    #[must_use]
    pub fn with(mut self, plugin: impl Plugin + 'static) -> Self {
        self.plugins.retain(|other| other.kind() != plugin.kind());
        self.plugins.push(Arc::new(plugin));
        self
    }

    /// Adds a policy from its file's text, in place of an added policy of the same name.
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

    /// The document of a policy: added, shipped, or the file at this path; with the parameters that stand behind its name, as in
    /// `completion_rate:exponent=0.75`.
    ///
    /// # Errors
    /// If there is none, with the names there are and the nearest; or if it is not a policy of a known kind, or has no such
    /// parameters.
    pub fn document(&self, name_or_path: &str) -> Result<PolicyDocument, SpecError> {
        let reference = PolicyReference::new(name_or_path);
        if !reference.has_parameters() || self.added.contains_key(name_or_path) {
            return self.as_written(name_or_path);
        }
        self.known(self.as_written(reference.policy)?.with_parameters(&reference)?)
    }

    /// The document of a policy with its own parameters.
    fn as_written(&self, name_or_path: &str) -> Result<PolicyDocument, SpecError> {
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
        self.known(PolicyDocument::read(source)?)
    }

    /// The document after its plug-in, if it has one, has checked its fields.
    fn known(&self, mut document: PolicyDocument) -> Result<PolicyDocument, SpecError> {
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

    /// SHA-256 of a policy's inputs beside the engine itself: its document's text, the parameters that stand behind its
    /// name, and its plug-in's data.
    ///
    /// # Errors
    /// If there is no such policy, or its data cannot be read.
    pub fn digest(&self, name_or_path: &str) -> Result<String, SpecError> {
        let document = self.document(name_or_path)?;
        let text = document.digest();
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

    /// A policy ready to decide, by allocations or inside rounds.
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

/// Whether something is at this path that is neither a file nor a folder, such as a pipe.
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

/// The error of a file and options that do not fit together, with its place where the file alone is at fault.
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
        if document.set.contains_key(field) {
            return SpecError::about(document.name.as_str(), message, None);
        }
        document.source.error_at(&format!("parameters.{field}"), message, None)
    };
    parameters.check().map_err(wrong)?;
    Ok(parameters)
}

#[cfg(test)]
mod tests;
