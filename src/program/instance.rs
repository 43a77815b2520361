//! The numbers an objective ranges over: member classes, combinations of them, worker types.
//!
//! A *member* is a class of interchangeable jobs with a multiplicity (1 where every job stands for itself).
//! A *combination* is a member alone, or two members that share workers; a column of the program gives time to a combination
//! on a worker type. Columns are in units of **class time**: Y`[c,j]` = the time on worker type j summed over the jobs of
//! the class, so a member of multiplicity n has n units of time to spend.
//!
//!   effective throughput of one job of member m:  thr(m) = Σ_{c∋m} Σ_j uses(m,c)·T`[m,c,j]`·Y`[c,j]` / n_m
//!   time:      Σ_{c∋m} Σ_j uses(m,c)·Y`[c,j]` ≤ n_m         for every member
//!   capacity:  Σ_c s_c·Y`[c,j]` ≤ w_j                       for every worker type
//!
//! A member paired with its own kind has uses = 2: one unit of pair time spends two units of its time.

use std::collections::BTreeMap;

use super::expression::Subject;

/// A member's part in a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Position of the member class.
    pub member: usize,
    /// Units of its time that one unit of the combination's time spends: 1, or 2 in a pair with itself.
    pub uses: f64,
    /// Throughput of its job there, as the policy's view has it: `[K]`, steps/s; 0 where it cannot run.
    pub throughput: Vec<f64>,
}

/// Two jobs that share workers.
#[derive(Clone, Debug, PartialEq)]
pub struct InstancePair {
    /// Two parts of different members, or one of a member paired with its own kind.
    pub parts: Vec<Part>,
    /// Workers that the pair holds while it runs.
    pub scale_factor: f64,
}

/// A column of the program: a combination on a worker type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Position among the combinations: every member alone, in member order, then the pairs.
    pub combination: usize,
    /// Position among the worker types.
    pub worker_type: usize,
}

/// All numbers of one decision, dense.
#[derive(Clone, Debug, Default)]
pub struct Instance {
    /// Workers of each type: `[K]`.
    pub capacity: Vec<f64>,
    /// Jobs in each member class: `[members]`.
    pub multiplicity: Vec<f64>,
    /// Per-job data by name, each `[members]`: `weight`, `steps_remaining`, ….
    pub data: BTreeMap<String, Vec<f64>>,
    /// Per-worker-type data by name, each `[K]`: `price`, ….
    pub type_data: BTreeMap<String, Vec<f64>>,
    /// Worker types by name, for `time_on(…)`: `[K]`.
    pub worker_types: Vec<String>,
    /// Workers that a job of each member needs at once: `[members]`.
    pub scale_factor: Vec<f64>,
    /// Throughput of a job of each member alone, as the policy's view has it: [members × K], steps/s; 0 where it cannot run.
    pub throughput: Vec<f64>,
    /// Pairs of jobs that can share workers, by member.
    pub pairs: Vec<InstancePair>,
    /// Members whose droppable constraints are dropped: `[members]`, or empty if none are.
    pub dropped: Vec<bool>,
    /// The part by which the right sides of all other droppable constraints are reduced.
    pub eased: f64,
    /// Whether a job may have time on a type with fewer workers than its scale factor, where it cannot run.
    pub oversized: bool,
}

impl Instance {
    /// Number of member classes.
    pub fn n_members(&self) -> usize {
        self.multiplicity.len()
    }

    /// Number of worker types, K.
    pub fn n_types(&self) -> usize {
        self.capacity.len()
    }

    /// Number of combinations: members alone and pairs.
    pub fn n_combinations(&self) -> usize {
        self.n_members() + self.pairs.len()
    }

    /// The values of a datum: `[members]`, or `[K]` for a datum of worker types; `None` if it is not given for all of them.
    pub fn datum(&self, subject: Subject, name: &str) -> Option<&[f64]> {
        let (given, length) = match subject {
            Subject::Job => (self.data.get(name), self.n_members()),
            Subject::WorkerType if name == "capacity" => (Some(&self.capacity), self.n_types()),
            Subject::WorkerType => (self.type_data.get(name), self.n_types()),
        };
        given.map(Vec::as_slice).filter(|values| values.len() == length)
    }

    /// Throughput of a job of a member alone: `[K]`, steps/s.
    pub fn alone(&self, member: usize) -> &[f64] {
        &self.throughput[member * self.n_types()..(member + 1) * self.n_types()]
    }

    /// Workers that a combination holds while it runs.
    pub fn scale_factor_of(&self, combination: usize) -> f64 {
        let pair = combination.checked_sub(self.n_members());
        pair.map_or_else(|| self.scale_factor[combination], |pair| self.pairs[pair].scale_factor)
    }

    /// The workers that count for each job of a combination while it runs: all of them for a job alone, half for each of two.
    pub fn workers_each(&self, combination: usize) -> f64 {
        let n_jobs = if combination < self.n_members() { 1.0 } else { 2.0 };
        self.scale_factor_of(combination) / n_jobs
    }

    /// The parts of a combination: (member, units of its time that a unit of the combination's spends, throughputs).
    pub fn parts(&self, combination: usize) -> impl Iterator<Item = (usize, f64, &[f64])> {
        let pair = combination.checked_sub(self.n_members());
        let alone = pair.is_none().then(|| (combination, 1.0, self.alone(combination)));
        let pair = pair.map_or(&[][..], |pair| &self.pairs[pair].parts);
        alone.into_iter().chain(pair.iter().map(|part| (part.member, part.uses, &part.throughput[..])))
    }

    /// Whether the type has as many workers as a scale factor needs, or columns without them are allowed anyway.
    #[inline]
    pub fn has_room(&self, scale_factor: f64, worker_type: usize) -> bool {
        self.oversized || scale_factor <= self.capacity[worker_type]
    }

    /// Whether a member can run alone on a worker type.
    #[inline]
    pub fn runs_alone(&self, member: usize, worker_type: usize) -> bool {
        let fits = self.has_room(self.scale_factor[member], worker_type);
        fits && self.capacity[worker_type] > 0.0 && self.alone(member)[worker_type] > 0.0
    }

    /// The columns that exist: where every part of the combination runs and the type has room for it.
    pub fn columns(&self) -> Vec<Column> {
        let mut columns = Vec::with_capacity(self.n_combinations() * self.n_types());
        for combination in 0..self.n_combinations() {
            let scale_factor = self.scale_factor_of(combination);
            for worker_type in 0..self.n_types() {
                let runs = self.parts(combination).all(|(_, _, throughput)| throughput[worker_type] > 0.0);
                if runs && self.has_room(scale_factor, worker_type) {
                    columns.push(Column { combination, worker_type });
                }
            }
        }
        columns
    }
}
