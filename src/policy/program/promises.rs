//! Which jobs to let off when not every promise can be kept: as few as possible, by branch and bound.
//!
//! The linear relaxation is tight here (see [`promise`](crate::program::promise)): its optimum, rounded down, is
//! nearly always attained by the first dive, which ends the search.

use crate::policy::program::solving::{Solving, SolvingError};
use crate::program::BoundObjective;

/// Programs solved before the best answer found is taken as it is.
const NODES_MAX: u32 = 4_000;
/// A value this close to a whole number is one.
const WHOLE: f64 = 1e-6;

/// The members whose promises are given up: [members]. `bound`'s members are single jobs.
pub(super) fn given_up(solving: &mut Solving, bound: &BoundObjective<'_>) -> Result<Vec<bool>, SolvingError> {
    let n = bound.instance().n_members();
    let mut best: Option<(f64, Vec<bool>)> = None;
    let mut open: Vec<Vec<Option<bool>>> = vec![vec![None; n]];
    let mut nodes = 0;
    while let Some(decided) = open.pop() {
        nodes += 1;
        if nodes > NODES_MAX && best.is_some() {
            let cut = format!("promises: {NODES_MAX} programs tried, fewer jobs might have been let off");
            solving.report().fallbacks.push(cut);
            break;
        }
        let formulation = bound.promises(&decided);
        let answer = match solving.solve(&formulation.program) {
            Ok(answer) => answer,
            Err(error) if error.is_infeasible() => continue,
            Err(error) => return Err(error),
        };
        let count = formulation.value(formulation.program.objective(&answer.solution.columns));
        if best.as_ref().is_some_and(|(most, _)| (count + WHOLE).floor() <= *most) {
            continue;
        }
        let kept = &answer.solution.columns[formulation.columns.len()..];
        let fractional = (0..n)
            .filter(|member| (WHOLE..1.0 - WHOLE).contains(&kept[*member]))
            .max_by(|a, b| kept[*a].total_cmp(&kept[*b]).then(b.cmp(a)));
        match fractional {
            None => best = Some((count.round(), kept.iter().map(|kept| *kept < 0.5).collect())),
            Some(member) => {
                // The more of it is kept, the likelier that keeping it works: that branch is taken first.
                for choice in [false, true] {
                    let mut next = decided.clone();
                    next[member] = Some(choice);
                    open.push(next);
                }
            }
        }
    }
    best.map(|(_, given_up)| given_up).ok_or(SolvingError::Empty)
}
