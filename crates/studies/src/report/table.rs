//! Tables: aligned for people, as CSV and JSON objects for programs.

use std::fmt::Write as _;

use super::plain::{broken, plain};
use apportion::units::Decimals;

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words, aligned left.
    Text(String),
    /// A number with a fixed number of decimals for people and in full for programs, aligned right.
    Number(f64, usize),
    /// A number of any size, with its exponent for people and in full for programs, aligned right.
    Scientific(f64),
    /// A whole number, aligned right.
    Count(u64),
    /// An empty cell.
    Empty,
}

impl Cell {
    pub(super) fn for_people(&self) -> String {
        match self {
            Self::Text(text) => plain(text).into_owned(),
            Self::Number(value, n_decimals) => Decimals(*value, *n_decimals).to_string(),
            Self::Scientific(value) => format!("{value:.2e}"),
            Self::Count(value) => value.to_string(),
            Self::Empty => "-".to_owned(),
        }
    }

    fn for_programs(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(value, _) | Self::Scientific(value) => value.to_string(),
            Self::Empty => String::new(),
            Self::Count(_) => self.for_people(),
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Number(value, _) | Self::Scientific(value) => (*value).into(),
            Self::Count(value) => (*value).into(),
            Self::Empty => serde_json::Value::Null,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A table of columns and rows.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has another number of cells than there are columns.
    pub fn push(&mut self, row: Vec<Cell>) {
        assert_eq!(row.len(), self.columns.len(), "a row has one cell per column");
        self.rows.push(row);
    }

    /// Names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Rows, each with one cell per column.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// Text for people: columns aligned, two spaces apart.
    pub fn aligned(&self) -> String {
        self.aligned_within(None, 0)
    }

    /// The table for people: columns aligned, two spaces apart, within `width` letters if it is given. Columns without room go
    /// into blocks below, each of which begins with the first `n_heads` columns. Words that are wider than a block go on in lines below.
    /// A block has one column beside its first at least, however wide that is.
    pub fn aligned_within(&self, width: Option<usize>, n_heads: usize) -> String {
        let cells: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(Cell::for_people).collect()).collect();
        let heads: Vec<String> = self.columns.iter().map(|name| plain(name).into_owned()).collect();
        let widest = |column: usize| {
            let widths = cells.iter().map(|row| row[column].chars().count());
            widths.chain([heads[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(widest).collect();
        let columns: Vec<(usize, bool)> =
            widths.into_iter().enumerate().map(|(column, width)| (width, !self.has_text(column))).collect();
        let blocks = blocks(&columns, width.unwrap_or(usize::MAX), n_heads);
        let lines = |block: &Vec<Column>| -> String {
            let lines = std::iter::once(&heads).chain(&cells);
            lines.map(|line| aligned_lines(line, block)).collect()
        };
        blocks.iter().map(lines).collect::<Vec<_>>().join("\n")
    }

    fn has_text(&self, column: usize) -> bool {
        self.rows.iter().any(|row| matches!(row[column], Cell::Text(_)))
    }

    /// Text for programs: comma-separated, with a header line first.
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let written = writer.write_record(&self.columns).and_then(|()| {
            self.rows.iter().try_for_each(|row| writer.write_record(row.iter().map(Cell::for_programs)))
        });
        debug_assert!(written.is_ok(), "memory takes every record of the right length");
        String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
    }

    /// JSON objects for programs: one per row, keyed by column.
    pub fn objects(&self) -> Vec<serde_json::Map<String, serde_json::Value>> {
        let object = |row: &Vec<Cell>| self.columns.iter().cloned().zip(row.iter().map(Cell::json)).collect();
        self.rows.iter().map(object).collect()
    }
}

/// The fewest letters in a line of words that continue below.
const WORDS_MIN: usize = 16;

/// A column of a block.
#[derive(Clone, Copy, Debug)]
struct Column {
    /// Position in the table.
    place: usize,
    /// Width in letters.
    width: usize,
    /// Whether its cells are aligned right.
    is_right: bool,
}

/// The cells of one row in a block; words that are wider than their column go on below.
fn aligned_lines(row: &[String], block: &[Column]) -> String {
    let cell = |column: &Column| {
        let text = &row[column.place];
        if text.chars().count() > column.width { broken(text, column.width) } else { vec![text.clone()] }
    };
    let cells: Vec<Vec<String>> = block.iter().map(cell).collect();
    let n_lines = cells.iter().map(Vec::len).max().unwrap_or(0);
    let mut aligned = String::new();
    for line in 0..n_lines {
        for (position, (column, cell)) in block.iter().zip(&cells).enumerate() {
            let text = cell.get(line).map_or("", String::as_str);
            let padding = " ".repeat(column.width.saturating_sub(text.chars().count()));
            let (before, after) =
                if column.is_right { (padding.as_str(), "") } else { ("", padding.as_str()) };
            let gap = if position == 0 { "" } else { "  " };
            let _ = write!(aligned, "{gap}{before}{text}{after}");
        }
        aligned.truncate(aligned.trim_end_matches(' ').len());
        aligned.push('\n');
    }
    aligned
}

/// The columns of each block of a wide table, from the width and the side of every column: each block repeats the first `n_heads`
/// columns, then has as many others as fit into `width` letters.
fn blocks(columns: &[(usize, bool)], width: usize, n_heads: usize) -> Vec<Vec<Column>> {
    let column = |(place, (width, is_right)): (usize, &(usize, bool))| Column {
        place,
        width: *width,
        is_right: *is_right,
    };
    let heads: Vec<Column> = columns.iter().enumerate().take(n_heads).map(column).collect();
    let of_heads: usize = heads.iter().map(|head| head.width + 2).sum();
    let mut blocks = vec![heads.clone()];
    let mut taken = of_heads;
    for mut column in columns.iter().enumerate().map(column).skip(heads.len()) {
        let is_words = !column.is_right && of_heads.saturating_add(column.width) > width;
        let needed = if is_words { WORDS_MIN.min(column.width) } else { column.width };
        let last = blocks.len() - 1;
        if blocks[last].len() > heads.len() && taken.saturating_add(needed) > width {
            blocks.push(heads.clone());
            taken = of_heads;
        }
        if is_words {
            column.width = width.saturating_sub(taken).max(needed);
        }
        taken += column.width + 2;
        let last = blocks.len() - 1;
        blocks[last].push(column);
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["policy", "rate", "jct"]);
        table.push(vec!["fifo, plain".into(), Cell::Number(0.4, 1), Cell::Number(12.346, 2)]);
        table.push(vec!["isolated".into(), Cell::Number(10.0, 1), Cell::Empty]);
        table.push(vec!["las".into(), Cell::Number(-1e-9, 1), Cell::Number(-0.002, 2)]);
        table
    }

    #[test]
    fn people_get_aligned_columns() {
        let expected = "\
policy          rate     jct
fifo, plain      0.4   12.35
isolated        10.0       -
las          -1.0e-9  -0.002
";
        assert_eq!(table().aligned(), expected);
    }

    #[test]
    fn what_has_no_room_goes_into_blocks_below() {
        let mut table = Table::new(["policy", "0.5", "1", "1.5"]);
        table.push(vec!["fifo".into(), Cell::Count(10), Cell::Count(20), Cell::Count(30_000)]);
        table.push(vec!["isolated".into(), Cell::Count(1), Cell::Empty, Cell::Count(3)]);
        let first = "policy    0.5   1\nfifo       10  20\nisolated    1   -\n";
        let second = "policy      1.5\nfifo      30000\nisolated      3\n";
        for width in [17, 18, 23] {
            assert_eq!(table.aligned_within(Some(width), 1), format!("{first}\n{second}"), "{width}");
        }
        assert_eq!(table.aligned_within(Some(24), 1), table.aligned());
        let narrow = table.aligned_within(Some(3), 1);
        assert_eq!(narrow.lines().filter(|line| line.starts_with("policy")).count(), 3, "{narrow}");
        assert_eq!(Table::new(["policy"]).aligned_within(Some(3), 1), "policy\n");
    }

    #[test]
    fn words_that_are_wider_than_a_block_go_on_below() {
        let mut table = Table::new(["policy", "kind", "summary"]);
        table.push(vec!["fifo".into(), "rule".into(), "first come, first served".into()]);
        let expected = "\
policy  kind  summary
fifo    rule  first come,
              first served
";
        assert_eq!(table.aligned_within(Some(30), 1), expected);
        assert_eq!(table.aligned_within(Some(38), 1), table.aligned());
        assert_eq!(table.aligned_within(None, 1), table.aligned());
        let below =
            "policy  kind\nfifo    rule\n\npolicy  summary\nfifo    first come, first\n        served\n";
        assert_eq!(table.aligned_within(Some(29), 1), below);
    }

    #[test]
    fn an_id_makes_no_row_of_its_own_for_people_and_is_whole_for_programs() {
        let mut table = Table::new(["id\u{1b}[31m"]);
        table.push(vec!["a\nfake".into()]);
        assert_eq!(table.aligned(), "id\\u{1b}[31m\na\\nfake\n");
        assert_eq!(table.csv(), "id\u{1b}[31m\n\"a\nfake\"\n");
        assert_eq!(serde_json::json!(table.objects())[0]["id\u{1b}[31m"], "a\nfake");
    }

    #[test]
    fn programs_get_every_digit() {
        assert_eq!(
            table().csv(),
            "policy,rate,jct\n\"fifo, plain\",0.4,12.346\nisolated,10,\nlas,-0.000000001,-0.002\n"
        );
        let objects = serde_json::to_string(&table().objects()).unwrap();
        assert!(objects.contains(r#"{"policy":"fifo, plain","rate":0.4,"jct":12.346}"#), "{objects}");
        assert!(objects.contains(r#""jct":null"#), "{objects}");
    }
}
