#![expect(clippy::float_cmp, reason = "these numbers are exact by construction")]

use std::fmt::Write as _;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::index::{Id, RowId, WorkerTypeId};

/// A file of the published measurements; none if it is not at hand.
fn published(file: &str) -> Option<Source> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/gavel")).join(file);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(Source::new(file, text)),
        Err(error) => {
            eprintln!("skipped: {}: {error}", path.display());
            None
        }
    }
}

const PUBLISHED: [(&str, &str); 2] =
    [("osdi20", "simulation_throughputs.json"), ("osdi20-physical", "physical_cluster_throughputs.json")];

/// A small file of ours.
const SMALL: &str = "\
format: apportion/throughputs-v1
name: small
unit: steps/s
worker_types: [fast, slow]
rows:
  - {job_type: a, scale_factor: 1, consolidated: [4, 2], unconsolidated: [4, null]}
  - {job_type: b, scale_factor: 1, consolidated: [8, null]}
  - {job_type: b, scale_factor: 2, consolidated: [15, 0]}
colocation:
  model: measured
  retained:
    fast:
      - {job_type: a, scale_factor: 1, beside: [0.5, 0.75]}
      - {job_type: b, scale_factor: 1, beside: [0.25, null]}
";

/// A small file of Gavel's, with all oddities that a file can have.
const ODD: &str = r#"{
    "slow": {
        "('a', 1)": {"null": 1.0, "('b', 1)": [0.5, 2.0], "('a', 1)": [0.4, 0.4]},
        "('b', 1)": {"null": 3.0, "('a', 1)": [2.5, 0.5], "('a', 2)": [1, 1], "('gone', 1)": [1, 1]},
        "('a', 2)": {"null": 0.0, "('a', 2)": [0.1, 0.1]}
    },
    "fast": {
        "('a', 1)": {"null": 5.0, "('b', 1)": [0.0, 3.0]},
        "('b', 1)": {"null": 7.0}
    },
    "slow_unconsolidated": {"('a', 1)": {"null": 0.9, "('a', 1)": [0.3, 0.3]}},
    "lost_unconsolidated": {}
}"#;

fn read(text: &str) -> Result<ThroughputsFile, SpecError> {
    read_throughputs(&Source::new("test", text), "test")
}

fn ids(row: usize, other: usize, column: usize) -> (RowId, RowId, WorkerTypeId) {
    (Id::from_index(row), Id::from_index(other), Id::from_index(column))
}

fn assert_complaint(text: &str, expected: &str) {
    let error = read(text).expect_err(expected).to_string();
    assert!(error.contains(expected), "{error}\nlacks: {expected}");
}

#[test]
fn many_rows_that_share_no_workers_have_no_table_of_pairs() {
    let rows = (0..20_000).fold(String::new(), |mut rows, row| {
        let _ = writeln!(rows, "  - {{job_type: j{row}, scale_factor: 1, consolidated: [1]}}");
        rows
    });
    let head = "format: apportion/throughputs-v1\nname: many\nunit: steps/s\nworker_types: [fast]\nrows:\n";
    for model in ["none", "measured"] {
        let file = read(&format!("{head}{rows}colocation: {{model: {model}}}\n")).unwrap();
        assert_eq!((file.measured.rows.len(), file.measured.colocated.len()), (20_000, 0), "{model}");
    }
}

#[test]
fn published_throughputs_without_pairs_have_no_table_of_them() {
    let rows: Vec<String> = (0..16_000).map(|row| format!("\"('j{row}', 1)\": {{\"null\": 1}}")).collect();
    let source = Source::new("g.json", format!("{{\"fast\": {{{}}}}}", rows.join(", ")));
    let file = gavel_json::read(&source, "many").unwrap();
    assert_eq!((file.measured.rows.len(), file.measured.colocated.len()), (16_000, 0));
}

#[test]
fn shipped_matrices_are_what_importing_the_publication_writes() {
    for (name, file) in PUBLISHED {
        let Some(source) = published(file) else { return };
        let text = Throughputs::embedded_text(name).unwrap();
        let header = read(text).unwrap().header;
        let imported = read_throughputs(&source, name).unwrap();
        assert_eq!(write_throughputs(&header, &imported.measured), text, "{name}");
    }
}

#[test]
fn shipped_matrices_hold_the_published_numbers() {
    for (name, file) in PUBLISHED {
        let Some(source) = published(file) else { return };
        let throughputs = Throughputs::embedded(name).unwrap();
        let json: serde_json::Value = serde_json::from_str(&source.text).unwrap();
        let show = |row: RowId| {
            let key = &throughputs.rows()[row];
            format!("('{}', {})", key.job_type, key.scale_factor)
        };
        let (mut n_alone, mut n_pairs, mut n_inexact) = (0, 0, 0);
        for (column, worker_type) in throughputs.worker_types().enumerate() {
            let (table, apart) = (&json[worker_type], &json[format!("{worker_type}_unconsolidated")]);
            for row in throughputs.rows().ids() {
                let entry = &table[show(row)];
                let same = |a: Option<f64>, b: Option<f64>| a.map(f64::to_bits) == b.map(f64::to_bits);
                assert!(same(Some(throughputs.alone(row, column)), entry["null"].as_f64()));
                assert!(same(throughputs.spread(row, column), apart[show(row)]["null"].as_f64()));
                n_alone += 1;
                for other in throughputs.rows().ids() {
                    let published = entry[show(other)][0].as_f64().unwrap_or(0.0);
                    let ours = throughputs.colocated(row, other, column);
                    assert!((ours - published).abs() <= 3e-16 * published, "{ours} {published}");
                    n_pairs += usize::from(entry[show(other)].is_array());
                    n_inexact += usize::from(ours.to_bits() != published.to_bits());
                }
            }
        }
        assert_eq!((n_alone, n_pairs), (3 * 83, 3 * 1759));
        // One unit in the last place: no fraction gives these back exactly.
        assert!(n_inexact < 200, "{n_inexact}");
    }
}

#[test]
fn worker_types_come_fastest_first() {
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    assert_eq!(throughputs.worker_types().as_slice(), ["v100", "p100", "k80"]);
    assert_eq!(throughputs.rows().len(), 83);
    assert!(matches!(Throughputs::embedded("osdi21"), Err(ThroughputsError::Unknown { .. })));
}

#[test]
fn a_small_file_is_read_as_written() {
    let throughputs = Throughputs::try_new(read(SMALL).unwrap().measured).unwrap();
    let (a, b, fast) = ids(0, 1, 0);
    let (_, wide_b, slow) = ids(0, 2, 1);
    assert_eq!(throughputs.find("b", 2), Some(wide_b));
    assert_eq!([throughputs.alone(a, slow), throughputs.alone(b, slow)], [2.0, 0.0]);
    assert_eq!([throughputs.spread(a, fast), throughputs.spread(a, slow)], [Some(4.0), None]);
    let beside = |row, other| throughputs.colocated(row, other, fast);
    assert_eq!([beside(a, a), beside(a, b), beside(b, a), beside(b, b)], [2.0, 3.0, 2.0, 0.0]);
    assert_eq!(throughputs.colocated(a, b, slow), 0.0);
}

#[test]
fn a_file_and_what_is_written_of_it_read_alike() {
    let first = read(SMALL).unwrap();
    let text = write_throughputs(&first.header, &first.measured);
    let again = read(&text).unwrap();
    assert_eq!(write_throughputs(&again.header, &again.measured), text);
    let back = measured_of(&Throughputs::try_new(again.measured).unwrap());
    assert_eq!(write_throughputs(&first.header, &back), text);
}

#[test]
fn json_of_ours_is_not_taken_for_gavels() {
    let json = r#"{"format": "apportion/throughputs-v1", "name": "j", "unit": "steps/s",
        "worker_types": ["w"], "rows": [{"job_type": "a", "scale_factor": 1, "consolidated": [1.5]}]}"#;
    assert_eq!(read(json).unwrap().measured.consolidated, [[1.5]]);
}

#[test]
fn what_gavels_file_leaves_out_or_contradicts_is_said() {
    let file = read(ODD).unwrap();
    let count = |kind| file.findings.iter().find(|f| f.kind == kind).map_or(0, |f| f.count);
    let expected = [
        (FindingKind::MissingRow, 1),
        (FindingKind::CannotRun, 1),
        (FindingKind::MissingUnconsolidated, 5),
        (FindingKind::OrphanUnconsolidated, 1),
        (FindingKind::UnknownOther, 1),
        (FindingKind::MixedScaleFactors, 1),
        (FindingKind::OneSidedPair, 1),
        (FindingKind::AsymmetricPair, 1),
        (FindingKind::HalfPair, 1),
        (FindingKind::ColocatedOnly, 1),
        (FindingKind::UnconsolidatedPair, 1),
        (FindingKind::UnconsolidatedPairDiffers, 1),
    ];
    assert_eq!(expected.map(|(kind, _)| (kind, count(kind))), expected);
    let throughputs = Throughputs::try_new(file.measured).unwrap();
    assert_eq!(throughputs.worker_types().as_slice(), ["fast", "slow"]);
    let (a, b, slow) = ids(0, 1, 1);
    assert_eq!([throughputs.colocated(a, b, slow), throughputs.colocated(b, a, slow)], [0.5, 2.5]);
}

#[test]
fn bad_documents_are_refused_with_the_reason() {
    assert_complaint("", "");
    assert_complaint("\u{0}\u{1}\u{2}", "");
    assert_complaint("rows: []", "");
    let broken = |from: &str, to: &str| SMALL.replacen(from, to, 1);
    assert_complaint(&broken("throughputs-v1", "throughputs-v9"), "expected `apportion/throughputs-v1`");
    assert_complaint(&broken("steps/s", "samples/s"), "expected `steps/s`");
    assert_complaint(&broken("[fast, slow]", "[fast, fast]"), "named twice");
    assert_complaint(&broken("[4, 2]", "[4, 2, 1]"), "3 values, expected 2");
    assert_complaint(&broken("[4, 2]", "[4, -2]"), "-2, expected a finite number, at least 0");
    assert_complaint(&broken("[4, 2]", "[.nan, 2]"), "expected a finite number");
    assert_complaint(&broken("[4, 2]", "[four, 2]"), "");
    assert_complaint(&broken("job_type: b, scale_factor: 2", "job_type: b, scale_factor: 1"), "comes twice");
    assert_complaint(&broken("    fast:", "    rapid:"), "unknown worker type `rapid`");
    assert_complaint(&broken("beside: [0.5, 0.75]", "beside: [0.5]"), "1 values, expected 2");
    assert_complaint(&broken("scale_factor: 1, beside", "scale_factor: 4, beside"), "no row `a`");
    let beyond = broken("beside: [0.5, 0.75]", "beside: [0.5, 1.0e308]");
    let fault = read_throughputs(&Source::new("t", beyond), "t").unwrap_err().to_string();
    assert!(fault.contains(" steps/s, expected a part that leaves a finite number"), "{fault}");
    assert!(fault.starts_with("t:") && !fault.starts_with("t:0"), "{fault}");
    assert_complaint(&broken("model: measured", "model: telepathy"), "telepathy");
    assert_complaint(&broken("model: measured", "model: none"), "not read by this `model`");
    assert_complaint(&broken("model: measured", "model: network"), "no `network` section");
    assert_complaint(&broken("unit:", "units:"), "units");
    let row = |row| format!("  - {{job_type: j{row}, scale_factor: 1, consolidated: [1, 1]}}\n");
    let many: Vec<String> = (0..12_000).map(row).collect();
    assert_complaint(&broken("rows:\n", &format!("rows:\n{}", many.concat())), "expected at most");
}

#[test]
fn bad_gavel_files_are_refused_with_line_and_column() {
    let broken = |from: &str, to: &str| ODD.replacen(from, to, 1);
    assert_complaint(
        &broken("\"null\": 3.0", "\"null\": \"fast\""),
        "test:4:22: isolated throughput \"fast\"",
    );
    assert_complaint(&broken("\"null\": 3.0", "\"null\": -3.0"), "test:4:22: isolated throughput -3.0");
    assert_complaint(&broken("\"null\": 3.0, ", ""), "test:4:9: `('b', 1)`: no isolated throughput");
    assert_complaint(&broken("[2.5, 0.5]", "[2.5]"), "test:4:35: co-located throughputs [2.5]");
    assert_complaint(&broken("\"('b', 1)\": {\"null\": 3", "\"b\": {\"null\": 3"), "test:4:9: key `b`");
    assert_complaint(&ODD[..300], "test:");
    assert_complaint("{}", "no worker type");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = read(&text).map(|file| Throughputs::try_new(file.measured));
    }

    /// Some bytes of good documents are replaced, dropped or doubled.
    #[test]
    fn no_damage_makes_the_reader_panic(
        odd in any::<bool>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..8),
    ) {
        let mut bytes = if odd { ODD } else { SMALL }.as_bytes().to_vec();
        for (place, byte, kind) in edits {
            let at = place.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, byte),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(file) = read(&text) {
            let _ = Throughputs::try_new(file.measured);
        }
    }
}
