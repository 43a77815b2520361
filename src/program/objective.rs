//! Checked objectives: an expression to maximize or minimize, its constraints, and the route to the optimum.

use thiserror::Error;

use super::expression::check::common_dimension;
use super::expression::{
    ComparedSides, Comparison, Curvature, Dimension, Expr, ExpressionError, ExpressionErrorKind as Kind,
    Fold, Measure, Node, Operator, Scope, Span, Subject, Variable, Vocabulary, facts, owned_by, parse,
    parse_comparison, shape,
};
use super::inversion::{Bound, Inversion, LevelForm};
use super::standard::Sense;

/// The way in which an optimum is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// One linear program.
    Linear,
    /// One linear program per level tried.
    Parametric,
    /// One program with exponential or second-order cones.
    Conic,
}

impl Route {
    /// Name of the route in outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Parametric => "parametric",
            Self::Conic => "conic",
        }
    }
}

/// An objective and its constraints as they are written.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveText {
    /// The direction: maximize or minimize.
    pub sense: Sense,
    /// The objective.
    pub objective: String,
    /// Constraints on every job.
    pub for_each_job: Vec<ConstraintText>,
    /// Constraints on every worker type.
    pub for_each_worker_type: Vec<ConstraintText>,
    /// Constraints on the whole cluster, one row each.
    pub constraints: Vec<ConstraintText>,
}

impl ObjectiveText {
    /// An objective without constraints.
    pub fn new(sense: Sense, objective: impl Into<String>) -> Self {
        let objective = objective.into();
        let (for_each_job, for_each_worker_type, constraints) = (Vec::new(), Vec::new(), Vec::new());
        Self { sense, objective, for_each_job, for_each_worker_type, constraints }
    }
}

/// A constraint as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstraintText {
    /// Two expressions with a comparison between them.
    pub text: String,
    /// Penalty per unit of violation, in units of the objective; the constraint is hard if absent.
    pub soft: Option<f64>,
    /// Whether it may be dropped for jobs, as few as possible, where not all can keep it.
    pub droppable: bool,
}

impl ConstraintText {
    /// A constraint that must hold.
    pub fn hard(text: impl Into<String>) -> Self {
        Self { text: text.into(), soft: None, droppable: false }
    }

    /// A constraint whose violation costs `penalty` per unit.
    pub fn soft(text: impl Into<String>, penalty: f64) -> Self {
        Self { text: text.into(), soft: Some(penalty), droppable: false }
    }

    /// A constraint that is dropped for as few jobs as possible.
    pub fn droppable(text: impl Into<String>) -> Self {
        Self { text: text.into(), soft: None, droppable: true }
    }
}

/// A reference to one of an objective's texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The objective.
    Objective,
    /// A constraint on every job, by position.
    ForEachJob(usize),
    /// A constraint on every worker type, by position.
    ForEachWorkerType(usize),
    /// A constraint on the whole cluster, by position.
    Cluster(usize),
    /// A column, by name.
    Column(String),
}

/// An error in an objective, and the text in which it stands.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{error}")]
pub struct ObjectiveError {
    /// The text in which the error stands.
    pub place: Place,
    /// The error, with its place in the text.
    pub error: ExpressionError,
}

/// A checked constraint, `excess` ≤ 0 (or = 0) for each job or each worker type, or once for the whole cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// The text of the constraint, as it was written.
    pub text: String,
    /// The subject that it ranges over; none if it is one constraint on the whole cluster.
    pub subject: Option<Subject>,
    /// The smaller side less the larger one, as it was written.
    pub excess: Expr,
    /// The comparison of its left side with its right side, as it was written.
    pub comparison: Comparison,
    /// Penalty per unit of violation, in units of the objective; the constraint is hard if absent.
    pub soft: Option<f64>,
    /// Whether it may be dropped for jobs.
    pub droppable: bool,
    /// The inversion that makes a hard constraint linear where its excess is curved.
    pub(crate) inversion: Option<Inversion>,
}

impl Constraint {
    /// Whether the excess must be 0.
    pub fn is_equality(&self) -> bool {
        self.comparison == Comparison::Equal
    }

    /// Whether it reads a job's deadline, as `slo_remaining`.
    pub fn reads_deadline(&self) -> bool {
        self.excess.contains(&|node| matches!(node, Node::Data { name, .. } if name == "slo_remaining"))
    }

    /// Whether it limits what the allocation gives, so that giving more may violate it.
    pub fn is_limit(&self) -> bool {
        let small = match &self.excess.node {
            Node::Binary(Operator::Subtract, small, _) => small,
            _ => &self.excess,
        };
        self.is_equality() || small.varies()
    }

    /// The physical dimension of its two sides.
    pub fn dimension(&self, vocabulary: &Vocabulary) -> Dimension {
        facts(&self.excess, vocabulary).ok().and_then(|facts| facts.dimension).unwrap_or(Dimension::NONE)
    }
}

/// A checked objective.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    sense: Sense,
    expression: Expr,
    constraints: Vec<Constraint>,
    vocabulary: Vocabulary,
    route: Route,
    inversion: Option<Inversion>,
}

impl Objective {
    /// Parses and checks an objective: names, dimensions, signs, curvature.
    ///
    /// ```
    /// use apportion::program::{Objective, ObjectiveText, Route, Sense};
    /// let text = ObjectiveText::new(Sense::Minimize, "max_over_jobs(steps_remaining / throughput)");
    /// let makespan = Objective::check(&text, Default::default())?;
    /// assert_eq!(makespan.route(), Route::Linear);
    /// let text = ObjectiveText::new(Sense::Maximize, "sum_over_jobs(steps_remaining / throughput)");
    /// assert!(Objective::check(&text, Default::default()).is_err(), "convex");
    /// # Ok::<(), apportion::program::ObjectiveError>(())
    /// ```
    ///
    /// # Errors
    /// With the text, place and reason of the first thing wrong.
    pub fn check(text: &ObjectiveText, vocabulary: Vocabulary) -> Result<Self, ObjectiveError> {
        let at = |place: Place| move |error| ObjectiveError { place: place.clone(), error };
        let objective = check_objective(text, &vocabulary).map_err(at(Place::Objective))?;
        let (expression, mut route, inversion) = objective;
        let mut constraints = Vec::new();
        let lists = [
            (&text.for_each_job, Some(Subject::Job)),
            (&text.for_each_worker_type, Some(Subject::WorkerType)),
            (&text.constraints, None),
        ];
        for (list, subject) in lists {
            for (position, constraint) in list.iter().enumerate() {
                let place = match subject {
                    Some(Subject::Job) => Place::ForEachJob(position),
                    Some(Subject::WorkerType) => Place::ForEachWorkerType(position),
                    None => Place::Cluster(position),
                };
                let (checked, conic) =
                    check_constraint(constraint, subject, &vocabulary).map_err(at(place.clone()))?;
                if conic && route == Route::Linear {
                    route = Route::Conic;
                }
                let by_inverse = objective_by_inverse(&expression, inversion.as_ref(), &vocabulary);
                if checked.soft.is_some() && (route == Route::Parametric || by_inverse) {
                    let span = Span { offset: 0, width: constraint.text.len() };
                    return Err(at(place)(ExpressionError::new(Kind::SoftParametric, span)));
                }
                constraints.push(checked);
            }
        }
        let objective = Self { sense: text.sense, expression, constraints, vocabulary, route, inversion };
        objective.check_columns()?;
        Ok(objective)
    }

    fn check_columns(&self) -> Result<(), ObjectiveError> {
        let unused = self.vocabulary.added().find(|slot| !self.uses(*slot));
        match unused {
            None => Ok(()),
            Some(slot) => {
                let name = self.vocabulary.datum(slot).name.to_string();
                let error = ExpressionError::new(Kind::UnusedColumn(name.clone()), Span::default());
                Err(ObjectiveError { place: Place::Column(name), error })
            }
        }
    }

    /// Whether the objective or a constraint reads the datum at this slot.
    pub fn uses(&self, slot: usize) -> bool {
        let mut expressions = vec![&self.expression];
        expressions.extend(self.constraints.iter().map(|constraint| &constraint.excess));
        let here = |node: &Node| matches!(node, Node::Data { slot: other, .. } if *other == slot);
        expressions.into_iter().any(|expression| expression.contains(&here))
    }

    /// Whether it reads a datum that depends on which other jobs there are.
    pub fn depends_on_other_jobs(&self) -> bool {
        let depends = |slot: &usize| self.vocabulary.datum(*slot).depends_on_other_jobs();
        (0..self.vocabulary.len()).filter(depends).any(|slot| self.uses(slot))
    }

    /// Names of the per-job data that the objective and its constraints read, by slot, with data of owners last: all that
    /// the policy sees of a job beyond its throughputs and scale factor.
    pub fn job_data(&self) -> Vec<String> {
        let of_jobs = |slot: &usize| self.vocabulary.datum(*slot).subject == Subject::Job;
        let slots = (0..self.vocabulary.len()).filter(of_jobs).filter(|slot| self.uses(*slot));
        let stated = slots.map(|slot| self.vocabulary.datum(slot).name.to_string());
        stated.chain(self.owners().into_iter().map(owned_by)).collect()
    }

    /// The objective with the constraint of this text on every job droppable; none if it has no such constraint, or one that is
    /// droppable already or cannot be: soft, curved, or an equality.
    pub(crate) fn with_droppable(&self, text: &str) -> Option<Self> {
        let mut changed = self.clone();
        let wanted =
            |one: &&mut Constraint| one.subject == Some(Subject::Job) && one.text == text && !one.droppable;
        let constraint = changed.constraints.iter_mut().find(wanted)?;
        let shape = shape(&constraint.excess, &self.vocabulary);
        let affine = shape.is_ok_and(|shape| shape.curvature == Curvature::Affine);
        constraint.droppable = affine && constraint.soft.is_none() && !constraint.is_equality();
        constraint.droppable.then_some(changed)
    }

    /// Calls `visit` with each node of the objective and of the constraints.
    pub(crate) fn each_node<'e>(&'e self, visit: &mut impl FnMut(&'e Node)) {
        self.expression.each(visit);
        self.constraints.iter().for_each(|constraint| constraint.excess.each(visit));
    }

    /// Whether effective throughput is the only variable that it reads.
    pub fn reads_throughput_only(&self) -> bool {
        !Variable::ALL[1..].iter().any(|variable| self.reads_variable(*variable))
    }

    /// Whether it reads a job's time on worker types, or the workers that the job holds by it.
    pub fn reads_time(&self) -> bool {
        let of_time = |variable: &Variable| variable.measure() != Measure::Throughput;
        Variable::ALL.into_iter().filter(of_time).any(|variable| self.reads_variable(variable))
    }

    /// Whether it reads a variable. Effective throughput counts as read, because other parts of the engine ask for it.
    pub fn reads_variable(&self, variable: Variable) -> bool {
        let read = |node: &Node| matches!(node, Node::Variable(other, _) if *other == variable);
        variable == Variable::Throughput || self.reads(&read)
    }

    fn reads(&self, what: &impl Fn(&Node) -> bool) -> bool {
        let mut expressions =
            std::iter::once(&self.expression).chain(self.constraints.iter().map(|c| &c.excess));
        expressions.any(|expression| expression.contains(what))
    }

    /// The direction: maximize or minimize.
    pub fn sense(&self) -> Sense {
        self.sense
    }

    /// The expression that is maximized or minimized.
    pub fn expression(&self) -> &Expr {
        &self.expression
    }

    /// The constraints on jobs, then on worker types, then on the whole cluster.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// Whether a constraint limits what the allocation gives (see [`Constraint::is_limit`]).
    pub fn has_limits(&self) -> bool {
        self.constraints.iter().any(Constraint::is_limit)
    }

    /// The vocabulary that it was checked with.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The way in which its optimum is found.
    pub fn route(&self) -> Route {
        self.route
    }

    /// The inversion of a job's part of a min-max objective, if it has one.
    pub fn inversion(&self) -> Option<&Inversion> {
        self.inversion.as_ref()
    }

    /// Whether it is `lexicographic_min_over_jobs`.
    pub fn is_lexicographic(&self) -> bool {
        matches!(&self.expression.node, Node::Reduce(reduction, _) if reduction.fold == Fold::LexicographicMin)
    }

    /// Whether its linear program has a column 1/level in place of the level.
    pub(crate) fn is_by_inverse(&self) -> bool {
        objective_by_inverse(&self.expression, self.inversion.as_ref(), &self.vocabulary)
    }

    /// The reason for the route, for people.
    pub fn reason(&self) -> String {
        let cones = "cones, because a logarithm, root or inverse is added up over jobs";
        match (self.route, self.inversion.as_ref().map(Inversion::form)) {
            (Route::Linear, _) if self.is_by_inverse() => {
                "one linear program in the inverse of the level: a level t asks each job for a throughput of the form a + b/t".to_owned()
            }
            (Route::Linear, Some(LevelForm::Affine)) => {
                "one linear program with the level as a column: a level t asks each job for a throughput of the form a + b·t".to_owned()
            }
            (Route::Linear, _) => {
                "one linear program: the objective is piecewise linear in the allocation".to_owned()
            }
            (Route::Parametric, _) => {
                "a linear program for each level tried: at a fixed level each job needs a known throughput, which is not linear in the level".to_owned()
            }
            (Route::Conic, _) => format!("one program with {cones}"),
        }
    }
}

/// Whether 1/t is the column of the program: where the level t is minimized and never below 0, and no linear program with
/// t itself will do.
fn objective_by_inverse(expression: &Expr, inversion: Option<&Inversion>, vocabulary: &Vocabulary) -> bool {
    let inverse = inversion.is_some_and(|inversion| inversion.form() == LevelForm::AffineInInverse);
    let minimized = matches!(&expression.node, Node::Reduce(reduction, _) if reduction.fold == Fold::Max);
    let linear = shape(expression, vocabulary).is_ok_and(|shape| shape.piecewise_linear);
    inverse
        && minimized
        && !linear
        && facts(expression, vocabulary).is_ok_and(|facts| facts.sign.is_non_negative())
}

type Checked = (Expr, Route, Option<Inversion>);

fn check_objective(text: &ObjectiveText, vocabulary: &Vocabulary) -> Result<Checked, ExpressionError> {
    let expression = parse(&text.objective, vocabulary, Scope::GLOBAL)?;
    let lexicographic =
        |node: &Node| matches!(node, Node::Reduce(reduction, _) if reduction.fold == Fold::LexicographicMin);
    let top = lexicographic(&expression.node);
    let inside = match &expression.node {
        Node::Reduce(_, inner) => inner.contains(&lexicographic),
        _ => expression.contains(&lexicographic),
    };
    if inside || (top && text.sense == Sense::Minimize) {
        return Err(ExpressionError::new(Kind::Lexicographic, expression.span));
    }
    if !facts(&expression, vocabulary)?.varies {
        return Err(ExpressionError::new(Kind::Constant(expression.to_string()), expression.span));
    }
    let inversion = trace_level(&expression, text.sense, vocabulary);
    if top && inversion.is_none() {
        return Err(ExpressionError::new(Kind::LexicographicLevel, expression.span));
    }
    let convexity = shape(&expression, vocabulary);
    let (fits, word, expected): (fn(Curvature) -> bool, _, _) = match text.sense {
        Sense::Maximize => (Curvature::is_concave, "maximize", "a concave expression"),
        Sense::Minimize => (Curvature::is_convex, "minimize", "a convex expression"),
    };
    let route = match &convexity {
        Ok(shape) if fits(shape.curvature) && shape.piecewise_linear => Route::Linear,
        _ if objective_by_inverse(&expression, inversion.as_ref(), vocabulary) => Route::Linear,
        _ if inversion.is_some() => Route::Parametric,
        Ok(shape) if fits(shape.curvature) => Route::Conic,
        Ok(shape) => {
            let (function, argument) = (word.to_owned(), expression.to_string());
            let kind = Kind::Curvature { function, argument, found: shape.curvature.name(), expected };
            return Err(ExpressionError::new(kind, expression.span));
        }
        Err(error) => return Err(error.clone()),
    };
    Ok((expression, route, inversion))
}

fn trace_level(expression: &Expr, sense: Sense, vocabulary: &Vocabulary) -> Option<Inversion> {
    let Node::Reduce(reduction, inner) = &expression.node else { return None };
    if reduction.over != Subject::Job {
        return None;
    }
    let bound = match (reduction.fold, sense) {
        (Fold::Min | Fold::LexicographicMin, Sense::Maximize) => Bound::AtLeast,
        (Fold::Max, Sense::Minimize) => Bound::AtMost,
        _ => return None,
    };
    Inversion::trace(inner, bound, vocabulary)
}

/// The constraint, and whether it needs cones.
fn check_constraint(
    constraint: &ConstraintText,
    subject: Option<Subject>,
    vocabulary: &Vocabulary,
) -> Result<(Constraint, bool), ExpressionError> {
    let text = &constraint.text;
    let whole = Span { offset: 0, width: text.len().max(1) };
    let scope = match subject {
        Some(Subject::Job) => Scope::JOB,
        Some(Subject::WorkerType) => Scope::WORKER_TYPE,
        None => Scope::GLOBAL,
    };
    let ComparedSides { left, comparison, right } = parse_comparison(text, vocabulary, scope)?;
    let (small, large) = if comparison == Comparison::AtLeast { (right, left) } else { (left, right) };
    let node = Node::Binary(Operator::Subtract, Box::new(small.clone()), Box::new(large.clone()));
    let excess = Expr { node, span: whole };
    if excess.contains(&|node| matches!(node, Node::Reduce(r, _) if r.fold == Fold::LexicographicMin)) {
        return Err(ExpressionError::new(Kind::Lexicographic, whole));
    }
    let sides = (facts(&small, vocabulary)?, facts(&large, vocabulary)?);
    common_dimension("comparison", sides.0, sides.1, &excess)?;
    if !sides.0.varies && !sides.1.varies {
        return Err(ExpressionError::new(Kind::Constant(text.clone()), whole));
    }
    if let Some(penalty) = constraint.soft.filter(|penalty| !(penalty.is_finite() && *penalty > 0.0)) {
        return Err(ExpressionError::new(Kind::Penalty(penalty), whole));
    }
    let equality = comparison == Comparison::Equal;
    let convexity = shape(&excess, vocabulary);
    let convexity_of_droppable = convexity.clone();
    let hard_job = subject == Some(Subject::Job) && !equality && constraint.soft.is_none();
    let inversion = match &convexity {
        Ok(shape) if shape.curvature.is_convex() && shape.piecewise_linear => None,
        _ if hard_job => Inversion::trace(&excess, Bound::AtMost, vocabulary),
        _ => None,
    };
    let accepted = |curvature: Curvature| {
        if equality { curvature == Curvature::Affine } else { curvature.is_convex() }
    };
    let conic = match convexity {
        _ if inversion.is_some() => false,
        Ok(shape) if accepted(shape.curvature) => !shape.piecewise_linear,
        Ok(shape) => {
            let expected =
                if equality { "affine sides" } else { "a convex smaller and a concave larger side" };
            let (excess, comparison) = (excess.to_string(), if equality { "==" } else { "<=" });
            let kind =
                Kind::ConstraintCurvature { excess, comparison, found: shape.curvature.name(), expected };
            return Err(ExpressionError::new(kind, whole));
        }
        Err(error) => return Err(error),
    };
    let (text, soft, droppable) = (text.clone(), constraint.soft, constraint.droppable);
    let affine = matches!(&convexity_of_droppable, Ok(shape) if shape.curvature == Curvature::Affine);
    if droppable && !(hard_job && affine) {
        return Err(ExpressionError::new(Kind::NotDroppable, whole));
    }
    Ok((Constraint { text, subject, excess, comparison, soft, droppable, inversion }, conic))
}

impl Objective {
    /// The physical dimension of the objective's value.
    pub fn dimension(&self) -> Dimension {
        let facts = facts(&self.expression, &self.vocabulary);
        facts.ok().and_then(|facts| facts.dimension).unwrap_or(Dimension::NONE)
    }
}
