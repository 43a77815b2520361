//! An objective bound to the numbers of one decision: checked data, throughputs as linear forms, values.

use std::collections::BTreeMap;
use std::iter;
use std::sync::{Arc, OnceLock};

use thiserror::Error;

use super::at::At;
use super::expression::{Expr, Node, Subject, TypeRef, Variable, owned_by};
use super::instance::{Column, Instance};
use super::inversion::{Levels, Required};
use super::objective::{Constraint, Objective};
use super::standard::Sense;
use super::terms::Terms;

/// An error that keeps an objective from being bound to an instance.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum BindError {
    /// A datum that the objective reads and the instance lacks.
    #[error("`{name}` is not given")]
    Missing {
        /// Name of the datum.
        name: String,
    },
    /// A datum out of its range.
    #[error("`{name}` of member {position} is {value}, expected a number {expected}")]
    Value {
        /// Name of the datum.
        name: String,
        /// Position of the member, or of the worker type.
        position: usize,
        /// The value of the datum.
        value: f64,
        /// The values that are allowed, in words.
        expected: String,
    },
    /// A worker type that the objective or a constraint names and the cluster lacks.
    #[error("{named_by} names worker type `{name}`, expected one of {}", known.join(", "))]
    UnknownWorkerType {
        /// Name of the worker type.
        name: String,
        /// The text that names it: the objective, or a constraint as it is written.
        named_by: String,
        /// The worker types of the cluster.
        known: Vec<String>,
    },
    /// A member without a column: it can run on no worker type.
    #[error("member {member} can run on no worker type")]
    RunsNowhere {
        /// The position of the member.
        member: usize,
    },
    /// No member at all, so the objective has no value.
    #[error("there are no jobs")]
    NoJobs,
}

/// The coefficients of one column in the throughput, time and workers of one job of a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// The column.
    pub column: usize,
    /// The worker type of the column.
    pub worker_type: usize,
    /// Throughput per unit of the column: uses·T/n, steps/s.
    pub throughput: f64,
    /// Share of time per unit of the column: uses/n.
    pub time: f64,
    /// Workers that count for the job per unit of the column.
    pub workers: f64,
}

/// The throughput, time and workers that a job of a member gets on a worker type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Got {
    /// Effective throughput, steps/s.
    pub throughput: f64,
    /// Share of time.
    pub time: f64,
    /// Workers held, by that share of time; half of them where they are shared.
    pub workers: f64,
}

/// Values of an objective's variables at an allocation, for one job of each member.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    n_types: usize,
    /// Values by variable, if it is read: `[members]`, or [members × K] for a variable of a worker type.
    values: [Option<Vec<f64>>; Variable::ALL.len()],
}

impl Point {
    /// The point at which no member has time. `reads` tells which variables will be asked for.
    pub fn zero(n_members: usize, n_types: usize, reads: impl Fn(Variable) -> bool) -> Self {
        let length = |variable: Variable| n_members * if variable.atom().by_type { n_types } else { 1 };
        let zeros = |variable| reads(variable).then(|| vec![0.0; length(variable)]);
        Self { n_types, values: Variable::ALL.map(zeros) }
    }

    /// Adds the throughput, time and workers that a job of a member gets on a worker type.
    pub fn add(&mut self, member: usize, worker_type: usize, got: Got) {
        for (variable, values) in Variable::ALL.into_iter().zip(&mut self.values) {
            if let Some(values) = values {
                let by_type = variable.atom().by_type;
                let place = if by_type { member * self.n_types + worker_type } else { member };
                values[place] += variable.measure().of(got.throughput, got.time, got.workers);
            }
        }
    }

    /// The values of a variable: `[members]`, or [members × K] for a variable of a worker type; empty if it is not read.
    pub fn of(&self, variable: Variable) -> &[f64] {
        self.values[variable as usize].as_deref().unwrap_or_default()
    }

    /// Effective throughput of a job of each member: `[members]`, steps/s.
    pub fn throughput(&self) -> &[f64] {
        self.of(Variable::Throughput)
    }
}

/// An objective and the instance it is to be optimized on.
#[derive(Clone, Debug)]
pub struct BoundObjective<'a> {
    pub(crate) objective: &'a Objective,
    pub(crate) instance: &'a Instance,
    pub(crate) binding: Binding,
    data: Vec<&'a [f64]>,
    named_types: BTreeMap<String, usize>,
    /// The members of each owner that the objective names, by owner: `[members]`, 1 for a member of the owner, else 0.
    owned: BTreeMap<&'a str, &'a [f64]>,
}

/// The results of binding, shared by everything made from them, so that binding the same objective to the same instance again
/// takes no time.
#[derive(Clone, Debug)]
pub struct Binding {
    pub(crate) columns: Arc<Vec<Column>>,
    /// Computed when first asked for, by a program that is written.
    terms: Arc<OnceLock<Terms>>,
    levels: Option<Arc<Levels>>,
}

impl Objective {
    /// Binds the objective to the numbers of one decision.
    ///
    /// # Errors
    /// If a datum it reads is missing or out of range, a worker type it names does not exist, or a member can
    /// run nowhere.
    pub fn bind<'a>(&'a self, instance: &'a Instance) -> Result<BoundObjective<'a>, BindError> {
        if instance.n_members() == 0 {
            return Err(BindError::NoJobs);
        }
        let columns = instance.columns();
        let mut runs = vec![false; instance.n_members()];
        for column in &columns {
            instance.parts(column.combination).for_each(|(member, _, _)| runs[member] = true);
        }
        if let Some(member) = runs.iter().position(|runs| !runs) {
            return Err(BindError::RunsNowhere { member });
        }
        let binding = Binding { columns: Arc::new(columns), terms: Arc::default(), levels: None };
        let data = self.bind_data(instance, true)?;
        let named_types = self.bind_types(instance)?;
        let owned = self.bind_owned(instance)?;
        let mut bound = BoundObjective { objective: self, instance, binding, data, named_types, owned };
        bound.binding.levels = self.inversion().map(|inversion| {
            let data = inversion.steps.iter().map(|step| step.datum.as_ref());
            Arc::new(Levels::new(inversion, bound.step_data(&data.collect::<Vec<_>>())))
        });
        Ok(bound)
    }

    /// Binds the objective again to an instance of which only the dropped constraints and the easing have changed since
    /// `binding` was made.
    ///
    /// # Errors
    /// If a datum it reads is missing, or a worker type it names does not exist; all else is not checked again.
    pub fn bind_again<'a>(
        &'a self,
        instance: &'a Instance,
        binding: &Binding,
    ) -> Result<BoundObjective<'a>, BindError> {
        let (data, named_types) = (self.bind_data(instance, false)?, self.bind_types(instance)?);
        let (owned, binding) = (self.bind_owned(instance)?, binding.clone());
        Ok(BoundObjective { objective: self, instance, binding, data, named_types, owned })
    }

    fn bind_data<'a>(&self, instance: &'a Instance, checked: bool) -> Result<Vec<&'a [f64]>, BindError> {
        let mut bound: Vec<&[f64]> = Vec::new();
        for slot in 0..self.vocabulary().len() {
            if !self.uses(slot) {
                bound.push(&[]);
                continue;
            }
            let datum = self.vocabulary().datum(slot);
            let name = || datum.name.to_string();
            let values = instance.datum(datum.subject, &datum.name);
            let values = values.ok_or_else(|| BindError::Missing { name: name() })?;
            let wrong = || values.iter().position(|value| !datum.admits(*value));
            if let Some(position) = if checked { wrong() } else { None } {
                let (value, expected) = (values[position], datum.sign.to_string());
                return Err(BindError::Value { name: name(), position, value, expected });
            }
            bound.push(values);
        }
        Ok(bound)
    }

    fn bind_owned<'a>(&'a self, instance: &'a Instance) -> Result<BTreeMap<&'a str, &'a [f64]>, BindError> {
        let of = |owner: &'a str| {
            let name = owned_by(owner);
            let owned = instance.datum(Subject::Job, &name);
            owned.map(|owned| (owner, owned)).ok_or(BindError::Missing { name })
        };
        self.owners().into_iter().map(of).collect()
    }

    fn bind_types(&self, instance: &Instance) -> Result<BTreeMap<String, usize>, BindError> {
        let mut named = BTreeMap::new();
        let constraints = self.constraints().iter();
        let constraints = constraints.map(|constraint| (Some(&constraint.text), &constraint.excess));
        for (text, expression) in iter::once((None, self.expression())).chain(constraints) {
            let mut unknown = None;
            expression.each(&mut |node| {
                if let Node::Variable(_, Some(TypeRef::Named(name)))
                | Node::Data { of: Some(TypeRef::Named(name)), .. } = node
                {
                    match instance.worker_types.iter().position(|known| known == name) {
                        Some(position) => {
                            named.insert(name.clone(), position);
                        }
                        None => unknown = Some(name.clone()),
                    }
                }
            });
            if let Some(name) = unknown {
                let constraint = |text: &String| format!("the constraint `{text}`");
                let named_by = text.map_or_else(|| "the objective".to_owned(), constraint);
                return Err(BindError::UnknownWorkerType {
                    name,
                    named_by,
                    known: instance.worker_types.clone(),
                });
            }
        }
        Ok(named)
    }
}

impl<'a> BoundObjective<'a> {
    /// The objective.
    pub fn objective(&self) -> &'a Objective {
        self.objective
    }

    /// The instance.
    pub fn instance(&self) -> &'a Instance {
        self.instance
    }

    /// The columns of class time, first in every program made from this.
    pub fn columns(&self) -> &[Column] {
        &self.binding.columns
    }

    /// The results of binding, for [`bind_again`](Objective::bind_again).
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    /// The terms of one job of a member, by column.
    pub fn terms(&self, member: usize) -> &[Term] {
        self.all_terms().of(member)
    }

    /// The terms of one job of a member on a worker type, by column.
    pub(super) fn terms_on(&self, member: usize, worker_type: usize) -> impl Iterator<Item = &Term> {
        self.all_terms().on(member, worker_type)
    }

    fn all_terms(&self) -> &Terms {
        self.binding.terms.get_or_init(|| Terms::of_members(self.instance, &self.binding.columns))
    }

    /// The members' levels as functions of throughput, where the objective has levels.
    pub fn levels(&self) -> Option<&Levels> {
        self.binding.levels.as_deref()
    }

    /// The members' levels as functions of throughput, shared for a caller that keeps them; none where the objective
    /// has none.
    pub fn levels_kept(&self) -> Option<Arc<Levels>> {
        self.binding.levels.clone()
    }

    /// The level of one job of `member` at this throughput; `None` where the objective has no levels.
    pub fn level(&self, member: usize, throughput: f64) -> Option<f64> {
        self.levels().map(|levels| levels.level(member, throughput))
    }

    /// The throughput that one job of `member` requires for the objective to reach a level; `None` where it has no levels.
    pub fn required(&self, member: usize, level: f64) -> Option<Required> {
        self.levels().map(|levels| levels.required(member, level))
    }

    /// The throughputs that the level asks for, at a point: `[members]`; `None` if the objective has no levels.
    pub fn throughputs(&self, point: &Point) -> Option<Vec<f64>> {
        let inversion = self.objective.inversion()?;
        if inversion.is_of_throughput() {
            return Some(point.throughput().to_vec());
        }
        Some(self.of_members(inversion.throughput(), point))
    }

    /// The point at which no member has time.
    pub(crate) fn no_time(&self) -> Point {
        let reads = |variable| self.objective.reads_variable(variable);
        Point::zero(self.instance.n_members(), self.instance.n_types(), reads)
    }

    /// The point of class times, `[columns]`: the values of the variables there.
    pub fn point(&self, class_time: &[f64]) -> Point {
        let mut point = self.no_time();
        for (column, given) in self.binding.columns.iter().zip(class_time) {
            for (member, uses, throughput) in self.instance.parts(column.combination) {
                let time = uses / self.instance.multiplicity[member];
                let workers = time * self.instance.workers_each(column.combination) * given;
                let throughput = time * throughput[column.worker_type] * given;
                point.add(member, column.worker_type, Got { throughput, time: time * given, workers });
            }
        }
        point
    }

    /// The objective's value at a point, as the policy writes it, less the penalties of soft constraints if it is maximized,
    /// plus them if it is minimized.
    pub fn value(&self, point: &Point) -> f64 {
        let value = self.evaluate(self.objective.expression(), At::default(), point);
        match self.objective.sense() {
            Sense::Maximize => value - self.penalties(point),
            Sense::Minimize => value + self.penalties(point),
        }
    }

    /// The sum of the penalties of soft constraints at a point, each times the excess of every job or worker type.
    fn penalties(&self, point: &Point) -> f64 {
        let cost = |constraint: &Constraint| {
            let Some(penalty) = constraint.soft else { return 0.0 };
            let exceeded = self.places_of(constraint.subject).map(|at| {
                let excess = self.evaluate(&constraint.excess, at, point);
                let excess = if constraint.is_equality() { excess.abs() } else { excess.max(0.0) };
                self.count_of(constraint, at) * excess
            });
            penalty * exceeded.sum::<f64>()
        };
        self.objective.constraints().iter().map(cost).sum()
    }

    /// The excess of each constraint at a point, at its worst place: `[constraints]`; at most 0 where it holds.
    pub fn excesses(&self, point: &Point) -> Vec<f64> {
        let excess = |constraint: &Constraint| {
            let values = self.places_of(constraint.subject).map(|at| {
                let value = self.evaluate(&constraint.excess, at, point);
                if constraint.is_equality() { value.abs() } else { value }
            });
            values.fold(f64::NEG_INFINITY, f64::max)
        };
        self.objective.constraints().iter().map(excess).collect()
    }

    /// The places of a subject: every member, or every worker type.
    pub(crate) fn places(&self, subject: Subject) -> impl Iterator<Item = At> + use<> {
        self.places_of(Some(subject))
    }

    /// The places that a constraint on such a subject holds for: one, if it is on the whole cluster.
    pub(crate) fn places_of(&self, subject: Option<Subject>) -> impl Iterator<Item = At> + use<> {
        let n = match subject {
            None => 1,
            Some(Subject::Job) => self.instance.n_members(),
            Some(Subject::WorkerType) => self.instance.n_types(),
        };
        (0..n).map(move |position| At::of(subject, position))
    }

    /// The number of jobs that one row of a constraint stands for; 1 unless it is a constraint on jobs.
    pub(crate) fn count_of(&self, constraint: &Constraint, at: At) -> f64 {
        constraint.subject.map_or(1.0, |subject| self.count(subject, at))
    }

    /// The places over which a reduction that stands at `at` ranges.
    pub(crate) fn range_over(&self, subject: Subject, at: At) -> impl Iterator<Item = At> + use<> {
        self.places(subject).map(move |place| match subject {
            Subject::Job => At { member: place.member, of_job: true, ..at },
            Subject::WorkerType => At { worker_type: place.worker_type, ..at },
        })
    }

    /// The number of jobs that one place of a reduction stands for; 1 for a worker type.
    pub(crate) fn count(&self, subject: Subject, at: At) -> f64 {
        match subject {
            Subject::Job => self.instance.multiplicity[at.member],
            Subject::WorkerType => 1.0,
        }
    }

    pub(crate) fn type_position(&self, of: &TypeRef, at: At) -> usize {
        match of {
            TypeRef::Bound => at.worker_type,
            TypeRef::Named(name) => self.named_types[name],
        }
    }

    pub(crate) fn datum(&self, slot: usize, of: Option<&TypeRef>, at: At) -> f64 {
        match of {
            None => self.data[slot][at.member],
            Some(of) => self.data[slot][self.type_position(of, at)],
        }
    }

    /// The members of an owner that the objective names: `[members]`, 1 for a member of the owner, else 0.
    pub(crate) fn owned_by(&self, owner: &str) -> &'a [f64] {
        self.owned[owner]
    }

    pub(crate) fn members_data(&self, slot: usize) -> &'a [f64] {
        self.data[slot]
    }

    /// The data of an inversion's steps, 0 for a step without one: [members × steps].
    pub(crate) fn step_data(&self, steps: &[Option<&Expr>]) -> Vec<f64> {
        let mut data = vec![0.0; self.instance.n_members() * steps.len()];
        for (place, step) in steps.iter().enumerate().filter_map(|(place, step)| Some((place, (*step)?))) {
            for (own, value) in data.chunks_exact_mut(steps.len()).zip(self.constants(step)) {
                own[place] = value;
            }
        }
        data
    }
}

/// x/y, with 0/0 = 0: a job without steps left takes no time at throughput 0.
pub(crate) fn quotient(x: f64, y: f64) -> f64 {
    if x == 0.0 { 0.0 } else { x / y }
}
