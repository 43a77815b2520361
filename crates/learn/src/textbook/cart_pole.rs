//! A pole balanced on a cart that is pushed left or right.

use super::admit;
use crate::environment::{Environment, Refused, Space, Status, Transition};
use apportion::workload::random::SeedStreams;

/// Barto, Sutton and Anderson's cart and pole (1983) with the constants of Gymnasium's `CartPole-v1`. The reward is 1 a step as
/// long as the cart is within 2.4 of the centre and the pole within 12° of upright. Episodes are truncated after 500 steps, so 500
/// is the best return.
///
/// Observation: position, velocity, angle in radians, angular velocity. Actions: push left, push right.
#[derive(Debug)]
pub struct CartPole {
    spaces: [Space; 1],
    state: [f64; 4],
    n_steps: u64,
    status: Status,
}

const STEP_LIMIT: u64 = 500;
const POSITION_MAX: f64 = 2.4;
const ANGLE_MAX: f64 = 12.0 / 180.0 * std::f64::consts::PI;
const GRAVITY: f64 = 9.8;
const CART_MASS: f64 = 1.0;
const POLE_MASS: f64 = 0.1;
/// Half the pole's length.
const POLE_LENGTH: f64 = 0.5;
const FORCE: f64 = 10.0;
const SECONDS_PER_STEP: f64 = 0.02;

impl CartPole {
    /// A cart, still to be reset.
    pub fn new() -> Self {
        let far = f32::INFINITY;
        let high = vec![2.0 * POSITION_MAX as f32, far, 2.0 * ANGLE_MAX as f32, far];
        let low = high.iter().map(|bound| -bound).collect();
        let spaces = [Space { low, high, n_actions: 2 }];
        Self { spaces, state: [0.0; 4], n_steps: 0, status: Status::Terminated }
    }
}

impl Default for CartPole {
    fn default() -> Self {
        Self::new()
    }
}

impl Environment for CartPole {
    fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    fn reset(&mut self, seed: u64) {
        let mut stream = SeedStreams::new(seed).stream("cart pole");
        self.state = std::array::from_fn(|_| stream.uniform_in(-0.05, 0.05));
        self.n_steps = 0;
        self.status = Status::Running;
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        for (seen, value) in observation.iter_mut().zip(self.state) {
            *seen = value as f32;
        }
        mask.fill(true);
    }

    fn step(&mut self, action: usize) -> Result<Transition, Refused> {
        if self.status.is_over() {
            return Err(Refused::Over);
        }
        admit(action, 2, |_| true)?;
        let [position, velocity, angle, angular_velocity] = self.state;
        let force = if action == 1 { FORCE } else { -FORCE };
        let (sine, cosine) = angle.sin_cos();
        let total_mass = CART_MASS + POLE_MASS;
        let pole_moment = POLE_MASS * POLE_LENGTH;
        let push = (force + pole_moment * angular_velocity * angular_velocity * sine) / total_mass;
        let angular_acceleration = (GRAVITY * sine - cosine * push)
            / (POLE_LENGTH * (4.0 / 3.0 - POLE_MASS * cosine * cosine / total_mass));
        let acceleration = push - pole_moment * angular_acceleration * cosine / total_mass;
        self.state = [
            position + SECONDS_PER_STEP * velocity,
            velocity + SECONDS_PER_STEP * acceleration,
            angle + SECONDS_PER_STEP * angular_velocity,
            angular_velocity + SECONDS_PER_STEP * angular_acceleration,
        ];
        self.n_steps += 1;
        self.status = if self.state[0].abs() > POSITION_MAX || self.state[2].abs() > ANGLE_MAX {
            Status::Terminated
        } else if self.n_steps == STEP_LIMIT {
            Status::Truncated
        } else {
            Status::Running
        };
        Ok(Transition::new(1.0, self.status))
    }

    fn step_limit(&self) -> Option<u64> {
        Some(STEP_LIMIT)
    }
}
