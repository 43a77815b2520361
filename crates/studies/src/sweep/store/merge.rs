//! Merging of results of one study that were computed separately.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use apportion::metrics::Metric;

use super::{Absence, Row, Store, StoreError, Study, joined, with_other_fields};
use crate::sweep::outcome::Status;
use crate::sweep::spec::are_alike;

/// Counts of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Number of rows in the result.
    pub n_rows: usize,
    /// Number of rows that came from more than one place, kept once.
    pub n_duplicates: usize,
}

impl Store {
    /// Merges the results in `inputs` into those in `folder`, which may hold some already. Every run is kept once; of two
    /// results the one with the better status is kept, of equal ones the one with its jobs. The inputs are not changed.
    ///
    /// # Errors
    /// If an input cannot be read or belongs to another study or version, or two have different numbers for one run, in
    /// which cases nothing is merged; or if the result cannot be written.
    pub fn merge(folder: &Path, inputs: &[PathBuf]) -> Result<(Self, Merged), StoreError> {
        let mut stores = Vec::with_capacity(inputs.len());
        for input in inputs {
            match Self::open_to_resume(input) {
                // Such a file is left by a writer that was stopped before its first row.
                Err(StoreError::Missing { .. }) if input.join(super::FILE).exists() => {}
                opened => stores.push(opened?),
            }
        }
        let Some(first) = stores.first() else {
            return Err(StoreError::Missing {
                path: "what is to be joined".to_owned(),
                why: Absence::NoResults,
            });
        };
        let mut study = first.study.clone();
        for store in &stores[1..] {
            let other = &store.study;
            if let Some(what) = two_studies(&study, other) {
                let (path, other) = (first.path().display().to_string(), store.path().display().to_string());
                return Err(StoreError::TwoStudies { path, other, what });
            }
            study = joined(&study, other);
        }
        let mut merged = Merged::default();
        let mut rows: BTreeMap<String, (Row, &Self)> = BTreeMap::new();
        for store in &stores {
            for mut row in store.all_rows()? {
                row.outcome.jobs = store.jobs(&row.digest)?;
                row.outcome.allocations = store.allocations(&row.digest)?;
                match rows.get_mut(&row.digest) {
                    None => {
                        rows.insert(row.digest.clone(), (row, store));
                    }
                    Some((kept, other)) => {
                        merged.n_duplicates += 1;
                        agree((kept, other), (&row, store))?;
                        if is_better(&row, kept) {
                            (*kept, *other) = (row, store);
                        }
                    }
                }
            }
        }
        let mut target = Self::open(folder, &study)?;
        let mut there: BTreeMap<String, Row> = BTreeMap::new();
        for mut row in target.all_rows()? {
            if let Some((given, store)) = rows.get(&row.digest) {
                row.outcome.jobs = target.jobs(&row.digest)?;
                row.outcome.allocations = target.allocations(&row.digest)?;
                agree((&row, &target), (given, store))?;
                there.insert(row.digest.clone(), row);
            }
        }
        for (row, _) in rows.values() {
            if there.get(&row.digest).is_none_or(|kept| is_better(row, kept)) {
                target.put(row)?;
            }
        }
        for store in &stores {
            target.note_sittings(store.sittings()?)?;
            store.description()?.map_or(Ok(()), |text| target.describe(&text))?;
        }
        merged.n_rows = target.digests()?.len();
        Ok((target, merged))
    }
}

/// The difference of results that are not of one study; none if they are.
fn two_studies(first: &Study, second: &Study) -> Option<String> {
    let columns = |study: &Study| study.axes.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    if first.name != second.name {
        return Some(format!("`{}` and `{}`", first.name, second.name));
    }
    let (one, other) = (columns(first), columns(second));
    if one != other {
        return Some(format!("`{}` varied {} and {}", first.name, one.join(", "), other.join(", ")));
    }
    let places = ["in the first", "in the second"];
    (!are_alike(&first.fixed, &second.fixed)).then(|| with_other_fields((first, second), places))
}

fn is_better(row: &Row, kept: &Row) -> bool {
    let (status, other) = (row.outcome.status, kept.outcome.status);
    let n_lists =
        |of: &Row| usize::from(!of.outcome.jobs.is_empty()) + usize::from(!of.outcome.allocations.is_empty());
    status.is_better_than(other) || (status == other && n_lists(kept) < n_lists(row))
}

/// Refuses two finished results of one run with different numbers. Values that only one of them has, such as a column newer
/// than the other's file, or jobs that were not kept, are no difference.
fn agree((one, first): (&Row, &Store), (other, second): (&Row, &Store)) -> Result<(), StoreError> {
    if one.outcome.status != Status::Done || other.outcome.status != Status::Done {
        return Ok(());
    }
    let differ = |a: Option<f64>, b: Option<f64>| a.zip(b).filter(|(a, b)| a.to_bits() != b.to_bits());
    let pairs = one.outcome.metrics.iter().zip(&other.outcome.metrics);
    let numbers = Metric::names().zip(pairs).find_map(|(name, (a, b))| {
        let (a, b) = differ(*a, *b)?;
        Some(format!("{name} is {a} in one and {b} in the other"))
    });
    let lists = [
        (one.outcome.utilization != other.outcome.utilization
            && !one.outcome.utilization.is_empty()
            && !other.outcome.utilization.is_empty())
        .then(|| "utilization by worker type".to_owned()),
        (one.outcome.jobs != other.outcome.jobs
            && !one.outcome.jobs.is_empty()
            && !other.outcome.jobs.is_empty())
        .then(|| "their jobs".to_owned()),
        (one.outcome.allocations != other.outcome.allocations
            && !one.outcome.allocations.is_empty()
            && !other.outcome.allocations.is_empty())
        .then(|| "their allocations".to_owned()),
    ];
    match numbers.into_iter().chain(lists.into_iter().flatten()).next() {
        None => Ok(()),
        Some(what) => Err(StoreError::Conflict {
            digest: one.digest.clone(),
            run: first.label(one),
            first: first.path().display().to_string(),
            second: second.path().display().to_string(),
            what,
        }),
    }
}
