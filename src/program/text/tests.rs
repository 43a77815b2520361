use std::sync::Arc;

use super::names::unique_names;
use super::*;
use crate::program::standard::{Affine, Cone, ConeKind, Range, Sense};

/// A program with all kinds of rows and columns, an empty row, an unused column and an offset.
pub(crate) fn one_of_everything() -> Program {
    let mut program = Program::new(Sense::Maximize);
    program.offset = -2.5;
    for (range, cost) in [
        (Range::NON_NEGATIVE, 1.0),
        (Range { lower: 0.0, upper: 1.0 }, 2e-7),
        (Range::FREE, -1.0),
        (Range::exactly(2.0), 0.0),
        (Range::at_most(3.0), 0.5),
        (Range::at_least(-4.0), -1e20),
        (Range { lower: -1.0, upper: 1.0 }, 0.0),
    ] {
        program.push_column(range, range, cost);
    }
    program.push_row(Range::at_most(4.0), [(0, 1.0), (1, 1.5)]);
    program.push_row(Range::at_least(-1.0), [(2, 1.0), (3, 0.1)]);
    program.push_row(Range::exactly(5.0), [(0, 1.0), (3, 1.0), (4, -1.0)]);
    program.push_row(Range { lower: -2.0, upper: 2.0 }, [(4, 1.0), (5, 1.0)]);
    program.push_row(Range::FREE, [(0, 1.0)]);
    program.push_row(Range::at_most(1.0), []);
    program.set_names(
        Arc::new(|column| {
            ["level", "share[a, x]", "share[a x]", "2nd", "e1", "free", "idle"][column].to_owned()
        }),
        Arc::new(|row| ["time[a]", "time(a)", "obj", "capacity[x]", "", "holds"][row].to_owned()),
    );
    program
}

#[test]
fn lp_text_of_one_of_everything() {
    let expected = "\\ 7 columns, 6 rows
maximize
 obj: + 1 level + 2e-7 share_a_x - 1 share_a_x_2 + 0.5 x_e1 - 1e20 x_free - 2.5
subject to
 time_a: + 1 level + 1.5 share_a_x <= 4
 time_a_2: + 1 share_a_x_2 + 0.1 x_2nd >= -1
 r_obj: + 1 level + 1 x_2nd - 1 x_e1 = 5
 capacity_x: + 1 x_e1 + 1 x_free <= 2
 capacity_x_lower: + 1 x_e1 + 1 x_free >= -2
\\ r_ has no bounds
 holds: 0 level <= 1
bounds
 0 <= share_a_x <= 1
 share_a_x_2 free
 x_2nd = 2
 -inf <= x_e1 <= 3
 x_free >= -4
 -1 <= idle <= 1
end
";
    assert_eq!(to_lp(&one_of_everything()).unwrap(), expected);
}

#[test]
fn mps_text_of_one_of_everything() {
    let expected = "NAME program
OBJSENSE
    MAX
ROWS
 N obj
 L time_a
 G time_a_2
 E r_obj
 L capacity_x
 N r_
 L holds
COLUMNS
    level obj 1
    level time_a 1
    level r_obj 1
    level r_ 1
    share_a_x obj 2e-7
    share_a_x time_a 1.5
    share_a_x_2 obj -1
    share_a_x_2 time_a_2 1
    x_2nd time_a_2 0.1
    x_2nd r_obj 1
    x_e1 obj 0.5
    x_e1 r_obj -1
    x_e1 capacity_x 1
    x_free obj -1e20
    x_free capacity_x 1
    idle obj 0
RHS
    RHS obj 2.5
    RHS time_a 4
    RHS time_a_2 -1
    RHS r_obj 5
    RHS capacity_x 2
    RHS holds 1
RANGES
    RNG capacity_x 4
BOUNDS
 LO BND share_a_x 0
 UP BND share_a_x 1
 FR BND share_a_x_2
 FX BND x_2nd 2
 MI BND x_e1
 UP BND x_e1 3
 LO BND x_free -4
 LO BND idle -1
 UP BND idle 1
ENDATA
";
    assert_eq!(to_mps(&one_of_everything()).unwrap(), expected);
}

#[test]
fn long_forms_are_wrapped() {
    let mut program = Program::new(Sense::Minimize);
    for _ in 0..20 {
        program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 1.0);
    }
    let text = to_lp(&program).unwrap();
    assert!(text.lines().all(|line| line.len() < 80), "{text}");
    assert!(text.contains("+ 1 x7\n   + 1 x8"), "{text}");
}

#[test]
fn cones_are_refused() {
    let mut program = Program::new(Sense::Maximize);
    program.cones.push(Cone { kind: ConeKind::SecondOrder, entries: Vec::new() });
    for (format, text) in [("LP", to_lp(&program)), ("MPS", to_mps(&program))] {
        let message = text.unwrap_err().to_string();
        assert_eq!(
            message,
            format!(
                "{format} text is for linear programs, and this one has 1 cones: CBF text has these, too"
            )
        );
    }
}

#[test]
fn crossed_bounds_are_refused_where_they_cannot_be_said() {
    let mut program = one_of_everything();
    program.rows[3] = Range { lower: 2.0, upper: -2.0 };
    let message = to_mps(&program).unwrap_err().to_string();
    assert_eq!(message, "the bounds of row 3 contradict each other, which MPS text cannot say");
    assert!(to_lp(&program).is_ok());
}

#[test]
fn names_stay_different_and_short() {
    let long = "x".repeat(400);
    let given = ["a b", "a_b", "A-B", "a_b_2", "", "é", &long, &long, "inf", "E9", "else"];
    let names = unique_names(given.len(), "x", |position| given[position].to_owned());
    assert_eq!(names[..6], ["a_b", "a_b_2", "A_B_3", "a_b_2_2", "x_", "x__2"]);
    assert_eq!(names[8..], ["x_inf", "x_E9", "else"]);
    assert!(names.iter().all(|name| name.len() <= 255) && names[6] != names[7]);
}

#[test]
fn numbers_read_back_as_the_same_bits() {
    for value in [0.1, 1.0 / 3.0, 5e-324, 1.797e308, -2e-7, 123_456_789_012_345_680.0, 0.0] {
        assert_eq!(number(value).parse::<f64>().unwrap().to_bits(), f64::to_bits(value), "{value}");
    }
}

#[test]
fn cbf_text_of_one_of_everything() {
    let mut program = one_of_everything();
    let entry = |constant: f64, terms: &[(usize, f64)]| Affine { constant, terms: terms.to_vec() };
    let entries = vec![entry(0.0, &[(0, 1.0)]), entry(1.0, &[]), entry(0.25, &[(1, -2.0)])];
    program.cones.push(Cone { kind: ConeKind::Exponential, entries: entries.clone() });
    program.cones.push(Cone { kind: ConeKind::SecondOrder, entries });
    let text = to_cbf(&program);
    let (comments, sections) = text.split_once("VER\n").unwrap();
    assert!(comments.starts_with("# 7 columns, 6 rows, 2 cones\n# variable 0: level\n"), "{comments}");
    for comment in ["# constraint 0: time_a", "# constraint 4: capacity_x_lower", "# r_ has no bounds"] {
        assert!(comments.contains(comment), "{comments}");
    }
    assert!(
        comments.contains("# constraint 6: bound of share_a_x\n# constraint 7: bound of share_a_x_lower\n")
    );
    assert!(sections.starts_with("3\n\nOBJSENSE\nMAX\n\nVAR\n7 2\nL+ 1\nF 6\n\nCON\n"), "{text}");
    let cones = "L- 1\nL+ 1\nL= 1\nL- 1\nL+ 1\nL- 2\nL+ 1\nL= 1\nL- 1\nL+ 1\nL- 1\nL+ 1\nEXP 3\nQ 3\n";
    assert!(sections.contains(&format!("CON\n19 14\n{cones}")), "{text}");
    assert!(sections.contains("EXP 3\nQ 3\n\nOBJACOORD\n5\n0 1\n1 2e-7\n2 -1\n4 0.5\n5 -1e20\n"), "{text}");
    assert!(sections.contains("\nOBJBCOORD\n-2.5\n\nACOORD\n"), "{text}");
}
