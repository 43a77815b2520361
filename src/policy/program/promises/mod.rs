//! Which jobs to let off when not every promise can be kept: as few as possible, by branch and bound.
//!
//! Who could not keep a promise with the cluster to itself is let off first. Of the others, the linear relaxation is tight
//! (see [`promise`](crate::program::promise)): few jobs are kept in part at its vertices, and letting those off is an
//! answer, nearly always as good as the relaxation rounded down, which ends the search. Where members are alone on worker
//! types, relaxations take no program ([`alone`]); where there are many to a kind that share workers, one over the time of
//! kinds mostly says whom to let off ([`Sum::let_off`]).

mod alone;

use crate::policy::program::master::Master;
use crate::policy::program::pools::Sum;
use crate::policy::program::solving::{Solving, SolvingError};
use crate::policy::program::sums;
use crate::policy::program::tolerances::WHOLE;
use crate::program::{PROMISE_SLACK, Range};

/// Programs solved before the best answer found is taken as it is.
const NODES_MAX: u32 = 4_000;

/// Lets members off so that the promises of all others can be kept; whatever pairs that takes are columns
/// afterwards. False if some member stands for several jobs, not all of which can be kept: they must be told apart.
pub(super) fn settle(solving: &mut Solving, master: &mut Master<'_>) -> Result<bool, SolvingError> {
    let mut waived = master.bound().beyond_reach(PROMISE_SLACK);
    for (waived, before) in waived.iter_mut().zip(&master.reduced().instance.waived) {
        *waived |= before;
    }
    let decided: Vec<Option<bool>> = waived.iter().map(|waived| waived.then_some(false)).collect();
    if waived.contains(&true) {
        master.waive(waived);
    }
    let single = master.reduced().instance.multiplicity.iter().all(|n| *n <= 1.0);
    if let Ok(mut sum) = Sum::of(master, solving) {
        if sum.keeps_all(solving, master) {
            return Ok(true);
        }
        if !single {
            return Ok(false);
        }
        let let_off: Vec<bool> = decided.iter().map(Option::is_some).collect();
        if let Some(let_off) = sum.let_off(solving, master, &let_off) {
            master.waive(let_off);
            return Ok(true);
        }
    } else if sums::keeps_all(solving, master) {
        return Ok(true);
    }
    let Some(Relaxed { kept, .. }) = relaxation(solving, master, &decided)? else { return Ok(false) };
    if decided.iter().zip(kept).all(|(decided, kept)| decided.is_some() || kept >= 1.0 - PROMISE_SLACK) {
        return Ok(true);
    }
    if single {
        let waived = given_up(solving, master, decided)?;
        master.waive(waived);
    }
    Ok(single)
}

/// All of it at most, or nothing.
fn up_to(all: bool) -> Range {
    Range { lower: 0.0, upper: if all { 1.0 } else { 0.0 } }
}

/// What can be kept after some choices.
struct Relaxed {
    /// No more jobs than this.
    most: f64,
    /// The part of each member's promise that is: [members].
    kept: Vec<f64>,
    /// Whom to let off first, that the others can be kept theirs, if that is known: [members], or fewer.
    dearest: Vec<usize>,
}

/// The most jobs that can have their promises kept after some choices; nothing if the choices contradict one another.
///
/// What was decided to keep is asked for by its weight, not by a bound: so the program is feasible over any pairs,
/// and prices say which more are needed. Should that weight not suffice, it is asked for alone, and then by bounds.
fn relaxation(
    solving: &mut Solving,
    master: &mut Master<'_>,
    decided: &[Option<bool>],
) -> Result<Option<Relaxed>, SolvingError> {
    if let Some(relaxed) = alone::relaxation(solving, master, decided) {
        return Ok(Some(relaxed));
    }
    let relaxed = |(most, kept)| Relaxed { most, kept, dearest: Vec::new() };
    let n = decided.len() as f64;
    let due = decided.iter().filter(|decided| **decided == Some(true)).count() as f64;
    let all_due = |kept: &[f64]| {
        decided.iter().zip(kept).all(|(decided, kept)| *decided != Some(true) || *kept >= 1.0 - PROMISE_SLACK)
    };
    let asked = |of: fn(Option<bool>, f64) -> (Range, f64)| -> Vec<(Range, f64)> {
        decided.iter().map(|decided| of(*decided, n)).collect()
    };
    let mut solve = |asked: Vec<(Range, f64)>| {
        let (formulation, answer) = master.solve(solving, |bound| bound.promises(&asked))?;
        let kept = answer.solution.columns[formulation.columns.len()..].to_vec();
        Ok::<_, SolvingError>((formulation.value(answer.bound), kept))
    };
    let weighed = asked(|decided, n| match decided {
        Some(kept) => (up_to(kept), n),
        None => (up_to(true), 1.0),
    });
    let (most, kept) = solve(weighed)?;
    if all_due(&kept) {
        return Ok(Some(relaxed((most - (n - 1.0) * due, kept))));
    }
    let (most, _) = solve(asked(|decided, _| (up_to(decided == Some(true)), 1.0)))?;
    if most < due - WHOLE {
        return Ok(None);
    }
    let bounded = asked(|decided, _| match decided {
        Some(kept) => (Range::exactly(f64::from(u8::from(kept))), 1.0),
        None => (up_to(true), 1.0),
    });
    match solve(bounded) {
        Ok(solved) => Ok(Some(relaxed(solved))),
        Err(error) if error.is_infeasible() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Choices made so far, and how many promises they may leave kept at most.
struct Node {
    decided: Vec<Option<bool>>,
    most: f64,
}

/// The members whose promises are given up, all of them single jobs: [members].
fn given_up(
    solving: &mut Solving,
    master: &mut Master<'_>,
    decided: Vec<Option<bool>>,
) -> Result<Vec<bool>, SolvingError> {
    let n = decided.len();
    let mut best: Option<(f64, Vec<bool>)> = None;
    let mut open = vec![Node { decided, most: n as f64 }];
    let mut nodes = 0;
    while let Some(node) = open.pop() {
        let beaten = |most: f64, best: &Option<(f64, Vec<bool>)>| {
            best.as_ref().is_some_and(|(kept, _)| (most + WHOLE).floor() <= *kept)
        };
        if beaten(node.most, &best) {
            continue;
        }
        nodes += 1;
        if nodes > NODES_MAX
            && let Some((kept, _)) = &best
        {
            let most = open.iter().map(|node| node.most).fold(node.most, f64::max);
            solving.report().fallbacks.push(cut_short(n, *kept, most));
            break;
        }
        let Some(Relaxed { most, kept, dearest }) = relaxation(solving, master, &node.decided)? else {
            continue;
        };
        // Asking less of a job keeps an allocation feasible: those kept in part may be let off altogether.
        let rounded: Vec<bool> = kept.iter().map(|kept| *kept < 1.0 - PROMISE_SLACK).collect();
        let count = rounded.iter().filter(|given_up| !**given_up).count() as f64;
        if best.as_ref().is_none_or(|(kept, _)| count > *kept) {
            best = Some((count, rounded));
        }
        if !beaten(most, &best) {
            let few = alone::few(solving, master, (&node.decided, (most + WHOLE).floor()), &dearest);
            best = few.map(|given_up| ((most + WHOLE).floor(), given_up)).or(best);
        }
        let fractional = (0..n)
            .filter(|member| (WHOLE..1.0 - PROMISE_SLACK).contains(&kept[*member]))
            .max_by(|a, b| kept[*a].total_cmp(&kept[*b]).then(b.cmp(a)));
        let Some(member) = fractional.filter(|_| !beaten(most, &best)) else { continue };
        // The more of it is kept, the likelier that keeping it works: that branch is taken first.
        for choice in [false, true] {
            let mut decided = node.decided.clone();
            decided[member] = Some(choice);
            open.push(Node { decided, most });
        }
    }
    best.map(|(_, given_up)| given_up).ok_or(SolvingError::Empty)
}

/// What a search that was not finished knows.
fn cut_short(n: usize, kept: f64, most: f64) -> String {
    let n = n as f64;
    let least = n - (most + WHOLE).floor();
    format!("promises: {} of {n} let off after {NODES_MAX} programs, at least {least} must be", n - kept)
}
