//! Files that are of another kind, broken off or changed.

use super::*;

/// Opens a folder whose results file has this content, both ways; the file must stay as it was.
fn refusal(content: &[u8]) -> StoreError {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(FILE);
    fs::write(&path, content).unwrap();
    assert!(Store::open_to_read(folder.path()).is_err());
    let error = Store::open(folder.path(), &study()).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), content, "{error}");
    error
}

fn good_file() -> Vec<u8> {
    fs::read(folder_with(&[row(0, 0), row(0, 1), row(1, 0)]).path().join(FILE)).unwrap()
}

#[test]
fn a_foreign_file_is_refused_and_left_alone() {
    for content in [&b"policy,rate\n"[..], b"\0\0\0", &[0xFF; 5000]] {
        assert!(matches!(refusal(content), StoreError::Foreign { .. }));
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(FILE);
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE songs (name TEXT)").unwrap();
    let error = refusal(&fs::read(&path).unwrap());
    assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
}

#[test]
fn a_half_written_file_is_refused_at_every_length() {
    let whole = good_file();
    for length in (1..whole.len()).step_by(997).chain([16, 50, 99, 100, 4096, 8192]) {
        let error = refusal(&whole[..length]);
        assert!(matches!(error, StoreError::Damaged { .. }), "{length}: {error}");
    }
}

#[test]
fn a_file_with_flipped_bytes_is_refused_or_read_but_never_changed() {
    let whole = good_file();
    let mut refused = 0;
    for position in (0..whole.len()).step_by(61) {
        let mut broken = whole.clone();
        broken[position] ^= 0xA5;
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(FILE);
        fs::write(&path, &broken).unwrap();
        match Store::open_to_read(folder.path()).and_then(|store| store.rows()) {
            Ok(rows) => assert!(rows.len() <= 3),
            Err(_) => refused += 1,
        }
        assert_eq!(fs::read(&path).unwrap(), broken);
    }
    assert!(refused > 5, "{refused}");
}

#[test]
fn another_format_is_refused() {
    let folder = folder_with(&[row(0, 0)]);
    let path = folder.path().join(FILE);
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 3").unwrap();
    let error = refusal(&fs::read(&path).unwrap());
    assert!(matches!(error, StoreError::Version { .. }), "{error}");
}

/// The complaint about results in which one statement changed something.
fn complaint_after(statement: &str) -> Option<String> {
    let folder = folder_with(&[row(0, 0), row(1, 0)]);
    let path = folder.path().join(FILE);
    let connection = Connection::open(&path).unwrap();
    assert_eq!(connection.execute(statement, []).unwrap(), 1);
    drop(connection);
    let store = Store::open_to_read(folder.path()).unwrap();
    let read = store
        .rows()
        .and_then(|rows| rows.iter().map(|row| store.jobs(&row.digest)).collect::<Result<Vec<_>, _>>());
    read.err().map(|error| {
        assert!(matches!(error, StoreError::Damaged { .. }) && error.is_bad_input());
        error.to_string()
    })
}

#[test]
fn a_changed_digit_is_found_when_it_is_read() {
    for change in [
        "UPDATE runs SET average_jct_s = 0.2 WHERE digest = '00'",
        "UPDATE runs SET rate = 0.4 WHERE digest = '00'",
        "UPDATE runs SET status = 'failed' WHERE digest = '00'",
        "UPDATE runs SET data = '{\"a\":1}' WHERE digest = '00'",
        "UPDATE runs SET makespan_s = 5 WHERE digest = '00'",
        "INSERT INTO utilization VALUES ('00', 'v100', 0.5)",
    ] {
        let said = complaint_after(change).unwrap_or_else(|| panic!("{change} is believed"));
        assert!(said.contains("is not what its checksum says") && said.contains("digest 00"), "{said}");
    }
    for change in [
        "UPDATE jobs SET jct_s = 1.25 WHERE digest = '00'",
        "UPDATE jobs SET rho = 1 WHERE digest = '00'",
        "DELETE FROM jobs WHERE digest = '00'",
    ] {
        let said = complaint_after(change).unwrap_or_else(|| panic!("{change} is believed"));
        assert!(said.contains("jobs of a run (digest 00)"), "{said}");
    }
    assert_eq!(
        complaint_after("UPDATE runs SET seconds = 9 WHERE digest = '00'"),
        None,
        "not part of the result"
    );
    let old = "UPDATE runs SET checksum = NULL, average_jct_s = 9 WHERE digest = '00'";
    assert_eq!(complaint_after(old), None, "rows of before there were checksums are read as they are");
}

#[test]
fn a_damaged_row_is_named() {
    for (change, expected) in [
        ("UPDATE runs SET status = 'donne' WHERE digest = '10'", "row 2 of the runs (digest 10): "),
        (
            "UPDATE runs SET average_jct_s = 'x' WHERE digest = '10'",
            "row 2 of the runs (digest 10): `average_jct_s` is of type Text",
        ),
        (
            "UPDATE runs SET spec = NULL WHERE digest = '00'",
            "row 1 of the runs (digest 00): `spec` is of type Null",
        ),
        ("UPDATE runs SET spec = CAST(x'e9' AS TEXT) WHERE digest = '00'", "row 1 of the runs (digest 00): "),
        (
            "INSERT INTO utilization VALUES ('00', 'v100', 'x')",
            "of the utilizations, by digest and worker type: ",
        ),
        (
            "UPDATE jobs SET job_type = x'00' WHERE digest = '00'",
            "row 1 of the jobs of the run (digest 00): `job_type` is of type Blob",
        ),
    ] {
        let said = complaint_after(change).unwrap_or_else(|| panic!("{change} is believed"));
        assert!(said.contains(expected), "{said}");
    }
}
