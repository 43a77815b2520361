//! Joining results of one study that were computed apart.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Row, Store, StoreError, joined};

/// What a merge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Rows in the result.
    pub n_rows: usize,
    /// Rows that came from more than one place, kept once.
    pub n_duplicates: usize,
}

impl Store {
    /// Joins the results in `inputs` into those in `folder`, which may hold some already. Every run is kept once;
    /// of two results for it the better status wins, and of equals the first. Nothing in `inputs` is changed.
    ///
    /// # Errors
    /// If an input cannot be read or belongs to another study or version, before anything is written; or if the result
    /// cannot be written.
    pub fn merge(folder: &Path, inputs: &[PathBuf]) -> Result<(Self, Merged), StoreError> {
        let mut stores = Vec::with_capacity(inputs.len());
        for input in inputs {
            match Self::open_to_resume(input) {
                // Of a writer that was stopped before it had anything to keep.
                Err(StoreError::Missing { .. }) if input.join(super::FILE).exists() => {}
                opened => stores.push(opened?),
            }
        }
        let Some(first) = stores.first() else {
            return Err(StoreError::Missing { path: "what is to be joined".to_owned() });
        };
        let mut study = first.study.clone();
        for store in &stores[1..] {
            let columns = |s: &super::Study| s.axes.iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
            let other = &store.study;
            if (&other.name, &other.fixed, columns(other)) != (&study.name, &study.fixed, columns(&study)) {
                let what = format!("they cannot be joined with those in {}", first.path().display());
                return Err(StoreError::OtherStudy { path: store.path().display().to_string(), what });
            }
            study = joined(&study, other);
        }
        let mut merged = Merged::default();
        let mut rows: BTreeMap<String, Row> = BTreeMap::new();
        for store in &stores {
            for mut row in store.all_rows()? {
                row.outcome.jobs = store.jobs(&row.digest)?;
                match rows.get_mut(&row.digest) {
                    None => {
                        rows.insert(row.digest.clone(), row);
                    }
                    Some(kept) => {
                        merged.n_duplicates += 1;
                        if row.outcome.status.is_better_than(kept.outcome.status) {
                            *kept = row;
                        }
                    }
                }
            }
        }
        let mut target = Self::open(folder, &study)?;
        let there: BTreeMap<String, Row> =
            target.all_rows()?.into_iter().map(|row| (row.digest.clone(), row)).collect();
        for row in rows.values() {
            if there
                .get(&row.digest)
                .is_some_and(|kept| row.outcome.status.is_better_than(kept.outcome.status))
            {
                target.forget(&row.digest)?;
            }
            target.keep(row)?;
        }
        merged.n_rows = target.digests()?.len();
        Ok((target, merged))
    }
}
