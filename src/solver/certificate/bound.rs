//! The Lagrangian bound.
//!
//! To maximize c·x, for any y and any z in the dual cone K*, every feasible x has
//!
//!   c·x  ≤  c·x − Σ y_i (row_i(x) − b_i) + z·(F x + g)
//!        ≤  Σ y_i b_i + z·g + Σ_j max { d_j x_j : x_j in its box },     d = c − Aᵀy + Fᵀz
//!
//! where b_i is the upper bound for y_i > 0 and the lower for y_i < 0 (Boyd & Vandenberghe, section 5.1). To
//! minimize is to maximize −c. Before that, duals are repaired: signs without a bound are cut to zero, reduced
//! costs towards an infinite end of a box are moved to zero by one cone entry or by the rows of the column, and cone
//! duals are put into the dual cone. A repair changes which multipliers are used, never whether the bound holds. The
//! estimated rounding error of the sum is added to it.

use crate::program::{ConeKind, Program, Range, Sense};
use crate::solver::certificate::propagation::boxes;
use crate::solver::tolerances::SUM_ROUNDING;

/// The part of the magnitudes that it is a sum of up to which a reduced cost towards an infinite end of a box counts as
/// rounding of 0.
const NOISE: f64 = 1e-13;
/// The most sweeps of the repair of reduced costs.
const SWEEPS: usize = 3;

/// The bound that duals prove on the objective, offset included: no feasible point is above it (to maximize) or
/// below it (to minimize). Infinite in that direction if they prove nothing or have the wrong lengths.
///
/// Duals have the signs documented on [`Solution`](crate::solver::Solution); any numbers give a valid bound.
pub fn dual_bound(program: &Program, row_duals: &[f64], cone_duals: &[Vec<f64>]) -> f64 {
    dual_bound_in(program, &boxes(program), row_duals, cone_duals)
}

/// [`dual_bound`] over given boxes of the columns.
pub(super) fn dual_bound_in(
    program: &Program,
    boxes: &[Range],
    row_duals: &[f64],
    cone_duals: &[Vec<f64>],
) -> f64 {
    let sign = sign(program.sense);
    let Some(mut multipliers) = Multipliers::repaired(program, boxes, row_duals, cone_duals) else {
        return sign * f64::INFINITY;
    };
    let with_duals = multipliers.value();
    // The boxes alone prove a bound, too, which is exact where the best point of the boxes is an optimum.
    multipliers.clear();
    program.offset + sign * with_duals.min(multipliers.value())
}

/// The bound that duals prove over given boxes of the columns, whatever the boxes prove without them.
pub(super) fn bound_of_duals_in(
    program: &Program,
    boxes: &[Range],
    row_duals: &[f64],
    cone_duals: &[Vec<f64>],
) -> f64 {
    let multipliers = Multipliers::repaired(program, boxes, row_duals, cone_duals);
    program.offset + sign(program.sense) * multipliers.map_or(f64::INFINITY, |duals| duals.value())
}

/// The factor that makes the objective one to maximize: 1 or −1.
fn sign(sense: Sense) -> f64 {
    match sense {
        Sense::Maximize => 1.0,
        Sense::Minimize => -1.0,
    }
}

/// Multipliers of a program taken as a maximization.
struct Multipliers<'a> {
    program: &'a Program,
    boxes: &'a [Range],
    /// The factor that makes the objective one to maximize: 1 or −1.
    sign: f64,
    /// Multipliers y of rows: [rows].
    rows: Vec<f64>,
    /// Multipliers z of cones: [cones][entries].
    cones: Vec<Vec<f64>>,
}

/// Reduced costs, each with the sum of the magnitudes of its terms: [columns].
struct Reduced {
    costs: Vec<f64>,
    magnitudes: Vec<f64>,
}

impl Reduced {
    /// Whether the reduced cost of this column points to an infinite end of its box, by more than rounding.
    fn escapes(&self, column: usize, range: Range) -> bool {
        let cost = self.costs[column];
        let end = if cost > 0.0 { range.upper } else { range.lower };
        end.is_infinite() && cost.abs() > NOISE * self.magnitudes[column]
    }
}

impl<'a> Multipliers<'a> {
    /// The multipliers of repaired duals; none if the duals have the wrong lengths, or are not finite.
    fn repaired(
        program: &'a Program,
        boxes: &'a [Range],
        row_duals: &[f64],
        cone_duals: &[Vec<f64>],
    ) -> Option<Self> {
        let sign = sign(program.sense);
        let fits = row_duals.len() == program.n_rows()
            && cone_duals.len() == program.cones.len()
            && cone_duals.iter().zip(&program.cones).all(|(duals, cone)| duals.len() == cone.entries.len());
        let finite = row_duals.iter().chain(cone_duals.iter().flatten()).all(|dual| dual.is_finite());
        if !fits || !finite {
            return None;
        }
        let mut multipliers = Self {
            program,
            boxes,
            sign,
            rows: row_duals.iter().map(|dual| sign * dual).collect(),
            cones: cone_duals.iter().map(|duals| duals.iter().map(|dual| sign * dual).collect()).collect(),
        };
        multipliers.cut_signs();
        multipliers.repair_columns();
        multipliers.enter_dual_cones();
        Some(multipliers)
    }

    /// Sets multipliers of infinite bounds to 0, as with any other the bound would be infinite.
    fn cut_signs(&mut self) {
        for (dual, range) in self.rows.iter_mut().zip(&self.program.rows) {
            let bound = if *dual > 0.0 { range.upper } else { range.lower };
            if bound.is_infinite() {
                *dual = 0.0;
            }
        }
    }

    fn clear(&mut self) {
        self.rows.fill(0.0);
        self.cones.iter_mut().for_each(|duals| duals.fill(0.0));
    }

    fn reduced(&self) -> Reduced {
        let mut costs: Vec<f64> = self.program.cost.iter().map(|cost| self.sign * cost).collect();
        let mut magnitudes: Vec<f64> = costs.iter().map(|cost| cost.abs()).collect();
        for (row, &dual) in self.rows.iter().enumerate().filter(|(_, dual)| **dual != 0.0) {
            for (column, value) in self.program.row(row) {
                costs[column] -= dual * value;
                magnitudes[column] += (dual * value).abs();
            }
        }
        for (cone, duals) in self.program.cones.iter().zip(&self.cones) {
            for (entry, dual) in cone.entries.iter().zip(duals) {
                for &(column, value) in &entry.terms {
                    costs[column] += dual * value;
                    magnitudes[column] += (dual * value).abs();
                }
            }
        }
        Reduced { costs, magnitudes }
    }

    /// Moves reduced costs towards an infinite end to 0: by a cone entry that is this column alone, if there is one,
    /// else by all rows of the column in proportion to their contributions.
    fn repair_columns(&mut self) {
        let open = |range: &Range| range.lower.is_infinite() || range.upper.is_infinite();
        if !self.boxes.iter().any(open) {
            return;
        }
        for _ in 0..SWEEPS {
            let reduced = self.reduced();
            let escaping: Vec<bool> =
                (0..self.boxes.len()).map(|column| reduced.escapes(column, self.boxes[column])).collect();
            if !escaping.contains(&true) {
                return;
            }
            let mut left = escaping;
            self.repair_by_cones(&reduced, &mut left);
            self.repair_by_rows(&reduced, &left);
            self.cut_signs();
        }
    }

    fn repair_by_cones(&mut self, reduced: &Reduced, left: &mut [bool]) {
        for (cone, duals) in self.program.cones.iter().zip(&mut self.cones) {
            for (entry, dual) in cone.entries.iter().zip(duals) {
                if let [(column, value)] = entry.terms[..]
                    && value != 0.0
                    && left[column]
                {
                    *dual -= reduced.costs[column] / value;
                    left[column] = false;
                }
            }
        }
    }

    fn repair_by_rows(&mut self, reduced: &Reduced, left: &[bool]) {
        // Σ |a y| and Σ a·(a y) over the rows of each column: y ← y (1 + δ) with one δ for the column
        let mut contributions = vec![0.0; left.len()];
        for (row, &dual) in self.rows.iter().enumerate().filter(|(_, dual)| **dual != 0.0) {
            for (column, value) in self.program.row(row).filter(|&(column, _)| left[column]) {
                contributions[column] += (dual * value).abs();
            }
        }
        for row in 0..self.rows.len() {
            let dual = self.rows[row];
            for (column, value) in self.program.row(row).filter(|&(column, _)| left[column]) {
                if contributions[column] > 0.0 && value != 0.0 {
                    let share = (dual * value).abs() / contributions[column];
                    self.rows[row] += share * reduced.costs[column] / value;
                }
            }
        }
    }

    /// Puts the multipliers of every cone into its dual cone.
    fn enter_dual_cones(&mut self) {
        for (cone, duals) in self.program.cones.iter().zip(&mut self.cones) {
            match cone.kind {
                ConeKind::SecondOrder => {
                    let open = cone.entries[0].terms.iter().any(|&(column, _)| {
                        self.boxes[column].lower.is_infinite() || self.boxes[column].upper.is_infinite()
                    });
                    enter_second_order(duals, open);
                }
                ConeKind::Exponential => {
                    let entry = &cone.entries[1];
                    enter_exponential(duals, entry.terms.is_empty() && entry.constant >= 0.0);
                }
            }
        }
    }

    /// The bound that these multipliers prove, without the offset, for a maximization.
    fn value(&self) -> f64 {
        let reduced = self.reduced();
        let (mut total, mut magnitude) = (0.0_f64, 0.0_f64);
        let mut add = |term: f64| {
            total += term;
            magnitude += term.abs();
        };
        for (&dual, range) in self.rows.iter().zip(&self.program.rows).filter(|(dual, _)| **dual != 0.0) {
            add(dual * if dual > 0.0 { range.upper } else { range.lower });
        }
        for (cone, duals) in self.program.cones.iter().zip(&self.cones) {
            for (entry, dual) in cone.entries.iter().zip(duals) {
                add(dual * entry.constant);
            }
        }
        let mut rounding = 0.0;
        for (column, &range) in self.boxes.iter().enumerate() {
            let cost = reduced.costs[column];
            let end = if cost > 0.0 { range.upper } else { range.lower };
            if end.is_finite() {
                add(cost * end);
                rounding += SUM_ROUNDING * reduced.magnitudes[column] * end.abs();
            } else if reduced.escapes(column, range) {
                return f64::INFINITY;
            }
        }
        total + rounding + SUM_ROUNDING * magnitude
    }
}

/// Puts a multiplier (t, v) into the second-order cone t ≥ ‖v‖, which is its own dual: raises t, or shrinks v if t is
/// not to change (`keep_first`), since its column has an open box.
fn enter_second_order(duals: &mut [f64], keep_first: bool) {
    let norm = duals[1..].iter().map(|v| v * v).sum::<f64>().sqrt() * (1.0 + SUM_ROUNDING);
    if duals[0] >= norm {
        return;
    }
    if keep_first {
        duals[0] = duals[0].max(0.0);
        let factor = duals[0] / norm;
        duals[1..].iter_mut().for_each(|v| *v *= factor);
    } else {
        duals[0] = norm;
    }
}

/// Puts a multiplier into the dual of the exponential cone, the closure of {(u, v, w): u < 0, −u·exp(v/u − 1) ≤ w}.
/// If u ≥ 0, u becomes 0, and v and w at least 0. Else v is set to its least feasible value if its entry is a
/// constant of at least 0 (`v_costs_nothing`), so that no reduced cost changes; if not, w is raised.
fn enter_exponential(duals: &mut [f64], v_costs_nothing: bool) {
    let (u, v, w) = (duals[0], duals[1], duals[2]);
    if u >= 0.0 {
        duals.copy_from_slice(&[0.0, v.max(0.0), w.max(0.0)]);
    } else if v_costs_nothing && w > 0.0 {
        let least = u * (1.0 + (w / -u).ln());
        duals[1] = least + SUM_ROUNDING * (least.abs() + u.abs());
    } else {
        duals[2] = w.max(-u * (v / u - 1.0).exp() * (1.0 + SUM_ROUNDING));
    }
}
