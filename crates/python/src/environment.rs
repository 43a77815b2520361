//! The worlds of the learned schedulers, as environments to train agents in.

use std::mem::forget;
use std::sync::{Arc, Mutex, PoisonError};

use apportion_learn::environment::{Environment as World, Status, Transition};
use apportion_learn::system::System;
use apportion_published::systems::{SYSTEMS, open};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::arrays::Array1;
use crate::errors;

/// What one agent sees and may do: the least and the largest value of each number, and how many actions.
type Space<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<f32>>, usize);

/// What an agent sees, and what it may do.
type Seen<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<bool>>);

/// The names of the worlds.
#[pyfunction]
pub(crate) fn systems() -> Vec<&'static str> {
    SYSTEMS.iter().map(|system| system.name).collect()
}

/// The system of a name, in a world of the options of a JSON text.
fn system(name: &str, world: &str) -> PyResult<System> {
    let world = serde_json::from_str(world).map_err(|error| errors::input(format!("the world: {error}")))?;
    open(name, &world).map_err(|error| errors::input(error.to_string()))
}

/// One world. See `apportion.envs`.
#[pyclass(frozen, module = "apportion")]
#[derive(Debug)]
pub(crate) struct Environment(Mutex<Box<dyn World>>);

impl Environment {
    fn with<T>(&self, look: impl FnOnce(&mut Box<dyn World>) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The observation and the action mask of the agent that acts next.
fn look(world: &dyn World) -> (Vec<f32>, Vec<bool>) {
    let space = &world.spaces()[world.agent()];
    let (mut observation, mut mask) = (vec![0.0; space.observation_length()], vec![false; space.n_actions]);
    world.observe(&mut observation, &mut mask);
    (observation, mask)
}

#[pymethods]
impl Environment {
    #[new]
    fn new(name: &str, world: &str) -> PyResult<Self> {
        let mut world = system(name, world)?.environment();
        world.reset(0);
        Ok(Self(Mutex::new(world)))
    }

    /// One space per agent.
    fn spaces<'py>(&self, py: Python<'py>) -> Vec<Space<'py>> {
        self.with(|world| {
            let of = |space: &apportion_learn::environment::Space| {
                let (low, high) = (space.low.clone().into_pyarray(py), space.high.clone().into_pyarray(py));
                (low, high, space.n_actions)
            };
            world.spaces().iter().map(of).collect()
        })
    }

    /// The agent that acts next.
    #[getter]
    fn agent(&self) -> usize {
        self.with(|world| world.agent())
    }

    /// Steps after which an episode is cut off, if there is such a limit.
    #[getter]
    fn step_limit(&self) -> Option<u64> {
        self.with(|world| world.step_limit())
    }

    fn reset(&self, seed: u64) {
        self.with(|world| world.reset(seed));
    }

    fn observe<'py>(&self, py: Python<'py>) -> Seen<'py> {
        let (observation, mask) = self.with(|world| look(world));
        (observation.into_pyarray(py), mask.into_pyarray(py))
    }

    /// The state that a critic may judge by; empty where the observation will do.
    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        let state = self.with(|world| {
            let mut state = vec![0.0; world.state_length()];
            world.state(&mut state);
            state
        });
        state.into_pyarray(py)
    }

    /// Carries an action out: the reward, the rounds that passed, whether there is something to learn from it, whether the
    /// episode is over for good, and whether it was cut off.
    fn step(&self, action: usize) -> PyResult<(f32, u32, bool, bool, bool)> {
        let Transition { reward, rounds, counts, status, .. } =
            self.with(|world| world.step(action)).map_err(|error| errors::input(error.to_string()))?;
        Ok((reward, rounds, counts, status == Status::Terminated, status == Status::Truncated))
    }
}

/// The threads that step worlds, and the process that has them: a child that was forked has its parent's memory, but not its
/// threads.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The threads of this process.
fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((process, pool)) = pool.as_ref()
        && *process == std::process::id()
    {
        return Ok(Arc::clone(pool));
    }
    let made = ThreadPoolBuilder::new().build().map_err(|error| PyOSError::new_err(error.to_string()))?;
    // Waiting for the threads of another process to end would be for ever.
    forget(pool.take());
    let (_, made) = pool.insert((std::process::id(), Arc::new(made)));
    Ok(Arc::clone(made))
}

/// Many worlds with one agent each, stepped on all cores. An episode that ends is followed by the next in the same step.
#[pyclass(frozen, module = "apportion")]
#[derive(Debug)]
pub(crate) struct VectorEnvironment {
    lanes: Mutex<Vec<Lane>>,
    n_seen: usize,
    n_actions: usize,
}

/// One world, and what it showed last.
#[derive(Debug)]
struct Lane {
    world: Box<dyn World>,
    /// Seeds of its episodes, one after another.
    next_seed: u64,
    /// Of the last step.
    reward: f32,
    rounds: u32,
    counts: bool,
    status: Status,
    observation: Vec<f32>,
    mask: Vec<bool>,
    /// What it showed at the end of the episode that ended in the last step.
    last: Option<Vec<f32>>,
}

impl Lane {
    fn begin(&mut self) {
        self.world.reset(self.next_seed);
        // The constant of a Weyl sequence: each seed once, far from the seeds of other lanes.
        self.next_seed = self.next_seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.world.observe(&mut self.observation, &mut self.mask);
    }

    fn step(&mut self, action: usize) -> Result<(), String> {
        let Transition { reward, rounds, counts, status, .. } =
            self.world.step(action).map_err(|error| error.to_string())?;
        (self.reward, self.rounds, self.counts) = (reward, rounds, counts);
        (self.status, self.last) = (status, None);
        self.world.observe(&mut self.observation, &mut self.mask);
        if status.is_over() {
            self.last = Some(self.observation.clone());
            self.begin();
        }
        Ok(())
    }
}

/// Observations [n × seen] and masks [n × actions].
type SeenByAll<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<bool>>);
/// What a step of all gave: observations, masks, rewards, ended, cut off; where one ended, what was seen last [n × seen]; rounds
/// that passed, and whether there is something to learn from it.
type Stepped<'py> = (
    SeenByAll<'py>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
    Option<Bound<'py, PyArray2<f32>>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<bool>>,
);

impl VectorEnvironment {
    fn seen<'py>(&self, py: Python<'py>, lanes: &[Lane]) -> SeenByAll<'py> {
        let (mut observations, mut masks) = (Vec::new(), Vec::new());
        observations.reserve_exact(lanes.len() * self.n_seen);
        masks.reserve_exact(lanes.len() * self.n_actions);
        for lane in lanes {
            observations.extend_from_slice(&lane.observation);
            masks.extend_from_slice(&lane.mask);
        }
        let shaped = |n| [lanes.len(), n];
        let observations = Array2::from_shape_vec(shaped(self.n_seen), observations).unwrap_or_default();
        let masks = Array2::from_shape_vec(shaped(self.n_actions), masks).unwrap_or_default();
        (observations.into_pyarray(py), masks.into_pyarray(py))
    }
}

#[pymethods]
impl VectorEnvironment {
    #[new]
    fn new(name: &str, world: &str, n: usize) -> PyResult<Self> {
        let system = system(name, world)?;
        let made: Vec<Box<dyn World>> = (0..n).map(|_| system.environment()).collect();
        let Some(spaces) = made.first().map(|world| world.spaces().to_vec()) else {
            return Err(errors::input("0 environments, expected at least 1"));
        };
        let [space] = spaces.as_slice() else {
            let message = format!(
                "`{name}` has {} agents, expected one: use the environment of several agents",
                spaces.len()
            );
            return Err(errors::input(message));
        };
        let (n_seen, n_actions) = (space.observation_length(), space.n_actions);
        let lane = |world| Lane {
            world,
            next_seed: 0,
            reward: 0.0,
            rounds: 0,
            counts: true,
            status: Status::Running,
            observation: vec![0.0; n_seen],
            mask: vec![false; n_actions],
            last: None,
        };
        let lanes = Mutex::new(made.into_iter().map(lane).collect());
        Ok(Self { lanes, n_seen, n_actions })
    }

    /// Begins an episode of each seed: `[n]`; where the flag is not set, a copy goes on as it is.
    fn reset<'py>(
        &self,
        py: Python<'py>,
        seeds: Array1<'_, u64>,
        begins: Array1<'_, bool>,
    ) -> PyResult<SeenByAll<'py>> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if seeds.len() != lanes.len() || begins.len() != lanes.len() {
            return Err(errors::input(format!("{} seeds, expected {}", seeds.len(), lanes.len())));
        }
        let (seeds, begins) = (seeds.as_array().to_vec(), begins.as_array().to_vec());
        let lanes = &mut *lanes;
        let pool = pool()?;
        py.detach(|| {
            pool.install(|| {
                lanes.par_iter_mut().zip(seeds).zip(begins).filter(|(_, begins)| *begins).for_each(
                    |((lane, seed), _)| {
                        lane.next_seed = seed;
                        lane.begin();
                    },
                );
            });
        });
        Ok(self.seen(py, lanes))
    }

    /// Carries an action of each out.
    fn step<'py>(&self, py: Python<'py>, actions: Array1<'_, i64>) -> PyResult<Stepped<'py>> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if actions.len() != lanes.len() {
            return Err(errors::input(format!("{} actions, expected {}", actions.len(), lanes.len())));
        }
        let actions = actions.as_array().to_vec();
        let lanes = &mut *lanes;
        let pool = pool()?;
        let stepped: Result<Vec<()>, (usize, String)> = py.detach(|| {
            let numbered = lanes.par_iter_mut().zip(actions).enumerate();
            let step = |(number, (lane, action)): (usize, (&mut Lane, i64))| {
                let action =
                    usize::try_from(action).map_err(|_| (number, format!("there is no action {action}")))?;
                lane.step(action).map_err(|error| (number, error))
            };
            pool.install(|| numbered.map(step).collect())
        });
        stepped.map_err(|(number, error)| errors::input(format!("environment {number}: {error}")))?;
        let rewards: Vec<f32> = lanes.iter().map(|lane| lane.reward).collect();
        let ended: Vec<bool> = lanes.iter().map(|lane| lane.status == Status::Terminated).collect();
        let cut: Vec<bool> = lanes.iter().map(|lane| lane.status == Status::Truncated).collect();
        let last = lanes.iter().any(|lane| lane.last.is_some()).then(|| {
            let of = |lane: &Lane| lane.last.clone().unwrap_or_else(|| vec![0.0; self.n_seen]);
            let all: Vec<f32> = lanes.iter().flat_map(of).collect();
            all.into_pyarray(py).reshape([lanes.len(), self.n_seen])
        });
        let (rewards, ended, cut) = (rewards.into_pyarray(py), ended.into_pyarray(py), cut.into_pyarray(py));
        let rounds: Vec<u32> = lanes.iter().map(|lane| lane.rounds).collect();
        let counts: Vec<bool> = lanes.iter().map(|lane| lane.counts).collect();
        let (rounds, counts) = (rounds.into_pyarray(py), counts.into_pyarray(py));
        Ok((self.seen(py, lanes), rewards, ended, cut, last.transpose()?, rounds, counts))
    }
}
