//! Tests of the checker on a right environment and on copies with one fault each: every fault is found, and no other is reported.

use std::cell::Cell;

use super::*;
use crate::environment::{Space, Transition};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    NoAgent,
    BoundsCrossed,
    NoActions,
    NoState,
    WrongAgent,
    HalfWritten,
    LookingCounts,
    NotANumber,
    OutOfBounds,
    AllMasked,
    TakesMasked,
    TakesUnknown,
    RefusesAllowed,
    RefusalCosts,
    InfiniteReward,
    Moody,
    Remembers,
    GoesOn,
    TruncatesEarly,
    TruncatesLate,
    TruncatesUndeclared,
}

/// A counter that ends at 10: an action adds 0, 1 or 2, and 2 is masked on even numbers.
#[derive(Debug)]
struct Counter {
    fault: Fault,
    spaces: Vec<Space>,
    count: usize,
    n_steps: u64,
    status: Status,
    n_looks: Cell<u32>,
    n_episodes: u32,
    mood: u32,
}

const STEPS: u64 = 12;

impl Counter {
    fn new(fault: Fault, mood: u32) -> Self {
        let space = match fault {
            Fault::BoundsCrossed => Space::uniform(2, (1.0, 0.0), 3),
            Fault::NoActions => Space::uniform(2, (0.0, 12.0), 0),
            _ => Space::uniform(2, (0.0, 12.0), 3),
        };
        let n_agents = match fault {
            Fault::NoAgent => 0,
            Fault::NoState => 2,
            _ => 1,
        };
        let spaces = vec![space; n_agents];
        let status = Status::Terminated;
        Self { fault, spaces, count: 0, n_steps: 0, status, n_looks: Cell::new(0), n_episodes: 0, mood }
    }
}

impl Environment for Counter {
    fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    fn agent(&self) -> usize {
        usize::from(self.fault == Fault::WrongAgent && self.count > 3)
    }

    fn reset(&mut self, seed: u64) {
        self.count = usize::try_from(seed % 3).unwrap();
        self.n_steps = 0;
        self.status = Status::Running;
        self.n_episodes += 1;
        if self.fault == Fault::Remembers && self.n_episodes > 1 {
            self.count += 1;
        }
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        self.n_looks.set(self.n_looks.get() + 1);
        observation[0] = match self.fault {
            Fault::NotANumber if self.count > 5 => f32::NAN,
            Fault::OutOfBounds if self.count > 5 => -1.0,
            Fault::LookingCounts => (self.n_looks.get() % 5) as f32,
            Fault::Moody => self.mood as f32,
            _ => self.count as f32,
        };
        if self.fault != Fault::HalfWritten {
            observation[1] = 0.0;
        }
        let stuck = self.fault == Fault::AllMasked && self.count == 4;
        mask.fill(!stuck);
        mask[2] = !stuck && !self.count.is_multiple_of(2);
    }

    fn step(&mut self, action: usize) -> Result<Transition, Refused> {
        if self.status.is_over() && self.fault != Fault::GoesOn {
            return Err(Refused::Over);
        }
        if action >= 3 && self.fault != Fault::TakesUnknown {
            return Err(Refused::Unknown { action, n_actions: 3 });
        }
        if action == 2 && self.count.is_multiple_of(2) && self.fault != Fault::TakesMasked {
            if self.fault == Fault::RefusalCosts {
                self.count += 2;
            }
            return Err(Refused::Masked { action });
        }
        if action == 1 && self.fault == Fault::RefusesAllowed && self.count == 5 {
            return Err(Refused::Masked { action });
        }
        self.count += action;
        self.n_steps += 1;
        let limit = match self.fault {
            Fault::TruncatesEarly => STEPS - 6,
            Fault::TruncatesLate => STEPS + 3,
            _ => STEPS,
        };
        self.status = if self.count >= 10 {
            Status::Terminated
        } else if self.n_steps >= limit {
            Status::Truncated
        } else {
            Status::Running
        };
        let reward = if self.fault == Fault::InfiniteReward { f32::INFINITY } else { 1.0 };
        Ok(Transition::new(reward, self.status))
    }

    fn step_limit(&self) -> Option<u64> {
        (self.fault != Fault::TruncatesUndeclared).then_some(STEPS)
    }
}

fn broken(fault: Fault) -> Vec<Rule> {
    let n_made = Cell::new(0);
    let make = || {
        n_made.set(n_made.get() + 1);
        Counter::new(fault, n_made.get())
    };
    let options = CheckOptions { n_episodes: 40, ..CheckOptions::default() };
    check(make, options).violations.iter().map(|violation| violation.rule).collect()
}

#[test]
fn a_right_one_passes_and_ends_both_ways() {
    let report =
        check(|| Counter::new(Fault::None, 0), CheckOptions { n_episodes: 40, ..CheckOptions::default() });
    report.assert_passed();
    assert!(report.n_terminated > 0 && report.n_truncated > 0, "{report}");
    assert_eq!(report.n_terminated + report.n_truncated, 40);
}

#[test]
fn each_fault_is_found_and_named() {
    let faults = [
        (Fault::None, &[][..]),
        (Fault::NoAgent, &[Rule::Spaces]),
        (Fault::BoundsCrossed, &[Rule::Spaces]),
        (Fault::NoActions, &[Rule::Spaces]),
        (Fault::NoState, &[Rule::Spaces]),
        (Fault::WrongAgent, &[Rule::Agent]),
        (Fault::LookingCounts, &[Rule::Observe]),
        (Fault::HalfWritten, &[Rule::Observe, Rule::Bounds]),
        (Fault::NotANumber, &[Rule::Bounds]),
        (Fault::OutOfBounds, &[Rule::Bounds]),
        (Fault::AllMasked, &[Rule::Mask]),
        (Fault::TakesMasked, &[Rule::Refusal]),
        (Fault::TakesUnknown, &[Rule::Refusal]),
        (Fault::RefusesAllowed, &[Rule::Refusal]),
        (Fault::RefusalCosts, &[Rule::Refusal]),
        (Fault::InfiniteReward, &[Rule::Reward]),
        (Fault::Moody, &[Rule::Determinism]),
        (Fault::Remembers, &[Rule::Reset]),
        (Fault::GoesOn, &[Rule::Ending]),
        (Fault::TruncatesEarly, &[Rule::Truncation]),
        (Fault::TruncatesLate, &[Rule::Truncation]),
        (Fault::TruncatesUndeclared, &[Rule::Truncation]),
    ];
    for (fault, rules) in faults {
        assert_eq!(broken(fault), rules, "{fault:?}");
    }
}

#[test]
fn a_report_says_which_rule_and_where() {
    let report = check(|| Counter::new(Fault::OutOfBounds, 0), CheckOptions::default());
    let text = report.to_string();
    assert!(text.contains("broken: observations are finite and within their bounds"), "{text}");
    assert!(text.contains("number 0 is -1, not from 0 to 12"), "{text}");
}
