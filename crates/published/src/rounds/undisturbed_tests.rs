//! Tests of rounds in which every job goes on: the result without the state of the round is the result with it.

use super::action_scheme::{ActionScheme, Opened, close, open};
use super::cells::Cells;
use super::environment::Actions;
use super::memory::Memory;
use super::scenario::Condition;
use super::tests::{begun, scenario};
use crate::gangs::Presence;
use apportion::policy::Placed;
use apportion::simulator::Step;

/// The scheme's observation, its mask, and whether the round is over.
fn shown(cells: &Cells, round: &super::RoundState) -> (Vec<f32>, Vec<bool>, bool) {
    let space = &cells.spaces()[0];
    let (mut seen, mut mask) = (vec![0.0; space.observation_length()], vec![false; space.n_actions]);
    cells.observe(round, &mut seen);
    cells.mask(round, &mut mask);
    (seen, mask, cells.is_over())
}

#[test]
fn a_round_in_which_all_goes_on_needs_no_state() {
    let (mut n_undisturbed, mut n_others) = (0, 0);
    for condition in [
        Condition::default(),
        Condition { contention: 0.3, ..Condition::default() },
        Condition { straggling: 0.5, straggling_rounds: Some(3), ..Condition::default() },
    ] {
        let mut simulation = scenario(vec![condition]).simulation(2, Box::new(Actions)).unwrap();
        let (mut memory, mut presence, mut cells) =
            (Memory::default(), Presence::default(), Cells::default());
        for _ in 0..300 {
            if simulation.reach_boundary(&mut presence).unwrap() != Step::Advanced {
                break;
            }
            let (mut other, mut known) = (cells.clone(), memory.clone());
            let (opened, (mut round, decides)) = simulation
                .look(|view| {
                    let opened = open(&mut other, &mut known, view).unwrap();
                    (opened, begun(&mut cells, &mut memory, view).unwrap())
                })
                .unwrap()
                .expect("inside rounds");
            while !cells.is_over() {
                let action = cells.advice(&round).expect("the rule has an answer");
                cells.act(&mut round, action);
            }
            close(&mut memory, &round);
            let placed: Vec<Placed> = round.placed().iter().map(|(_, placed)| placed.clone()).collect();
            if let Opened::Undisturbed(found) = opened {
                assert!(!decides && found == placed);
                assert_eq!(serde_json::json!(known.state()), serde_json::json!(memory.state()));
                assert_eq!(shown(&other, &round), shown(&cells, &round));
                n_undisturbed += 1;
            } else {
                n_others += 1;
            }
            simulation.start_placed_round(placed, &mut presence).unwrap();
        }
    }
    assert!(n_undisturbed > 100 && n_others > 50, "{n_undisturbed} {n_others}");
}
