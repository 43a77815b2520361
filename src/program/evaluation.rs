//! Evaluation of expressions: to numbers at a point, or to ranges over all allocations, by one walk over the tree.
//!
//! A walk evaluates several adjacent members at once, so that each node is visited once for all of them and is a loop over
//! their numbers. The order of summation does not depend on how many there are.

use super::at::At;
use super::binding::{BoundObjective, Point, quotient};
use super::expression::{Expr, Fold, Function, Node, Operator, Subject, Variable};

/// Number of members that one walk evaluates at once.
const LANES: usize = 16;

/// A number, or a range of numbers.
pub(super) trait Quantity: Copy {
    /// The quantity that is exactly this number.
    fn exactly(value: f64) -> Self;
    /// −x
    fn negated(self) -> Self;
    /// x + y
    fn plus(self, other: Self) -> Self;
    /// x·y
    fn times(self, other: Self) -> Self;
    /// x/y
    fn over(self, other: Self) -> Self;
    /// x to a power; x is data, at least 0.
    fn power(self, exponent: f64) -> Self;
    /// The value of a function of one argument.
    fn of(self, function: Function) -> Self;
    /// The smaller or the larger of two, as `with` selects.
    fn select(self, other: Self, with: fn(f64, f64) -> f64) -> Self;
}

impl Quantity for f64 {
    fn exactly(value: f64) -> Self {
        value
    }

    fn negated(self) -> Self {
        -self
    }

    fn plus(self, other: Self) -> Self {
        self + other
    }

    fn times(self, other: Self) -> Self {
        // 0·∞ is 0: a factor of 0 takes a part out of a sum, whatever its value.
        if self == 0.0 || other == 0.0 { 0.0 } else { self * other }
    }

    fn over(self, other: Self) -> Self {
        quotient(self, other)
    }

    fn power(self, exponent: f64) -> Self {
        self.powf(exponent)
    }

    fn of(self, function: Function) -> Self {
        (function.rule().value)(self, self)
    }

    fn select(self, other: Self, with: fn(f64, f64) -> f64) -> Self {
        with(self, other)
    }
}

/// Values of variables at places.
pub(super) trait Variables {
    /// The type of a value: a number, or a range.
    type Quantity: Quantity;
    /// The value of a variable at the place of a member, or member · K + type if it is of a worker type.
    fn value(&self, variable: Variable, place: usize) -> Self::Quantity;
}

impl Variables for Point {
    type Quantity = f64;

    fn value(&self, variable: Variable, place: usize) -> f64 {
        self.of(variable)[place]
    }
}

/// Values for expressions without variables.
struct Unknown;

impl Variables for Unknown {
    type Quantity = f64;

    fn value(&self, _variable: Variable, _place: usize) -> f64 {
        f64::NAN
    }
}

impl BoundObjective<'_> {
    /// The value of an expression that does not depend on the allocation.
    pub(crate) fn constant(&self, expression: &Expr, at: At) -> f64 {
        self.evaluate(expression, at, &Unknown)
    }

    /// The value of an expression that does not depend on the allocation, for every member: `[members]`.
    pub(crate) fn constants(&self, expression: &Expr) -> Vec<f64> {
        self.of_members(expression, &Unknown)
    }

    /// The value of an expression at one place.
    pub(super) fn evaluate<V: Variables>(&self, expression: &Expr, at: At, variables: &V) -> V::Quantity {
        let [value] = self.walk::<1, V>(expression, at, variables);
        value
    }

    /// The value of an expression for every member: `[members]`.
    pub(super) fn of_members<V: Variables>(&self, expression: &Expr, variables: &V) -> Vec<V::Quantity> {
        let mut values = Vec::with_capacity(self.instance.n_members());
        self.each(Subject::Job, At::default(), expression, variables, |_, value| values.push(value));
        values
    }

    /// Gives the value of an expression at every place of a reduction that stands at `at`, in order.
    fn each<V: Variables>(
        &self,
        over: Subject,
        at: At,
        expression: &Expr,
        variables: &V,
        mut give: impl FnMut(At, V::Quantity),
    ) {
        let mut places = self.range_over(over, at);
        while let Some(first) = places.next() {
            let whole = over == Subject::Job && first.member + LANES <= self.instance.n_members();
            if whole {
                let values = self.walk::<LANES, V>(expression, first, variables);
                give(first, values[0]);
                // `values` leads the zip: when it ends, no place must have been taken in vain.
                values[1..].iter().zip(places.by_ref()).for_each(|(value, place)| give(place, *value));
            } else {
                give(first, self.evaluate(expression, first, variables));
            }
        }
    }

    /// The values of an expression for the member of `at` and the N − 1 behind it.
    fn walk<const N: usize, V: Variables>(
        &self,
        expression: &Expr,
        at: At,
        variables: &V,
    ) -> [V::Quantity; N] {
        let k = self.instance.n_types();
        let walk = |expression: &Expr| self.walk::<N, V>(expression, at, variables);
        match &expression.node {
            Node::Number { value, .. } => [V::Quantity::exactly(*value); N],
            Node::Data { slot, of: None, .. } => {
                let data = &self.members_data(*slot)[at.member..at.member + N];
                std::array::from_fn(|lane| V::Quantity::exactly(data[lane]))
            }
            Node::OwnedBy(owner) => {
                let owned = &self.owned_by(owner)[at.member..at.member + N];
                std::array::from_fn(|lane| V::Quantity::exactly(owned[lane]))
            }
            Node::Data { slot, of, .. } => [V::Quantity::exactly(self.datum(*slot, of.as_ref(), at)); N],
            Node::Variable(variable, None) => {
                std::array::from_fn(|lane| variables.value(*variable, at.member + lane))
            }
            Node::Variable(variable, Some(of)) => {
                let kind = self.type_position(of, at);
                std::array::from_fn(|lane| variables.value(*variable, (at.member + lane) * k + kind))
            }
            Node::Negate(inner) => walk(inner).map(Quantity::negated),
            Node::Binary(operator, left, right) => {
                let (left, right) = (walk(left), walk(right));
                match operator {
                    Operator::Add => pairwise(left, right, Quantity::plus),
                    Operator::Subtract => pairwise(left, right, |x, y| x.plus(y.negated())),
                    Operator::Multiply => pairwise(left, right, Quantity::times),
                    Operator::Divide => pairwise(left, right, Quantity::over),
                }
            }
            Node::Power(base, exponent) => walk(base).map(|base| base.power(*exponent)),
            Node::Call(function, arguments) if function.rule().several => {
                let (each, with) = (arguments.iter().map(walk), function.rule().value);
                let all = each.reduce(|one, other| pairwise(one, other, |x, y| x.select(y, with)));
                all.unwrap_or([V::Quantity::exactly(f64::NAN); N])
            }
            Node::Call(function, arguments) => walk(&arguments[0]).map(|value| value.of(*function)),
            Node::Reduce(reduction, inner) if reduction.over == Subject::Job => {
                let mut folded = beginning(reduction.fold);
                self.each(Subject::Job, at, inner, variables, |place, value| {
                    let count = self.count(Subject::Job, place);
                    folded = fold(reduction.fold, folded, value, count);
                });
                [folded; N]
            }
            Node::Reduce(reduction, inner) => {
                let mut folded = [beginning(reduction.fold); N];
                for place in self.range_over(reduction.over, at) {
                    let count = self.count(reduction.over, place);
                    let values = self.walk::<N, V>(inner, place, variables);
                    folded = pairwise(folded, values, |x, y| fold(reduction.fold, x, y, count));
                }
                folded
            }
        }
    }
}

fn pairwise<const N: usize, Q: Quantity>(one: [Q; N], other: [Q; N], with: impl Fn(Q, Q) -> Q) -> [Q; N] {
    std::array::from_fn(|lane| with(one[lane], other[lane]))
}

/// The value of a reduction over nothing.
fn beginning<Q: Quantity>(of: Fold) -> Q {
    Q::exactly(match of {
        Fold::Sum => 0.0,
        Fold::Min | Fold::LexicographicMin => f64::INFINITY,
        Fold::Max => f64::NEG_INFINITY,
    })
}

/// A reduction with one more value, which counts for `count` jobs.
fn fold<Q: Quantity>(of: Fold, folded: Q, value: Q, count: f64) -> Q {
    match of {
        Fold::Sum => folded.plus(value.times(Q::exactly(count))),
        Fold::Min | Fold::LexicographicMin => folded.select(value, f64::min),
        Fold::Max => folded.select(value, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use crate::program::expression::{Variable, Vocabulary};
    use crate::program::{Instance, Objective, ObjectiveText, Point, Sense};

    const K: usize = 2;

    /// `n` members with different numbers.
    fn instance(n: usize) -> Instance {
        let numbered = |factor: f64, n: usize| (0..n).map(|i| 1.0 + (factor * i as f64).fract()).collect();
        let mut instance = Instance {
            capacity: vec![5.0, 3.0],
            multiplicity: (0..n).map(|i| 1.0 + (i % 3) as f64).collect(),
            worker_types: vec!["fast".to_owned(), "slow".to_owned()],
            scale_factor: vec![1.0; n],
            throughput: numbered(0.37, K * n),
            ..Instance::default()
        };
        instance.data.insert("weight".to_owned(), numbered(0.61, n));
        instance.data.insert("steps_remaining".to_owned(), numbered(0.43, n));
        instance.type_data.insert("price".to_owned(), vec![2.5, 0.4]);
        instance
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{found} {expected}");
    }

    /// The fold of a function of the member.
    fn folded(n: usize, start: f64, part: impl Fn(usize) -> f64, with: fn(f64, f64) -> f64) -> f64 {
        (0..n).map(part).fold(start, with)
    }

    #[test]
    fn however_many_members_there_are_each_is_taken_once() {
        for n in [1, 15, 16, 17, 32, 37] {
            let instance = instance(n);
            let value = |text: &str| {
                let sense = if text.starts_with("max") { Sense::Minimize } else { Sense::Maximize };
                let objective = Objective::check(&ObjectiveText::new(sense, text), Vocabulary::default());
                let objective = objective.unwrap_or_else(|error| panic!("{text}: {error:?}"));
                let bound = objective.bind(&instance).unwrap();
                let point: Point = bound.point(&vec![0.25; bound.columns().len()]);
                (bound.value(&point), point)
            };
            let (weight, steps) = (&instance.data["weight"], &instance.data["steps_remaining"]);
            let (found, point) = value("sum_over_jobs(weight * log(throughput))");
            let part = |m: usize| instance.multiplicity[m] * weight[m] * point.throughput()[m].ln();
            near(found, folded(n, 0.0, part, |a, b| a + b));

            let (found, point) = value("sum_over_jobs(throughput * weight^-1.5)");
            let part = |m: usize| instance.multiplicity[m] * point.throughput()[m] * weight[m].powf(-1.5);
            near(found, folded(n, 0.0, part, |a, b| a + b));

            let (found, point) = value("max_over_jobs(steps_remaining / throughput)");
            near(found, folded(n, 0.0, |m| steps[m] / point.throughput()[m], f64::max));

            let (found, point) = value("min_over_jobs(weight * throughput)");
            near(found, folded(n, f64::INFINITY, |m| weight[m] * point.throughput()[m], f64::min));

            let (found, point) =
                value("sum_over_jobs(sum_over_worker_types(throughput_on(type) / price(type)))");
            let on = |place: usize| point.of(Variable::ThroughputOn)[place];
            let part = |m: usize| instance.multiplicity[m] * (on(K * m) / 2.5 + on(K * m + 1) / 0.4);
            near(found, folded(n, 0.0, part, |a, b| a + b));

            let (found, point) = value(
                "sum_over_jobs(throughput / steps_remaining) + min_over_jobs(throughput / steps_remaining)",
            );
            let rate = |m: usize| point.throughput()[m] / steps[m];
            let all = folded(n, 0.0, |m| instance.multiplicity[m] * rate(m), |a, b| a + b);
            near(found, all + folded(n, f64::INFINITY, rate, f64::min));
        }
    }
}
