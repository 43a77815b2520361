//! Inputs of runs: the data that specs name, read once, shared, and checked against each other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::sweep::checks::{check_gangs, check_jobs, check_prices, check_trace, refused};
use crate::sweep::options;
use crate::sweep::run_error::RunError;
use crate::sweep::saturation::{self, Capacity};
use apportion::catalog::Catalog;
use apportion::cluster::Cluster;
use apportion::policy::naming::check_worker_types;
use apportion::problem::{Entity, matrix_columns};
use apportion::simulator::{Options, Patience, PriceChange};
use apportion::solver::Interrupt;
use apportion::spec::lookup::Embedded;
use apportion::spec::policy::PolicyReference;
use apportion::spec::price_series::{PriceSeries, read_prices};
use apportion::spec::run::{GeneratorName, PricesSpec, RunSpec, sha256};
use apportion::spec::throughputs::{load_throughputs, throughputs_of};
use apportion::spec::trace::{TraceOrder, line_of, read_trace};
use apportion::spec::{
    PolicyDocument, Source, SpecError, path_text, policy, price_series, throughputs, trace,
};
use apportion::throughput::{Estimator, Throughputs};
use apportion::units::Seconds;
use apportion::workload::{
    Arrivals, Gavel, GeneratorError, Job, JobTable, Listed, MixShare, Native, WorkloadOptions,
};

/// A run with all its data.
#[derive(Debug, Clone)]
pub struct Run {
    /// Spec of the run.
    pub spec: RunSpec,
    /// Digest that identifies the run.
    pub digest: String,
    /// Digests of its data by `policy`, `throughputs`, `trace`, `prices`.
    pub data: BTreeMap<String, String>,
    /// Cluster, with worker types in the order of the throughputs.
    pub cluster: Cluster,
    /// Throughput matrix.
    pub throughputs: Arc<Throughputs>,
    /// Options of the simulator.
    pub options: Options,
    /// Whether the policy can let jobs share workers.
    pub pairs: bool,
    /// First arrival of the trace, in its own time. The simulation counts from it, so that a trace of clock times gives the
    /// same numbers as one that starts at 0.
    pub origin: Seconds,
    /// Catalog that has the policy.
    pub(super) catalog: Arc<Catalog>,
    /// Name of the policy, or its path relative to the working directory.
    pub(super) policy: String,
    /// Jobs of a trace; none for a generator.
    pub(super) trace: Option<Arc<[Job]>>,
    /// Long-run shares of the kinds of jobs that a generator draws; empty for a trace.
    pub(super) mix: Vec<MixShare>,
}

impl Run {
    /// Arrivals of the run's jobs, from the first.
    ///
    /// # Errors
    /// Never, for a run that was loaded, as the generator only repeats its checks.
    pub fn arrivals(&self) -> Result<Box<dyn Arrivals>, RunError> {
        if let Some(trace) = &self.trace {
            let since = |job: &Job| job.clone().arrival(job.arrival - self.origin);
            return Ok(Box::new(Listed::new(trace.iter().map(since).collect())));
        }
        generator(&self.spec, &self.throughputs).map(Generator::into_arrivals)
    }

    /// Job types and scale factors of its jobs; for a trace, one entry per job.
    pub(super) fn kinds(&self) -> Vec<(&str, u32)> {
        let listed = self.trace.iter().flat_map(|jobs| jobs.iter());
        let listed = listed.map(|job| (job.job_type.as_str(), job.scale_factor));
        listed.chain(self.mix.iter().map(|share| (share.job_type.as_str(), share.scale_factor))).collect()
    }

    /// Names of the trace's jobs, in order of arrival; empty where jobs are known by their positions.
    pub fn job_names(&self) -> Vec<String> {
        self.trace.iter().flat_map(|jobs| jobs.iter()).map_while(|job| job.name.clone()).collect()
    }

    /// Number of measured jobs, where it is known beforehand.
    pub fn n_measured(&self) -> Option<u64> {
        let workload = &self.spec.workload;
        let all = self.trace.as_ref().map(|jobs| jobs.len() as u64).or(workload.n_static).or(workload.jobs);
        match self.spec.measure {
            Some([start, end]) => Some(all.map_or(end, |all| all.min(end)).saturating_sub(start)),
            None => all,
        }
    }

    /// Limits after which this run is given up if it makes no progress: where arrivals stop, it ends without counting
    /// doublings.
    pub fn patience(&self, patience: Patience) -> Patience {
        let workload = &self.spec.workload;
        let is_endless = workload.rate.is_some() && workload.jobs.is_none();
        Patience { doublings: patience.doublings.filter(|_| is_endless), ..patience }
    }

    /// Owners of jobs that the run declares.
    pub fn entities(&self) -> Vec<Entity> {
        Entity::all_of(&self.spec.workload.entities)
    }

    /// The largest arrival rate that any policy sustains; none for runs without a rate.
    ///
    /// # Errors
    /// If it could not be computed.
    pub fn capacity(&self) -> Result<Option<Capacity>, saturation::CapacityError> {
        if self.spec.workload.rate.is_none() {
            return Ok(None);
        }
        saturation::capacity(&self.cluster, &self.throughputs, &self.mix, self.pairs).map(Some)
    }

    /// Key of the inputs on which the capacity depends.
    pub fn capacity_key(&self) -> String {
        let workload = &self.spec.workload;
        let mix = (workload.generator, workload.multi_worker, workload.duration);
        format!("{} {} {mix:?} {}", self.cluster, self.data["throughputs"], self.pairs)
    }
}

/// A document's content, with its digest.
type Read<T> = (Arc<T>, String);

/// Cache of the inputs that were read, by name.
#[derive(Debug)]
pub struct Inputs {
    catalog: Arc<Catalog>,
    throughputs: Mutex<BTreeMap<String, Read<Throughputs>>>,
    /// Jobs, by names of trace and throughputs on a line each.
    traces: Mutex<BTreeMap<String, Read<[Job]>>>,
    /// Texts of prices, by path.
    prices: Mutex<BTreeMap<String, Source>>,
    /// Folder of the document that names the inputs; none where the command's user names them.
    folder: Option<PathBuf>,
    /// Texts of traces and throughputs that are not files, by their names in runs.
    given: BTreeMap<String, Source>,
}

impl Inputs {
    /// Inputs of which nothing is read yet, with the policies of a catalog.
    pub fn new(catalog: Catalog) -> Self {
        Self {
            catalog: Arc::new(catalog),
            throughputs: Mutex::default(),
            traces: Mutex::default(),
            prices: Mutex::default(),
            folder: None,
            given: BTreeMap::new(),
        }
    }

    /// These inputs, with the text of a trace or of throughputs for runs that have its name in place of a path.
    #[must_use]
    pub fn with_text(mut self, text: Source) -> Self {
        self.given.insert(text.name.clone(), text);
        self
    }

    /// These inputs, for runs of a document in this folder, from which relative paths start. As the document may be from
    /// elsewhere, errors show nothing of a file that it names, unless the file is of the expected kind.
    #[must_use]
    pub fn of_document_in(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// A name unchanged, or a path relative to the working directory.
    fn place(&self, name_or_path: &str, ships: bool) -> String {
        let Some(folder) = self.folder.as_ref().filter(|_| !ships && name_or_path != "-") else {
            return name_or_path.to_owned();
        };
        let path = folder.join(path_text::to_path(name_or_path));
        if name_or_path.contains(std::path::is_separator) || name_or_path.contains('.') || path.exists() {
            return path_text::of(path);
        }
        name_or_path.to_owned()
    }

    /// An error about a file that a document names: the whole error if the file is of the expected kind, else only that it
    /// is not.
    fn shown(&self, error: SpecError, path: &str, (what, help, is_one): Kind) -> SpecError {
        let is_placed = error.diagnostics.iter().any(|diagnostic| diagnostic.line > 0);
        if self.folder.is_none() || !is_placed || Source::load(path).is_ok_and(|source| is_one(&source)) {
            return error;
        }
        SpecError::about(path, format!("this is no {what}"), Some(help.to_owned()))
    }

    /// Reads the inputs of a run and checks that they fit together.
    ///
    /// # Errors
    /// With the field at fault: unknown names, missing files, worker types or job types that the throughputs lack,
    /// jobs that can run nowhere.
    pub fn load(&self, spec: &RunSpec) -> Result<Run, RunError> {
        let complaints = spec.complaints();
        if !complaints.is_empty() {
            return Err(RunError::Fields(complaints));
        }
        let matrix = &spec.throughputs.0;
        let is_given = self.given.contains_key(matrix) || Throughputs::embedded_text(matrix).is_some();
        let matrix = self.place(matrix, is_given);
        let (throughputs, throughputs_digest) = self.throughputs(&matrix)?;
        let cluster = spec.cluster().map_err(|error| RunError::field("cluster", error.to_string()))?;
        let cluster = cluster.ordered_as(throughputs.worker_types().as_slice());
        matrix_columns(&cluster, &throughputs).map_err(|error| {
            let help = "a file that `throughputs` names may have others: docs/study.md#your-accelerators";
            refused("cluster", error.to_string(), help)
        })?;
        let NamedPolicy { policy, document, digest } = self.policy(&spec.policy)?;
        let pairs = document.pairs();
        let mut data =
            BTreeMap::from([("throughputs".to_owned(), throughputs_digest), ("policy".to_owned(), digest)]);
        let mut trace = None;
        let mut origin = Seconds::ZERO;
        let mut mix = Vec::new();
        if let Some(path) = &spec.workload.trace {
            let (jobs, digest) = self.trace(path, &matrix, &throughputs)?;
            data.insert("trace".to_owned(), digest);
            let at = |position: usize| self.place_in_trace(path, position, jobs.get(position));
            check_trace(spec, &cluster, &throughputs, (&jobs, &at))?;
            origin = jobs.iter().map(|job| job.arrival).reduce(Seconds::min).unwrap_or_default();
            trace = Some(jobs);
        } else {
            mix = generator(spec, &throughputs)?.mix();
            check_jobs(
                &cluster,
                &throughputs,
                mix.iter().map(|s| (s.job_type.as_str(), s.scale_factor)),
                "cluster",
            )?;
        }
        let mut options = options::of(spec);
        let mut cluster = cluster;
        if let PricesSpec::File(path) = &spec.prices {
            let (series, digest) = self.prices(&self.place(path, false), &cluster, &throughputs)?;
            data.insert("prices".to_owned(), digest);
            (cluster, options.prices) = priced(cluster, series, origin);
        }
        if let Some(profiling) = options.profiling {
            Estimator::try_new(Arc::clone(&throughputs), profiling, spec.seed)
                .map_err(|error| RunError::field("profiling", error.to_string()))?;
        }
        let digest = spec.digest(&data);
        let catalog = Arc::clone(&self.catalog);
        let run = Run {
            spec: spec.clone(),
            digest,
            data,
            cluster,
            throughputs,
            options,
            pairs,
            origin,
            catalog,
            policy,
            trace,
            mix,
        };
        let ready = options::make_policy(&run.catalog, &run.policy, &run.spec, Interrupt::default())?;
        check_worker_types(&document, &run.cluster).map_err(|error| RunError::naming("policy", error))?;
        check_prices(&document, &run.cluster)?;
        check_gangs(&document, ready, &run.cluster, &run.throughputs, &run.options, run.kinds())?;
        Ok(run)
    }

    /// A run's policy.
    fn policy(&self, named: &str) -> Result<NamedPolicy, RunError> {
        let reference = PolicyReference::new(named);
        let file = self.place(reference.policy, self.catalog.names().contains(&reference.policy));
        let policy = reference.at(&file);
        let naming = |error| RunError::naming("policy", self.shown(error, &file, POLICY));
        let digest = self.catalog.digest(&policy).map_err(naming)?;
        let document = self.catalog.document(&policy).map_err(naming)?;
        Ok(NamedPolicy { policy, document, digest })
    }

    fn throughputs(&self, name: &str) -> Result<Read<Throughputs>, RunError> {
        let mut read = self.throughputs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.get(name) {
            return Ok(known.clone());
        }
        let naming = |error| RunError::naming("throughputs", self.shown(error, name, THROUGHPUTS));
        let given = self.given.get(name);
        let throughputs = match given {
            Some(source) => throughputs_of(source, name),
            None => load_throughputs(name),
        };
        let throughputs = throughputs.map_err(naming)?;
        let text = match (given, Throughputs::embedded_text(name)) {
            (Some(source), _) => source.text.clone(),
            (None, Some(text)) => text.into(),
            (None, None) => {
                Source::find("throughputs", name, &NOT_EMBEDDED)
                    .map_err(|error| RunError::naming("throughputs", error))?
                    .text
            }
        };
        let known = (throughputs, sha256(text.as_bytes()));
        read.insert(name.to_owned(), known.clone());
        Ok(known)
    }

    fn trace(&self, path: &str, matrix: &str, throughputs: &Throughputs) -> Result<Read<[Job]>, RunError> {
        let mut read = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        let path = &self.trace_path(path);
        let key = format!("{path}\n{matrix}");
        if let Some(known) = read.get(&key) {
            return Ok(known.clone());
        }
        let source = self.trace_source(path).map_err(|error| RunError::naming("workload.trace", error))?;
        let trace = read_trace(&source, Some(throughputs), TraceOrder::Refuse);
        let naming = |error| RunError::naming("workload.trace", self.shown(error, path, TRACE));
        let jobs = trace.map_err(naming)?.into_jobs();
        let known: Read<[Job]> = (jobs.into(), sha256(source.text.as_bytes()));
        read.insert(key, known.clone());
        Ok(known)
    }

    /// Path of a trace, by its name in a run.
    fn trace_path(&self, path: &str) -> String {
        let is_given = self.given.contains_key(path);
        self.place(path, is_given || TRACES.iter().any(|(name, _)| *name == path))
    }

    fn trace_source(&self, path: &str) -> Result<Source, SpecError> {
        match (self.given.get(path), TRACES.iter().find(|(name, _)| *name == path)) {
            (Some(given), _) => Ok(given.clone()),
            (None, Some((name, text))) => Ok(Source::embedded(name, text)),
            (None, None) => Source::load(path),
        }
    }

    /// Place and name of the job at a position of a trace: `jobs.csv:3:1: job b`, with the name in backticks.
    fn place_in_trace(&self, path: &str, position: usize, job: Option<&Job>) -> String {
        let name = job.and_then(|job| job.name.clone()).unwrap_or_else(|| position.to_string());
        let source = self.trace_source(&self.trace_path(path)).ok();
        let line = source.and_then(|source| Some((line_of(&source, position)?, source.name)));
        match line {
            Some((line, source)) => format!("{source}:{line}:1: job `{name}`"),
            None => format!("job `{name}`"),
        }
    }

    /// Prices of worker types of the cluster, or at least of the throughputs, with the digest of their text.
    fn prices(
        &self,
        path: &str,
        cluster: &Cluster,
        throughputs: &Throughputs,
    ) -> Result<(PriceSeries, String), RunError> {
        let mut read = self.prices.lock().unwrap_or_else(PoisonError::into_inner);
        if !read.contains_key(path) {
            let source = Source::load(path).map_err(|error| RunError::naming("prices", error))?;
            read.insert(path.to_owned(), source);
        }
        let source = &read[path];
        let mut known: Vec<&str> = cluster.types().iter().map(|kind| kind.name.as_str()).collect();
        for name in throughputs.worker_types() {
            if !known.contains(&name.as_str()) {
                known.push(name);
            }
        }
        let naming = |error| RunError::naming("prices", self.shown(error, path, PRICES));
        let series = read_prices(source, &known).map_err(naming)?;
        Ok((series, sha256(source.text.as_bytes())))
    }
}

/// A policy, by its name in the catalog.
struct NamedPolicy {
    policy: String,
    document: PolicyDocument,
    /// The digest of its document.
    digest: String,
}

/// The cluster at the prices of an instant, with the later changes of the prices of its own worker types.
pub fn priced(mut cluster: Cluster, series: PriceSeries, origin: Seconds) -> (Cluster, Vec<PriceChange>) {
    let PriceSeries { initial, changes } = series;
    let (past, later): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.at <= origin);
    let past = past.into_iter().map(|change| (change.worker_type, change.price));
    for (name, price) in initial.into_iter().chain(past) {
        if let Some(worker_type) = cluster.find(&name) {
            cluster.set_price(worker_type, price);
        }
    }
    let own = later.into_iter().filter(|change| cluster.find(&change.worker_type).is_some());
    let changes = own.map(|change| PriceChange { at: change.at - origin, ..change }).collect();
    (cluster, changes)
}

/// Traces that are part of the binary.
pub const TRACES: [Embedded; 1] =
    [("osdi20-figure-11", include_str!("../../../../sweeps/osdi20-figure-11.csv"))];

/// Kind of file that a document may name, with a remedy, and a check whether a file begins as such files do.
type Kind = (&'static str, &'static str, fn(&Source) -> bool);
const POLICY: Kind =
    ("policy", "`apportion policies check FILE` shows what is wrong with a file", |source| {
        source.is_of(policy::FORMAT)
    });
const THROUGHPUTS: Kind = (
    "throughput matrix",
    "`apportion throughputs check FILE` shows what is wrong with a file, `import` reads Gavel's JSON",
    |source| source.is_of(throughputs::FORMAT),
);
const TRACE: Kind = ("trace", "`apportion trace show FILE` shows what is wrong with a file", trace::begins);
const PRICES: Kind = (
    "table of prices, nor are there prices of these worker types in it",
    "give a CSV of `time,worker_type,price`, or a mapping of worker types",
    price_series::begins,
);

/// No embedded documents: the names are only paths.
const NOT_EMBEDDED: [Embedded; 0] = [];

enum Generator {
    Gavel(Box<Gavel>),
    Native(Box<Native>),
}

impl Generator {
    fn mix(&self) -> Vec<MixShare> {
        match self {
            Self::Gavel(generator) => generator.mix(),
            Self::Native(generator) => generator.mix(),
        }
    }

    fn into_arrivals(self) -> Box<dyn Arrivals> {
        match self {
            Self::Gavel(generator) => generator,
            Self::Native(generator) => generator,
        }
    }
}

fn generator(spec: &RunSpec, throughputs: &Arc<Throughputs>) -> Result<Generator, RunError> {
    let workload = &spec.workload;
    let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let options = match (workload.rate, workload.n_static) {
        (Some(rate), _) => {
            let options = WorkloadOptions::continuous(rate.mean_gap());
            workload.jobs.map_or(options, |n| options.jobs(count(n)))
        }
        (None, n_static) => WorkloadOptions::at_once(count(n_static.unwrap_or(0))),
    };
    let options = options
        .multi_worker(workload.multi_worker)
        .multi_priority(workload.multi_priority)
        .slos(workload.slos)
        .duration(workload.duration);
    let refused = |error: GeneratorError| RunError::field("workload", error.to_string());
    // Types are in alphabetical order, as the published simulator fills them.
    let mut counts: Vec<(&str, u32)> = spec.cluster.0.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    counts.sort_unstable();
    let backlog: Vec<u32> = counts.into_iter().filter(|_| workload.steady_state).map(|(_, n)| n).collect();
    Ok(match workload.generator {
        GeneratorName::Gavel | GeneratorName::GavelOsdi20 => {
            let older = workload.generator == GeneratorName::GavelOsdi20;
            let table = if older { JobTable::Osdi20 } else { JobTable::Released };
            let jobs = Gavel::try_new(options, Arc::clone(throughputs), spec.seed).map_err(refused)?;
            Generator::Gavel(Box::new(jobs.with_job_table(table).with_backlog(backlog)))
        }
        GeneratorName::Native => {
            let jobs = Native::try_new(options, throughputs, spec.seed).map_err(refused)?;
            Generator::Native(Box::new(jobs.with_backlog(backlog)))
        }
    })
}
