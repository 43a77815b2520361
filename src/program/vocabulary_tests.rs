//! Tests of the tables of atoms and functions: their declarations against evaluation on random numbers.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::at::At;
use super::binding::BoundObjective;
use super::builder::Builder;
use super::expression::{
    Curvature, Dimension, Function, Measure, Scope, Sign, Source, Subject, Variable, Vocabulary, facts,
    parse, shape,
};
use super::range::Reach;
use super::{ConstraintText, Instance, InstancePair, Objective, ObjectiveText, Part, Sense};

const TYPES: [&str; 3] = ["fast", "slow", "rare"];
const N_MEMBERS: usize = 4;

/// Random numbers in 0..1, by splitmix64.
struct Draws(u64);

impl Draws {
    fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn whole(&mut self, most: f64) -> f64 {
        1.0 + (self.draw() * most).floor()
    }

    /// A number that a sign admits, now and then 0.
    fn of(&mut self, sign: Sign) -> f64 {
        let size = 0.2 + 2.0 * self.draw();
        match self.draw() {
            part if part < 0.2 && sign.zero => 0.0,
            part if part < 0.6 && sign.below => -size,
            _ => size,
        }
    }
}

fn vocabulary() -> Vocabulary {
    let mut vocabulary = Vocabulary::default();
    vocabulary.add_column("bonus", Dimension::NONE, Sign::ANY).unwrap();
    vocabulary.add_column("ratio", Dimension::NONE, Sign::NON_NEGATIVE).unwrap();
    vocabulary
}

/// Members with pairs, one of them of a member with itself, and values for every datum of the vocabulary.
fn instance(draws: &mut Draws) -> Instance {
    let k = TYPES.len();
    let mut throughput = |n: usize| (0..n).map(|_| 0.3 + 3.0 * draws.draw()).collect::<Vec<f64>>();
    let part = |member, uses, throughput| Part { member, uses, throughput };
    let parts =
        [vec![part(0, 1.0, throughput(k)), part(1, 1.0, throughput(k))], vec![part(2, 2.0, throughput(k))]];
    let throughput = throughput(N_MEMBERS * k);
    let mut instance = Instance {
        capacity: (0..k).map(|_| draws.whole(6.0)).collect(),
        multiplicity: (0..N_MEMBERS).map(|_| draws.whole(3.0)).collect(),
        worker_types: TYPES.map(str::to_owned).to_vec(),
        scale_factor: vec![1.0; N_MEMBERS],
        throughput,
        pairs: parts.map(|parts| InstancePair { parts, scale_factor: 1.0 }).to_vec(),
        ..Instance::default()
    };
    for atom in vocabulary().atoms().filter(|atom| atom.source != Source::Allocation) {
        let (data, n) = match atom.subject {
            Subject::Job => (&mut instance.data, N_MEMBERS),
            Subject::WorkerType => (&mut instance.type_data, k),
        };
        data.insert(atom.name.to_string(), (0..n).map(|_| draws.of(atom.sign)).collect());
    }
    instance
}

/// Every atom of one job, by each worker type where it is of one, as a plain number.
fn atoms() -> Vec<String> {
    let mut texts = Vec::new();
    for atom in vocabulary().atoms() {
        let (name, unit) = (&atom.name, atom.dimension);
        if atom.by_type {
            texts.extend(TYPES.map(|of| format!("({name}({of}) / 1[{unit}])")));
        } else {
            texts.push(format!("({name} / 1[{unit}])"));
        }
    }
    texts
}

/// An objective that reads every atom.
static OBJECTIVE: LazyLock<Objective> = LazyLock::new(|| {
    let mut text = ObjectiveText::new(Sense::Maximize, "sum_over_jobs(throughput)");
    let reading = |atom: String| ConstraintText::hard(format!("{atom} + throughput / 1[steps/s] <= 1"));
    text.for_each_job = atoms().into_iter().map(reading).collect();
    Objective::check(&text, vocabulary()).unwrap_or_else(|error| panic!("{error}"))
});

/// Class times within the members' time and the workers of each type.
fn class_times(bound: &BoundObjective<'_>, draws: &mut Draws) -> Vec<f64> {
    let instance = bound.instance();
    // now and then none at all
    let size = (draws.draw() - 0.1).max(0.0);
    let mut times: Vec<f64> = bound.columns().iter().map(|_| size * draws.of(Sign::NON_NEGATIVE)).collect();
    let (mut workers, mut spent) = (vec![0.0; TYPES.len()], [0.0; N_MEMBERS]);
    for (column, time) in bound.columns().iter().zip(&times) {
        workers[column.worker_type] += instance.scale_factor_of(column.combination) * time;
        instance.parts(column.combination).for_each(|(member, uses, _)| spent[member] += uses * time);
    }
    let full = |(limit, used): (&f64, &f64)| used / limit;
    let workers = instance.capacity.iter().zip(&workers).map(full);
    let most = workers.chain(instance.multiplicity.iter().zip(&spent).map(full)).fold(0.0, f64::max);
    for time in &mut times {
        *time /= most.max(1.0);
    }
    times
}

/// Expressions of one job, without dimension and without regard to curvature.
fn expressions() -> impl Strategy<Value = String> {
    let numbers = ["0.5", "2", "1.5"].map(str::to_owned).to_vec();
    let part = prop::sample::select([atoms(), numbers].concat());
    part.prop_recursive(4, 12, 3, |inner| {
        let several = |several: bool| {
            let all = Function::ALL.into_iter().filter(move |function| function.rule().several == several);
            prop::sample::select(all.map(Function::name).collect::<Vec<_>>())
        };
        let types = prop::sample::select(vec!["min", "max", "sum"]);
        prop_oneof![
            (inner.clone(), prop::sample::select(vec!["+", "-", "*", "/"]), inner.clone())
                .prop_map(|(x, operator, y)| format!("({x} {operator} {y})")),
            inner.clone().prop_map(|x| format!("(-{x})")),
            (inner.clone(), prop::sample::select(vec!["2", "0.5", "-1.5", "0"]))
                .prop_map(|(x, exponent)| format!("({x}^{exponent})")),
            (several(false), inner.clone()).prop_map(|(function, x)| format!("{function}({x})")),
            (several(true), inner.clone(), inner.clone())
                .prop_map(|(function, x, y)| format!("{function}({x}, {y})")),
            (types, inner).prop_map(|(fold, x)| {
                // Once only: a reduction does not stand within another.
                let ranges = !x.contains("over_worker_types");
                let x = if ranges { x.replace("(fast)", "(type)") } else { x };
                if ranges { format!("{fold}_over_worker_types({x})") } else { x }
            }),
        ]
    })
}

/// Checks the facts, shape, range and form of an accepted expression at class times and halfway between them.
fn check(text: &str, draws: &mut Draws) -> Result<(), TestCaseError> {
    let vocabulary = vocabulary();
    let Ok(expression) = parse(text, &vocabulary, Scope::JOB) else { return Ok(()) };
    let (Ok(known), Ok(shape)) = (facts(&expression, &vocabulary), shape(&expression, &vocabulary)) else {
        return Ok(());
    };
    let instance = instance(draws);
    let bound = OBJECTIVE.bind(&instance).unwrap_or_else(|error| panic!("{error}"));
    let reach = Reach::of(&bound);
    let ends = [class_times(&bound, draws), class_times(&bound, draws)];
    let half: Vec<f64> = ends[0].iter().zip(&ends[1]).map(|(x, y)| (x + y) / 2.0).collect();
    for member in 0..N_MEMBERS {
        let at = At { member, ..At::default() };
        let value = |times: &[f64]| bound.evaluate(&expression, at, &bound.point(times));
        let (x, y, middle) = (value(&ends[0]), value(&ends[1]), value(&half));
        if ![x, y, middle].iter().all(|value| value.abs() < 1e4) {
            continue;
        }
        let slack = 1e-9 * (1.0 + x.abs() + y.abs() + middle.abs());
        prop_assert!(known.sign.admits(x), "{text} is {x}, not {}", known.sign);
        let range = bound.range(&expression, at, &reach);
        let within = range.lower - slack <= x && x <= range.upper + slack;
        prop_assert!(
            within || range.lower.is_nan() || range.upper.is_nan(),
            "{text} is {x}, not in {range:?}"
        );
        let bulge = middle - f64::midpoint(x, y);
        let name = shape.curvature.name();
        prop_assert!(shape.curvature.is_concave() || bulge <= slack, "{text} is {name}: {x} {middle} {y}");
        prop_assert!(shape.curvature.is_convex() || bulge >= -slack, "{text} is {name}: {x} {middle} {y}");
        if shape.curvature <= Curvature::Affine {
            prop_assert!(bulge.abs() <= slack, "{text} is {name}: {x} {middle} {y}");
            let form = Builder::new(&bound, &reach, None).affine(&expression, at);
            let terms = form.terms.iter().map(|(column, value)| value * ends[0][*column]);
            let found = form.constant + terms.sum::<f64>();
            prop_assert!((found - x).abs() <= slack, "{text} is {x}, in programs {found}");
        }
        let varies = shape.curvature != Curvature::Constant;
        prop_assert!(varies || (x - y).abs() <= slack, "{text} varies: {x} {y}");
    }
    Ok(())
}

#[test]
fn every_atom_is_what_its_entry_declares() {
    for (case, text) in (0..20).flat_map(|case| atoms().into_iter().map(move |text| (case, text))) {
        check(&text, &mut Draws(case)).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn data_evaluate_to_the_instances_numbers_and_variables_to_sums_over_columns() {
    let (mut draws, vocabulary) = (Draws(7), vocabulary());
    let instance = instance(&mut draws);
    let bound = OBJECTIVE.bind(&instance).unwrap();
    let times = class_times(&bound, &mut draws);
    let point = bound.point(&times);
    // Independent of `Point::add` and of `Term`: steps/s and time of one job of a member.
    let sum = |member: usize, on: Option<usize>, measure: Measure| -> f64 {
        let columns = bound.columns().iter().zip(&times);
        let on = columns.filter(|(column, _)| on.is_none_or(|on| column.worker_type == on));
        let parts = on.flat_map(|(column, time)| {
            let own = instance.parts(column.combination).filter(move |part| part.0 == member);
            own.map(move |(_, uses, speeds)| match measure {
                Measure::Throughput => uses * time * speeds[column.worker_type],
                Measure::Time => uses * time,
                // Pairs of two jobs hold the workers once.
                Measure::Workers => uses * time * if column.combination < N_MEMBERS { 1.0 } else { 0.5 },
            })
        });
        parts.sum::<f64>() / instance.multiplicity[member]
    };
    for atom in vocabulary.atoms() {
        for (member, (j, of)) in
            (0..N_MEMBERS).flat_map(|member| (0..).zip(TYPES).map(move |of| (member, of)))
        {
            let text = if atom.by_type { format!("{}({of})", atom.name) } else { atom.name.to_string() };
            let expression = parse(&text, &vocabulary, Scope::JOB).unwrap();
            let found = bound.evaluate(&expression, At { member, ..At::default() }, &point);
            let expected = if let Some(variable) = Variable::find(&atom.name) {
                let unit =
                    variable.measure().of(Dimension::STEPS_PER_SECOND, Dimension::NONE, Dimension::WORKERS);
                assert_eq!(atom.dimension, unit, "{text}");
                sum(member, atom.by_type.then_some(j), variable.measure())
            } else {
                let place = if atom.subject == Subject::Job { member } else { j };
                instance.datum(atom.subject, &atom.name).unwrap()[place]
            };
            assert!((found - expected).abs() < 1e-12, "{text}: {found} {expected}");
        }
    }
}

proptest! {
    #[test]
    fn functions_grow_and_bend_as_declared(x in 0.01..9.0_f64, y in 0.01..9.0_f64, fixed in 0.01..9.0_f64) {
        for function in Function::ALL {
            let (rule, value) = (function.rule(), function.rule().value);
            let (low, high) = (value(x.min(y), fixed), value(x.max(y), fixed));
            prop_assert!(if rule.increasing { low <= high } else { low >= high }, "{function:?} {x} {y}");
            let bulge = value(f64::midpoint(x, y), fixed) - f64::midpoint(low, high);
            let fits = if rule.curvature == Curvature::Concave { bulge >= -1e-12 } else { bulge <= 1e-12 };
            prop_assert!(fits, "{function:?} {x} {y}: {bulge}");
            // a piecewise linear function has no bend between ends on the same side of `fixed`
            let beside = rule.several && (x < fixed) == (y < fixed);
            prop_assert!(!(rule.piecewise_linear && beside) || bulge.abs() < 1e-12, "{function:?} {x} {y}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn accepted_expressions_have_the_sign_and_curvature_that_the_rules_give_them(
        text in expressions(),
        seed in any::<u64>(),
    ) {
        check(&text, &mut Draws(seed))?;
    }
}

#[test]
fn the_page_of_the_language_lists_every_atom_and_function() {
    let page = include_str!("../../docs/vocabulary.md");
    let tables = Vocabulary::default().to_string();
    assert!(page.ends_with(&tables), "docs/vocabulary.md is to end with:\n\n{tables}");
}
