//! Reader of a study's document, which checks it and collects complaints.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::document::{QuickDocument, SweepDocument};
use super::fields::{GROUPS, canonical_value, field_names, json, overlap, resolve, set};
use super::log::window_of;
use super::{Axis, AxisPlace, POINTS_MAX, SweepSpec};
use apportion::spec::complaint::in_plain_words;
use apportion::spec::document::{Complaints, Source, SpecError, Unplaced};
use apportion::spec::nearest;
use apportion::spec::run::FieldComplaint;

/// State of reading one document.
pub(super) struct Reader<'a> {
    source: &'a Source,
    fields: Vec<String>,
    complaints: Complaints,
    /// Fixed field → where it is written.
    fixed_at: BTreeMap<String, String>,
    fixed: Value,
    axes: Vec<(Axis, AxisPlace)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a Source) -> Self {
        Self {
            source,
            fields: field_names(),
            complaints: Complaints::default(),
            fixed_at: BTreeMap::new(),
            fixed: Value::Object(Map::new()),
            axes: Vec::new(),
        }
    }

    /// Adds a complaint about the value at a path.
    pub(super) fn complain(&mut self, path: &str, message: impl Into<String>, help: Option<String>) {
        self.complaints.push(|| Unplaced::at(path, message, help));
    }

    /// Adds a complaint about the key of the value at a path.
    pub(super) fn complain_of_key(&mut self, path: &str, message: String, help: Option<String>) {
        self.complaints.push(|| Unplaced::at_key(path, message, help));
    }

    /// The study, in its `quick` form if asked for, together with the axes of the whole form.
    pub(super) fn read(
        mut self,
        document: &SweepDocument,
        quick: Option<(&QuickDocument, &[Axis])>,
    ) -> Result<SweepSpec, SpecError> {
        self.check_head(document);
        self.read_fixed(&document.run, "run", "");
        self.read_axes(&document.axes, "axes");
        if let Some((quick, _)) = quick {
            self.read_fixed(&quick.run, "quick.run", "");
            self.replace_axes(&quick.axes);
        }
        self.check_overlaps();
        let axes: Vec<Axis> = self.axes.iter().map(|(axis, _)| axis.clone()).collect();
        let skip = self.skip_rules(&document.skip, quick.map_or(&axes[..], |(_, whole)| whole));
        // A short form has other runs than the published points.
        let published = if quick.is_none() { self.published(&document.published, &axes) } else { Vec::new() };
        self.source.all_at(std::mem::take(&mut self.complaints))?;
        let sweep = SweepSpec {
            name: document.name.clone(),
            description: document.description.clone(),
            source: document.source.clone(),
            axes,
            stop: document.stop,
            keep_jobs: document.keep_jobs,
            keep_allocations: document.keep_allocations,
            log: document.log.clone(),
            folder: self.source.folder(),
            skip,
            published,
            fixed: self.fixed.clone(),
            fixed_at: self.fixed_at.clone(),
            places: self.axes.iter().map(|(_, place)| place.clone()).collect(),
        };
        self.check_log(document, &sweep);
        self.check_points(&sweep);
        self.source.all_at(self.complaints)?;
        Ok(sweep)
    }

    /// Checks the log that a study runs on, and that windows are named only where there is one.
    fn check_log(&mut self, document: &SweepDocument, sweep: &SweepSpec) {
        let Some(log) = &document.log else {
            return;
        };
        if let Err(message) = log.known_form() {
            self.complain("log.form", message, None);
        }
        if let Err(message) = log.known_zone() {
            self.complain("log.zone", message, None);
        }
        if let Some(axis) = sweep.axes.iter().find(|axis| axis.field == "throughputs") {
            let message = "a study on a log has one matrix of throughputs, of whose job types its jobs are";
            self.complain(&format!("axes.{}", axis.name), message, None);
        }
        let traces = sweep.axes.iter().zip(&sweep.places).filter(|(axis, _)| axis.field == "workload.trace");
        for (axis, place) in traces {
            for (at, value) in axis.values.iter().enumerate() {
                if let Some(Err(message)) = value.as_str().and_then(window_of) {
                    self.complain(&format!("{}[{at}]", place.path), message, None);
                }
            }
        }
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
        if document.stop.decision.is_some_and(|time| time.get() <= 0.0) {
            self.complain("stop.decision", "expected a time above 0", None);
        }
        let (rounds, doublings) = (document.stop.rounds, document.stop.doublings);
        if rounds == 0 {
            self.complain("stop.rounds", "0 rounds, expected at least 1", None);
        }
        if !(2..=20).contains(&doublings) {
            self.complain("stop.doublings", format!("{doublings} doublings, expected 2 to 20"), None);
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
        self.complain_of_key(path, message, help);
    }

    /// A value of a field in canonical form; complains if it is invalid.
    pub(super) fn value(&mut self, field: &str, value: &serde_yaml::Value, path: &str) -> Option<Value> {
        let value = match json(value) {
            Ok(value) => value,
            Err(message) => {
                self.complain(path, message, None);
                return None;
            }
        };
        match canonical_value(field, value) {
            Ok(value) => value,
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
                    let read = self.axis((name, &field), values, &path);
                    self.axes.extend(read);
                }
            }
        }
    }

    fn replace_axes(&mut self, axes: &serde_yaml::Mapping) {
        for (key, values) in axes {
            let name = key.as_str().unwrap_or_default();
            let path = format!("quick.axes.{name}");
            let field = resolve(name, &self.fields);
            let Some(position) = self.axes.iter().position(|(axis, _)| Some(&axis.field) == field.as_ref())
            else {
                let axes: Vec<Axis> = self.axes.iter().map(|(axis, _)| axis.clone()).collect();
                self.unknown_axis(name, &axes, &path);
                continue;
            };
            let Axis { name, field, .. } = self.axes[position].0.clone();
            if let Some(read) = self.axis((&name, &field), values, &path) {
                self.axes[position] = read;
            }
        }
    }

    /// Complains about a name that is not that of an axis.
    pub(super) fn unknown_axis(&mut self, name: &str, axes: &[Axis], path: &str) {
        let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
        let help = nearest::suggestion(name, names.iter().copied());
        let message = format!("no axis `{name}`, expected one of {}", nearest::name_list(names));
        self.complain_of_key(path, message, help);
    }

    fn check_overlaps(&mut self) {
        let axes: Vec<(String, String)> =
            self.axes.iter().map(|(axis, place)| (axis.field.clone(), place.path.clone())).collect();
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

    /// Checks that every point is a valid run; stops at the first that is not.
    fn check_points(&mut self, sweep: &SweepSpec) {
        let product = sweep.axes.iter().try_fold(1_usize, |n, axis| n.checked_mul(axis.values.len()));
        if product.is_none_or(|n| n > POINTS_MAX) {
            self.complain("axes", format!("more than {POINTS_MAX} runs"), None);
            return;
        }
        let mut positions = vec![0; sweep.axes.len()];
        let mut is_anything_left = false;
        loop {
            let value = |(axis, position): (&Axis, &usize)| axis.values[*position].clone();
            let values: Vec<Value> = sweep.axes.iter().zip(&positions).map(value).collect();
            let is_skipped = sweep.is_skipped(&values);
            is_anything_left |= !is_skipped;
            let complaints = if is_skipped { Vec::new() } else { sweep.run(&positions).complaints() };
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
                break;
            };
            positions[axis] += 1;
            positions[axis + 1..].fill(0);
        }
        if !is_anything_left {
            self.complain("skip", "every run is left out", None);
        }
    }
}

/// Section of a path: `run`, or `quick.run`.
fn at_root(path: &str) -> &str {
    if path.starts_with("quick.") { "quick." } else { "run" }
}
