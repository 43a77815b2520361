//! Named numbers of a policy: those that a program's document declares, and those of a rule or of a plug-in. Where a policy is
//! named, as in `completion_rate:exponent=0.75`, each may get another value than its document's.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::document::{PolicyDocument, PolicyKind};
use super::kind_fields::KindFields;
use crate::spec::complaint::in_plain_words;
use crate::spec::document::{Source, SpecError};
use crate::spec::entries::Entries;
use crate::spec::nearest::{name_list, suggestion};
use crate::spec::run::{canonical, sha256};
use crate::spec::snapshot::NUMBER_MAX;

/// A named number of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in expressions.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit in the form of expressions; none for a plain number.
    pub unit: Option<String>,
    /// The least and the largest value that it may have.
    pub range: [f64; 2],
}

/// A named number of a program, as its document declares it: the number, or a mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterDocument {
    declared: MappedParameter,
    is_mapped: bool,
}

/// A parameter of a program: its default alone, a number, or a mapping with its unit and range.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct MappedParameter {
    /// Its value if the policy is named without one.
    default: f64,
    /// Its unit, such as `$/h`; without one it is a plain number.
    unit: Option<String>,
    /// The least value that it may have.
    from: Option<f64>,
    /// The largest value that it may have.
    to: Option<f64>,
}

impl<'de> Deserialize<'de> for ParameterDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrMapping;
        impl<'de> Visitor<'de> for NumberOrMapping {
            type Value = ParameterDocument;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a mapping of `default`, `unit`, `from` and `to`")
            }
            fn visit_f64<E: Error>(self, default: f64) -> Result<Self::Value, E> {
                let declared = MappedParameter { default, ..MappedParameter::default() };
                Ok(ParameterDocument { declared, is_mapped: false })
            }
            fn visit_u64<E: Error>(self, default: u64) -> Result<Self::Value, E> {
                self.visit_f64(default as f64)
            }
            fn visit_i64<E: Error>(self, default: i64) -> Result<Self::Value, E> {
                self.visit_f64(default as f64)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                let declared = MappedParameter::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ParameterDocument { declared, is_mapped: true })
            }
        }
        deserializer.deserialize_any(NumberOrMapping)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ParameterDocument {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Parameter".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mapped = generator.subschema_for::<MappedParameter>();
        schemars::json_schema!({
            "description": "A named number of a program: its default, or a mapping with its unit and range.",
            "anyOf": [{ "type": "number" }, mapped],
        })
    }
}

/// The parameters that the document of a program declares, in its order.
///
/// # Errors
/// At the place of a parameter that is not a finite number, or is out of its own range.
pub(super) fn declared(source: &Source) -> Result<Vec<Parameter>, SpecError> {
    #[derive(Deserialize)]
    struct Written {
        #[serde(default)]
        parameters: Entries<ParameterDocument>,
    }
    let written: Written = source.parse()?;
    let checked = |(name, ParameterDocument { declared, is_mapped }): (&str, &ParameterDocument)| {
        let MappedParameter { default, unit, from, to } = declared;
        let range = [from.unwrap_or(-NUMBER_MAX), to.unwrap_or(NUMBER_MAX)];
        let (name, value, unit) = (name.to_owned(), *default, unit.clone());
        let parameter = Parameter { name, value, unit, range };
        let field = if *is_mapped { ".default" } else { "" };
        let path = format!("parameters.{}{field}", parameter.name);
        match parameter.complaint(value) {
            Some(complaint) => Err(source.error_at(&path, complaint, None)),
            None => Ok(parameter),
        }
    };
    written.parameters.iter().map(checked).collect()
}

impl Parameter {
    /// The error message about a value that is not within the range; none if it is within.
    fn complaint(&self, value: f64) -> Option<String> {
        let ([from, to], name) = (self.range, &self.name);
        let expected = match (from > -NUMBER_MAX, to < NUMBER_MAX) {
            (false, false) => format!("a number from {from:e} to {to:e}"),
            (true, false) => format!("a number, {from} at least"),
            (false, true) => format!("a number, {to} at most"),
            (true, true) => format!("a number from {from} to {to}"),
        };
        let is_fine = (from..=to).contains(&value) && value.abs() <= NUMBER_MAX;
        (!is_fine).then(|| format!("`{name}` is {value}, expected {expected}"))
    }
}

/// A reference to a policy: its name or path, and parameters whose values differ from its document's.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyReference<'a> {
    /// The name of a policy, or the path of its file.
    pub policy: &'a str,
    /// The settings after it: `exponent=0.75`, several with `:` between them.
    settings: Option<&'a str>,
}

impl<'a> PolicyReference<'a> {
    /// Splits the text of a reference. Parameters begin with the first `:NAME=` after the last separator of folders; a text without
    /// that is a name or a path.
    pub fn new(text: &'a str) -> Self {
        let start = text.rfind(std::path::is_separator).map_or(0, |at| at + 1);
        let begins = |(at, _): &(usize, &str)| *at > 0 && name_of(&text[at + 1..]).is_some();
        match text[start..].match_indices(':').map(|(at, colon)| (start + at, colon)).find(begins) {
            Some((at, _)) => Self { policy: &text[..at], settings: Some(&text[at + 1..]) },
            None => Self { policy: text, settings: None },
        }
    }

    /// The reference to another policy with the same settings.
    pub fn at(&self, policy: &str) -> String {
        self.settings.map_or_else(|| policy.to_owned(), |settings| format!("{policy}:{settings}"))
    }

    /// Whether it has parameters.
    pub fn has_parameters(&self) -> bool {
        self.settings.is_some()
    }

    fn parameters(&self) -> Result<BTreeMap<String, Value>, SpecError> {
        let mut parameters = BTreeMap::new();
        for setting in self.settings.iter().flat_map(|settings| settings.split(':')) {
            let complain = |message: String| {
                let help = Some("as in `completion_rate:exponent=0.75`".to_owned());
                SpecError::about(self.at(self.policy), message, help)
            };
            let Some((name, value)) = name_of(setting).zip(setting.split_once('=')) else {
                return Err(complain(format!("`{setting}` is no parameter, expected NAME=VALUE")));
            };
            let value = serde_yaml::from_str(value.1);
            let value = value.map_err(|_| complain(format!("`{setting}` has no value that can be read")))?;
            if parameters.insert(name.to_owned(), value).is_some() {
                return Err(complain(format!("`{name}` is given twice")));
            }
        }
        Ok(parameters)
    }
}

/// The name at the start of `NAME=VALUE`.
fn name_of(setting: &str) -> Option<&str> {
    let (name, _) = setting.split_once('=')?;
    let is_name = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    is_name.then_some(name)
}

/// A value in the form in which it is written after the name of a policy.
fn text_of(value: &Value) -> String {
    match (value.as_f64(), value) {
        (Some(number), _) => number.to_string(),
        (None, Value::String(text)) => text.clone(),
        _ => value.to_string(),
    }
}

impl PolicyDocument {
    /// The policy with the parameters of a reference in place of its document's. They become a part of its name, in the order of
    /// their names.
    ///
    /// # Errors
    /// If it has no such parameter, or a program's is out of its range; parameters of a rule and of a plug-in are checked by these.
    pub(crate) fn with_parameters(mut self, reference: &PolicyReference<'_>) -> Result<Self, SpecError> {
        let parameters = reference.parameters()?;
        let about = |message, help| SpecError::about(reference.at(reference.policy), message, help);
        for (name, value) in &parameters {
            let known: Vec<&mut Parameter> = match &mut self.kind {
                PolicyKind::Program(program) => program.parameters.iter_mut().collect(),
                PolicyKind::Heuristic(heuristic) if heuristic.rule.is_parametric() => continue,
                PolicyKind::Plugin(_) => continue,
                PolicyKind::Heuristic(_) => Vec::new(),
            };
            if known.is_empty() {
                return Err(about(format!("policy `{}` has no parameters", self.name), None));
            }
            let names: Vec<String> = known.iter().map(|parameter| parameter.name.clone()).collect();
            let names = || names.iter().map(String::as_str);
            let Some(parameter) = known.into_iter().find(|parameter| parameter.name == *name) else {
                let message = format!("unknown parameter `{name}`, expected one of {}", name_list(names()));
                return Err(about(message, suggestion(name, names())));
            };
            let Some(number) = value.as_f64() else {
                let message = format!("`{name}` is `{}`, expected a number", text_of(value));
                return Err(about(message, None));
            };
            if let Some(complaint) = parameter.complaint(number) {
                return Err(about(complaint, None));
            }
            parameter.value = number;
        }
        for (name, value) in &parameters {
            self.name = format!("{}:{name}={}", self.name, text_of(value));
        }
        self.set = parameters;
        Ok(self)
    }

    /// SHA-256 of the text, and of the parameters that differ from it.
    pub(crate) fn digest(&self) -> String {
        let text = sha256(self.source.text.as_bytes());
        match serde_json::to_value(&self.set) {
            Ok(set) if !self.set.is_empty() => sha256(format!("{text}{}", canonical(&set)).as_bytes()),
            _ => text,
        }
    }

    /// The parameters of a heuristic in the type of its rule; absent ones have `T`'s defaults.
    ///
    /// # Errors
    /// If one is unknown or of another type than `T` needs.
    pub fn parameters<T: DeserializeOwned + Default>(&self) -> Result<T, SpecError> {
        #[derive(Deserialize)]
        #[serde(bound = "T: DeserializeOwned + Default")]
        struct Written<T> {
            #[serde(default)]
            parameters: T,
        }
        let written = self.source.parse::<Written<T>>()?.parameters;
        match &self.kind {
            PolicyKind::Heuristic(heuristic) => self.with_set(written, heuristic.parameters.clone()),
            PolicyKind::Program(_) | PolicyKind::Plugin(_) => Ok(written),
        }
    }

    /// The fields in addition to those that documents of every kind have, in the type of a plug-in.
    ///
    /// # Errors
    /// With line and column, if one is missing, unknown to `T` or of another type.
    pub fn own_fields<T: DeserializeOwned>(&self) -> Result<T, SpecError> {
        let written = self.source.parse::<KindFields<T>>()?.0;
        if self.set.is_empty() {
            Ok(written)
        } else {
            self.with_set(written, self.source.parse::<KindFields<_>>()?.0)
        }
    }

    /// The fields as they are read, with the values that were set where the policy was named in place of the document's.
    fn with_set<T: DeserializeOwned>(
        &self,
        mut read: T,
        mut fields: Map<String, Value>,
    ) -> Result<T, SpecError> {
        for (name, value) in &self.set {
            fields.insert(name.clone(), value.clone());
            read = serde_json::from_value(Value::Object(fields.clone())).map_err(|error| {
                let complaint = in_plain_words(&error.to_string(), name);
                SpecError::about(self.name.as_str(), complaint.message, complaint.help)
            })?;
        }
        Ok(read)
    }

    /// An error about a field: at its key, or about the reference to the policy if the field was set there.
    pub fn error_at_field(&self, field: &str, message: impl Into<String>, help: Option<String>) -> SpecError {
        if self.set.contains_key(field) {
            return SpecError::about(self.name.as_str(), message, help);
        }
        self.source.error_at_key(field, message, help)
    }
}
