//! A recording of the programs that a decision solves, each with its purpose.

use std::sync::Arc;

use crate::policy::decision::{Decision, Policy, PolicyError};
use crate::policy::program::policy::ProgramPolicy;
use crate::policy::program::program_columns::PricingLimits;
use crate::problem::Problem;
use crate::program::{Classes, Program, ValueMap};

/// The purpose of a program of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Purpose {
    /// The program for the policy's optimum.
    #[default]
    Optimum,
    /// The first of several levels: the policy's objective is this level or its inverse.
    FirstLevel {
        /// Whether the policy's objective is the inverse of the level.
        inverse: bool,
    },
    /// Raises the members that no level before has fixed, from the levels that all have reached.
    NextLevel,
    /// Finds the largest common part of a level's required throughputs that all members can have at once.
    Tried {
        /// The level, in the policy's units.
        level: f64,
    },
    /// Keeps as many droppable constraints as possible.
    Droppable,
    /// Chooses among the optima, holding the value that was found.
    Choice,
    /// Finds the optimum without a job of a member, which says what its presence costs the others.
    Without,
}

/// A recorded program, with its purpose and its optimum.
#[derive(Clone, Debug)]
pub struct SolvedProgram {
    /// The program.
    pub program: Program,
    /// The purpose of the program.
    pub purpose: Purpose,
    /// The map from the program's optimum to the value that the program is written for.
    pub value_map: Option<ValueMap>,
    /// The optimum that was found; none if none was.
    pub optimum: Option<f64>,
    /// The classes of jobs that its columns and rows are named after.
    pub classes: Arc<Classes>,
}

impl SolvedProgram {
    /// The map from the optimum to the policy's objective; none where it does not follow, or only for a level that is tried.
    pub fn objective_map(&self) -> Option<ValueMap> {
        match (self.purpose, self.value_map?) {
            (Purpose::FirstLevel { inverse: true }, ValueMap::Scaled(scale)) => {
                Some(ValueMap::Inverse(scale))
            }
            (Purpose::Optimum | Purpose::FirstLevel { .. }, map) => Some(map),
            _ => None,
        }
    }
}

/// A recording of programs as they are solved.
#[derive(Debug, Default)]
pub(super) struct Recording {
    programs: Vec<SolvedProgram>,
    value_map: Option<ValueMap>,
    classes: Option<Arc<Classes>>,
}

impl Recording {
    /// Sets the classes of programs recorded from now on.
    pub(super) fn set_classes(&mut self, classes: &Classes) {
        self.classes = Some(Arc::new(classes.clone()));
    }

    /// Sets the map from the next program's optimum to a value.
    pub(super) fn set_value_map(&mut self, value_map: ValueMap) {
        self.value_map = Some(value_map);
    }

    pub(super) fn push(&mut self, program: &Program, purpose: Purpose) {
        let classes = self.classes.get_or_insert_with(|| Arc::new(Classes::singletons(0)));
        self.programs.push(SolvedProgram {
            program: program.clone(),
            purpose,
            value_map: self.value_map,
            optimum: None,
            classes: Arc::clone(classes),
        });
    }

    /// The number of programs.
    pub(super) fn len(&self) -> usize {
        self.programs.len()
    }

    /// Forgets all but the first programs: the others led to no answer.
    pub(super) fn truncate(&mut self, n_programs: usize) {
        self.programs.truncate(n_programs);
    }

    /// Notes the optimum of the last program.
    pub(super) fn set_optimum(&mut self, optimum: f64) {
        if let Some(last) = self.programs.last_mut() {
            last.optimum = Some(optimum);
        }
    }
}

impl ProgramPolicy {
    /// The decision on `problem`, after which the policy's state is as before, and the programs that it solves, in
    /// order. Every pair is a column, and nothing is decided without a program.
    ///
    /// # Errors
    /// As [`allocate`](Policy::allocate).
    pub fn solved_programs(
        &mut self,
        problem: &Problem,
    ) -> Result<(Decision, Vec<SolvedProgram>), PolicyError> {
        let (state, pricing) = (self.state(), std::mem::replace(&mut self.pricing, PricingLimits::UNPRICED));
        self.solver.record(Some(Recording::default()));
        let decided = self.allocate(problem);
        self.pricing = pricing;
        let recording = self.solver.record(None).unwrap_or_default();
        self.restore(&state)?;
        decided.map(|decision| (decision, recording.programs))
    }

    /// The programs of a decision alone.
    ///
    /// # Errors
    /// As [`allocate`](Policy::allocate).
    pub fn programs(&mut self, problem: &Problem) -> Result<Vec<Program>, PolicyError> {
        let (_, solved) = self.solved_programs(problem)?;
        Ok(solved.into_iter().map(|solved| solved.program).collect())
    }
}
