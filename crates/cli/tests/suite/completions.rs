//! Completions and manual pages have every subcommand, and shells take them.

use std::process::{Command, Stdio};

use crate::data_commands::{path, stdout};

#[test]
fn shells_take_their_completions() {
    for (shell, check) in [("bash", vec!["-n"]), ("zsh", vec!["-n"]), ("fish", vec!["--no-execute"])] {
        let script = stdout(&["completions", shell]);
        for word in ["allocate", "sweep", "throughputs", "trace"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = path(folder.path(), "script");
        std::fs::write(&file, script).expect("written");
        let Ok(output) = Command::new(shell).args(check).arg(&file).stdin(Stdio::null()).output() else {
            eprintln!("{shell} is not here: its script is not tried");
            continue;
        };
        assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn bash_completes_subcommands_and_flags() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = path(folder.path(), "script");
    std::fs::write(&file, stdout(&["completions", "bash"])).expect("written");
    let completed = |words: &str, word: &str| {
        let script = format!(
            "source {file}; COMP_WORDS=({words} '{word}'); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); _apportion apportion '{word}' ''; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash").args(["-c", &script]).output().expect("bash runs");
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(completed("apportion", "swe"), ["sweep"]);
    assert_eq!(completed("apportion trace", "con"), ["convert"]);
    assert_eq!(completed("apportion trace convert", "--job"), ["--job-table"]);
}

#[test]
fn every_subcommand_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let pages = path(folder.path(), "man1");
    stdout(&["man", &pages]);
    for page in ["apportion", "apportion-sweep", "apportion-trace-convert", "apportion-throughputs-fit"] {
        let text = std::fs::read_to_string(format!("{pages}/{page}.1")).expect(page);
        assert!(text.contains(".SH NAME") && text.contains(".SH OPTIONS"), "{page}");
    }
    let convert = std::fs::read_to_string(format!("{pages}/apportion-trace-convert.1")).expect("a page");
    assert!(convert.contains("skip\\-unreadable"), "{convert}");
    let lines = |page: &str| -> Vec<String> {
        let text = std::fs::read_to_string(format!("{pages}/{page}")).expect("a page");
        text.lines().map(str::to_owned).collect()
    };
    // Every page that one refers to is there.
    let names: Vec<String> = std::fs::read_dir(&pages)
        .expect("pages")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    for name in &names {
        for reference in lines(name).iter().filter_map(|line| line.strip_suffix("(1)")) {
            let page = format!("{}.1", reference.replace("\\-", "-"));
            assert!(names.contains(&page), "{name} refers to {page}");
        }
    }
    let between = |lines: &[String], from: &str, to: &str| -> Vec<String> {
        let behind = lines.iter().skip_while(|line| !line.contains(from)).skip(1);
        behind.take_while(|line| !line.contains(to)).cloned().collect()
    };
    // Examples stay in lines, and what is said of each exit code in its column.
    let sweep = lines("apportion-sweep.1");
    let axes = between(&sweep, "An axis is a field", "climbs from");
    assert_eq!(axes[..4], [".PP", ".RS 2", ".nf", "policy: [fifo, isolated]"], "{axes:?}");
    assert_eq!(axes[axes.len() - 3..], [".fi", ".RE", ".PP"], "{axes:?}");
    let codes = between(&lines("apportion.1"), "Exit codes:", "Ctrl");
    assert_eq!(codes[..5], [".PP", ".TP 6", "0", "done", ".TP 6"], "{codes:?}");
}
