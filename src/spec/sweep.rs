//! A study: fields of a simulation that are fixed, and fields that are varied.
//!
//! In: a document `apportion/sweep-v1`. Out: a checked [`SweepSpec`], every point of which is a sound
//! [`RunSpec`]. It runs nothing.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::spec::complaint::in_plain_words;
use crate::spec::document::{Source, SpecError};
use crate::spec::nearest;
use crate::spec::run::{FieldComplaint, RunSpec, TimeText};
use crate::units::Seconds;

/// The format's name, first line of every sweep.
pub const FORMAT: &str = "apportion/sweep-v1";
/// The most runs one sweep may have.
pub const POINTS_MAX: usize = 100_000;
/// The groups of fields inside a run.
const GROUPS: [&str; 5] = ["workload", "mechanism", "solver", "faults", "profiling"];

/// A checked study.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepSpec {
    /// Its name, of which the results folder is called.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Whose study it is.
    pub source: Option<String>,
    /// What is varied, in the document's order; the first varies slowest.
    pub axes: Vec<Axis>,
    /// When a run is not made, or not finished.
    pub stop: StopSpec,
    /// Keep every measured job of every run, too.
    pub keep_jobs: bool,
    /// The fixed part of every run: a tree of fields.
    fixed: Value,
    /// Fixed field → where it is written.
    fixed_at: BTreeMap<String, String>,
    /// Where each axis is written.
    places: Vec<AxisPlace>,
}

/// Where an axis is written.
#[derive(Clone, Debug, PartialEq)]
struct AxisPlace {
    path: String,
    /// Its values stand in a list, each at a place of its own.
    listed: bool,
}

/// A field and the values it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// As the document names it; the results' column.
    pub name: String,
    /// The field of a run, dotted.
    pub field: String,
    /// In the document's order, each once, in canonical form.
    pub values: Vec<Value>,
}

/// When a run is not made, or not finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StopSpec {
    /// A run whose arrival rate provably exceeds what the cluster can serve is recorded, not made.
    pub saturated: bool,
    /// A run that takes longer than this is given up, and recorded so.
    #[serde(deserialize_with = "wall_time")]
    #[schemars(with = "Option<TimeText>")]
    pub wall: Option<Seconds>,
}

fn wall_time<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Seconds>, D::Error> {
    Ok(Option::<TimeText>::deserialize(deserializer)?.map(|time| time.0))
}

/// The document as written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepDocument {
    /// `apportion/sweep-v1`.
    pub format: String,
    /// Letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Whose study it is.
    #[serde(default)]
    pub source: Option<String>,
    /// Fields of every run.
    #[serde(default)]
    #[schemars(with = "RunSpec")]
    run: serde_yaml::Mapping,
    /// Fields varied, each a list or a range `{from, to, points, scale: linear | log}`.
    #[schemars(with = "Map<String, Value>")]
    axes: serde_yaml::Mapping,
    /// When a run is not made, or not finished.
    #[serde(default)]
    pub stop: StopSpec,
    /// Keep every measured job of every run in the table `jobs`.
    #[serde(default)]
    pub keep_jobs: bool,
    /// What `--quick` changes.
    #[serde(default)]
    quick: Option<QuickDocument>,
}

/// What `--quick` changes: fixed fields, and the values of axes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuickDocument {
    #[schemars(with = "RunSpec")]
    run: serde_yaml::Mapping,
    #[schemars(with = "Map<String, Value>")]
    axes: serde_yaml::Mapping,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeDocument {
    from: f64,
    to: f64,
    points: u64,
    #[serde(default)]
    scale: Scale,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Scale {
    #[default]
    Linear,
    Log,
}

impl SweepSpec {
    /// Reads a study, in its `quick` form if asked for; both forms are checked.
    ///
    /// # Errors
    /// With the place of everything wrong: unknown fields, values of the wrong kind or out of range, empty axes,
    /// values given twice, fields both fixed and varied, and points that are not sound runs.
    pub fn parse(source: &Source, quick: bool) -> Result<Self, SpecError> {
        let document: SweepDocument = source.parse_format(FORMAT)?;
        let whole = Reader::new(source).read(&document, None)?;
        let short = match &document.quick {
            Some(changes) => Some(Reader::new(source).read(&document, Some(changes))?),
            None => None,
        };
        match (quick, short) {
            (false, _) => Ok(whole),
            (true, Some(short)) => Ok(short),
            (true, None) => {
                let help = "add a section `quick: {run: …, axes: …}`, or leave out `--quick`";
                Err(source.error_at("name", "this sweep has no quick form", Some(help.to_owned())))
            }
        }
    }

    /// How many runs.
    pub fn n_points(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    /// The run in which each axis has the value of this position: `[axes]`.
    ///
    /// # Panics
    /// If there are not as many positions as axes, or one is out of range.
    pub fn run(&self, positions: &[usize]) -> RunSpec {
        assert_eq!(positions.len(), self.axes.len(), "one position per axis");
        let mut tree = self.fixed.clone();
        for (axis, position) in self.axes.iter().zip(positions) {
            set(&mut tree, &axis.field, axis.values[*position].clone());
        }
        serde_json::from_value(tree).expect("values were checked one by one when the sweep was read")
    }

    /// Where the document says what a field is at a point: `[axes]` positions; for complaints about the point's run.
    pub fn path_of(&self, field: &str, positions: &[usize]) -> String {
        let axes = self.axes.iter().zip(&self.places).zip(positions);
        for ((axis, place), position) in axes {
            if overlap(&axis.field, field) {
                return if place.listed { format!("{}[{position}]", place.path) } else { place.path.clone() };
            }
        }
        if let Some(path) = self.fixed_at.get(field) {
            return path.clone();
        }
        match self.fixed_at.iter().find(|(other, _)| overlap(other, field)) {
            Some((_, path)) => path.rsplit_once('.').map_or("run", |(group, _)| group).to_owned(),
            None => "run".to_owned(),
        }
    }

    /// The fixed part of every run as canonical text, to tell one study's results from another's.
    pub fn fixed_text(&self) -> String {
        crate::spec::run::canonical(&self.fixed)
    }
}

/// A value as a cell of a table: text plain, counts as `v100=36,k80=4`, windows as `4000:5000`.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(value_text).collect::<Vec<_>>().join(":"),
        Value::Object(map) => {
            let given = map.iter().filter(|(_, value)| !value.is_null());
            given.map(|(key, value)| format!("{key}={}", value_text(value))).collect::<Vec<_>>().join(",")
        }
        Value::Number(number) => match (number.as_f64(), number.is_f64()) {
            (Some(float), true) => format!("{float}"),
            _ => number.to_string(),
        },
        Value::Bool(flag) => flag.to_string(),
    }
}

/// The names of all fields of a run, dotted.
pub fn field_names() -> Vec<String> {
    let Ok(Value::Object(fields)) = serde_json::to_value(RunSpec::default()) else { return Vec::new() };
    let mut names = Vec::new();
    for (name, value) in &fields {
        match value {
            Value::Object(inner) if GROUPS.contains(&name.as_str()) => {
                names.extend(inner.keys().map(|leaf| format!("{name}.{leaf}")));
            }
            _ => names.push(name.clone()),
        }
    }
    names
}

/// The field meant by `name`: dotted, a group, or its last part alone.
fn resolve(name: &str, fields: &[String]) -> Option<String> {
    if GROUPS.contains(&name) || fields.iter().any(|field| field == name) {
        return Some(name.to_owned());
    }
    fields.iter().find(|field| field.rsplit('.').next() == Some(name)).cloned()
}

/// Puts a value into a tree at a dotted field.
fn set(tree: &mut Value, field: &str, value: Value) {
    let mut here = tree;
    for part in field.split('.') {
        if !here.is_object() {
            *here = Value::Object(Map::new());
        }
        here = &mut here[part];
    }
    *here = value;
}

/// Is one of the two the other, or a group that holds it?
fn overlap(one: &str, other: &str) -> bool {
    let holds = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    holds(one, other) || holds(other, one)
}

/// One reading of one document; collects complaints.
struct Reader<'a> {
    source: &'a Source,
    fields: Vec<String>,
    errors: Option<SpecError>,
    /// Fixed field → where it is written.
    fixed_at: BTreeMap<String, String>,
    fixed: Value,
    /// Axes, each with its place, and whether its values have places of their own.
    axes: Vec<(Axis, String, bool)>,
}

impl<'a> Reader<'a> {
    fn new(source: &'a Source) -> Self {
        Self {
            source,
            fields: field_names(),
            errors: None,
            fixed_at: BTreeMap::new(),
            fixed: Value::Object(Map::new()),
            axes: Vec::new(),
        }
    }

    fn complain(&mut self, path: &str, message: impl Into<String>, help: Option<String>) {
        self.complain_of(self.source.error_at(path, message, help));
    }

    fn complain_of(&mut self, error: SpecError) {
        match &mut self.errors {
            None => self.errors = Some(error),
            Some(errors) => errors.diagnostics.extend(error.diagnostics),
        }
    }

    fn read(
        mut self,
        document: &SweepDocument,
        quick: Option<&QuickDocument>,
    ) -> Result<SweepSpec, SpecError> {
        self.check_head(document);
        self.read_fixed(&document.run, "run", "");
        self.read_axes(&document.axes, "axes");
        if let Some(quick) = quick {
            self.read_fixed(&quick.run, "quick.run", "");
            self.replace_axes(&quick.axes);
        }
        self.check_overlaps();
        if let Some(errors) = self.errors.take() {
            return Err(errors);
        }
        let sweep = SweepSpec {
            name: document.name.clone(),
            description: document.description.clone(),
            source: document.source.clone(),
            axes: self.axes.iter().map(|(axis, _, _)| axis.clone()).collect(),
            stop: document.stop,
            keep_jobs: document.keep_jobs,
            fixed: self.fixed.clone(),
            fixed_at: self.fixed_at.clone(),
            places: self
                .axes
                .iter()
                .map(|(_, path, listed)| AxisPlace { path: path.clone(), listed: *listed })
                .collect(),
        };
        self.check_points(&sweep);
        self.errors.map_or(Ok(sweep), Err)
    }

    fn check_head(&mut self, document: &SweepDocument) {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let name = &document.name;
        if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.chars().all(plain) {
            let expected =
                "expected up to 100 letters, digits, `-`, `_` and `.`: results go to a folder of it";
            self.complain("name", format!("`{name}`, {expected}"), None);
        }
        if document.stop.wall.is_some_and(|wall| wall.get() <= 0.0) {
            self.complain("stop.wall", "expected a time above 0", None);
        }
    }

    /// Takes the fields of a `run` section, or of a group inside it.
    fn read_fixed(&mut self, fields: &serde_yaml::Mapping, at: &str, group: &str) {
        for (key, value) in fields {
            let Some(name) = key.as_str() else {
                self.complain(at, "expected names of fields as keys", None);
                continue;
            };
            let path = format!("{at}.{name}");
            let dotted = if group.is_empty() { name.to_owned() } else { format!("{group}.{name}") };
            let field = if group.is_empty() {
                resolve(name, &self.fields)
            } else {
                self.fields.contains(&dotted).then_some(dotted)
            };
            match (field, value) {
                (None, _) => self.unknown_field(&path, name, group),
                (Some(field), serde_yaml::Value::Mapping(inner)) if GROUPS.contains(&field.as_str()) => {
                    self.read_fixed(inner, &path, &field);
                }
                (Some(field), _) if GROUPS.contains(&field.as_str()) => {
                    self.complain(&path, "expected a mapping of fields", None);
                }
                (Some(field), value) => {
                    let Some(value) = self.value(&field, value, &path) else { continue };
                    let again = self.fixed_at.get(&field).filter(|before| before.starts_with(at_root(at)));
                    if let Some(before) = again.cloned() {
                        self.complain(&path, format!("given before, as `{before}`"), None);
                    }
                    self.fixed_at.insert(field.clone(), path);
                    set(&mut self.fixed, &field, value);
                }
            }
        }
    }

    fn unknown_field(&mut self, path: &str, name: &str, group: &str) {
        let inside = format!("{group}.");
        let names: Vec<&str> = match group {
            "" => {
                let leaves = self.fields.iter().filter_map(|field| field.rsplit('.').next());
                leaves.chain(GROUPS).collect()
            }
            _ => self.fields.iter().filter_map(|field| field.strip_prefix(&inside)).collect(),
        };
        let help = nearest::suggestion(name, names.iter().copied());
        let message = format!("unknown field `{name}`, expected one of {}", nearest::name_list(names));
        self.complain_of(self.source.error_at_key(path, message, help));
    }

    /// A value of a field in canonical form; complains if it is not one.
    fn value(&mut self, field: &str, value: &serde_yaml::Value, path: &str) -> Option<Value> {
        let value = match json(value) {
            Ok(value) => value,
            Err(message) => {
                self.complain(path, message, None);
                return None;
            }
        };
        let mut probe = Value::Object(Map::new());
        set(&mut probe, field, value);
        match serde_json::from_value::<RunSpec>(probe) {
            Ok(spec) => {
                let tree = serde_json::to_value(spec).ok()?;
                field.split('.').try_fold(&tree, |here, part| here.get(part)).cloned()
            }
            Err(error) => {
                let complaint = in_plain_words(&error.to_string(), path);
                self.complain(path, complaint.message, complaint.help);
                None
            }
        }
    }

    fn read_axes(&mut self, axes: &serde_yaml::Mapping, at: &str) {
        if axes.is_empty() {
            let help = "a single run is `apportion simulate`";
            self.complain(at, "nothing is varied", Some(help.to_owned()));
        }
        for (key, values) in axes {
            let Some(name) = key.as_str() else {
                self.complain(at, "expected names of fields as keys", None);
                continue;
            };
            let path = format!("{at}.{name}");
            match resolve(name, &self.fields) {
                None => self.unknown_field(&path, name, ""),
                Some(field) => {
                    if let Some((values, placed)) = self.axis_values(&field, values, &path) {
                        self.axes.push((Axis { name: name.to_owned(), field, values }, path, placed));
                    }
                }
            }
        }
    }

    fn replace_axes(&mut self, axes: &serde_yaml::Mapping) {
        for (key, values) in axes {
            let name = key.as_str().unwrap_or_default();
            let path = format!("quick.axes.{name}");
            let field = resolve(name, &self.fields);
            let Some(place) = self.axes.iter().position(|(axis, _, _)| Some(&axis.field) == field.as_ref())
            else {
                let names: Vec<&str> = self.axes.iter().map(|(axis, _, _)| axis.name.as_str()).collect();
                let message =
                    format!("no axis `{name}` to change, expected one of {}", nearest::name_list(names));
                self.complain_of(self.source.error_at_key(&path, message, None));
                continue;
            };
            let field = self.axes[place].0.field.clone();
            if let Some((values, placed)) = self.axis_values(&field, values, &path) {
                self.axes[place].0.values = values;
                (self.axes[place].1, self.axes[place].2) = (path, placed);
            }
        }
    }

    /// The values of an axis, and whether each has a place of its own.
    fn axis_values(
        &mut self,
        field: &str,
        values: &serde_yaml::Value,
        path: &str,
    ) -> Option<(Vec<Value>, bool)> {
        let (listed, placed) = match values {
            serde_yaml::Value::Sequence(items) => (items.clone(), true),
            serde_yaml::Value::Mapping(_) => (self.range(values, path)?, false),
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
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        let mut canonical = Vec::with_capacity(listed.len());
        for (position, value) in listed.iter().enumerate() {
            let place = if placed { format!("{path}[{position}]") } else { path.to_owned() };
            let Some(value) = self.value(field, value, &place) else { continue };
            if let Some(before) = taken.insert(value.to_string(), position) {
                let message =
                    format!("`{}` comes twice, first at position {}", value_text(&value), before + 1);
                self.complain(&place, message, None);
            }
            canonical.push(value);
        }
        Some((canonical, placed))
    }

    /// The values of a range.
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

    fn check_overlaps(&mut self) {
        let axes: Vec<(String, String)> =
            self.axes.iter().map(|(axis, path, _)| (axis.field.clone(), path.clone())).collect();
        for (position, (field, path)) in axes.iter().enumerate() {
            let fixed = self.fixed_at.iter().find(|(other, _)| overlap(field, other));
            if let Some(place) = fixed.map(|(_, place)| place.clone()) {
                let message = format!("both varied, here, and fixed, as `{place}`");
                self.complain(path, message, Some("remove one of the two".to_owned()));
            }
            if let Some((_, other)) = axes[..position].iter().find(|(other, _)| overlap(field, other)) {
                self.complain(path, format!("varied twice, first as `{other}`"), None);
            }
        }
    }

    /// Checks that every point is a sound run; stops at the first that is not.
    fn check_points(&mut self, sweep: &SweepSpec) {
        let product = sweep.axes.iter().try_fold(1_usize, |n, axis| n.checked_mul(axis.values.len()));
        if product.is_none_or(|n| n > POINTS_MAX) {
            self.complain("axes", format!("more than {POINTS_MAX} runs"), None);
            return;
        }
        let mut positions = vec![0; sweep.axes.len()];
        loop {
            let complaints = sweep.run(&positions).complaints();
            if !complaints.is_empty() {
                for complaint in complaints {
                    let FieldComplaint { field, message, help } = complaint;
                    self.complain(&sweep.path_of(&field, &positions), message, help);
                }
                return;
            }
            let Some(axis) =
                (0..positions.len()).rev().find(|axis| positions[*axis] + 1 < sweep.axes[*axis].values.len())
            else {
                return;
            };
            positions[axis] += 1;
            positions[axis + 1..].fill(0);
        }
    }
}

/// The section a path lies in: `run`, or `quick.run`.
fn at_root(path: &str) -> &str {
    if path.starts_with("quick.") { "quick." } else { "run" }
}

/// The number without the noise of its computation: 12 significant digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

/// A whole number stays one, so that fields that count take ranges too.
fn whole_or_float(value: f64) -> serde_yaml::Value {
    #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
    if value.fract() == 0.0 && value.abs() < 9e15 { (value as i64).into() } else { value.into() }
}

fn json(value: &serde_yaml::Value) -> Result<Value, String> {
    use serde_yaml::Value as Yaml;
    Ok(match value {
        Yaml::Null => Value::Null,
        Yaml::Bool(flag) => Value::Bool(*flag),
        Yaml::Number(number) => {
            let whole = number.as_u64().map(Value::from).or_else(|| number.as_i64().map(Value::from));
            match whole.or_else(|| number.as_f64().filter(|x| x.is_finite()).map(Value::from)) {
                Some(value) => value,
                None => return Err(format!("{number}, expected a finite number")),
            }
        }
        Yaml::String(text) => Value::String(text.clone()),
        Yaml::Sequence(items) => Value::Array(items.iter().map(json).collect::<Result<_, _>>()?),
        Yaml::Mapping(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let key = key.as_str().ok_or("expected text as keys")?;
                map.insert(key.to_owned(), json(value)?);
            }
            Value::Object(map)
        }
        Yaml::Tagged(tagged) => return Err(format!("{} is not known here", tagged.tag)),
    })
}

#[cfg(test)]
mod tests;
