//! Ascent of a concave function by quasi-Newton steps of limited memory.
//!
//! Source: Nocedal and Wright, Numerical Optimization (2006), algorithm 7.4, with the differences of points and gradients of
//! the last steps, and a diagonal as the first approximation.

use std::collections::VecDeque;

/// Number of last steps from which the function's curvature is approximated.
const MEMORY: usize = 20;
/// Least gain of a step, as a part of its length times the slope along it (Armijo's condition).
const GAIN_MIN: f64 = 1e-3;
/// The most halvings of a step that does not gain enough.
const HALVINGS_MAX: u32 = 10;
/// Gain, as a part of the value, below which the last [`STEPS_SLOW`] steps end the ascent.
const SLOW: f64 = 2e-4;
/// Number of steps of [`SLOW`].
const STEPS_SLOW: usize = 3;

/// Value of a function at a point, and its gradient.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Valued {
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
}

/// Result of an ascent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Climbed {
    /// Highest point, with its value; none if the function was broken off at the first.
    pub(super) best: Option<(Vec<f64>, f64)>,
    pub(super) n_steps: usize,
    /// Whether the function was broken off.
    pub(super) is_broken_off: bool,
}

/// A function to maximize: its value at a point, none if it was broken off.
pub(super) trait Function {
    type Error;

    fn value(&mut self, point: &[f64]) -> Result<Option<Valued>, Self::Error>;

    /// Moves a point to the nearest feasible one.
    fn project(&self, point: &mut [f64]);

    /// Reports a step to a point of this value.
    fn stepped(&self, value: f64);
}

/// Maximizes from `start` in at most `steps_max` steps. `scales` has an estimate of 1 / |second derivative| for each
/// coordinate: `[n]`.
pub(super) fn climb<F: Function>(
    function: &mut F,
    start: Vec<f64>,
    scales: &[f64],
    steps_max: usize,
) -> Result<Climbed, F::Error> {
    let Some(first) = function.value(&start)? else {
        return Ok(Climbed { best: None, n_steps: 0, is_broken_off: true });
    };
    function.stepped(first.value);
    let (mut point, mut here) = (start, first);
    let mut memory: VecDeque<Difference> = VecDeque::new();
    let mut values = vec![here.value];
    let mut is_broken_off = false;
    while values.len() <= steps_max {
        let direction = direction(&here.gradient, &memory, scales);
        let promised = dot(&here.gradient, &direction);
        let taken = match step(function, (&point, here.value), &direction, promised)? {
            Tried::Taken(next, there) => (next, there),
            Tried::BrokenOff => {
                is_broken_off = true;
                break;
            }
            Tried::Stuck if memory.is_empty() => break,
            Tried::Stuck => {
                memory.clear();
                continue;
            }
        };
        let (next, there) = taken;
        let moved: Vec<f64> = next.iter().zip(&point).map(|(next, here)| next - here).collect();
        let fallen: Vec<f64> =
            here.gradient.iter().zip(&there.gradient).map(|(here, there)| here - there).collect();
        memory.extend(Difference::new(moved, fallen));
        if memory.len() > MEMORY {
            memory.pop_front();
        }
        (point, here) = (next, there);
        function.stepped(here.value);
        values.push(here.value);
        let before = values.len().checked_sub(1 + STEPS_SLOW).map(|at| values[at]);
        if before.is_some_and(|before| here.value - before <= SLOW * here.value.abs()) {
            break;
        }
    }
    Ok(Climbed { best: Some((point, here.value)), n_steps: values.len() - 1, is_broken_off })
}

/// Outcome of a step of the ascent.
enum Tried {
    Taken(Vec<f64>, Valued),
    Stuck,
    BrokenOff,
}

/// Takes the first of ever shorter steps that gains enough.
fn step<F: Function>(
    function: &mut F,
    (point, value): (&[f64], f64),
    direction: &[f64],
    promised: f64,
) -> Result<Tried, F::Error> {
    let mut length = 1.0;
    for _ in 0..=HALVINGS_MAX {
        let mut next: Vec<f64> = point.iter().zip(direction).map(|(at, to)| at + length * to).collect();
        function.project(&mut next);
        let Some(there) = function.value(&next)? else { return Ok(Tried::BrokenOff) };
        if there.value > value && there.value >= value + GAIN_MIN * length * promised {
            return Ok(Tried::Taken(next, there));
        }
        length /= 2.0;
    }
    Ok(Tried::Stuck)
}

/// A step, and the decrease of the gradient over it.
struct Difference {
    moved: Vec<f64>,
    fallen: Vec<f64>,
    /// Reciprocal of moved · fallen.
    inverse: f64,
}

impl Difference {
    /// The difference of a step; none if the function had no curvature along it.
    fn new(moved: Vec<f64>, fallen: Vec<f64>) -> Option<Self> {
        let curved = dot(&moved, &fallen);
        let is_curved = curved > 1e-12 * dot(&fallen, &fallen).sqrt() * dot(&moved, &moved).sqrt();
        is_curved.then(|| Self { moved, fallen, inverse: 1.0 / curved })
    }
}

/// Approximate inverse of the negative Hessian, times the gradient.
fn direction(gradient: &[f64], memory: &VecDeque<Difference>, scales: &[f64]) -> Vec<f64> {
    let mut direction = gradient.to_vec();
    let mut parts = Vec::with_capacity(memory.len());
    for difference in memory.iter().rev() {
        let part = difference.inverse * dot(&difference.moved, &direction);
        add(&mut direction, -part, &difference.fallen);
        parts.push(part);
    }
    for (entry, scale) in direction.iter_mut().zip(scales) {
        *entry *= scale;
    }
    for (difference, part) in memory.iter().zip(parts.iter().rev()) {
        let back = difference.inverse * dot(&difference.fallen, &direction);
        add(&mut direction, part - back, &difference.moved);
    }
    direction
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn add(to: &mut [f64], times: f64, what: &[f64]) {
    for (to, what) in to.iter_mut().zip(what) {
        *to += times * what;
    }
}
