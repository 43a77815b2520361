//! Points that a sweep leaves out.

use serde_json::Value;

use super::reader::Reader;
use super::{Axis, value_text};

/// Conditions on axes; a point that meets all of them is left out.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SkipRule(Vec<(usize, Condition)>);

/// Condition on a point's value on one axis.
#[derive(Clone, Debug, PartialEq)]
enum Condition {
    /// The value is one of these.
    OneOf(Vec<Value>),
    /// The value is a number in this range, ends included.
    Within(f64, f64),
}

impl SkipRule {
    /// Whether a point with these values meets all conditions. `values`: `[axes]`.
    pub(super) fn matches(&self, values: &[Value]) -> bool {
        self.0.iter().all(|(axis, condition)| match condition {
            Condition::OneOf(listed) => listed.contains(&values[*axis]),
            Condition::Within(from, to) => {
                values[*axis].as_f64().is_some_and(|value| (*from..=*to).contains(&value))
            }
        })
    }
}

impl Reader<'_> {
    /// Rules of the section `skip`; `axes` are those of the whole study, so that a quick form may have fewer.
    pub(super) fn skip_rules(&mut self, rules: &[serde_yaml::Mapping], axes: &[Axis]) -> Vec<SkipRule> {
        let mut read = Vec::with_capacity(rules.len());
        for (position, rule) in rules.iter().enumerate() {
            let path = format!("skip[{position}]");
            if rule.is_empty() {
                let help = "such as {policy: fifo, rate: {from: 5}}".to_owned();
                self.complain(&path, "an empty rule would leave out every run", Some(help));
            }
            let conditions = rule.iter().filter_map(|(key, value)| {
                let name = key.as_str().unwrap_or_default();
                self.condition(name, value, axes, &format!("{path}.{name}"))
            });
            read.push(SkipRule(conditions.collect()));
        }
        read
    }

    fn condition(
        &mut self,
        name: &str,
        value: &serde_yaml::Value,
        axes: &[Axis],
        path: &str,
    ) -> Option<(usize, Condition)> {
        let Some(position) = axes.iter().position(|axis| axis.name == name || axis.field == name) else {
            self.unknown_axis(name, axes, path);
            return None;
        };
        if let serde_yaml::Value::Mapping(range) = value
            && range.keys().all(|key| matches!(key.as_str(), Some("from" | "to")))
            && !range.is_empty()
        {
            let bound = |key: &str, otherwise: f64| match range.get(key) {
                None => Some(otherwise),
                Some(number) => number.as_f64().filter(|number| number.is_finite()),
            };
            let (from, to) = (bound("from", f64::NEG_INFINITY), bound("to", f64::INFINITY));
            if let (Some(from), Some(to)) = (from, to) {
                return Some((position, Condition::Within(from, to)));
            }
            self.complain(path, "expected numbers, such as {from: 5} or {from: 1, to: 2}", None);
            return None;
        }
        let listed = match value {
            serde_yaml::Value::Sequence(items) => items.clone(),
            one => vec![one.clone()],
        };
        let axis = &axes[position];
        let mut values = Vec::with_capacity(listed.len());
        for value in &listed {
            let value = self.value(&axis.field, value, path)?;
            if axis.auto.is_none() && !axis.values.contains(&value) {
                let message = format!("axis `{name}` has no value `{}`", value_text(&value));
                self.complain(path, message, None);
            }
            values.push(value);
        }
        Some((position, Condition::OneOf(values)))
    }
}
