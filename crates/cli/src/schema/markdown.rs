//! The page about all documents, written from their schemas.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::documents::Document;

const INTRODUCTION: &str = "\
# Formats

<!-- Written by `make formats` from the types that read and write these documents; a test says when it is out of date. -->

Every document is YAML or JSON, unless it says otherwise here. A field that is not known is refused, with the nearest known
one. `apportion schema NAME` prints the JSON Schema of a document, for editors; `apportion schema` lists the names.
Throughputs are in steps/s, times in seconds, prices in $/h of one worker.

A cluster is no document of its own: it is a field of a snapshot and of a sweep.

What `--format json` prints is one object, which begins with `format`, such as `apportion/simulation-v1`, and `version`, the
program's. `apportion schema KIND` prints the schema of each, by the kind in its `format`; no field is renamed or removed within a version of
the program. What a running scheduler answers over HTTP has the same fields, without these two, and its lists are lists. Metrics and columns of
jobs in seconds end in `_s`; their names without it, such as `average_jct` and `jct`, are read, too. Events are lines of a log, whose times
are called as they were when the format began.

";

/// The page.
pub(super) fn page(documents: &[Document]) -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("| document | what it is |\n|---|---|\n");
    for Document { name, summary, .. } in documents {
        let _ = writeln!(text, "| [{name}](#{}) | {} |", slug(name), cell(summary));
    }
    for document in documents {
        if let Some(schema) = (document.schema)() {
            text.push_str(&Chapter::of(document, &schema));
        }
    }
    text
}

/// The anchor by which a heading is linked.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema[key].as_array().map_or(&[], Vec::as_slice)
}

/// The alternatives of a schema, of either kind.
fn alternatives(schema: &Value) -> &[Value] {
    if schema["oneOf"].is_array() { list(schema, "oneOf") } else { list(schema, "anyOf") }
}

fn is_null(schema: &Value) -> bool {
    schema["type"] == "null"
}

/// The chapter of one document: a section for it, and one for each part of it.
struct Chapter<'a> {
    text: String,
    document: &'a str,
    /// Whether the program only writes the document, and reads it nowhere.
    is_written: bool,
    root: &'a Value,
    /// Definitions that were mentioned, with their headings; each is described once.
    headings: BTreeMap<String, String>,
    pending: VecDeque<String>,
}

impl<'a> Chapter<'a> {
    fn of(document: &'a Document, schema: &'a Value) -> String {
        let mut chapter = Self {
            text: format!("\n## {}\n", document.name),
            document: document.name,
            is_written: document.example.is_none(),
            root: schema,
            headings: BTreeMap::new(),
            pending: VecDeque::new(),
        };
        chapter.paragraph(schema["description"].as_str().unwrap_or(document.summary));
        chapter.paragraph(document.notes);
        if let Some((language, example)) = document.example {
            let _ = write!(chapter.text, "\n```{language}\n{}\n```\n", example.trim_end());
        }
        chapter.fields(schema, "");
        if schema["items"].is_object() {
            let items = chapter.words(&schema["items"], "entries");
            let _ = write!(chapter.text, "\nA list of {items}.\n");
        }
        for one in list(schema, "anyOf") {
            chapter.whole(one);
        }
        chapter.conditions(schema);
        while let Some(name) = chapter.pending.pop_front() {
            chapter.definition(&name);
        }
        chapter.text
    }

    /// Describes one of several forms of the document.
    fn whole(&mut self, form: &Value) {
        let form = self.resolved(form);
        let title = form["title"].as_str().unwrap_or_default();
        let title = if title.is_empty() { self.name_of(form) } else { title.to_owned() };
        let _ = write!(self.text, "\n### {}: {title}\n", self.document);
        self.paragraph(form["description"].as_str().unwrap_or_default());
        self.fields(form, "");
        self.forms(form, "");
        self.conditions(form);
    }

    /// The name of a definition, found by identity.
    fn name_of(&self, definition: &Value) -> String {
        let all = self.root["$defs"].as_object().into_iter().flatten();
        let found = all.into_iter().find(|(_, other)| std::ptr::eq(*other, definition));
        found.map_or_else(String::new, |(name, _)| name.to_lowercase())
    }

    /// Writes the section of a definition.
    fn definition(&mut self, name: &str) {
        let heading = self.headings[name].clone();
        let _ = write!(self.text, "\n### {}: {heading}\n", self.document);
        let definition = &self.root["$defs"][name];
        self.paragraph(definition["description"].as_str().unwrap_or_default());
        let path = heading.split('`').nth(1).unwrap_or_default().to_owned();
        if definition["x-brief"] == true {
            self.mention_all(definition, &path);
            return;
        }
        self.fields(definition, &path);
        self.forms(definition, &path);
    }

    fn paragraph(&mut self, text: &str) {
        if !text.is_empty() {
            let _ = write!(self.text, "\n{}\n", text.trim());
        }
    }

    /// The schema that a reference points to; any other schema as it is.
    fn resolved<'s>(&self, schema: &'s Value) -> &'s Value
    where
        'a: 's,
    {
        let place = schema["$ref"].as_str().and_then(|place| self.root.pointer(place.strip_prefix('#')?));
        place.unwrap_or(schema)
    }

    /// The value under `key`, here or in the schema that is referred to.
    fn said<'s>(&self, schema: &'s Value, key: &str) -> Option<&'s Value>
    where
        'a: 's,
    {
        let inner = || {
            let next = self.resolved(schema);
            (!std::ptr::eq(next, schema)).then(|| self.said(next, key)).flatten()
        };
        schema.get(key).or_else(inner)
    }

    /// The unit of the numbers of a schema.
    fn unit<'s>(&self, schema: &'s Value) -> Option<&'s str>
    where
        'a: 's,
    {
        if let Some(unit) = self.said(schema, "x-unit") {
            return unit.as_str();
        }
        let schema = self.resolved(schema);
        let inside =
            [&schema["items"], &schema["additionalProperties"]].into_iter().chain(list(schema, "anyOf"));
        inside.filter(|inner| inner.is_object()).find_map(|inner| self.unit(inner))
    }

    /// Writes a table of the fields of a mapping.
    fn fields(&mut self, schema: &Value, path: &str) {
        let Some(properties) = schema["properties"].as_object() else { return };
        let needed = list(schema, "required");
        self.text.push_str("\n| field | type | unit | default | meaning |\n|---|---|---|---|---|\n");
        for (name, field) in properties {
            if field["x-also"].is_string() || (field["const"].is_string() && name == "event") {
                continue;
            }
            let inside = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let mut words = self.words(field, &inside);
            if self.is_written
                && (list(field, "type").contains(&json!("null")) || list(field, "anyOf").iter().any(is_null))
            {
                words.push_str(" or null");
            }
            let default = if needed.iter().any(|other| other == name.as_str()) {
                if self.is_written { "always there" } else { "needed" }.to_owned()
            } else {
                default_words(self.said(field, "default"))
            };
            let unit = self.unit(field).unwrap_or_default();
            let meaning = self.said(field, "description").and_then(Value::as_str).unwrap_or_default();
            let _ = writeln!(self.text, "| `{name}` | {words} | {unit} | {default} | {} |", cell(meaning));
        }
    }

    /// Writes the alternatives of a definition: values with their meanings, or mappings with their fields.
    fn forms(&mut self, schema: &Value, path: &str) {
        let mut is_first = true;
        for one in alternatives(schema) {
            let meaning = cell(one["description"].as_str().unwrap_or_default());
            let meaning = if meaning.is_empty() { meaning } else { format!(": {meaning}") };
            let tag = one["properties"]["event"]["const"].as_str();
            let values = one.get("const").into_iter().chain(list(one, "enum"));
            let values: Vec<String> = values.map(|value| format!("`{}`", plain(value))).collect();
            let head = match tag {
                Some(tag) => format!("`event: {tag}`"),
                None if values.is_empty() && one["properties"].is_object() => {
                    let names: Vec<&str> = one["properties"]
                        .as_object()
                        .into_iter()
                        .flatten()
                        .map(|(name, _)| name.as_str())
                        .collect();
                    format!("a mapping of `{}`", names.join("`, `"))
                }
                None if values.is_empty() => self.words(one, path),
                None => values.join(", "),
            };
            let gap = if is_first || self.text.ends_with("|\n") { "\n" } else { "" };
            is_first = false;
            let _ = writeln!(self.text, "{gap}- {head}{meaning}");
            if one["properties"].is_object() {
                // A variant with a type of its own for its fields refers to it.
                self.fields(self.resolved(one), path);
            }
        }
    }

    /// Writes the rules by which the form of a field depends on the value of another field.
    fn conditions(&mut self, schema: &Value) {
        for rule in list(schema, "allOf") {
            let conditions = rule["if"]["properties"].as_object().into_iter().flatten();
            let said: Vec<String> =
                conditions.map(|(name, value)| format!("`{name}` is `{}`", plain(&value["const"]))).collect();
            for (name, field) in rule["then"]["properties"].as_object().into_iter().flatten() {
                let heading = format!("`{name}` where {}", said.join(" and "));
                let values = list(&field["additionalProperties"], "anyOf");
                for one in std::iter::once(field).chain(list(field, "anyOf")).chain(values) {
                    if let Some(definition) = definition_name(one) {
                        self.mention(definition, &heading);
                    }
                }
            }
        }
    }

    /// Notes that a definition was mentioned, to be described under this heading.
    fn mention(&mut self, name: &str, heading: &str) {
        if !self.headings.contains_key(name) {
            let n_alike = self.headings.values().filter(|other| other.starts_with(heading)).count();
            let heading =
                if n_alike == 0 { heading.to_owned() } else { format!("{heading}, {}", n_alike + 1) };
            self.headings.insert(name.to_owned(), heading);
            self.pending.push_back(name.to_owned());
        }
    }

    /// Notes all definitions that a schema refers to.
    fn mention_all(&mut self, schema: &Value, path: &str) {
        if let Some(name) = definition_name(schema) {
            self.mention(name, &format!("`{path}`, {}", name.to_lowercase()));
        }
        let inside: Vec<&Value> = match schema {
            Value::Object(map) => map.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        for inner in inside {
            self.mention_all(inner, path);
        }
    }

    /// The type of a value in words, with links to the sections of its parts.
    fn words(&mut self, schema: &Value, path: &str) -> String {
        if let Some(name) = definition_name(schema) {
            if name == "RunSpec" {
                return "[fields of a run](#sweep-run)".to_owned();
            }
            let definition = &self.root["$defs"][name];
            let is_described = |one: &Value| one["properties"].is_object() || one.get("const").is_some();
            if is_described(definition)
                || definition["x-brief"] == true
                || alternatives(definition).iter().any(is_described)
            {
                self.mention(name, &format!("`{path}`"));
                let heading = self.headings[name].clone();
                let target = slug(&format!("{}: {heading}", self.document));
                return format!("[{}](#{target})", heading.replace('`', ""));
            }
        }
        let schema = self.resolved(schema);
        if schema["$ref"].is_string() {
            return self.words(schema, path);
        }
        if let Some(value) = schema.get("const") {
            return format!("`{}`", plain(value));
        }
        if let Some(values) = schema["enum"].as_array() {
            let values: Vec<String> = values.iter().map(|value| format!("`{}`", plain(value))).collect();
            return values.join(", ");
        }
        let alternatives: Vec<Value> =
            alternatives(schema).iter().filter(|one| !is_null(one)).cloned().collect();
        if !alternatives.is_empty() {
            let words: Vec<String> = alternatives.iter().map(|one| self.words(one, path)).collect();
            return words.join(" or ");
        }
        let kinds = schema["type"].as_array().map_or(std::slice::from_ref(&schema["type"]), Vec::as_slice);
        let kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
        let kinds: Vec<String> = kinds.map(|kind| self.kind(kind, schema, path)).collect();
        if kinds.is_empty() { "anything".to_owned() } else { kinds.join(" or ") }
    }

    /// One of the types of a schema in words.
    fn kind(&mut self, kind: &str, schema: &Value, path: &str) -> String {
        let or_null = |chapter: &mut Self, inner: &Value| {
            let null = list(inner, "type").iter().any(|kind| kind == "null");
            format!("{}{}", chapter.words(inner, path), if null { " or null" } else { "" })
        };
        match kind {
            "integer" => "whole number".to_owned(),
            "string" => "text".to_owned(),
            "boolean" => "`true` or `false`".to_owned(),
            "array" if schema["prefixItems"].is_array() => {
                let items: Vec<String> =
                    list(schema, "prefixItems").iter().map(|item| self.words(item, path)).collect();
                format!("[{}]", items.join(", "))
            }
            "array" => {
                let items = or_null(self, &schema["items"]);
                match (schema["minItems"].as_u64(), schema["maxItems"].as_u64()) {
                    (Some(least), Some(most)) if least == most => format!("list of {most} × {items}"),
                    _ if ["number", "whole number", "text"].contains(&&*items) => format!("list of {items}s"),
                    _ => format!("list of {items}"),
                }
            }
            "object" if schema["additionalProperties"].is_object() => {
                format!("mapping of names to {}", or_null(self, &schema["additionalProperties"]))
            }
            "object" => match schema["properties"].as_object() {
                Some(fields) => {
                    let names: Vec<String> = fields.keys().map(|name| format!("`{name}`")).collect();
                    format!("mapping of {}", names.join(", "))
                }
                None => "mapping".to_owned(),
            },
            other => other.to_owned(),
        }
    }
}

/// The name `Job` in `{"$ref": "#/$defs/Job"}`.
fn definition_name(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/").filter(|name| !name.contains('/'))
}

/// Text as it is, another value as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A default in a cell: the default of a mapping is in its fields.
fn default_words(default: Option<&Value>) -> String {
    match default {
        None | Some(Value::Null | Value::Object(_)) => String::new(),
        Some(Value::Array(items)) if items.is_empty() => "none".to_owned(),
        Some(Value::String(text)) if text.is_empty() => String::new(),
        Some(value) => format!("`{}`", plain(value)),
    }
}
