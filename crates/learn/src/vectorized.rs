//! Many copies of an environment, stepped in parallel, each with random streams of its own.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::actor::{Actor, ActorError, Scratch, draw, masked_softmax};
use crate::environment::{Environment, Refused, Space, Status, Transition};
use apportion::workload::random::{SeedStreams, Stream};

/// Copies of an environment, each in some episode.
///
/// Copy i draws its episodes' seeds and its actions from two streams of its own, so its episodes depend neither on the number of
/// threads nor on the number of copies. Copies of a group have equal streams of seeds.
#[derive(Debug)]
pub struct Vectorized<E> {
    lanes: Vec<Lane<E>>,
    spaces: Vec<Space>,
    state_length: usize,
}

/// One copy of an environment, and its state.
#[derive(Debug)]
struct Lane<E> {
    environment: E,
    seeds: Stream,
    choices: Stream,
    /// The present episode: its seed and its actions so far, from which it can be played again.
    episode: Present,
    /// Progress of the training, from 0 to 1.
    share: f64,
    scratch: Scratch,
    logits: Vec<f32>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Present {
    seed: u64,
    actions: Vec<usize>,
    reward: f64,
    /// Progress of the training when the episode began.
    #[serde(default)]
    share: f64,
}

/// The state of one copy in a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneState {
    seeds: Stream,
    choices: Stream,
    episode: Present,
}

/// A finished episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Finished {
    /// The sum of its rewards.
    pub total_reward: f64,
    /// The number of steps of the episode.
    pub n_steps: usize,
    /// The status at its end.
    pub status: Status,
}

/// A length for which each copy is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// A number of steps.
    Steps(usize),
    /// A number of rounds; the end of an episode ends a round.
    Rounds(usize),
    /// A number of ends of episodes.
    Episodes(usize),
}

/// An observer of each step of one copy, such as a recorder of rollouts.
pub trait Observer: Send {
    /// Notes the moment before a step.
    fn before(&mut self, moment: &Moment);
    /// The action that is carried out, which may be another than the drawn one.
    fn choose(&mut self, moment: &Moment, drawn: usize, choices: &mut Stream) -> usize {
        let _ = (moment, choices);
        drawn
    }
    /// Notes the transition after a step. If the episode is over, `last` shows the state that it ended in.
    fn after(&mut self, action: usize, transition: &Transition, last: Option<&Moment>);
    /// Notes the next moment after the last step of a collection, if the episode still runs.
    fn rest(&mut self, moment: &Moment);
}

/// An agent's turn: its observation and mask.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The number of the agent that decides.
    pub agent: usize,
    /// The agent's observation.
    pub observation: &'a [f32],
    /// The mask of allowed actions.
    pub mask: &'a [bool],
    /// The critic's state; empty if the environment has none.
    pub state: &'a [f32],
    /// The probability of each action; empty at moments without a decision.
    pub probabilities: &'a [f32],
}

/// An observer that records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Observer for Nobody {
    fn before(&mut self, _moment: &Moment) {}
    fn after(&mut self, _action: usize, _transition: &Transition, _last: Option<&Moment>) {}
    fn rest(&mut self, _moment: &Moment) {}
}

/// Why copies could not be stepped or restored.
#[derive(Debug, Error)]
pub enum LaneError {
    /// The saved state has another number of copies.
    #[error("there are {found} copies of the environment, expected {expected}")]
    Count {
        /// The number of saved copies.
        found: usize,
        /// The number of copies.
        expected: usize,
    },
    /// The environment refuses an action that it took before.
    #[error("copy {lane} of the environment refuses action {step} of its episode: {source}")]
    Replay {
        /// Number of the copy.
        lane: usize,
        /// Number of the action in its episode.
        step: usize,
        /// Why the action is refused.
        source: Refused,
    },
    /// An episode that cannot be played.
    #[error(transparent)]
    Play(#[from] PlayError),
}

/// Why an episode cannot be played.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PlayError {
    /// An allowed action was refused.
    #[error("the environment breaks its contract: an allowed action was refused: {0}")]
    Refused(#[from] Refused),
    /// The actor gave no probabilities.
    #[error(transparent)]
    Actor(#[from] ActorError),
}

impl<E: Environment> Vectorized<E> {
    /// `n` copies, each at the start of its first episode.
    pub fn new(make: impl Fn(usize) -> E, n: usize, streams: SeedStreams) -> Self {
        Self::grouped(make, n, 1, streams)
    }

    /// `n` copies, each at the start of its first episode, in groups of `group` successive copies that play episodes of the same
    /// seeds.
    pub fn grouped(make: impl Fn(usize) -> E, n: usize, group: usize, streams: SeedStreams) -> Self {
        let lane = |number| Lane::new(make(number), (number, number / group.max(1)), streams);
        let lanes: Vec<Lane<E>> = (0..n).map(lane).collect();
        let first = lanes.first().map(|lane| &lane.environment);
        let spaces = first.map(|environment| environment.spaces().to_vec()).unwrap_or_default();
        let state_length = first.map_or(0, Environment::state_length);
        Self { lanes, spaces, state_length }
    }

    /// The number of copies.
    pub fn n_lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The spaces, one per agent.
    pub fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    /// Length of the critic's state; 0 if the environment has none.
    pub fn state_length(&self) -> usize {
        self.state_length
    }

    /// Steps each copy with actions drawn from the actor's probabilities, under an observer per copy. Episodes that end are
    /// followed by the next. Returns the finished episodes, in order of copy and time.
    ///
    /// # Errors
    /// If an environment refuses an action that its mask allows, or the actor gives no probabilities.
    ///
    /// # Panics
    /// If there are not as many observers as copies.
    pub fn collect<O: Observer>(
        &mut self,
        actor: &dyn Actor,
        length: Length,
        observers: &mut [O],
    ) -> Result<Vec<Finished>, LaneError> {
        assert_eq!(observers.len(), self.lanes.len(), "an observer per copy");
        let run = |(lane, observer): (&mut Lane<E>, &mut O)| lane.run(actor, length, observer);
        let finished: Vec<_> = self.lanes.par_iter_mut().zip(observers.par_iter_mut()).map(run).collect();
        let mut all = Vec::new();
        for of_lane in finished {
            all.extend(of_lane?);
        }
        Ok(all)
    }

    /// Sets the progress of the training in all copies; episodes that have taken actions go on as they are.
    pub fn set_progress(&mut self, share: f64) {
        for lane in &mut self.lanes {
            lane.share = share;
            lane.environment.set_progress(share);
            if lane.episode.actions.is_empty() {
                lane.episode.share = share;
                lane.environment.reset(lane.episode.seed);
            }
        }
    }

    /// The state of every copy, for a checkpoint.
    pub fn state(&self) -> Vec<LaneState> {
        let state = |lane: &Lane<E>| LaneState {
            seeds: lane.seeds.clone(),
            choices: lane.choices.clone(),
            episode: lane.episode.clone(),
        };
        self.lanes.iter().map(state).collect()
    }

    /// Restores each copy: its episode is begun anew and its actions are taken again.
    ///
    /// # Errors
    /// If the state has another number of copies, or is of another environment.
    pub fn restore(&mut self, states: &[LaneState]) -> Result<(), LaneError> {
        if states.len() != self.lanes.len() {
            return Err(LaneError::Count { found: states.len(), expected: self.lanes.len() });
        }
        for (number, (lane, state)) in self.lanes.iter_mut().zip(states).enumerate() {
            lane.seeds = state.seeds.clone();
            lane.choices = state.choices.clone();
            lane.episode = state.episode.clone();
            lane.environment.set_progress(state.episode.share);
            lane.environment.reset(state.episode.seed);
            for (step, action) in state.episode.actions.iter().enumerate() {
                let taken = lane.environment.step(*action);
                taken.map_err(|source| LaneError::Replay { lane: number, step, source })?;
            }
        }
        Ok(())
    }
}

/// Room for the observation, mask and state of one copy.
#[derive(Debug, Default)]
struct Buffers {
    observation: Vec<f32>,
    mask: Vec<bool>,
    state: Vec<f32>,
}

impl Buffers {
    fn look<E: Environment>(&mut self, environment: &E) -> usize {
        let agent = environment.agent();
        let space = &environment.spaces()[agent];
        self.observation.resize(space.observation_length(), 0.0);
        self.mask.resize(space.n_actions, false);
        self.state.resize(environment.state_length(), 0.0);
        environment.observe(&mut self.observation, &mut self.mask);
        environment.state(&mut self.state);
        agent
    }

    fn moment<'a>(&'a self, agent: usize, probabilities: &'a [f32]) -> Moment<'a> {
        let Self { observation, mask, state } = self;
        Moment { agent, observation, mask, state, probabilities }
    }
}

impl<E: Environment> Lane<E> {
    fn new(environment: E, (number, group): (usize, usize), streams: SeedStreams) -> Self {
        let mut lane = Self {
            environment,
            seeds: streams.stream(format!("episodes of copy {group}")),
            choices: streams.stream(format!("actions of copy {number}")),
            episode: Present::default(),
            share: 0.0,
            scratch: Scratch::default(),
            logits: Vec::new(),
        };
        lane.begin();
        lane
    }

    fn begin(&mut self) {
        self.episode.seed = self.seeds.next_u64();
        self.episode.actions.clear();
        self.episode.reward = 0.0;
        self.episode.share = self.share;
        self.environment.reset(self.episode.seed);
    }

    fn run<O: Observer>(
        &mut self,
        actor: &dyn Actor,
        length: Length,
        observer: &mut O,
    ) -> Result<Vec<Finished>, LaneError> {
        let mut finished = Vec::new();
        let mut buffers = Buffers::default();
        let (Length::Steps(mut left) | Length::Rounds(mut left) | Length::Episodes(mut left)) = length;
        while left > 0 {
            let agent = buffers.look(&self.environment);
            self.logits.resize(buffers.mask.len(), 0.0);
            let (scratch, logits) = (&mut self.scratch, &mut self.logits);
            actor.logits(agent, &buffers.observation, scratch, logits).map_err(PlayError::from)?;
            masked_softmax(logits, &buffers.mask).map_err(PlayError::from)?;
            let moment = buffers.moment(agent, &self.logits);
            observer.before(&moment);
            let drawn = draw(&self.logits, self.choices.uniform());
            let action = observer.choose(&moment, drawn, &mut self.choices);
            let transition = self.environment.step(action).map_err(PlayError::from)?;
            self.episode.actions.push(action);
            self.episode.reward += f64::from(transition.reward);
            let over = transition.status.is_over();
            left = match length {
                Length::Steps(_) => left - 1,
                Length::Episodes(_) => left - usize::from(over),
                Length::Rounds(_) if over => left - 1,
                Length::Rounds(_) => left.saturating_sub(transition.rounds as usize),
            };
            if over || left == 0 {
                let agent = buffers.look(&self.environment);
                let moment = buffers.moment(agent, &[]);
                observer.after(action, &transition, over.then_some(&moment));
                if !over {
                    observer.rest(&moment);
                }
            } else {
                observer.after(action, &transition, None);
            }
            if over {
                finished.push(Finished {
                    total_reward: self.episode.reward,
                    n_steps: self.episode.actions.len(),
                    status: transition.status,
                });
                self.begin();
            }
        }
        Ok(finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::UniformActor;
    use crate::textbook::{Grid, Pairing, Walls};

    /// An observer that records everything.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Recorder {
        observations: Vec<f32>,
        actions: Vec<usize>,
        rewards: Vec<f32>,
        n_last: usize,
        n_rests: usize,
    }

    impl Observer for Recorder {
        fn before(&mut self, moment: &Moment) {
            self.observations.extend_from_slice(moment.observation);
        }
        fn after(&mut self, action: usize, transition: &Transition, last: Option<&Moment>) {
            assert_eq!(last.is_some(), transition.status.is_over());
            self.actions.push(action);
            self.rewards.push(transition.reward);
            self.n_last += usize::from(last.is_some());
        }
        fn rest(&mut self, _moment: &Moment) {
            self.n_rests += 1;
        }
    }

    fn grids(n: usize) -> Vectorized<Grid> {
        Vectorized::new(|_| Grid::new((4, 4), Walls::Masked, 30), n, SeedStreams::new(5))
    }

    fn run(vectorized: &mut Vectorized<Grid>, n_steps: usize) -> (Vec<Finished>, Vec<Recorder>) {
        let mut recorders = vec![Recorder::default(); vectorized.n_lanes()];
        let finished = vectorized.collect(&UniformActor, Length::Steps(n_steps), &mut recorders).unwrap();
        (finished, recorders)
    }

    #[test]
    fn nothing_depends_on_the_number_of_threads() {
        let with = |n_threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| run(&mut grids(7), 500))
        };
        let (finished, recorders) = with(1);
        assert_eq!((finished.clone(), recorders.clone()), with(4));
        assert!(finished.iter().any(|episode| episode.status == Status::Terminated));
        assert!(finished.iter().any(|episode| episode.status == Status::Truncated));
        let n_last: usize = recorders.iter().map(|recorder| recorder.n_last).sum();
        assert_eq!(n_last, finished.len());
        assert_ne!(recorders[0].actions, recorders[1].actions, "each copy draws its own numbers");
    }

    #[test]
    fn a_copy_goes_the_same_way_however_many_there_are() {
        let (_, few) = run(&mut grids(2), 100);
        let (_, many) = run(&mut grids(5), 100);
        assert_eq!(few[..], many[..2]);
    }

    #[test]
    fn copies_go_on_where_they_were() {
        let mut whole = grids(3);
        run(&mut whole, 77);
        let saved = serde_json::to_string(&whole.state()).unwrap();
        let mut resumed = grids(3);
        resumed.restore(&serde_json::from_str::<Vec<LaneState>>(&saved).unwrap()).unwrap();
        assert_eq!(run(&mut whole, 200), run(&mut resumed, 200));
        let error = grids(2).restore(&whole.state()).unwrap_err();
        assert_eq!(error.to_string(), "there are 3 copies of the environment, expected 2");
        let mut other = Vectorized::new(|_| Grid::new((2, 2), Walls::Masked, 30), 3, SeedStreams::new(5));
        run(&mut whole, 25);
        assert!(other.restore(&whole.state()).unwrap_err().to_string().contains("refuses action"));
    }

    #[test]
    fn agents_take_their_turns() {
        let mut pairs = Vectorized::new(|_| Pairing::new(3), 1, SeedStreams::new(1));
        assert_eq!((pairs.spaces().len(), pairs.state_length()), (2, 7));
        let finished = pairs.collect(&UniformActor, Length::Steps(60), &mut [Nobody]).unwrap();
        assert_eq!(finished.len(), 10);
        assert!(finished.iter().all(|episode| episode.n_steps == 6 && episode.status == Status::Terminated));
        // Two decisions a round, three rounds an episode.
        let mut recorders = [Recorder::default()];
        let finished = pairs.collect(&UniformActor, Length::Rounds(4), &mut recorders).unwrap();
        assert_eq!((finished.len(), recorders[0].actions.len(), recorders[0].n_rests), (1, 8, 1));
    }
}
