//! The p-step random-walk kernel on the graph of servers.

use crate::index::{Id, WorkerTypeId};

/// The number of neighbours of a server in the graph.
const N_NEIGHBOURS: usize = 10;

/// The type and the rack of a server: servers of one type are similar, in one rack more so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerPlace {
    /// Its type.
    pub worker_type: WorkerTypeId,
    /// Its rack.
    pub rack: u32,
}

/// Constants of the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelOptions {
    /// ℓ, in the unit in which two racks are 1 apart: weights are exp(−d²/2ℓ²).
    pub length: f64,
    /// a in (0, ½]: the part of each step that walks; 0 makes servers independent.
    pub walking: f64,
    /// p: the number of steps.
    pub n_steps: u32,
}

/// A sparse matrix over servers: the nonzero entries of each row, by column.
pub type Rows = Vec<Vec<(usize, f64)>>;

/// K = ((1−a) I + a P)ᵖ with P = D^−½ W D^−½, [server × server]. Each server's neighbours are the nearest of its type: first its
/// rack, then close numbers. Different types are independent, so K has a block for each type.
///
/// Positive semi-definite, for P's eigenvalues are at least −1 and a ≤ ½.
pub fn kernel(servers: &[ServerPlace], options: &KernelOptions) -> Rows {
    let weights = weights(servers, options.length);
    let degrees: Vec<f64> = weights.iter().map(|row| row.iter().map(|(_, weight)| weight).sum()).collect();
    let step_of = |(row, weights): (usize, &Vec<(usize, f64)>)| {
        let walked = |(column, weight): &(usize, f64)| {
            (*column, options.walking * (weight / (degrees[row] * degrees[*column]).sqrt()))
        };
        let mut step: Vec<_> = weights.iter().map(walked).filter(|(_, weight)| *weight > 0.0).collect();
        // A server without neighbours walks to itself.
        let stayed = 1.0 - options.walking + if degrees[row] > 0.0 { 0.0 } else { options.walking };
        step.insert(step.partition_point(|(column, _)| *column < row), (row, stayed));
        step
    };
    let step: Rows = weights.iter().enumerate().map(step_of).collect();
    let identity = (0..step.len()).map(|row| vec![(row, 1.0)]).collect();
    (0..options.n_steps).fold(identity, |kernel, _| product(&kernel, &step))
}

/// W: weights of each server's neighbours by their distance.
fn weights(servers: &[ServerPlace], length: f64) -> Rows {
    let mut weights: Rows = vec![Vec::new(); servers.len()];
    let n_types = servers.iter().map(|place| place.worker_type.index() + 1).max().unwrap_or(0);
    let mut of_type: Vec<Vec<usize>> = vec![Vec::new(); n_types];
    for (server, place) in servers.iter().enumerate() {
        of_type[place.worker_type.index()].push(server);
    }
    let rack = |server: usize| servers[server].rack;
    for members in &of_type {
        for &one in members {
            let apart = |other: usize| f64::from(rack(other) != rack(one));
            let mut near: Vec<usize> = members.iter().copied().filter(|other| *other != one).collect();
            let key = |other: &usize| (rack(*other) != rack(one), other.abs_diff(one), *other);
            if near.len() > N_NEIGHBOURS {
                near.select_nth_unstable_by_key(N_NEIGHBOURS, key);
                near.truncate(N_NEIGHBOURS);
            }
            for other in near {
                let weight = (-apart(other).powi(2) / (2.0 * length * length)).exp();
                weights[one].push((other, weight));
                weights[other].push((one, weight));
            }
        }
    }
    for row in &mut weights {
        row.sort_unstable_by_key(|(column, _)| *column);
        row.dedup_by_key(|(column, _)| *column);
    }
    weights
}

/// The product of two matrices. Terms are added by column of the first, each rounded once, so that it is the same
/// everywhere.
fn product(left: &Rows, right: &Rows) -> Rows {
    let mut sums = vec![0.0; right.len()];
    let row = |entries: &Vec<(usize, f64)>| {
        let mut columns: Vec<usize> = Vec::new();
        for (between, factor) in entries {
            for (column, weight) in &right[*between] {
                sums[*column] = factor.mul_add(*weight, sums[*column]);
                columns.push(*column);
            }
        }
        columns.sort_unstable();
        columns.dedup();
        columns.into_iter().map(|column| (column, std::mem::take(&mut sums[column]))).collect()
    };
    left.iter().map(row).collect()
}
