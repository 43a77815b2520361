use super::*;

/// The record of `n` arrivals. At each of them, `n_active` gives the number of active jobs.
fn vigil(n: u32, n_active: impl Fn(u32) -> usize) -> Vigil {
    let mut vigil = Vigil::default();
    for n_arrived in 1..=n {
        vigil.arrived(n_arrived, n_active(n_arrived), MILESTONE_MIN);
    }
    vigil
}

/// Whether the averages of the last three doublings doubled each time.
fn averages_double(vigil: &Vigil) -> bool {
    let means: Vec<f64> = vigil.milestones.iter().rev().take(4).map(|(_, mean)| *mean).collect();
    means.len() == 4 && means.windows(2).all(|pair| pair[0] >= GROWTH_MIN * pair[1])
}

#[test]
fn a_queue_that_grows_with_each_arrival_is_sure_to_grow() {
    let steady = vigil(16_000, |n| (n / 4) as usize);
    let growth = steady.growth.unwrap();
    assert!((growth.per_arrival - 0.25).abs() < 1e-3 && growth.is_sure(), "{growth:?}");
    assert!(averages_double(&steady));
    // Up and down by ten about it.
    let uneven = vigil(16_000, |n| (n / 4) as usize + 20 * (n / 250 % 2) as usize);
    assert!(uneven.growth.unwrap().is_sure(), "{:?}", uneven.growth);
}

#[test]
fn averages_that_double_at_a_leap_are_no_sure_growth() {
    let leaps = vigil(16_000, |n| 100 << (n - 1).checked_div(1000).unwrap().checked_ilog2().unwrap_or(0));
    assert!(averages_double(&leaps), "{:?}", leaps.milestones);
    let growth = leaps.growth.unwrap();
    assert!(!growth.is_sure(), "{growth:?}");
    let back_and_forth = vigil(16_000, |n| 100 * (n / 250 % 2) as usize);
    assert!(!back_and_forth.growth.unwrap().is_sure());
}

#[test]
fn a_record_without_the_numbers_of_all_parts_tells_no_growth() {
    assert_eq!(vigil(1999, |n| n as usize).growth, None, "the first milestone is not a doubling");
    let mut resumed = vigil(1999, |n| n as usize);
    resumed.n_active_at.clear();
    resumed.arrived(2000, 2000, MILESTONE_MIN);
    assert_eq!(resumed.growth, None);
    let text = serde_json::to_string(&vigil(2500, |n| n as usize)).unwrap();
    assert_eq!(serde_json::from_str::<Vigil>(&text).unwrap(), vigil(2500, |n| n as usize));
}
