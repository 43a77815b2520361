//! Worlds of the learned schedulers, as environments for training agents.

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

/// Space of one agent: least and greatest value of each observed number, and the number of actions.
type Space<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<f32>>, usize);

/// Observation of an agent, and mask of its allowed actions.
type Seen<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<bool>>);

/// Names of the worlds.
#[pyfunction]
pub(crate) fn systems() -> Vec<&'static str> {
    SYSTEMS.iter().map(|system| system.name).collect()
}

/// The system with a name, in a world with options from a JSON text.
fn system(name: &str, world: &str) -> PyResult<System> {
    let world = serde_json::from_str(world).map_err(|error| errors::input(format!("the world: {error}")))?;
    open(name, &world).map_err(|error| errors::input(error.to_string()))
}

/// A single world. See `apportion.envs`.
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

    /// Space of each agent.
    fn spaces<'py>(&self, py: Python<'py>) -> Vec<Space<'py>> {
        self.with(|world| {
            let of = |space: &apportion_learn::environment::Space| {
                let (low, high) = (space.low.clone().into_pyarray(py), space.high.clone().into_pyarray(py));
                (low, high, space.n_actions)
            };
            world.spaces().iter().map(of).collect()
        })
    }

    /// The agent that acts next, as a number.
    #[getter]
    fn agent(&self) -> usize {
        self.with(|world| world.agent())
    }

    /// Number of steps after which an episode is cut off, if there is a limit.
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

    /// State for a critic; empty where the observation suffices.
    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        let state = self.with(|world| {
            let mut state = vec![0.0; world.state_length()];
            world.state(&mut state);
            state
        });
        state.into_pyarray(py)
    }

    /// Executes an action. Returns the reward, the number of rounds that passed, whether there is something to learn from
    /// it, whether the episode is over, and whether it was cut off.
    fn step(&self, action: usize) -> PyResult<(f32, u32, bool, bool, bool)> {
        let Transition { reward, rounds, counts, status, .. } =
            self.with(|world| world.step(action)).map_err(|error| errors::input(error.to_string()))?;
        Ok((reward, rounds, counts, status == Status::Terminated, status == Status::Truncated))
    }
}

/// Threads that step worlds, and the process that has them: a forked child has its parent's memory, but not its threads.
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
    // Dropping the pool would wait forever for the threads of another process.
    forget(pool.take());
    let (_, made) = pool.insert((std::process::id(), Arc::new(made)));
    Ok(Arc::clone(made))
}

/// Worlds with one agent each, stepped on all cores. The next episode begins in the step in which one ends.
#[pyclass(frozen, module = "apportion")]
#[derive(Debug)]
pub(crate) struct VectorEnvironment {
    lanes: Mutex<Vec<Lane>>,
    n_seen: usize,
    n_actions: usize,
}

/// A world with its latest observation.
#[derive(Debug)]
struct Lane {
    world: Box<dyn World>,
    /// Seed of its next episode.
    next_seed: u64,
    /// Reward of the last step.
    reward: f32,
    rounds: u32,
    counts: bool,
    status: Status,
    observation: Vec<f32>,
    mask: Vec<bool>,
    /// Last observation of the episode that ended in the last step; none if none ended.
    last: Option<Vec<f32>>,
}

impl Lane {
    fn begin(&mut self) {
        self.world.reset(self.next_seed);
        // The constant is that of a Weyl sequence: each seed occurs once, far from the seeds of other lanes.
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

/// Observations `[n × numbers]` and masks `[n × actions]`.
type SeenByAll<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<bool>>);
/// Results of a step of all worlds: observations, masks, rewards, whether episodes ended or were cut off, last observations
/// of those that ended `[n × numbers]`, rounds that passed, and whether there is something to learn.
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

    /// Begins an episode from each seed, `[n]`; a world whose flag is not set continues its episode.
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

    /// Executes one action per world.
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
