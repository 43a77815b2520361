//! Patterns of names, in which `*` stands for any text.

use std::collections::BTreeMap;

/// A pattern of names, which ignores case.
#[derive(Clone, Debug)]
struct Pattern {
    /// Text before the first `*`.
    first: String,
    /// Text after each `*`.
    rest: Vec<String>,
}

/// Whether a name matches a pattern, with case ignored.
pub fn matches(pattern: &str, name: &str) -> bool {
    Pattern::new(pattern).matches(&name.to_lowercase())
}

impl Pattern {
    fn new(pattern: &str) -> Self {
        let pattern = pattern.to_lowercase();
        let mut pieces = pattern.split('*').map(str::to_owned);
        Self { first: pieces.next().unwrap_or_default(), rest: pieces.collect() }
    }

    /// Whether a name in lower case matches.
    fn matches(&self, name: &str) -> bool {
        let Some((last, between)) = self.rest.split_last() else { return name == self.first };
        let Some(mut rest) = name.strip_prefix(self.first.as_str()) else { return false };
        for piece in between {
            match rest.find(piece.as_str()) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(last.as_str())
    }
}

/// Entries of a list, each with patterns of N texts, searched for the first entry that given texts match. Entries with a
/// pattern without `*` are looked up by it.
#[derive(Debug)]
pub(crate) struct FirstMatch<const N: usize> {
    patterns: Vec<[Option<Pattern>; N]>,
    /// Positions of entries by a pattern without `*`, for each of the N texts.
    by_text: [BTreeMap<String, Vec<usize>>; N],
    /// Positions of all other entries.
    others: Vec<usize>,
}

impl<const N: usize> FirstMatch<N> {
    pub(crate) fn new<'p>(entries: impl IntoIterator<Item = [Option<&'p str>; N]>) -> Self {
        let by_text = std::array::from_fn(|_| BTreeMap::new());
        let mut all = Self { patterns: Vec::new(), by_text, others: Vec::new() };
        for (at, patterns) in entries.into_iter().enumerate() {
            let patterns = patterns.map(|pattern| pattern.map(Pattern::new));
            let plain = patterns.iter().enumerate().filter_map(|(text, pattern)| {
                let only = pattern.as_ref().filter(|pattern| pattern.rest.is_empty())?;
                Some((text, only.first.clone()))
            });
            // The entry is looked up by the plain pattern that the fewest entries have so far.
            let n_others = |(text, name): &(usize, String)| all.by_text[*text].get(name).map_or(0, Vec::len);
            match plain.min_by_key(n_others) {
                Some((text, name)) => all.by_text[text].entry(name).or_default().push(at),
                None => all.others.push(at),
            }
            all.patterns.push(patterns);
        }
        all
    }

    /// The first entry with `most` others before it in a list that is searched entry by entry; none if no list is so long.
    pub(crate) fn beyond(&self, most: usize) -> Option<usize> {
        let lists = self.by_text.iter().flat_map(BTreeMap::values).chain([&self.others]);
        lists.filter_map(|list| list.get(most).copied()).min()
    }

    /// The position of the first entry that matches the texts: the entry's n-th pattern, if it has one, matches the n-th text,
    /// and `holds` is true of its position.
    pub(crate) fn find(&self, texts: [Option<&str>; N], holds: impl Fn(usize) -> bool) -> Option<usize> {
        let texts = texts.map(|text| text.map(str::to_lowercase));
        let is_match = |at: &usize| {
            let mut pairs = self.patterns[*at].iter().zip(&texts);
            let is_like = |(pattern, text): (&Option<Pattern>, &Option<String>)| {
                pattern.as_ref().is_none_or(|pattern| text.as_ref().is_some_and(|text| pattern.matches(text)))
            };
            pairs.all(is_like) && holds(*at)
        };
        let named = self.by_text.iter().zip(&texts).filter_map(|(lists, text)| lists.get(text.as_ref()?));
        named.chain([&self.others]).filter_map(|list| list.iter().copied().find(is_match)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("bert", "BERT", true),
            ("bert", "bert-large", false),
            ("bert*", "bert-large", true),
            ("*bert*", "my bert job", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("ab*ba", "aba", false),
            ("", "", true),
            ("", "x", false),
            ("**", "x", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn the_first_entry_is_found_as_by_comparing_with_each() {
        let patterns = [
            [Some("b*"), Some("x")],
            [Some("Bert"), None],
            [None, Some("X")],
            [Some("bert"), Some("*")],
            [Some("*"), None],
        ];
        let entries = FirstMatch::new(patterns);
        for name in [None, Some("bert"), Some("BERT"), Some("best"), Some("other")] {
            for user in [None, Some("x"), Some("y")] {
                for least in 0..patterns.len() {
                    let is_match = |[of_name, of_user]: &[Option<&str>; 2]| {
                        let is_like = |pattern: Option<&str>, text: Option<&str>| {
                            pattern.is_none_or(|pattern| text.is_some_and(|text| matches(pattern, text)))
                        };
                        is_like(*of_name, name) && is_like(*of_user, user)
                    };
                    let slow = (least..patterns.len()).find(|at| is_match(&patterns[*at]));
                    assert_eq!(
                        entries.find([name, user], |at| at >= least),
                        slow,
                        "{name:?} {user:?} {least}"
                    );
                }
            }
        }
        assert_eq!((entries.beyond(0), entries.beyond(1), entries.beyond(2)), (Some(0), Some(2), None));
    }
}
