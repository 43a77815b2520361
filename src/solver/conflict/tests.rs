//! Smallest contradictions against all sets of rows.

use proptest::prelude::*;

use super::*;

/// Columns without a cost that may not be negative.
fn columns(n: usize) -> Program {
    let mut program = Program::new(Sense::Maximize);
    for _ in 0..n {
        program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 0.0);
    }
    program
}

fn is_contradiction(program: &Program, candidates: &[usize], kept: &[bool]) -> bool {
    let limits = Limits::default();
    let search = Search::new(program, candidates, &limits);
    matches!(standing(&search.part(kept), &limits), Standing::Contradiction(_))
}

fn smallest(rows: Vec<usize>) -> ConflictingRows {
    ConflictingRows { rows, size: ConflictSize::Smallest }
}

#[test]
fn a_conflict_has_the_rows_that_contradict_one_another_and_no_other() {
    let mut program = columns(2);
    program.push_row(Range::at_most(1.0), [(0, 1.0), (1, -1.0)]);
    let low = program.push_row(Range::at_most(1.0), [(1, 1.0)]);
    let idle = program.push_row(Range::at_least(0.5), [(0, 1.0), (1, 1.0)]);
    let high = program.push_row(Range::at_least(3.0), [(0, 1.0)]);
    let limits = Limits::default();
    assert_eq!(conflict(&program, &[low, idle, high], &limits), Some(smallest(vec![low, high])));
    assert_eq!(conflict(&program, &[idle, high], &limits), Some(smallest(vec![high])));
    program.rows[high] = Range::at_least(2.0);
    assert_eq!(conflict(&program, &[low, idle, high], &limits), None);
}

/// Three rows that contradict one another only together, beside six others that do so only together.
#[test]
fn three_rows_are_found_where_a_proof_takes_six() {
    let mut program = columns(9);
    let floor =
        |program: &mut Program, column, least| program.push_row(Range::at_least(least), [(column, 1.0)]);
    let mut rows: Vec<usize> = (0..6).map(|column| floor(&mut program, column, 0.18)).collect();
    let all = (0..9).map(|column| (column, 1.0));
    program.push_row(Range::at_most(1.0), all);
    assert_eq!(conflict(&program, &rows, &Limits::default()), Some(smallest(rows.clone())));
    let large: Vec<usize> = (6..9).map(|column| floor(&mut program, column, 0.34)).collect();
    rows.extend(&large);
    assert_eq!(conflict(&program, &rows, &Limits::default()), Some(smallest(large)));
}

#[test]
fn what_is_not_proven_to_be_the_smallest_is_not_called_so() {
    let mut program = columns(3);
    program.push_row(Range::at_most(1.0), (0..3).map(|column| (column, 1.0)));
    let rows: Vec<usize> =
        (0..3).map(|column| program.push_row(Range::at_least(0.4), [(column, 1.0)])).collect();
    let limits = Limits::default();
    let mut search = Search::new(&program, &rows, &limits);
    (search.tries, search.best) = (0, vec![true; 3]);
    assert_eq!(search.smallest(), None);
    assert_eq!(search.irreducible(), (vec![true; 3], ConflictSize::Irreducible));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_set_of_rows_that_contradict_one_another_is_smaller(
        rows in proptest::collection::vec((proptest::collection::vec(-2_i8..4, 3), -3_i8..8, any::<bool>()), 4..8),
    ) {
        let mut program = columns(3);
        program.push_row(Range::at_most(4.0), (0..3).map(|column| (column, 1.0)));
        let candidates: Vec<usize> = rows
            .iter()
            .map(|(values, side, least)| {
                let side = f64::from(*side) + 0.5;
                let range = if *least { Range::at_least(side) } else { Range::at_most(side) };
                program.push_row(range, values.iter().enumerate().map(|(at, value)| (at, f64::from(*value))))
            })
            .collect();
        let sets = (0_u32..1 << candidates.len())
            .map(|bits| (0..candidates.len()).map(|at| bits & (1 << at) != 0).collect::<Vec<bool>>());
        let least = sets.filter(|kept| is_contradiction(&program, &candidates, kept)).map(|kept| n_kept(&kept)).min();
        let found = conflict(&program, &candidates, &Limits::default());
        prop_assert_eq!(found.as_ref().map(|found| found.rows.len()), least);
        if let Some(ConflictingRows { rows, size }) = found {
            prop_assert_eq!(size, ConflictSize::Smallest);
            let kept: Vec<bool> = candidates.iter().map(|row| rows.contains(row)).collect();
            prop_assert!(is_contradiction(&program, &candidates, &kept));
        }
    }
}
