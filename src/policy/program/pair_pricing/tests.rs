//! Reduced-cost fixing of pairs, against the definition of lexicographic levels.

use std::sync::Arc;

use crate::index::{Id, JobId, JobIndex};
use crate::policy::ThroughputView;
use crate::policy::program::levels::{self, SolvedLevel};
use crate::policy::program::pairs::Pairing;
use crate::policy::program::program_columns::{PricingLimits, ProgramColumns};
use crate::policy::program::reduce::{Selection, reduce};
use crate::policy::program::solver_context::SolverContext;
#[cfg(feature = "highs")]
use crate::policy::program::water_filling;
use crate::problem::{ActiveJob, Colocation, Problem, ProblemBuilder};
use crate::program::expression::Vocabulary;
use crate::program::{Demand, Objective, ObjectiveText, Program, Sense};
use crate::solver::registry;
use crate::spec::Fidelity;
use crate::workload::Combination;

/// Jobs, no two of them alike, with throughputs on two types, alone and in pairs.
fn problem(seed: u32, n: usize, workers: u32) -> Problem {
    let mut at = f64::from(seed) * 0.414_213_562_373_095;
    // multiples of the golden ratio are spread evenly
    let mut draw = || {
        at += 0.618_033_988_749_894_9;
        at.fract()
    };
    let cluster = crate::Cluster::try_new([("a", workers), ("b", workers + seed % 3)]).unwrap();
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    let speeds: Vec<[f64; 2]> = (0..n).map(|_| [1.0 + 9.0 * draw(), 0.5 + 4.0 * draw()]).collect();
    for (index, speeds) in speeds.iter().enumerate() {
        builder.job(ActiveJob::new(JobId::from_index(index)), speeds);
    }
    let mut pairs = std::collections::BTreeMap::new();
    for a in 0..n {
        for b in a + 1..n {
            let both = [0, 1].map(|j| [a, b].map(|job| speeds[job][j] * (0.4 + 0.6 * draw())));
            pairs.insert(Combination::pair(JobIndex::from_index(a), JobIndex::from_index(b)), both.to_vec());
        }
    }
    builder.colocation(Colocation::Pairs(pairs));
    builder.build().unwrap()
}

fn solver() -> SolverContext {
    SolverContext::new(registry::default_chain(&Program::new(Sense::Maximize)), Vec::new())
}

fn program_columns<'o>(
    problem: &Problem,
    objective: &'o Objective,
    pricing: PricingLimits,
) -> ProgramColumns<'o> {
    let selection = Selection {
        view: &ThroughputView::Measured,
        pairs: true,
        classes: true,
        hierarchical: false,
        dropped: &[],
        fidelity: Fidelity::Corrected,
        data: &[],
        isolated_elapsed: &[],
    };
    let reduced = reduce(problem, &selection);
    assert_eq!(reduced.classes.len(), problem.n_jobs(), "no two are alike");
    let binding = objective.bind(&reduced.instance).unwrap().binding().clone();
    let pairing = Pairing::of(problem, &ThroughputView::Measured, &reduced.classes, true);
    ProgramColumns::new(objective, reduced, binding, Some(pairing), pricing)
}

const PRICED: PricingLimits = PricingLimits { unpriced_max: 0, gain_max: 1e-9 };

fn objective() -> Objective {
    let text = ObjectiveText::new(Sense::Maximize, "lexicographic_min_over_jobs(throughput)");
    Objective::check(&text, Vocabulary::default()).unwrap()
}

/// No member can be raised unless one with no higher level falls. (Floors are held to the last digits.)
#[cfg(feature = "highs")]
#[test]
fn levels_with_fixed_pairs_are_the_lexicographic_optimum() {
    let objective = objective();
    for seed in 0..6 {
        let problem = problem(seed, 14, 4);
        let n = problem.n_jobs();
        let slope: Vec<f64> = (0..n).map(|member| 1.0 + (member % 4) as f64).collect();
        let mut priced = program_columns(&problem, &objective, PRICED);
        let rates = |_: &[bool]| slope.clone();
        let filled =
            water_filling::fill_written(&mut solver(), &mut priced, &rates, &vec![0.0; n]).unwrap().filled;
        let level = |member: usize| filled.throughputs[member] / slope[member];
        let mut every = program_columns(&problem, &objective, PricingLimits::UNPRICED);
        for member in 0..n {
            // A member can gain up to 3e5 times the throughput that the others give back here.
            let held = |other: usize| slope[other] * level(other).min(level(member)) * (1.0 - 1e-12);
            let mut demands: Vec<Demand> = (0..n).map(|other| Demand::floor(held(other))).collect();
            demands[member] = Demand { slope: slope[member], base: 0.0 };
            let most =
                levels::raise_by_program(&mut solver(), &mut every, &demands, None).unwrap().raised.level;
            assert!(most <= level(member) * (1.0 + 1e-5), "{seed}, {member}: {most} {}", level(member));
        }
    }
}

/// After a level more than half of all pairs are fixed, none of them has time in its optimum, and all are freed in the end.
#[test]
fn pairs_with_negative_reduced_costs_are_fixed() {
    let (objective, problem) = (objective(), problem(1, 24, 2));
    let mut columns = program_columns(&problem, &objective, PRICED);
    let demands = vec![Demand { slope: 1.0, base: 0.0 }; problem.n_jobs()];
    let SolvedLevel { raised, solved } =
        levels::raise_by_program(&mut solver(), &mut columns, &demands, None).unwrap();
    let is_open =
        |columns: &ProgramColumns<'_>, pair, j| !columns.pricing.as_ref().unwrap().is_fixed(pair, j);
    let pairs: Vec<(usize, usize)> = columns.pairing().unwrap().all().collect();
    let n_open = |columns: &ProgramColumns<'_>| {
        let open = |pair: &&(usize, usize)| (0..2).any(|j| is_open(columns, **pair, j));
        pairs.iter().filter(open).count()
    };
    assert_eq!(n_open(&columns), pairs.len());
    columns.fix_unused(&solved.formulation, &solved.answer, 1e-7 * raised.level);
    assert!(2 * n_open(&columns) < pairs.len(), "{} of {}", n_open(&columns), pairs.len());
    for (column, time) in columns.bound().columns().iter().zip(&raised.class_time) {
        let pair = column.combination.checked_sub(problem.n_jobs()).map(|pair| columns.reduced().pairs[pair]);
        let idle = pair.is_some_and(|pair| !is_open(&columns, pair, column.worker_type));
        // An interior-point method ends near a face, not on it.
        assert!(!idle || *time <= 1e-9, "{pair:?} {time}");
    }
    let again = levels::raise_by_program(&mut solver(), &mut columns, &demands, None).unwrap().raised;
    assert!((again.level - raised.level).abs() <= 1e-9 * raised.level);
    columns.free_all();
    assert_eq!(n_open(&columns), pairs.len());
}
