//! Bars and lines of characters, for people at a terminal.

use apportion_logs::load::Shape;
use apportion_studies::report::number::brief;
use apportion_studies::report::workload::{class, from};

/// The widest bar, in characters.
const BAR: usize = 40;
/// The most columns of a line.
const COLUMNS: usize = 72;
/// Characters of a line, by height.
const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Drawings of the jobs' shape.
pub(super) fn sketch(shape: &Shape, durations: &[(f64, usize)]) -> String {
    let arrivals: Vec<f64> = shape.arrivals.iter().map(|n| *n as f64).collect();
    let mut text = over_time("arrivals", &arrivals, shape.bin_s, "jobs");
    text += &over_time("load", &shape.busy, shape.bin_s, "workers busy, if jobs ran as they arrive,");
    text += "running time\n";
    text += &bars(durations.iter().map(|(from_s, n)| (class(*from_s), *n)));
    text += "workers\n";
    text += &bars(shape.sizes.iter().map(|(size, n)| (size.to_string(), *n)));
    text
}

/// A line of a series over time; neighbouring bins share a column if there are many.
fn over_time(title: &str, values: &[f64], bin_s: f64, unit: &str) -> String {
    let n_together = values.len().div_ceil(COLUMNS).max(1);
    let means: Vec<f64> =
        values.chunks(n_together).map(|bins| bins.iter().sum::<f64>() / bins.len() as f64).collect();
    let most = means.iter().copied().fold(0.0, f64::max);
    let column = |value: &f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 8")]
        let height = if most > 0.0 { (value / most * 8.0).ceil() as usize } else { 0 };
        HEIGHTS[height.min(8)]
    };
    let line: String = means.iter().map(column).collect();
    let span = from(bin_s * n_together as f64);
    format!(
        "{title} over time: a column is {span}, the highest {} {unit} in {}\n  {line}\n",
        brief(most),
        from(bin_s)
    )
}

fn bars(rows: impl Iterator<Item = (String, usize)>) -> String {
    let rows: Vec<(String, usize)> = rows.collect();
    let most = rows.iter().map(|(_, n)| *n).max().unwrap_or(0).max(1);
    let width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let bar = |(label, n): (String, usize)| {
        let length = (n * BAR).div_ceil(most);
        format!("  {label:>width$}  {} {n}\n", "█".repeat(length))
    };
    rows.into_iter().map(bar).collect()
}
