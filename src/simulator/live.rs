//! Options of a live cluster, which decides ahead and takes time to start and stop jobs, as rounds on paper do not.

use serde::{Deserialize, Serialize};

use super::options::Options;
use super::outcome::SimulationError;
pub use crate::spec::run::Refill;
use crate::units::Seconds;

/// Options of a live cluster, beyond the published simulator; all off by default.
///
/// `start_up` and `stop` are added to the [preemption cost](Options::preemption_cost), which is the published way: time that a job
/// loses when it starts again. `start_up` is lost at every start, also the first, and `stop` is lost by the next job on the
/// workers. If several are given, all are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Live {
    /// Time before the end of a round at which the next one is decided: by the jobs that have arrived, the completions and failures
    /// that are known and the steps that are done by then, and as if running jobs ran until the end of the round. Rounds that are
    /// decided ahead last their whole length, even if all running jobs are done before. 0 = at the end.
    pub look_ahead: Seconds,
    /// Time that a job holds its workers without steps at the start of a lease that extends none. A part that does not fit into the
    /// rest of a round is left for the next, if the lease is extended.
    pub start_up: Seconds,
    /// Time that a job that is not done holds its workers after a lease that is not extended: the next job on them starts that much
    /// later, and so does the job itself if it goes on elsewhere. No account counts that time. With `start_up` it is less than a
    /// round.
    pub stop: Seconds,
    /// Whether workers of jobs that are done inside a round get other jobs in the same round.
    pub refill: Refill,
    /// Whether policies see the measured throughputs of jobs alone, on the fewest servers, averaged half and half with the
    /// estimates before. Otherwise they see throughputs as they are known at a job's arrival.
    pub measured: bool,
}

impl Live {
    /// Whether all of these options are off.
    pub fn is_off(&self) -> bool {
        *self == Self::default()
    }

    /// Whether something happens inside rounds, between their start and their end.
    pub(super) fn has_inside(&self) -> bool {
        self.look_ahead.get() > 0.0 || self.refill != Refill::Never
    }

    /// Refuses options that are out of range, or impossible with the other options.
    pub(super) fn check(&self, options: &Options) -> Result<(), SimulationError> {
        let refuse = |field, value: String, expected| Err(SimulationError::Option { field, value, expected });
        let times = [("look_ahead", self.look_ahead), ("start_up", self.start_up), ("stop", self.stop)];
        for (field, time) in times {
            if !(time.get().is_finite() && time.get() >= 0.0) {
                return refuse(field, time.get().to_string(), "a finite number of seconds, at least 0");
            }
            if options.ideal && time.get() > 0.0 {
                return refuse(field, time.get().to_string(), "0 where there are no rounds (`ideal`)");
            }
        }
        if self.look_ahead >= options.round_length {
            return refuse(
                "look_ahead",
                self.look_ahead.get().to_string(),
                "less than the length of a round",
            );
        }
        // Else every lease might be lost before its first step.
        if self.start_up + self.stop >= options.round_length {
            let expected = "less than the length of a round, together with `stop`";
            return refuse("start_up", self.start_up.get().to_string(), expected);
        }
        if options.ideal && self.refill != Refill::Never {
            let expected = "`never` where there are no rounds (`ideal`)";
            return refuse("refill", self.refill.name().to_owned(), expected);
        }
        Ok(())
    }

    /// Refuses options that need an allocation, which policies that decide inside rounds do not give.
    pub(super) fn check_direct(&self) -> Result<(), SimulationError> {
        if self.look_ahead.get() > 0.0 {
            let (field, value) = ("look_ahead", self.look_ahead.get().to_string());
            let expected = "0 for a policy that decides inside rounds";
            return Err(SimulationError::Option { field, value, expected });
        }
        if self.refill != Refill::Never {
            let (field, value) = ("refill", self.refill.name().to_owned());
            let expected = "`never` for a policy that decides inside rounds";
            return Err(SimulationError::Option { field, value, expected });
        }
        Ok(())
    }
}
