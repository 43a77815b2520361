//! Slurm's lists of trackable resources: `cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1`.

use std::collections::BTreeMap;

use apportion::spec::trace::field::Field;

use crate::row::TOO_MANY_WORKERS;

/// Accelerators of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accelerators {
    /// Number of accelerators.
    pub(crate) n: u32,
    /// Whether the list mentions accelerators.
    pub(crate) is_listed: bool,
    /// Types with their numbers, where the list has them.
    pub(crate) types: Vec<(String, u32)>,
    /// Number of nodes, where the list has it.
    pub(crate) n_nodes: Option<u32>,
}

/// Accelerators of a list; else a message about the entry that is not understood.
///
/// A list with types and no total has the sum of its types. Parts of accelerators (`gres/shard`, `gres/mps`) are in units
/// that the list does not define, so they are not understood unless whole accelerators are listed, too.
pub(crate) fn accelerators(text: &str) -> Result<Accelerators, String> {
    let mut found = Accelerators::default();
    let (mut total, mut parts) = (None, None);
    let mut types: BTreeMap<String, u32> = BTreeMap::new();
    let too_many = || format!("`{}`, which is {TOO_MANY_WORKERS}", Field::shortened(text));
    let mut before: Option<&str> = None;
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        // A text after a comma inside a number is shown with the text before it.
        let is_number = entry.bytes().all(|byte| byte.is_ascii_digit());
        let whole = before.replace(entry).filter(|_| is_number).map(|before| format!("{before},{entry}"));
        let not_understood = || {
            let shown = Field::shortened(whole.as_deref().unwrap_or(entry));
            format!("`{shown}`, expected entries such as cpu=8, gres/gpu=2 and gres/gpu:a100=2")
        };
        let (name, value) = entry.split_once('=').ok_or_else(not_understood)?;
        let count = || value.parse::<u32>().map_err(|_| not_understood());
        let (kind, of) = name.split_once(':').map_or((name, None), |(kind, of)| (kind, Some(of)));
        match (kind.to_ascii_lowercase().as_str(), of) {
            ("node", None) => found.n_nodes = Some(count()?),
            ("gres/gpu", None) => {
                let n = count()?;
                if total.is_some_and(|total| total != n) {
                    return Err(contradictory(text));
                }
                total = Some(n);
            }
            ("gres/gpu", Some(of)) => {
                let (of, n) = (of.replace(char::is_control, " ").trim().to_owned(), count()?);
                if of.is_empty() {
                    return Err(not_understood());
                }
                if types.insert(of, n).is_some() {
                    return Err(contradictory(text));
                }
            }
            ("gres/shard" | "gres/mps", _) => parts = parts.or(Some(entry)),
            _ => {}
        }
    }
    let of_types = types.values().try_fold(0, |sum: u32, n| sum.checked_add(*n));
    // The total may be larger: it includes types that the cluster does not list.
    if total.zip(of_types).is_some_and(|(total, of_types)| total < of_types) {
        return Err(contradictory(text));
    }
    found.n = total.or(of_types).ok_or_else(too_many)?;
    found.is_listed = total.is_some() || !types.is_empty();
    found.types = types.into_iter().filter(|(_, n)| *n > 0).collect();
    match parts {
        Some(entry) if found.n == 0 => Err(format!(
            "`{}`, which is parts of accelerators, and how large a part the log does not say",
            Field::shortened(entry)
        )),
        _ => Ok(found),
    }
}

fn contradictory(text: &str) -> String {
    format!("`{}`, in which numbers of accelerators contradict one another", Field::shortened(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accelerators_are_those_of_the_total_or_of_all_types() {
        let of = |n, types: &[(&str, u32)], n_nodes| {
            let types = types.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
            Ok(Accelerators { n, is_listed: n > 0, types, n_nodes })
        };
        for (text, expected) in [
            ("billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1", of(4, &[("a100", 4)], Some(1))),
            ("cpu=1,gres/gpu:v100=2,node=2", of(2, &[("v100", 2)], Some(2))),
            ("gres/gpu:v100=2,gres/gpu:a100=1", of(3, &[("a100", 1), ("v100", 2)], None)),
            ("cpu=4,mem=1G", of(0, &[], None)),
            ("", of(0, &[], None)),
            ("gres/gpu=1,gres/shard=4", of(1, &[], None)),
            ("gres/GPU=2,gres/gpumem=5", of(2, &[], None)),
            ("gres/shard=4", Err("`gres/shard=4`, which is parts")),
            ("gres/gpu=two", Err("`gres/gpu=two`, expected entries")),
            ("cpu", Err("`cpu`, expected entries")),
            ("gres/gpu=1,000", Err("`gres/gpu=1,000`, expected entries")),
            ("gres/gpu:\u{1}=1", Err("`gres/gpu:\\u{1}=1`, expected entries")),
            ("gres/gpu=4,gres/gpu=4", of(4, &[], None)),
            ("gres/gpu=4,gres/gpu:a100=2", of(4, &[("a100", 2)], None)),
            ("gres/gpu=2,gres/gpu:a100=4", Err("`gres/gpu=2,gres/gpu:a100=4`, in which numbers")),
            ("gres/gpu=4,gres/gpu=8", Err("`gres/gpu=4,gres/gpu=8`, in which numbers")),
            ("gres/gpu:a=4,gres/gpu:a=4", Err("`gres/gpu:a=4,gres/gpu:a=4`, in which numbers")),
            (
                "gres/gpu:a=4294967295,gres/gpu:b=1",
                Err("`gres/gpu:a=4294967295,gres/gpu:b=1`, which is more"),
            ),
        ] {
            match (accelerators(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
                (Err(said), Err(expected)) => assert!(said.starts_with(expected), "{text}: {said}"),
                (found, expected) => panic!("{text}: {found:?}, expected {expected:?}"),
            }
        }
    }
}
