//! Files of earlier versions.

use super::*;

#[test]
fn another_version_can_be_read_but_not_gone_on_from() {
    let folder = folder_with(&[row(0, 0)]);
    let path = folder.path().join(FILE);
    let change =
        "UPDATE meta SET value = '0.0.1' WHERE key = 'version'; ALTER TABLE runs DROP COLUMN worst_rho;
         ALTER TABLE runs DROP COLUMN checksum; ALTER TABLE runs DROP COLUMN jobs_checksum; PRAGMA user_version = 1";
    Connection::open(&path).unwrap().execute_batch(change).unwrap();
    let before = fs::read(&path).unwrap();
    let store = Store::open_to_read(folder.path()).unwrap();
    assert_eq!((store.version(), store.rows().unwrap()), ("0.0.1", vec![bare(row(0, 0))]));
    let target = TempDir::new().unwrap();
    for refused in [
        Store::open(folder.path(), &study()).unwrap_err(),
        Store::open_to_resume(folder.path()).unwrap_err(),
        Store::merge(target.path(), &[folder.path().to_owned()]).unwrap_err(),
    ] {
        assert!(matches!(refused, StoreError::Version { .. }), "{refused}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn columns_without_units_in_their_names_are_read_and_renamed() {
    let folder = folder_with(&[row(0, 0), row(0, 1)]);
    let change = [
        ("runs", &["average_jct", "makespan"][..]),
        ("jobs", &["arrival", "completion", "jct"]),
        ("services", &["wait", "service"]),
    ];
    let change = change.map(|(table, names)| {
        let renamed =
            names.iter().map(|name| format!("ALTER TABLE {table} RENAME COLUMN {name}_s TO {name};"));
        renamed.collect::<String>()
    });
    Connection::open(folder.path().join(FILE)).unwrap().execute_batch(&change.concat()).unwrap();
    let old = Store::open_to_read(folder.path()).unwrap();
    assert_eq!(old.rows().unwrap(), [bare(row(0, 0)), bare(row(0, 1))]);
    assert_eq!(old.jobs("00").unwrap(), row(0, 0).outcome.jobs);
    let mut store = Store::open(folder.path(), &study()).unwrap();
    store.keep(&row(1, 0)).unwrap();
    assert_eq!(store.rows().unwrap(), [bare(row(0, 0)), bare(row(0, 1)), bare(row(1, 0))]);
    let connection = Connection::open(folder.path().join(FILE)).unwrap();
    let named = "SELECT COUNT(average_jct_s), COUNT(makespan_s) FROM runs";
    assert_eq!(connection.query_row(named, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap(), (3, 0));
    for digest in ["00", "01", "10"] {
        assert_eq!(store.jobs(digest).unwrap(), row(0, 0).outcome.jobs);
    }
    let named =
        "SELECT arrival_s, completion_s, jct_s, wait_s, service_s FROM jobs JOIN services USING (digest, id)";
    let times =
        connection.query_row(named, [], |row| (0..5).map(|at| row.get(at)).collect::<Result<Vec<f64>, _>>());
    assert_eq!(times.unwrap(), [0.5, 2.0, 1.5, 0.25, 1.0]);
}

#[test]
fn results_of_the_first_format_are_gone_on_from() {
    let folder = folder_with(&[row(0, 0)]);
    let path = folder.path().join(FILE);
    let change = "ALTER TABLE runs DROP COLUMN checksum; ALTER TABLE runs DROP COLUMN jobs_checksum;
         ALTER TABLE runs DROP COLUMN n_measured; PRAGMA user_version = 1";
    Connection::open(&path).unwrap().execute_batch(change).unwrap();
    assert_eq!(Store::open_to_read(folder.path()).unwrap().rows().unwrap(), [bare(row(0, 0))]);
    let mut store = Store::open(folder.path(), &study()).unwrap();
    store.keep(&row(1, 0)).unwrap();
    assert_eq!(store.rows().unwrap(), [row(0, 0), row(1, 0)].map(bare));
    assert_eq!(store.jobs("00").unwrap(), row(0, 0).outcome.jobs);
}

#[test]
fn allocations_are_added_to_older_results_and_what_was_changed_in_them_is_found() {
    let folder = folder_with(&[row(0, 0), row(1, 0)]);
    let path = folder.path().join(FILE);
    let change = |sql: &str| Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    change("UPDATE allocations SET share = 0.4 WHERE digest = '00' AND partner = 4");
    let store = Store::open_to_read(folder.path()).unwrap();
    let said = store.allocations("00").unwrap_err().to_string();
    assert!(
        said.contains("list of the allocations of a run (digest 00) is not what its checksum says"),
        "{said}"
    );
    assert_eq!(store.allocations("10").unwrap(), row(1, 0).outcome.allocations);
    // A file of before there were allocations.
    change("DROP TABLE allocations; ALTER TABLE runs DROP COLUMN allocations_checksum");
    assert_eq!(Store::open_to_read(folder.path()).unwrap().allocations("10").unwrap(), []);
    let mut store = Store::open(folder.path(), &study()).unwrap();
    store.keep(&row(1, 1)).unwrap();
    assert_eq!(store.allocations("11").unwrap(), row(1, 1).outcome.allocations);
    assert_eq!(store.allocations("10").unwrap(), []);
    assert_eq!(store.rows().unwrap().len(), 3);
    let target = TempDir::new().unwrap();
    let (merged, _) =
        Store::merge(target.path(), &[folder.path().to_owned(), folder_with(&[row(1, 0)]).path().to_owned()])
            .unwrap();
    assert_eq!(merged.allocations("10").unwrap(), row(1, 0).outcome.allocations);
    assert_eq!(merged.jobs("10").unwrap(), row(1, 0).outcome.jobs);
}
