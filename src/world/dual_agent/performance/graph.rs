//! The p-step random-walk kernel on the graph of servers.

use nalgebra::DMatrix;

use crate::world::dual_agent::cluster::type_of;
use crate::world::servers::Servers;

/// Neighbours of a server in the graph.
const N_NEIGHBOURS: usize = 10;

/// Constants of the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelOptions {
    /// ℓ, in the unit in which two racks are 1 apart: weights are exp(−d²/2ℓ²).
    pub length: f64,
    /// a in (0, ½]: how much of each step walks; 0 makes servers independent.
    pub walking: f64,
    /// p: steps.
    pub n_steps: u32,
}

/// K = ((1−a) I + a P)ᵖ with P = D^−½ W D^−½, [server × server]. Servers of a type are neighbours, those of a rack
/// before others and those of close number before far ones; types share nothing, so K falls into a block for each.
///
/// Positive semi-definite, for P's eigenvalues are at least −1 and a ≤ ½.
pub fn kernel(servers: &Servers, options: &KernelOptions) -> DMatrix<f64> {
    let n = servers.len();
    let ids: Vec<_> = servers.ids().collect();
    let mut weights = DMatrix::<f64>::zeros(n, n);
    for (row, one) in ids.iter().enumerate() {
        let apart = |column: usize| f64::from(servers.rack(ids[column]) != servers.rack(*one));
        let mut near: Vec<usize> = (0..n)
            .filter(|other| *other != row && type_of(servers, ids[*other]) == type_of(servers, *one))
            .collect();
        near.sort_by(|one, other| {
            let key = |column: usize| (apart(column), column.abs_diff(row), column);
            let ((d, gap, id), (e, span, jd)) = (key(*one), key(*other));
            d.total_cmp(&e).then(gap.cmp(&span)).then(id.cmp(&jd))
        });
        for column in near.into_iter().take(N_NEIGHBOURS) {
            let weight = (-apart(column).powi(2) / (2.0 * options.length * options.length)).exp();
            weights[(row, column)] = weight;
            weights[(column, row)] = weight;
        }
    }
    let degrees: Vec<f64> = (0..n).map(|row| weights.row(row).sum()).collect();
    let step = DMatrix::from_fn(n, n, |row, column| {
        // A server without neighbours walks to itself.
        let walked = match degrees[row] > 0.0 {
            true if weights[(row, column)] > 0.0 => {
                weights[(row, column)] / (degrees[row] * degrees[column]).sqrt()
            }
            false if row == column => 1.0,
            _ => 0.0,
        };
        let stayed = if row == column { 1.0 - options.walking } else { 0.0 };
        stayed + options.walking * walked
    });
    let mut kernel = DMatrix::identity(n, n);
    for _ in 0..options.n_steps {
        kernel = &kernel * &step;
    }
    kernel
}
