//! Bounds by the inequality, which hold at any prices.

use proptest::prelude::*;

use super::*;
use crate::policy::program::packed_tests::{drawn, objectives, policy, problem_of};
use crate::policy::program::pairs::Pairing;
use crate::policy::program::program_columns::PricingLimits;
use crate::policy::program::reduce::reduce;
use crate::solver::registry;

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_prices_bound_a_level_below_what_is_reached(
        jobs in drawn(14),
        workers in 2_u32..5,
        factors in prop::collection::vec(0.0_f64..2.0, 40),
    ) {
        let problem = problem_of(&jobs, workers, 2);
        let policy = policy(objectives()[0], true);
        let objective = policy.options().objective.clone();
        let reduced = reduce(&problem, &policy.selection(&[], &[], true));
        let binding = policy.binding(&objective, &reduced).unwrap();
        let pairing = Pairing::of(&problem, &policy.options().view, &reduced.classes, true);
        let limits = PricingLimits { unpriced_max: 0, gain_max: 1e-9 };
        let columns = ProgramColumns::new(&objective, reduced, binding, Some(pairing), limits);
        let linear = registry::default_chain(&crate::program::Program::new(Sense::Maximize));
        let mut solver = SolverContext::new(linear, Vec::new()).with_interior_point(registry::backend("clarabel").ok());
        let Ok(mut kinds) = KindProgram::of(&columns, &solver, BoundUse::Inequality) else { return Ok(()) };
        let levels = columns.bound().levels_kept().unwrap();
        let demand = |member| Demand { slope: levels.coefficients(member).unwrap().slope, base: 0.0 };
        let demands: Vec<Demand> = (0..columns.reduced().instance.n_members()).map(demand).collect();
        let Ok(raised) = kinds.raise(&mut solver, &columns, &demands) else {
            // An interior-point method alone may not come near enough.
            prop_assert!(!cfg!(feature = "highs"));
            return Ok(());
        };
        prop_assert!(raised.bound >= raised.level * (1.0 - 1e-12), "{raised:?}");
        let Ok(mut solved) = kinds.solve_level(&mut solver, &columns, f64::INFINITY) else {
            prop_assert!(!cfg!(feature = "highs"));
            return Ok(());
        };
        for (dual, factor) in solved.duals.iter_mut().zip(factors.iter().cycle()) {
            *dual *= factor;
        }
        if let Ok(proven) = kinds.proven(&columns, &solved) {
            prop_assert!(proven.bound >= raised.level * (1.0 - 1e-9), "{proven:?} {raised:?}");
        }
    }
}
