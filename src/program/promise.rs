//! Promises: droppable constraints, and the program that counts how many jobs can have theirs kept at once.
//!
//!   maximize Σ_m n_m·z_m   subject to   L_m(X) + c_m·z_m ≤ 0,   0 ≤ z ≤ 1
//!
//! where c_m + L_m(X) ≤ 0 is the promise to m: c_m > 0 is what X = 0 lacks and L_m only falls as m is given more.
//! With z_m = 1 the promise is kept, with z_m = 0 the row asks for nothing. At a vertex few z are fractional, as
//! only the worker types' rows couple jobs, so branching on them ends soon.

use super::bound::{At, BoundObjective};
use super::expression::Subject;
use super::formulation::{AuxiliaryRole, Formulation, RowRole};
use super::range::Reach;
use super::standard::{Affine, Range, Sense};

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
        let mut builder = self.polytope(&reach, None);
        builder.constraints_but(|constraint, _| constraint.droppable);
        let mut count = Affine::default();
        for at in self.places(Subject::Job) {
            let (range, weight) = asked[at.member];
            let role = AuxiliaryRole::Kept { member: at.member };
            let column = builder.auxiliary(role, range, range, 1.0);
            count.terms.push((column, weight * self.instance.multiplicity[at.member]));
            self.promise_rows(&mut builder, at, column);
        }
        builder.objective(count);
        builder.finish(Sense::Maximize)
    }

    fn promise_rows(&self, builder: &mut super::compile::Builder<'_>, at: At, column: usize) {
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
