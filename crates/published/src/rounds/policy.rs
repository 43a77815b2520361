//! The policy of learned schedulers inside rounds, in simulations and on live clusters.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::action_scheme::{ActionScheme, Opened, close, open};
use super::memory::{Memory, MemoryState};
use super::round_state::RoundState;
use apportion::policy::{Placed, PolicyError, RoundDecision, RoundPolicy, RoundView};
use apportion::workload::random::{SeedStreams, Stream};
use apportion_learn::actor::{Actor, ActorError, Choice, Scratch, draw, masked_softmax, most_probable};
use apportion_learn::environment::Space;

/// A policy that decides rounds by an actor.
#[derive(Debug)]
pub struct LearnedRounds {
    name: String,
    scheme: Box<dyn ActionScheme>,
    actor: Arc<dyn Actor>,
    choice: Choice,
    spaces: Vec<Space>,
    memory: Memory,
    draws: Stream,
    /// The memory of a checkpoint, until the first view shows which workers there are.
    to_restore: Option<MemoryState>,
    /// The placements of this round that are still to be given, in reverse order.
    decided: Vec<Placed>,
    scratch: Scratch,
    observation: Vec<f32>,
    mask: Vec<bool>,
    numbers: Vec<f32>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    memory: MemoryState,
    draws: Stream,
}

impl LearnedRounds {
    /// A policy that has decided nothing yet; `seed` is for its random choices.
    pub fn new(
        name: impl Into<String>,
        scheme: Box<dyn ActionScheme>,
        actor: Arc<dyn Actor>,
        choice: Choice,
        seed: u64,
    ) -> Self {
        Self {
            name: name.into(),
            spaces: scheme.spaces(),
            scheme,
            actor,
            choice,
            memory: Memory::default(),
            draws: SeedStreams::new(seed).stream("rounds"),
            to_restore: None,
            decided: Vec::new(),
            scratch: Scratch::default(),
            observation: Vec::new(),
            mask: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// The next action.
    fn choose(&mut self, round: &RoundState) -> Result<usize, ActorError> {
        let agent = self.scheme.agent();
        let space = &self.spaces[agent];
        self.observation.resize(space.observation_length(), 0.0);
        self.mask.resize(space.n_actions, false);
        self.numbers.resize(space.n_actions, 0.0);
        self.scheme.observe(round, &mut self.observation);
        self.scheme.mask(round, &mut self.mask);
        self.actor.logits(agent, &self.observation, &mut self.scratch, &mut self.numbers)?;
        masked_softmax(&mut self.numbers, &self.mask)?;
        Ok(match self.choice {
            Choice::Sampled => draw(&self.numbers, self.draws.uniform()),
            Choice::MostProbable => most_probable(&self.numbers),
        })
    }
}

impl RoundPolicy for LearnedRounds {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self, view: &RoundView<'_>) -> Result<(), String> {
        self.scheme.check(&RoundState::new(view, &Memory::default()))
    }

    fn begin(&mut self, view: &RoundView<'_>) -> Result<(), PolicyError> {
        if let Some(state) = self.to_restore.take()
            && !self.memory.restore(state, view)
        {
            return Err(PolicyError::State { policy: self.name.clone() });
        }
        let opened = open(&mut *self.scheme, &mut self.memory, view)
            .map_err(|reason| PolicyError::Undecided { policy: self.name.clone(), reason })?;
        let (mut round, mut decides) = match opened {
            Opened::Begun(round, decides) => (round, decides),
            Opened::Undisturbed(mut placed) => {
                placed.reverse();
                self.decided = placed;
                return Ok(());
            }
        };
        while decides {
            let action = self.choose(&round).map_err(|error| PolicyError::Undecided {
                policy: self.name.clone(),
                reason: error.to_string(),
            })?;
            self.scheme.act(&mut round, action);
            decides = !self.scheme.is_over();
        }
        close(&mut self.memory, &round);
        self.decided = round.placed().iter().rev().map(|(_, placed)| placed.clone()).collect();
        Ok(())
    }

    fn next(&mut self, view: &RoundView<'_>) -> Result<RoundDecision, PolicyError> {
        if let Some(reason) = view.rejected {
            let (policy, reason) = (self.name.clone(), reason.to_owned());
            return Err(PolicyError::Undecided { policy, reason });
        }
        Ok(self.decided.pop().map_or(RoundDecision::EndRound, RoundDecision::Place))
    }

    fn state(&self) -> serde_json::Value {
        serde_json::json!(State { memory: self.memory.state(), draws: self.draws.clone() })
    }

    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        let fault = |_| PolicyError::State { policy: self.name.clone() };
        let State { memory, draws } = State::deserialize(state).map_err(fault)?;
        (self.to_restore, self.draws) = (Some(memory), draws);
        Ok(())
    }
}
