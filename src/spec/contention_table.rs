//! Tables of measured contention: CSV in which rows and columns are configurations and a cell is the fraction of
//! its isolated throughput that the row's keeps beside the column's.
//!
//! ```text
//! ,"MoE,8,2","FSDP,8,2"
//! "MoE,8,2",0.51,0.43
//! "FSDP,8,2",0.66,
//! ```
//!
//! A configuration is a job type, its workers and the servers they are on; an empty cell was not measured.

use crate::spec::snapshot::NUMBER_MIN;
use crate::spec::{Source, SpecError};
use crate::throughput::contention::network::{Configuration, MeasuredRow};

/// Reads such a table.
///
/// # Errors
/// With the line and, if there is one, the cell, if the text is not such a table.
pub fn read_contention_table(source: &Source) -> Result<Vec<MeasuredRow>, SpecError> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(source.text.as_bytes());
    let mut columns: Option<Vec<Configuration>> = None;
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| {
            let line = error.position().map_or(1, csv::Position::line);
            source.at(to_line(line), 1, format!("not CSV: {error}"), None)
        })?;
        let line = to_line(record.position().map_or(1, csv::Position::line));
        let complain = |message: String| source.at(line, 1, message, None);
        let Some(columns) = &columns else {
            let head = record.iter().skip(1).map(|cell| configuration(cell).map_err(complain));
            columns = Some(head.collect::<Result<_, _>>()?);
            continue;
        };
        let job = configuration(&record[0]).map_err(complain)?;
        if columns.get(rows.len()) != Some(&job) {
            let place = rows.len() + 1;
            return Err(complain(format!(
                "row {place} is `{}`, expected the configuration of column {place}",
                &record[0]
            )));
        }
        if record.len() != columns.len() + 1 {
            return Err(complain(format!("{} cells, expected {}", record.len(), columns.len() + 1)));
        }
        let fractions = record.iter().skip(1).map(|cell| fraction(cell).map_err(complain));
        rows.push(MeasuredRow { job, beside: fractions.collect::<Result<_, _>>()? });
    }
    let n_columns = columns.map_or(0, |columns| columns.len());
    if rows.len() == n_columns && n_columns > 0 {
        Ok(rows)
    } else {
        let message =
            format!("{} rows and {n_columns} columns, expected as many of both, at least 1", rows.len());
        Err(SpecError::about(source.name.clone(), message, None))
    }
}

fn to_line(line: u64) -> usize {
    usize::try_from(line).unwrap_or(usize::MAX)
}

/// A configuration from `MoE,8,2`: the last two are workers and servers.
fn configuration(text: &str) -> Result<Configuration, String> {
    let complaint = || format!("`{text}`, expected `JOB TYPE,WORKERS,SERVERS` such as `MoE,8,2`");
    let mut parts = text.rsplitn(3, ',').map(str::trim);
    let mut number = || parts.next()?.parse().ok().filter(|count: &u32| *count > 0);
    let (servers, workers) = (number(), number());
    match (parts.next(), workers, servers) {
        (Some(job_type), Some(workers), Some(servers)) if !job_type.is_empty() && servers <= workers => {
            Ok(Configuration { job_type: job_type.to_owned(), workers, servers })
        }
        _ => Err(complaint()),
    }
}

fn fraction(text: &str) -> Result<Option<f64>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let value = text.parse().ok().filter(|value: &f64| *value >= NUMBER_MIN && *value <= 1.0);
    value
        .map(Some)
        .ok_or_else(|| format!("`{text}`, expected a fraction from {NUMBER_MIN:e} to 1, or nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<MeasuredRow>, String> {
        read_contention_table(&Source::new("table.csv", text)).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_are_read_with_their_gaps() {
        let rows =
            read(",\"MoE,8,2\",\"A, large,4,4\"\n\"MoE,8,2\",0.51,0.43\n\"A, large,4,4\",1,\n").unwrap();
        assert_eq!(rows[1].job, Configuration { job_type: "A, large".to_owned(), workers: 4, servers: 4 });
        assert_eq!(rows[0].beside, [Some(0.51), Some(0.43)]);
        assert_eq!(rows[1].beside, [Some(1.0), None]);
    }

    #[test]
    fn faults_are_told_with_their_line() {
        for (text, expected) in [
            ("", "table.csv: 0 rows and 0 columns, expected as many of both, at least 1"),
            (",\"A,2\"\n", "table.csv:1:1: `A,2`, expected `JOB TYPE,WORKERS,SERVERS` such as `MoE,8,2`"),
            (
                ",\"A,2,2\"\n\"A,2,2\",1.5\n",
                "table.csv:2:1: `1.5`, expected a fraction from 1e-100 to 1, or nothing",
            ),
            (
                ",\"A,2,2\"\n\"B,2,2\",0.5\n",
                "table.csv:2:1: row 1 is `B,2,2`, expected the configuration of column 1",
            ),
            (",\"A,2,2\"\n\"A,2,2\"\n", "table.csv:2:1: 1 cells, expected 2"),
            (",\"A,2,4\"\n", "table.csv:1:1: `A,2,4`, expected `JOB TYPE,WORKERS,SERVERS` such as `MoE,8,2`"),
        ] {
            assert_eq!(read(text).unwrap_err(), expected, "{text:?}");
        }
    }
}
