//! Judge of decisions: finds claims that are untrue or contradict one another.

use schemars::JsonSchema;
use serde::Serialize;

use crate::check::arithmetic::{Numbers, Row, TOLERANCE, View, Worth};
use crate::check::decided::{Decided, Verdict};
use apportion::spec::snapshot::SnapshotDocument;

/// Relative tolerance of a value that is known to the last digits: rounding, in tens of operations.
const ROUNDING: f64 = 1e-9;
/// Factor on the tolerance of certificates where two values are each within it.
const SLACK: f64 = 1.001;

/// An untrue claim.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fault {
    /// Name of the policy.
    pub policy: String,
    /// Backend that was requested.
    pub backend: String,
    /// Description of the untrue claim, with the evidence.
    pub what: String,
}

/// An instance, its decisions, and all allocations that were found for it.
#[derive(Debug)]
pub struct Judge<'a> {
    numbers: Numbers<'a>,
    decisions: &'a [Decided],
    /// Shares that break no constraint, each with the names of the policy and backend that gave them.
    pool: Vec<(String, Vec<Row>)>,
}

impl<'a> Judge<'a> {
    /// A judge of the decisions on an instance. `reference`: as [`Numbers::of`] has it.
    pub fn new(document: &'a SnapshotDocument, reference: &[String], decisions: &'a [Decided]) -> Self {
        let numbers = Numbers::of(document, reference);
        let mut pool = vec![("equal shares".to_owned(), numbers.within(&numbers.equal_shares()))];
        for decided in decisions.iter().filter(|decided| numbers.broken(&decided.rows).is_none()) {
            let rows = numbers.within(&decided.rows);
            if !rows.is_empty() && pool.iter().all(|(_, others)| *others != rows) {
                pool.push((format!("{} by {}", decided.policy, decided.backend), rows));
            }
        }
        Self { numbers, decisions, pool }
    }

    /// Untrue claims, decision by decision.
    pub fn faults(&self) -> Vec<Fault> {
        let fault = |of: &Decided, what: String| Fault {
            policy: of.policy.clone(),
            backend: of.backend.clone(),
            what,
        };
        let untrue = |of: &Decided| self.untrue(of).map(|what| fault(of, what));
        let mut faults: Vec<Fault> = self.decisions.iter().filter_map(untrue).collect();
        for (position, one) in self.decisions.iter().enumerate() {
            let differs =
                |other: &&Decided| Self::disagreement(one, other).is_some_and(|by| by > 2.0 * TOLERANCE);
            if let Some(other) = self.decisions[..position].iter().find(differs) {
                let (value, by) = (one.value.unwrap_or(f64::NAN), &other.backend);
                let others = other.value.unwrap_or(f64::NAN);
                faults.push(fault(one, format!("the optimum is {value:e}, and by {by} it is {others:e}")));
            }
        }
        faults
    }

    /// Largest relative difference between optima of one policy by different backends.
    pub fn worst_disagreement(&self) -> Option<f64> {
        let pairs = self.decisions.iter().enumerate().flat_map(|(position, one)| {
            self.decisions[..position].iter().filter_map(|other| Self::disagreement(one, other))
        });
        pairs.reduce(f64::max)
    }

    /// Relative difference between two optima that must be equal; none if they need not be.
    fn disagreement(one: &Decided, other: &Decided) -> Option<f64> {
        let same = one.policy == other.policy
            && one.dropped == other.dropped
            && [one, other].iter().all(|decided| decided.verdict == Verdict::Certified);
        let (a, b) = one.value.zip(other.value).filter(|_| same)?;
        Some((a - b).abs() / size(a, b, Worth::of(&one.policy)))
    }

    /// Description of an untrue claim of a decision, if any.
    fn untrue(&self, decided: &Decided) -> Option<String> {
        let worth = Worth::of(&decided.policy);
        match decided.verdict {
            Verdict::Certified | Verdict::Uncertified => {}
            Verdict::Infeasible | Verdict::Unbounded => return self.solvable(decided, worth),
            _ => return None,
        }
        if let Some(what) = self.numbers.broken(&decided.rows) {
            return Some(what);
        }
        let certified = decided.verdict == Verdict::Certified;
        if certified && let Some(what) = self.value(decided, worth) {
            return Some(what);
        }
        if decided.policy.ends_with("_SLOs")
            && let Some(what) = self.deadlines(decided)
        {
            return Some(what);
        }
        self.beaten(decided, worth, certified)
    }

    /// Allocations that a policy may choose from, with the names of their origins.
    fn choices(&self, policy: &str) -> impl Iterator<Item = &(String, Vec<Row>)> {
        let pairs = policy.contains("_packed");
        self.pool.iter().filter(move |(_, rows)| pairs || alone(rows))
    }

    /// Description of a solution of a problem that is claimed to have none.
    fn solvable(&self, decided: &Decided, worth: Worth) -> Option<String> {
        let mut choices = self.choices(&decided.policy);
        let (whose, value) =
            choices.find_map(|(whose, rows)| Some((whose, self.numbers.value(worth, rows)?)))?;
        Some(format!("said to be {:?}; {whose} has value {value:e}", decided.verdict).to_lowercase())
    }

    /// Description of a value that is not that of the shares, or a gap that is not that of value and bound.
    fn value(&self, decided: &Decided, worth: Worth) -> Option<String> {
        let (Some(value), Some(bound)) = (decided.value, decided.bound) else {
            return Some("certified, with a value or a bound that is not finite".to_owned());
        };
        let gap = (value - bound).abs() / size(value, bound, worth).max(f64::MIN_POSITIVE);
        if worth != Worth::Unknown && gap > TOLERANCE * SLACK {
            return Some(format!("certified at value {value:e} and bound {bound:e}"));
        }
        if matches!(worth, Worth::Unknown | Worth::Welfare) {
            return None;
        }
        let Some(own) = self.numbers.value(worth, &decided.rows) else {
            return Some(format!("value {value:e}; the shares have no finite value"));
        };
        let off = (own - value).abs() > TOLERANCE * size(own, value, worth);
        off.then(|| format!("value {value:e}; the shares are worth {own:e}"))
    }

    /// Description of a deadline that is missed though not dropped, or of deadlines that were dropped without need.
    fn deadlines(&self, decided: &Decided) -> Option<String> {
        let throughput = self.numbers.throughput(&decided.rows, View::Measured);
        for (job, made) in throughput.iter().enumerate() {
            let kept = |asked: f64| decided.dropped.contains(&job) || *made >= asked * (1.0 - TOLERANCE);
            if let Some(asked) = self.numbers.asked(job).filter(|asked| !kept(*asked)) {
                return Some(format!("job {job} makes {made:e} steps/s, its deadline asks for {asked:e}"));
            }
        }
        let could = |job: &&usize| self.numbers.asked(**job).is_some();
        let n_dropped = decided.dropped.iter().filter(could).count();
        for (whose, rows) in self.choices(&decided.policy) {
            let throughput = self.numbers.throughput(rows, View::Measured);
            let missed = |job: &usize| self.numbers.asked(*job).is_some_and(|asked| throughput[*job] < asked);
            let n_missed = (0..throughput.len()).filter(missed).count();
            if n_missed < n_dropped {
                return Some(format!("{n_dropped} deadlines are dropped; {whose} misses {n_missed}"));
            }
        }
        None
    }

    /// Description of an allocation that is better than an optimum, or than a bound.
    fn beaten(&self, decided: &Decided, worth: Worth, certified: bool) -> Option<String> {
        for (whose, rows) in self.choices(&decided.policy) {
            if self.misses(decided, rows) {
                continue;
            }
            let Some(other) = self.numbers.value(worth, rows) else { continue };
            let better = |than: f64| if worth.is_gain() { other - than } else { than - other };
            for (claimed, name, part, claims) in [
                (decided.bound, "bound", ROUNDING, true),
                (decided.value, "optimum", TOLERANCE * SLACK, certified),
            ] {
                let Some(claimed) = claimed.filter(|_| claims) else { continue };
                if better(claimed) > part * size(claimed, other, worth) {
                    return Some(format!("{name} {claimed:e}; {whose} is worth {other:e}"));
                }
            }
        }
        None
    }

    /// Whether an allocation breaks a constraint of the policy that the decision keeps.
    fn misses(&self, decided: &Decided, rows: &[Row]) -> bool {
        let policy = &*decided.policy;
        let required = |job: usize| match policy {
            _ if policy.ends_with("_SLOs") => self.numbers.asked(job),
            "low_average_jct" | "low_average_jct_packed" => {
                Some(0.25 * self.numbers.fitting_isolated_throughput(job))
            }
            _ => None,
        };
        let throughput = self.numbers.throughput(rows, View::Measured);
        let missed = |job: usize| required(job).is_some_and(|required| throughput[job] < required);
        (0..throughput.len()).any(|job| !decided.dropped.contains(&job) && missed(job))
    }
}

/// Whether no jobs share workers.
fn alone(rows: &[Row]) -> bool {
    rows.iter().all(|row| row.jobs.len() == 1 || row.shares.iter().all(|share| *share == 0.0))
}

fn size(a: f64, b: f64, worth: Worth) -> f64 {
    a.abs().max(b.abs()).max(worth.unit())
}
