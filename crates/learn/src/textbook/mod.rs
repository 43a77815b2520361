//! Small environments whose best return is known, for tests of learners and of the checker, and for benchmarks.

mod bandit;
mod cart_pole;
mod grid;
mod pairing;

pub use bandit::Bandit;
pub use cart_pole::CartPole;
pub use grid::{Grid, Walls};
pub use pairing::Pairing;

use crate::environment::Refused;

/// Refuses an action that does not exist or that the mask forbids.
fn admit(action: usize, n_actions: usize, allowed: impl FnOnce(usize) -> bool) -> Result<(), Refused> {
    if action >= n_actions {
        Err(Refused::Unknown { action, n_actions })
    } else if allowed(action) {
        Ok(())
    } else {
        Err(Refused::Masked { action })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::{CheckOptions, check};

    #[test]
    fn all_of_them_pass_the_check() {
        let options = CheckOptions::default();
        check(|| Bandit::new(vec![0.1, 0.9, 0.5]), options).assert_passed();
        check(CartPole::new, options).assert_passed();
        check(|| Pairing::new(4), options).assert_passed();
        for walls in [Walls::Bumped, Walls::Masked] {
            check(|| Grid::new((5, 4), walls, 100), options).assert_passed();
        }
    }
}
