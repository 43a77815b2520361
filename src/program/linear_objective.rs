//! Objectives that are sums of jobs' throughputs times coefficients, read without writing a program: the
//! coefficient of each member's throughput, by worker type, and the least throughput that each must have.
//!
//! A coefficient is found by evaluating the expression where a member has all of its time on one worker type.

use super::binding::{BoundObjective, Got};
use super::expression::{Curvature, Expr, Fold, Node, Operator, Subject, Variable, shape};
use super::objective::{Constraint, Route};
use super::singles::Singles;
use super::standard::Sense;

/// Values that differ by less than this part of them are the same but for rounding.
const SAME: f64 = 1e-13;

/// A sum Σ coefficient · by_type · throughput from that type, over members and types.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearObjective {
    /// Of a unit of a member's throughput, ≥ 0, all its jobs together: `[members]`.
    pub coefficient: Vec<f64>,
    /// Of throughput from a worker type, ≥ 0: `[K]`.
    pub by_type: Vec<f64>,
}

impl BoundObjective<'_> {
    /// The members with the throughputs that they must have at a level of 1, and the coefficients of their throughputs in the
    /// sum that is maximized; `None` where there is more to the objective: pairs, other functions, terms that are not
    /// in proportion to throughput, other constraints than least throughputs of jobs.
    pub fn linear_objective(&self) -> Option<(Singles<'_>, LinearObjective)> {
        let alone = self.instance.pairs.is_empty();
        let (demand, mut linear) = if alone { self.linear_objective_of_jobs()? } else { return None };
        for (coefficient, jobs) in linear.coefficient.iter_mut().zip(&self.instance.multiplicity) {
            *coefficient *= jobs;
        }
        Some((Singles::new(self.instance, demand), linear))
    }

    /// The throughputs that members must have, `[members]`, and the coefficients of the throughput of one job of each, alone or
    /// beside others; `None` where the objective is no such sum.
    pub fn linear_objective_of_jobs(&self) -> Option<(Vec<f64>, LinearObjective)> {
        let Node::Reduce(reduction, inner) = &self.objective.expression().node else { return None };
        let summed = reduction.fold == Fold::Sum && reduction.over == Subject::Job && self.is_linear(inner);
        let of_pairs = self.instance.pairs.is_empty() || !self.objective.reads_time();
        let fits = summed && of_pairs && self.objective.route() == Route::Linear;
        if !fits || self.objective.sense() != Sense::Maximize {
            return None;
        }
        let LinearObjective { coefficient, by_type } = self.in_proportion(inner)?;
        let fits = coefficient.iter().chain(&by_type).all(|value| *value >= 0.0 && value.is_finite());
        let demand = self.least_throughputs()?;
        fits.then_some((demand, LinearObjective { coefficient, by_type }))
    }

    /// Are the policy's constraints all least throughputs of jobs?
    pub fn asks_for_throughputs_only(&self) -> bool {
        self.least_throughputs().is_some()
    }

    /// The throughputs that droppable constraints ask for, `[members]`; `None` where a constraint is not droppable, or asks
    /// for anything but a least throughput.
    pub fn droppable_throughputs(&self) -> Option<Vec<f64>> {
        let all = self.objective.constraints().iter().all(|constraint| constraint.droppable);
        if all { self.least_throughputs() } else { None }
    }

    /// Is an expression of one job affine in what that job gets, and in nothing else?
    fn is_linear(&self, expression: &Expr) -> bool {
        let of_jobs =
            |node: &Node| matches!(node, Node::Reduce(reduction, _) if reduction.over == Subject::Job);
        let shape = shape(expression, self.objective.vocabulary());
        shape.is_ok_and(|shape| shape.curvature == Curvature::Affine) && !expression.contains(&of_jobs)
    }

    /// What an expression is for members that have all of their time on a worker type, or none of any: `[members]`.
    fn all_on(&self, expression: &Expr, worker_type: Option<usize>) -> Vec<f64> {
        let mut point = self.no_time();
        for (member, j) in (0..self.instance.n_members()).zip(worker_type.into_iter().cycle()) {
            let (throughput, workers) = (self.instance.alone(member)[j], self.instance.scale_factor[member]);
            point.add(member, j, Got { throughput, time: 1.0, workers });
        }
        self.of_members(expression, &point)
    }

    /// The coefficient of one job's throughput; `None` unless it is a factor of the member times one of the type, and a job
    /// without time adds 0.
    fn in_proportion(&self, expression: &Expr) -> Option<LinearObjective> {
        let (n, k) = (self.instance.n_members(), self.instance.n_types());
        if self.all_on(expression, None).iter().any(|value| *value != 0.0) {
            return None;
        }
        let all: Vec<Vec<f64>> = (0..k).map(|j| self.all_on(expression, Some(j))).collect();
        let speed = |member: usize, j: usize| self.instance.alone(member)[j];
        let runs = |member: usize| (0..k).filter(move |j| speed(member, *j) > 0.0);
        let unit = |member: usize, j: usize| all[j][member] / speed(member, j);
        // each type by a member that runs on it and on one that is known
        let mut by_type = vec![None; k];
        *by_type.first_mut()? = Some(1.0);
        for member in (0..k).flat_map(|_| 0..n) {
            if by_type.iter().all(Option::is_some) {
                break;
            }
            let known = runs(member).find_map(|j| by_type[j].map(|of| unit(member, j) / of));
            let Some(known) = known.filter(|known| *known > 0.0 && known.is_finite()) else { continue };
            for j in runs(member) {
                by_type[j].get_or_insert(unit(member, j) / known);
            }
        }
        let by_type: Vec<f64> = by_type.into_iter().map(|of| of.unwrap_or(1.0)).collect();
        let mut coefficient = Vec::with_capacity(n);
        for member in 0..n {
            let best = runs(member).max_by(|a, b| by_type[*a].total_cmp(&by_type[*b]))?;
            let of_member = if by_type[best] > 0.0 { unit(member, best) / by_type[best] } else { 0.0 };
            let other =
                |j: usize| (unit(member, j) - of_member * by_type[j]).abs() > SAME * unit(member, j).abs();
            if runs(member).any(other) {
                return None;
            }
            coefficient.push(of_member);
        }
        Some(LinearObjective { coefficient, by_type })
    }

    /// The least throughputs that the objective's constraints ask for: `[members]`; nothing if they ask for more.
    fn least_throughputs(&self) -> Option<Vec<f64>> {
        let mut least = vec![0.0_f64; self.instance.n_members()];
        let (dropped, part) = (&self.instance.dropped, 1.0 - self.instance.eased);
        for constraint in self.objective.constraints() {
            let Constraint { subject: Some(Subject::Job), soft: None, droppable, .. } = *constraint else {
                return None;
            };
            if constraint.is_equality() {
                return None;
            }
            let Node::Binary(Operator::Subtract, asked, given) = &constraint.excess.node else { return None };
            let known = shape(asked, self.objective.vocabulary()).ok()?.curvature == Curvature::Constant;
            if given.node != Node::Variable(Variable::Throughput, None) || !known {
                return None;
            }
            for (member, asked) in self.constants(asked).into_iter().enumerate() {
                if !(droppable && dropped.get(member) == Some(&true)) {
                    least[member] = least[member].max(if droppable { part * asked } else { asked });
                }
            }
        }
        least.iter().all(|least| least.is_finite()).then_some(least)
    }
}
