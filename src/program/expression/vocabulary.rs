//! The names an objective may use, with what is known of each before there are numbers.

use super::dimension::Dimension;
use super::sign::Sign;

/// Names the language itself defines; no column may take them.
pub const RESERVED: [&str; 16] = [
    "throughput",
    "throughput_on",
    "time_on",
    "type",
    "log",
    "sqrt",
    "inv",
    "min",
    "max",
    "min_over_jobs",
    "max_over_jobs",
    "sum_over_jobs",
    "lexicographic_min_over_jobs",
    "min_over_worker_types",
    "max_over_worker_types",
    "sum_over_worker_types",
];

/// What a datum belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Each job has its own.
    Job,
    /// Each worker type has its own.
    WorkerType,
}

/// A datum: constant while a decision is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Datum {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub subject: Subject,
    /// Its physical dimension.
    pub dimension: Dimension,
    /// What its values are known to be; checked when numbers come.
    pub sign: Sign,
    /// May a value be +∞ (no limit)?
    pub may_be_infinite: bool,
}

/// All data names, each at a fixed slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Vocabulary {
    data: Vec<Datum>,
    n_built_in: usize,
}

impl Default for Vocabulary {
    /// The built-in data: `weight`, `scale_factor`, `steps_remaining`, `elapsed`, `isolated_elapsed`,
    /// `slo_remaining`, `equal_share_throughput`, `isolated_throughput` per job; `price(type)` and
    /// `capacity(type)` per worker type.
    fn default() -> Self {
        let job = |name: &str, dimension, sign| Datum {
            name: name.to_owned(),
            subject: Subject::Job,
            dimension,
            sign,
            may_be_infinite: name == "slo_remaining",
        };
        let worker_type =
            |name, dimension, sign| Datum { subject: Subject::WorkerType, ..job(name, dimension, sign) };
        let data = vec![
            job("weight", Dimension::NONE, Sign::POSITIVE),
            job("scale_factor", Dimension::WORKERS, Sign::POSITIVE),
            job("steps_remaining", Dimension::STEPS, Sign::POSITIVE),
            job("elapsed", Dimension::SECONDS, Sign::NON_NEGATIVE),
            job("isolated_elapsed", Dimension::SECONDS, Sign::NON_NEGATIVE),
            job("slo_remaining", Dimension::SECONDS, Sign::POSITIVE),
            job("equal_share_throughput", Dimension::STEPS_PER_SECOND, Sign::POSITIVE),
            job("isolated_throughput", Dimension::STEPS_PER_SECOND, Sign::POSITIVE),
            worker_type("price", Dimension::PRICE, Sign::POSITIVE),
            worker_type("capacity", Dimension::WORKERS, Sign::NON_NEGATIVE),
        ];
        Self { n_built_in: data.len(), data }
    }
}

impl Vocabulary {
    /// Adds a per-job column that the caller supplies; its slot, or nothing if the name is taken or is not a
    /// name (letters, digits and `_`, not starting with a digit).
    pub fn add_column(&mut self, name: &str, dimension: Dimension, sign: Sign) -> Option<usize> {
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let is_name = starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name || self.find(name).is_some() || RESERVED.contains(&name) {
            return None;
        }
        let name = name.to_owned();
        self.data.push(Datum { name, subject: Subject::Job, dimension, sign, may_be_infinite: false });
        Some(self.data.len() - 1)
    }

    /// The slot of a datum.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.data.iter().position(|datum| datum.name == name)
    }

    /// The datum at a slot.
    pub fn datum(&self, slot: usize) -> &Datum {
        &self.data[slot]
    }

    /// How many data there are.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// No data?
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Slots of the columns that were added.
    pub fn added(&self) -> std::ops::Range<usize> {
        self.n_built_in..self.data.len()
    }

    /// Every name there is: the language's and the data's.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        RESERVED.into_iter().chain(self.data.iter().map(|datum| datum.name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_may_not_take_a_name_of_the_language() {
        let mut vocabulary = Vocabulary::default();
        for name in ["throughput", "weight", "2nd", "a-b", "", "log"] {
            assert_eq!(vocabulary.add_column(name, Dimension::NONE, Sign::ANY), None, "{name}");
        }
        assert!(vocabulary.add_column("energy", Dimension::NONE, Sign::ANY).is_some());
    }
}
