//! The test whether a kept training is that of a document, and may continue with the document's present values.

use std::collections::BTreeSet;

use serde_json::Value;

use apportion_learn::checkpoint::{Header, Provenance, Raised};
use apportion_learn::training::run::Budget;

/// The budgets that a kept training had before this one, if it may go on.
///
/// # Errors
/// Why it may not: it is another training, or its budget was lowered.
pub(super) fn budgets_before(kept: &Header, now: &Provenance) -> Result<Vec<Raised>, String> {
    let (before, own) = (without_budget(&kept.spec), without_budget(&now.spec));
    if let Some(field) = first_difference(&before, &own) {
        return Err(format!("it is of a training by another document: `{field}` is not the same"));
    }
    if kept.data_digest != now.data_digest {
        return Err("it is of a training on other data".to_owned());
    }
    if kept.from_digest != now.from_digest {
        return Err("it began with other weights".to_owned());
    }
    let (Some(before), Some(own)) = (budget_of(&kept.spec), budget_of(&now.spec)) else {
        return Err("it has no budget".to_owned());
    };
    let mut raised = kept.raised.clone();
    if before != own {
        check_raised(&before, &own)?;
        let Budget { decisions, patience, .. } = before;
        raised.push(Raised { decisions, patience, n_updates: kept.n_updates });
    }
    Ok(raised)
}

fn check_raised(before: &Budget, own: &Budget) -> Result<(), String> {
    let or_none = |patience: Option<u32>| patience.map_or("none".to_owned(), |patience| patience.to_string());
    let faults = [
        (own.decisions < before.decisions, "decisions", before.decisions.to_string(), "as many, or more"),
        (
            own.validate_every != before.validate_every,
            "validate_every",
            before.validate_every.to_string(),
            "the same",
        ),
        (
            own.patience.unwrap_or(u32::MAX) < before.patience.unwrap_or(u32::MAX),
            "patience",
            or_none(before.patience),
            "as much, more, or none",
        ),
    ];
    match faults.into_iter().find(|(is_fault, ..)| *is_fault) {
        None => Ok(()),
        Some((_, field, value, expected)) => {
            Err(format!("its `budget.{field}` was {value}, expected {expected} to go on with it"))
        }
    }
}

fn without_budget(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("budget");
    }
    spec
}

/// The path of the first value that differs between two documents; none if they are equal.
fn first_difference(one: &Value, other: &Value) -> Option<String> {
    if one == other {
        return None;
    }
    let (Value::Object(fields), Value::Object(others)) = (one, other) else { return Some(String::new()) };
    let names: BTreeSet<&String> = fields.keys().chain(others.keys()).collect();
    let within = |name: &String| match (fields.get(name), others.get(name)) {
        (Some(one), Some(other)) => first_difference(one, other),
        (None, None) => None,
        _ => Some(String::new()),
    };
    names.into_iter().find_map(|name| {
        let below = within(name)?;
        Some(if below.is_empty() { name.clone() } else { format!("{name}.{below}") })
    })
}

fn budget_of(spec: &Value) -> Option<Budget> {
    serde_json::from_value(spec.get("budget")?.clone()).ok()
}
