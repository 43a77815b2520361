//! A decision, with the program that explains it by its prices.

use crate::policy::decision::{Policy, PolicyError};
use crate::policy::program::explain::{DecisionUse, Explained, answer_by_prices};
use crate::policy::program::policy::{Decided, ProgramPolicy};
use crate::problem::Problem;

impl ProgramPolicy {
    /// Decides, with the prices of the program over members that explains the decision. Where no such program was solved,
    /// prices of members that prove the optimum are its dual values, if its own certificate bears that out.
    ///
    /// Solves once more, by a written program at the optimum, where there are none: of logarithms (prices of cones), of
    /// water filling (each step has prices of its own), of the policy's own constraints (which the search sees as floors),
    /// of a level tried last that is not the optimum, and where the certificate does not bear the prices out.
    pub(super) fn solve_to_explain(&mut self, problem: &Problem) -> Result<Explained, PolicyError> {
        let state = self.state();
        let Decided { reduced, optimum: mut solved, decision } = self.solve(problem)?;
        let binding = self.binding(&self.options.objective, &reduced)?;
        let bound = self.options.objective.bind_again(&reduced.instance, &binding);
        let bound = bound.map_err(|error| self.bind_error(&error, &reduced))?;
        let in_use = DecisionUse::of(&bound, &solved.class_time);
        if solved.answer.is_none() && !solved.explains_another_level() {
            solved.answer = answer_by_prices(&bound, &solved, &in_use, decision.objective.as_ref()).ok();
        }
        let in_use = Some(in_use);
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
