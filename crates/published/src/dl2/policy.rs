//! Rules of DL2's world, which learn nothing, by name.

use std::fmt;

use crate::dl2::control::RandomActions;
use crate::dl2::greedy::Optimus;
use crate::dl2::observe::{ObservationKind, Window};
use crate::dl2::published::{Addition, Drf, InOrder, Tetris};
use crate::dl2::shares::Shares;
use crate::dl2::speeds::Dl2Speeds;
use crate::dl2::task::{Tasks, add, least_loaded};
use crate::dl2::textbook::{Alignment, ProgressiveFilling};
use crate::world::Decision;
use crate::world::Part;
use crate::world::World;
use crate::world::WorldPolicy;
use crate::world::shares::Goal;
use apportion::index::JobId;
use apportion::spec::nearest::name_list;
use apportion::workload::random::SeedStreams;

/// The number of jobs in view of random policies, as in the published window.
const WINDOW_JOBS: usize = 20;

/// A rule of DL2's world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dl2Rule {
    /// Dominant resource fairness as coded, each job up to this number of bundles, and at most the most tasks.
    Drf(u16),
    /// In order of arrival, each job up to the most tasks.
    Fifo,
    /// In order of the remaining part of a job's work, each job up to the most tasks.
    Srtf,
    /// Tetris as coded: alignment and remaining work.
    Tetris,
    /// Optimus as coded: largest gain first, knowing the true speeds.
    Optimus,
    /// Dominant resource fairness as described.
    TextbookDrf,
    /// Tetris as described.
    TextbookTetris,
    /// Optimus as described, knowing the true speeds.
    TextbookOptimus,
    /// Optimal shares of slots, knowing the true speeds.
    Shares(Goal),
    /// After the starting bundles, random actions of these weights: (worker, parameter server, both), and *nothing*.
    Random([f64; 3], f64),
    /// The starting bundles only.
    StartingBundle,
}

const ALL: [(&str, Dl2Rule); 16] = [
    ("drf", Dl2Rule::Drf(u16::MAX)),
    ("srtf", Dl2Rule::Srtf),
    ("fifo", Dl2Rule::Fifo),
    ("tetris", Dl2Rule::Tetris),
    ("optimus", Dl2Rule::Optimus),
    ("textbook_drf", Dl2Rule::TextbookDrf),
    ("textbook_tetris", Dl2Rule::TextbookTetris),
    ("textbook_optimus", Dl2Rule::TextbookOptimus),
    ("max_min_fairness", Dl2Rule::Shares(Goal::LeastSpeed)),
    ("max_sum_completions", Dl2Rule::Shares(Goal::Completions)),
    ("random", Dl2Rule::Random([1.0; 3], 1.0)),
    ("parameter_servers", Dl2Rule::Random([0.0, 1.0, 0.0], 0.0)),
    ("parameter_servers_bundles", Dl2Rule::Random([0.0, 1.0, 0.3], 0.0)),
    ("workers_parameter_servers", Dl2Rule::Random([1.0, 1.0, 0.0], 0.0)),
    ("drf_capped", Dl2Rule::Drf(5)),
    ("starting_bundle", Dl2Rule::StartingBundle),
];

/// All rules with their names, baselines first.
pub fn all() -> impl Iterator<Item = (&'static str, Dl2Rule)> {
    ALL.into_iter()
}

/// The rule of a name, and the name.
///
/// # Errors
/// If there is no rule of the name; the error lists the names.
pub fn parse_named(name: &str) -> Result<(&'static str, Dl2Rule), String> {
    let unknown = || {
        let known = name_list(ALL.iter().map(|(name, _)| *name));
        format!("unknown policy `{name}`, expected one of {known}")
    };
    ALL.into_iter().find(|(other, _)| *other == name).ok_or_else(unknown)
}

/// A rule's state inside a slot.
#[derive(Clone, Debug)]
enum State {
    Drf(Drf),
    InOrder(InOrder),
    Tetris(Tetris),
    Optimus(Optimus),
    ProgressiveFilling(ProgressiveFilling),
    Alignment(Alignment),
    Shares(Shares),
    Random(RandomActions),
    Nothing,
}

/// A rule of DL2's world at work.
#[derive(Clone)]
pub struct Dl2Policy {
    rule: Dl2Rule,
    state: State,
    speeds: Dl2Speeds,
    tasks_max: u16,
    /// Jobs still to be given a starting bundle, in reverse order.
    to_start: Vec<JobId>,
    parts: Vec<Part>,
}

impl Dl2Policy {
    /// A rule at work; `seed` is for its random actions.
    pub fn new(rule: Dl2Rule, speeds: Dl2Speeds, tasks_max: u16, seed: u64) -> Self {
        let state = match rule {
            Dl2Rule::Drf(_) => State::Drf(Drf::default()),
            Dl2Rule::Fifo | Dl2Rule::Srtf => State::InOrder(InOrder::default()),
            Dl2Rule::Tetris => State::Tetris(Tetris::default()),
            Dl2Rule::Optimus => State::Optimus(Optimus::new(false, tasks_max)),
            Dl2Rule::TextbookDrf => State::ProgressiveFilling(ProgressiveFilling::default()),
            Dl2Rule::TextbookTetris => State::Alignment(Alignment::default()),
            Dl2Rule::TextbookOptimus => State::Optimus(Optimus::new(true, tasks_max)),
            Dl2Rule::Shares(goal) => State::Shares(Shares::new(goal, tasks_max)),
            Dl2Rule::Random(weights, nothing) => {
                let window = Window::new(ObservationKind::Released, WINDOW_JOBS, tasks_max, Vec::new());
                let draws = SeedStreams::new(seed).stream("dl2 actions");
                State::Random(RandomActions::new(weights, nothing, window, draws))
            }
            Dl2Rule::StartingBundle => State::Nothing,
        };
        Self { rule, state, speeds, tasks_max, to_start: Vec::new(), parts: Vec::new() }
    }

    /// The rule's next addition as an action of a window; *nothing*, the last action, if the rule adds nothing or adds to a job out
    /// of view.
    pub fn next_action(&mut self, world: &World, window: &Window) -> usize {
        let action = self.step(world).and_then(|next| window.encode(next.job, next.tasks));
        action.unwrap_or(window.n_actions() - 1)
    }

    fn step(&mut self, world: &World) -> Option<Addition> {
        while let Some(job) = self.to_start.pop() {
            if let Some(server) = least_loaded(world, job, Tasks::Bundle) {
                return Some(Addition { job, tasks: Tasks::Bundle, server });
            }
        }
        let most = self.tasks_max;
        match &mut self.state {
            State::Drf(rule) => {
                let bundles = if let Dl2Rule::Drf(bundles) = self.rule { bundles.min(most) } else { most };
                rule.next(world, bundles)
            }
            State::InOrder(rule) => rule.next(world, most),
            State::Tetris(rule) => rule.next(world, most),
            State::Optimus(rule) => rule.next(world, &self.speeds),
            State::ProgressiveFilling(rule) => rule.next(world, most),
            State::Alignment(rule) => rule.next(world, most),
            State::Shares(rule) => rule.next(world),
            State::Random(rule) => rule.next(world, most),
            State::Nothing => None,
        }
    }
}

impl WorldPolicy for Dl2Policy {
    fn begin(&mut self, world: &World) {
        self.to_start.clear();
        if matches!(self.rule, Dl2Rule::Random(..) | Dl2Rule::StartingBundle) {
            self.to_start.extend(world.active().iter().rev());
        }
        match &mut self.state {
            State::Drf(rule) => rule.begin(world),
            State::InOrder(rule) => rule.begin(world, self.rule == Dl2Rule::Srtf),
            State::Tetris(rule) => rule.begin(),
            State::Optimus(rule) => rule.begin(world, &self.speeds),
            State::ProgressiveFilling(rule) => rule.begin(world),
            State::Alignment(rule) => rule.begin(),
            State::Shares(rule) => rule.begin(world, &self.speeds),
            State::Random(_) | State::Nothing => {}
        }
    }

    fn next(&mut self, world: &World) -> Decision<'_> {
        match self.step(world) {
            Some(Addition { job, tasks, server }) => add(world, job, tasks, server, &mut self.parts),
            None => Decision::EndRound,
        }
    }
}

impl fmt::Debug for Dl2Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dl2Policy").field("rule", &self.rule).finish_non_exhaustive()
    }
}
