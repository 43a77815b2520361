//! Names of rows and columns in LP, MPS and CBF text.

use std::collections::BTreeSet;

/// Longest name that is written: CPLEX's limit.
const LENGTH_MAX: usize = 255;

/// Names that are keywords of LP text, or that the texts here use themselves.
const RESERVED: &[&str] = &[
    "bin", "binaries", "binary", "bound", "bounds", "end", "free", "gen", "general", "generals", "inf",
    "infinity", "int", "integer", "integers", "max", "maximise", "maximize", "min", "minimise", "minimize",
    "nan", "obj", "rhs", "s.t.", "sec", "semi", "semis", "sin", "sos", "sos1", "sos2", "st", "st.",
    "subject", "such", "that", "to",
];

/// One valid name for each position, all different even where case does not count.
pub(super) fn unique_names(count: usize, prefix: &str, name: impl Fn(usize) -> String) -> Vec<String> {
    let mut taken = BTreeSet::new();
    (0..count)
        .map(|position| {
            let base = sanitized(&name(position), prefix);
            let mut unique = base.clone();
            let mut copies = 1;
            while !taken.insert(unique.to_ascii_lowercase()) {
                copies += 1;
                let suffix = format!("_{copies}");
                unique = format!("{}{suffix}", &base[..base.len().min(LENGTH_MAX - suffix.len())]);
            }
            unique
        })
        .collect()
}

fn sanitized(name: &str, prefix: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '.' { c } else { '_' };
    let mut plain_name = String::new();
    for c in name.trim().chars().map(plain) {
        if !(c == '_' && plain_name.ends_with('_')) {
            plain_name.push(c);
        }
    }
    let name = plain_name.trim_end_matches('_');
    let mut letters = name.chars();
    let first = letters.next();
    // `e5` would read as part of a number
    let like_number =
        matches!(first, Some('e' | 'E')) && letters.next().is_none_or(|c| !c.is_ascii_alphabetic());
    let starts_well = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let reserved = RESERVED.contains(&name.to_ascii_lowercase().as_str());
    let mut name =
        if starts_well && !like_number && !reserved { name.to_owned() } else { format!("{prefix}_{name}") };
    name.truncate(LENGTH_MAX);
    name
}
