//! The program that keeps as many droppable constraints as possible at once.
//!
//!   maximize Σ_m n_m·z_m   subject to   E_m(X) + u_m·z_m ≤ u_m,   time_m(X) ≤ n_m·z_m,   0 ≤ z ≤ 1
//!
//! where E_m(X) ≤ 0 is the droppable constraint of member m, and u_m > 0 the most that any allocation violates it by: for
//! a least throughput, its violation at X = 0. With z_m = 1 the constraint is kept; with z_m = 0 it is dropped, and the
//! member gets no time if that is of no use to other constraints or jobs. At a vertex few z are fractional, since only
//! the rows of worker types couple jobs, so branch and bound on them ends soon.

use super::at::At;
use super::binding::{BoundObjective, Point};
use super::builder::Builder;
use super::expression::Subject;
use super::instance::Part;
use super::objective::Constraint;
use super::program_map::{AuxiliaryRole, Formulation, RowRole};
use super::range::Reach;
use super::standard::{Affine, Range, Sense};

/// The relative violation up to which a droppable constraint counts as kept.
pub const DROPPABLE_SLACK: f64 = 1e-8;

impl BoundObjective<'_> {
    /// Whether the objective has a droppable constraint.
    pub fn has_droppable(&self) -> bool {
        self.objective.constraints().iter().any(|constraint| constraint.droppable)
    }

    /// Whether a constraint is dropped at a place.
    pub(super) fn is_dropped(&self, constraint: &Constraint, at: At) -> bool {
        constraint.droppable && self.instance.dropped.get(at.member).copied().unwrap_or(false)
    }

    /// Whether each member has a droppable constraint that no allocation keeps for any of its jobs, not even up to a
    /// violation of `part` of the largest possible one: `[members]`.
    pub fn beyond_reach(&self, part: f64) -> Vec<bool> {
        let reach = Reach::of_one_job(self);
        let droppable: Vec<_> = self.objective.constraints().iter().filter(|one| one.droppable).collect();
        let beyond = |at: At| {
            let excess = droppable.iter().map(|constraint| self.range(&constraint.excess, at, &reach));
            excess.into_iter().any(|excess| excess.lower > part * excess.upper)
        };
        self.places(Subject::Job).map(beyond).collect()
    }

    /// Whether each member's jobs miss a droppable constraint at `point`: `[members]`. A constraint is missed where the side that must
    /// not be larger exceeds the other by more than `part` of the larger of their magnitudes, and by more than [`DROPPABLE_SLACK`] of the
    /// most that any allocation exceeds it by: beside that, shares that are almost 0 count as 0.
    pub fn missed(&self, point: &Point, part: f64) -> Vec<bool> {
        let droppable: Vec<_> = self.objective.constraints().iter().filter(|one| one.droppable).collect();
        let mut reach = None;
        let mut is_missed = |member: usize| {
            droppable.iter().any(|constraint| {
                let sides = self.sides(constraint, member, point);
                if sides.slack() >= -part * sides.small.abs().max(sides.large.abs()) {
                    return false;
                }
                let at = At::of(constraint.subject, member);
                let most =
                    self.range(&constraint.excess, at, reach.get_or_insert_with(|| Reach::of(self))).upper;
                !most.is_finite() || sides.slack() < -DROPPABLE_SLACK * most
            })
        };
        (0..self.instance.n_members()).map(&mut is_missed).collect()
    }

    /// The program that maximizes the weight of the jobs whose droppable constraints are kept. `asked`, `[members]`: the range of
    /// z, within 0 and 1, and the weight of one job.
    pub fn droppable(&self, asked: &[(Range, f64)]) -> Formulation {
        let reach = Reach::of(self);
        let mut builder = Builder::new(self, &reach, None);
        self.class_times(&mut builder);
        let kept: Vec<usize> = (0..)
            .zip(asked)
            .map(|(member, (range, _))| {
                builder.auxiliary(AuxiliaryRole::Kept { member }, *range, *range, 1.0)
            })
            .collect();
        let part = if self.serves_nobody_else() { &kept[..] } else { &[] };
        self.shared_rows(&mut builder, part, 1.0 + DROPPABLE_SLACK);
        builder.kept_constraints(false);
        let mut count = Affine::default();
        for (at, column) in self.places(Subject::Job).zip(kept) {
            let (_, weight) = asked[at.member];
            count.terms.push((column, weight * self.instance.multiplicity[at.member]));
            self.droppable_rows(&mut builder, at, column, &reach);
        }
        builder.objective(count);
        builder.finish(Sense::Maximize)
    }

    /// Whether the time of a member whose droppable constraint is dropped is of no use: to itself because all constraints
    /// are droppable, and to others because no job is faster in a pair than alone.
    fn serves_nobody_else(&self) -> bool {
        let instance = self.instance;
        let faster = |part: &Part| {
            part.throughput.iter().zip(instance.alone(part.member)).any(|(beside, alone)| beside > alone)
        };
        self.objective.constraints().iter().all(|constraint| constraint.droppable)
            && !instance.pairs.iter().any(|pair| pair.parts.iter().any(faster))
    }

    fn droppable_rows(&self, builder: &mut Builder<'_>, at: At, column: usize, reach: &Reach) {
        for (position, constraint) in self.objective.constraints().iter().enumerate() {
            let most =
                if constraint.droppable { self.range(&constraint.excess, at, reach).upper } else { 0.0 };
            if most <= 0.0 {
                continue;
            }
            let mut row = builder.affine(&constraint.excess, at);
            row.terms.push((column, most));
            let role = RowRole::Constraint { constraint: position, position: at.member };
            builder.row(role, Range::at_most(most), row);
        }
    }
}
