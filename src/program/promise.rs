//! Promises: droppable constraints, and the program that counts how many jobs can have theirs kept at once.
//!
//!   maximize Σ_m n_m·z_m   subject to   L_m(X) + c_m·z_m ≤ 0,   time_m(X) ≤ n_m·z_m,   0 ≤ z ≤ 1
//!
//! where c_m + L_m(X) ≤ 0 is the promise to m: c_m > 0 is what X = 0 lacks and L_m only falls as m is given more.
//! With z_m = 1 the promise is kept, with z_m = 0 nothing is asked and nothing given, unless the policy asks for more than
//! promises of jobs. A member that is alone on worker types has then its promise kept, or nothing, or a mixture of the two,
//! and no time that would not be enough. At a vertex few z are fractional, as only the worker types' rows couple jobs, so
//! branching on them ends soon.

use super::bound::{At, BoundObjective};
use super::compile::Builder;
use super::expression::Subject;
use super::formulation::{AuxiliaryRole, Formulation, RowRole};
use super::instance::Part;
use super::range::Reach;
use super::standard::{Affine, Range, Sense};

/// A promise that asks for no more than this part more than can be had is one that can be kept, and so is one kept but for
/// this part.
pub const PROMISE_SLACK: f64 = 1e-8;

impl BoundObjective<'_> {
    /// Has any member a promise that could be broken?
    pub fn has_promises(&self) -> bool {
        self.objective.constraints().iter().any(|constraint| constraint.droppable)
    }

    /// Whose promises cannot be kept whatever the others get, not but for this part of what they ask for: `[members]`.
    pub fn beyond_reach(&self, part: f64) -> Vec<bool> {
        let reach = Reach::of(self);
        let promises: Vec<_> = self.objective.constraints().iter().filter(|one| one.droppable).collect();
        let beyond = |at: At| {
            let excess = promises.iter().map(|promise| self.range(&promise.excess, at, &reach));
            excess.into_iter().any(|excess| excess.lower > part * excess.upper)
        };
        self.places(Subject::Job).map(beyond).collect()
    }

    /// The program that maximizes the weight of the jobs that have all their promises kept, each by the part asked
    /// for: (range within [0, 1], weight of one job), `[members]`.
    pub fn promises(&self, asked: &[(Range, f64)]) -> Formulation {
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
        self.shared_rows(&mut builder, part, 1.0 + PROMISE_SLACK);
        builder.constraints_but(|constraint, _| constraint.droppable);
        let mut count = Affine::default();
        for (at, column) in self.places(Subject::Job).zip(kept) {
            let (_, weight) = asked[at.member];
            count.terms.push((column, weight * self.instance.multiplicity[at.member]));
            self.promise_rows(&mut builder, at, column);
        }
        builder.objective(count);
        builder.finish(Sense::Maximize)
    }

    /// Is time of a member whose promise is not kept of no use: to it, as nothing else is asked for jobs, nor to others, as
    /// nobody is faster beside another than alone?
    fn serves_nobody_else(&self) -> bool {
        let instance = self.instance;
        let faster = |part: &Part| {
            part.throughput.iter().zip(instance.alone(part.member)).any(|(beside, alone)| beside > alone)
        };
        self.objective.constraints().iter().all(|constraint| constraint.droppable)
            && !instance.pairs.iter().any(|pair| pair.parts.iter().any(faster))
    }

    fn promise_rows(&self, builder: &mut Builder<'_>, at: At, column: usize) {
        for (constraint, promise) in self.objective.constraints().iter().enumerate() {
            if !promise.droppable {
                continue;
            }
            let mut row = builder.affine(&promise.excess, at);
            if row.constant <= 0.0 {
                continue;
            }
            row.terms.push((column, row.constant));
            row.constant = 0.0;
            let role = RowRole::Constraint { constraint, position: at.member };
            builder.row(role, Range::at_most(0.0), row);
        }
    }
}
