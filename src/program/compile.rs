//! Expressions into rows, columns and cones.
//!
//! An affine expression becomes a linear form. A concave (convex) one becomes a linear form that the rows and
//! cones added for it keep at most (at least) as large as the expression, and that an optimum makes equal.

use std::sync::Arc;

use super::bound::{At, BoundObjective, Term};
use super::expression::{Expr, Fold, Function, Node, Operator, Reduction, Subject};
use super::forms::{add, form_of, merge, scaled, shifted, unit};
use super::formulation::{Auxiliary, AuxiliaryRole, Formulation, RowRole, ValueMap};
use super::inversion::Inversion;
use super::objective::Constraint;
use super::range::Reach;
use super::standard::{Affine, Cone, ConeKind, Program, Range, Sense};

/// A program in the making.
pub(crate) struct Builder<'a> {
    bound: &'a BoundObjective<'a>,
    reach: &'a Reach,
    pub(crate) program: Program,
    auxiliaries: Vec<Auxiliary>,
    rows: Vec<RowRole>,
    row_scales: Vec<f64>,
    objective: Affine,
    pub(crate) value_map: ValueMap,
}

/// Which side of an expression its linear form stays on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// At most the expression, which is concave.
    Below,
    /// At least the expression, which is convex.
    Above,
}

/// Where an expression stands and what is wanted of it.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    at: At,
    side: Side,
    /// Where the value of every optimum lies, if it is the whole objective.
    top: Option<Range>,
}

impl Wanted {
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

impl<'a> Builder<'a> {
    /// Nothing yet, or, of another formulation of the same bound objective, its polytope. (Memory that is used again
    /// costs a fraction of memory that is new.)
    pub(crate) fn new(bound: &'a BoundObjective<'a>, reach: &'a Reach, old: Option<Formulation>) -> Self {
        let mut builder = Self {
            bound,
            reach,
            program: Program::new(Sense::Maximize),
            auxiliaries: Vec::new(),
            rows: Vec::new(),
            row_scales: Vec::new(),
            objective: Affine::default(),
            value_map: ValueMap::Scaled(1.0),
        };
        if let Some(mut old) = old {
            let n_rows = bound.instance.n_members() + bound.instance.n_types();
            old.program.truncate(bound.columns().len(), n_rows);
            builder.program = old.program;
            builder.rows = Arc::try_unwrap(old.rows).unwrap_or_else(|shared| shared.to_vec());
            builder.rows.truncate(n_rows);
            builder.row_scales = old.row_scales;
            builder.row_scales.truncate(n_rows);
        }
        builder
    }

    /// Adds a row `range` ∋ form, divided by its largest coefficient, of terms in the order of their columns.
    pub(crate) fn row_in_order(
        &mut self,
        role: RowRole,
        range: Range,
        terms: impl Iterator<Item = (usize, f64)> + Clone,
    ) {
        let most = terms.clone().fold(0.0_f64, |most, (_, value)| most.max(value.abs()));
        let scale = if most > 0.0 { most } else { 1.0 };
        let range = Range { lower: range.lower / scale, upper: range.upper / scale };
        let terms = terms.filter(|(_, value)| *value != 0.0);
        self.program.push_row(range, terms.map(|(column, value)| (column, value / scale)));
        self.rows.push(role);
        self.row_scales.push(scale);
    }

    /// Adds the row `range` ∋ leaf + level, the leaf being the throughput as a rule; (column, coefficient) of the level.
    pub(crate) fn leaf_row(
        &mut self,
        inversion: &Inversion,
        at: At,
        range: Range,
        level: Option<(usize, f64)>,
    ) {
        let role = RowRole::Level { member: at.member };
        if inversion.leaf_is_throughput() {
            let leaf = self.bound.terms(at.member).iter().map(|term| (term.column, term.throughput));
            return self.row_in_order(role, range, leaf.chain(level));
        }
        let mut form = self.affine(inversion.leaf(), at);
        form.terms.extend(level);
        self.row(role, range, form);
    }

    /// Makes room for what most programs have: a level, and two rows a member of its own terms, with the level in one.
    pub(crate) fn reserve(&mut self) {
        let (n_columns, n) = (self.bound.columns().len(), self.bound.instance.n_members());
        let n_rows = 2 * n + self.bound.instance.n_types();
        let n_terms = (0..n).map(|member| self.bound.terms(member).len()).sum::<usize>();
        self.program.reserve(n_columns + 1, n_rows, 2 * n_terms + n_columns + n);
        self.rows.reserve_exact(n_rows);
        self.row_scales.reserve_exact(n_rows);
    }

    /// Adds a row `range` ∋ form, divided by its largest coefficient.
    pub(crate) fn row(&mut self, role: RowRole, range: Range, mut form: Affine) {
        merge(&mut form.terms);
        let most = form.terms.iter().fold(0.0_f64, |most, (_, value)| most.max(value.abs()));
        let scale = if most > 0.0 { most } else { 1.0 };
        let range = Range {
            lower: (range.lower - form.constant) / scale,
            upper: (range.upper - form.constant) / scale,
        };
        self.program.push_row(range, form.terms.into_iter().map(|(column, value)| (column, value / scale)));
        self.rows.push(role);
        self.row_scales.push(scale);
    }

    /// Adds a column of this unit; bounds are in its own terms, not the program's.
    pub(crate) fn auxiliary(
        &mut self,
        role: AuxiliaryRole,
        bounds: Range,
        implied: Range,
        scale: f64,
    ) -> usize {
        let scaled = |range: Range| {
            let finite = |value: f64, else_value| if value.is_nan() { else_value } else { value / scale };
            Range { lower: finite(range.lower, f64::NEG_INFINITY), upper: finite(range.upper, f64::INFINITY) }
        };
        self.auxiliaries.push(Auxiliary { role, scale });
        self.program.push_column(scaled(bounds), scaled(implied), 0.0)
    }

    /// Adds a column whose unit follows from where its value lies.
    pub(crate) fn column(&mut self, role: AuxiliaryRole, bounds: Range, implied: Range) -> usize {
        self.auxiliary(role, bounds, implied, unit(implied))
    }

    /// The unit of an auxiliary column.
    pub(crate) fn scale_of(&self, column: usize) -> f64 {
        self.auxiliaries[column - self.bound.columns().len()].scale
    }

    /// Says what is optimized.
    pub(crate) fn objective(&mut self, form: Affine) {
        add(&mut self.objective, form, 1.0);
    }

    /// The program with everything that was added.
    pub(crate) fn finish(mut self, sense: Sense) -> Formulation {
        merge(&mut self.objective.terms);
        let most = self.objective.terms.iter().fold(0.0_f64, |most, (_, value)| most.max(value.abs()));
        let scale = if most > 0.0 { most } else { 1.0 };
        self.program.sense = sense;
        self.program.offset = self.objective.constant / scale;
        for (column, value) in &self.objective.terms {
            self.program.cost[*column] = value / scale;
        }
        let value_map = match self.value_map {
            ValueMap::Scaled(_) => ValueMap::Scaled(scale),
            other => other,
        };
        let mut formulation = Formulation {
            program: self.program,
            columns: Arc::clone(&self.bound.layout().columns),
            auxiliaries: Arc::new(self.auxiliaries),
            rows: Arc::new(self.rows),
            row_scales: self.row_scales,
            value_map,
            replaced: None,
        };
        formulation.name(self.bound.instance);
        formulation
    }

    /// A linear form at most as large as a concave expression. `top`: where the value of every optimum lies, if it is the
    /// whole objective.
    pub(crate) fn at_most(&mut self, expression: &Expr, at: At, top: Option<Range>) -> Affine {
        self.form(expression, Wanted { at, side: Side::Below, top })
    }

    /// A linear form at least as large as a convex expression.
    pub(crate) fn at_least(&mut self, expression: &Expr, at: At, top: Option<Range>) -> Affine {
        self.form(expression, Wanted { at, side: Side::Above, top })
    }

    /// The linear form of an affine expression.
    pub(crate) fn affine(&mut self, expression: &Expr, at: At) -> Affine {
        self.form(expression, Wanted { at, side: Side::Below, top: None })
    }

    /// Adds the policy's own constraints; soft ones with a slack that the objective pays for.
    pub(crate) fn constraints(&mut self) {
        let instance = self.bound.instance;
        self.constraints_but(|constraint, at| {
            constraint.droppable && instance.waived.get(at.member).copied().unwrap_or(false)
        });
    }

    /// The same without those that `left_out` names.
    pub(crate) fn constraints_but(&mut self, left_out: impl Fn(&Constraint, At) -> bool) {
        let objective = self.bound.objective;
        let penalty_sign = match objective.sense() {
            Sense::Maximize => -1.0,
            Sense::Minimize => 1.0,
        };
        for (position, constraint) in objective.constraints().iter().enumerate() {
            for at in self.bound.places(constraint.subject).filter(|at| !left_out(constraint, *at)) {
                let place = match constraint.subject {
                    Subject::Job => at.member,
                    Subject::WorkerType => at.worker_type,
                };
                let role = RowRole::Constraint { constraint: position, position: place };
                if let Some((form, range)) = self.inverted(constraint, at) {
                    self.row(role, range, form);
                    continue;
                }
                let mut form = self.at_least(&constraint.excess, at, None);
                if !form.constant.is_finite() {
                    // No limit: a side of +∞ that any allocation stays below.
                    continue;
                }
                if constraint.droppable {
                    form.constant *= 1.0 - self.bound.instance.eased;
                }
                if let Some(penalty) = constraint.soft {
                    let count = self.bound.count(constraint.subject, at);
                    let role = AuxiliaryRole::Slack { constraint: position, position: place };
                    let excess = self.bound.range(&constraint.excess, at, self.reach);
                    let most = excess.upper.abs().max(excess.lower.abs());
                    let most = if constraint.is_equality() { most } else { excess.upper.max(0.0) };
                    for side in if constraint.is_equality() { &[1.0, -1.0][..] } else { &[1.0] } {
                        let range = Range { lower: 0.0, upper: most };
                        let slack = self.column(role, Range::NON_NEGATIVE, range);
                        let scale = self.scale_of(slack);
                        form.terms.push((slack, -side * scale));
                        self.objective.terms.push((slack, penalty_sign * penalty * count * scale));
                    }
                }
                let range = if constraint.is_equality() { Range::exactly(0.0) } else { Range::at_most(0.0) };
                self.row(role, range, form);
            }
        }
    }

    /// A curved constraint as a bound on its leaf, where it can be inverted.
    fn inverted(&mut self, constraint: &Constraint, at: At) -> Option<(Affine, Range)> {
        let inversion = constraint.inversion.as_ref()?;
        let data = inversion
            .steps
            .iter()
            .map(|step| step.datum.as_ref().map_or(0.0, |datum| self.bound.constant(datum, at)));
        let levels = super::inversion::Levels::new(inversion, data.collect());
        let required = levels.required(0, 0.0).value;
        let mut form = self.affine(inversion.leaf(), at);
        if required.is_infinite() {
            // No throughput is enough: the row 0 ≥ 1 says so.
            form = Affine { constant: -1.0, terms: Vec::new() };
            return Some((form, Range::at_least(0.0)));
        }
        Some((form, Range::at_least(required)))
    }

    fn form(&mut self, expression: &Expr, wanted: Wanted) -> Affine {
        let at = wanted.at;
        if !expression.varies() {
            return Affine { constant: self.bound.constant(expression, at), terms: Vec::new() };
        }
        match &expression.node {
            Node::Number { .. } | Node::Data { .. } => Affine::default(),
            Node::Throughput => self.linear(at, |term| Some(term.throughput)),
            Node::ThroughputOn(of) => {
                let on = self.bound.type_position(of, at);
                self.linear(at, |term| (term.worker_type == on).then_some(term.throughput))
            }
            Node::TimeOn(of) => {
                let on = self.bound.type_position(of, at);
                self.linear(at, |term| (term.worker_type == on).then_some(term.time))
            }
            Node::Negate(inner) => scaled(self.form(inner, wanted.flipped()), -1.0),
            Node::Binary(operator, left, right) => self.binary(*operator, left, right, wanted.part()),
            Node::Call(function, arguments) => {
                let range = self.bound.range(expression, at, self.reach);
                self.call(*function, arguments, range, wanted.part())
            }
            Node::Reduce(reduction, inner) => {
                let within = || self.bound.range(expression, at, self.reach);
                let implied = wanted.top.unwrap_or_else(within);
                self.reduce(*reduction, inner, implied, wanted)
            }
        }
    }

    fn linear(&self, at: At, coefficient: impl Fn(&Term) -> Option<f64>) -> Affine {
        let terms = self.bound.terms(at.member).iter();
        let mut form = Affine { constant: 0.0, terms: Vec::with_capacity(terms.len() + 1) };
        form.terms.extend(terms.filter_map(|term| Some((term.column, coefficient(term)?))));
        form
    }

    fn binary(&mut self, operator: Operator, left: &Expr, right: &Expr, wanted: Wanted) -> Affine {
        match operator {
            Operator::Add => {
                let mut sum = self.form(left, wanted);
                add(&mut sum, self.form(right, wanted), 1.0);
                sum
            }
            Operator::Subtract => {
                let mut sum = self.form(left, wanted);
                add(&mut sum, self.form(right, wanted.flipped()), -1.0);
                sum
            }
            Operator::Multiply => {
                let (part, factor) = if left.varies() { (left, right) } else { (right, left) };
                self.times(part, self.bound.constant(factor, wanted.at), wanted)
            }
            Operator::Divide if !right.varies() => {
                self.times(left, self.bound.constant(right, wanted.at).recip(), wanted)
            }
            Operator::Divide => {
                let factor = self.bound.constant(left, wanted.at);
                if factor == 0.0 { Affine::default() } else { scaled(self.inverse(right, wanted.at), factor) }
            }
        }
    }

    fn times(&mut self, part: &Expr, factor: f64, wanted: Wanted) -> Affine {
        let wanted = if factor < 0.0 { wanted.flipped() } else { wanted };
        scaled(self.form(part, wanted), factor)
    }

    fn call(&mut self, function: Function, arguments: &[Expr], range: Range, wanted: Wanted) -> Affine {
        let at = wanted.at;
        match function {
            Function::Min | Function::Max => {
                let role = AuxiliaryRole::Part { function: function.name(), member: at.member };
                let column = self.column(role, Range::FREE, range);
                let row = RowRole::Part { auxiliary: column - self.bound.columns().len() };
                for argument in arguments {
                    let form = self.form(argument, wanted);
                    self.beside(row, form, column, wanted.side);
                }
                self.of_column(column)
            }
            Function::Inv => self.inverse(&arguments[0], at),
            Function::Log => self.log(&arguments[0], at),
            Function::Sqrt => self.sqrt(&arguments[0], at),
        }
    }

    fn reduce(&mut self, reduction: Reduction, inner: &Expr, implied: Range, wanted: Wanted) -> Affine {
        let places = self.bound.range_over(reduction.over, wanted.at);
        let part = wanted.part();
        if reduction.fold == Fold::Sum {
            let mut sum = Affine::default();
            for at in places {
                let count = self.bound.count(reduction.over, at);
                add(&mut sum, self.form(inner, Wanted { at, ..part }), count);
            }
            return sum;
        }
        let level = wanted.top.is_some() && reduction.over == Subject::Job;
        let function = if wanted.side == Side::Below { "min" } else { "max" };
        let role = if level {
            AuxiliaryRole::Level
        } else {
            AuxiliaryRole::Part { function, member: wanted.at.member }
        };
        let column = self.column(role, Range::FREE, implied);
        let auxiliary = column - self.bound.columns().len();
        for at in places {
            let row = if level { RowRole::Level { member: at.member } } else { RowRole::Part { auxiliary } };
            let form = self.form(inner, Wanted { at, ..part });
            self.beside(row, form, column, part.side);
        }
        self.of_column(column)
    }

    /// Keeps an auxiliary column on its side of a form.
    fn beside(&mut self, row: RowRole, mut form: Affine, column: usize, side: Side) {
        form.terms.push((column, -self.scale_of(column)));
        self.row(row, side.range(), form);
    }

    /// What an auxiliary column stands for, as a form.
    fn of_column(&self, column: usize) -> Affine {
        Affine { constant: 0.0, terms: vec![(column, self.scale_of(column))] }
    }

    /// A column y ≤ log x: (y, 1, x/σ) in the exponential cone, plus log σ.
    fn log(&mut self, argument: &Expr, at: At) -> Affine {
        let range = self.bound.range(argument, at, self.reach);
        let unit = unit(range);
        let x = scaled(self.affine(argument, at), unit.recip());
        let role = AuxiliaryRole::Part { function: "log", member: at.member };
        let implied = Range { lower: (range.lower / unit).ln(), upper: (range.upper / unit).ln() };
        let y = self.auxiliary(role, Range::FREE, implied, 1.0);
        let entries = vec![form_of(y), Affine { constant: 1.0, terms: Vec::new() }, x];
        self.program.cones.push(Cone { kind: ConeKind::Exponential, entries });
        Affine { constant: unit.ln(), terms: vec![(y, 1.0)] }
    }

    /// A column y ≤ √(x/σ), from y² ≤ x/σ: ‖(2y, 1 − x/σ)‖ ≤ 1 + x/σ.
    fn sqrt(&mut self, argument: &Expr, at: At) -> Affine {
        let range = self.bound.range(argument, at, self.reach);
        let unit = unit(range);
        let x = scaled(self.affine(argument, at), unit.recip());
        let role = AuxiliaryRole::Part { function: "sqrt", member: at.member };
        let root = |value: f64| (value / unit).max(0.0).sqrt();
        let implied = Range { lower: root(range.lower), upper: root(range.upper) };
        let y = self.auxiliary(role, Range::NON_NEGATIVE, implied, 1.0);
        let entries = vec![shifted(&x, 1.0, 1.0), scaled(form_of(y), 2.0), shifted(&x, -1.0, 1.0)];
        self.program.cones.push(Cone { kind: ConeKind::SecondOrder, entries });
        Affine { constant: 0.0, terms: vec![(y, unit.sqrt())] }
    }

    /// A column y ≥ σ/x, from y·(x/σ) ≥ 1: ‖(2, y − x/σ)‖ ≤ y + x/σ.
    fn inverse(&mut self, argument: &Expr, at: At) -> Affine {
        let range = self.bound.range(argument, at, self.reach);
        let unit = unit(range);
        let x = scaled(self.affine(argument, at), unit.recip());
        let role = AuxiliaryRole::Part { function: "inv", member: at.member };
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
