//! Published points, which tables and pages show beside those of a study.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reader::Reader;
use super::schema::VariedFields;
use super::{Axis, value_text};
use apportion::metrics::Metric;
use apportion::spec::nearest;

/// Published values of one metric by policy, shown beside those of the study.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Published")]
pub(super) struct PublishedDocument {
    /// Name of the metric in results, such as `average_jct_s`.
    metric: String,
    /// Unit of the values, that of tables for people: `h` for times. Numbers without a unit have none.
    #[serde(default)]
    unit: Option<String>,
    /// Publication of the values, and a description of them.
    source: String,
    /// Places of the values: an axis of numbers, with its values at which some are given.
    #[schemars(with = "VariedFields")]
    at: serde_yaml::Mapping,
    /// Values by policy, one at each place, in order; `null` where none was published.
    values: BTreeMap<String, Vec<Option<f64>>>,
}

/// Published values of one metric, by policy and place on an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Name of the metric.
    pub metric: String,
    /// Publication of the values.
    pub source: String,
    /// Name of the axis in the study.
    pub axis: String,
    /// Values of the axis at which values are given.
    pub places: Vec<f64>,
    /// Values at each place by policy, in the metric's unit for people.
    pub values: BTreeMap<String, Vec<Option<f64>>>,
}

impl Published {
    /// Places with values of a policy.
    pub fn points(&self, policy: &str) -> impl Iterator<Item = (f64, f64)> {
        let values = self.values.get(policy).into_iter().flatten();
        self.places.iter().zip(values).filter_map(|(place, value)| Some((*place, (*value)?)))
    }
}

/// Largest accepted value: it is shown with all its digits, and hours are converted to seconds.
const VALUE_MAX: f64 = 1e15;

/// The last part of an axis's name.
fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

impl Reader<'_> {
    /// Values of the section `published`; `axes` are those of the whole study.
    pub(super) fn published(&mut self, documents: &[PublishedDocument], axes: &[Axis]) -> Vec<Published> {
        let mut read = Vec::with_capacity(documents.len());
        for (position, document) in documents.iter().enumerate() {
            let path = format!("published[{position}]");
            self.check_metric(document, &path);
            if document.source.trim().is_empty() {
                self.complain(
                    &format!("{path}.source"),
                    "empty, expected where the values are printed",
                    None,
                );
            }
            let Some((axis, places)) = self.places(&document.at, axes, &format!("{path}.at")) else {
                continue;
            };
            self.check_panels(axis, axes, &path);
            self.check_values(document, places.len(), axes, &path);
            read.push(Published {
                metric: document.metric.clone(),
                source: document.source.clone(),
                axis: axis.name.clone(),
                places,
                values: document.values.clone(),
            });
        }
        read
    }

    fn check_metric(&mut self, document: &PublishedDocument, path: &str) {
        let name = &document.metric;
        let Some(metric) = Metric::named(name) else {
            let message =
                format!("unknown metric `{name}`, expected one of {}", nearest::name_list(Metric::names()));
            self.complain(&format!("{path}.metric"), message, nearest::suggestion(name, Metric::names()));
            return;
        };
        let (shown, given) = (metric.unit.shown(), document.unit.as_deref());
        match given {
            None if !shown.is_empty() => {
                let help = Some(format!("add `unit: {shown}`"));
                self.complain(path, format!("`{name}` has a unit, which is not given"), help);
            }
            Some(unit) if unit != shown => {
                let (expected, help) = match shown {
                    "" => (format!("expected none: `{name}` has no unit"), "remove it".to_owned()),
                    _ => (format!("expected `{shown}`"), format!("give the values of `{name}` in {shown}")),
                };
                self.complain(&format!("{path}.unit"), format!("unit `{unit}`, {expected}"), Some(help));
            }
            _ => {}
        }
    }

    /// The axis of the values, and the places on it.
    fn places<'a>(
        &mut self,
        at: &serde_yaml::Mapping,
        axes: &'a [Axis],
        path: &str,
    ) -> Option<(&'a Axis, Vec<f64>)> {
        let Some((key, values)) = at.iter().next().filter(|_| at.len() == 1) else {
            self.complain(path, "expected one axis", Some("such as {rate: [0.4, 0.8]}".to_owned()));
            return None;
        };
        let name = key.as_str().unwrap_or_default();
        let path = format!("{path}.{name}");
        let Some(axis) = axes.iter().find(|axis| axis.name == name || axis.field == name) else {
            self.unknown_axis(name, axes, &path);
            return None;
        };
        let (given, place) = self.axis((&axis.name, &axis.field), values, &path)?;
        let mut places = Vec::with_capacity(given.values.len());
        for (position, value) in given.values.iter().enumerate() {
            let path = if place.is_listed { format!("{path}[{position}]") } else { path.clone() };
            if given.auto.is_some() || !value.is_number() {
                self.complain(&path, "expected numbers: points are drawn against them", None);
                return None;
            }
            if axis.auto.is_none() && !axis.values.contains(value) {
                let message = format!("axis `{name}` has no value `{}`", value_text(value));
                let help = "points that others published stand where the study has runs: leave this one out, or add the \
                            value to the axis";
                self.complain(&path, message, Some(help.to_owned()));
            }
            places.extend(value.as_f64());
        }
        Some((axis, places))
    }

    /// Checks that each point belongs to all seeds of one place, as nothing else is varied.
    fn check_panels(&mut self, at: &Axis, axes: &[Axis], path: &str) {
        let is_more =
            |axis: &&Axis| axis.name != at.name && !["policy", "seed"].contains(&last_part(&axis.name));
        if let Some(axis) = axes.iter().find(is_more) {
            let message =
                format!("the study varies `{}`, too: of which of its values are these points?", axis.name);
            let help = "give each of its values a study of its own, or leave `published` out".to_owned();
            self.complain(path, message, Some(help));
        }
    }

    fn check_values(&mut self, document: &PublishedDocument, n_places: usize, axes: &[Axis], path: &str) {
        let known = axes.iter().find(|axis| last_part(&axis.name) == "policy");
        let known: Vec<String> =
            known.map(|axis| axis.values.iter().map(value_text).collect()).unwrap_or_default();
        if document.values.is_empty() {
            self.complain(
                &format!("{path}.values"),
                "no values",
                Some("such as {fifo: [17.58, null]}".to_owned()),
            );
        }
        for (policy, values) in &document.values {
            let path = format!("{path}.values.{policy}");
            if !known.contains(policy) {
                let names = || known.iter().map(String::as_str);
                let message = match known.as_slice() {
                    [] => "values are given by policy, which the study does not vary".to_owned(),
                    _ => format!(
                        "axis `policy` has no value `{policy}`, expected one of {}",
                        nearest::name_list(names())
                    ),
                };
                self.complain_of_key(&path, message, nearest::suggestion(policy, names()));
            }
            if values.len() != n_places {
                let message = format!("{} values at {n_places} places", values.len());
                let help = "give one for each place in `at`, `null` where none was published".to_owned();
                self.complain(&path, message, Some(help));
            }
            let is_odd = |value: &Option<f64>| value.is_some_and(|value| !(0.0..=VALUE_MAX).contains(&value));
            for (position, value) in values.iter().enumerate().filter(|(_, value)| is_odd(value)) {
                let message =
                    format!("{:?}, expected a number from 0 to {VALUE_MAX:?}", value.unwrap_or_default());
                let help = "give it in the unit that is stated, or `null` if none was published".to_owned();
                self.complain(&format!("{path}[{position}]"), message, Some(help));
            }
        }
    }
}
