//! Content of a chart, independent of how it is drawn: the page draws it with Vega-Lite, [`svg`](super::svg) as a file.

use apportion::metrics::statistics::{Repeated, Spread};
use serde::Serialize;

use super::number::six_digits;
use super::table::{Cell, Table};

/// Colours that people with any colour vision tell apart: Okabe and Ito, *Color Universal Design* (2008), less
/// yellow, which is faint on white.
pub const PALETTE: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333"];

/// Shape of a point, by its name in Vega.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// A disc.
    Circle,
    /// A triangle on its base.
    TriangleUp,
    /// A square on its side.
    Square,
    /// A square on its corner.
    Diamond,
    /// A triangle on its tip.
    TriangleDown,
}

const SHAPES: [Shape; 5] =
    [Shape::Circle, Shape::TriangleUp, Shape::Square, Shape::Diamond, Shape::TriangleDown];

/// Number of styles that differ in colour or shape already.
pub const POINTS: usize = PALETTE.len() * SHAPES.len();

/// Look of a series: no two styles have both colour and dashes in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Look {
    /// Colour of the series, one of [`PALETTE`].
    pub colour: &'static str,
    /// Shape of its points.
    pub shape: Shape,
    /// Lengths of the strokes and gaps of its line, in turn, in pixels; empty for a solid line.
    pub dash: Vec<u32>,
}

impl Look {
    /// The look of a style. Lines of the first seven are solid; where colours come again, points and dashes differ.
    pub fn of(style: usize) -> Self {
        let cycle = style / PALETTE.len();
        let dash = match cycle {
            0 => Vec::new(),
            1 => vec![7, 4],
            2 => vec![2, 3],
            // The dashes are a long stroke, followed by a number of dots.
            cycle => [vec![12, 3], [2, 3].repeat(cycle - 2)].concat(),
        };
        Self { colour: PALETTE[style % PALETTE.len()], shape: SHAPES[(style + cycle) % SHAPES.len()], dash }
    }
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal distances are equal differences.
    #[default]
    Linear,
    /// Equal distances are equal factors; all values are positive.
    Log,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Axis {
    /// Title of the axis, with its unit.
    pub title: String,
    /// Scale of the axis.
    pub scale: Scale,
    /// Whether it starts at zero.
    pub zero: bool,
    /// Whether it shows the time of a simulation, with the part that the reader has chosen.
    #[serde(skip_serializing_if = "is_false")]
    pub time: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(is: &bool) -> bool {
    !is
}

impl Axis {
    /// A linear axis that starts at the least value.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// This axis as the time of a simulation.
    #[must_use]
    pub fn of_time(self) -> Self {
        Self { time: true, ..self }
    }

    /// This axis starting at zero.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self { zero: true, ..self }
    }

    /// This axis with a log scale if the values are positive and spread over more than a factor of ten; else from zero.
    #[must_use]
    pub fn fitted(self, values: impl Iterator<Item = f64> + Clone) -> Self {
        let min = values.clone().min_by(f64::total_cmp).unwrap_or(0.0);
        let max = values.max_by(f64::total_cmp).unwrap_or(0.0);
        if min > 0.0 && max / min > 10.0 { Self { scale: Scale::Log, ..self } } else { self.from_zero() }
    }
}

impl Axis {
    /// This axis with a log scale if the places on it are positive and spread over more than a factor of 30.
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

/// A value and the range about it: one standard deviation down and up, over repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// Position on the axis of places; 0 for bars.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Lower end of the range, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the range, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Number of repetitions behind the value; 0 where it has no meaning.
    #[serde(skip_serializing_if = "is_zero")]
    pub n: usize,
    /// Number of repetitions there should be, where some are missing. Such a mark is hollow, and no line leads to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_of: Option<usize>,
}

impl Mark {
    /// A value without a range.
    pub fn at(x: f64, y: f64) -> Self {
        Self { x: six_digits(x), y: six_digits(y), low: None, high: None, n: 0, n_of: None }
    }

    /// The mean of values in units of `scale`, with one standard deviation down and up, but not below zero.
    pub fn of(spread: &Spread, x: f64, scale: f64) -> Self {
        let (mean, deviation) = (spread.mean / scale, spread.deviation.map(|deviation| deviation / scale));
        let low = deviation.map(|deviation| mean - deviation);
        let low = low.map(|low| if mean >= 0.0 { low.max(0.0) } else { low });
        let high = deviation.map(|deviation| mean + deviation);
        Self { low: low.map(six_digits), high: high.map(six_digits), n: spread.n, ..Self::at(x, mean) }
    }

    /// The mean of repetitions in units of `scale`, with one standard deviation down and up; if some are missing, the
    /// mean of the others, without a range.
    pub fn of_repeated(repeated: &Repeated, x: f64, scale: f64) -> Self {
        if let Some(spread) = repeated.whole() {
            return Self::of(&spread, x, scale);
        }
        let there = repeated.there();
        Self { n: there.n, n_of: Some(repeated.n_of()), ..Self::at(x, there.mean / scale) }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// A line, or the bars of one colour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Number of its colour and shape, which look the same in all charts of a page.
    pub style: usize,
    /// Marks in ascending order of x; for bars one per row, or none.
    pub marks: Vec<Option<Mark>>,
}

impl Series {
    /// Runs of marks that lines connect: without gaps and hollow marks.
    pub fn pieces(&self) -> Vec<Vec<Mark>> {
        let is_gap = |mark: &Option<Mark>| mark.is_none_or(|mark| mark.n_of.is_some());
        let pieces = self.marks.split(is_gap).map(|piece| piece.iter().flatten().copied().collect());
        pieces.filter(|piece: &Vec<Mark>| !piece.is_empty()).collect()
    }
}

/// A place where a series has no value over all repetitions, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Absent {
    /// Position of the series.
    pub series: usize,
    /// Position on the x axis.
    pub x: f64,
    /// Reason: `saturated`, `2 of 3 failed`.
    pub why: String,
}

/// The most series that are all drawn with their ranges; of more, only selected ones are.
pub const BANDS_MAX: usize = 6;

/// The most marks of a line that is drawn with a point at each.
pub const POINTS_SHOWN_MAX: usize = 60;

/// Kind of drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Lines through points, with ranges as bands, or as whiskers where a band has no width.
    Lines,
    /// Steps that go up after each point, for distribution functions.
    Steps,
    /// Horizontal bars, a group of them per row, with ranges as whiskers.
    Bars,
}

/// Columns of a chart's table: the value is that of all repetitions, or else in the last column that of those there.
pub const HEADS: [&str; 9] =
    ["series", "place", "value", "low", "high", "n", "missing", "n_of", "value of n of n_of"];

/// A chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// Stem of its files' names, unique in its page.
    pub name: String,
    /// The title.
    pub title: String,
    /// Subtitle: properties that all series share.
    pub subtitle: String,
    /// Kind of drawing.
    pub kind: Kind,
    /// Horizontal axis; for bars that of the values.
    pub x: Axis,
    /// Vertical axis; for bars the title of the rows.
    pub y: Axis,
    /// Rows of bars with their styles; empty for other kinds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<(String, usize)>,
    /// The series that are shown.
    pub series: Vec<Series>,
    /// Values that cannot be shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<Absent>,
    /// Published values: rings in the colours of the series of these styles, without lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Series>,
}

impl Chart {
    /// Whether there is a value with missing repetitions.
    pub fn has_hollow(&self) -> bool {
        self.series.iter().flat_map(|series| series.marks.iter().flatten()).any(|mark| mark.n_of.is_some())
    }

    /// Whether it has nothing to show.
    pub fn is_empty(&self) -> bool {
        self.absent.is_empty() && self.series.iter().all(|series| series.marks.iter().all(Option::is_none))
    }

    /// The values that the chart shows as a table, for programs.
    pub fn table(&self) -> Table {
        let is_bars = self.kind == Kind::Bars;
        let first = if is_bars { &self.y.title } else { &self.x.title };
        let value = if is_bars { &self.x.title } else { &self.y.title };
        let mut table = Table::new(HEADS.map(|head| match head {
            "place" => first.as_str(),
            "value" => value.as_str(),
            other => other,
        }));
        let number = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::Number(value, 6));
        for series in &self.series {
            for (position, mark) in series.marks.iter().enumerate() {
                let Some(mark) = mark else { continue };
                let place = match self.rows.get(position) {
                    Some((row, _)) if is_bars => Cell::from(row.as_str()),
                    _ => Cell::Number(mark.x, 6),
                };
                let n = if mark.n == 0 { Cell::Empty } else { Cell::Count(mark.n as u64) };
                let (low, high) = (number(mark.low), number(mark.high));
                let y = number(Some(mark.y).filter(|_| mark.n_of.is_none()));
                let of_those = number(mark.n_of.map(|_| mark.y));
                let n_of = mark.n_of.map_or_else(|| n.clone(), |n_of| Cell::Count(n_of as u64));
                let name = series.name.as_str().into();
                table.push(vec![name, place, y, low, high, n, Cell::Empty, n_of, of_those]);
            }
        }
        for series in &self.published {
            for Mark { x, y, .. } in series.marks.iter().flatten() {
                let name = format!("{} (published)", series.name).into();
                let mut row = vec![name, Cell::Number(*x, 6), Cell::Number(*y, 6)];
                row.resize(HEADS.len(), Cell::Empty);
                table.push(row);
            }
        }
        for absent in &self.absent {
            let name = self.series.get(absent.series).map_or("", |series| series.name.as_str());
            let (x, why) = (Cell::Number(absent.x, 6), absent.why.as_str().into());
            let none = || Cell::Empty;
            table.push(vec![name.into(), x, none(), none(), none(), none(), why, none(), none()]);
        }
        table
    }
}

/// A chart, or several of one kind from which the reader chooses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Name of the choice: `rate (jobs/h)`; empty if there is one chart.
    pub choice: String,
    /// Charts, each with its label in the choice.
    pub variants: Vec<(String, Chart)>,
    /// Position of the chart that is shown first.
    pub first: usize,
    /// Explanation for the reader.
    pub note: String,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_of_many_series_look_the_same() {
        let looks: Vec<Look> = (0..400).map(Look::of).collect();
        let pairs: BTreeSet<_> = looks.iter().map(|look| (look.colour, &look.dash)).collect();
        assert_eq!(pairs.len(), looks.len(), "lines without points are told apart");
        let points: BTreeSet<_> = looks[..POINTS].iter().map(|look| (look.colour, look.shape)).collect();
        assert_eq!(points.len(), POINTS);
        assert!(looks[..7].iter().all(|look| look.dash.is_empty()));
        assert_eq!(serde_json::to_string(&looks[8].shape).unwrap(), "\"triangle-down\"");
    }

    #[test]
    fn a_mean_without_all_its_seeds_is_no_value() {
        let mark = |values: &[f64], x| Mark::of_repeated(&Repeated::of(values, 3).unwrap(), x, 1.0);
        let marks =
            [Some(mark(&[1.0, 2.0, 3.0], 1.0)), Some(mark(&[9.0, 11.0], 2.0)), Some(mark(&[4.0; 3], 3.0))];
        let [whole, part, _] = marks.map(Option::unwrap);
        assert_eq!((whole.y, whole.low, whole.high, whole.n_of), (2.0, Some(1.0), Some(3.0), None));
        assert_eq!((part.y, part.low, part.n, part.n_of), (10.0, None, 2, Some(3)));
        let series = Series { name: "p".to_owned(), style: 0, marks: marks.to_vec() };
        let pieces: Vec<usize> = series.pieces().iter().map(Vec::len).collect();
        assert_eq!(pieces, [1, 1], "no line leads to it or through it");
        let chart = Chart {
            name: String::new(),
            title: String::new(),
            subtitle: String::new(),
            kind: Kind::Lines,
            x: Axis::new("rate"),
            y: Axis::new("jct"),
            rows: Vec::new(),
            series: vec![series],
            absent: Vec::new(),
            published: Vec::new(),
        };
        let csv = chart.table().csv();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[0], "series,rate,jct,low,high,n,missing,n_of,value of n of n_of");
        assert_eq!(lines[1..3], ["p,1,2,1,3,3,,3,", "p,2,,,,2,,3,10"]);
    }
}
