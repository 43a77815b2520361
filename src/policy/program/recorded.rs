//! The programs of a decision as they are solved, kept with what each is for.

use std::sync::Arc;

use crate::policy::decision::{Decision, Policy, PolicyError};
use crate::policy::program::master::PricingLimits;
use crate::policy::program::policy::ProgramPolicy;
use crate::problem::Problem;
use crate::program::{Classes, Program, ValueMap};

/// What a program of a decision is for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Purpose {
    /// Its optimum is the policy's.
    #[default]
    Optimum,
    /// The first of several levels, which is the policy's objective, or its inverse is.
    FirstLevel {
        /// Its inverse is.
        inverse: bool,
    },
    /// Raises whom no level before has fixed further, from what all have reached.
    NextLevel,
    /// The part of what a level asks of all members that they can have at once.
    Tried {
        /// The level, in the policy's units.
        level: f64,
    },
    /// The most promises that can be kept.
    Promises,
    /// Chooses among optima that were found, and holds them.
    Choice,
    /// The optimum where a member is not there, which says what its presence costs the others.
    Without,
}

/// A program, what it is for and what came of it.
#[derive(Clone, Debug)]
pub struct SolvedProgram {
    /// The program.
    pub program: Program,
    /// What it is for.
    pub purpose: Purpose,
    /// What its optimum is worth in terms of that.
    pub value_map: Option<ValueMap>,
    /// The optimum that was found; none if none was.
    pub optimum: Option<f64>,
    /// The classes of jobs that its columns and rows are named after.
    pub classes: Arc<Classes>,
}

impl SolvedProgram {
    /// How the policy's objective follows from the optimum; nothing where it does not, or only of a level that is tried.
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

/// Programs as they are solved.
#[derive(Debug, Default)]
pub(super) struct Recording {
    programs: Vec<SolvedProgram>,
    value_map: Option<ValueMap>,
    classes: Option<Arc<Classes>>,
}

impl Recording {
    /// Names classes after these from now on.
    pub(super) fn group(&mut self, classes: &Classes) {
        self.classes = Some(Arc::new(classes.clone()));
    }

    /// Says what the next program's optimum is worth.
    pub(super) fn means(&mut self, value_map: ValueMap) {
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

    /// Forgets the last program, of which nothing came.
    pub(super) fn pop(&mut self) {
        self.programs.pop();
    }

    /// What came of the last program.
    pub(super) fn found(&mut self, optimum: f64) {
        if let Some(last) = self.programs.last_mut() {
            last.optimum = Some(optimum);
        }
    }
}

impl ProgramPolicy {
    /// The decision on `problem`, without taking it, and the programs that it solves, in order, every pair a column and
    /// nothing decided without a program.
    ///
    /// # Errors
    /// As [`allocate`](Policy::allocate).
    pub fn solved_programs(
        &mut self,
        problem: &Problem,
    ) -> Result<(Decision, Vec<SolvedProgram>), PolicyError> {
        let (state, pricing) = (self.state(), std::mem::replace(&mut self.pricing, PricingLimits::NEVER));
        self.solving.record(Some(Recording::default()));
        let decided = self.allocate(problem);
        self.pricing = pricing;
        let recording = self.solving.record(None).unwrap_or_default();
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
