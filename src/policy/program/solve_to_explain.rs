//! A decision, with the program that explains it by its prices.

use crate::policy::decision::{Policy, PolicyError};
use crate::policy::program::explain::{DecisionUse, Explained};
use crate::policy::program::policy::{Decided, ProgramPolicy};
use crate::problem::Problem;

impl ProgramPolicy {
    /// Decides. If no program over members was kept, or one at a level that was only tried, solves once more, by a
    /// written program at the optimum: its prices explain the first decision.
    pub(super) fn solve_to_explain(&mut self, problem: &Problem) -> Result<Explained, PolicyError> {
        let state = self.state();
        let Decided { reduced, optimum: solved, decision } = self.solve(problem)?;
        let binding = self.binding(&self.options.objective, &reduced)?;
        let bound = self.options.objective.bind_again(&reduced.instance, &binding);
        let bound = bound.map_err(|error| self.bind_error(&error, &reduced))?;
        let in_use = Some(DecisionUse::of(&bound, &solved.class_time));
        let is_late = self.solver.report().out_of_time;
        if is_late || (solved.answer.is_some() && !solved.explains_another_level()) {
            return Ok(Explained { reduced, solved, decision, in_use });
        }
        self.restore(&state)?;
        self.solver.set_explaining(true);
        let written = self.solve(problem);
        self.solver.set_explaining(false);
        let Decided { reduced: again, optimum: solved, .. } = written?;
        let alike = again.classes == reduced.classes && again.instance.dropped == reduced.instance.dropped;
        Ok(Explained { reduced: again, solved, decision, in_use: in_use.filter(|_| alike) })
    }
}
