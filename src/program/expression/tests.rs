use proptest::prelude::*;

use super::*;

fn vocabulary() -> Vocabulary {
    let mut vocabulary = Vocabulary::default();
    vocabulary.add_column("bonus", Dimension::NONE, Sign::ANY).unwrap();
    vocabulary.add_column("ratio", Dimension::NONE, Sign::NON_NEGATIVE).unwrap();
    vocabulary
}

const BOTH: Scope = Scope { job: true, worker_type: true };

/// Parses and checks an expression of one job and one worker type.
fn check(text: &str) -> Result<(Facts, Shape), ExpressionError> {
    let vocabulary = vocabulary();
    let expression = parse(text, &vocabulary, BOTH)?;
    Ok((facts(&expression, &vocabulary)?, shape(&expression, &vocabulary)?))
}

/// The span of an expression's error as text, and its message.
fn complaint(text: &str, scope: Scope) -> (String, String) {
    let vocabulary = vocabulary();
    let result = parse(text, &vocabulary, scope)
        .and_then(|expression| facts(&expression, &vocabulary).map(|_| expression))
        .and_then(|expression| shape(&expression, &vocabulary));
    let error = result.expect_err(text);
    let span = error.span;
    let end = (span.offset + span.width).min(text.len());
    (text[span.offset.min(end)..end].to_owned(), error.to_string())
}

#[test]
fn every_expression_has_the_curvature_that_the_rules_give_it() {
    use Curvature::{Affine, Concave, Constant, Convex};
    let table = [
        ("weight * 3", Constant, true),
        ("log(weight) + sqrt(elapsed / 1[s])", Constant, true),
        ("throughput", Affine, true),
        ("2 * throughput / weight - throughput_on(k80) / 3", Affine, true),
        ("-throughput * bonus", Affine, true),
        ("min(throughput, 3[steps/s])", Concave, true),
        ("max(throughput, 3[steps/s])", Convex, true),
        ("-max(throughput, 3[steps/s])", Concave, true),
        ("log(throughput)", Concave, false),
        ("sqrt(throughput)", Concave, false),
        ("log(min(throughput, equal_share_throughput))", Concave, false),
        ("inv(throughput)", Convex, false),
        ("steps_remaining / throughput", Convex, false),
        ("-steps_remaining / throughput", Concave, false),
        ("1 / sqrt(throughput)", Convex, false),
        ("elapsed - steps_remaining / throughput", Concave, false),
        ("weight * log(throughput) - inv(throughput) * 1[steps/s]", Concave, false),
        ("ratio * log(throughput)", Concave, false),
        ("-(ratio + 1) * log(throughput)", Convex, false),
        ("sum_over_worker_types(throughput_on(type) / price(type))", Affine, true),
    ];
    for (text, curvature, piecewise_linear) in table {
        let vocabulary = vocabulary();
        let expression = parse(text, &vocabulary, Scope::JOB);
        let expression = expression.unwrap_or_else(|error| panic!("{text}: {error}"));
        facts(&expression, &vocabulary).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(shape(&expression, &vocabulary), Ok(Shape { curvature, piecewise_linear }), "{text}");
    }
}

#[test]
fn what_the_rules_cannot_tell_is_refused_at_its_place() {
    for (text, place, message) in [
        ("throughput * throughput", "throughput * throughput", "both depend on the allocation"),
        ("throughput + throughput_on(k80) * time_on(k80)", "throughput_on(k80) * time_on(k80)", "product of"),
        ("throughput / (throughput + 1[steps/s])", "", "quotient of `throughput`"),
        ("log(throughput) + inv(throughput)", "", "expected equal dimensions"),
        ("log(throughput) + 1[steps/s] * inv(throughput)", "", "neither convex nor concave"),
        ("bonus * log(throughput)", "bonus", "whose sign is not known"),
        (
            "log(inv(throughput))",
            "inv(throughput)",
            "which is convex, expected an affine or concave argument",
        ),
        ("max(log(throughput), 0)", "log(throughput)", "which is concave, expected affine or convex"),
        (
            "sqrt(1 + max(throughput / 1[steps/s], 1))",
            "1 + max(throughput / 1[steps/s], 1)",
            "which is convex",
        ),
    ] {
        let (found, error) = complaint(text, BOTH);
        assert!(error.contains(message), "{text}: {error}");
        assert_eq!(found, if place.is_empty() { text } else { place }, "{text}: {error}");
    }
}

#[test]
fn dimensions_must_agree_where_things_are_added_or_compared() {
    for (text, dimension) in [
        ("steps_remaining / throughput + elapsed", "s"),
        ("throughput * elapsed", "steps"),
        ("scale_factor * throughput / equal_share_throughput", "workers"),
        ("sqrt(elapsed * 4[s])", "s"),
        ("price(type) * scale_factor * elapsed / 3600[s/h]", "$"),
        ("max(elapsed, 0)", "s"),
        ("elapsed + 0", "s"),
        ("log(throughput)", "1"),
    ] {
        let (facts, _) = check(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(facts.dimension.unwrap().to_string(), dimension, "{text}");
    }
    for (text, message) in [
        ("steps_remaining + elapsed", "sum of `steps` and `s`"),
        ("throughput - elapsed", "difference of `steps/s` and `s`"),
        ("max(throughput, 3)", "comparison of `steps/s` and `1`"),
        ("1 + throughput", "sum of `1` and `steps/s`"),
        ("sqrt(sqrt(throughput))", "square root of `steps^0.5/s^0.5`"),
    ] {
        let (place, error) = complaint(text, BOTH);
        assert!(error.contains(message), "{text}: {error}");
        assert_eq!(place, text);
    }
}

#[test]
fn division_by_what_may_be_zero_is_refused() {
    for (text, place) in [
        ("throughput / elapsed", "elapsed"),
        ("throughput / (weight - 1)", "(weight - 1)"),
        ("steps_remaining / (throughput - 3[steps/s])", "(throughput - 3[steps/s])"),
        ("1 / 0", "0"),
        ("throughput / bonus", "bonus"),
        ("throughput / time_on(k80) / ratio", "ratio"),
    ] {
        let (found, error) = complaint(text, BOTH);
        assert!(error.starts_with("division by"), "{text}: {error}");
        assert_eq!(found, place, "{text}");
    }
    for text in ["throughput / (elapsed + 1[s])", "1 / max(elapsed, 1[s])", "steps_remaining / throughput"] {
        assert!(check(text).is_ok(), "{text}");
    }
    for text in ["log(elapsed)", "sqrt(throughput - 1[steps/s])", "inv(bonus)", "log(bonus)"] {
        assert!(complaint(text, BOTH).1.contains("which must not be below 0"), "{text}");
    }
}

#[test]
fn only_data_without_a_unit_that_cannot_leave_the_domain_is_raised_to_a_power() {
    for (text, place, message) in [
        ("weight + throughput^0.5", "throughput", "depends on the allocation; only data may be raised"),
        ("elapsed^0.5", "elapsed", "which is in s; the base of a power must have no unit"),
        ("bonus^2", "bonus", "where the base must be at least 0 and is of any sign"),
        ("(elapsed / 1[s])^-1", "(elapsed / 1[s])", "to the power of -1.0, where the base must be above 0"),
        ("(elapsed / 1[s])^0", "(elapsed / 1[s])", "must be above 0"),
        (
            "weight^throughput",
            "throughput",
            "expected a number without a unit, the exponent, found `throughput`",
        ),
        ("weight^2^3", "^", "expected an operator or the end, found `^`"),
    ] {
        let (found, error) = complaint(text, BOTH);
        assert!(error.contains(message), "{text}: {error}");
        assert_eq!(found, place, "{text}: {error}");
    }
    for text in ["(elapsed / 1[s])^0.5", "weight^-2", "-weight^2 * throughput", "2^0.5"] {
        let (facts, shape) = check(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(facts.varies, shape.curvature == Curvature::Affine, "{text}");
    }
    assert_eq!(parse("-weight^2", &vocabulary(), BOTH).unwrap().to_string(), "-weight^2.0");
    assert_eq!(parse("(-weight)^2", &vocabulary(), BOTH).unwrap().to_string(), "(-weight)^2.0");
}

#[test]
fn syntax_and_names_are_complained_about_where_they_stand() {
    for (text, scope, place, message) in [
        ("throughput +", BOTH, "", "expected a number, a name, `-` or `(`, found the end"),
        ("(throughput", BOTH, "", "expected an operator, `,` or `)`, found the end"),
        ("throughput)", BOTH, ")", "expected an operator or the end, found `)`"),
        ("2 throughput", BOTH, "throughput", "found `throughput`"),
        ("thruput * 2", BOTH, "thruput", "unknown name `thruput`, expected one of `throughput`"),
        ("1e999", BOTH, "1e999", "is not a finite number"),
        ("1e-300", BOTH, "1e-300", "that is 0 or at least 1e-100"),
        ("1e-400", BOTH, "1e-400", "that is 0 or at least 1e-100"),
        (".", BOTH, ".", "is not a finite number"),
        ("3[parsecs]", BOTH, "[parsecs]", "unknown unit `parsecs`"),
        ("3[s", BOTH, "[s", "unknown unit"),
        ("throughput_on", BOTH, "throughput_on", "takes one argument"),
        ("throughput_on(\"a", BOTH, "\"a", "without its closing"),
        ("throughput(k80)", BOTH, "throughput", "takes no arguments"),
        ("log(1, 2)", BOTH, "log(1, 2)", "takes one argument, found 2"),
        ("min(1)", BOTH, "min(1)", "takes two arguments or more, found 1"),
        ("type", BOTH, "type", "stands only inside parentheses"),
        ("weight é", BOTH, "é", "unexpected character `é`"),
        ("throughput", Scope::GLOBAL, "throughput", "is of one job, and none is at hand here"),
        ("price(type)", Scope::JOB, "price(type", "is of one worker type"),
        ("sum_over_jobs(weight)", Scope::JOB, "sum_over_jobs", "already about one job"),
        (
            "sum_over_jobs(weight, 2)",
            Scope::GLOBAL,
            "sum_over_jobs(weight, 2)",
            "takes one argument, found 2",
        ),
    ] {
        let (found, error) = complaint(text, scope);
        assert!(error.contains(message), "{text}: {error}");
        assert_eq!(found, place, "{text}: {error}");
    }
}

#[test]
fn length_and_nesting_are_bounded() {
    let deep = format!("{}1{}", "(".repeat(1000), ")".repeat(1000));
    assert!(
        matches!(complaint(&deep[..LENGTH_MAX.min(deep.len())], BOTH).1.as_str(), text if text.contains("nested deeper"))
    );
    let negated = format!("{}1", "-".repeat(LENGTH_MAX - 1));
    assert!(complaint(&negated, BOTH).1.contains("nested deeper"));
    assert!(complaint(&"1+".repeat(LENGTH_MAX), BOTH).1.contains("expected at most 1000"));
    let long = format!("1{}", "+1".repeat((LENGTH_MAX - 1) / 2));
    assert!(check(&long).is_ok(), "a chain as long as is read");
}

/// Expressions of one job and one type, without regard to sense.
fn expressions() -> impl Strategy<Value = Expr> {
    let expression = |node| Expr { node, span: Span::default() };
    let data = |name: &str, of| {
        let slot = vocabulary().find(name).unwrap();
        Node::Data { slot, name: name.to_owned(), of }
    };
    let types = prop_oneof![
        Just(TypeRef::Bound),
        Just(TypeRef::Named("v100".to_owned())),
        Just(TypeRef::Named("a100-80gb x".to_owned())),
    ];
    let units = prop_oneof![Just(Dimension::NONE), Just(Dimension::STEPS_PER_SECOND), Just(Dimension::PRICE)];
    let variables = |by_type: bool| {
        let all = Variable::ALL.into_iter().filter(move |variable| variable.atom().by_type == by_type);
        prop::sample::select(all.collect::<Vec<_>>())
    };
    let part = prop_oneof![
        (0.0..1e12_f64, units).prop_map(|(value, dimension)| Node::Number { value, dimension }),
        prop_oneof![Just("weight"), Just("elapsed"), Just("bonus")].prop_map(move |name| data(name, None)),
        types.clone().prop_map(move |of| data("price", Some(of))),
        variables(false).prop_map(|variable| Node::Variable(variable, None)),
        (variables(true), types).prop_map(|(variable, of)| Node::Variable(variable, Some(of))),
    ]
    .prop_map(expression);
    part.prop_recursive(6, 40, 3, move |inner| {
        let operators = prop_oneof![
            Just(Operator::Add),
            Just(Operator::Subtract),
            Just(Operator::Multiply),
            Just(Operator::Divide)
        ];
        let unary = prop_oneof![Just(Function::Log), Just(Function::Sqrt), Just(Function::Inv)];
        let extreme = prop_oneof![Just(Function::Min), Just(Function::Max)];
        prop_oneof![
            inner.clone().prop_map(|inner| Node::Negate(Box::new(inner))),
            (inner.clone(), -3.0..3.0_f64).prop_map(|(base, exponent)| Node::Power(Box::new(base), exponent)),
            (operators, inner.clone(), inner.clone()).prop_map(|(operator, a, b)| Node::Binary(
                operator,
                Box::new(a),
                Box::new(b)
            )),
            (unary, inner.clone()).prop_map(|(function, a)| Node::Call(function, vec![a])),
            (extreme, prop::collection::vec(inner, 2..4)).prop_map(|(f, all)| Node::Call(f, all)),
        ]
        .prop_map(expression)
    })
}

const VALID: [&str; 9] = [
    "sum_over_jobs(throughput / equal_share_throughput * weight^0.5 * max(elapsed / 3600[s], 1)^-0.25)",
    "min_over_jobs(scale_factor * throughput / (weight * equal_share_throughput))",
    "max_over_jobs((elapsed + steps_remaining / throughput) / (isolated_elapsed + steps_remaining / isolated_throughput))",
    "sum_over_jobs(weight * log(throughput))",
    "sum_over_jobs(sum_over_worker_types(throughput_on(type) / price(type)))",
    "lexicographic_min_over_jobs(throughput / 3.5e-2[steps/s])",
    "max_over_worker_types(sum_over_jobs(scale_factor * time_on(type)) / max(capacity(type), 1[workers]))",
    "sum_over_jobs(-inv(min(throughput, 2[steps/s]))) - 0.1[1/steps*s] * max_over_jobs(throughput_on(\"v100\"))",
    "min_over_jobs(sqrt(throughput + 1[steps/s]))",
];

/// Reads a text as an objective and as a constraint; nothing may panic, and an error lies inside the text.
fn read_in_every_way(text: &str) {
    use crate::program::{ConstraintText, Objective, ObjectiveText, Sense};
    for sense in [Sense::Maximize, Sense::Minimize] {
        let mut objective = ObjectiveText::new(sense, text);
        let complaint = Objective::check(&objective, Vocabulary::default()).err();
        if let Some(error) = complaint {
            let span = error.error.span;
            assert!(span.offset <= text.len() && span.offset + span.width <= text.len() + 1, "{span:?}");
            assert!(!error.to_string().is_empty());
            let _ = error.error.help();
        }
        objective.objective = VALID[2].to_owned();
        objective.for_each_job = vec![ConstraintText::soft(text, 1.0)];
        let _ = Objective::check(&objective, Vocabulary::default());
        objective.for_each_worker_type = std::mem::take(&mut objective.for_each_job);
        let _ = Objective::check(&objective, Vocabulary::default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_written_is_read_back(expression in expressions()) {
        let text = expression.to_string();
        if text.len() <= LENGTH_MAX {
            let read = parse(&text, &vocabulary(), BOTH);
            prop_assert_eq!(read.as_ref(), Ok(&expression), "{}", text);
        }
    }

    #[test]
    fn checks_of_any_tree_end_without_a_panic(expression in expressions()) {
        let vocabulary = vocabulary();
        if facts(&expression, &vocabulary).is_ok() {
            let _ = shape(&expression, &vocabulary);
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,60}") {
        read_in_every_way(&text);
    }

    #[test]
    fn no_soup_of_tokens_makes_the_reader_panic(
        tokens in prop::collection::vec(prop::sample::select(vec![
            "throughput", "weight", "price", "type", "v100", "(", ")", ",", "+", "-", "*", "/", "^", "<=", "==", "1",
            "0", "2.5", "[s]", "[steps/s]", "min", "log", "inv", "min_over_jobs", "sum_over_worker_types", "\"x\"",
        ]), 0..24)
    ) {
        read_in_every_way(&tokens.join(" "));
    }

    #[test]
    fn no_slip_of_the_pen_makes_the_reader_panic(
        which in 0..VALID.len(), at in 0.0..1.0_f64, cut in 0..6_usize, insert in "[-+*/^().,\\[\\]a-z0-9<=>é\" ]{0,4}"
    ) {
        let characters: Vec<char> = VALID[which].chars().collect();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a position in a short text")]
        let at = (at * characters.len() as f64) as usize;
        let head: String = characters[..at].iter().collect();
        let tail: String = characters[(at + cut).min(characters.len())..].iter().collect();
        read_in_every_way(&format!("{head}{insert}{tail}"));
    }
}
