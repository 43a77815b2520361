//! Charts of the workers of each owner over time, in the page about one simulation.

use apportion::metrics::owners::OwnerCourse;
use apportion::metrics::timeline::Averages;

use super::chart::{Axis, Chart, Figure, Kind, Mark, PALETTE, Series};
use super::number::brief;

const HOUR_S: f64 = 3600.0;
/// The most owners that have lines of their own: one for each colour, less one for all others together.
const OWNERS_MAX: usize = PALETTE.len() - 1;

/// The charts: workers owed by the allocations, if decisions told shares, and workers held. None if no job has an owner.
pub(super) fn figure(averages: &Averages, until_s: f64) -> Option<Figure> {
    let (first, rest) = by_size(&averages.owners);
    if first.is_empty() {
        return None;
    }
    let width = averages.interval.get();
    let series = |of: &dyn Fn(&OwnerCourse) -> Option<Vec<f64>>| -> Option<Vec<Series>> {
        let lines = first
            .iter()
            .enumerate()
            .map(|(style, owner)| Some(line(style, name_of(owner), &of(owner)?, (width, until_s))));
        let mut lines: Vec<Series> = lines.collect::<Option<_>>()?;
        if let Some((one, others)) = rest.split_first() {
            let mut sum = of(one)?;
            for owner in others {
                sum.iter_mut().zip(of(owner)?).for_each(|(sum, value)| *sum += value);
            }
            let name = format!("all {} others", rest.len());
            lines.push(line(first.len(), name, &sum, (width, until_s)));
        }
        Some(lines)
    };
    let chart = |name: &str, title: &str, series: Vec<Series>| Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        subtitle: format!("averages over {} h", brief(width / HOUR_S)),
        kind: Kind::Lines,
        x: Axis::new("time (h)").of_time(),
        y: Axis::new("workers").from_zero(),
        rows: Vec::new(),
        series,
        absent: Vec::new(),
        published: Vec::new(),
    };
    let owed = series(&|owner| owner.owed.clone());
    let owed =
        owed.map(|series| chart("workers-owed-to-owners", "Workers that allocations owe each owner", series));
    let held = series(&|owner| Some(owner.held.clone()));
    let held = held.map(|series| chart("workers-of-owners", "Workers that each owner's jobs hold", series));
    let named = [("owed by the allocations", owed), ("held", held)];
    let variants = named.into_iter().filter_map(|(name, chart)| Some((name.to_owned(), chart?))).collect();
    let note = "Of workers that two jobs share, each job's owner has half.".to_owned();
    Some(Figure { choice: "workers".to_owned(), variants, first: 0, note })
}

/// The owners that have lines of their own, in order of their names, and all others; the largest are first to have one.
fn by_size(owners: &[OwnerCourse]) -> (Vec<&OwnerCourse>, Vec<&OwnerCourse>) {
    let size = |owner: &OwnerCourse| owner.held.iter().sum::<f64>();
    let mut order: Vec<usize> = (0..owners.len()).collect();
    if order.len() > PALETTE.len() {
        order.sort_by(|one, other| size(&owners[*other]).total_cmp(&size(&owners[*one])));
        let rest = order.split_off(OWNERS_MAX);
        order.sort_unstable();
        return (order.iter().map(|at| &owners[*at]).collect(), rest.iter().map(|at| &owners[*at]).collect());
    }
    (owners.iter().collect(), Vec::new())
}

fn name_of(owner: &OwnerCourse) -> String {
    owner.name.clone().unwrap_or_else(|| "no owner".to_owned())
}

/// The line of values over intervals of a width; a mark is in the middle of its interval.
fn line(style: usize, name: String, values: &[f64], (width, until): (f64, f64)) -> Series {
    let mark = |(at, value): (usize, &f64)| {
        let middle = (at as f64 + 0.5) * width;
        Some(Mark::at(middle.min(until) / HOUR_S, *value))
    };
    Series { name, style, marks: values.iter().enumerate().map(mark).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::units::Seconds;

    fn averages(n: usize) -> Averages {
        let owner = |at: usize| OwnerCourse {
            name: Some(format!("o{at:02}")),
            owed: None,
            held: vec![at as f64, 1.0],
        };
        let (active, running, utilization) = (Vec::new(), Vec::new(), Vec::new());
        let interval = Seconds::new(3600.0);
        Averages { interval, active, running, utilization, owners: (0..n).map(owner).collect() }
    }

    #[test]
    fn the_largest_owners_have_lines_and_all_others_one() {
        assert_eq!(figure(&averages(0), 0.0), None);
        let names = |n: usize| -> Vec<String> {
            let figure = figure(&averages(n), 7200.0).unwrap();
            assert_eq!(figure.variants.len(), 1, "no decision told shares");
            figure.variants[0].1.series.iter().map(|series| series.name.clone()).collect()
        };
        assert_eq!(names(7), ["o00", "o01", "o02", "o03", "o04", "o05", "o06"]);
        assert_eq!(names(9), ["o03", "o04", "o05", "o06", "o07", "o08", "all 3 others"]);
        let chart = &figure(&averages(9), 7200.0).unwrap().variants[0].1;
        let values: Vec<f64> = chart.series[6].marks.iter().flatten().map(|mark| mark.y).collect();
        assert!(values.iter().zip([3.0, 3.0]).all(|(found, expected)| (found - expected).abs() < 1e-9));
    }
}
