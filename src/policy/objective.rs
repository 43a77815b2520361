//! The objective of a policy file: its expressions checked, every complaint at its place in the file.

use crate::program::expression::{Dimension, ExpressionError, ExpressionErrorKind, Sign, Span, Vocabulary};
use crate::program::{ConstraintText, Objective, ObjectiveError, ObjectiveText, Place, Sense};
use crate::spec::document::{Complaints, Unplaced};
use crate::spec::nearest::suggestion;
use crate::spec::policy::{ConstraintDocument, Parameter, Program, Refine};
use crate::spec::{PolicyDocument, PolicyKind, SpecError};

/// The checked objective of a program; none for a heuristic.
///
/// # Errors
/// With file, line and column of the fault: syntax, an unknown name, a dimension, the curvature, a column that is not
/// used, a refinement that the objective has no levels for, a soft constraint where one level is raised after the
/// other.
pub fn objective_of(document: &PolicyDocument) -> Result<Option<Objective>, SpecError> {
    let PolicyKind::Program(program) = &document.kind else { return Ok(None) };
    let vocabulary = vocabulary(document, program)?;
    let texts = |list: &[ConstraintDocument]| {
        let text = |item: &ConstraintDocument| ConstraintText {
            text: item.constraint.clone(),
            soft: item.soft,
            droppable: item.droppable,
        };
        list.iter().map(text).collect()
    };
    let text = ObjectiveText {
        sense: if program.maximize { Sense::Maximize } else { Sense::Minimize },
        objective: program.objective.clone(),
        for_each_job: texts(&program.for_each_job),
        for_each_worker_type: texts(&program.for_each_worker_type),
        constraints: texts(&program.constraints),
    };
    let objective = Objective::check(&text, vocabulary).map_err(|error| placed(document, program, &error))?;
    if let Some(unused) = program.parameters.iter().find(|parameter| !document.is_named(&parameter.name)) {
        let name = &unused.name;
        let message =
            format!("parameter `{name}` is declared but neither the objective nor a constraint uses it");
        let (path, help) = (format!("parameters.{name}"), "remove it, or use it".to_owned());
        return Err(document.source.error_at_key(&path, message, Some(help)));
    }
    if program.refine == Refine::WaterFilling && (objective.inversion().is_none() || !program.maximize) {
        let message = "`water_filling` needs levels to raise, and this objective has none";
        let help = "maximize `min_over_jobs(…)` or `lexicographic_min_over_jobs(…)` of an expression that grows with `throughput`, named once";
        return Err(document.source.error_at("refine", message, Some(help.to_owned())));
    }
    let by =
        if objective.is_lexicographic() { "lexicographic_min_over_jobs" } else { "refine: water_filling" };
    let by_level = objective.is_lexicographic() || program.refine == Refine::WaterFilling;
    if let Some(error) = first_soft(&text, by).filter(|_| by_level) {
        return Err(placed(document, program, &error));
    }
    Ok(Some(objective))
}

/// Error at the first soft constraint, if there is one. `by` names the method that raises level after level.
fn first_soft(text: &ObjectiveText, by: &'static str) -> Option<ObjectiveError> {
    let lists = [
        (&text.for_each_job, Place::ForEachJob as fn(usize) -> Place),
        (&text.for_each_worker_type, Place::ForEachWorkerType),
        (&text.constraints, Place::Cluster),
    ];
    lists.into_iter().find_map(|(list, place)| {
        let position = list.iter().position(|constraint| constraint.soft.is_some())?;
        let span = Span { offset: 0, width: list[position].text.len() };
        let error = ExpressionError::new(ExpressionErrorKind::SoftLexicographic(by), span);
        Some(ObjectiveError { place: place(position), error })
    })
}

/// The built-in names, and the columns and parameters of the policy file.
fn vocabulary(document: &PolicyDocument, program: &Program) -> Result<Vocabulary, SpecError> {
    let mut vocabulary = Vocabulary::default();
    let mut complaints = Complaints::default();
    for (name, unit) in &program.columns {
        let path = format!("columns.{name}");
        let (unit_text, sign) = match unit.split_once('>') {
            None => (unit.as_str(), Some(Sign::ANY)),
            Some((unit, limit)) => {
                let sign = match limit.replace(' ', "").as_str() {
                    "0" => Some(Sign::POSITIVE),
                    "=0" => Some(Sign::NON_NEGATIVE),
                    _ => None,
                };
                (unit, sign)
            }
        };
        let (Some(dimension), Some(sign)) = (Dimension::parse(unit_text), sign) else {
            let message = format!("column `{name}` is `{unit}`, expected a unit, or a unit and its sign");
            let help = "as in `s`, `steps/s > 0`, `$ >= 0` or, for plain numbers, `1`".to_owned();
            complaints.push(|| Unplaced::at(&path, message, Some(help)));
            continue;
        };
        if vocabulary.add_column(name, dimension, sign).is_none() {
            let message = format!(
                "column `{name}` has a name that the language uses itself, or that is not letters, digits and `_`"
            );
            complaints.push(|| Unplaced::at_key(&path, message, None));
        }
    }
    for Parameter { name, value, unit, .. } in &program.parameters {
        let Some(dimension) = unit.as_deref().map_or(Some(Dimension::NONE), Dimension::parse) else {
            let message = format!("unknown unit `{}`", unit.as_deref().unwrap_or_default());
            let help = "a product of `steps`, `s`, `h`, `$` and `workers`, as in `steps/s`".to_owned();
            complaints.push(|| Unplaced::at(&format!("parameters.{name}.unit"), message, Some(help)));
            continue;
        };
        if vocabulary.add_parameter(name, *value, dimension).is_none() {
            let message = format!(
                "parameter `{name}` has a name that is taken, or that is not letters, digits and `_`"
            );
            complaints.push(|| Unplaced::at_key(&format!("parameters.{name}"), message, None));
        }
    }
    document.source.all_at(complaints)?;
    Ok(vocabulary)
}

/// Path of the field in which a constraint states its penalty.
fn soft_of(place: &Place) -> Option<String> {
    match place {
        Place::ForEachJob(position) => Some(format!("for_each_job[{position}].soft")),
        Place::ForEachWorkerType(position) => Some(format!("for_each_worker_type[{position}].soft")),
        Place::Cluster(position) => Some(format!("constraints[{position}].soft")),
        Place::Objective | Place::Column(_) => None,
    }
}

fn placed(document: &PolicyDocument, program: &Program, error: &ObjectiveError) -> SpecError {
    let constraint = |list: &str, items: &[ConstraintDocument], position: usize| {
        let mapped = items.get(position).is_some_and(|item| item.mapped);
        let field = if mapped { ".constraint" } else { "" };
        let text = items.get(position).map_or("", |item| item.constraint.as_str());
        (format!("{list}[{position}]{field}"), text.to_owned())
    };
    if let (ExpressionErrorKind::Penalty(_), Some(path)) = (&error.error.kind, soft_of(&error.place)) {
        return document.source.error_at(&path, error.to_string(), error.error.help());
    }
    let (path, text) = match &error.place {
        Place::Objective => {
            let field = if program.maximize { "maximize" } else { "minimize" };
            (field.to_owned(), program.objective.clone())
        }
        Place::ForEachJob(position) => constraint("for_each_job", &program.for_each_job, *position),
        Place::ForEachWorkerType(position) => {
            constraint("for_each_worker_type", &program.for_each_worker_type, *position)
        }
        Place::Cluster(position) => constraint("constraints", &program.constraints, *position),
        Place::Column(name) => {
            let path = format!("columns.{name}");
            return document.source.error_at_key(&path, error.to_string(), error.error.help());
        }
    };
    // Spans count bytes, places in documents count characters.
    let span = error.error.span;
    let characters = |bytes: usize| text.get(..bytes).unwrap_or(&text).chars().count();
    let offset = characters(span.offset);
    let width = (characters(span.offset + span.width) - offset).max(1);
    let mut complaint = document.source.error_within(&path, offset, width, error.to_string());
    let meant = match &error.error.kind {
        ExpressionErrorKind::UnknownName { name, known } => {
            suggestion(name, known.iter().map(String::as_str))
        }
        ExpressionErrorKind::Character(sign @ ('<' | '>')) => {
            Some(format!("use `{sign}=`: shares may be as close to a bound as they like"))
        }
        _ => None,
    };
    if let Some(diagnostic) = complaint.diagnostics.last_mut() {
        diagnostic.help = meant.or_else(|| error.error.help());
    }
    complaint
}

#[cfg(test)]
mod tests;
