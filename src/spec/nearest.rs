//! The known name closest to a misspelt one: the one place where "did you mean" is decided.

/// The name in `known` that `name` was probably meant to be: the one with the fewest edits, which may be at most a third of its
/// length (at least one); of equals, the first. A change of case counts as half an edit: a name that differs in case alone is
/// always offered.
///
/// ```
/// use apportion::spec::nearest::did_you_mean;
/// let known = ["max_min_fairness", "fifo", "isolated"];
/// assert_eq!(did_you_mean("max_min_farness", known), Some("max_min_fairness"));
/// assert_eq!(did_you_mean("FIFO", known), Some("fifo"));
/// assert_eq!(did_you_mean("themis", known), None);
/// ```
pub fn did_you_mean<'a, K>(name: &str, known: K) -> Option<&'a str>
where
    K: IntoIterator<Item = &'a str>,
{
    let name: Vec<char> = name.chars().take(NAME_LENGTH_MAX + 1).flat_map(char::to_lowercase).collect();
    if name.is_empty() || name.len() > NAME_LENGTH_MAX {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        let letters: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
        let limit = name.len().max(letters.len()).div_ceil(3);
        let edits = edits(&name, &letters);
        if edits <= limit && edits < letters.len() && best.is_none_or(|(fewest, _)| edits < fewest) {
            best = Some((edits, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The longest name that is compared: the table of edits grows with the product of two lengths.
const NAME_LENGTH_MAX: usize = 200;

/// The text `` did you mean `x`? ``; none if no name is near.
pub fn suggestion<'a, K>(name: &str, known: K) -> Option<String>
where
    K: IntoIterator<Item = &'a str>,
{
    did_you_mean(name, known).map(|near| format!("did you mean `{near}`?"))
}

/// A list of names for people: `` `a`, `b`, `c` ``; the rest of a long list is counted.
pub fn name_list<'a, K>(names: K) -> String
where
    K: IntoIterator<Item = &'a str>,
{
    let names: Vec<&str> = names.into_iter().collect();
    let shown: Vec<String> = names.iter().take(LISTED_MAX).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(LISTED_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

const LISTED_MAX: usize = 12;

/// The number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn edits(from: &[char], to: &[char]) -> usize {
    let width = to.len() + 1;
    let mut before: Vec<usize> = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1; width];
        for (j, b) in to.iter().enumerate() {
            let replaced = last[j] + usize::from(a != b);
            row[j + 1] = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(from: &str, to: &str) -> usize {
        edits(&from.chars().collect::<Vec<_>>(), &to.chars().collect::<Vec<_>>())
    }

    #[test]
    fn edits_are_counted() {
        for (from, to, n) in [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("maxmni", "maxmin", 1)]
        {
            assert_eq!(count(from, to), n, "{from} {to}");
            assert_eq!(count(to, from), n, "{to} {from}");
        }
    }

    #[test]
    fn a_name_far_from_all_gets_no_suggestion() {
        assert_eq!(did_you_mean("x", ["fifo"]), None);
        assert_eq!(did_you_mean("", ["a"]), None);
        assert_eq!(did_you_mean(&"a".repeat(100_000), ["a"]), None);
    }

    #[test]
    fn of_equally_near_names_the_first_is_offered() {
        assert_eq!(did_you_mean("v10", ["v100", "v10x"]), Some("v100"));
    }
}
