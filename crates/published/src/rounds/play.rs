//! What a learned scheduler does with a [`Board`]: sees, may, acts; the same in training and in use.

use std::fmt;

use super::board::Board;
use super::gang::expected;
use super::memory::{Expected, Memory};
use apportion::policy::RoundView;
use apportion_learn::environment::Space;

/// Decides one round after another, an action at a time.
pub trait Play: fmt::Debug + Send {
    /// One space per agent.
    fn spaces(&self) -> Vec<Space>;

    /// Can it decide about these jobs on these servers at all?
    ///
    /// # Errors
    /// If not; says why, and what would help.
    fn check(&self, board: &Board) -> Result<(), String> {
        let _ = board;
        Ok(())
    }

    /// Goes on to the first action of a round; what goes on from the round before has been placed already.
    fn begin(&mut self, board: &mut Board);

    /// Is nothing left to be decided in this round?
    fn is_over(&self) -> bool;

    /// Whose turn it is.
    fn agent(&self) -> usize {
        0
    }

    /// Writes what is seen.
    fn observe(&self, board: &Board, observation: &mut [f32]);

    /// Writes which actions there are; at least one is until it [is over](Self::is_over).
    fn mask(&self, board: &Board, mask: &mut [bool]);

    /// Carries out an allowed action, and goes on to the next.
    fn act(&mut self, board: &mut Board, action: usize);

    /// What a teacher would do.
    fn advice(&self, board: &Board) -> Option<usize>;

    /// Numbers that a critic judges; 0 if what is seen will do.
    fn state_length(&self) -> usize {
        0
    }

    /// Writes them.
    fn state(&self, board: &Board, state: &mut [f32]) {
        let _ = (board, state);
    }

    /// Which jobs go on where they were without being asked about: all, unless something has changed.
    fn keeps(&self, memory: &mut Memory, view: &RoundView<'_>) -> Keeps;
}

/// Which jobs go on where they were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keeps {
    /// Every one, and nothing is decided.
    Everything,
    /// None: all is decided anew.
    Nothing,
    /// Those that retained more than this part of their speed; the others go to the end of the queue.
    Retaining(f64),
}

/// A round on its way: what goes on is placed, and the first action is there to be decided, if there is any.
///
/// # Errors
/// If these jobs on these servers cannot be decided about.
pub(super) fn open(
    play: &mut dyn Play,
    memory: &mut Memory,
    view: &RoundView<'_>,
) -> Result<(Board, bool), String> {
    memory.learn(view);
    let keeps = play.keeps(memory, view);
    let mut board = Board::new(view, memory);
    play.check(&board)?;
    let before: Vec<_> = board.problem().jobs().ids().collect();
    for job in before {
        let standing = board.standing(job);
        if standing.previous.is_none() {
            continue;
        }
        match keeps {
            Keeps::Nothing => {}
            Keeps::Everything => drop(board.stay(job)),
            Keeps::Retaining(least) if standing.retained > least => drop(board.stay(job)),
            Keeps::Retaining(_) => memory.send_back(board.problem().jobs()[job].id),
        }
    }
    if keeps == Keeps::Everything {
        return Ok((board, false));
    }
    board.sort_by_queue(memory);
    play.begin(&mut board);
    let decides = !play.is_over();
    Ok((board, decides))
}

/// The round is decided: what is expected of those placed is remembered.
pub(super) fn close(memory: &mut Memory, board: &Board) {
    for (job, placed) in board.placed() {
        let kind = placed.worker_type;
        let by_type = board.speed(*job, kind);
        let expected = expected(board, *job, kind, &placed.workers) * board.standing(*job).fastest;
        memory.expect(placed.combination.first(), Expected { by_type, expected });
    }
}
