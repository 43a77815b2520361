//! What expressions are: numbers at a point, ranges within reach, by one walk over the tree.
//!
//! A walk is for several members at once, next to each other, so that the tree is gone through once for all of them and
//! what is done at each node is a loop over their numbers. In what order is summed up does not depend on how many.

use super::bound::{At, BoundObjective, Point, quotient};
use super::expression::{Expr, Fold, Function, Node, Operator, Subject};

/// Members that are walked for at once where there are many.
const LANES: usize = 16;

/// What can be calculated with: numbers, ranges of them.
pub(super) trait Quantity: Copy {
    /// This number.
    fn exactly(value: f64) -> Self;
    /// −x
    fn negated(self) -> Self;
    /// x + y
    fn plus(self, other: Self) -> Self;
    /// x·y
    fn times(self, other: Self) -> Self;
    /// x/y
    fn over(self, other: Self) -> Self;
    /// ln x, √x or 1/x.
    fn of(self, function: Function) -> Self;
    /// The smaller or the larger.
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
        self * other
    }

    fn over(self, other: Self) -> Self {
        quotient(self, other)
    }

    fn of(self, function: Function) -> Self {
        match function {
            Function::Log => self.ln(),
            Function::Sqrt => self.sqrt(),
            Function::Inv => self.recip(),
            Function::Min | Function::Max => self,
        }
    }

    fn select(self, other: Self, with: fn(f64, f64) -> f64) -> Self {
        with(self, other)
    }
}

/// What the variables are.
pub(super) trait Variables {
    /// A number, or a range.
    type Quantity: Quantity;
    /// Throughput of a member.
    fn throughput(&self, member: usize) -> Self::Quantity;
    /// Throughput from a worker type: at member × K + type.
    fn throughput_on(&self, place: usize) -> Self::Quantity;
    /// Time on a worker type, there.
    fn time_on(&self, place: usize) -> Self::Quantity;
}

impl Variables for Point {
    type Quantity = f64;

    fn throughput(&self, member: usize) -> f64 {
        self.throughput[member]
    }

    fn throughput_on(&self, place: usize) -> f64 {
        self.throughput_on[place]
    }

    fn time_on(&self, place: usize) -> f64 {
        self.time_on[place]
    }
}

/// No variable has a value.
struct Unknown;

impl Variables for Unknown {
    type Quantity = f64;

    fn throughput(&self, _member: usize) -> f64 {
        f64::NAN
    }

    fn throughput_on(&self, _place: usize) -> f64 {
        f64::NAN
    }

    fn time_on(&self, _place: usize) -> f64 {
        f64::NAN
    }
}

impl BoundObjective<'_> {
    /// The value of an expression that does not depend on the allocation.
    pub(crate) fn constant(&self, expression: &Expr, at: At) -> f64 {
        self.evaluate(expression, at, &Unknown)
    }

    /// The same for every member: `[members]`.
    pub(crate) fn constants(&self, expression: &Expr) -> Vec<f64> {
        self.of_members(expression, &Unknown)
    }

    /// What an expression is at one place.
    pub(super) fn evaluate<V: Variables>(&self, expression: &Expr, at: At, variables: &V) -> V::Quantity {
        let [value] = self.walk::<1, V>(expression, at, variables);
        value
    }

    /// What an expression is for every member: `[members]`.
    pub(super) fn of_members<V: Variables>(&self, expression: &Expr, variables: &V) -> Vec<V::Quantity> {
        let mut values = Vec::with_capacity(self.instance.n_members());
        self.each(Subject::Job, At::default(), (expression, variables), |_, value| values.push(value));
        values
    }

    /// Gives what an expression is at every place of a reduction seen from `at`, one after another.
    fn each<V: Variables>(
        &self,
        over: Subject,
        at: At,
        (expression, variables): (&Expr, &V),
        mut give: impl FnMut(At, V::Quantity),
    ) {
        let mut places = self.range_over(over, at);
        while let Some(first) = places.next() {
            let whole = over == Subject::Job && first.member + LANES <= self.instance.n_members();
            if whole {
                let values = self.walk::<LANES, V>(expression, first, variables);
                give(first, values[0]);
                // (the values first: a place that has none must not be taken)
                values[1..].iter().zip(places.by_ref()).for_each(|(value, place)| give(place, *value));
            } else {
                give(first, self.evaluate(expression, first, variables));
            }
        }
    }

    /// What an expression is for the member at hand and those after it.
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
            Node::Data { slot, of, .. } => [V::Quantity::exactly(self.datum(*slot, of.as_ref(), at)); N],
            Node::Throughput => std::array::from_fn(|lane| variables.throughput(at.member + lane)),
            Node::ThroughputOn(of) => {
                let kind = self.type_position(of, at);
                std::array::from_fn(|lane| variables.throughput_on((at.member + lane) * k + kind))
            }
            Node::TimeOn(of) => {
                let kind = self.type_position(of, at);
                std::array::from_fn(|lane| variables.time_on((at.member + lane) * k + kind))
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
            Node::Call(function, arguments) => {
                let with = if *function == Function::Min { f64::min } else { f64::max };
                let each = arguments.iter().map(walk);
                let all = each.reduce(|one, other| pairwise(one, other, |x, y| x.select(y, with)));
                all.unwrap_or([V::Quantity::exactly(f64::NAN); N]).map(|value| value.of(*function))
            }
            Node::Reduce(reduction, inner) if reduction.over == Subject::Job => {
                let mut folded = beginning(reduction.fold);
                self.each(Subject::Job, at, (inner, variables), |place, value| {
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

/// What a reduction of nothing is.
fn beginning<Q: Quantity>(of: Fold) -> Q {
    Q::exactly(match of {
        Fold::Sum => 0.0,
        Fold::Min | Fold::LexicographicMin => f64::INFINITY,
        Fold::Max => f64::NEG_INFINITY,
    })
}

/// One value more in a reduction, for so many jobs.
fn fold<Q: Quantity>(of: Fold, folded: Q, value: Q, count: f64) -> Q {
    match of {
        Fold::Sum => folded.plus(value.times(Q::exactly(count))),
        Fold::Min | Fold::LexicographicMin => folded.select(value, f64::min),
        Fold::Max => folded.select(value, f64::max),
    }
}

#[cfg(test)]
mod tests {
    use crate::program::expression::Vocabulary;
    use crate::program::{Instance, Objective, ObjectiveText, Point, Sense};

    const K: usize = 2;

    /// So many members, of which each has numbers of its own.
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

    /// A part of `members` by their place, folded.
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
            let part = |m: usize| instance.multiplicity[m] * weight[m] * point.throughput[m].ln();
            near(found, folded(n, 0.0, part, |a, b| a + b));

            let (found, point) = value("max_over_jobs(steps_remaining / throughput)");
            near(found, folded(n, 0.0, |m| steps[m] / point.throughput[m], f64::max));

            let (found, point) = value("min_over_jobs(weight * throughput)");
            near(found, folded(n, f64::INFINITY, |m| weight[m] * point.throughput[m], f64::min));

            let (found, point) =
                value("sum_over_jobs(sum_over_worker_types(throughput_on(type) / price(type)))");
            let on = |place: usize| point.throughput_on[place];
            let part = |m: usize| instance.multiplicity[m] * (on(K * m) / 2.5 + on(K * m + 1) / 0.4);
            near(found, folded(n, 0.0, part, |a, b| a + b));

            let (found, point) = value(
                "sum_over_jobs(throughput / steps_remaining) + min_over_jobs(throughput / steps_remaining)",
            );
            let rate = |m: usize| point.throughput[m] / steps[m];
            let all = folded(n, 0.0, |m| instance.multiplicity[m] * rate(m), |a, b| a + b);
            near(found, all + folded(n, f64::INFINITY, rate, f64::min));
        }
    }
}
