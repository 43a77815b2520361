//! What simulator and policy are told by a spec.

use crate::sweep::differences::{self, Kept};
use crate::sweep::run_error::RunError;
use apportion::catalog::{Catalog, CatalogError, PolicyOptions, Ready};
use apportion::policy::Refine;
use apportion::simulator::{Contention, Live, Options, PreemptionCost, Stragglers, WorkerFaults};
use apportion::solver::{Interrupt, registry};
use apportion::spec::Fidelity;
use apportion::spec::nearest::name_list;
use apportion::spec::run::{LiveSpec, Refill, RunSpec};
use apportion::throughput::Profiling;
use apportion::throughput::estimator::ProfileColumns;
use apportion::units::Seconds;

/// The simulator's options.
pub(super) fn of(spec: &RunSpec) -> Options {
    let mut options = Options::new(Kept::of(spec).semantics())
        .with_round_length(spec.mechanism.round_length)
        .with_reset_interval(spec.mechanism.reset_interval)
        .with_seed(spec.seed);
    if let Some([start, end]) = spec.measure {
        let bound = |id: u64| u32::try_from(id).unwrap_or(u32::MAX);
        options = options.with_measure(bound(start)..bound(end));
    }
    options.ideal = spec.mechanism.ideal;
    if spec.mechanism.preemption_cost.get() > 0.0 {
        let restore = spec.mechanism.preemption_cost;
        options.preemption_cost =
            Some(PreemptionCost { checkpoint: Seconds::ZERO, restore, job_types: Vec::new() });
    }
    let faults = &spec.faults;
    if let (Some(mtbf), Some(mttr)) = (faults.worker_mtbf, faults.worker_mttr) {
        options.faults.workers =
            Some(WorkerFaults { mean_time_between_failures: mtbf, mean_time_to_repair: mttr });
    }
    options.faults.jobs.probability = faults.job_failure;
    options.faults.jobs.attempts_max = faults.job_attempts;
    if faults.straggling > 0.0 {
        let (spread, redraw_rounds) = (faults.straggling, faults.straggling_rounds);
        options.faults.stragglers = Some(Stragglers { spread, redraw_rounds });
    }
    options.faults.throughput_noise = faults.noise;
    if faults.contention > 0.0 {
        options.contention = Some(Contention { slowdown: faults.contention });
    }
    options.profiling = profiling(spec);
    let LiveSpec { look_ahead, start_up, stop, refill, measured } = spec.live;
    options.live = Live { look_ahead, start_up, stop, refill, measured };
    options
}

/// The estimator's knobs, where both are given.
fn profiling(spec: &RunSpec) -> Option<Profiling> {
    let (fraction, reference_models) = (spec.profiling.fraction?, spec.profiling.reference_models?);
    let knobs = Profiling::new(fraction, usize::try_from(reference_models).unwrap_or(usize::MAX));
    // The published simulator takes a measurement for the truth.
    let (smoothing, columns) = if Kept::of(spec).profiling() {
        (1.0, ProfileColumns::Published)
    } else {
        (knobs.smoothing, ProfileColumns::Corrected)
    };
    Some(Profiling { smoothing: spec.profiling.smoothing.unwrap_or(smoothing), columns, ..knobs })
}

/// The policy that a spec names, which is at this path from where the command runs.
///
/// # Errors
/// If there is none of this name, its file is wrong, or the refinement or backend does not fit it.
pub(super) fn make_policy(
    catalog: &Catalog,
    name_or_path: &str,
    spec: &RunSpec,
    interrupt: Interrupt,
) -> Result<Ready, RunError> {
    differences::check(spec)?;
    let kept = Kept::of(spec);
    let fidelity = if kept.rules() { Fidelity::Published } else { Fidelity::Corrected };
    if let Some(backend) = &spec.solver.backend {
        registry::entry(backend).map_err(|error| RunError::field("solver.backend", error.to_string()))?;
    }
    let refine = match &spec.solver.refine {
        Some(name) => Some(refinement(name)?),
        None => kept.optimum().then_some(Refine::Interior),
    };
    let backend = spec.solver.backend.clone();
    let seed = spec.seed;
    let options = PolicyOptions { fidelity, seed, refine, backend, interrupt, ..PolicyOptions::default() };
    let ready = catalog.ready(name_or_path, &options).map_err(refused)?;
    if let Ready::InRounds(_) = ready {
        check_in_rounds(&spec.live)?;
    }
    Ok(ready)
}

/// Refuses what only an allocation makes possible.
fn check_in_rounds(live: &LiveSpec) -> Result<(), RunError> {
    let message = "the policy decides inside rounds, at their start";
    if live.look_ahead.get() > 0.0 {
        return Err(RunError::field("live.look_ahead", message));
    }
    if live.refill != Refill::Never {
        return Err(RunError::field("live.refill", message));
    }
    Ok(())
}

/// The refinement of this name.
fn refinement(name: &str) -> Result<Refine, RunError> {
    Refine::named(name).ok_or_else(|| {
        let expected = name_list(Refine::ALL.map(Refine::name));
        RunError::field("solver.refine", format!("unknown refinement `{name}`, expected one of {expected}"))
    })
}

fn refused(error: CatalogError) -> RunError {
    match error {
        CatalogError::Spec(error) => RunError::naming("policy", error),
        other => RunError::field("policy", other.to_string()),
    }
}
