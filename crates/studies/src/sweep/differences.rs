//! Differences between the published system and the corrected one, by name: each can be corrected alone.

use crate::sweep::run_error::RunError;
use apportion::simulator::Semantics;
use apportion::spec::run::RunSpec;
use apportion::spec::{Fidelity, nearest};

/// A difference between the published system and its intention.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// Name in `correct:` and `--correct`.
    pub name: &'static str,
    /// Behaviour of the published system.
    pub published: &'static str,
    part: Part,
}

/// The part of the engine in which the published system differs.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// One field of the simulator's semantics: the function copies it from the second to the first.
    Simulator(fn(&mut Semantics, &Semantics)),
    /// Rules of heuristics.
    Rules,
    /// Choice among several optima of programs.
    Optimum,
    /// Estimation of co-located throughputs.
    Profiling,
}

const fn simulator(
    name: &'static str,
    published: &'static str,
    copy: fn(&mut Semantics, &Semantics),
) -> Difference {
    Difference { name, published, part: Part::Simulator(copy) }
}

/// All differences. The behaviour of `corrected` is documented at the fields.
pub const DIFFERENCES: [Difference; 19] = [
    simulator(
        "ties",
        "equals are served in the order in which they came to exist, pairs after their later job",
        |to, from| {
            to.mechanism.ties = from.mechanism.ties;
        },
    ),
    simulator(
        "unallocated",
        "a job that is not in the allocation yet blocks workers that it does not get",
        |to, from| {
            to.mechanism.unallocated = from.mechanism.unallocated;
        },
    ),
    simulator(
        "idle_workers",
        "a job waits beside idle workers until the reset interval is over",
        |to, from| {
            to.mechanism.idle_workers = from.mechanism.idle_workers;
        },
    ),
    simulator(
        "last_reset",
        "a reset at time 0 is taken for none, so the next change counts at once",
        |to, from| {
            to.mechanism.last_reset = from.mechanism.last_reset;
        },
    ),
    simulator("pair_start", "a new pair starts without the credit that a job alone has", |to, from| {
        to.mechanism.pair_start = from.mechanism.pair_start;
    }),
    simulator(
        "fillers",
        "every two jobs, in the allocation or not, may fill workers left free",
        |to, from| {
            to.mechanism.fillers = from.mechanism.fillers;
        },
    ),
    simulator(
        "slow_fillers",
        "a job that fills workers of one type stays there while another that it has a share of, and is faster on, idles",
        |to, from| {
            to.mechanism.slow_fillers = from.mechanism.slow_fillers;
        },
    ),
    simulator(
        "overdue_jobs",
        "a job with a small share is not served where allocations are computed anew often enough",
        |to, from| {
            to.mechanism.overdue_jobs = from.mechanism.overdue_jobs;
        },
    ),
    simulator("gangs", "a gang takes the free workers of lowest id, on however many servers", |to, from| {
        to.mechanism.gangs = from.mechanism.gangs;
    }),
    simulator("last_server", "workers that do not fill a server do not exist", |to, from| {
        to.mechanism.last_server = from.mechanism.last_server;
    }),
    simulator(
        "execution_time",
        "time since the end of the round before counts as run, idle time included",
        |to, from| {
            to.execution_time = from.execution_time;
        },
    ),
    simulator(
        "short_slice",
        "a job with fewer steps left than workers fails, and is dropped after five times",
        |to, from| {
            to.short_slice = from.short_slice;
        },
    ),
    simulator("pair_end", "both members of a pair end their slice when the later one does", |to, from| {
        to.pair_end = from.pair_end;
    }),
    simulator("consolidation", "a job spread over servers runs as fast as on one", |to, from| {
        to.consolidation = from.consolidation;
    }),
    simulator(
        "type_draws",
        "the order of worker types is drawn from CPython's generator, seeded with the seed + 5",
        |to, from| {
            to.type_draws = from.type_draws;
        },
    ),
    simulator(
        "empty_cluster",
        "the policy is asked without any job, which starts the reset interval",
        |to, from| {
            to.empty_cluster = from.empty_cluster;
        },
    ),
    Difference {
        name: "rules",
        published: "rules have their own oddities; an agnostic policy gives time where a job cannot run",
        part: Part::Rules,
    },
    Difference {
        name: "optimum",
        published: "of several optima, the one where an interior-point method ends",
        part: Part::Optimum,
    },
    Difference {
        name: "profiling",
        published: "estimates are made of the wrong columns, and a measurement is taken for the truth",
        part: Part::Profiling,
    },
];

/// Choice of the published differences that a run has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept<'a> {
    spec: &'a RunSpec,
}

impl<'a> Kept<'a> {
    pub(super) fn of(spec: &'a RunSpec) -> Self {
        Self { spec }
    }

    /// Semantics of the simulator for the run.
    pub(super) fn semantics(self) -> Semantics {
        let corrected = Semantics::of(Fidelity::Corrected);
        let mut semantics = Semantics::of(self.spec.semantics);
        for difference in DIFFERENCES {
            if let Part::Simulator(copy) = difference.part
                && self.corrects(&difference)
            {
                copy(&mut semantics, &corrected);
            }
        }
        semantics
    }

    /// Whether heuristics have their published oddities.
    pub(super) fn rules(self) -> bool {
        self.has(|part| matches!(part, Part::Rules))
    }

    /// Whether programs return the interior optimum.
    pub(super) fn optimum(self) -> bool {
        self.has(|part| matches!(part, Part::Optimum))
    }

    /// Whether profiling is as published.
    pub(super) fn profiling(self) -> bool {
        self.has(|part| matches!(part, Part::Profiling))
    }

    fn corrects(self, difference: &Difference) -> bool {
        self.spec.correct.names().any(|name| name == difference.name || name == "all")
    }

    fn has(self, is: impl Fn(Part) -> bool) -> bool {
        let mut of_part = DIFFERENCES.iter().filter(|difference| is(difference.part));
        self.spec.semantics == Fidelity::Published && of_part.any(|difference| !self.corrects(difference))
    }
}

/// Refuses unknown names of differences.
///
/// # Errors
/// If there is no such difference, or the run has none of them.
pub(super) fn check(spec: &RunSpec) -> Result<(), RunError> {
    let known = || DIFFERENCES.iter().map(|difference| difference.name).chain(["all"]);
    for name in spec.correct.names() {
        if !known().any(|other| other == name) {
            let message =
                format!("unknown difference `{name}`, expected one of {}", nearest::name_list(known()));
            return Err(RunError::field("correct", message));
        }
    }
    if spec.semantics == Fidelity::Corrected && !spec.correct.is_empty() {
        return Err(RunError::field("correct", "there is nothing to correct unless `semantics` is `gavel`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(semantics: &str, correct: &str) -> RunSpec {
        serde_json::from_value(serde_json::json!({"semantics": semantics, "correct": correct})).unwrap()
    }

    #[test]
    fn all_corrections_together_are_the_corrected_semantics_and_each_is_one() {
        let published = Semantics::of(Fidelity::Published);
        assert_eq!(Kept::of(&spec("gavel", "none")).semantics(), published);
        let all = spec("gavel", "all");
        let all = Kept::of(&all);
        assert_eq!(all.semantics(), Semantics::of(Fidelity::Corrected));
        assert!(!(all.rules() || all.optimum() || all.profiling()));
        let n_simulator = DIFFERENCES.iter().filter(|one| matches!(one.part, Part::Simulator(_))).count();
        let fields = |semantics: Semantics| match serde_json::to_value(semantics).unwrap() {
            serde_json::Value::Object(mut fields) => {
                let serde_json::Value::Object(mechanism) = fields.remove("mechanism").unwrap() else {
                    unreachable!("the mechanism's options are fields")
                };
                fields.extend(mechanism);
                fields
            }
            other => unreachable!("semantics are fields, not {other}"),
        };
        let before = fields(published);
        let corrected = fields(Semantics::of(Fidelity::Corrected));
        assert_eq!(before.iter().filter(|(name, value)| corrected[*name] != **value).count(), n_simulator);
        for difference in DIFFERENCES.iter().filter(|one| matches!(one.part, Part::Simulator(_))) {
            let after = fields(Kept::of(&spec("gavel", difference.name)).semantics());
            let changed: Vec<&String> =
                before.iter().filter(|(name, value)| after[*name] != **value).map(|(name, _)| name).collect();
            assert_eq!(changed, [difference.name], "the difference is called what its field is");
        }
    }

    #[test]
    fn the_page_about_them_has_every_one() {
        let page = include_str!("../../../../sweeps/semantics.md");
        for Difference { name, published, .. } in DIFFERENCES {
            assert!(
                page.contains(&format!("| `{name}` | {published} | ")),
                "{name} is not on the page as it is here"
            );
        }
    }

    #[test]
    fn what_means_nothing_is_refused() {
        let message = |semantics, correct| check(&spec(semantics, correct)).unwrap_err().to_string();
        assert!(
            message("gavel", "tie")
                .starts_with("correct: unknown difference `tie`, expected one of `ties`, ")
        );
        assert!(message("corrected", "ties").starts_with("correct: there is nothing to correct unless"));
        assert!(check(&spec("gavel", "ties, gangs")).is_ok());
        assert!(check(&spec("corrected", "none")).is_ok());
    }
}
