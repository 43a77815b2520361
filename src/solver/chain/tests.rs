use super::*;
use crate::program::Range;
use crate::solver::backend::Feature;
use crate::solver::intake::without_columns;

/// A backend that gives a set answer to every program.
#[derive(Debug)]
struct Mock {
    name: &'static str,
    answer: Result<Solution, SolveError>,
}

impl Backend for Mock {
    fn name(&self) -> &'static str {
        self.name
    }
    fn supports(&self, _: Feature) -> bool {
        false
    }
    fn solve(&mut self, _: &Program, _: &Limits, _: Option<&WarmStart>) -> Result<Solution, SolveError> {
        self.answer.clone()
    }
}

/// Program that maximizes x, where a row says x ≤ 2.
fn program() -> Program {
    let mut program = Program::new(Sense::Maximize);
    program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 5.0 }, 1.0);
    program.push_row(Range::at_most(2.0), [(0, 1.0)]);
    program
}

fn says(name: &'static str, termination: Termination) -> Box<dyn Backend> {
    Box::new(Mock { name, answer: Ok(Solution { iterations: 3, ..without_columns(termination) }) })
}

fn answers(name: &'static str, x: f64, dual: Option<f64>, termination: Termination) -> Box<dyn Backend> {
    let row_duals = dual.into_iter().collect();
    let columns = vec![x];
    let answer = Solution { columns, row_duals, iterations: 5, ..without_columns(termination) };
    Box::new(Mock { name, answer: Ok(answer) })
}

fn fails(name: &'static str) -> Box<dyn Backend> {
    let error = SolveError::Backend { backend: name, message: "out of luck".to_owned() };
    Box::new(Mock { name, answer: Err(error) })
}

fn solve(mut chain: Vec<Box<dyn Backend>>) -> Result<Certified, SolveError> {
    solve_certified(&program(), &mut chain, &Limits::default(), None)
}

fn termination(chain: Vec<Box<dyn Backend>>) -> Termination {
    match solve(chain) {
        Err(SolveError::NotOptimal { termination, .. }) => termination,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_false_optimum_is_passed_over_and_told() {
    let certified = solve(vec![
        answers("liar", 1.9, Some(1.0), Termination::Optimal),
        answers("honest", 2.0, Some(1.0), Termination::Optimal),
    ])
    .unwrap();
    assert_eq!(certified.backend, "honest");
    assert_eq!(certified.fallbacks, ["liar: Optimal (violation 0.0e0, gap 5.0e-2)"]);
    assert_eq!(certified.iterations, 10);
}

#[test]
fn a_modest_answer_with_a_certificate_is_taken() {
    for modest in [Termination::Inaccurate, Termination::TimeLimit, Termination::Failed] {
        let certified = solve(vec![answers("modest", 2.0, Some(1.0), modest)]).unwrap();
        assert!(certified.certificate.optimal && certified.fallbacks.is_empty());
    }
}

#[test]
fn a_backend_without_duals_is_judged_by_the_bound_of_one_with() {
    let alone = solve(vec![answers("silent", 2.0, None, Termination::Optimal)]);
    assert!(
        matches!(alone, Err(SolveError::NotOptimal { termination: Termination::Optimal, .. })),
        "{alone:?}"
    );
    let certified = solve(vec![
        answers("near", 1.99, Some(1.0), Termination::Inaccurate),
        answers("silent", 2.0, None, Termination::Optimal),
    ])
    .unwrap();
    assert_eq!((certified.backend, certified.certificate.bound.round()), ("silent", 2.0));
}

#[test]
fn an_optimum_that_breaks_a_constraint_is_no_claim_of_one() {
    assert_eq!(termination(vec![answers("silent", 2.0, None, Termination::Optimal)]), Termination::Optimal);
    assert_eq!(termination(vec![answers("wrong", 3.0, None, Termination::Optimal)]), Termination::Failed);
}

#[test]
fn a_bound_is_only_ever_tightened() {
    let certified = solve(vec![
        answers("good duals", 1.0, Some(1.0), Termination::Inaccurate),
        answers("bad duals", 2.0, Some(0.0), Termination::Optimal),
    ])
    .unwrap();
    assert_eq!(certified.backend, "bad duals");
}

#[test]
fn a_lone_claim_of_infeasibility_is_reported() {
    assert_eq!(termination(vec![says("only", Termination::Infeasible)]), Termination::Infeasible);
    let chain = vec![says("one", Termination::Infeasible), fails("two")];
    assert_eq!(termination(chain), Termination::Infeasible);
}

#[test]
fn claims_that_there_is_no_optimum_are_refuted_by_one_and_never_end_the_search() {
    use Termination::{Infeasible, InfeasibleOrUnbounded, Unbounded};
    let three = |first, second| vec![says("a", first), says("b", second), fails("asked all the same")];
    assert_eq!(termination(three(Infeasible, Infeasible)), Infeasible);
    assert_eq!(termination(three(InfeasibleOrUnbounded, Unbounded)), Unbounded);
    assert_eq!(termination(three(Infeasible, InfeasibleOrUnbounded)), Infeasible);
    assert_eq!(termination(three(Infeasible, Unbounded)), InfeasibleOrUnbounded);
    let right = || answers("right", 2.0, Some(1.0), Termination::Optimal);
    let refuted = solve(vec![says("wrong", Unbounded), says("wrong, too", Unbounded), right()]);
    let claimed = ["wrong", "wrong, too"].map(|name| format!("{name}: claims that the program is unbounded"));
    assert_eq!(refuted.unwrap().fallbacks, claimed);
}

#[test]
fn errors_of_one_backend_are_told_and_survived() {
    let chain = vec![fails("first"), answers("second", 2.0, Some(1.0), Termination::Optimal)];
    assert_eq!(solve(chain).unwrap().fallbacks, ["backend `first` failed: out of luck"]);
    assert!(matches!(solve(vec![fails("first")]), Err(SolveError::Backend { backend: "first", .. })));
    assert_eq!(termination(Vec::new()), Termination::Failed);
    assert_eq!(
        termination(vec![fails("first"), says("second", Termination::TimeLimit)]),
        Termination::TimeLimit
    );
}

#[test]
fn a_backend_that_declines_is_passed_over_in_silence() {
    let declines = || {
        let answer = Err(SolveError::Declined { backend: "choosy", reason: "too small".to_owned() });
        Box::new(Mock { name: "choosy", answer })
    };
    let certified = solve(vec![declines(), answers("plain", 2.0, Some(1.0), Termination::Optimal)]).unwrap();
    assert!(certified.fallbacks.is_empty(), "{:?}", certified.fallbacks);
    assert!(matches!(solve(vec![declines()]), Err(SolveError::Declined { .. })));
}

#[test]
fn a_malformed_program_is_nobodys_fallback() {
    let mut program = program();
    program.cost[0] = f64::NAN;
    let mut chain = crate::solver::registry::default_chain(&program);
    let error = solve_certified(&program, &mut chain, &Limits::default(), None).unwrap_err();
    assert_eq!(error.to_string(), "malformed program: column x0 has cost NaN");
}

#[test]
fn infeasible_and_unbounded_programs_are_told_apart_by_the_default_chain() {
    let mut infeasible = program();
    infeasible.push_row(Range::at_least(3.0), [(0, 1.0)]);
    let mut unbounded = program();
    unbounded.rows[0].upper = f64::INFINITY;
    // An interior-point method alone does not tell.
    let has_simplex = cfg!(any(feature = "highs", feature = "good_lp"));
    let as_unbounded = if has_simplex { Termination::Unbounded } else { Termination::InfeasibleOrUnbounded };
    for (program, expected) in [(infeasible, Termination::Infeasible), (unbounded, as_unbounded)] {
        let mut chain = crate::solver::registry::default_chain(&program);
        match solve_certified(&program, &mut chain, &Limits::default(), None) {
            Err(SolveError::NotOptimal { termination, .. }) => assert_eq!(termination, expected),
            other => panic!("{other:?}"),
        }
    }
}
