//! A program in the making: rows and columns, each with its meaning, and the policy's own constraints.

use std::sync::Arc;

use super::affine::{add, merge, unit};
use super::at::At;
use super::binding::BoundObjective;
use super::inversion::Inversion;
use super::objective::Constraint;
use super::program_map::{Auxiliary, AuxiliaryRole, Formulation, RowRole, ValueMap};
use super::range::Reach;
use super::standard::{Affine, Program, Range, Sense};

/// Distance of a constraint's excess from 0, in widths of its range, beyond which no row is written.
const NEVER_BINDS: f64 = 1e6;

/// A program in the making, with the meaning of its rows and columns.
pub(crate) struct Builder<'a> {
    pub(super) bound: &'a BoundObjective<'a>,
    pub(super) reach: &'a Reach,
    pub(crate) program: Program,
    auxiliaries: Vec<Auxiliary>,
    rows: Vec<RowRole>,
    row_scales: Vec<f64>,
    objective: Affine,
    pub(crate) value_map: ValueMap,
}

impl<'a> Builder<'a> {
    /// An empty program, or the polytope of an old formulation of the same bound objective, whose memory is used again.
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

    /// Adds the row `range` ∋ throughput + level; (column, coefficient) of the level.
    pub(crate) fn throughput_row(
        &mut self,
        inversion: &Inversion,
        at: At,
        range: Range,
        level: Option<(usize, f64)>,
    ) {
        let role = RowRole::Level { member: at.member };
        if inversion.is_of_throughput() {
            let terms = self.bound.terms(at.member).iter().map(|term| (term.column, term.throughput));
            return self.row_in_order(role, range, terms.chain(level));
        }
        let mut form = self.affine(inversion.throughput(), at);
        form.terms.extend(level);
        self.row(role, range, form);
    }

    /// Reserves memory for the size of most programs: a level, and for each member two rows over its terms, one with the level.
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

    /// Adds a column in units of `scale`; bounds are those of its value, not of the column.
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

    /// Adds a column whose unit follows from the range of its value.
    pub(crate) fn column(&mut self, role: AuxiliaryRole, bounds: Range, implied: Range) -> usize {
        self.auxiliary(role, bounds, implied, unit(implied))
    }

    /// The unit of an auxiliary column.
    pub(crate) fn scale_of(&self, column: usize) -> f64 {
        self.auxiliaries[column - self.bound.columns().len()].scale
    }

    /// Adds a form to the objective.
    pub(crate) fn objective(&mut self, form: Affine) {
        add(&mut self.objective, form, 1.0);
    }

    /// Finishes the program with everything that was added.
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
            columns: Arc::clone(&self.bound.binding().columns),
            auxiliaries: Arc::new(self.auxiliaries),
            rows: Arc::new(self.rows),
            row_scales: self.row_scales,
            value_map,
            replaced: None,
        };
        formulation.name(self.bound.instance);
        formulation
    }

    /// Adds the policy's own constraints; soft ones with a slack that the objective pays for.
    pub(crate) fn constraints(&mut self) {
        let bound = self.bound;
        self.constraints_but(|constraint, at| bound.is_dropped(constraint, at));
    }

    /// Adds the policy's constraints that are not soft: the hard ones and, with `with_droppable`, the droppable ones that
    /// are not dropped.
    pub(crate) fn kept_constraints(&mut self, with_droppable: bool) {
        let bound = self.bound;
        self.constraints_but(|constraint, at| {
            let is_kept = with_droppable && !bound.is_dropped(constraint, at);
            constraint.soft.is_some() || (constraint.droppable && !is_kept)
        });
    }

    /// Adds the policy's constraints without those for which `left_out` holds.
    fn constraints_but(&mut self, left_out: impl Fn(&Constraint, At) -> bool) {
        let objective = self.bound.objective;
        let penalty_sign = match objective.sense() {
            Sense::Maximize => -1.0,
            Sense::Minimize => 1.0,
        };
        for (position, constraint) in objective.constraints().iter().enumerate() {
            for at in self.bound.places_of(constraint.subject).filter(|at| !left_out(constraint, *at)) {
                let place = at.position(constraint.subject);
                let role = RowRole::Constraint { constraint: position, position: place };
                if self.never_binds(constraint, at) {
                    continue;
                }
                if let Some((form, range)) = self.inverted(constraint, at) {
                    self.row(role, range, form);
                    continue;
                }
                let mut form = self.at_least(&constraint.excess, at, None);
                if form.constant == f64::NEG_INFINITY && !constraint.is_equality() {
                    // The larger side is +∞, which is no limit.
                    continue;
                }
                if !form.constant.is_finite() {
                    // No allocation keeps this, or its numbers overflow: the program is refused, with this row's name.
                    form.constant = f64::NAN;
                }
                if constraint.droppable {
                    form.constant *= 1.0 - self.bound.instance.eased;
                }
                if let Some(penalty) = constraint.soft {
                    let count = self.bound.count_of(constraint, at);
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

    /// Whether every allocation keeps a constraint by so much that its row would only scale the program badly.
    fn never_binds(&self, constraint: &Constraint, at: At) -> bool {
        let excess = self.bound.range(&constraint.excess, at, self.reach);
        !constraint.is_equality() && excess.upper < -NEVER_BINDS * (excess.upper - excess.lower)
    }

    /// A curved constraint as a bound on a throughput, where it can be inverted.
    fn inverted(&mut self, constraint: &Constraint, at: At) -> Option<(Affine, Range)> {
        let inversion = constraint.inversion.as_ref()?;
        let data = inversion
            .steps
            .iter()
            .map(|step| step.datum.as_ref().map_or(0.0, |datum| self.bound.constant(datum, at)));
        let levels = super::inversion::Levels::new(inversion, data.collect());
        let required = levels.required(0, 0.0).value;
        let mut form = self.affine(inversion.throughput(), at);
        if required.is_infinite() {
            // No throughput is enough: the row 0 ≥ 1 is infeasible.
            form = Affine { constant: -1.0, terms: Vec::new() };
            return Some((form, Range::at_least(0.0)));
        }
        Some((form, Range::at_least(required)))
    }
}
