//! Strategies against one another, and what reports say of them.

use super::packed_tests::{drawn, objectives, policy, problem_of};
use super::{GaveUp, ProgramOptions, ProgramPolicy, Reason, Strategy, Unfit};
use crate::policy::{Decision, Policy, PolicyError};
use crate::problem::Problem;
use proptest::strategy::{Strategy as _, ValueTree};
use proptest::test_runner::TestRunner;

/// Jobs of a few types of the standard matrix, 40 of them.
fn problem() -> Problem {
    let mut runner = TestRunner::deterministic();
    let jobs = drawn(40).new_tree(&mut runner).unwrap().current();
    problem_of(&jobs, 6, 3)
}

fn by(
    of: usize,
    strategy: Strategy,
    options: impl FnOnce(ProgramOptions) -> ProgramOptions,
) -> Result<Decision, PolicyError> {
    let options = options(policy(objectives()[of], false).options().clone());
    let options = ProgramOptions { strategy: Some(strategy), ..options };
    ProgramPolicy::try_new(options).unwrap().allocate(&problem())
}

#[test]
fn strategies_that_are_asked_for_find_the_same_optimum() {
    for of in 0..objectives().len() {
        for (pairs, strategies) in [
            (true, [Strategy::Kinds, Strategy::Pairs, Strategy::Written]),
            (false, [Strategy::Singles, Strategy::Singles, Strategy::Written]),
        ] {
            let decided =
                strategies.map(|strategy| by(of, strategy, |options| ProgramOptions { pairs, ..options }));
            let mut values = Vec::new();
            for (strategy, decision) in strategies.into_iter().zip(decided) {
                let decision = match decision {
                    Ok(decision) => decision,
                    // Some objectives have terms that only programs over jobs have.
                    Err(PolicyError::Strategy { strategy: asked, why: GaveUp::Unfit(_), .. }) => {
                        assert!(asked == strategy && matches!(strategy, Strategy::Singles | Strategy::Kinds));
                        continue;
                    }
                    Err(error) => panic!("{of} {strategy}: {error}"),
                };
                let report = decision.solve.unwrap();
                assert_eq!((report.strategy, report.reason), (strategy, Reason::Asked), "{of}");
                assert!(report.gave_up.is_empty(), "{report:?}");
                assert_eq!(report.backend.is_some(), report.solves > 0, "{report:?}");
                values.push(decision.objective.unwrap().value);
            }
            assert!(values.len() > 1 || !pairs, "{of}: {values:?}");
            for value in &values {
                assert!((value - values[0]).abs() <= 1e-6 * value.abs(), "{of}: {values:?}");
            }
        }
    }
}

#[test]
fn a_strategy_that_is_none_for_a_problem_is_refused_with_the_reason() {
    let why = |strategy, pairs, backend: Option<&str>| {
        let backend = backend.map(str::to_owned);
        match by(0, strategy, |options| ProgramOptions { pairs, backend, ..options }) {
            Err(PolicyError::Strategy { why: GaveUp::Unfit(unfit), .. }) => unfit,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(why(Strategy::Singles, true, None), Unfit::Paired);
    assert_eq!(why(Strategy::Kinds, false, None), Unfit::NoPairs);
    assert_eq!(why(Strategy::Pairs, false, None), Unfit::NoPairs);
    assert_eq!(why(Strategy::Singles, false, Some("clarabel")), Unfit::Backend);
    let error = by(0, Strategy::Pairs, |options| ProgramOptions { pairs: false, ..options }).unwrap_err();
    assert_eq!(error.to_string(), "policy `tested` cannot decide by `pairs`: there are no pairs of jobs");
}

#[test]
fn a_backend_that_is_named_solves_written_programs() {
    let options = |backend: Option<&str>, pairs| {
        let backend = backend.map(str::to_owned);
        ProgramOptions { pairs, backend, ..policy(objectives()[0], false).options().clone() }
    };
    for (backend, pairs, strategy, reason) in [
        (None, false, Strategy::Singles, Reason::JobsAlone),
        (None, true, Strategy::Written, Reason::Unfit(Unfit::FewPairs)),
        (Some("clarabel"), false, Strategy::Written, Reason::Unfit(Unfit::Backend)),
    ] {
        let mut policy = ProgramPolicy::try_new(options(backend, pairs)).unwrap();
        let report = policy.allocate(&problem()).unwrap().solve.unwrap();
        assert_eq!((report.strategy, report.reason), (strategy, reason), "{report:?}");
        assert!(backend.is_none() || report.backend.as_deref() == backend, "{report:?}");
        assert_eq!(report.solves == 0, strategy == Strategy::Singles, "{report:?}");
    }
}
