//! The help: every subcommand's, with an example, in lines as wide as the terminal.

use crate::command::apportion;

#[test]
fn the_help_names_every_world() {
    let help = apportion(&["--help"], "").stdout;
    let line = help.lines().find(|line| line.trim_start().starts_with("world ")).expect("a line");
    for world in ["DeepShare's", "DL2's", "elastic", "dual agents'"] {
        assert!(line.contains(world), "{line}");
    }
}

#[test]
fn every_subcommand_has_help_with_an_example() {
    let help = apportion(&["--help"], "");
    assert_eq!(help.code, Some(0));
    assert!(help.stdout.contains("Exit codes:"), "{}", help.stdout);
    let commands =
        help.stdout.split("Commands:\n").nth(1).expect("commands").split("\n\n").next().unwrap_or_default();
    for line in commands.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        if name == "help" || !line.starts_with("  ") || line.starts_with("    ") {
            continue;
        }
        let shown = apportion(&[name, "--help"], "");
        assert!(
            shown.stdout.contains("Example"),
            "`apportion {name} --help` has no example:\n{}",
            shown.stdout
        );
    }
}

#[test]
fn paragraphs_of_help_fill_their_lines() {
    let help = apportion(&["--help"], "").stdout;
    let commands =
        help.split("Commands:\n").nth(1).expect("commands").split("\n\n").next().unwrap_or_default();
    let names = commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("    "));
    for name in names.filter_map(|line| line.split_whitespace().next()) {
        let help = apportion(&[name, "--help"], "").stdout;
        let lines: Vec<&str> = help.lines().collect();
        for two in lines.windows(2) {
            let is_sentence = |line: &str| line.chars().next().is_some_and(|letter| !letter.is_whitespace());
            if is_sentence(two[0]) && is_sentence(two[1]) && !two[0].ends_with(':') {
                let next = two[1].split(' ').next().unwrap_or_default();
                // Without a terminal help is 100 columns wide.
                let would_fit = two[0].chars().count() + 1 + next.chars().count() <= 100;
                assert!(!would_fit, "`apportion {name} --help` ends a line early:\n{}\n{}", two[0], two[1]);
            }
        }
    }
}
