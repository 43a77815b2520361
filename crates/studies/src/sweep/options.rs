//! Options of simulator and policy, from a spec.

use crate::sweep::differences::{self, Kept};
use crate::sweep::run_error::RunError;
use apportion::catalog::{Catalog, CatalogError, PolicyOptions, Ready};
use apportion::policy::Refine;
use apportion::policy::naming::check_owners;
use apportion::simulator::{Contention, Live, Options, PreemptionCost, Stragglers, WorkerFaults};
use apportion::solver::{Interrupt, registry};
use apportion::spec::nearest::name_list;
use apportion::spec::run::{LiveSpec, Refill, RunSpec};
use apportion::spec::{Fidelity, PolicyDocument, PolicyKind};
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

/// Parameters of the throughput estimator, where both are given.
fn profiling(spec: &RunSpec) -> Option<Profiling> {
    let (fraction, reference_models) = (spec.profiling.fraction?, spec.profiling.reference_models?);
    let knobs = Profiling::new(fraction, usize::try_from(reference_models).unwrap_or(usize::MAX));
    // The published simulator takes a single measurement as the true throughput.
    let (smoothing, columns) = if Kept::of(spec).profiling() {
        (1.0, ProfileColumns::Published)
    } else {
        (knobs.smoothing, ProfileColumns::Corrected)
    };
    Some(Profiling { smoothing: spec.profiling.smoothing.unwrap_or(smoothing), columns, ..knobs })
}

/// The policy of a spec; `path` is relative to the working directory.
///
/// # Errors
/// If there is none of this name, its file is invalid, or the refinement or backend does not fit it.
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
    check_simulated(&catalog.document(name_or_path).map_err(|error| refused(error.into()))?, spec)?;
    if let Ready::InRounds(_) = ready {
        check_in_rounds(&spec.live)?;
    }
    Ok(ready)
}

/// Refuses a policy with extra columns, which jobs of a simulation do not have, and one that names an owner that the run
/// does not declare, if it declares any: the policy would take it for an owner without jobs.
fn check_simulated(document: &PolicyDocument, spec: &RunSpec) -> Result<(), RunError> {
    let PolicyKind::Program(program) = &document.kind else { return Ok(()) };
    if let Some((column, _)) = program.columns.first() {
        let message = format!("jobs of a simulation have no columns, and the policy reads `{column}`");
        let help = "it is a policy for snapshots, whose jobs state it in `extra`: `allocate`, `explain`";
        let error =
            document.source.error_at_key(&format!("columns.{column}"), message, Some(help.to_owned()));
        return Err(RunError::naming("policy", error));
    }
    let declared = || spec.workload.entities.iter().map(|entity| entity.id.as_str());
    if declared().next().is_none() {
        return Ok(());
    }
    check_owners(document, declared, "the run").map_err(|error| RunError::naming("policy", error))
}

/// Refuses options that only policies with allocations support.
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

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::spec::Source;

    /// The error of a simulation by a policy with this body. `entities`: the owners that the run declares.
    fn said(body: &str, entities: &str) -> Result<(), String> {
        let head = "format: apportion/policy-v1\nname: mine\nsummary: s\nkind: program\n";
        let mut catalog = Catalog::embedded();
        catalog.add(Source::new("mine.yaml", format!("{head}{body}"))).unwrap();
        let mut spec = RunSpec::default();
        spec.workload.entities =
            apportion::spec::entities::read_entities(&Source::new("e.yaml", entities)).unwrap();
        let made = make_policy(&catalog, "mine", &spec, Interrupt::default());
        made.map(drop).map_err(|error| format!("{error} {error:?}"))
    }

    #[test]
    fn a_policy_of_columns_is_for_snapshots() {
        let body = "columns: {interactive: 1 >= 0}\nmaximize: sum_over_jobs(interactive * throughput)\n";
        let error = said(body, "[]").unwrap_err();
        assert!(error.contains("jobs of a simulation have no columns"), "{error}");
        assert!(error.contains("`interactive`") && error.contains("for snapshots"), "{error}");
        assert!(error.contains("mine.yaml") && error.contains("line: 5"), "{error}");
    }

    #[test]
    fn an_owner_whom_the_run_does_not_declare_is_refused_where_it_declares_its_owners() {
        let body = "maximize: sum_over_jobs(throughput)\n\
                    constraints: ['sum_over_jobs(owned_by(\"reserch\") * time_on(v100)) <= 2']\n";
        assert_eq!(said(body, "[]"), Ok(()), "owners come with their jobs");
        let error = said(body, "[{id: research}]").unwrap_err();
        assert!(
            error.contains("names the owner `reserch`, expected one of the run's, `research`"),
            "{error}"
        );
        assert!(error.contains("did you mean `research`?"), "{error}");
        assert_eq!(said(&body.replace("reserch", "research"), "[{id: research}]"), Ok(()));
    }
}
