//! Prices in files: constant ones as a mapping, or a table over time as CSV, distinguished by the first line.
//!
//! | form     | example                                                                       |
//! |----------|-------------------------------------------------------------------------------|
//! | constant | `{v100: 2.48, k80: 0.45}`                                                     |
//! | long     | `time,worker_type,price`, then lines such as `0,v100,2.48` and `6h,v100,1.10` |
//! | wide     | `time,v100,k80`, then lines such as `0,2.48,0.45`; an empty cell is no change |
//!
//! Prices are $/h per worker, from 1e-9 to 1e9. Times are seconds from the start of the workload, or carry a unit, and ascend; each
//! price holds until the next of its worker type, and the first is that of time 0, so that no cost is unknown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cluster::PRICES;
use crate::spec::document::{Complaints, Unplaced};
use crate::spec::nearest::{name_list, suggestion};
use crate::spec::places::Place;
use crate::spec::trace::field::{Field, Range, split_commas};
use crate::spec::{Entries, Source, SpecError};
use crate::units::{DollarsPerWorkerHour, Seconds};

/// The expected beginning of a table, in words.
const HEADERS: &str = "expected `time,worker_type,price`, or `time` and a column for each worker type";

/// A change of a worker type's price, which is a re-computation event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceChange {
    /// The instant.
    pub at: Seconds,
    /// The worker type.
    pub worker_type: String,
    /// The price from then on.
    pub price: DollarsPerWorkerHour,
}

/// Prices at time 0, and their changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PriceSeries {
    /// The prices at time 0, by worker type.
    pub initial: Vec<(String, DollarsPerWorkerHour)>,
    /// The changes in order of time. Prices that stay are left out.
    pub changes: Vec<PriceChange>,
}

/// Reads a file of prices; `known` are the worker types that it may name.
///
/// # Errors
/// With line and column, for negative prices, unknown worker types, times that do not ascend, or no price at time 0.
pub fn read_prices(source: &Source, known: &[&str]) -> Result<PriceSeries, SpecError> {
    let mut lines = source.text.lines().enumerate().map(|(index, text)| (index + 1, text));
    let Some((number, first)) = lines.find(|(_, text)| !text.trim().is_empty()) else {
        let help = "expected {worker type: price, …}, or lines under a header `time,worker_type,price`";
        return Err(source.at(1, 1, "there are no prices".to_owned(), Some(help.to_owned())));
    };
    let is_table = source.name.to_ascii_lowercase().ends_with(".csv")
        || first.split(',').any(|name| name.trim() == "time");
    if !is_table {
        return constant(source, known);
    }
    let mut reader = Reader { source, known, complaints: Complaints::default(), rows: Vec::new() };
    if let Some(columns) = reader.header(number, first) {
        for (number, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
            reader.line(&columns, number, text);
        }
        if reader.rows.is_empty() && reader.complaints.is_empty() {
            reader.complain(Place { line: number, column: 1, width: 1 }, "no prices under this header", None);
        }
    }
    reader.finish()
}

/// Whether the text begins like a table of prices.
pub fn begins(source: &Source) -> bool {
    let first = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    first.split(',').any(|name| name.trim() == "time")
}

fn constant(source: &Source, known: &[&str]) -> Result<PriceSeries, SpecError> {
    let prices: Entries<f64> = source.parse()?;
    let mut complaints = Complaints::default();
    for (name, price) in prices.iter() {
        if !known.contains(&name) {
            complaints.push(|| Unplaced::unknown_worker_type(name, name, known.iter().copied()));
        } else if !PRICES.contains(price) {
            let message = not_believed(name, *price);
            complaints.push(|| Unplaced::at(name, message, None));
        }
    }
    source.all_at(complaints)?;
    let initial = prices.into_iter().map(|(name, price)| (name, DollarsPerWorkerHour::new(price)));
    Ok(PriceSeries { initial: initial.collect(), changes: Vec::new() })
}

/// The message about a worker type's price that is out of range.
pub(super) fn not_believed(name: &str, price: f64) -> String {
    let (least, most) = (PRICES.start(), PRICES.end());
    format!("{price:?} $/h for `{name}`, expected a number from {least:e} to {most:e}")
}

/// The columns of a table.
enum Columns {
    Long {
        time: usize,
        worker_type: usize,
        price: usize,
    },
    /// The worker type of each column; none for the time.
    Wide(Vec<Option<String>>),
}

/// One price of a table.
struct Row {
    at: Seconds,
    worker_type: String,
    price: f64,
    place: Place,
}

struct Reader<'a> {
    source: &'a Source,
    known: &'a [&'a str],
    complaints: Complaints,
    rows: Vec<Row>,
}

impl Reader<'_> {
    fn complain(&mut self, place: Place, message: impl Into<String>, help: Option<String>) {
        self.complaints.push(|| Unplaced::at_place(place, message, help));
    }

    fn fields<'t>(&mut self, number: usize, text: &'t str) -> Option<Vec<Field<'t>>> {
        split_commas(text, number).map_err(|(place, message)| self.complain(place, message, None)).ok()
    }

    fn header(&mut self, number: usize, text: &str) -> Option<Columns> {
        let fields = self.fields(number, text)?;
        let names: Vec<&str> = fields.iter().map(|field| field.text.trim()).collect();
        for (position, field) in fields.iter().enumerate() {
            if names[..position].contains(&names[position]) {
                self.complain(
                    field.place,
                    format!("column `{}` is there twice, expected once", field.brief()),
                    None,
                );
            }
        }
        let find = |name: &str| names.iter().position(|other| *other == name);
        let whole = Place { line: number, column: 1, width: text.chars().count() };
        let Some(time) = find("time") else {
            let meant = suggestion("time", names.iter().copied()).map(|_| "call the first column `time`");
            self.complain(whole, "no column `time`", Some(meant.unwrap_or(HEADERS).into()));
            return None;
        };
        let columns = match (find("worker_type"), find("price")) {
            (None, None) => {
                for (field, name) in fields.iter().zip(&names) {
                    if *name != "time" {
                        self.check_worker_type(field);
                    }
                }
                if names.len() == 1 {
                    self.complain(whole, "no column of prices", Some(HEADERS.into()));
                }
                let kinds = names.iter().map(|name| (*name != "time").then(|| (*name).to_owned()));
                Columns::Wide(kinds.collect())
            }
            (Some(worker_type), Some(price)) if names.len() == 3 => {
                Columns::Long { time, worker_type, price }
            }
            _ => {
                let message =
                    "expected the columns `time`, `worker_type` and `price`, or `time` and worker types";
                self.complain(whole, message, None);
                return None;
            }
        };
        self.complaints.is_empty().then_some(columns)
    }

    fn check_worker_type(&mut self, field: &Field<'_>) {
        let name = field.text.trim();
        if !self.known.contains(&name) {
            let list = name_list(self.known.iter().copied());
            let message = format!("unknown worker type `{}`, expected one of {list}", field.brief());
            self.complain(field.place, message, suggestion(name, self.known.iter().copied()));
        }
    }

    fn line(&mut self, columns: &Columns, number: usize, text: &str) {
        let Some(fields) = self.fields(number, text) else { return };
        let (n_columns, time) = match columns {
            Columns::Long { time, .. } => (3, *time),
            Columns::Wide(kinds) => (kinds.len(), kinds.iter().position(Option::is_none).unwrap_or(0)),
        };
        if fields.len() != n_columns {
            let message = format!("{} columns, expected {n_columns} as in the header", fields.len());
            self.complain(fields[fields.len() - 1].place, message, None);
            return;
        }
        let Some(at) = self.time(&fields[time]) else { return };
        match columns {
            Columns::Long { worker_type, price, .. } => {
                self.check_worker_type(&fields[*worker_type]);
                self.price(at, fields[*worker_type].text.trim(), &fields[*price]);
            }
            Columns::Wide(kinds) => {
                for (kind, field) in kinds.iter().zip(&fields) {
                    if let Some(kind) = kind.as_ref().filter(|_| !field.text.trim().is_empty()) {
                        self.price(at, kind, field);
                    }
                }
            }
        }
    }

    fn time(&mut self, field: &Field<'_>) -> Option<Seconds> {
        let Some(at) = Seconds::parse(&field.text) else {
            let message =
                format!("time `{}`, expected seconds from 0, or 90s, 30min, 2h or 3d", field.brief());
            self.complain(field.place, message, None);
            return None;
        };
        if let Some(before) = self.rows.last().map(|row| row.at)
            && at.total_cmp(&before).is_lt()
        {
            let message =
                format!("time {} comes after {}, expected times that ascend", at.get(), before.get());
            self.complain(field.place, message, Some("sort the file by time".to_owned()));
            return None;
        }
        Some(at)
    }

    fn price(&mut self, at: Seconds, worker_type: &str, field: &Field<'_>) {
        match field.number("price", Range::Price) {
            Ok(price) => {
                let worker_type = worker_type.to_owned();
                self.rows.push(Row { at, worker_type, price, place: field.place });
            }
            Err(message) => self.complain(field.place, message, None),
        }
    }

    fn finish(mut self) -> Result<PriceSeries, SpecError> {
        let mut series = PriceSeries::default();
        let mut last: BTreeMap<String, (Seconds, f64)> = BTreeMap::new();
        for Row { at, worker_type, price, place } in std::mem::take(&mut self.rows) {
            let before = last.insert(worker_type.clone(), (at, price));
            let value = DollarsPerWorkerHour::new(price);
            match before {
                None if at.get() > 0.0 => {
                    let message = format!(
                        "the first price of `{worker_type}` is of {} s, expected one of time 0",
                        at.get()
                    );
                    self.complain(place, message, None);
                }
                None => series.initial.push((worker_type, value)),
                Some((before, _)) if before.total_cmp(&at).is_eq() => {
                    let message =
                        format!("a second price of `{worker_type}` at {} s, expected one", at.get());
                    self.complain(place, message, None);
                }
                Some((_, before)) if before.total_cmp(&price).is_eq() => {}
                Some(_) => series.changes.push(PriceChange { at, worker_type, price: value }),
            }
        }
        self.source.all_at(self.complaints)?;
        Ok(series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PriceSeries, String> {
        read_prices(&Source::new("prices.csv", text), &["v100", "k80"]).map_err(|error| error.to_string())
    }

    #[test]
    fn long_and_wide_tables_say_the_same() {
        let long = "time,worker_type,price\n0,v100,2\n0,k80,0.5\n1h,v100,1\n2h,v100,1\n2h,k80,3\n";
        let wide = "v100,time,k80\n2,0,0.5\n\n1,3600,\n1,7200,3\n";
        let series = read(long).unwrap();
        assert_eq!(series, read(wide).unwrap());
        let price = DollarsPerWorkerHour::new;
        assert_eq!(series.initial, [("v100".to_owned(), price(2.0)), ("k80".to_owned(), price(0.5))]);
        let change = |hours: f64, worker_type: &str, dollars| PriceChange {
            at: Seconds::new(3600.0 * hours),
            worker_type: worker_type.to_owned(),
            price: price(dollars),
        };
        assert_eq!(series.changes, [change(1.0, "v100", 1.0), change(2.0, "k80", 3.0)]);
    }

    #[test]
    fn constant_prices_are_a_mapping() {
        let read = |text: &str| {
            read_prices(&Source::new("prices.yaml", text), &["v100", "k80"])
                .map_err(|error| error.to_string())
        };
        let series = read("{v100: 2.48, k80: 0.45}").unwrap();
        assert_eq!(series.initial.len(), 2);
        assert_eq!(series.changes, []);
        assert!(read("v100: 2\nk8: 1\n").unwrap_err().starts_with("prices.yaml:2:1: "));
        assert!(read("v100: -2\n").unwrap_err().starts_with("prices.yaml:1:7: -2.0 $/h"));
    }

    #[test]
    fn faults_are_told_with_line_and_column() {
        let head = "time,worker_type,price\n0,v100,2\n";
        for (text, expected) in [
            (
                format!("{head}60,v100,-1\n"),
                "prices.csv:3:9: price `-1`, expected a number of $/h from 1e-9 to 1e9",
            ),
            (
                format!("{head}60,v10,1\n"),
                "prices.csv:3:4: unknown worker type `v10`, expected one of `v100`, `k80`",
            ),
            (
                format!("{head}60,v100,1\n30,v100,2\n"),
                "prices.csv:4:1: time 30 comes after 60, expected times that ascend",
            ),
            (
                format!("{head}soon,v100,1\n"),
                "prices.csv:3:1: time `soon`, expected seconds from 0, or 90s, 30min, 2h or 3d",
            ),
            (format!("{head}0,v100,1\n"), "prices.csv:3:8: a second price of `v100` at 0 s, expected one"),
            (
                format!("{head}60,k80,1\n"),
                "prices.csv:3:8: the first price of `k80` is of 60 s, expected one of time 0",
            ),
            (format!("{head}60,v100\n"), "prices.csv:3:4: 2 columns, expected 3 as in the header"),
            (
                "time,v1000\n0,1\n".into(),
                "prices.csv:1:6: unknown worker type `v1000`, expected one of `v100`, `k80`",
            ),
            ("tiem,v100\n0,1\n".into(), "prices.csv:1:1: no column `time`"),
            ("time,v100\n".into(), "prices.csv:1:1: no prices under this header"),
            (String::new(), "prices.csv:1:1: there are no prices"),
        ] {
            let error = read(&text).unwrap_err();
            assert_eq!(error.lines().next(), Some(expected), "{text:?}");
        }
        for text in ["hour,v100\n0,1\n", "time\n0\n"] {
            let error = read_prices(&Source::new("prices.csv", text), &["v100", "k80"]).unwrap_err();
            assert_eq!(error.diagnostics[0].help.as_deref(), Some(HEADERS), "{text:?}");
        }
    }
}
