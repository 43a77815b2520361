//! Results of several folders that are joined into one.

use super::*;

#[test]
fn results_without_anything_in_them_join_as_nothing() {
    let target = TempDir::new().unwrap();
    let (full, void) = (folder_with(&[row(0, 0)]), TempDir::new().unwrap());
    fs::write(void.path().join(FILE), b"").unwrap();
    let paths = [void.path().to_owned(), full.path().to_owned()];
    assert_eq!(Store::merge(target.path(), &paths).unwrap().1.n_rows, 1);
}

#[test]
fn a_merge_loses_nothing_and_keeps_each_run_once() {
    let mut timeout = row(0, 0);
    timeout.outcome.status = Status::Timeout;
    let inputs = [folder_with(&[timeout, row(0, 1)]), folder_with(&[row(0, 0), row(1, 0)])];
    let paths: Vec<PathBuf> = inputs.iter().map(|folder| folder.path().to_owned()).collect();
    let target = TempDir::new().unwrap();
    for _ in 0..2 {
        let (store, merged) = Store::merge(target.path(), &paths).unwrap();
        assert_eq!(merged, Merged { n_rows: 3, n_duplicates: 1 });
        assert_eq!(store.rows().unwrap(), [row(0, 0), row(0, 1), row(1, 0)].map(bare));
        assert_eq!(store.jobs("10").unwrap().len(), 1);
    }
    let other = TempDir::new().unwrap();
    let mut study = study();
    study.name = "other".to_owned();
    drop(Store::open(other.path(), &study).unwrap());
    let error = Store::merge(target.path(), &[paths[0].clone(), other.path().to_owned()]).unwrap_err();
    assert!(error.to_string().ends_with("hold results of two studies: `tiny` and `other`"), "{error}");
    let other = TempDir::new().unwrap();
    study.name = "tiny".to_owned();
    study.fixed = r#"{"workload":{"jobs":5}}"#.to_owned();
    drop(Store::open(other.path(), &study).unwrap());
    let error = Store::merge(target.path(), &[paths[0].clone(), other.path().to_owned()]).unwrap_err();
    assert!(error.to_string().contains("`jobs` is not given in the first, 5 in the second"), "{error}");
    assert!(matches!(Store::merge(target.path(), &[]), Err(StoreError::Missing { .. })));
}

#[test]
fn a_merge_of_different_numbers_for_one_run_is_refused() {
    let mut other = row(0, 0);
    other.outcome.metrics[1] = Some(0.2);
    let mut jobs = row(0, 0);
    jobs.outcome.jobs[0].jct = Some(1.25);
    for (other, what) in [(other, "average_jct_s is 0.1 in one and 0.2 in the other"), (jobs, "their jobs")] {
        let inputs = [folder_with(&[row(0, 0)]), folder_with(std::slice::from_ref(&other))];
        let paths: Vec<PathBuf> = inputs.iter().map(|folder| folder.path().to_owned()).collect();
        let target = TempDir::new().unwrap();
        let refused = Store::merge(target.path(), &paths).unwrap_err();
        assert!(refused.is_bad_input() && refused.help().is_some());
        let said = refused.to_string();
        for piece in
            [what, "00", "policy=b rate=1", &paths[0].display().to_string(), &paths[1].display().to_string()]
        {
            assert!(said.contains(piece), "{said}: no {piece}");
        }
        assert!(!target.path().join(FILE).exists(), "nothing is joined");
        // So is what the target holds already.
        let refused = Store::merge(inputs[0].path(), &paths[1..]).unwrap_err();
        assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
    }
    let inputs = [folder_with(&[bare(row(0, 0))]), folder_with(&[row(0, 0)])];
    let paths: Vec<PathBuf> = inputs.iter().map(|folder| folder.path().to_owned()).collect();
    let target = TempDir::new().unwrap();
    let (store, _) = Store::merge(target.path(), &paths).unwrap();
    assert_eq!(store.jobs("00").unwrap().len(), 1, "jobs that one part kept are kept");
}

#[test]
fn a_merge_keeps_when_and_by_what_runs_were_made_each_once() {
    let sitting = |command: &str, cores| Sitting {
        date: "2026-01-31".to_owned(),
        cores,
        command: format!("apportion sweep --shard {command}"),
    };
    let parts = [folder_with(&[row(0, 0)]), folder_with(&[row(1, 1)]), folder_with(&[])];
    for (position, folder) in parts.iter().take(2).enumerate() {
        let store = Store::open(folder.path(), &study()).unwrap();
        assert_eq!((store.sittings().unwrap(), store.description().unwrap()), (Vec::new(), None));
        store.describe("two parts").unwrap();
        store.sit_down("apportion sweep", 3).unwrap();
        store.note_sittings(vec![sitting("1/2", 2), sitting(&format!("{}/2", position + 1), 2)]).unwrap();
    }
    let target = TempDir::new().unwrap();
    let paths: Vec<PathBuf> = parts.iter().map(|part| part.path().to_owned()).collect();
    let (store, _) = Store::merge(target.path(), &paths).unwrap();
    assert_eq!(store.description().unwrap().as_deref(), Some("two parts"));
    let mut sittings = store.sittings().unwrap();
    let today = sittings.pop().unwrap();
    assert_eq!((today.cores, today.command.as_str(), today.date.len()), (3, "apportion sweep", 10));
    assert_eq!(sittings, [sitting("1/2", 2), sitting("2/2", 2)]);
}
