//! The two sides of a policy's own constraints at a point, and their prices.

use super::at::At;
use super::binding::{BoundObjective, Point};
use super::expression::{Comparison, Node, Operator};
use super::inversion::Levels;
use super::objective::Constraint;
use super::range::Reach;

/// The two sides of a constraint, for one job or one worker type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sides {
    /// The side that must not be larger.
    pub small: f64,
    /// The side that must not be smaller.
    pub large: f64,
}

impl Sides {
    /// `large` less `small`; below 0 where the constraint is violated.
    pub fn slack(self) -> f64 {
        self.large - self.small
    }
}

/// The side of a constraint that no allocation changes; 0 if there is none.
fn limit(constraint: &Constraint, sides: Sides) -> f64 {
    match &constraint.excess.node {
        Node::Binary(Operator::Subtract, small, _) if !small.varies() => sides.small,
        Node::Binary(Operator::Subtract, _, large) if !large.varies() => sides.large,
        _ => 0.0,
    }
}

impl BoundObjective<'_> {
    /// The sides of a constraint at a point, for the member or the worker type at a position (0 for the whole cluster).
    pub fn sides(&self, constraint: &Constraint, position: usize, point: &Point) -> Sides {
        let at = At::of(constraint.subject, position);
        match &constraint.excess.node {
            Node::Binary(Operator::Subtract, small, large) => {
                Sides { small: self.evaluate(small, at, point), large: self.evaluate(large, at, point) }
            }
            _ => Sides { small: self.evaluate(&constraint.excess, at, point), large: 0.0 },
        }
    }

    /// The largest violation at a point of the constraints that are neither soft nor droppable: relative to the larger of their
    /// sides, or to the largest finite value that their difference can have, whichever is larger. Where one side is a number that no
    /// allocation changes, such as a floor of throughput, it is relative to the larger side alone: the floor may be far below the
    /// throughputs that are possible.
    pub fn violation(&self, point: &Point) -> f64 {
        let hard = |constraint: &&Constraint| constraint.soft.is_none() && !constraint.droppable;
        let mut reach = None;
        let mut worst = 0.0_f64;
        for constraint in self.objective.constraints().iter().filter(hard) {
            for (position, at) in self.places_of(constraint.subject).enumerate() {
                let sides = self.sides(constraint, position, point);
                let excess = if constraint.is_equality() { sides.slack().abs() } else { -sides.slack() };
                if excess <= 0.0 {
                    continue;
                }
                let limit = limit(constraint, sides).abs();
                let size = if limit > 0.0 && limit.is_finite() {
                    limit.max(sides.small.abs()).max(sides.large.abs())
                } else {
                    let reach = reach.get_or_insert_with(|| Reach::of(self));
                    let range = self.range(&constraint.excess, at, reach);
                    let sizes = [sides.small, sides.large, range.lower, range.upper].map(f64::abs);
                    sizes.into_iter().filter(|size| size.is_finite()).fold(0.0, f64::max)
                };
                worst = worst.max(if size > 0.0 { excess / size } else { excess });
            }
        }
        worst
    }

    /// The ratio of the left side of a constraint, as it was written, to its right side, for the member or the worker
    /// type at a position; `None` where the right side depends on the allocation or is not a finite number above 0.
    pub fn part_of_right_side(&self, constraint: &Constraint, position: usize, point: &Point) -> Option<f64> {
        let Node::Binary(Operator::Subtract, small, large) = &constraint.excess.node else { return None };
        let Sides { small: least, large: most } = self.sides(constraint, position, point);
        let (left, right, written) = match constraint.comparison {
            Comparison::AtMost | Comparison::Equal => (least, most, large),
            Comparison::AtLeast => (most, least, small),
        };
        (!written.varies() && right > 0.0 && right.is_finite()).then_some(left / right)
    }

    /// The change of the objective per unit added to the right side of a constraint as it was written, for the member or the
    /// worker type at a position; `of_row` is the dual price of its row.
    pub fn price_of_side(&self, constraint: &Constraint, position: usize, of_row: f64) -> f64 {
        // A row in place of a curved constraint bounds the throughput at which the excess is 0.
        let of_excess = match &constraint.inversion {
            Some(inversion) => {
                let at = At::of(constraint.subject, position);
                let data = inversion.steps.iter().map(|step| step.datum.as_ref());
                let data = data.map(|datum| datum.map_or(0.0, |datum| self.constant(datum, at)));
                of_row * Levels::new(inversion, data.collect()).required(0, 0.0).slope
            }
            None => of_row,
        };
        match constraint.comparison {
            Comparison::AtMost | Comparison::Equal => of_excess,
            Comparison::AtLeast => -of_excess,
        }
    }
}
