//! Slurm's lists of trackable resources: `cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1`.

/// The accelerators of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accelerators {
    /// How many.
    pub(crate) n: u32,
    /// Does the list have them at all?
    pub(crate) is_listed: bool,
    /// Their types with how many of each, where the list has them.
    pub(crate) types: Vec<(String, u32)>,
    /// Nodes, where the list has them.
    pub(crate) n_nodes: Option<u32>,
}

/// What a list says; the entry that is not understood otherwise.
///
/// A list with types and no total is that of the sum of its types. Parts of accelerators (`gres/shard`, `gres/mps`) are in
/// units that the list does not tell, so they are not understood unless whole accelerators are there, too.
pub(crate) fn accelerators(text: &str) -> Result<Accelerators, String> {
    let mut found = Accelerators::default();
    let (mut total, mut parts) = (None, None);
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (name, value) = entry.split_once('=').ok_or_else(|| entry.to_owned())?;
        let count = || value.parse::<u32>().map_err(|_| entry.to_owned());
        match name {
            "node" => found.n_nodes = Some(count()?),
            "gres/gpu" => total = Some(count()?),
            _ => match name.strip_prefix("gres/gpu:") {
                Some(of) if !of.is_empty() => found.types.push((of.to_owned(), count()?)),
                Some(_) => return Err(entry.to_owned()),
                None if ["gres/shard", "gres/mps"].contains(&name.split(':').next().unwrap_or(name)) => {
                    parts = parts.or(Some(entry));
                }
                None => {}
            },
        }
    }
    found.is_listed = total.is_some() || !found.types.is_empty();
    let of_types = found.types.iter().map(|(_, n)| *n).sum::<u32>();
    found.n = total.unwrap_or(of_types);
    found.types.retain(|(_, n)| *n > 0);
    match parts {
        Some(entry) if found.n == 0 => Err(entry.to_owned()),
        _ => Ok(found),
    }
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
            ("gres/gpu:v100=2,gres/gpu:a100=1", of(3, &[("v100", 2), ("a100", 1)], None)),
            ("cpu=4,mem=1G", of(0, &[], None)),
            ("", of(0, &[], None)),
            ("gres/gpu=1,gres/shard=4", of(1, &[], None)),
            ("gres/shard=4", Err("gres/shard=4".to_owned())),
            ("gres/gpu=two", Err("gres/gpu=two".to_owned())),
            ("cpu", Err("cpu".to_owned())),
        ] {
            assert_eq!(accelerators(text), expected, "{text}");
        }
    }
}
