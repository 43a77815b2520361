use proptest::prelude::*;

use super::*;

/// Cheapest total over all ways to assign the smaller side, by trying them all.
fn brute_force(costs: &[Vec<f64>]) -> f64 {
    fn cheapest(costs: &[Vec<f64>], row: usize, taken: u32, skips: usize) -> f64 {
        if row == costs.len() {
            return 0.0;
        }
        let skip = if skips > 0 { cheapest(costs, row + 1, taken, skips - 1) } else { f64::INFINITY };
        let take = |column: usize| costs[row][column] + cheapest(costs, row + 1, taken | 1 << column, skips);
        (0..costs[row].len()).filter(|column| taken & 1 << column == 0).map(take).fold(skip, f64::min)
    }
    let columns = costs.first().map_or(0, Vec::len);
    cheapest(costs, 0, 0, costs.len().saturating_sub(columns))
}

fn total(costs: &[Vec<f64>], columns: &[Option<usize>]) -> f64 {
    columns.iter().enumerate().filter_map(|(row, column)| Some(costs[row][(*column)?])).sum()
}

fn of(costs: &[Vec<f64>]) -> Result<Vec<Option<usize>>, Unassignable> {
    assign(costs.len(), costs.first().map_or(0, Vec::len), |row, column| costs[row][column])
}

fn costs() -> impl Strategy<Value = Vec<Vec<f64>>> {
    // Small integers, so that ties are common; sometimes forbidden.
    let cost = prop_oneof![6 => (0..9_i32).prop_map(f64::from), 1 => Just(f64::INFINITY), 3 => -1e3..1e3];
    (1..8_usize, 1..8_usize).prop_flat_map(move |(rows, columns)| {
        prop::collection::vec(prop::collection::vec(cost.clone(), columns), rows)
    })
}

proptest! {
    #[test]
    fn no_assignment_is_cheaper(costs in costs()) {
        let best = brute_force(&costs);
        match of(&costs) {
            Err(_) => prop_assert!(best.is_infinite()),
            Ok(columns) => {
                let found = total(&costs, &columns);
                prop_assert!((found - best).abs() <= 1e-9 * best.abs().max(1.0), "{found} against {best}");
                let mut taken: Vec<usize> = columns.iter().flatten().copied().collect();
                prop_assert_eq!(taken.len(), costs.len().min(costs[0].len()));
                taken.sort_unstable();
                taken.dedup();
                prop_assert_eq!(taken.len(), costs.len().min(costs[0].len()), "a column twice");
            }
        }
    }

    #[test]
    fn chains_change_nothing(
        base in prop::collection::vec(prop::collection::vec(1..6_i32, 3), 1..7),
        delay in prop::collection::vec(0.0..100.0_f64, 7),
    ) {
        let (n_rows, n_chains) = (base.len(), 3);
        let cost = |row: usize, column: usize| {
            f64::from(base[row][column % n_chains]) * (column / n_chains + 1) as f64 + delay[row]
        };
        let dense: Vec<_> = assign(n_rows, n_rows * n_chains, cost).unwrap().into_iter().flatten().collect();
        let chains = Chains { capacity: vec![1; n_chains], length: n_rows };
        prop_assert_eq!(assign_chained(n_rows, &chains, cost).unwrap(), dense);
    }
}

proptest! {
    #[test]
    fn room_for_two_is_two_columns_alike(
        base in prop::collection::vec(prop::collection::vec(1..6_i32, 3), 1..7),
        capacity in prop::collection::vec(0..4_usize, 3),
    ) {
        prop_assume!(capacity.iter().any(|capacity| *capacity > 0));
        let (n_rows, n_chains) = (base.len(), 3);
        let cost = |row: usize, column: usize| {
            f64::from(base[row][column % n_chains]) * (column / n_chains + 1) as f64
        };
        let chains = Chains { capacity: capacity.clone(), length: n_rows };
        let columns = assign_chained(n_rows, &chains, cost).unwrap();
        let found: f64 = columns.iter().enumerate().map(|(row, column)| cost(row, *column)).sum();
        let unfolded: Vec<usize> =
            (0..n_rows * n_chains).flat_map(|column| vec![column; capacity[column % n_chains]]).collect();
        let apart = assign(n_rows, unfolded.len(), |row, copy| cost(row, unfolded[copy])).unwrap();
        let best: f64 =
            apart.iter().enumerate().filter_map(|(row, copy)| Some(cost(row, unfolded[(*copy)?]))).sum();
        prop_assert!((found - best).abs() < 1e-9, "{found} against {best}");
        for (column, capacity) in (0..n_rows * n_chains).map(|column| (column, capacity[column % n_chains])) {
            prop_assert!(columns.iter().filter(|other| **other == column).count() <= capacity);
        }
    }
}

#[test]
fn nothing_to_assign() {
    assert_eq!(assign(0, 4, |_, _| 1.0), Ok(vec![]));
    assert_eq!(assign(3, 0, |_, _| 1.0), Ok(vec![None; 3]));
    assert_eq!(assign(1, 1, |_, _| f64::INFINITY), Err(Unassignable { row: 0 }));
}

/// A matrix and the column of each of its rows.
#[derive(serde::Deserialize)]
struct Recorded {
    costs: Vec<Vec<f64>>,
    columns: Vec<Option<usize>>,
}

#[test]
fn ties_fall_as_recorded() {
    let recorded =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/scipy_assignments.jsonl"));
    for (number, line) in recorded.lines().enumerate() {
        let Recorded { costs, columns } = serde_json::from_str(line).unwrap();
        assert_eq!(of(&costs).unwrap(), columns, "case {number}");
    }
}
