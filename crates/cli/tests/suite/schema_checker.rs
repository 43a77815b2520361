//! A checker of values against a JSON Schema, by the keywords that schemas of this program have. An unknown keyword ends the test:
//! nothing is passed over.

use serde_json::Value;

/// The only pattern that names of fields have.
const DIGITS: &str = r"^\d+$";

/// Checks a value. The error is the part that does not fit the schema.
pub(crate) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    Checker { root: schema }.check(schema, value, "the document")
}

struct Checker<'a> {
    root: &'a Value,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let Some(keywords) = schema.as_object() else {
            return if schema == true { Ok(()) } else { Err(format!("{at} is not expected")) };
        };
        for (keyword, rule) in keywords {
            let fine = match keyword.as_str() {
                "$ref" => {
                    let place = rule.as_str().and_then(|place| self.root.pointer(&place[1..]));
                    let schema = place.unwrap_or_else(|| panic!("{rule} refers to nothing"));
                    self.check(schema, value, at)?;
                    true
                }
                "const" => rule == value,
                "enum" => list(rule).contains(value),
                "type" => match rule {
                    Value::Array(kinds) => kinds.iter().any(|kind| is_of(value, kind)),
                    kind => is_of(value, kind),
                },
                "anyOf" => self.n_fitting(rule, value) > 0,
                "oneOf" => self.n_fitting(rule, value) == 1,
                "allOf" => self.n_fitting(rule, value) == list(rule).len(),
                "if" => {
                    self.check(rule, value, at).is_err() || self.check(&schema["then"], value, at).is_ok()
                }
                "minimum" => value.as_f64().is_none_or(|number| Some(number) >= rule.as_f64()),
                "maximum" => value.as_f64().is_none_or(|number| Some(number) <= rule.as_f64()),
                "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= count(rule)),
                "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= count(rule)),
                "minProperties" => value.as_object().is_none_or(|fields| fields.len() as u64 >= count(rule)),
                "maxProperties" => value.as_object().is_none_or(|fields| fields.len() as u64 <= count(rule)),
                "required" => value.as_object().is_none_or(|fields| {
                    list(rule).iter().all(|name| fields.contains_key(name.as_str().expect("a name")))
                }),
                "properties" | "patternProperties" | "additionalProperties" | "items" | "prefixItems" => {
                    let patterns = schema["patternProperties"].as_object().into_iter().flatten();
                    patterns.for_each(|(pattern, _)| {
                        assert_eq!(pattern, DIGITS, "teach the checker this pattern");
                    });
                    self.check_parts(keyword, schema, value, at)?;
                    true
                }
                "$schema" | "$defs" | "title" | "description" | "default" | "format" | "then" => true,
                note if note.starts_with("x-") => true,
                other => panic!("teach the checker `{other}`"),
            };
            if !fine {
                return Err(format!("{at} is {value}, expected {keyword} {rule}"));
            }
        }
        Ok(())
    }

    /// Checks the parts of a mapping or list that a keyword is about.
    fn check_parts(&self, keyword: &str, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        for (name, inner) in value.as_object().into_iter().flatten() {
            let numbered = schema["patternProperties"].get(DIGITS).filter(|_| is_number(name));
            let named = schema["properties"].get(name).or(numbered);
            match (keyword, named) {
                ("properties" | "patternProperties", Some(rule)) => {
                    self.check(rule, inner, &format!("{at}.{name}"))?;
                }
                ("additionalProperties", None) => {
                    self.check(&schema[keyword], inner, &format!("{at}.{name}"))?;
                }
                _ => {}
            }
        }
        let first = schema["prefixItems"].as_array().map_or(0, Vec::len);
        for (position, inner) in value.as_array().into_iter().flatten().enumerate() {
            match keyword {
                "prefixItems" if position < first => {
                    self.check(&schema[keyword][position], inner, &format!("{at}[{position}]"))?;
                }
                "items" if position >= first => {
                    self.check(&schema[keyword], inner, &format!("{at}[{position}]"))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn n_fitting(&self, schemas: &Value, value: &Value) -> usize {
        list(schemas).iter().filter(|schema| self.check(schema, value, "").is_ok()).count()
    }
}

fn is_number(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

fn list(rule: &Value) -> &[Value] {
    rule.as_array().expect("a list")
}

fn count(rule: &Value) -> u64 {
    rule.as_u64().expect("a count")
}

fn is_of(value: &Value, kind: &Value) -> bool {
    match kind.as_str().expect("the name of a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("`{other}` is no type"),
    }
}
