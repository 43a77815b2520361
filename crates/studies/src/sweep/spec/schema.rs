//! JSON Schemas of the sections of a study that are read field by field: each field of a run, under any of its names.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::auto::AutoSpec;
use super::axis::{AUTO_FIELD, RangeDocument};
use super::fields::{GROUPS, field_names};
use apportion::spec::run::RunSpec;

/// Fields of a run with a value each.
pub(super) struct FixedFields;

/// Fields of a run with several values each.
pub(super) struct VariedFields;

/// Fields of a run with the values at which a point is left out.
pub(super) struct SkippedPoints;

/// A name of a field, with the reference of the field's schema.
struct Named {
    name: String,
    field: String,
    reference: String,
}

impl Named {
    /// All names of all fields: dotted, the last part alone, and the groups.
    fn all(generator: &mut SchemaGenerator) -> Vec<Self> {
        let run = reference(generator.subschema_for::<RunSpec>().as_value());
        let property = |of: &str, name: &str| format!("{of}/properties/{name}");
        let mut all = Vec::new();
        for group in GROUPS {
            all.push(Self { name: group.into(), field: group.into(), reference: property(&run, group) });
        }
        for field in field_names() {
            let Some((group, leaf)) = field.split_once('.') else {
                all.push(Self { name: field.clone(), reference: property(&run, &field), field });
                continue;
            };
            let group = resolved(generator, &property(&run, group)).map_or_else(String::new, reference);
            for name in [leaf, field.as_str()] {
                all.push(Self {
                    name: name.to_owned(),
                    field: field.clone(),
                    reference: property(&group, leaf),
                });
            }
        }
        all
    }
}

/// Reference `#/$defs/RunSpec` of `{"$ref": "#/$defs/RunSpec"}`.
fn reference(schema: &Value) -> String {
    schema["$ref"].as_str().unwrap_or_default().to_owned()
}

/// Schema with a reference `#/$defs/…`.
fn resolved<'a>(generator: &'a SchemaGenerator, reference: &str) -> Option<&'a Value> {
    let place = reference.strip_prefix("#/$defs/")?;
    let (name, rest) = place.find('/').map_or((place, ""), |at| place.split_at(at));
    generator.definitions().get(name)?.pointer(rest)
}

/// Whether a value of the schema may be a number.
fn takes_numbers(generator: &SchemaGenerator, schema: &Value) -> bool {
    let number = |kind: &Value| matches!(kind.as_str(), Some("number" | "integer"));
    let listed = |key: &str| schema[key].as_array().into_iter().flatten();
    number(&schema["type"])
        || listed("type").any(number)
        || listed("anyOf").any(|one| takes_numbers(generator, one))
        || schema["$ref"]
            .as_str()
            .and_then(|place| resolved(generator, place))
            .is_some_and(|schema| takes_numbers(generator, schema))
}

/// Schema of a mapping of fields; `value` makes each name's schema from the field's.
fn mapping(
    generator: &mut SchemaGenerator,
    description: &str,
    value: impl Fn(&mut SchemaGenerator, &Named) -> Value,
) -> Schema {
    let mut properties = Map::new();
    for named in Named::all(generator) {
        let schema = value(generator, &named);
        properties.insert(named.name, schema);
    }
    json_schema!({
        "description": description, "type": "object", "properties": properties, "additionalProperties": false
    })
}

impl JsonSchema for FixedFields {
    fn schema_name() -> Cow<'static, str> {
        "FixedFields".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let description = "Fields of a run: everything that determines the result of one simulation. Fields inside the \
             groups may be named without their group wherever a field is named, because no two share a name: `rate`, \
             `workload.rate`, or `rate` inside `workload`.";
        mapping(generator, description, |_, named| {
            let mut schema = json!({"$ref": named.reference});
            if named.field.contains('.') {
                schema["x-also"] = named.field.as_str().into();
            }
            schema
        })
    }
}

impl JsonSchema for VariedFields {
    fn schema_name() -> Cow<'static, str> {
        "VariedFields".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let description = "Fields of a run, by the same names, each with the values that it takes: a list of them; for \
             numbers also a range; for the arrival rate also `auto` or `{auto: …}`, which finds the rates while the sweep \
             runs.";
        let mut schema = mapping(generator, description, |generator, named| {
            let mut values =
                vec![json!({"type": "array", "items": {"$ref": named.reference}, "minItems": 1})];
            if takes_numbers(generator, &json!({"$ref": named.reference})) {
                values.push(generator.subschema_for::<RangeDocument>().to_value());
            }
            if named.field == AUTO_FIELD {
                let options = generator.subschema_for::<AutoSpec>();
                values.push(json!({"const": "auto"}));
                values.push(json!({
                    "type": "object", "properties": {"auto": options}, "required": ["auto"], "additionalProperties": false
                }));
            }
            json!({"anyOf": values})
        });
        schema.insert("x-brief".to_owned(), true.into());
        schema
    }
}

impl JsonSchema for SkippedPoints {
    fn schema_name() -> Cow<'static, str> {
        "SkippedPoints".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let description = "Axes of the study, each with a value, a list of values, or a range of numbers, \
             `{from: …, to: …}`, either end of which may be left out.";
        let mut schema = mapping(generator, description, |_, named| {
            json!({"anyOf": [
                {"$ref": named.reference},
                {"type": "array", "items": {"$ref": named.reference}},
                {"type": "object", "properties": {"from": {"type": "number"}, "to": {"type": "number"}},
                 "minProperties": 1, "additionalProperties": false},
            ]})
        });
        schema.insert("minProperties".to_owned(), 1.into());
        schema.insert("x-brief".to_owned(), true.into());
        schema
    }
}
