//! The vocabulary: a table of all atoms, the named quantities of which expressions are made.
//!
//! An atom is a *variable*, linear in the allocation, or a *datum*, constant while a decision is made. Its entry says all
//! that is known before there are numbers; parser, checks, curvature, evaluation and programs read it there. The numbers
//! themselves are an [`Instance`](crate::program::Instance)'s: those of variables follow from the allocation by their
//! [`Measure`], those of data are gathered where the instance is made.

use std::borrow::Cow;
use std::fmt;

use super::curvature::Curvature;
use super::dimension::Dimension;
use super::functions::{Function, Reduction};
use super::sign::Sign;

/// The word for the worker type at hand, where a worker type is expected.
pub(super) const TYPE: &str = "type";

/// The name of the datum that tells an owner's jobs from others.
pub(super) const OWNED_BY: &str = "owned_by";

/// The entry of `owned_by`, which takes an owner's name in parentheses.
pub(super) static OWNED_BY_ATOM: Atom = Atom::of_job(
    OWNED_BY,
    Dimension::NONE,
    Sign::NON_NEGATIVE,
    Source::Derived { among_others: false },
    "1 for a job of this owner, or of an owner below it; 0 for any other",
);

/// The subject of an atom, or of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Jobs: each has its own value.
    Job,
    /// Worker types: each has its own value.
    WorkerType,
}

/// A variable of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The effective throughput of a job.
    Throughput,
    /// The part of a job's effective throughput that comes from one worker type.
    ThroughputOn,
    /// The share of time that a job has on one worker type.
    TimeOn,
    /// The workers of one type that a job holds, by its share of time there; half of them where it shares them.
    WorkersOn,
}

/// A quantity that a job gets from its time on a worker type; a variable adds it up over one worker type or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Throughput on the worker type by share of time, steps/s.
    Throughput,
    /// Share of time.
    Time,
    /// Workers held by share of time; half of them where they are shared.
    Workers,
}

impl Measure {
    /// The one of three values that is of this measure.
    #[inline]
    pub fn of<T>(self, throughput: T, time: T, workers: T) -> T {
        match self {
            Self::Throughput => throughput,
            Self::Time => time,
            Self::Workers => workers,
        }
    }
}

/// The value of a datum that is not stated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Absent {
    /// This value. A datum whose default is +∞ may be +∞.
    Is(f64),
    /// No value: the decision is refused.
    Refused,
}

/// The source of an atom's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// The allocation.
    Allocation,
    /// The problem, which states the values; for those it leaves out, the default.
    Stated(Absent),
    /// The problem, which states the values (0 where it does not), or the policy, which keeps account of them from
    /// decision to decision; they depend on which other jobs there are.
    Accumulated,
    /// Throughputs, scale factors and workers, from which the values follow.
    Derived {
        /// Whether they depend on which other jobs there are.
        among_others: bool,
    },
}

/// An entry of the vocabulary: a named quantity and its properties.
#[derive(Clone, Debug, PartialEq)]
pub struct Atom {
    /// Name in expressions.
    pub name: Cow<'static, str>,
    /// Description for people, in a few words.
    pub meaning: &'static str,
    /// The subject that has a value each: jobs or worker types.
    pub subject: Subject,
    /// Whether it is of one worker type, which stands in parentheses behind the name.
    pub by_type: bool,
    /// Its physical dimension.
    pub dimension: Dimension,
    /// The signs that its values may have; values of data are checked when an objective is bound.
    pub sign: Sign,
    /// The source of its values.
    pub source: Source,
}

/// The entries of the variables, in the order of [`Variable::ALL`].
static VARIABLES: [Atom; Variable::ALL.len()] = [
    Atom::of_job(
        "throughput",
        Dimension::STEPS_PER_SECOND,
        Sign::NON_NEGATIVE,
        Source::Allocation,
        "effective throughput",
    ),
    Atom::of_job_on_type(
        "throughput_on",
        Dimension::STEPS_PER_SECOND,
        Sign::NON_NEGATIVE,
        Source::Allocation,
        "the part of its effective throughput that comes from a worker type",
    ),
    Atom::of_job_on_type(
        "time_on",
        Dimension::NONE,
        Sign::NON_NEGATIVE,
        Source::Allocation,
        "its share of time on a worker type",
    ),
    Atom::of_job_on_type(
        "workers_on",
        Dimension::WORKERS,
        Sign::NON_NEGATIVE,
        Source::Allocation,
        "workers of a type that it holds, by its share of time there; half of those that it shares",
    ),
];

/// The entries of the built-in data, which policies read without declaring them.
static DATA: &[Atom] = &[
    Atom::of_job(
        "weight",
        Dimension::NONE,
        Sign::POSITIVE,
        Source::Stated(Absent::Is(1.0)),
        "its weight among the jobs",
    ),
    Atom::of_job(
        "scale_factor",
        Dimension::WORKERS,
        Sign::POSITIVE,
        Source::Stated(Absent::Is(1.0)),
        "workers that it needs at once",
    ),
    Atom::of_job(
        "steps_remaining",
        Dimension::STEPS,
        Sign::POSITIVE,
        Source::Stated(Absent::Refused),
        "steps until it is done",
    ),
    Atom::of_job(
        "elapsed",
        Dimension::SECONDS,
        Sign::NON_NEGATIVE,
        Source::Stated(Absent::Is(0.0)),
        "time since its arrival",
    ),
    Atom::of_job(
        "isolated_elapsed",
        Dimension::SECONDS,
        Sign::NON_NEGATIVE,
        Source::Accumulated,
        "time that its steps so far would have taken at `isolated_throughput`",
    ),
    Atom::of_job(
        "slo_remaining",
        Dimension::SECONDS,
        Sign::POSITIVE,
        Source::Stated(Absent::Is(f64::INFINITY)),
        "time until its deadline; a deadline that has passed counts as none, and a droppable constraint on it as dropped",
    ),
    Atom::of_job(
        "equal_share_throughput",
        Dimension::STEPS_PER_SECOND,
        Sign::POSITIVE,
        Source::Derived { among_others: false },
        "its throughput with an equal share of all workers",
    ),
    Atom::of_job(
        "isolated_throughput",
        Dimension::STEPS_PER_SECOND,
        Sign::POSITIVE,
        Source::Derived { among_others: true },
        "its throughput with 1/n of the cluster to itself, n being the number of jobs: of each worker type it has \
         capacity / (n × scale factor) of its time, and where that is more than all of its time, the same parts of that",
    ),
    Atom::of_job(
        "fitting_isolated_throughput",
        Dimension::STEPS_PER_SECOND,
        Sign::POSITIVE,
        Source::Derived { among_others: true },
        "the part of `isolated_throughput` on worker types with workers enough for it",
    ),
    Atom::of_job(
        "fastest_throughput",
        Dimension::STEPS_PER_SECOND,
        Sign::POSITIVE,
        Source::Derived { among_others: false },
        "its throughput alone on the fastest worker type with workers enough for it",
    ),
    Atom::of_worker_type(
        "price",
        Dimension::PRICE,
        Sign::POSITIVE,
        Source::Stated(Absent::Refused),
        "price of a worker of the type",
    ),
    Atom::of_worker_type(
        "capacity",
        Dimension::WORKERS,
        Sign::NON_NEGATIVE,
        Source::Derived { among_others: false },
        "workers of the type",
    ),
];

impl Atom {
    const fn of_job(
        name: &'static str,
        dimension: Dimension,
        sign: Sign,
        source: Source,
        meaning: &'static str,
    ) -> Self {
        let (name, subject) = (Cow::Borrowed(name), Subject::Job);
        Self { name, meaning, subject, by_type: false, dimension, sign, source }
    }

    const fn of_job_on_type(
        name: &'static str,
        dimension: Dimension,
        sign: Sign,
        source: Source,
        meaning: &'static str,
    ) -> Self {
        let (name, subject) = (Cow::Borrowed(name), Subject::Job);
        Self { name, meaning, subject, by_type: true, dimension, sign, source }
    }

    const fn of_worker_type(
        name: &'static str,
        dimension: Dimension,
        sign: Sign,
        source: Source,
        meaning: &'static str,
    ) -> Self {
        let (name, subject) = (Cow::Borrowed(name), Subject::WorkerType);
        Self { name, meaning, subject, by_type: true, dimension, sign, source }
    }

    /// The curvature of the atom as a function of the allocation.
    pub fn curvature(&self) -> Curvature {
        match self.source {
            Source::Allocation => Curvature::Affine,
            Source::Stated(_) | Source::Accumulated | Source::Derived { .. } => Curvature::Constant,
        }
    }

    /// Whether its value for a job depends on which other jobs there are.
    pub fn depends_on_other_jobs(&self) -> bool {
        matches!(self.source, Source::Accumulated | Source::Derived { among_others: true })
    }

    /// Whether its values are derived from throughputs, scale factors and workers.
    pub fn is_derived(&self) -> bool {
        matches!(self.source, Source::Derived { .. })
    }

    /// Whether it may have this value.
    pub fn admits(&self, value: f64) -> bool {
        let infinite = value == f64::INFINITY && self.source == Source::Stated(Absent::Is(value));
        self.sign.admits(value) && (value.is_finite() || infinite)
    }
}

impl Variable {
    /// All variables, in the order of their entries.
    pub const ALL: [Self; 4] = [Self::Throughput, Self::ThroughputOn, Self::TimeOn, Self::WorkersOn];

    /// The variable with this name, if there is one.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variable| variable.atom().name == name)
    }

    /// The entry of the variable.
    #[inline]
    pub fn atom(self) -> &'static Atom {
        &VARIABLES[self as usize]
    }

    /// The measure that the variable adds up.
    #[inline]
    pub fn measure(self) -> Measure {
        match self {
            Self::Throughput | Self::ThroughputOn => Measure::Throughput,
            Self::TimeOn => Measure::Time,
            Self::WorkersOn => Measure::Workers,
        }
    }
}

/// The names that a policy's expressions may use: data by slot, built-in ones before the policy's columns, and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Vocabulary {
    data: Vec<Atom>,
    parameters: Vec<Parameter>,
}

/// A number with a name.
#[derive(Clone, Debug, PartialEq)]
struct Parameter {
    name: String,
    value: f64,
    dimension: Dimension,
}

impl Default for Vocabulary {
    /// The vocabulary of the built-in data alone.
    fn default() -> Self {
        Self { data: DATA.to_vec(), parameters: Vec::new() }
    }
}

impl Vocabulary {
    /// Adds a per-job column, whose values the problem states, and returns its slot; `None` if the name is taken or is
    /// not a name (letters, digits and `_`, not starting with a digit).
    pub fn add_column(&mut self, name: &str, dimension: Dimension, sign: Sign) -> Option<usize> {
        if !self.is_free(name) {
            return None;
        }
        let (name, meaning) = (Cow::Owned(name.to_owned()), "a column of the policy");
        let (subject, source) = (Subject::Job, Source::Stated(Absent::Refused));
        self.data.push(Atom { name, meaning, subject, by_type: false, dimension, sign, source });
        Some(self.data.len() - 1)
    }

    /// Adds a parameter: a number with a name, which expressions read as the number itself. `None` if the name is taken
    /// or is not a name, as for a column.
    pub fn add_parameter(&mut self, name: &str, value: f64, dimension: Dimension) -> Option<()> {
        let is_free = self.is_free(name);
        is_free.then(|| self.parameters.push(Parameter { name: name.to_owned(), value, dimension }))
    }

    /// The value and dimension of the parameter with this name, if there is one.
    pub(super) fn parameter(&self, name: &str) -> Option<(f64, Dimension)> {
        let found = self.parameters.iter().find(|parameter| parameter.name == name);
        found.map(|parameter| (parameter.value, parameter.dimension))
    }

    /// Whether a name is valid and not taken.
    fn is_free(&self, name: &str) -> bool {
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let is_name = starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name && name != TYPE && !self.names().any(|taken| taken == name)
    }

    /// The slot of the datum with this name, if there is one.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.data.iter().position(|datum| datum.name == name)
    }

    /// The datum at a slot.
    pub fn datum(&self, slot: usize) -> &Atom {
        &self.data[slot]
    }

    /// Number of data.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there are no data.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Slots of the columns that were added.
    pub fn added(&self) -> std::ops::Range<usize> {
        DATA.len()..self.data.len()
    }

    /// All atoms: variables, then data.
    pub fn atoms(&self) -> impl Iterator<Item = &Atom> {
        VARIABLES.iter().chain(&self.data)
    }

    /// Every name that an expression may use: variables, functions, reductions, data, parameters.
    pub fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let variables = VARIABLES.iter().map(|atom| Cow::Borrowed(&*atom.name));
        let functions = Function::ALL.iter().map(|function| Cow::Borrowed(function.name()));
        let reductions = Reduction::ALL.iter().map(|reduction| Cow::Owned(reduction.to_string()));
        let data = self.data.iter().chain([&OWNED_BY_ATOM]).map(|atom| Cow::Borrowed(&*atom.name));
        let parameters = self.parameters.iter().map(|parameter| Cow::Borrowed(&*parameter.name));
        variables.chain(functions).chain(reductions).chain(data).chain(parameters)
    }
}

impl fmt::Display for Vocabulary {
    /// The atoms and the functions as two tables in Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| atom | unit | sign | curvature | where it is not stated | meaning |")?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for atom in self.atoms().chain([&OWNED_BY_ATOM]) {
            let of = match atom {
                _ if atom.by_type => "(type)",
                _ if atom.name == OWNED_BY => "(\"owner\")",
                _ => "",
            };
            let (unit, sign, curvature) = (atom.dimension, atom.sign, atom.curvature().name());
            let Atom { name, meaning, .. } = atom;
            let absent = match atom.source {
                Source::Stated(Absent::Refused) => "refused".to_owned(),
                Source::Stated(Absent::Is(value)) if value.is_infinite() => "+∞".to_owned(),
                Source::Stated(Absent::Is(value)) => value.to_string(),
                Source::Accumulated => "0, or kept by the policy".to_owned(),
                Source::Allocation | Source::Derived { .. } => "–".to_owned(),
            };
            writeln!(f, "| `{name}{of}` | {unit} | {sign} | {curvature} | {absent} | {meaning} |")?;
        }
        writeln!(f, "\n| function | argument | curvature | meaning |")?;
        writeln!(f, "|---|---|---|---|")?;
        for function in Function::ALL {
            let (rule, name) = (function.rule(), function.name());
            let arguments = if rule.several { "(x, y, …)" } else { "(x)" };
            let domain = rule.domain.map_or("of any sign".to_owned(), |domain| domain.to_string());
            writeln!(f, "| `{name}{arguments}` | {domain} | {} | {} |", rule.curvature.name(), rule.meaning)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_may_not_take_a_name_of_the_language() {
        let mut vocabulary = Vocabulary::default();
        for name in ["throughput", "weight", "type", "2nd", "a-b", "", "log", "max_over_jobs"] {
            assert_eq!(vocabulary.add_column(name, Dimension::NONE, Sign::ANY), None, "{name}");
            assert_eq!(vocabulary.add_parameter(name, 1.0, Dimension::NONE), None, "{name}");
        }
        assert!(vocabulary.add_column("energy", Dimension::NONE, Sign::ANY).is_some());
        assert!(vocabulary.add_parameter("energy", 1.0, Dimension::NONE).is_none());
    }

    #[test]
    fn every_variable_finds_its_own_entry_and_no_two_atoms_share_a_name() {
        let vocabulary = Vocabulary::default();
        let named = ["throughput", "throughput_on", "time_on", "workers_on"];
        for (variable, name) in Variable::ALL.into_iter().zip(named) {
            assert_eq!(Variable::find(name), Some(variable), "{name}");
        }
        for variable in Variable::ALL {
            assert_eq!(variable.atom().source, Source::Allocation, "{variable:?}");
        }
        for name in vocabulary.names() {
            assert_eq!(vocabulary.names().filter(|other| *other == name).count(), 1, "{name}");
        }
    }
}
