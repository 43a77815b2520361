//! The values of an axis: listed, spread over a range, or found while the sweep runs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::auto::AutoSpec;
use super::reader::Reader;
use super::{Axis, AxisPlace, POINTS_MAX, value_text};
use apportion::spec::complaint::in_plain_words;

/// The only field whose values may be found automatically.
pub(super) const AUTO_FIELD: &str = "workload.rate";

/// The most repeated values that are reported.
const REPEATED_MAX: usize = 20;

/// Numbers spread over a range, rounded to 12 significant digits.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Range")]
pub(super) struct RangeDocument {
    /// First number.
    from: f64,
    /// Last number.
    to: f64,
    /// Number of numbers, at least 2.
    points: u64,
    /// Spacing of the numbers; `linear` by default.
    #[serde(default)]
    scale: Scale,
}

/// Spacing of the numbers of a range.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Scale {
    /// Numbers have equal differences.
    #[default]
    Linear,
    /// Numbers have equal ratios.
    Log,
}

impl Reader<'_> {
    /// An axis with its values, and its place in the document.
    pub(super) fn axis(
        &mut self,
        (name, field): (&str, &str),
        values: &serde_yaml::Value,
        path: &str,
    ) -> Option<(Axis, AxisPlace)> {
        let auto = match values {
            serde_yaml::Value::String(text) if text == "auto" => Some(AutoSpec::default()),
            serde_yaml::Value::Mapping(map) if map.len() == 1 && map.contains_key("auto") => {
                Some(self.auto(&map["auto"], &format!("{path}.auto"))?)
            }
            _ => None,
        };
        if auto.is_some() && field != AUTO_FIELD {
            let message = "`auto` raises the arrival rate, expected a list of values, or a range";
            self.complain(path, message, None);
            return None;
        }
        let (listed, is_listed) = match (values, auto) {
            (_, Some(auto)) => (vec![whole_or_float(auto.from)], false),
            (serde_yaml::Value::Sequence(items), None) => (items.clone(), true),
            (serde_yaml::Value::Mapping(_), None) => (self.range(values, path)?, false),
            _ => {
                let message = "expected a list of values, or a range {from, to, points, scale}";
                self.complain(path, message, None);
                return None;
            }
        };
        if listed.is_empty() {
            self.complain(path, "an axis without values", Some("give at least one".to_owned()));
            return None;
        }
        let mut canonical = Vec::with_capacity(listed.len());
        let mut places = Vec::with_capacity(listed.len());
        for (position, value) in listed.iter().enumerate() {
            let place = if is_listed { format!("{path}[{position}]") } else { path.to_owned() };
            let Some(value) = self.value(field, value, &place) else { continue };
            canonical.push(value);
            places.push((position, place));
        }
        self.complain_of_repeated(&canonical, &places);
        let axis = Axis { name: name.to_owned(), field: field.to_owned(), values: canonical, auto };
        Some((axis, AxisPlace { path: path.to_owned(), is_listed }))
    }

    /// Complains about each value that occurs more than once, at its second place.
    fn complain_of_repeated(&mut self, values: &[Value], places: &[(usize, String)]) {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        // Second position and number of occurrences of each repeated value, by its first position.
        let mut repeated: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for (position, value) in values.iter().enumerate() {
            match known.entry(value.to_string()) {
                Entry::Vacant(first) => {
                    first.insert(position);
                }
                Entry::Occupied(first) => repeated.entry(*first.get()).or_insert((position, 1)).1 += 1,
            }
        }
        let n_more = repeated.len().saturating_sub(REPEATED_MAX);
        for (number, (first, (second, n))) in repeated.into_iter().take(REPEATED_MAX).enumerate() {
            let times = if n == 2 { "twice".to_owned() } else { format!("{n} times") };
            let text = value_text(&values[first]);
            let more = match n_more {
                n if n > 0 && number + 1 == REPEATED_MAX => format!("; {n} more values come more than once"),
                _ => String::new(),
            };
            let place = places[first].0 + 1;
            let message = format!("`{text}` comes {times}, first at position {place}{more}");
            self.complain(&places[second].1, message, None);
        }
    }

    fn auto(&mut self, values: &serde_yaml::Value, path: &str) -> Option<AutoSpec> {
        let auto: AutoSpec = match serde_yaml::from_value(values.clone()) {
            Ok(auto) => auto,
            Err(error) => {
                let help = "such as {auto: {from: 0.5, utilization: 0.98, precision: 0.05}}";
                self.complain(path, in_plain_words(&error.to_string(), path).message, Some(help.to_owned()));
                return None;
            }
        };
        let wrong = auto.complaints();
        for (field, message) in &wrong {
            self.complain(&format!("{path}.{field}"), message, None);
        }
        wrong.is_empty().then_some(auto)
    }

    /// Values of a range.
    fn range(&mut self, values: &serde_yaml::Value, path: &str) -> Option<Vec<serde_yaml::Value>> {
        let range: RangeDocument = match serde_yaml::from_value(values.clone()) {
            Ok(range) => range,
            Err(error) => {
                let help = "a range is {from: 0.4, to: 6.0, points: 15}, or with `scale: log`";
                self.complain(path, in_plain_words(&error.to_string(), path).message, Some(help.to_owned()));
                return None;
            }
        };
        let RangeDocument { from, to, points, scale } = range;
        let wrong = if !(from.is_finite() && to.is_finite() && from < to) {
            Some(format!("from {from} to {to} is no range, expected two finite numbers, `from` below `to`"))
        } else if !(2..=POINTS_MAX as u64).contains(&points) {
            Some(format!("{points} points, expected 2 to {POINTS_MAX}"))
        } else if matches!(scale, Scale::Log) && from <= 0.0 {
            Some(format!("a logarithmic range starts above 0, not at {from}"))
        } else {
            None
        };
        if let Some(message) = wrong {
            self.complain(path, message, None);
            return None;
        }
        let last = (points - 1) as f64;
        let at = |position: u64| match scale {
            Scale::Linear => from + (to - from) * position as f64 / last,
            Scale::Log => from * (to / from).powf(position as f64 / last),
        };
        Some((0..points).map(|position| whole_or_float(rounded(at(position)))).collect())
    }
}

/// The number rounded to 12 significant digits, without the noise of its computation.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

/// A whole number stays an integer, so that fields that count can take ranges, too.
fn whole_or_float(value: f64) -> serde_yaml::Value {
    #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
    if value.fract() == 0.0 && value.abs() < 9e15 { (value as i64).into() } else { value.into() }
}
