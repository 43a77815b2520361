//! A chart as an SVG document, drawn without a browser.
//!
//! Text stays text, set in the reader's sans-serif font; the same chart gives the same bytes.

use std::collections::BTreeSet;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart::{Axis, Chart, Kind, Look, Mark, PALETTE, POINTS_SHOWN_MAX, Scale, Series, Shape};
use super::html::escaped;
use super::number::brief;
use super::plain::{broken, plain_lines};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

const WIDTH: u32 = 760;
const PLOT_HEIGHT: u32 = 380;
const HEAD: u32 = 58;
/// The most letters in a line of a subtitle.
const SUBTITLE_LETTERS: usize = 124;
/// Height of such a line, pixels.
const SUBTITLE_LINE: u32 = 15;
const LEGEND_LINE: u32 = 18;
const LEGEND_COLUMNS: usize = 3;
const ABSENT_LINE: i32 = 9;
const GREY: RGBColor = RGBColor(90, 90, 90);

/// The chart as an SVG document.
///
/// # Errors
/// If the drawing library fails, with its message; never for lack of values.
pub fn render(chart: &Chart) -> Result<String, String> {
    let mut text = String::new();
    draw(chart, &mut text).map_err(|error| error.to_string())?;
    // The label is for screen readers.
    let label =
        format!("<svg role=\"img\" aria-label=\"{}. {}\"", escaped(&chart.title), escaped(&chart.subtitle));
    // XML allows no control characters, which only text from results can have brought.
    Ok(plain_lines(&text.replacen("<svg", &label, 1)).into_owned())
}

fn colour(style: usize) -> RGBColor {
    let digits = u32::from_str_radix(&Look::of(style).colour[1..], 16).unwrap_or(0);
    let [_, red, green, blue] = digits.to_be_bytes();
    RGBColor(red, green, blue)
}

fn font(size: u32) -> TextStyle<'static> {
    TextStyle::from(("sans-serif", size).into_font()).color(&RGBColor(30, 30, 30))
}

fn draw(chart: &Chart, text: &mut String) -> Drawn {
    let has_legend = chart.series.len() > 1 || !chart.absent.is_empty();
    let n_named = chart.series.len() + usize::from(!chart.published.is_empty());
    let n_legend = if has_legend { n_named.div_ceil(LEGEND_COLUMNS) } else { 0 };
    let legend_height = LEGEND_LINE * u32::try_from(n_legend)? + 12;
    let plot_height = match chart.kind {
        Kind::Bars => {
            let n_bars = chart.rows.len() * chart.series.len().max(1);
            60 + u32::try_from(chart.rows.len() * 10 + n_bars * 14)?
        }
        Kind::Lines | Kind::Steps => PLOT_HEIGHT,
    };
    let n_absent = lacking(chart).len();
    let above =
        if chart.absent.is_empty() { 0 } else { ABSENT_LINE.unsigned_abs() * u32::try_from(n_absent)? + 6 };
    let subtitle = broken(&chart.subtitle, SUBTITLE_LETTERS);
    let head = HEAD + SUBTITLE_LINE * u32::try_from(subtitle.len().saturating_sub(1))?;
    let size = (WIDTH, head + above + plot_height + legend_height);
    let root = SVGBackend::with_string(text, size).into_drawing_area();
    root.fill(&WHITE)?;
    root.draw(&Text::new(chart.title.as_str(), (14, 12), font(17)))?;
    for (line, y) in subtitle.iter().zip((34..).step_by(SUBTITLE_LINE as usize)) {
        root.draw(&Text::new(line.as_str(), (14, y), font(12).color(&GREY)))?;
    }
    let (rest, legend) = root.split_vertically(size.1 - legend_height);
    let (_, plot) = rest.split_vertically(head + above);
    match chart.kind {
        Kind::Bars => bars(chart, &plot)?,
        Kind::Lines | Kind::Steps => lines(chart, &root, &plot)?,
    }
    if has_legend {
        draw_legend(chart, &legend)?;
    }
    root.present()?;
    Ok(())
}

fn draw_legend(chart: &Chart, area: &Area<'_>) -> Drawn {
    let wide = i32::try_from(WIDTH)? / i32::try_from(LEGEND_COLUMNS)?;
    let place = |position: usize| -> Result<(i32, i32), std::num::TryFromIntError> {
        let x = 14 + wide * i32::try_from(position % LEGEND_COLUMNS)?;
        Ok((x, 6 + i32::try_from(LEGEND_LINE)? * i32::try_from(position / LEGEND_COLUMNS)?))
    };
    for (position, series) in chart.series.iter().enumerate() {
        let (x, y) = place(position)?;
        if chart.kind == Kind::Bars {
            area.draw(&Rectangle::new([(x, y), (x + 18, y + 10)], colour(series.style).filled()))?;
        } else {
            for line in dashed(&[(x, y + 5), (x + 18, y + 5)], &Look::of(series.style).dash) {
                area.draw(&PathElement::new(line, stroke(series.style, 2)))?;
            }
            shape(area, series.style, (x + 9, y + 5), Form::Full)?;
        }
        area.draw(&Text::new(series.name.as_str(), (x + 24, y - 1), font(12)))?;
    }
    if !chart.published.is_empty() {
        let (x, y) = place(chart.series.len())?;
        area.draw(&Circle::new((x + 9, y + 5), RING, GREY.stroke_width(1)))?;
        area.draw(&Text::new("published", (x + 24, y - 1), font(12)))?;
    }
    Ok(())
}

fn stroke(style: usize, width: u32) -> ShapeStyle {
    colour(style).stroke_width(width)
}

/// Fill of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Filled with its colour.
    Full,
    /// White inside.
    Hollow,
    /// A ring around the point.
    Ring,
}

/// Half the width of a ring, pixels.
const RING: i32 = 6;

/// The mark of a series.
fn shape(area: &Area<'_>, style: usize, at: (i32, i32), form: Form) -> Drawn {
    if form == Form::Ring {
        area.draw(&Circle::new(at, RING, stroke(style, 1)))?;
        return Ok(());
    }
    let is_hollow = form == Form::Hollow;
    let corners: &[(i32, i32)] = match Look::of(style).shape {
        Shape::Circle => {
            let (inside, line) = (WHITE.filled(), stroke(style, 2));
            let fill = if is_hollow { inside } else { colour(style).filled() };
            area.draw(&Circle::new(at, 3, fill))?;
            if is_hollow {
                area.draw(&Circle::new(at, 3, line))?;
            }
            return Ok(());
        }
        Shape::TriangleUp => &[(-4, 3), (4, 3), (0, -4)],
        Shape::Square => &[(-3, -3), (3, -3), (3, 3), (-3, 3)],
        Shape::Diamond => &[(0, -4), (4, 0), (0, 4), (-4, 0)],
        Shape::TriangleDown => &[(-4, -3), (4, -3), (0, 4)],
    };
    let mut corners: Vec<(i32, i32)> = corners.iter().map(|(x, y)| (at.0 + x, at.1 + y)).collect();
    let fill = if is_hollow { WHITE.filled() } else { colour(style).filled() };
    area.draw(&Polygon::new(corners.clone(), fill))?;
    if is_hollow {
        corners.push(corners[0]);
        area.draw(&PathElement::new(corners, stroke(style, 2)))?;
    }
    Ok(())
}

/// Strokes of a dashed line, in pixels; the line itself if it has no dashes.
fn dashed(line: &[(i32, i32)], dash: &[u32]) -> Vec<Vec<(i32, i32)>> {
    if dash.is_empty() {
        return vec![line.to_vec()];
    }
    let (mut strokes, mut at, mut left) = (Vec::new(), 0, f64::from(dash[0]));
    let mut stroke = Vec::from_iter(line.first().copied());
    for ends in line.windows(2) {
        let [from, to] = [ends[0], ends[1]].map(|(x, y)| (f64::from(x), f64::from(y)));
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let mut gone = 0.0;
        while length - gone > left {
            gone += left;
            let share = gone / length;
            #[expect(clippy::cast_possible_truncation, reason = "between two pixels of the picture")]
            let pixel = |from: f64, to: f64| (from + (to - from) * share).round() as i32;
            let corner = (pixel(from.0, to.0), pixel(from.1, to.1));
            if at % 2 == 0 {
                stroke.push(corner);
                strokes.push(std::mem::take(&mut stroke));
            } else {
                stroke = vec![corner];
            }
            at += 1;
            left = f64::from(dash[at % dash.len()]);
        }
        left -= length - gone;
        if at % 2 == 0 {
            stroke.push(ends[1]);
        }
    }
    if at % 2 == 0 {
        strokes.push(stroke);
    }
    strokes
}

/// Range from below the smallest value to above the largest; never empty.
fn range(axis: &Axis, values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let values = values.filter(|value| value.is_finite());
    let min = values.clone().min_by(f64::total_cmp).unwrap_or(0.0);
    let max = values.max_by(f64::total_cmp).unwrap_or(1.0);
    match axis.scale {
        Scale::Log => {
            let min = if min > 0.0 { min } else { 1e-9 };
            (min / 1.08, max.max(min * 1.01) * 1.08)
        }
        Scale::Linear => {
            let min = if axis.zero { min.min(0.0) } else { min };
            let wide = if max > min { max - min } else { min.abs().max(1.0) };
            let room = 0.04 * wide;
            (if axis.zero && min >= 0.0 { 0.0 } else { min - room }, max.max(min + wide * 0.01) + room)
        }
    }
}

fn marks(chart: &Chart) -> impl Iterator<Item = &Mark> + Clone {
    chart.series.iter().chain(&chart.published).flat_map(|series| series.marks.iter().flatten())
}

fn values(chart: &Chart) -> impl Iterator<Item = f64> + Clone {
    marks(chart).flat_map(|mark| [Some(mark.y), mark.low, mark.high]).flatten()
}

fn lines(chart: &Chart, root: &Area<'_>, plot: &Area<'_>) -> Drawn {
    let xs = marks(chart).map(|mark| mark.x).chain(chart.absent.iter().map(|absent| absent.x));
    let (x, y) = (range(&chart.x, xs), range(&chart.y, values(chart)));
    match (chart.x.scale, chart.y.scale) {
        (Scale::Linear, Scale::Linear) => lines_on(chart, root, plot, x.0..x.1, y.0..y.1),
        (Scale::Log, Scale::Linear) => lines_on(chart, root, plot, (x.0..x.1).log_scale(), y.0..y.1),
        (Scale::Linear, Scale::Log) => lines_on(chart, root, plot, x.0..x.1, (y.0..y.1).log_scale()),
        (Scale::Log, Scale::Log) => {
            lines_on(chart, root, plot, (x.0..x.1).log_scale(), (y.0..y.1).log_scale())
        }
    }
}

/// Whether a tick has a label. On a log axis there is room for those that begin with 1 to 6.
fn has_label(scale: Scale, value: f64) -> bool {
    scale == Scale::Linear || value / 10.0_f64.powf((value.log10() + 1e-9).floor()) < 6.5
}

fn lines_on<X, Y>(
    chart: &Chart,
    root: &Area<'_>,
    plot: &Area<'_>,
    x: impl AsRangedCoord<CoordDescType = X, Value = f64>,
    y: impl AsRangedCoord<CoordDescType = Y, Value = f64>,
) -> Drawn
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut builder = ChartBuilder::on(plot);
    builder.margin_left(10).margin_right(16).x_label_area_size(48).y_label_area_size(62);
    let mut context = builder.build_cartesian_2d(x, y)?;
    context
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(228, 228, 228))
        .axis_style(RGBColor(120, 120, 120))
        .label_style(font(11))
        .axis_desc_style(font(12))
        .x_desc(chart.x.title.as_str())
        .y_desc(chart.y.title.as_str())
        .x_label_formatter(&|value| {
            if has_label(chart.x.scale, *value) { brief(*value) } else { String::new() }
        })
        .y_label_formatter(&|value| brief(*value))
        .draw()?;
    for series in &chart.series {
        for piece in series.pieces() {
            let band: Vec<(f64, f64, f64)> =
                piece.iter().filter_map(|m| Some((m.x, m.low?, m.high?))).collect();
            let edge = band.iter().map(|(x, low, _)| (*x, *low));
            let edge: Vec<(f64, f64)> =
                edge.chain(band.iter().rev().map(|(x, _, high)| (*x, *high))).collect();
            match band[..] {
                [] => {}
                // A band of one place has no width.
                [(x, low, high)] => {
                    let whisker = vec![(x, low), (x, high)];
                    context.draw_series([PathElement::new(whisker, stroke(series.style, 1))])?;
                }
                _ => {
                    context.draw_series([Polygon::new(edge, colour(series.style).mix(0.1))])?;
                }
            }
        }
    }
    for series in &chart.series {
        for path in paths(chart.kind, series) {
            let pixels: Vec<(i32, i32)> = path.iter().map(|at| context.backend_coord(at)).collect();
            for line in dashed(&pixels, &Look::of(series.style).dash) {
                root.draw(&PathElement::new(line, stroke(series.style, 2)))?;
            }
        }
        if chart.kind == Kind::Lines && series.marks.len() <= POINTS_SHOWN_MAX {
            for mark in series.marks.iter().flatten() {
                let at = context.backend_coord(&(mark.x, mark.y));
                let form = if mark.n_of.is_some() { Form::Hollow } else { Form::Full };
                shape(root, series.style, at, form)?;
            }
        }
    }
    for series in &chart.published {
        for mark in series.marks.iter().flatten() {
            shape(root, series.style, context.backend_coord(&(mark.x, mark.y)), Form::Ring)?;
        }
    }
    let top = context.plotting_area().get_pixel_range().1.start;
    let lacking = lacking(chart);
    for absent in &chart.absent {
        let style = chart.series.get(absent.series).map_or(0, |series| series.style);
        let (at, _) = context.backend_coord(&(absent.x, y_of(chart)));
        let line = i32::try_from(lacking.iter().position(|series| *series == absent.series).unwrap_or(0))?;
        let centre = (at, top - 6 - ABSENT_LINE * line);
        root.draw(&Cross::new(centre, 3, stroke(style, 2)))?;
    }
    Ok(())
}

/// Series without a value somewhere, each of which has a line of crosses.
fn lacking(chart: &Chart) -> Vec<usize> {
    let series: BTreeSet<usize> = chart.absent.iter().map(|absent| absent.series).collect();
    series.into_iter().collect()
}

/// An arbitrary value on the vertical axis.
fn y_of(chart: &Chart) -> f64 {
    values(chart).next().unwrap_or(1.0)
}

/// Lines of a series, broken where a value is missing or hollow.
fn paths(kind: Kind, series: &Series) -> Vec<Vec<(f64, f64)>> {
    let path = |piece: Vec<Mark>| {
        let mut path: Vec<(f64, f64)> = Vec::new();
        for mark in piece {
            if kind == Kind::Steps {
                path.push((mark.x, path.last().map_or(0.0, |(_, y)| *y)));
            }
            path.push((mark.x, mark.y));
        }
        path
    };
    series.pieces().into_iter().map(path).filter(|path| path.len() > 1).collect()
}

fn bars(chart: &Chart, plot: &Area<'_>) -> Drawn {
    let (left, right) = range(&Axis { zero: true, scale: Scale::Linear, ..chart.x.clone() }, values(chart));
    let n_rows = chart.rows.len();
    let longest = chart.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let label_width = 20 + 7 * i32::try_from(longest.min(40))?;
    let mut builder = ChartBuilder::on(plot);
    builder.margin_right(16).margin_left(label_width).x_label_area_size(48);
    let mut context = builder.build_cartesian_2d(left..right, 0.0..n_rows.max(1) as f64)?;
    context
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(228, 228, 228))
        .axis_style(RGBColor(120, 120, 120))
        .label_style(font(11))
        .axis_desc_style(font(12))
        .x_desc(chart.x.title.as_str())
        .x_label_formatter(&|value| brief(*value))
        .draw()?;
    let n_series = chart.series.len().max(1) as f64;
    for (row, (name, row_style)) in chart.rows.iter().enumerate() {
        let top = (n_rows - row) as f64;
        let at = context.backend_coord(&(left.max(0.0), top - 0.5));
        let style = font(12).pos(Pos::new(HPos::Right, VPos::Center));
        let (base_x, base_y) = plot.get_base_pixel();
        plot.draw(&Text::new(name.as_str(), (at.0 - base_x - 8, at.1 - base_y), style))?;
        for (position, series) in chart.series.iter().enumerate() {
            let Some(Some(mark)) = series.marks.get(row) else { continue };
            let style = if chart.series.len() > 1 { series.style } else { *row_style };
            let high = top - 0.14 - 0.72 * position as f64 / n_series;
            let low = high - 0.72 / n_series;
            let ends = [(0.0, high), (mark.y, low)];
            let is_hollow = mark.n_of.is_some();
            let fill = if is_hollow { stroke(style, 2) } else { colour(style).mix(0.85).filled() };
            context.draw_series([Rectangle::new(ends, fill)])?;
            if chart.series.len() > PALETTE.len() {
                let (x, y) = context.backend_coord(&(mark.y, 0.5 * (high + low)));
                let style = font(10).pos(Pos::new(HPos::Left, VPos::Center));
                plot.draw(&Text::new(series.name.as_str(), (x - base_x + 4, y - base_y), style))?;
            }
            if let (Some(from), Some(to)) = (mark.low, mark.high)
                && to > from
            {
                let middle = 0.5 * (high + low);
                let whisker = vec![(from, middle), (to, middle)];
                context.draw_series([PathElement::new(whisker, RGBColor(40, 40, 40).stroke_width(1))])?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_into_lines() {
        assert_eq!(broken("", 5), [""]);
        assert_eq!(broken("a bc def g", 4), ["a bc", "def", "g"]);
        assert_eq!(broken("a longest b", 4), ["a", "longest", "b"]);
    }

    #[test]
    fn ticks_of_an_axis_by_factors_have_labels_where_there_is_room() {
        let has = |value: f64| has_label(Scale::Log, value);
        for value in [0.01, 1.0, 1e3, 1e5] {
            assert!(has(value) && has(value * 6.0) && !has(value * 7.0) && !has(value * 9.0), "{value}");
        }
        assert!(has_label(Scale::Linear, 900.0));
    }

    #[test]
    fn dashes_go_round_corners_and_leave_gaps() {
        let line = [(0, 0), (10, 0), (10, 10)];
        assert_eq!(dashed(&line, &[]), [line.to_vec()]);
        let strokes = dashed(&line, &[6, 3]);
        assert_eq!(strokes, [vec![(0, 0), (6, 0)], vec![(9, 0), (10, 0), (10, 5)], vec![(10, 8), (10, 10)]]);
    }
}
