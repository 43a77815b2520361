//! The stop of a program: when and how it is asked, and when it is killed, without processes, files or clocks.

use apportion::Seconds;

use crate::protocol::Stop;
use crate::rank::{Steer, Why};

/// An action on a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Write this into its control file.
    Write(Stop),
    /// Send SIGTERM.
    Terminate,
    /// Send SIGKILL.
    Kill,
}

/// The state of a program's stop.
#[derive(Clone, Debug)]
pub(super) struct Stopping {
    steer: Steer,
    /// The strongest stop that was ever ordered, or that the lease's end asks for: none is taken back.
    wanted: Option<Stop>,
    /// The stop in the control file.
    written: Option<Stop>,
    asked: Option<(Seconds, Why)>,
    terminated: bool,
    killed: bool,
    /// Whether it had not been asked to stop yet when its workers might be another job's already. None while they never might be.
    was_unasked: Option<bool>,
    /// The instant at which the program itself ended; processes that it started may be left.
    program_ended: Option<Seconds>,
    rest_terminated: bool,
}

/// The strength of a stop. A stop replaces one that is not stronger.
fn strength(stop: Stop) -> u8 {
    match stop {
        Stop::Propose => 0,
        Stop::After(_) => 1,
        Stop::Now => 2,
        Stop::Kill => 3,
    }
}

impl Stopping {
    pub(super) fn new(steer: Steer) -> Self {
        Self {
            steer,
            wanted: None,
            written: None,
            asked: None,
            terminated: false,
            killed: false,
            was_unasked: None,
            program_ended: None,
            rest_terminated: false,
        }
    }

    pub(super) fn steer(&mut self, steer: Steer) {
        self.steer = steer;
    }

    pub(super) fn note_written(&mut self, stop: Stop) {
        self.written = Some(stop);
    }

    /// Notes that the shim was told by a signal to end: the program is asked to stop, if it has not been yet.
    pub(super) fn note_signal(&mut self, now: Seconds) {
        if self.wanted.is_none_or(|wanted| strength(wanted) < strength(Stop::Now)) {
            self.wanted = Some(Stop::Now);
        }
        self.asked.get_or_insert((now, Why::Signal));
    }

    /// Notes that the program's workers may be another's already: it is killed.
    pub(super) fn note_orphaned(&mut self, now: Seconds) {
        self.wanted = Some(Stop::Kill);
        self.was_unasked.get_or_insert(self.asked.is_none());
        self.asked.get_or_insert((now, Why::Signal));
    }

    pub(super) fn note_program_ended(&mut self, now: Seconds) {
        self.program_ended.get_or_insert(now);
    }

    /// The instant and the reason of the request to stop; none if there was none.
    pub(super) fn asked(&self) -> Option<(Seconds, Why)> {
        self.asked
    }

    pub(super) fn was_terminated(&self) -> bool {
        self.terminated
    }

    pub(super) fn was_killed(&self) -> bool {
        self.killed
    }

    /// Whether it had not been asked to stop when the process of its Slurm job was gone. None while that is not gone.
    pub(super) fn was_unasked(&self) -> Option<bool> {
        self.was_unasked
    }

    /// The action at `now` on a program that `speaks`, by its progress file, or does not.
    pub(super) fn next(&mut self, now: Seconds, speaks: bool) -> Option<Measure> {
        self.want(now);
        if self.is_to_be_killed(now) {
            self.killed = true;
            return Some(Measure::Kill);
        }
        if self.program_ended.is_some() {
            return (!std::mem::replace(&mut self.rest_terminated, true)).then_some(Measure::Terminate);
        }
        let wanted = self.wanted?;
        if speaks {
            return (self.written != Some(wanted)).then_some(Measure::Write(wanted));
        }
        let terminates = wanted != Stop::Propose && !std::mem::replace(&mut self.terminated, true);
        terminates.then_some(Measure::Terminate)
    }

    /// Takes over the ordered stop, and the one that the lease's end asks for.
    fn want(&mut self, now: Seconds) {
        if let Some(stop) = self.steer.stop
            && self.wanted.is_none_or(|wanted| strength(stop) >= strength(wanted))
        {
            self.wanted = Some(stop);
        }
        let is_asked = self.wanted.is_some_and(|stop| stop != Stop::Propose);
        let is_over = now >= self.steer.until;
        if is_asked {
            self.asked.get_or_insert((now, Why::Orders));
        } else if is_over {
            self.wanted = Some(Stop::Now);
            self.asked = Some((now, Why::Lease));
        }
    }

    fn is_to_be_killed(&self, now: Seconds) -> bool {
        let is_long_ago = |since: Option<Seconds>| since.is_some_and(|at| now >= at + self.steer.grace);
        self.wanted == Some(Stop::Kill)
            || is_long_ago(self.asked.map(|(at, _)| at))
            || is_long_ago(self.program_ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEAKS: bool = true;

    fn at(seconds: f64) -> Seconds {
        Seconds::new(seconds)
    }

    fn with(stop: Option<Stop>) -> Steer {
        Steer { until: at(10.0), grace: at(5.0), stop }
    }

    fn stopping(stop: Option<Stop>) -> Stopping {
        Stopping::new(with(stop))
    }

    #[test]
    fn a_program_runs_until_its_lease_is_over() {
        let mut stopping = stopping(None);
        assert_eq!(stopping.next(at(9.9), SPEAKS), None);
        assert_eq!(stopping.next(at(10.0), SPEAKS), Some(Measure::Write(Stop::Now)));
        assert_eq!(stopping.asked(), Some((at(10.0), Why::Lease)));
        // A stop that could not be written is written again.
        assert_eq!(stopping.next(at(11.0), SPEAKS), Some(Measure::Write(Stop::Now)));
        stopping.note_written(Stop::Now);
        assert_eq!(stopping.next(at(14.9), SPEAKS), None);
        assert_eq!(stopping.next(at(15.0), SPEAKS), Some(Measure::Kill));
        assert_eq!(stopping.next(at(15.1), SPEAKS), Some(Measure::Kill));
    }

    #[test]
    fn a_longer_lease_counts_until_the_first_is_over() {
        let mut stopping = stopping(None);
        stopping.steer(Steer { until: at(20.0), ..with(None) });
        assert_eq!(stopping.next(at(10.0), SPEAKS), None);
        assert_eq!(stopping.next(at(20.0), SPEAKS), Some(Measure::Write(Stop::Now)));
        stopping.note_written(Stop::Now);
        stopping.steer(Steer { until: at(30.0), ..with(None) });
        assert_eq!(stopping.next(at(25.0), SPEAKS), Some(Measure::Kill), "asked at 20, and that stays");
    }

    #[test]
    fn a_program_that_does_not_speak_is_terminated_once() {
        let mut stopping = stopping(Some(Stop::Now));
        assert_eq!(stopping.next(at(1.0), !SPEAKS), Some(Measure::Terminate));
        assert_eq!(stopping.next(at(1.1), !SPEAKS), None);
        assert_eq!(stopping.next(at(6.0), !SPEAKS), Some(Measure::Kill));
    }

    #[test]
    fn a_proposal_asks_nobody_to_stop() {
        let mut stopping = stopping(Some(Stop::Propose));
        assert_eq!(stopping.next(at(1.0), !SPEAKS), None);
        assert_eq!(stopping.next(at(2.0), SPEAKS), Some(Measure::Write(Stop::Propose)));
        stopping.note_written(Stop::Propose);
        assert_eq!(stopping.next(at(8.0), SPEAKS), None, "the grace is not counted from a proposal");
        assert_eq!(stopping.asked(), None);
        stopping.steer(with(Some(Stop::After(70))));
        assert_eq!(stopping.next(at(9.0), SPEAKS), Some(Measure::Write(Stop::After(70))));
        stopping.note_written(Stop::After(70));
        assert_eq!(stopping.next(at(10.0), SPEAKS), None, "the lease's end asks nothing of one that stops");
        assert_eq!(stopping.next(at(14.0), SPEAKS), Some(Measure::Kill));
    }

    #[test]
    fn a_stop_is_not_taken_back() {
        let mut stopping = stopping(Some(Stop::Now));
        stopping.note_written(Stop::Now);
        assert_eq!(stopping.next(at(1.0), SPEAKS), None);
        for weaker in [None, Some(Stop::Propose), Some(Stop::After(9))] {
            stopping.steer(with(weaker));
            assert_eq!(stopping.next(at(2.0), SPEAKS), None);
        }
        stopping.steer(with(Some(Stop::Kill)));
        assert_eq!(stopping.next(at(3.0), SPEAKS), Some(Measure::Kill));
    }

    #[test]
    fn a_signal_to_the_shim_asks_the_program_to_stop() {
        let mut stopping = stopping(None);
        stopping.note_signal(at(3.0));
        assert_eq!(stopping.next(at(3.0), SPEAKS), Some(Measure::Write(Stop::Now)));
        stopping.note_written(Stop::Now);
        stopping.note_signal(at(4.0));
        assert_eq!(stopping.asked(), Some((at(3.0), Why::Signal)), "the first counts");
        assert_eq!(stopping.next(at(8.0), SPEAKS), Some(Measure::Kill));
    }

    #[test]
    fn a_program_whose_slurm_job_is_over_is_killed() {
        let mut stopping = stopping(None);
        stopping.note_orphaned(at(3.0));
        assert_eq!(stopping.next(at(3.0), SPEAKS), Some(Measure::Kill));
        assert_eq!(stopping.next(at(3.1), SPEAKS), Some(Measure::Kill), "again, until nothing is left");
    }

    #[test]
    fn what_outlives_the_program_has_the_grace_too() {
        let mut stopping = stopping(None);
        stopping.note_program_ended(at(1.0));
        assert_eq!(stopping.next(at(1.0), SPEAKS), Some(Measure::Terminate));
        assert_eq!(stopping.next(at(5.9), SPEAKS), None);
        stopping.note_program_ended(at(5.9));
        assert_eq!(stopping.next(at(6.0), SPEAKS), Some(Measure::Kill));
        assert_eq!(stopping.asked(), None);
    }
}
