use super::*;

/// Two types, of which the first is scarce at prices of 2 and 0, and five members: the first three stop.
struct Level {
    instance: Instance,
    prices: PrimalDual,
    given: Vec<f64>,
}

fn level() -> Level {
    let instance = Instance {
        capacity: vec![2.0, 3.0],
        multiplicity: vec![1.0; 5],
        scale_factor: vec![1.0, 1.0, 1.0, 2.0, 1.0],
        throughput: vec![4.0, 1.0, 3.0, 0.0, 8.0, 0.0, 1.0, 1.0, 5.0, 4.0],
        ..Instance::default()
    };
    // the first mixes both types, the second and the third have a part of the scarce one
    let given = vec![0.5, 0.5, 0.75, 0.0, 0.75, 0.0, 0.0, 0.5, 0.0, 0.25];
    let prices = PrimalDual {
        worker_price: vec![2.0, 0.0],
        throughput_price: vec![2.0 / 3.0, 2.0 / 3.0, 0.25, 0.0, 0.0],
        time_price: vec![2.0 / 3.0, 0.0, 0.0, 0.0, 0.0],
        ..PrimalDual::default()
    };
    Level { instance, prices, given }
}

fn residual(level: &Level, scarce: [bool; 2]) -> Option<ResidualProblem<'static>> {
    let frozen = [true, true, true, false, false];
    let Level { instance, prices, given } = level;
    ResidualProblem::of(FixedLevel { instance, prices, given, frozen: &frozen, scarce: &scarce })
}

#[test]
fn members_with_one_way_to_have_what_they_have_keep_it() {
    let residual = residual(&level(), [true, false]).unwrap();
    assert_eq!((&residual.members[..], &residual.types[..]), (&[3, 4][..], &[1][..]));
    // the first holds half a worker of the type that is not scarce
    assert_eq!(residual.instance.capacity, [2.5]);
    assert_eq!(residual.instance.throughput, [1.0, 4.0]);
    assert_eq!(residual.instance.scale_factor, [2.0, 1.0]);
    let mut all = level().given;
    assert_eq!(residual.times(&all, 2), [0.5, 0.25]);
    residual.write_times(&[0.75, 1.0], &mut all, 2);
    assert_eq!(all[6..], [0.0, 0.75, 0.0, 1.0]);
    assert_eq!(residual.of_members(&[0.0, 1.0, 2.0, 3.0, 4.0]), [3.0, 4.0]);
}

#[test]
fn members_with_more_ways_than_one_stay_with_the_scarce() {
    let mut level = level();
    // of three types the first two are scarce; both pay for the third member (2), the second does not for the second
    // member (1)
    let wider = |row: &[f64], second: f64| vec![row[0], second, row[1]];
    let seconds = [0.0, 1.0, 4.0, 0.0, 0.0];
    let rows = level.instance.throughput.chunks(2).zip(seconds);
    level.instance.throughput = rows.flat_map(|(row, second)| wider(row, second)).collect();
    level.given = level.given.chunks(2).flat_map(|row| wider(row, 0.0)).collect();
    level.instance.capacity = vec![2.0, 1.0, 3.0];
    level.prices.worker_price = vec![2.0, 1.0, 0.0];
    let frozen = [true, true, true, false, false];
    let Level { instance, prices, given } = &level;
    let held = |scarce| FixedLevel { instance, prices, given, frozen: &frozen, scarce };
    // the third member's only change of time needs more of one scarce type
    let one = ResidualProblem::of(held(&[true, true, false])).unwrap();
    assert_eq!((&one.members[..], &one.types[..]), (&[3, 4][..], &[2][..]), "a single one cannot change");
    let more = Instance {
        throughput: [&instance.throughput[..], &[8.0, 4.0, 0.0]].concat(),
        multiplicity: vec![1.0; 6],
        scale_factor: [&instance.scale_factor[..], &[1.0]].concat(),
        ..instance.clone()
    };
    let prices = PrimalDual {
        throughput_price: [&prices.throughput_price[..], &[0.25]].concat(),
        time_price: [&prices.time_price[..], &[0.0]].concat(),
        ..prices.clone()
    };
    let given = [&given[..], &[0.0, 0.5, 0.0]].concat();
    let (frozen, scarce) = ([true, true, true, false, false, true], [true, true, false]);
    let two = ResidualProblem::of(FixedLevel {
        instance: &more,
        prices: &prices,
        given: &given,
        frozen: &frozen,
        scarce: &scarce,
    })
    .unwrap();
    assert_eq!((&two.members[..], &two.types[..]), (&[2, 3, 4, 5][..], &[0, 1, 2][..]), "but two can swap");
    // a member that rises runs on no scarce type, and one that stops on no type that does not pay
    assert_eq!(two.instance.throughput, [8.0, 4.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 4.0, 8.0, 4.0, 0.0]);
    assert_eq!(two.instance.capacity, [0.75, 1.0, 2.5]);
    let within = ResidualProblem { members: vec![1, 3], types: vec![2], ..two.clone() }.with_places_of(&two);
    assert_eq!((within.members, within.types), (vec![3, 5], vec![2]));
}

#[test]
fn nothing_is_settled_while_one_that_rises_has_what_is_scarce() {
    let mut level = level();
    level.given[8] = 0.125;
    level.instance.capacity[0] = 2.5;
    assert!(residual(&level, [true, false]).is_none());
    assert!(residual(&level, [false, false]).is_some(), "nothing is scarce");
}

#[test]
fn types_of_which_others_leave_nothing_are_left_out() {
    let mut level = level();
    level.instance.capacity[1] = 0.5;
    (level.given[7], level.given[9]) = (0.0, 0.0);
    let residual = residual(&level, [true, false]).unwrap();
    assert_eq!((&residual.members[..], residual.types.len()), (&[3, 4][..], 0));
}

#[test]
fn a_level_without_scarce_workers_leaves_everything_open() {
    let Level { instance, mut prices, given } = level();
    let settled = ResidualProblem::of_level(&instance, &prices, &given).unwrap();
    assert_eq!((settled.members, settled.types), (vec![3, 4], vec![1]));
    prices.worker_price = vec![0.0; 2];
    assert!(ResidualProblem::of_level(&instance, &prices, &given).is_none());
}

#[test]
fn ways_differ_in_neither_throughput_nor_time() {
    let speed = [3.0, 1.0, 2.0, 5.0];
    let sum = |of: &[f64]| of.iter().sum::<f64>();
    let throughput = |of: &[f64]| of.iter().zip(&speed).map(|(time, speed)| time * speed).sum::<f64>();
    for (two, n) in [(true, 2), (false, 3)] {
        let found = directions(&[0, 1, 2, 3], &speed, two, 4);
        assert_eq!(found.len(), n);
        for direction in &found {
            assert!(
                throughput(direction).abs() < 1e-15 && (!two || sum(direction).abs() < 1e-15),
                "{direction:?}"
            );
        }
        let mut space = Space::default();
        assert!(found.iter().all(|direction| space.adds(direction, &[true; 4])));
        let both: Vec<f64> = found[0].iter().zip(&found[1]).map(|(one, other)| one - 2.0 * other).collect();
        assert!(!space.adds(&both, &[true; 4]), "nothing new");
    }
    // a change on types that are not scarce adds nothing
    assert!(!Space::default().adds(&[1.0, -1.0], &[false; 2]));
}
