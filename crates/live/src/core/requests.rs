//! Requests to the scheduler, and the answers to them.

use std::collections::BTreeMap;

use apportion::Job;
use apportion::simulator::Event;
use apportion::spec::snapshot::{NUMBER_MAX, NUMBER_MIN};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::answers::{JobView, NextView, ServerView};
use super::ends::BY_ITS_USER;
use super::job::{Ending, LiveJob, Reason};
use super::record::{How, JobRecord};
use super::situation::SituationView;
use super::why::Why;
use super::{Core, JobNumber};
use crate::protocol::Program;

/// A job to be taken in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The name that its user gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The user that submitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// A key that no other submission has: sent again with the same one, it is the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The job as the policy is to know it. Its arrival is the instant at which it is taken in.
    pub job: Job,
    /// The program that it runs.
    pub program: Program,
}

/// A request to the scheduler.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Take in a job.
    Submit(Box<Submission>),
    /// Take in a job that its user has submitted elsewhere, to the system that starts its program.
    TakeIn(Box<Submission>),
    /// Stop a job, and never start it again.
    Cancel(JobNumber),
    /// Stop a job for this reason, which is not its user's request to this scheduler, and never start it again.
    Withdraw(JobNumber, String),
    /// Note a remark for the operator, of a job if it is about one.
    Remark(Option<JobNumber>, String),
    /// Give a server no new job, for this reason.
    Drain(String, String),
    /// Give a server jobs again.
    Resume(String),
    /// Remove a server that is gone for good; whether its machine is off, so that no lease there is waited for.
    Remove(String, bool),
    /// All jobs that are active, and the last ones that ended.
    Jobs,
    /// Why a job waits, or runs as it does.
    Why(JobNumber),
    /// The present round and the next one.
    Next,
    /// All servers that have joined.
    Servers,
    /// The state from which a simulation can go on.
    Situation,
}

impl Request {
    /// Whether it is answered without a change of state.
    pub fn is_question(&self) -> bool {
        matches!(self, Self::Jobs | Self::Why(_) | Self::Next | Self::Servers | Self::Situation)
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// The job has been taken in, under this number.
    Submitted {
        /// The number.
        job: JobNumber,
        /// Warnings about probable mistakes in the submission, in words.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// The request is carried out, or will be in any case.
    Done {
        /// The result, in words.
        text: String,
    },
    /// Jobs.
    Jobs(Vec<JobView>),
    /// A job, and why it waits or runs as it does.
    Why(Box<Why>),
    /// The present round and the next one.
    Next(Box<NextView>),
    /// Servers.
    Servers(Vec<ServerView>),
    /// The state from which a simulation can go on.
    Situation(Box<SituationView>),
}

/// Why a request is not granted.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Refusal {
    /// The request is wrong.
    #[error("{text}")]
    Invalid {
        /// The fault, and the remedy.
        text: String,
    },
    /// There is no such job or server.
    #[error("{text}")]
    Unknown {
        /// The jobs or servers that there are.
        text: String,
    },
}

fn invalid(text: impl Into<String>) -> Refusal {
    Refusal::Invalid { text: text.into() }
}

/// The most bytes of a name, a type, or another text of a submission.
const WORD_MAX: usize = 256;

/// The most bytes of the reason for which a server is drained.
const REASON_MAX: usize = 1000;

/// Variables that each start of a job is given, beside those that begin with `APPORTION_`.
const GIVEN: [&str; 6] =
    ["RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES"];

/// Refuses words that would break tables and logs.
fn check_words(submission: &Submission) -> Result<(), Refusal> {
    let Submission { name, user, key, job, .. } = submission;
    if job.job_type.trim().is_empty() {
        return Err(invalid("the job's type is empty: name one of the throughput table, or one of your own"));
    }
    let words = [
        ("name", name.as_ref()),
        ("user", user.as_ref()),
        ("key", key.as_ref()),
        ("type", Some(&job.job_type)),
        ("owner", job.entity.as_ref()),
    ];
    words.into_iter().filter_map(|(what, word)| word.map(|word| (what, word))).try_for_each(|(what, word)| {
        if word.trim().is_empty() {
            return Err(invalid(format!("the job's {what} is empty: say one, or leave it out")));
        }
        check_word(&format!("the job's {what}"), word, WORD_MAX)
    })
}

/// Refuses a word that would break tables and logs.
fn check_word(what: &str, word: &str, most: usize) -> Result<(), Refusal> {
    if word.contains(char::is_control) {
        return Err(invalid(format!("{what} has a line break or another control character")));
    }
    if word.len() > most {
        return Err(invalid(format!("{what} has {} bytes, expected at most {most}", word.len())));
    }
    Ok(())
}

/// Refuses variables that would be overridden.
fn check_environment(program: &Program) -> Result<(), Refusal> {
    let is_given = |name: &&String| GIVEN.contains(&name.as_str()) || name.starts_with("APPORTION_");
    program.environment.keys().find(is_given).map_or(Ok(()), |name| {
        Err(invalid(format!(
            "the variable {name} is given to each start by the scheduler: call yours otherwise"
        )))
    })
}

/// Refuses a program that no process can become.
fn check_program(program: &Program) -> Result<(), Refusal> {
    if program.command.first().is_none_or(String::is_empty) {
        return Err(invalid("the job has no command: name a program, and its arguments after it"));
    }
    let has_nul = |text: &String| text.contains('\0');
    if program.command.iter().chain(&program.directory).any(has_nul)
        || program
            .environment
            .iter()
            .any(|(name, value)| name.is_empty() || name.contains('=') || has_nul(name) || has_nul(value))
    {
        return Err(invalid(
            "the command, the folder or a variable has a character that no process can have",
        ));
    }
    Ok(())
}

/// Refuses numbers that no snapshot has: with them no policy could decide.
fn check_numbers(job: &Job) -> Result<(), Refusal> {
    if job.scale_factor == 0 {
        return Err(invalid(
            "the job's scale factor is 0, expected the number of workers that it needs, at least 1",
        ));
    }
    if job.total_steps.get() < 1.0 {
        return Err(invalid("the job has no steps: say how many it is to do, at least 1"));
    }
    let check = |what: String, value: f64, least: f64| {
        if (least..=NUMBER_MAX).contains(&value) {
            return Ok(());
        }
        let least = if least < 1.0 && least > 0.0 { format!("{least:e}") } else { least.to_string() };
        Err(invalid(format!("{what} is {value:?}, expected a number from {least} to {NUMBER_MAX:e}")))
    };
    check("the job's number of steps".to_owned(), job.total_steps.get(), 1.0)?;
    check("the job's weight".to_owned(), job.weight, NUMBER_MIN)?;
    if let Some(slo) = job.slo {
        check("the time by which the job ought to be done".to_owned(), slo.get(), NUMBER_MIN)?;
    }
    for (name, speed) in job.throughput.iter().flatten() {
        check(format!("the job's speed on {name}"), speed.get(), 0.0)?;
    }
    Ok(())
}

impl Core {
    pub(super) fn answer(&mut self, request: Request) -> Result<Answer, Refusal> {
        match request {
            Request::Submit(_) if self.settings.front_door => Err(invalid(
                "this scheduler takes the jobs that its users submit to Slurm: `sbatch --hold`, with a comment that begins with \
                 `apportion:`",
            )),
            Request::Submit(submission) | Request::TakeIn(submission) => {
                self.submit(*submission).map(|(job, warnings)| Answer::Submitted { job, warnings })
            }
            Request::Cancel(job) => self.cancel(job, None),
            Request::Withdraw(job, why) => self.cancel(job, Some(why)),
            Request::Remark(job, text) => {
                self.warn(text, job, None);
                Ok(Answer::Done { text: "noted".to_owned() })
            }
            Request::Drain(server, reason) => self.drain(&server, reason),
            Request::Resume(server) => self.resume(&server),
            Request::Remove(server, is_off) => self.remove(&server, is_off),
            Request::Jobs => Ok(Answer::Jobs(self.job_views())),
            Request::Why(job) => self.why(job).map(|why| Answer::Why(Box::new(why))),
            Request::Next => Ok(Answer::Next(Box::new(self.next_view()))),
            Request::Servers => Ok(Answer::Servers(self.server_views())),
            Request::Situation => self.situation().map(|view| Answer::Situation(Box::new(view))),
        }
    }

    /// Takes a job in. Answers its number, and warnings.
    fn submit(&mut self, submission: Submission) -> Result<(JobNumber, Vec<String>), Refusal> {
        check_words(&submission)?;
        let Submission { name, user, key, mut job, program } = submission;
        let warnings = self.check_types(&job);
        if let Some(known) = key.as_ref().and_then(|key| self.with_key(key)) {
            let is_same = known.program == program
                && (&known.job.job_type, known.job.scale_factor, known.job.total_steps)
                    == (&job.job_type, job.scale_factor, job.total_steps)
                && known.job.sizes == job.sizes;
            return if is_same {
                Ok((known.number, warnings.unwrap_or_default()))
            } else {
                Err(invalid(format!(
                    "the key is that of job {}, which is another one: take another key",
                    known.number
                )))
            };
        }
        check_program(&program)?;
        check_environment(&program)?;
        check_numbers(&job)?;
        let warnings = warnings?;
        job.arrival = self.now;
        let number = JobNumber(self.next_job);
        let id = self.scheduler.submit_as(number.to_string(), job.clone()).map_err(|error| {
            invalid(format!("the job cannot be taken in: {error}{}", self.remedy(&error, &job)))
        })?;
        self.next_job += 1;
        self.numbers.insert(id, number);
        let now = self.now;
        self.event(now, &Event::Arrival { now, id: number.in_log(), measured: true, job: &job });
        let record = JobRecord {
            number,
            submission: Some(self.drawn),
            name,
            user,
            key,
            job,
            program,
            incarnation: 0,
            started: None,
            run: None,
            checkpointed: 0.0,
            received: BTreeMap::new(),
            cost: None,
            failures: 0,
            not_before: None,
            last_end: None,
            arrived: true,
            cancelled: false,
            withdrawn: None,
            done: None,
            unheard: Vec::new(),
            outcome: None,
        };
        self.jobs.insert(number, LiveJob { record, id, placement: None, run: None, was_unexecutable: false });
        self.is_vacant = true;
        self.record_job(number);
        Ok((number, warnings))
    }

    fn with_key(&self, key: &str) -> Option<&JobRecord> {
        let active = self.jobs.values().map(|job| &job.record);
        active.chain(self.unfit_records()).chain(&self.over).find(|record| record.key.as_deref() == Some(key))
    }

    fn cancel(&mut self, number: JobNumber, why: Option<String>) -> Result<Answer, Refusal> {
        let now = self.now;
        if self.cancel_unfit(number) {
            return Ok(Answer::Done { text: format!("job {number} is cancelled") });
        }
        self.count(number);
        let Some(job) = self.jobs.get_mut(&number) else {
            return match self.over.iter().find(|record| record.number == number) {
                Some(record) => {
                    let how = record.outcome.as_ref().map_or("over", |outcome| outcome.reason.as_str());
                    Err(invalid(format!("job {number} is over already: {how}")))
                }
                None => Err(self.unknown_job(number)),
            };
        };
        match &mut job.run {
            None => {
                let why = why.unwrap_or_else(|| BY_ITS_USER.to_owned());
                self.end_job(number, How::Cancelled, why);
                Ok(Answer::Done { text: format!("job {number} is cancelled") })
            }
            Some(run) => {
                // A job that is stopped for other reasons, too, stops for this one.
                run.ending = Some(Ending { reason: Reason::Cancelled, since: now });
                job.placement = None;
                job.record.cancelled = true;
                job.record.withdrawn = why;
                self.record_job(number);
                self.touched.insert(number);
                let text = format!("job {number} is being stopped; it will not be started again");
                Ok(Answer::Done { text })
            }
        }
    }

    pub(super) fn unknown_job(&self, number: JobNumber) -> Refusal {
        let text = match self.next_job.checked_sub(1) {
            None => format!("there is no job {number}: none has been submitted"),
            Some(last) if number.0 > last => format!("there is no job {number}: the last is {last}"),
            Some(_) => format!(
                "job {number} was over long ago: only the last 1,000 jobs that are over are kept at hand"
            ),
        };
        Refusal::Unknown { text }
    }

    pub(super) fn unknown_server(&self, name: &str) -> Refusal {
        let known: Vec<_> = self.servers.keys().map(String::as_str).collect();
        let text = if known.is_empty() {
            format!("there is no server `{name}`: none has joined")
        } else {
            format!("there is no server `{name}`, expected one of {}", known.join(", "))
        };
        Refusal::Unknown { text }
    }

    fn drain(&mut self, name: &str, reason: String) -> Result<Answer, Refusal> {
        check_word("the reason", &reason, REASON_MAX)?;
        let refusal = self.unknown_server(name);
        self.set_drained(name, Some(reason)).ok_or(refusal)?;
        let text = format!("{name} gets no new job; what runs there stops when its lease is over");
        Ok(Answer::Done { text })
    }

    fn resume(&mut self, name: &str) -> Result<Answer, Refusal> {
        let refusal = self.unknown_server(name);
        let is_drained = self.servers.get(name).map(|server| server.record.drained.is_some());
        if is_drained == Some(false) {
            return Ok(Answer::Done { text: format!("{name} was not drained: nothing is changed") });
        }
        self.set_drained(name, None).ok_or(refusal)?;
        Ok(Answer::Done { text: format!("{name} gets jobs again") })
    }

    /// Marks a server as drained, or not; none if there is no such server.
    pub(super) fn set_drained(&mut self, name: &str, reason: Option<String>) -> Option<()> {
        let server = self.servers.get_mut(name)?;
        server.record.drained.clone_from(&reason);
        server.failed.clear();
        server.is_suspected = false;
        let record = server.record.clone();
        self.step.records.push(super::Record::Server(record));
        match reason {
            Some(reason) => self.warn(format!("{name} is drained: {reason}"), None, Some(name.to_owned())),
            None => self.note(format!("{name} is given jobs again"), None, Some(name.to_owned())),
        }
        Some(())
    }
}
