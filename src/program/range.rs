//! Ranges of expressions over all allocations, by interval arithmetic.

use super::at::At;
use super::binding::BoundObjective;
use super::evaluation::{Quantity, Variables};
use super::expression::{Expr, Fold, Function, Node, Subject, Variable};
use super::standard::{Range, Sense};

/// Relative amount by which bounds derived from a reference value are widened, so that rounding does not make them too
/// tight.
const WIDENING: f64 = 1e-9;

/// Ranges of the variables, for one job of each member.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    /// Ranges by variable: `[members]`, or [members × K] for a variable of a worker type; empty if it is not read.
    values: [Vec<Range>; Variable::ALL.len()],
}

impl Reach {
    /// The ranges that the time row and the capacity rows allow each member by itself.
    pub(crate) fn of(bound: &BoundObjective<'_>) -> Self {
        Self::of_jobs(bound, false)
    }

    /// The ranges that these rows allow one job of each member by itself.
    pub(crate) fn of_one_job(bound: &BoundObjective<'_>) -> Self {
        Self::of_jobs(bound, true)
    }

    fn of_jobs(bound: &BoundObjective<'_>, one_job: bool) -> Self {
        let instance = bound.instance;
        let (n, k) = (instance.n_members(), instance.n_types());
        let read: Vec<Variable> =
            Variable::ALL.into_iter().filter(|variable| bound.objective.reads_variable(*variable)).collect();
        let mut reach = Self { values: std::array::from_fn(|_| Vec::new()) };
        for variable in &read {
            let length = n * if variable.atom().by_type { k } else { 1 };
            reach.values[*variable as usize].reserve_exact(length);
        }
        let paired = !instance.pairs.is_empty();
        let mut alone = bound.binding.columns.iter().take(if paired { 0 } else { usize::MAX }).peekable();
        let (mut best, mut times, mut order) = (vec![0.0_f64; k], vec![0.0_f64; k], Vec::with_capacity(k));
        for member in 0..n {
            best.fill(0.0);
            times.fill(0.0);
            let jobs = instance.multiplicity[member];
            let alike = if one_job { jobs } else { 1.0 };
            let mut add = |j: usize, scale_factor: f64, time: f64, speed: f64| {
                times[j] = times[j].max((time * instance.capacity[j] / scale_factor).min(1.0));
                best[j] = best[j].max(speed);
            };
            // Without pairs, the columns of a member are adjacent.
            while let Some(column) = alone.next_if(|column| column.combination == member) {
                let (j, scale_factor) = (column.worker_type, instance.scale_factor[member]);
                add(j, scale_factor, alike / jobs, instance.alone(member)[j]);
            }
            if paired {
                for term in bound.terms(member) {
                    let combination = bound.binding.columns[term.column].combination;
                    let scale_factor = instance.scale_factor_of(combination);
                    add(term.worker_type, scale_factor, alike * term.time, term.throughput / term.time);
                }
            }
            // The most that a job can get: all of its time, on the fastest types first.
            order.clear();
            order.extend(0..k);
            order.sort_by(|a, b| best[*b].total_cmp(&best[*a]).then(a.cmp(b)));
            for variable in &read {
                let rate = |j: usize| variable.measure().of(best[j], 1.0, instance.scale_factor[member]);
                let values = &mut reach.values[*variable as usize];
                let mut push = |upper| values.push(Range { lower: 0.0, upper });
                if variable.atom().by_type {
                    (0..k).for_each(|j| push(rate(j) * times[j]));
                } else {
                    let (mut left, mut most) = (1.0, 0.0);
                    for &j in &order {
                        let time = times[j].min(left);
                        most += rate(j) * time;
                        left -= time;
                    }
                    push(most);
                }
            }
        }
        reach
    }

    /// Ranges of effective throughput: `[members]`, steps/s.
    fn throughput(&mut self) -> &mut [Range] {
        &mut self.values[Variable::Throughput as usize]
    }

    /// The ranges with throughputs bounded from below: every optimum is at least as good as `reference`, the value of
    /// some feasible allocation.
    pub(crate) fn tightened(mut self, bound: &BoundObjective<'_>, reference: f64) -> Self {
        let (Some(inversion), Some(levels)) = (bound.objective.inversion(), bound.levels()) else {
            return self.tightened_by_sum(bound, reference);
        };
        if inversion.is_of_throughput() {
            for (member, range) in self.throughput().iter_mut().enumerate() {
                let required = levels.required(member, reference).value;
                range.lower = range.lower.max(required * (1.0 - WIDENING)).min(range.upper);
            }
        }
        self
    }

    /// The ranges tightened for a sum over jobs: in an optimum, each job's part is at least as good as the reference less
    /// the best parts of all others.
    fn tightened_by_sum(mut self, bound: &BoundObjective<'_>, reference: f64) -> Self {
        let objective = bound.objective;
        let Node::Reduce(reduction, inner) = &objective.expression().node else { return self };
        if reduction.fold != Fold::Sum || reduction.over != Subject::Job || !reference.is_finite() {
            return self;
        }
        let side = match objective.sense() {
            Sense::Maximize => super::inversion::Bound::AtLeast,
            Sense::Minimize => super::inversion::Bound::AtMost,
        };
        let Some(part) = super::inversion::Inversion::trace(inner, side, objective.vocabulary()) else {
            return self;
        };
        if !part.is_of_throughput() {
            return self;
        }
        let data: Vec<Option<&Expr>> = part.steps.iter().map(|step| step.datum.as_ref()).collect();
        let levels = super::inversion::Levels::new(&part, bound.step_data(&data));
        let best = |member: usize| levels.level(member, self.value(Variable::Throughput, member).upper);
        let multiplicity = &bound.instance.multiplicity;
        let all: f64 = (0..multiplicity.len()).map(|m| multiplicity[m] * best(m)).sum();
        let lowest: Vec<f64> = (0..multiplicity.len())
            .map(|member| {
                let others = all - best(member);
                let slack = WIDENING * (reference.abs() + all.abs() + others.abs());
                let level = match side {
                    super::inversion::Bound::AtLeast => reference - others - slack,
                    super::inversion::Bound::AtMost => reference - others + slack,
                };
                levels.required(member, level).value
            })
            .collect();
        for (range, lowest) in self.throughput().iter_mut().zip(lowest) {
            range.lower = range.lower.max(lowest * (1.0 - WIDENING)).min(range.upper);
        }
        self
    }
}

impl BoundObjective<'_> {
    /// The most throughput, or of what else the objective's levels ask for, that each member can have by itself: `[members]`;
    /// `None` if the objective has no levels.
    pub fn throughputs_max(&self) -> Option<Vec<f64>> {
        let inversion = self.objective.inversion()?;
        let ranges = self.of_members(inversion.throughput(), &Reach::of(self));
        Some(ranges.into_iter().map(|range| range.upper).collect())
    }

    /// The range of an expression.
    pub(crate) fn range(&self, expression: &Expr, at: At, reach: &Reach) -> Range {
        self.evaluate(expression, at, reach)
    }
}

impl Variables for Reach {
    type Quantity = Range;

    fn value(&self, variable: Variable, place: usize) -> Range {
        self.values[variable as usize][place]
    }
}

impl Quantity for Range {
    fn exactly(value: f64) -> Self {
        Self::exactly(value)
    }

    fn negated(self) -> Self {
        Self { lower: -self.upper, upper: -self.lower }
    }

    fn plus(self, other: Self) -> Self {
        // ∞ − ∞ may be anything.
        let or = |value: f64, unknown: f64| if value.is_nan() { unknown } else { value };
        let (lower, upper) = (self.lower + other.lower, self.upper + other.upper);
        Self { lower: or(lower, f64::NEG_INFINITY), upper: or(upper, f64::INFINITY) }
    }

    fn times(self, other: Self) -> Self {
        times(self, other)
    }

    fn over(self, other: Self) -> Self {
        times(self, reciprocal(other))
    }

    fn power(self, exponent: f64) -> Self {
        let (lower, upper) = (self.lower.powf(exponent), self.upper.powf(exponent));
        Self { lower: lower.min(upper), upper: lower.max(upper) }
    }

    fn of(self, function: Function) -> Self {
        if function == Function::Inv {
            // The range of such an argument may cross 0 here, by rounding or by a bound that is not tight.
            return reciprocal(self);
        }
        let rule = function.rule();
        let of = |x: f64| {
            let x = if rule.domain.is_some() { x.max(0.0) } else { x };
            (rule.value)(x, x)
        };
        let (lower, upper) = (of(self.lower), of(self.upper));
        if rule.increasing { Self { lower, upper } } else { Self { lower: upper, upper: lower } }
    }

    fn select(self, other: Self, with: fn(f64, f64) -> f64) -> Self {
        Self { lower: with(self.lower, other.lower), upper: with(self.upper, other.upper) }
    }
}

fn times(x: Range, y: Range) -> Range {
    // 0·∞ is 0 here: the factor that is exactly 0 wins.
    let product = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
    let corners = [
        product(x.lower, y.lower),
        product(x.lower, y.upper),
        product(x.upper, y.lower),
        product(x.upper, y.upper),
    ];
    let fold = |start, with: fn(f64, f64) -> f64| corners.into_iter().fold(start, with);
    Range { lower: fold(f64::INFINITY, f64::min), upper: fold(f64::NEG_INFINITY, f64::max) }
}

/// The range of 1/x: of any size if x may lie on both sides of 0.
fn reciprocal(x: Range) -> Range {
    if x.lower >= 0.0 {
        Range { lower: 1.0 / x.upper, upper: if x.lower == 0.0 { f64::INFINITY } else { 1.0 / x.lower } }
    } else if x.upper <= 0.0 {
        reciprocal(x.negated()).negated()
    } else {
        Range::FREE
    }
}
