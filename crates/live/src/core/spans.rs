//! The union of spans of time: what several runs had of one worker, counted once.

use apportion::Seconds;
use serde::{Deserialize, Serialize};

/// The most separate spans that are kept. Of more, the two that are closest to each other are joined.
const SPANS_MAX: usize = 16;

/// A span of time on the scheduler's clock. One that does not end after its start is empty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The first instant of the span, on the scheduler's clock, s.
    pub start: Seconds,
    /// The instant at which the span ends, on the scheduler's clock, s.
    pub end: Seconds,
}

impl Span {
    pub(super) fn length(self) -> Seconds {
        (self.end - self.start).max(Seconds::ZERO)
    }

    fn is_empty(self) -> bool {
        self.end.get() <= self.start.get()
    }
}

/// A set of instants, as spans that neither overlap nor touch, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spans(Vec<Span>);

impl Spans {
    /// Whether no instant is in the set.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the instants of a span.
    pub(super) fn add(&mut self, span: Span) {
        if span.is_empty() {
            return;
        }
        let first = self.0.partition_point(|other| other.end < span.start);
        let next = self.0.partition_point(|other| other.start <= span.end);
        let touched = &self.0[first..next];
        let start = touched.first().map_or(span.start, |other| other.start.min(span.start));
        let end = touched.last().map_or(span.end, |other| other.end.max(span.end));
        self.0.splice(first..next, [Span { start, end }]);
        if self.0.len() > SPANS_MAX {
            self.join_closest();
        }
    }

    /// Joins the two spans that are closest to each other, with the time between them.
    fn join_closest(&mut self) {
        let gaps = self.0.windows(2).map(|pair| pair[1].start - pair[0].end).enumerate();
        if let Some((place, _)) = gaps.min_by(|one, other| one.1.total_cmp(&other.1)) {
            let next = self.0.remove(place + 1);
            self.0[place].end = next.end;
        }
    }

    /// The parts of a span that are not in it, in order of time.
    pub(super) fn rest(&self, span: Span) -> Vec<Span> {
        let (mut start, mut rest) = (span.start, Vec::new());
        for other in self.0.iter().filter(|other| other.end > span.start && other.start < span.end) {
            rest.push(Span { start, end: other.start });
            start = other.end;
        }
        rest.push(Span { start, end: span.end });
        rest.retain(|part| !part.is_empty());
        rest
    }

    /// The time of a span that is not covered by these spans.
    pub(super) fn missing(&self, span: Span) -> Seconds {
        self.rest(span).into_iter().map(Span::length).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The points of a grid between whole instants.
    const GRID: u8 = 40;

    fn span((start, end): (u8, u8)) -> Span {
        Span { start: Seconds::new(f64::from(start)), end: Seconds::new(f64::from(end)) }
    }

    fn holds((start, end): (u8, u8), point: u8) -> bool {
        start <= point && point < end
    }

    fn union(spans: &[(u8, u8)]) -> Spans {
        let mut union = Spans::default();
        for ends in spans {
            union.add(span(*ends));
        }
        union
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_union_misses_of_a_span_what_no_member_holds(
            members in prop::collection::vec((0..GRID, 0..GRID), 0..12),
            of in (0..GRID, 0..GRID),
        ) {
            let union = union(&members);
            let is_missing =
                |point: &u8| holds(of, *point) && !members.iter().any(|member| holds(*member, *point));
            let expected = (0..GRID).filter(is_missing).count();
            prop_assert!((union.missing(span(of)).get() - expected as f64).abs() < 1e-9);
            let rest = union.rest(span(of));
            for point in 0..GRID {
                let middle = Seconds::new(f64::from(point) + 0.5);
                let is_in = rest.iter().any(|part| part.start < middle && middle < part.end);
                prop_assert_eq!(is_in, is_missing(&point));
            }
            prop_assert!(union.0.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert!(union.0.iter().all(|span| span.start < span.end));
        }

        #[test]
        fn a_union_does_not_depend_on_the_order_of_its_members(
            members in prop::collection::vec((0..GRID, 0..GRID), 0..12),
        ) {
            let backwards: Vec<_> = members.iter().rev().copied().collect();
            prop_assert_eq!(union(&members), union(&backwards));
        }
    }

    #[test]
    fn of_too_many_spans_the_closest_are_taken_for_one() {
        let apart: Vec<_> =
            (0..17).map(|place| (place * 5, place * 5 + if place == 7 { 4 } else { 2 })).collect();
        let union = union(&apart);
        assert_eq!(union.0.len(), SPANS_MAX);
        assert!((union.missing(span((0, 82))).get() - (16.0 * 3.0 - 3.0)).abs() < 1e-9);
    }
}
