//! Which jobs to let off when not every promise can be kept: as few as possible, by branch and bound.
//!
//! The linear relaxation is tight here (see [`promise`](crate::program::promise)): few jobs are kept in part at its
//! vertices, and letting those off is an answer, nearly always as good as the relaxation rounded down, which ends
//! the search.

use crate::policy::program::solving::{Solving, SolvingError};
use crate::program::BoundObjective;

/// Programs solved before the best answer found is taken as it is.
const NODES_MAX: u32 = 4_000;
/// A value this close to a whole number is one.
const WHOLE: f64 = 1e-6;

/// Choices made so far, and how many promises they may leave kept at most.
struct Node {
    decided: Vec<Option<bool>>,
    most: f64,
}

/// The members whose promises are given up: [members]. `bound`'s members are single jobs.
pub(super) fn given_up(solving: &mut Solving, bound: &BoundObjective<'_>) -> Result<Vec<bool>, SolvingError> {
    let n = bound.instance().n_members();
    let mut best: Option<(f64, Vec<bool>)> = None;
    let mut open = vec![Node { decided: vec![None; n], most: n as f64 }];
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
        let formulation = bound.promises(&node.decided);
        let answer = match solving.solve(&formulation.program) {
            Ok(answer) => answer,
            Err(error) if error.is_infeasible() => continue,
            Err(error) => return Err(error),
        };
        let most = formulation.value(formulation.program.objective(&answer.solution.columns));
        let kept = &answer.solution.columns[formulation.columns.len()..];
        // Asking less of a job keeps an allocation feasible: those kept in part may be let off altogether.
        let rounded: Vec<bool> = kept.iter().map(|kept| *kept < 1.0 - WHOLE).collect();
        let count = rounded.iter().filter(|given_up| !**given_up).count() as f64;
        if best.as_ref().is_none_or(|(kept, _)| count > *kept) {
            best = Some((count, rounded));
        }
        let fractional = (0..n)
            .filter(|member| (WHOLE..1.0 - WHOLE).contains(&kept[*member]))
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
