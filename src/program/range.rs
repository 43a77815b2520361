//! Bounds on what expressions can be, by interval arithmetic over all allocations.

use super::bound::{At, BoundObjective};
use super::evaluation::{Quantity, Variables};
use super::expression::{Expr, Fold, Function, Node, Subject};
use super::standard::{Range, Sense};

/// Bounds on what a job of each member can get.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    /// Effective throughput: [members].
    throughput: Vec<Range>,
    /// Most from each worker type: [members × K], or empty where nobody asks.
    throughput_on: Vec<f64>,
    /// Most time on each worker type: [members × K], or empty where nobody asks.
    time_on: Vec<f64>,
}

impl Reach {
    /// What the time and capacity rows allow a job of each member, whatever the others get.
    pub(crate) fn of(bound: &BoundObjective<'_>) -> Self {
        let instance = bound.instance;
        let (n, k) = (instance.n_members(), instance.n_types());
        let by_type = if bound.objective.reads_throughput_only() { 0 } else { n * k };
        let (throughput_on, time_on) = (Vec::with_capacity(by_type), Vec::with_capacity(by_type));
        let mut reach = Self { throughput: Vec::with_capacity(n), throughput_on, time_on };
        let paired = !instance.pairs.is_empty();
        let mut alone = bound.layout.columns.iter().take(if paired { 0 } else { usize::MAX }).peekable();
        let (mut best, mut times, mut order) = (vec![0.0_f64; k], vec![0.0_f64; k], Vec::with_capacity(k));
        for member in 0..n {
            best.fill(0.0);
            times.fill(0.0);
            let mut add = |j: usize, scale_factor: f64, time: f64, speed: f64| {
                times[j] = times[j].max((time * instance.capacity[j] / scale_factor).min(1.0));
                best[j] = best[j].max(speed);
            };
            // (alone, members' columns are one after another)
            while let Some(column) = alone.next_if(|column| column.combination == member) {
                let (j, scale_factor) = (column.worker_type, instance.scale_factor[member]);
                add(j, scale_factor, 1.0 / instance.multiplicity[member], instance.alone(member)[j]);
            }
            if paired {
                for term in bound.terms(member) {
                    let combination = bound.layout.columns[term.column].combination;
                    let scale_factor = instance.scale_factor_of(combination);
                    add(term.worker_type, scale_factor, term.time, term.throughput / term.time);
                }
            }
            // All of its time, on the fastest types first.
            order.clear();
            order.extend(0..k);
            order.sort_by(|a, b| best[*b].total_cmp(&best[*a]).then(a.cmp(b)));
            let (mut left, mut most) = (1.0, 0.0);
            for &j in &order {
                let time = times[j].min(left);
                most += best[j] * time;
                left -= time;
            }
            reach.throughput.push(Range { lower: 0.0, upper: most });
            if by_type > 0 {
                reach.throughput_on.extend(best.iter().zip(&times).map(|(speed, time)| speed * time));
                reach.time_on.extend_from_slice(&times);
            }
        }
        reach
    }

    /// The same after an optimum's own value has bounded each job's throughput from below: every optimum is at
    /// least as good as `reference`, the value of some feasible allocation.
    pub(crate) fn tightened(mut self, bound: &BoundObjective<'_>, reference: f64) -> Self {
        let (Some(inversion), Some(levels)) = (bound.objective.inversion(), bound.levels()) else {
            return self.tightened_by_sum(bound, reference);
        };
        if inversion.leaf_is_throughput() {
            for (member, range) in self.throughput.iter_mut().enumerate() {
                let required = levels.required(member, reference).value;
                // Rounding must not make the bound too tight to be one.
                range.lower = range.lower.max(required * (1.0 - 1e-9)).min(range.upper);
            }
        }
        self
    }

    /// In a sum every job's part is at least (maximized) what the reference leaves when all others do their best.
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
        if !part.leaf_is_throughput() {
            return self;
        }
        let data: Vec<Option<&Expr>> = part.steps.iter().map(|step| step.datum.as_ref()).collect();
        let levels = super::inversion::Levels::new(&part, bound.step_data(&data));
        let best = |member: usize| levels.level(member, self.throughput[member].upper);
        let multiplicity = &bound.instance.multiplicity;
        let all: f64 = (0..multiplicity.len()).map(|m| multiplicity[m] * best(m)).sum();
        let lowest: Vec<f64> = (0..multiplicity.len())
            .map(|member| {
                let others = all - best(member);
                let slack = 1e-9 * (reference.abs() + all.abs() + others.abs());
                let level = match side {
                    super::inversion::Bound::AtLeast => reference - others - slack,
                    super::inversion::Bound::AtMost => reference - others + slack,
                };
                levels.required(member, level).value
            })
            .collect();
        for (range, lowest) in self.throughput.iter_mut().zip(lowest) {
            range.lower = range.lower.max(lowest * (1.0 - 1e-9)).min(range.upper);
        }
        self
    }
}

impl BoundObjective<'_> {
    /// Where the value of an expression lies, for every allocation within reach.
    pub(crate) fn range(&self, expression: &Expr, at: At, reach: &Reach) -> Range {
        self.evaluate(expression, at, reach)
    }
}

impl Variables for Reach {
    type Quantity = Range;

    fn throughput(&self, member: usize) -> Range {
        self.throughput[member]
    }

    fn throughput_on(&self, place: usize) -> Range {
        Range { lower: 0.0, upper: self.throughput_on[place] }
    }

    fn time_on(&self, place: usize) -> Range {
        Range { lower: 0.0, upper: self.time_on[place] }
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
        Self { lower: self.lower + other.lower, upper: self.upper + other.upper }
    }

    fn times(self, other: Self) -> Self {
        times(self, other)
    }

    fn over(self, other: Self) -> Self {
        times(self, reciprocal(other))
    }

    fn of(self, function: Function) -> Self {
        let each = |with: fn(f64) -> f64| Self { lower: with(self.lower), upper: with(self.upper) };
        match function {
            Function::Log => each(|x| x.max(0.0).ln()),
            Function::Sqrt => each(|x| x.max(0.0).sqrt()),
            Function::Inv => reciprocal(self),
            Function::Min | Function::Max => self,
        }
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

/// 1/x for x on one side of 0; anything for an x on both.
fn reciprocal(x: Range) -> Range {
    if x.lower >= 0.0 {
        Range { lower: 1.0 / x.upper, upper: if x.lower == 0.0 { f64::INFINITY } else { 1.0 / x.lower } }
    } else if x.upper <= 0.0 {
        reciprocal(x.negated()).negated()
    } else {
        Range::FREE
    }
}
