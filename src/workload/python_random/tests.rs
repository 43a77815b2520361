use std::fmt::Write;
use std::process::Command;

use super::*;

const GOLDEN: &str = include_str!("../../../tests/fixtures/python_random.txt");

fn joined(values: &[usize]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The output of `tests/fixtures/python_random.py` for one seed, from our own draws.
fn draws(name: &str, mut random: PythonRandom) -> String {
    let bits = |value: f64| format!("{:016x}", value.to_bits());
    let mut line = format!("{name} {} {}", bits(random.random()), bits(random.uniform(1.5, 3.0)));
    for k in [1, 5, 31, 32, 33, 53, 64] {
        write!(line, " {}", random.getrandbits(k)).unwrap();
    }
    for n in [1, 2, 3, 26, 1000, (1 << 40) + 1] {
        write!(line, " {}", random.randrange(n)).unwrap();
    }
    let all: Vec<usize> = (0..500).collect();
    write!(line, " {}", random.choice(&all[..26])).unwrap();
    let mut items = all[..10].to_vec();
    random.shuffle(&mut items);
    write!(line, " {}", joined(&items)).unwrap();
    for (n, k) in [(5, 2), (21, 2), (22, 2), (500, 2), (50, 7), (300, 7), (300, 40)] {
        write!(line, " {}", joined(&random.sample(&all[..n], k))).unwrap();
    }
    write!(line, " {}", bits(random.expovariate(0.25))).unwrap();
    for _ in 0..700 {
        random.random();
    }
    write!(line, " {}", bits(random.random())).unwrap();
    line
}

fn our_draws() -> Vec<String> {
    let two_to_100 = (1_i128 << 100) + 12_345;
    let seeds = [0, 1, 42, -7, (1 << 32) - 1, 1 << 32, (1 << 32) + 5, (1 << 64) - 1, two_to_100];
    seeds.iter().map(|seed| draws(&seed.to_string(), PythonRandom::new(*seed))).collect()
}

#[test]
fn draws_are_those_recorded_from_python() {
    for (ours, recorded) in our_draws().iter().zip(GOLDEN.lines()) {
        assert_eq!(ours, recorded);
    }
    assert_eq!(GOLDEN.lines().count(), our_draws().len());
}

#[test]
fn draws_are_those_of_the_python_installed_here() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/python_random.py");
    let Ok(output) = Command::new("python3").arg(script).output() else {
        eprintln!("skipped: no python3 to compare with");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().collect::<Vec<_>>(), our_draws());
}

#[test]
fn a_saved_generator_goes_on_where_it_was() {
    let mut random = PythonRandom::new(7);
    for _ in 0..1000 {
        random.randrange(26);
    }
    let saved = serde_json::to_string(&random).unwrap();
    let mut restored: PythonRandom = serde_json::from_str(&saved).unwrap();
    for _ in 0..1000 {
        assert_eq!(restored.random().to_bits(), random.random().to_bits());
    }
    let hours = r#"{"seed":[7],"drawn":18446744073709551615}"#;
    assert!(serde_json::from_str::<PythonRandom>(hours).is_err());
}

#[test]
fn leading_zeros_of_a_seed_do_not_matter() {
    let (mut short, mut long) = (PythonRandom::new(5), PythonRandom::from_words(vec![5, 0, 0]));
    assert_eq!(short.getrandbits(64), long.getrandbits(64));
}
