//! Expressions as affine forms over a program's columns.
//!
//! An affine expression is such a form by itself. A concave (convex) one becomes a form that the rows and cones added for it
//! keep at most (at least) as large as the expression, and that every optimum makes equal to it.

use super::at::At;
use super::binding::Term;
use super::builder::Builder;
use super::expression::{Expr, Fold, Function, Node, Operator, Reduction, Subject};
use super::program_map::{AuxiliaryRole, RowRole};
use super::standard::{Affine, Cone, ConeKind, Range};

/// The side of an expression on which its form stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// At most the expression, which is concave.
    Below,
    /// At least the expression, which is convex.
    Above,
}

/// The place of an expression, and the side on which its form stays.
#[derive(Clone, Copy, Debug)]
struct Context {
    at: At,
    side: Side,
    /// The range of the value of every optimum, if the expression is the whole objective.
    top: Option<Range>,
}

impl Context {
    fn part(self) -> Self {
        Self { top: None, ..self }
    }

    fn flipped(self) -> Self {
        Self { side: self.side.flipped(), top: None, ..self }
    }
}

impl Side {
    fn flipped(self) -> Self {
        match self {
            Self::Below => Self::Above,
            Self::Above => Self::Below,
        }
    }

    /// The range of (form − column).
    fn range(self) -> Range {
        match self {
            Self::Below => Range::at_least(0.0),
            Self::Above => Range::at_most(0.0),
        }
    }
}

impl Builder<'_> {
    /// A linear form at most as large as a concave expression. `top`: the range of the value of every optimum, if the
    /// expression is the whole objective.
    pub(crate) fn at_most(&mut self, expression: &Expr, at: At, top: Option<Range>) -> Affine {
        self.form(expression, Context { at, side: Side::Below, top })
    }

    /// A linear form at least as large as a convex expression.
    pub(crate) fn at_least(&mut self, expression: &Expr, at: At, top: Option<Range>) -> Affine {
        self.form(expression, Context { at, side: Side::Above, top })
    }

    /// The linear form of an affine expression.
    pub(crate) fn affine(&mut self, expression: &Expr, at: At) -> Affine {
        self.form(expression, Context { at, side: Side::Below, top: None })
    }

    fn form(&mut self, expression: &Expr, context: Context) -> Affine {
        let at = context.at;
        if !expression.varies() {
            return Affine { constant: self.bound.constant(expression, at), terms: Vec::new() };
        }
        match &expression.node {
            Node::Number { .. } | Node::Data { .. } | Node::OwnedBy(_) | Node::Power(..) => Affine::default(),
            Node::Variable(variable, of) => {
                let on = of.as_ref().map(|of| self.bound.type_position(of, at));
                let measure = variable.measure();
                let value = |term: &Term| (term.column, measure.of(term.throughput, term.time, term.workers));
                let terms = match on {
                    Some(on) => self.bound.terms_on(at.member, on).map(value).collect(),
                    None => self.bound.terms(at.member).iter().map(value).collect(),
                };
                Affine { constant: 0.0, terms }
            }
            Node::Negate(inner) => scaled(self.form(inner, context.flipped()), -1.0),
            Node::Binary(operator, left, right) => self.binary(*operator, left, right, context.part()),
            Node::Call(function, arguments) => {
                let range = self.bound.range(expression, at, self.reach);
                self.call(*function, arguments, range, context.part())
            }
            Node::Reduce(reduction, inner) => {
                let within = || self.bound.range(expression, at, self.reach);
                let implied = context.top.unwrap_or_else(within);
                self.reduce(*reduction, inner, implied, context)
            }
        }
    }

    fn binary(&mut self, operator: Operator, left: &Expr, right: &Expr, context: Context) -> Affine {
        // Beside an infinite number, such as the time until an absent deadline, the rest of a sum does not count.
        let infinite = |part: &Expr| {
            let value = (!part.varies()).then(|| self.bound.constant(part, context.at));
            value.filter(|value| value.is_infinite())
        };
        if let Operator::Add | Operator::Subtract = operator {
            let sign = if operator == Operator::Add { 1.0 } else { -1.0 };
            if let Some(constant) = infinite(left).or_else(|| Some(sign * infinite(right)?)) {
                return Affine { constant, terms: Vec::new() };
            }
        }
        match operator {
            Operator::Add => {
                let mut sum = self.form(left, context);
                add(&mut sum, self.form(right, context), 1.0);
                sum
            }
            Operator::Subtract => {
                let mut sum = self.form(left, context);
                add(&mut sum, self.form(right, context.flipped()), -1.0);
                sum
            }
            Operator::Multiply => {
                let (part, factor) = if left.varies() { (left, right) } else { (right, left) };
                self.times(part, self.bound.constant(factor, context.at), context)
            }
            Operator::Divide if !right.varies() => {
                self.times(left, self.bound.constant(right, context.at).recip(), context)
            }
            Operator::Divide => {
                let factor = self.bound.constant(left, context.at);
                if factor == 0.0 {
                    Affine::default()
                } else {
                    scaled(self.inverse(right, context.at), factor)
                }
            }
        }
    }

    fn times(&mut self, part: &Expr, factor: f64, context: Context) -> Affine {
        if factor == 0.0 {
            return Affine::default();
        }
        let context = if factor < 0.0 { context.flipped() } else { context };
        scaled(self.form(part, context), factor)
    }

    fn call(&mut self, function: Function, arguments: &[Expr], range: Range, context: Context) -> Affine {
        let at = context.at;
        match function {
            Function::Min | Function::Max => {
                let role = AuxiliaryRole::Part { function: function.name(), member: at.job() };
                let column = self.column(role, Range::FREE, range);
                let row = RowRole::Part { auxiliary: column - self.bound.columns().len(), member: at.job() };
                let is_never =
                    |value: f64| value.is_infinite() && (value < 0.0) == (context.side == Side::Above);
                for argument in arguments {
                    let form = self.form(argument, context);
                    if is_never(form.constant) {
                        continue;
                    }
                    self.beside(row, form, column, context.side);
                }
                self.of_column(column)
            }
            Function::Inv => self.inverse(&arguments[0], at),
            Function::Log => self.log(&arguments[0], at),
            Function::Sqrt => self.sqrt(&arguments[0], at),
        }
    }

    fn reduce(&mut self, reduction: Reduction, inner: &Expr, implied: Range, context: Context) -> Affine {
        let places = self.bound.range_over(reduction.over, context.at);
        let part = context.part();
        if reduction.fold == Fold::Sum {
            let mut sum = Affine::default();
            for at in places {
                let count = self.bound.count(reduction.over, at);
                add(&mut sum, self.form(inner, Context { at, ..part }), count);
            }
            return sum;
        }
        let level = context.top.is_some() && reduction.over == Subject::Job;
        let function = if context.side == Side::Below { "min" } else { "max" };
        let role = if level {
            AuxiliaryRole::Level
        } else {
            AuxiliaryRole::Part { function, member: context.at.job() }
        };
        let column = self.column(role, Range::FREE, implied);
        let auxiliary = column - self.bound.columns().len();
        for at in places {
            let member = at.job();
            let row = if level {
                RowRole::Level { member: at.member }
            } else {
                RowRole::Part { auxiliary, member }
            };
            let form = self.form(inner, Context { at, ..part });
            self.beside(row, form, column, part.side);
        }
        self.of_column(column)
    }

    /// Adds the row that keeps an auxiliary column on its side of a form.
    fn beside(&mut self, row: RowRole, mut form: Affine, column: usize, side: Side) {
        form.terms.push((column, -self.scale_of(column)));
        self.row(row, side.range(), form);
    }

    /// The value of an auxiliary column, as a form.
    fn of_column(&self, column: usize) -> Affine {
        Affine { constant: 0.0, terms: vec![(column, self.scale_of(column))] }
    }

    /// A form at most as large as a function's argument, divided by `unit`, with each column once, as cones need it.
    fn argument(&mut self, argument: &Expr, at: At, unit: f64) -> Affine {
        let mut form = scaled(self.affine(argument, at), unit.recip());
        merge(&mut form.terms);
        form
    }

    /// A form at most log x: a column y ≤ log(x/σ), with (y, 1, x/σ) in the exponential cone, plus log σ.
    fn log(&mut self, argument: &Expr, at: At) -> Affine {
        let range = self.bound.range(argument, at, self.reach);
        let unit = unit(range);
        let x = self.argument(argument, at, unit);
        if x.terms.is_empty() {
            return Affine { constant: x.constant.max(0.0).ln() + unit.ln(), terms: x.terms };
        }
        let role = AuxiliaryRole::Part { function: "log", member: at.job() };
        let implied = Range { lower: (range.lower / unit).ln(), upper: (range.upper / unit).ln() };
        let y = self.auxiliary(role, Range::FREE, implied, 1.0);
        let entries = vec![form_of(y), Affine { constant: 1.0, terms: Vec::new() }, x];
        self.program.cones.push(Cone { kind: ConeKind::Exponential, entries });
        Affine { constant: unit.ln(), terms: vec![(y, 1.0)] }
    }

    /// A form at most √x: √σ times a column y ≤ √(x/σ), from y² ≤ x/σ: ‖(2y, 1 − x/σ)‖ ≤ 1 + x/σ.
    fn sqrt(&mut self, argument: &Expr, at: At) -> Affine {
        let range = self.bound.range(argument, at, self.reach);
        let unit = unit(range);
        let x = self.argument(argument, at, unit);
        if x.terms.is_empty() {
            return Affine { constant: (x.constant.max(0.0) * unit).sqrt(), terms: x.terms };
        }
        let role = AuxiliaryRole::Part { function: "sqrt", member: at.job() };
        let root = |value: f64| (value / unit).max(0.0).sqrt();
        let implied = Range { lower: root(range.lower), upper: root(range.upper) };
        let y = self.auxiliary(role, Range::NON_NEGATIVE, implied, 1.0);
        let entries = vec![shifted(&x, 1.0, 1.0), scaled(form_of(y), 2.0), shifted(&x, -1.0, 1.0)];
        self.program.cones.push(Cone { kind: ConeKind::SecondOrder, entries });
        Affine { constant: 0.0, terms: vec![(y, unit.sqrt())] }
    }

    /// A form at least 1/x: a column y ≥ σ/x divided by σ, from y·(x/σ) ≥ 1: ‖(2, y − x/σ)‖ ≤ y + x/σ.
    fn inverse(&mut self, argument: &Expr, at: At) -> Affine {
        let range = self.bound.range(argument, at, self.reach);
        let unit = unit(range);
        let x = self.argument(argument, at, unit);
        if x.terms.is_empty() {
            return Affine { constant: (x.constant.max(0.0) * unit).recip(), terms: x.terms };
        }
        let role = AuxiliaryRole::Part { function: "inv", member: at.job() };
        let implied = Range { lower: unit / range.upper, upper: unit / range.lower };
        let y = self.auxiliary(role, Range::NON_NEGATIVE, implied, 1.0);
        let mut total = x.clone();
        total.terms.push((y, 1.0));
        let mut difference = scaled(x, -1.0);
        difference.terms.push((y, 1.0));
        let two = Affine { constant: 2.0, terms: Vec::new() };
        self.program.cones.push(Cone { kind: ConeKind::SecondOrder, entries: vec![total, two, difference] });
        Affine { constant: 0.0, terms: vec![(y, unit.recip())] }
    }
}

/// A unit in which a value that lies in `range` is of order 1.
pub(super) fn unit(range: Range) -> f64 {
    let (low, high) = (range.lower.abs(), range.upper.abs());
    let same_side = range.lower * range.upper > 0.0 && low.is_finite() && high.is_finite();
    let unit = match (low.is_finite(), high.is_finite()) {
        // A range over many orders of magnitude says little of where the value lies, but its top is a size.
        (true, true) if same_side && low.max(high) <= 1e4 * low.min(high) => (low.sqrt()) * (high.sqrt()),
        (true, true) => low.max(high),
        (true, false) => low,
        (false, true) => high,
        (false, false) => 1.0,
    };
    if unit.is_finite() && unit > 0.0 { unit } else { 1.0 }
}

pub(super) fn form_of(column: usize) -> Affine {
    Affine { constant: 0.0, terms: vec![(column, 1.0)] }
}

/// factor · form + constant.
pub(super) fn shifted(form: &Affine, factor: f64, constant: f64) -> Affine {
    let mut shifted = scaled(form.clone(), factor);
    shifted.constant += constant;
    shifted
}

pub(super) fn scaled(mut form: Affine, factor: f64) -> Affine {
    form.constant *= factor;
    form.terms.iter_mut().for_each(|(_, value)| *value *= factor);
    form
}

pub(super) fn add(sum: &mut Affine, other: Affine, factor: f64) {
    sum.constant += factor * other.constant;
    sum.terms.extend(other.terms.into_iter().map(|(column, value)| (column, factor * value)));
}

/// Sorts terms by column, adds up those of one column and drops zeros, and what rounding leaves of terms that cancel.
pub(super) fn merge(terms: &mut Vec<(usize, f64)>) {
    terms.sort_by_key(|(column, _)| *column);
    let mut size = 0.0;
    terms.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            size = if size == 0.0 { kept.1.abs() } else { size } + next.1.abs();
            kept.1 += next.1;
            if kept.1.abs() <= CANCELLED * size {
                kept.1 = 0.0;
            }
        } else {
            size = 0.0;
        }
        same
    });
    terms.retain(|(_, value)| *value != 0.0);
}

/// Largest remainder, relative to the sizes of terms, that rounding may leave where they cancel.
const CANCELLED: f64 = 4.0 * f64::EPSILON;
