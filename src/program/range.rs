//! Bounds on what expressions can be, by interval arithmetic over all allocations.

use super::bound::{At, BoundObjective};
use super::expression::{Expr, Fold, Function, Node, Operator, Subject};
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
        let k = self.instance.n_types();
        let up_to = |upper: f64| Range { lower: 0.0, upper };
        match &expression.node {
            Node::Number { value, .. } => Range::exactly(*value),
            Node::Data { slot, of, .. } => Range::exactly(self.datum(*slot, of.as_ref(), at)),
            Node::Throughput => reach.throughput[at.member],
            Node::ThroughputOn(of) => up_to(reach.throughput_on[at.member * k + self.type_position(of, at)]),
            Node::TimeOn(of) => up_to(reach.time_on[at.member * k + self.type_position(of, at)]),
            Node::Negate(inner) => negated(self.range(inner, at, reach)),
            Node::Binary(operator, left, right) => {
                let (x, y) = (self.range(left, at, reach), self.range(right, at, reach));
                match operator {
                    Operator::Add => plus(x, y),
                    Operator::Subtract => plus(x, negated(y)),
                    Operator::Multiply => times(x, y),
                    Operator::Divide => times(x, reciprocal(y)),
                }
            }
            Node::Call(function, arguments) => {
                let mut ranges = arguments.iter().map(|argument| self.range(argument, at, reach));
                let first = ranges.next().unwrap_or(Range::FREE);
                let each =
                    |with: fn(f64) -> f64| Range { lower: with(first.lower), upper: with(first.upper) };
                match function {
                    Function::Log => each(|x| x.max(0.0).ln()),
                    Function::Sqrt => each(|x| x.max(0.0).sqrt()),
                    Function::Inv => reciprocal(first),
                    Function::Min => ranges.fold(first, |a, b| pointwise(a, b, f64::min)),
                    Function::Max => ranges.fold(first, |a, b| pointwise(a, b, f64::max)),
                }
            }
            Node::Reduce(reduction, inner) => {
                let ranges = self.range_over(reduction.over, at).map(|place| {
                    let range = self.range(inner, place, reach);
                    match reduction.fold {
                        Fold::Sum => times(range, Range::exactly(self.count(reduction.over, place))),
                        _ => range,
                    }
                });
                match reduction.fold {
                    Fold::Sum => ranges.fold(Range::exactly(0.0), plus),
                    Fold::Min | Fold::LexicographicMin => {
                        ranges.fold(Range::exactly(f64::INFINITY), |a, b| pointwise(a, b, f64::min))
                    }
                    Fold::Max => {
                        ranges.fold(Range::exactly(f64::NEG_INFINITY), |a, b| pointwise(a, b, f64::max))
                    }
                }
            }
        }
    }
}

fn pointwise(x: Range, y: Range, with: fn(f64, f64) -> f64) -> Range {
    Range { lower: with(x.lower, y.lower), upper: with(x.upper, y.upper) }
}

fn negated(x: Range) -> Range {
    Range { lower: -x.upper, upper: -x.lower }
}

fn plus(x: Range, y: Range) -> Range {
    Range { lower: x.lower + y.lower, upper: x.upper + y.upper }
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
        negated(reciprocal(negated(x)))
    } else {
        Range::FREE
    }
}
