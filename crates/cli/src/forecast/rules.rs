//! The flags of the simulated run and its rounds, as `simulate` has them.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::conditions::{round, time};
use crate::decide::{Refinement, SemanticsFlag};
use crate::exit::Failure;
use crate::file::{Named, at, named};
use crate::paths::name_or_path;
use apportion::spec::Source;
use apportion::spec::entities::read_entities;
use apportion::spec::policy::PolicyReference;
use apportion::spec::run::{CorrectionsSpec, RunSpec, ThroughputsName, WorkerCounts};
use apportion::units::Seconds;

/// The trace, the policy, the cluster and the rounds.
#[derive(Args, Debug)]
pub(super) struct RuleArguments {
    /// A policy's name, or a policy file
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    policy: String,
    /// Workers of each type, such as v100=36,p100=36,k80=36
    #[arg(long, value_name = "TYPE=N,…")]
    cluster: WorkerCounts,
    /// The jobs: our CSV, or Gavel's form
    #[arg(long, value_name = "FILE", value_parser = name_or_path())]
    trace: String,
    /// Owners of the trace's jobs, as in a snapshot: [{id: a, weight: 2}, {id: b, inner: fifo, parent: a}]
    #[arg(long, value_name = "FILE")]
    entities: Option<PathBuf>,
    /// The mechanism as described, or as published, quirks included
    #[arg(long, value_enum, default_value = "corrected")]
    semantics: SemanticsFlag,
    /// Quirks of `--semantics gavel` to do without, by name, or `all`
    #[arg(long, value_name = "NAME,…", default_value = "none", hide_default_value = true)]
    correct: CorrectionsSpec,
    /// The seed of all random streams
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// A throughput matrix's name, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "osdi20", value_parser = name_or_path())]
    throughputs: String,
    /// Length of a round
    #[arg(long, value_name = "SECONDS", value_parser = round, allow_negative_numbers = true, default_value = "360")]
    round: Seconds,
    /// Least time between two computations of the allocation
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true, default_value = "1920")]
    reset_interval: Seconds,
    /// Workers on each server; 1 where not given
    #[arg(long, value_name = "TYPE=N,…")]
    servers: Option<WorkerCounts>,
    /// Time that a job loses when it changes workers, or the job that it shares them with
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true, default_value = "0")]
    preemption_cost: Seconds,
    /// The optimum to take among several, in place of the policy's own choice
    #[arg(long, value_name = "NAME")]
    refine: Option<Refinement>,
    /// The solver to try first, in place of the one that suits the program
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
}

impl RuleArguments {
    /// Files that are read.
    pub(super) fn files(&self) -> [Named<'_>; 4] {
        [
            named("the policy", Some(PolicyReference::new(&self.policy).policy)),
            named("the trace", Some(&self.trace)),
            at("--entities", self.entities.as_deref()),
            named("the throughputs", Some(&self.throughputs)),
        ]
    }

    /// The run of these arguments.
    pub(super) fn spec(&self) -> Result<RunSpec, Failure> {
        let mut spec = RunSpec {
            policy: self.policy.clone(),
            cluster: self.cluster.clone(),
            servers: self.servers.clone().unwrap_or_default(),
            throughputs: ThroughputsName(self.throughputs.clone()),
            semantics: self.semantics.into(),
            correct: self.correct.clone(),
            seed: self.seed,
            ..RunSpec::default()
        };
        spec.workload.trace = Some(self.trace.clone());
        if let Some(path) = &self.entities {
            spec.workload.entities = read_entities(&Source::load(path)?)?;
        }
        spec.mechanism.round_length = self.round;
        spec.mechanism.reset_interval = self.reset_interval;
        spec.mechanism.preemption_cost = self.preemption_cost;
        spec.solver.refine = self.refine.map(Refinement::name);
        spec.solver.backend.clone_from(&self.backend);
        Ok(spec)
    }

    /// The file of the owners of jobs.
    pub(super) fn entities(&self) -> Option<&Path> {
        self.entities.as_deref()
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }
}
