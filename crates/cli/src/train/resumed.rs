//! The test whether a kept training is that of a document, and may continue with the document's present values.

use std::collections::BTreeSet;

use serde_json::Value;

use apportion_learn::checkpoint::{Header, Provenance};
use apportion_learn::training::run::Budget;

/// The reason why a kept training does not go on.
#[derive(Debug)]
pub(super) struct Refused {
    /// The reason, in words.
    pub(super) reason: String,
    /// Whether a larger budget is refused, so that a further training may begin with the kept weights.
    pub(super) may_begin_further: bool,
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self { reason, may_begin_further: false }
    }
}

/// Whether the budget of a kept training is raised, if the training may go on. The unit is what the budget counts.
///
/// # Errors
/// If it is another training, its budget was lowered, or it was raised where numbers change along it.
pub(super) fn is_raised(kept: &Header, now: &Provenance, unit: &str) -> Result<bool, Refused> {
    let (before, own) = (without_budget(&kept.spec), without_budget(&now.spec));
    if let Some(field) = first_difference(&before, &own) {
        return Err(format!("it is of a training by another document: `{field}` is not the same").into());
    }
    if kept.data_digest != now.data_digest {
        return Err("it is of a training on other data".to_owned().into());
    }
    if kept.from_digest != now.from_digest {
        return Err("it began with other weights".to_owned().into());
    }
    let (Some(before), Some(own)) = (budget_of(&kept.spec), budget_of(&now.spec)) else {
        return Err("it has no budget".to_owned().into());
    };
    check_raised(&before, &own)?;
    match along_budget(&kept.spec) {
        Some(field) if own.decisions > before.decisions => {
            let (before, own) = (before.decisions, own.decisions);
            let reason = format!(
                "its `{field}` changes along its budget of {before} {unit}, so that a training of {own} is another from its first update"
            );
            Err(Refused { reason, may_begin_further: true })
        }
        _ => Ok(before != own),
    }
}

/// Fields that may change along the budget.
const SCHEDULES: [&str; 7] = [
    "ppo.learning_rate",
    "ppo.entropy_weight",
    "actor_critic.learning_rate",
    "actor_critic.entropy_weight",
    "actor_critic.critic_learning_rate",
    "evolution.learning_rate",
    "world.jobs",
];

/// The first field that does, from one number to another.
fn along_budget(spec: &Value) -> Option<&'static str> {
    SCHEDULES.into_iter().find(|field| {
        let found = spec.pointer(&format!("/{}", field.replace('.', "/")));
        found.is_some_and(|value| value.is_object() && value.get("from") != value.get("to"))
    })
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
