//! The restricted master against other solvers of its program, written out.

use super::*;
use crate::program::{Program, Range, Sense};
use crate::solver::{Limits, registry};

/// Numbers in [0, 1), spread evenly: the fractional parts of multiples of the golden ratio less 1.
fn drawn(n: usize) -> impl Iterator<Item = f64> {
    (1..=n).map(|at| (at as f64 * 0.618_033_988_749_894_9).fract())
}

/// The restricted master as a linear program for other solvers.
fn written(restricted_master: &RestrictedMaster) -> Program {
    let mut program = Program::new(Sense::Minimize);
    let columns = (0..restricted_master.cost.len()).map(Variable::Column);
    let variables: Vec<Variable> = restricted_master.row_variables().chain(columns).collect();
    let n = restricted_master.n_types() + restricted_master.groups;
    let mut rows = vec![Vec::new(); n];
    for (column, variable) in variables.iter().enumerate() {
        let cost =
            restricted_master.for_each_coefficient(*variable, |row, value| rows[row].push((column, value)));
        program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 1e3 }, cost);
    }
    for (row, terms) in rows.into_iter().enumerate() {
        let bound = restricted_master
            .capacity
            .get(row)
            .map_or(1.0, |of| if restricted_master.is_stretched { 0.0 } else { *of });
        program.push_row(Range::exactly(bound), terms);
    }
    program
}

#[test]
fn mixtures_are_those_of_another_solver() {
    for stretched in [false, true] {
        // Lower ends add up to 0.3: at these prices, slack in all rows is worth less than a stretch of 1, and the program is
        // bounded.
        for rows in [1, 2, 3, 20] {
            let (low, high) = (vec![0.3 / rows as f64; rows], vec![0.7; rows]);
            let mut restricted_master =
                RestrictedMaster::new(vec![1.0; rows], 3, stretched, PriceBounds { low, high });
            let mut numbers = drawn(600);
            for _ in 0..6 {
                let mut take = |n: usize, by: f64| -> Vec<f64> {
                    numbers.by_ref().take(n).map(|number| number * by).collect()
                };
                let cost = if stretched { vec![0.0; 3] } else { take(3, -1.0) };
                restricted_master.add_round(&Columns {
                    cost,
                    usage: take(3 * rows, 1.0),
                    least: 0.0,
                    slope: 0.0,
                });
                let mixture = restricted_master.solve().expect("an optimum");
                let mut other = registry::backend("clarabel").unwrap();
                let other = other.solve(&written(&restricted_master), &Limits::default(), None).unwrap();
                assert!((mixture.objective - other.objective).abs() < 1e-7, "{rows} {stretched}");
                let of_group = |group: usize| {
                    let parts = restricted_master.weights().into_iter().filter(move |of| of.group == group);
                    parts.map(|of| of.weight).sum::<f64>()
                };
                assert!((0..3).all(|group| (of_group(group) - 1.0).abs() < 1e-12));
            }
        }
    }
}

#[test]
fn a_range_is_widened_where_it_holds_prices_back() {
    let mut restricted_master =
        RestrictedMaster::new(vec![1.0], 1, false, PriceBounds { low: vec![0.2], high: vec![0.4] });
    restricted_master.add_round(&Columns { cost: vec![0.0], usage: vec![2.0], least: 0.0, slope: 0.0 });
    assert!(
        (restricted_master.solve().expect("an optimum").price[0] - 0.4).abs() < 1e-12,
        "there is an excess of one"
    );
    assert!(restricted_master.widen_price_box(1.0));
    assert!((restricted_master.price_high[0] - 0.6).abs() < 1e-12);
}
