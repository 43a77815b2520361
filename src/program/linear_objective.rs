//! Objectives that are sums of jobs' throughputs times coefficients, read without writing a program: the
//! coefficient of each member's throughput, by worker type, and the least throughput that each must have.
//!
//! A coefficient is found by evaluating the expression where a member has all of its time on one worker type.

use super::at::At;
use super::binding::BoundObjective;
use super::evaluation::Variables;
use super::expression::{Curvature, Expr, Fold, Node, Operator, Subject, TypeRef, Variable, shape};
use super::objective::{Constraint, Route};
use super::singles::Singles;
use super::standard::Sense;

/// Relative difference up to which values are equal but for rounding.
const SAME: f64 = 1e-13;

/// A sum Σ coefficient · by_type · throughput from that type, over members and types.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearObjective {
    /// Coefficient of a member's throughput, ≥ 0: `[members]`; of all its jobs together, or of one where a method says so.
    pub coefficient: Vec<f64>,
    /// Factor of throughput from each worker type, ≥ 0: `[K]`.
    pub by_type: Vec<f64>,
}

/// A linear objective of members alone.
#[derive(Clone, Debug)]
pub struct LinearSum<'a> {
    /// The members, with the throughputs that they must have at a level of 1.
    pub singles: Singles<'a>,
    /// The coefficients of the throughputs of all jobs of each member.
    pub linear: LinearObjective,
}

/// A linear objective of jobs, alone or beside others.
#[derive(Clone, Debug)]
pub struct LinearSumOfJobs {
    /// The throughput that a job of each member must have: `[members]`.
    pub required: Vec<f64>,
    /// The coefficients of the throughput of one job of each member.
    pub linear: LinearObjective,
}

/// Values of variables where every member has all of its time on one worker type, or no time at all.
struct AllOn<'a> {
    bound: &'a BoundObjective<'a>,
    worker_type: Option<usize>,
}

impl Variables for AllOn<'_> {
    type Quantity = f64;

    fn value(&self, variable: Variable, place: usize) -> f64 {
        let (instance, by_type) = (self.bound.instance, variable.atom().by_type);
        let k = instance.n_types();
        let (member, kind) = if by_type { (place / k, Some(place % k)) } else { (place, None) };
        match self.worker_type {
            Some(on) if kind.is_none_or(|kind| kind == on) => {
                variable.measure().of(instance.alone(member)[on], 1.0, instance.scale_factor[member])
            }
            _ => 0.0,
        }
    }
}

impl BoundObjective<'_> {
    /// The sum that is maximized; `None` where there is more to the objective: pairs, other functions, terms that are not
    /// in proportion to throughput, other constraints than least throughputs of jobs.
    pub fn linear_objective(&self) -> Option<LinearSum<'_>> {
        if !self.instance.pairs.is_empty() {
            return None;
        }
        let LinearSumOfJobs { required, mut linear } = self.linear_objective_of_jobs()?;
        for (coefficient, jobs) in linear.coefficient.iter_mut().zip(&self.instance.multiplicity) {
            *coefficient *= jobs;
        }
        Some(LinearSum { singles: Singles::new(self.instance, required), linear })
    }

    /// The sum that is maximized, over jobs alone or beside others; `None` where the objective is no such sum.
    pub fn linear_objective_of_jobs(&self) -> Option<LinearSumOfJobs> {
        let Node::Reduce(reduction, inner) = &self.objective.expression().node else { return None };
        let summed = reduction.fold == Fold::Sum && reduction.over == Subject::Job && self.is_linear(inner);
        let of_pairs = self.instance.pairs.is_empty() || !self.objective.reads_time();
        let fits = summed && of_pairs && self.objective.route() == Route::Linear;
        if !fits || self.objective.sense() != Sense::Maximize {
            return None;
        }
        let LinearObjective { coefficient, by_type } = self.in_proportion(inner)?;
        let fits = coefficient.iter().chain(&by_type).all(|value| *value >= 0.0 && value.is_finite());
        let required = self.least_throughputs()?;
        fits.then_some(LinearSumOfJobs { required, linear: LinearObjective { coefficient, by_type } })
    }

    /// Whether the policy's constraints are all least throughputs of jobs.
    pub fn asks_for_throughputs_only(&self) -> bool {
        self.least_throughputs().is_some()
    }

    /// The throughputs that droppable constraints ask for, `[members]`; `None` where a constraint is not droppable, or asks
    /// for anything but a least throughput.
    pub fn droppable_throughputs(&self) -> Option<Vec<f64>> {
        let all = self.objective.constraints().iter().all(|constraint| constraint.droppable);
        if all { self.least_throughputs() } else { None }
    }

    /// Whether an expression of one job is affine, and depends on the allocation of that job alone.
    fn is_linear(&self, expression: &Expr) -> bool {
        let of_jobs =
            |node: &Node| matches!(node, Node::Reduce(reduction, _) if reduction.over == Subject::Job);
        let shape = shape(expression, self.objective.vocabulary());
        shape.is_ok_and(|shape| shape.curvature == Curvature::Affine) && !expression.contains(&of_jobs)
    }

    /// The value of an expression where members have all of their time on a worker type, or no time at all: `[members]`.
    fn all_on(&self, expression: &Expr, worker_type: Option<usize>) -> Vec<f64> {
        self.of_members(expression, &AllOn { bound: self, worker_type })
    }

    /// The summand of a sum over worker types; `None` unless it reads only variables of a job on that type and is 0
    /// without time.
    fn part_by_type<'e>(&self, expression: &'e Expr) -> Option<&'e Expr> {
        let Node::Reduce(reduction, part) = &expression.node else { return None };
        let reads_more = |node: &Node| match node {
            Node::Variable(_, of) => *of != Some(TypeRef::Bound),
            Node::Reduce(..) => true,
            _ => false,
        };
        let summed = reduction.fold == Fold::Sum && reduction.over == Subject::WorkerType;
        if !summed || part.contains(&reads_more) {
            return None;
        }
        let nothing = AllOn { bound: self, worker_type: None };
        let places = (0..self.instance.n_members())
            .flat_map(|member| (0..self.instance.n_types()).map(move |worker_type| (member, worker_type)));
        let is_nothing = |(member, worker_type)| {
            self.evaluate(part, At { member, worker_type, of_job: true }, &nothing).abs() <= 0.0
        };
        places.into_iter().all(is_nothing).then_some(&**part)
    }

    /// The value of a worker type's summand where members have all of their time there: `[members]`.
    fn part_on(&self, part: &Expr, worker_type: usize) -> Vec<f64> {
        let all = AllOn { bound: self, worker_type: Some(worker_type) };
        let at = |member| At { member, worker_type, of_job: true };
        (0..self.instance.n_members()).map(|member| self.evaluate(part, at(member), &all)).collect()
    }

    /// The coefficient of one job's throughput; `None` unless it is a factor of the member times a factor of the worker
    /// type, and a job without time adds 0.
    fn in_proportion(&self, expression: &Expr) -> Option<LinearObjective> {
        let (n, k) = (self.instance.n_members(), self.instance.n_types());
        if self.all_on(expression, None).iter().any(|value| *value != 0.0) {
            return None;
        }
        let all: Vec<Vec<f64>> = match self.part_by_type(expression) {
            Some(part) => (0..k).map(|j| self.part_on(part, j)).collect(),
            None => (0..k).map(|j| self.all_on(expression, Some(j))).collect(),
        };
        let speed = |member: usize, j: usize| self.instance.alone(member)[j];
        let runs = |member: usize| (0..k).filter(move |j| speed(member, *j) > 0.0);
        let unit = |member: usize, j: usize| all[j][member] / speed(member, j);
        // the factor of each type, from a member that runs on it and on a type whose factor is known
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

    /// The least throughputs that the objective's constraints ask for: `[members]`; `None` if they ask for anything else.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::expression::Vocabulary;
    use crate::program::{Instance, Objective, ObjectiveText};

    /// Three members on four types, at prices.
    fn instance() -> Instance {
        let mut instance = Instance {
            capacity: vec![2.0; 4],
            multiplicity: vec![1.0, 2.0, 1.0],
            worker_types: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
            scale_factor: vec![1.0, 1.0, 2.0],
            throughput: (0..12).map(|at| 0.3 + 1.7 * f64::from(at)).collect(),
            ..Instance::default()
        };
        instance.data.insert("weight".to_owned(), vec![0.7, 1.3, 2.1]);
        instance.type_data.insert("price".to_owned(), vec![0.7, 1.1, 2.9, 0.3]);
        instance
    }

    #[test]
    fn a_sum_over_types_is_read_type_by_type_and_to_the_last_digit_as_a_whole() {
        let instance = instance();
        let read = |text: &str| {
            let text = format!("sum_over_jobs({text})");
            let objective = ObjectiveText::new(Sense::Maximize, text);
            let objective = Objective::check(&objective, Vocabulary::default()).unwrap();
            let bound = objective.bind(&instance).unwrap();
            let Node::Reduce(_, inner) = &objective.expression().node else { panic!("a sum") };
            let part = bound.part_by_type(inner);
            let whole: Vec<Vec<f64>> = (0..4).map(|j| bound.all_on(inner, Some(j))).collect();
            let parts = part.map(|part| (0..4).map(|j| bound.part_on(part, j)).collect::<Vec<_>>());
            assert!(parts.as_ref().is_none_or(|parts| *parts == whole), "{parts:?} {whole:?}");
            parts.is_some()
        };
        assert!(read("sum_over_worker_types(throughput_on(type) / price(type))"));
        assert!(read("sum_over_worker_types(weight * throughput_on(type) / price(type))"));
        // Throughput on all types, throughput on a named type, and no sum over types.
        assert!(!read("sum_over_worker_types(throughput / price(type))"));
        assert!(!read("sum_over_worker_types(throughput_on(a) / price(type))"));
        assert!(!read("weight * throughput"));
    }
}
