//! What a chart shows, apart from how it is drawn: the page draws it with Vega-Lite, [`svg`](super::svg) as a file.

use serde::Serialize;

use super::table::{Cell, Table};

/// Colours that people with any colour vision tell apart: Okabe and Ito, *Color Universal Design* (2008), less
/// yellow, which is faint on white.
pub const PALETTE: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333"];

/// How an axis runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By factors; all values are positive.
    Log,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Axis {
    /// What it shows, with its unit.
    pub title: String,
    /// How it runs.
    pub scale: Scale,
    /// Starts at zero.
    pub zero: bool,
    /// Shows the time of a simulation, and what part of it the reader has chosen.
    #[serde(skip_serializing_if = "is_false")]
    pub time: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(is: &bool) -> bool {
    !is
}

impl Axis {
    /// A linear axis that starts where the values do.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// The same, of the time of a simulation.
    #[must_use]
    pub fn of_time(self) -> Self {
        Self { time: true, ..self }
    }

    /// The same, from zero.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self { zero: true, ..self }
    }

    /// The same by factors if the values are positive and spread over more than a factor of ten; else from zero.
    #[must_use]
    pub fn fitted(self, values: impl Iterator<Item = f64> + Clone) -> Self {
        let min = values.clone().min_by(f64::total_cmp).unwrap_or(0.0);
        let max = values.max_by(f64::total_cmp).unwrap_or(0.0);
        if min > 0.0 && max / min > 10.0 { Self { scale: Scale::Log, ..self } } else { self.from_zero() }
    }
}

impl Axis {
    /// The same by factors if the places on it are.
    #[must_use]
    pub fn fitted_to_places(self, places: &[f64]) -> Self {
        match (places.first(), places.last()) {
            (Some(first), Some(last)) if *first > 0.0 && last / first > 30.0 => {
                Self { scale: Scale::Log, ..self }
            }
            _ => self,
        }
    }
}

/// A value and the range about it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// Along the axis of positions; 0 for bars.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The range's lower end, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Its upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Repetitions behind the value; 0 where that says nothing.
    #[serde(skip_serializing_if = "is_zero")]
    pub n: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// A line, or the bars of one colour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Which colour and shape: the same number looks the same in all charts of a page.
    pub style: usize,
    /// Its marks, ascending in x; for bars one a row, or none.
    pub marks: Vec<Option<Mark>>,
}

/// A place where a series has no value, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Absent {
    /// Which series, by position.
    pub series: usize,
    /// Where.
    pub x: f64,
    /// `saturated`, `2 of 3 failed`.
    pub why: String,
}

/// A line of more marks than this is drawn without a point at each.
pub const POINTS_SHOWN_MAX: usize = 60;

/// How the values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Lines through points, ranges as bands.
    Lines,
    /// Steps that go up after each point: distribution functions.
    Steps,
    /// Horizontal bars, a group of them a row, ranges as whiskers.
    Bars,
}

/// A chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// The stem of its files' names, unique in its page.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// What holds for all of it.
    pub subtitle: String,
    /// How it is drawn.
    pub kind: Kind,
    /// The horizontal axis; for bars that of the values.
    pub x: Axis,
    /// The vertical axis; for bars the title of the rows.
    pub y: Axis,
    /// Rows of bars with their styles; empty for other kinds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<(String, usize)>,
    /// What is shown.
    pub series: Vec<Series>,
    /// What cannot be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Absent>,
}

impl Chart {
    /// Has it anything to show?
    pub fn is_empty(&self) -> bool {
        self.absent.is_empty() && self.series.iter().all(|series| series.marks.iter().all(Option::is_none))
    }

    /// What it shows, for programs.
    pub fn table(&self) -> Table {
        let is_bars = self.kind == Kind::Bars;
        let first = if is_bars { &self.y.title } else { &self.x.title };
        let value = if is_bars { &self.x.title } else { &self.y.title };
        let mut table = Table::new(["series", first, value, "low", "high", "n", "missing"]);
        let number = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::Number(value, 6));
        for series in &self.series {
            for (position, mark) in series.marks.iter().enumerate() {
                let Some(mark) = mark else { continue };
                let place = match self.rows.get(position) {
                    Some((row, _)) if is_bars => Cell::from(row.as_str()),
                    _ => Cell::Number(mark.x, 6),
                };
                let n = if mark.n == 0 { Cell::Empty } else { Cell::Count(mark.n as u64) };
                let (y, low, high) = (number(Some(mark.y)), number(mark.low), number(mark.high));
                table.push(vec![series.name.as_str().into(), place, y, low, high, n, Cell::Empty]);
            }
        }
        for absent in &self.absent {
            let name = self.series.get(absent.series).map_or("", |series| series.name.as_str());
            let (x, why) = (Cell::Number(absent.x, 6), absent.why.as_str().into());
            table.push(vec![name.into(), x, Cell::Empty, Cell::Empty, Cell::Empty, Cell::Empty, why]);
        }
        table
    }
}

/// A chart, or several of one kind among which the reader chooses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// What is chosen among: `rate (jobs/h)`; nothing if there is one chart.
    pub choice: String,
    /// The charts, each with its label in the choice.
    pub variants: Vec<(String, Chart)>,
    /// The one shown first.
    pub first: usize,
    /// How to read it.
    pub note: String,
}
