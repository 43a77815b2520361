//! Names of a run's fields, and trees of their values.

use serde_json::{Map, Value};

use apportion::spec::run::RunSpec;

use super::value_text;

/// Groups of fields inside a run.
pub(super) const GROUPS: [&str; 6] = ["workload", "mechanism", "solver", "faults", "profiling", "live"];

/// A run as a tree with every group, including groups that have only defaults.
pub(super) fn whole(spec: &RunSpec) -> Option<Value> {
    let mut tree = serde_json::to_value(spec).ok()?;
    tree["live"] = serde_json::to_value(spec.live).ok()?;
    Some(tree)
}

/// Names of all fields of a run, dotted.
pub fn field_names() -> Vec<String> {
    let Some(Value::Object(fields)) = whole(&RunSpec::default()) else { return Vec::new() };
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

/// The field with a name: dotted, a group, or its last part alone.
pub(super) fn resolve(name: &str, fields: &[String]) -> Option<String> {
    if GROUPS.contains(&name) || fields.iter().any(|field| field == name) {
        return Some(name.to_owned());
    }
    fields.iter().find(|field| field.rsplit('.').next() == Some(name)).cloned()
}

/// Puts a value into a tree at a dotted field.
pub(super) fn set(tree: &mut Value, field: &str, value: Value) {
    let mut here = tree;
    for part in field.split('.') {
        if !here.is_object() {
            *here = Value::Object(Map::new());
        }
        here = &mut here[part];
    }
    *here = value;
}

/// A value of a field in canonical form.
///
/// # Errors
/// If it is not a value of the field, with the message of serde.
pub fn canonical_value(field: &str, value: Value) -> Result<Option<Value>, serde_json::Error> {
    let mut probe = Value::Object(Map::new());
    set(&mut probe, field, value);
    let spec: RunSpec = serde_json::from_value(probe)?;
    let find = |tree: &Value| field.split('.').try_fold(tree, |here, part| here.get(part)).cloned();
    Ok(whole(&spec).as_ref().and_then(find))
}

/// Whether two trees of fields, as text, make the same run. A field written with its default is equal to one left out.
pub fn are_alike(one: &str, other: &str) -> bool {
    let run = |text: &str| serde_json::from_str::<RunSpec>(text).ok();
    one == other || run(one).zip(run(other)).is_some_and(|(one, other)| one == other)
}

/// Fields that differ in two trees of fields, as text: ``` `jobs` is 5 there, 6 now ```, where `places` are `there` and
/// `now`. The first few are listed, then the number of others; none where a tree is not that of a run.
pub fn unlike_fields(one: &str, other: &str, places: [&str; 2]) -> Option<String> {
    const N_SHOWN: usize = 4;
    let tree = |text: &str| serde_json::from_str::<RunSpec>(text).ok().as_ref().and_then(whole);
    let (one, other) = (tree(one)?, tree(other)?);
    let find = |tree: &Value, field: &str| {
        field.split('.').try_fold(tree, |here, part| here.get(part)).cloned().unwrap_or_default()
    };
    let shown = |value: &Value| {
        let text = shortened(&value_text(value));
        if text.is_empty() { "not given".to_owned() } else { text }
    };
    let said = |field: &String| {
        let (before, after) = (find(&one, field), find(&other, field));
        let name = field.rsplit('.').next().unwrap_or(field);
        let [there, now] = places;
        (before != after).then(|| format!("`{name}` is {} {there}, {} {now}", shown(&before), shown(&after)))
    };
    let mut differ: Vec<String> = field_names().iter().filter_map(said).collect();
    let n_more = differ.len().saturating_sub(N_SHOWN);
    differ.truncate(N_SHOWN);
    if n_more > 0 {
        differ.push(format!("{n_more} more"));
    }
    (!differ.is_empty()).then(|| differ.join("; "))
}

/// A value in a message, cut if it is long.
fn shortened(text: &str) -> String {
    const LENGTH_MAX: usize = 60;
    match text.char_indices().nth(LENGTH_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// Whether one of the two is the other, or a group that holds it.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    let holds = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    holds(one, other) || holds(other, one)
}

/// A value of the document as a value of a run's tree.
pub(super) fn json(value: &serde_yaml::Value) -> Result<Value, String> {
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
