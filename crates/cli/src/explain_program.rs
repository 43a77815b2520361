//! The program of a decision as text for other solvers, with comments by which their optimum is the policy's.

use clap::ValueEnum;

use crate::decide::Question;
use crate::exit::Failure;
use apportion::index::{Id, JobIndex};
use apportion::policy::{Explanation, SolvedProgram};
use apportion::program::text::{TextError, to_cbf, to_lp, to_mps};
use apportion_studies::benchmark::programs::{Value, stage};
use apportion_studies::report::plain::plain;

/// The length in characters after which a comment is continued on the next line: readers limit their lines.
const LINE: usize = 100;

/// The format of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProgramForm {
    /// CPLEX LP text
    Lp,
    /// Free MPS text
    Mps,
    /// CBF text, which has cones, too
    Cbf,
}

/// The program that explains a decision. Comments before it state its purpose, how the policy's objective follows from its optimum,
/// and the jobs of its classes.
///
/// # Errors
/// If there is no program, or the format cannot express it.
pub(super) fn text(
    question: &Question,
    explanation: &Explanation,
    form: ProgramForm,
) -> Result<String, Failure> {
    let no_program = || {
        let message = if question.problem.n_jobs() == 0 {
            "there are no jobs, so no program was solved"
        } else {
            "this policy writes no program that could be printed: it is a rule, or of another kind than `program`"
        };
        Failure::usage(message.to_owned(), None)
    };
    let solved = explanation.program.as_ref().ok_or_else(no_program)?;
    let (written, mark) = match form {
        ProgramForm::Lp => (to_lp(&solved.program), "\\"),
        ProgramForm::Mps => (to_mps(&solved.program), "*"),
        ProgramForm::Cbf => (Ok(to_cbf(&solved.program)), "#"),
    };
    let written = written.map_err(|error| match error {
        TextError::Cones { .. } => {
            Failure::usage(error.to_string(), Some("`--program cbf` writes it".to_owned()))
        }
        _ => Failure::usage(error.to_string(), None),
    })?;
    let comments = comments(question, explanation, solved);
    Ok(comments.iter().map(|line| format!("{mark} {}\n", ascii(line))).chain([written]).collect())
}

/// A line in which letters beyond ASCII, which the formats do not have, are spelt out: `\u{f6}`.
fn ascii(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for letter in line.chars() {
        if letter.is_ascii() {
            text.push(letter);
        } else {
            text.extend(letter.escape_unicode());
        }
    }
    text
}

fn comments(question: &Question, explanation: &Explanation, solved: &SolvedProgram) -> Vec<String> {
    let (_, meaning) = stage(solved.purpose);
    let mut lines = vec![
        format!("policy {}", plain(question.policy.name())),
        format!("the program {meaning}"),
        Value::of(solved)
            .as_ref()
            .map_or_else(|| "objective does not follow from optimum".to_owned(), in_words),
    ];
    lines.extend(solved.optimum.map(|optimum| format!("found here: optimum = {optimum:?}")));
    lines.extend(explanation.objective().map(|of| format!("found here: objective = {:?}", of.value)));
    lines.push("columns time_...: shares of time, added up over the jobs of a class".to_owned());
    for class in 0..solved.classes.len() {
        let begin = || format!("job_class_{class}:");
        let mut line = begin();
        for job in solved.classes.members(class) {
            let label = question.label(JobIndex::from_index(*job as usize)).to_string();
            let label = plain(&label);
            if line.len() > begin().len() && line.len() + label.len() > LINE {
                lines.push(std::mem::replace(&mut line, begin()));
            }
            line = format!("{line} {label}");
        }
        lines.push(line);
    }
    lines
}

/// The map from the program's optimum to the objective, with its numbers, in words.
fn in_words(value: &Value) -> String {
    let number = |name: &str, value: Option<f64>| value.map(|value| format!(", {name} = {value:?}"));
    let (scale, level) = (number("scale", value.scale), number("level", value.level));
    let formula = value.formula.replace('·', "*");
    format!("{formula}{}{}", scale.unwrap_or_default(), level.unwrap_or_default())
}
