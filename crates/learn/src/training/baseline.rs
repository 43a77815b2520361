//! Baselines from copies that play the same episodes (Mao et al., 2019, *Variance Reduction for Reinforcement Learning in
//! Input-Driven Environments*): a gain that all copies have at the same time is due to the arrivals, not to their actions.

use super::rollout::Rollout;

/// The time of each decision of a rollout: (episode, rounds since its beginning).
fn times(rollout: &Rollout) -> Vec<(usize, u64)> {
    let (mut episode, mut round) = (0, 0);
    let mut times = Vec::with_capacity(rollout.decisions.len());
    for decision in &rollout.decisions {
        times.push((episode, round));
        round += u64::from(decision.transition.rounds);
        if decision.transition.status.is_over() {
            (episode, round) = (episode + 1, 0);
        }
    }
    times
}

/// Subtracts from each advantage the mean of the other copies' advantages at its time, which are those of each copy's last decision
/// until then in the same episode. `advantages` are [copy][decision], of copies that play the same whole episodes.
pub(super) fn subtract_common(rollouts: &[Rollout], advantages: &mut [Vec<f32>]) {
    let times: Vec<Vec<(usize, u64)>> = rollouts.iter().map(times).collect();
    let before: Vec<Vec<f32>> = advantages.to_vec();
    for (copy, advantages) in advantages.iter_mut().enumerate() {
        for (decision, advantage) in advantages.iter_mut().enumerate() {
            let time = times[copy][decision];
            let (mut sum, mut n) = (0.0, 0.0);
            for (other, of_other) in before.iter().enumerate().filter(|(other, _)| *other != copy) {
                let last = times[other].partition_point(|there| *there <= time).checked_sub(1);
                if let Some(last) = last.filter(|last| times[other][*last].0 == time.0) {
                    sum += of_other[last];
                    n += 1.0;
                }
            }
            if n > 0.0 {
                *advantage -= sum / n;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{Space, Status, Transition};
    use crate::training::rollout::Decision;

    fn rollout(steps: &[(u32, Status)]) -> Rollout {
        let mut rollout = Rollout::new(&[Space::uniform(1, (0.0, 1.0), 2)], 0);
        for (rounds, status) in steps {
            let transition = Transition { rounds: *rounds, ..Transition::new(0.0, *status) };
            let decision = Decision { agent: 0, row: 0, action: 0, log_probability: 0.0, transition };
            rollout.decisions.push(decision);
        }
        rollout
    }

    #[test]
    fn what_others_gained_at_the_time_is_taken_off() {
        use Status::{Running, Terminated};
        // Two copies, each with two episodes: decisions in rounds 0, 0, 2 | 0 and in rounds 0, 1 | 0, 4.
        let one = rollout(&[(0, Running), (2, Running), (3, Terminated), (1, Terminated)]);
        let other = rollout(&[(1, Running), (1, Terminated), (4, Running), (1, Terminated)]);
        let mut advantages = vec![vec![1.0, 2.0, 3.0, 4.0], vec![10.0, 20.0, 30.0, 40.0]];
        subtract_common(&[one, other], &mut advantages);
        assert_eq!(advantages[0], [1.0 - 10.0, 2.0 - 10.0, 3.0 - 20.0, 4.0 - 30.0]);
        assert_eq!(advantages[1], [10.0 - 2.0, 20.0 - 2.0, 30.0 - 4.0, 40.0 - 4.0]);
    }

    #[test]
    fn a_copy_alone_keeps_its_own() {
        let mut advantages = vec![vec![1.0, 2.0]];
        subtract_common(&[rollout(&[(1, Status::Running), (1, Status::Terminated)])], &mut advantages);
        assert_eq!(advantages[0], [1.0, 2.0]);
    }
}
