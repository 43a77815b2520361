//! Solvers compared with each other, on programs with the structure of allocations.

#[path = "allocation_programs.rs"]
mod allocation_programs;

use allocation_programs::{Draws, Numbers};
use apportion::program::Program;
use apportion::solver::registry::{BACKENDS, central_chain, default_chain};
use apportion::solver::{
    AnswerCertificate, Feature, Limits, SolveError, Termination, WarmStart, solve_certified,
};

/// Number of instances of the differential test; each is solved by every backend.
const INSTANCES: u64 = 600;
/// Relative tolerance of objectives.
const AGREEMENT: f64 = 1e-6;

/// An instance with one of four objectives, and 1 to 64 jobs on 1 to 6 types.
fn instance(seed: u64) -> (String, Program) {
    let mut draws = Draws::new(seed);
    let n = 1 + draws.below(64);
    let k = 1 + draws.below(6);
    let zeros = [0.0, 0.1, 0.4][draws.below(3)];
    let numbers = Numbers::draw(&mut draws, n, k, zeros);
    let (kind, program) = match seed % 5 {
        0 | 1 => ("max-min", numbers.max_min(|m| numbers.fairness(m))),
        2 => ("makespan_s", numbers.max_min(|m| 1.0 / numbers.steps[m])),
        3 => ("max sum", numbers.max_sum()),
        _ => ("min work", numbers.min_work(0.9 * draws.unit())),
    };
    (format!("seed {seed}: {kind}, {n} jobs, {k} types"), program)
}

/// Relative difference of two objectives; if one is zero (a job can run nowhere), the absolute difference in thousandths, so
/// that 1e-9 agrees.
fn apart(one: f64, other: f64) -> f64 {
    let size = if one.abs() < 1e-12 { 1e-3 } else { one.abs().max(other.abs()) };
    (one - other).abs() / size
}

#[derive(Default)]
struct Seen {
    violation: f64,
    gap: f64,
    disagreement: f64,
    uncertified: u64,
}

#[test]
fn every_backend_finds_the_same_optimum_and_certifies_it() {
    // `separable` takes conic programs only
    let backends: Vec<_> = BACKENDS.iter().filter(|entry| entry.name != "separable").collect();
    let mut optimal = 0;
    let mut seen: Vec<Seen> = backends.iter().map(|_| Seen::default()).collect();
    for seed in 0..INSTANCES {
        let (name, program) = instance(seed);
        let mut reference: Option<AnswerCertificate> = None;
        let mut infeasible = Vec::new();
        for (entry, seen) in backends.iter().zip(&mut seen) {
            let mut backend = entry.make();
            let solution = match backend.solve(&program, &Limits::default(), None) {
                Err(SolveError::Declined { reason, .. }) => {
                    panic!("{name}: {} declined: {reason}", entry.name)
                }
                answer => answer.unwrap(),
            };
            if matches!(solution.termination, Termination::Infeasible | Termination::InfeasibleOrUnbounded) {
                infeasible.push(entry.name);
                continue;
            }
            let known = reference.map(|certificate| certificate.bound);
            let certificate = AnswerCertificate::with_bound(&program, &solution, known);
            let context = format!("{name}: {} ended {:?}", entry.name, solution.termination);
            assert!(certificate.optimal, "{context}: {certificate:?}");
            if backend.supports(Feature::Duals) {
                let own = AnswerCertificate::of(&program, &solution);
                // an answer that admits to be inaccurate may have useless duals; the chain goes on then
                let admits = solution.termination == Termination::Inaccurate;
                assert!(own.optimal || admits, "{context}, by its own duals: {own:?}");
                seen.uncertified += u64::from(!own.optimal);
                if own.optimal {
                    seen.gap = seen.gap.max(own.gap_relative);
                }
            }
            seen.violation = seen.violation.max(certificate.violation_max);
            if let Some(reference) = reference {
                let apart = apart(reference.primal, certificate.primal);
                assert!(apart <= AGREEMENT, "{context}: {} against {}", certificate.primal, reference.primal);
                seen.disagreement = seen.disagreement.max(apart);
            }
            reference.get_or_insert(certificate);
        }
        assert!(
            infeasible.is_empty() || infeasible.len() == backends.len(),
            "{name}: {infeasible:?} disagree"
        );
        optimal += u64::from(infeasible.is_empty());
    }
    for (entry, seen) in backends.iter().zip(&seen) {
        println!(
            "{:16} violation ≤ {:.0e}, own gap ≤ {:.0e}, apart from the first ≤ {:.0e}, inaccurate {}",
            entry.name, seen.violation, seen.gap, seen.disagreement, seen.uncertified
        );
        assert!(seen.uncertified * 100 <= INSTANCES, "{} is inaccurate too often", entry.name);
    }
    assert!(optimal >= 500, "only {optimal} of {INSTANCES} instances have an optimum");
}

#[test]
fn the_default_chain_certifies_at_its_first_backend() {
    for seed in 0..60 {
        let (name, program) = instance(seed);
        match solve_certified(&program, &mut default_chain(&program), &Limits::default(), None) {
            Ok(certified) => assert!(certified.fallbacks.is_empty(), "{name}: {:?}", certified.fallbacks),
            Err(SolveError::NotOptimal { termination, attempts }) => {
                assert_eq!(termination, Termination::Infeasible, "{name}: {attempts}");
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn the_central_chain_ends_away_from_every_vertex() {
    // two jobs of one kind, room for all but not everything needed: any split of the rest is optimal
    let numbers = Numbers {
        capacity: vec![2.0],
        throughput: vec![vec![1.0]; 4],
        scale_factor: vec![1.0; 4],
        weight: vec![1.0; 4],
        steps: vec![1.0; 4],
    };
    let program = numbers.max_sum();
    let certified =
        solve_certified(&program, &mut central_chain(&program), &Limits::default(), None).unwrap();
    for share in &certified.solution.columns {
        assert!((share - 0.5).abs() < 1e-6, "{:?} is not the centre", certified.solution.columns);
    }
}

/// At an optimum x of a concave f over a polytope, x also maximizes the linear function ∇f(x): the linear
/// solvers judge what the conic one found (the gap of Frank & Wolfe, 1956). It is linear in the error of x, where
/// the objective's is quadratic: 1e-5 here is far below 1e-9 there.
#[test]
fn proportional_fairness_satisfies_the_first_order_conditions() {
    for seed in 0..80 {
        let mut draws = Draws::new(10_000 + seed);
        let (n, k) = (1 + draws.below(10), 1 + draws.below(4));
        let numbers = Numbers::draw(&mut draws, n, k, 0.15);
        let (program, jobs) = numbers.proportional();
        if jobs.is_empty() {
            continue;
        }
        let certified =
            solve_certified(&program, &mut default_chain(&program), &Limits::default(), None).unwrap();
        let x = &certified.solution.columns;
        let mut tangent = numbers.max_sum();
        let mut weights = 0.0;
        for (cone, &m) in program.cones.iter().zip(&jobs) {
            let rate: f64 = cone.entries[2].terms.iter().map(|&(column, rate)| rate * x[column]).sum();
            for &(column, throughput) in &cone.entries[2].terms {
                tangent.cost[column] = numbers.weight[m] * throughput / rate;
            }
            weights += numbers.weight[m];
        }
        let best = solve_certified(&tangent, &mut default_chain(&tangent), &Limits::default(), None).unwrap();
        let here = tangent.objective(&x[..tangent.n_columns()]);
        let gap = (best.certificate.primal - here) / weights;
        assert!(gap < 1e-5, "seed {seed}, {n} jobs, {k} types: a step gains {gap:e}");
    }
}

/// On one type with room for W of n one-worker jobs: X_m = min(1, ω_m/λ), λ such that Σ X = W.
#[test]
fn proportional_fairness_on_one_type_has_the_closed_form() {
    let numbers = Numbers {
        capacity: vec![2.0],
        throughput: vec![vec![3.0], vec![5.0], vec![0.7], vec![20.0]],
        scale_factor: vec![1.0; 4],
        weight: vec![1.0, 1.0, 6.0, 2.0],
        steps: vec![1.0; 4],
    };
    let (program, _) = numbers.proportional();
    let certified =
        solve_certified(&program, &mut default_chain(&program), &Limits::default(), None).unwrap();
    // the third job is capped at 1; the others share one worker 1 : 1 : 2
    for (share, expected) in certified.solution.columns.iter().zip([0.25, 0.25, 1.0, 0.5]) {
        assert!((share - expected).abs() < 1e-5, "{:?}", certified.solution.columns);
    }
}

#[test]
fn a_warm_start_after_a_departure_takes_few_iterations() {
    let mut draws = Draws::new(7);
    let numbers = Numbers::draw(&mut draws, 200, 3, 0.1);
    let before = numbers.max_min(|m| numbers.fairness(m));
    // job 0 leaves: its shares are fixed at zero and its level no longer counts
    let mut after = before.clone();
    let first_level = after.n_rows() - numbers.throughput.len();
    after.rows[first_level].upper = f64::INFINITY;
    for (column, _) in before.row(0) {
        after.columns[column].upper = 0.0;
        after.implied[column].upper = 0.0;
    }
    for entry in BACKENDS {
        let mut backend = entry.make();
        if !backend.supports(Feature::WarmStart) {
            continue;
        }
        let cold = backend.solve(&before, &Limits::default(), None).unwrap();
        let warm = WarmStart { basis: cold.basis.clone(), ..WarmStart::default() };
        let again = backend.solve(&after, &Limits::default(), Some(&warm)).unwrap();
        assert!(AnswerCertificate::of(&after, &again).optimal, "{}", entry.name);
        let (warm, cold) = (again.iterations, cold.iterations);
        assert!(warm * 10 < cold, "{}: {warm} iterations after {cold}", entry.name);
    }
}
