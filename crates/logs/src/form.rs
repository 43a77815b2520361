//! The forms of logs that are read: names, summaries, and what is known to be doubtful about each.

/// A form of log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// The normalized log, as this crate writes it.
    Log,
    /// Slurm's accounting, as `sacct -P` prints it.
    Sacct,
    /// Microsoft's Philly clusters, 2017.
    Philly,
    /// SenseTime's Helios clusters, 2020.
    Helios,
    /// Alibaba's PAI, 2020.
    Pai,
    /// Shanghai AI Laboratory's Acme clusters, 2023.
    Acme,
    /// Alibaba's cluster of spot and high-priority jobs, 2026.
    SpotGpu,
    /// Alibaba's pods of shared accelerators, 2023.
    Openb,
    /// Workloads of Kueue on Kubernetes.
    Kueue,
    /// Alibaba's inference services of recommendation models, 2025: refused unless asked for.
    Dlrm,
    /// Alibaba's hourly tables, 2026: refused.
    Gpu2026,
    /// MIT's SuperCloud, 2021: refused.
    SuperCloud,
}

/// Description of a form.
#[derive(Clone, Copy, Debug)]
pub struct FormEntry {
    /// The form.
    pub form: Form,
    /// Name on command lines.
    pub name: &'static str,
    /// Summary of the form and of the file that is read.
    pub summary: &'static str,
    /// Known doubts about such logs, with where they are written.
    pub known_doubts: &'static [&'static str],
    /// Reason why the form is refused; none if it is read.
    pub refused: Option<&'static str>,
    /// Columns by which a file is recognized as of this form; none if it cannot be.
    pub signs: &'static [&'static str],
}

/// All forms.
pub const FORMS: [FormEntry; 12] = [
    FormEntry {
        form: Form::Log,
        name: "log",
        summary: "the normalized log, as `trace convert --to log` and `apportion history` write it",
        known_doubts: &[],
        refused: None,
        signs: &["id", "submitted_s", "ran_s", "gpus", "state"],
    },
    FormEntry {
        form: Form::Sacct,
        name: "sacct",
        summary: "Slurm's accounting: what the command that `trace sacct-command` prints prints",
        known_doubts: &[
            "sacct lists accelerators only where the cluster's AccountingStorageTRES names gres/gpu (sacct's manual)",
            "with -S and -E sacct leaves out jobs that never became eligible: held ones, and some that were cancelled while they \
             waited (tried with Slurm 22.05)",
            "without -D sacct shows only the last run of a requeued job, with its submission set to the requeue's \
             (sacct's manual)",
        ],
        refused: None,
        signs: &["Submit", "ElapsedRaw", "AllocTRES"],
    },
    FormEntry {
        form: Form::Philly,
        name: "philly",
        summary: "Microsoft's Philly clusters, 2017: cluster_job_log, JSON",
        known_doubts: &[
            "the list of machines contradicts the log: a job of 8 accelerators runs on a machine listed with 2 \
             (msr-fiddle/philly-traces#8)",
            "an attempt without a start or an end may be an error of logging (the trace's README): how long such a job ran is \
             not known",
            "times have no zone, and clocks were set back on 2017-11-05, inside the log: `--zone America/Los_Angeles` if the \
             cluster's clock was there, which the log does not say",
        ],
        refused: None,
        signs: &[],
    },
    FormEntry {
        form: Form::Helios,
        name: "helios",
        summary: "SenseTime's Helios clusters, 2020: cluster_log.csv",
        known_doubts: &["times have no zone; `--zone Asia/Shanghai` if the clusters' clocks were there"],
        refused: None,
        signs: &["job_id", "vc", "gpu_num", "submit_time"],
    },
    FormEntry {
        form: Form::Pai,
        name: "pai",
        summary: "Alibaba's PAI, 2020: pai_task_table.csv, with `--job-table pai_job_table.csv` for submissions",
        known_doubts: &[
            "without the table of jobs the earliest start stands for the submission, so arrivals hold the waiting on the \
             original cluster",
            "times are s from a start that is not published; hours of the day and weekdays are true in UTC+8 (the trace's README)",
            "worker type MISC is several older cards (the trace's README)",
        ],
        refused: None,
        signs: &["job_name", "task_name", "inst_num", "plan_gpu"],
    },
    FormEntry {
        form: Form::Acme,
        name: "acme",
        summary: "Shanghai AI Laboratory's Acme, 2023: trace_seren.csv, trace_kalos.csv",
        known_doubts: &[
            "rows of Kalos give as duration the end less the submission, not less the start as documented; end less start \
             is taken, and where one of them is missing that duration, which may hold the wait",
            "Kalos' accelerators are at most 70 % busy: jobs may be missing (InternLM/AcmeTrace#1)",
            "the number of jobs differs between the README (880,740) and cluster_summary.csv (1,031,550 and 62,413)",
        ],
        refused: None,
        signs: &["job_id", "gpu_num", "type", "submit_time"],
    },
    FormEntry {
        form: Form::SpotGpu,
        name: "spot-gpu",
        summary: "Alibaba's spot and high-priority jobs, 2026: job_info_df.csv",
        known_doubts: &[
            "many jobs are submitted at time 0: they were there when the log began",
            "each job names one worker type, that it ran on: which others would have done is not recorded",
            "neither starts nor ends: waiting is not known",
            "accelerators are gpu_request times worker_num, which the README does not say; by it demand for A10 is 133 % of \
             capacity, and the paper says 84.59 % (alibaba/clusterdata#260)",
        ],
        refused: None,
        signs: &["job_name", "gpu_model", "gpu_request", "worker_num"],
    },
    FormEntry {
        form: Form::Openb,
        name: "openb",
        summary: "Alibaba's pods of shared accelerators, 2023: openb_pod_list_default.csv",
        known_doubts: &[
            "most pods are services that run until they are removed, not trainings; nearly all in phase Running have a time of \
             deletion, which is taken as their end (alibaba/clusterdata#218 asks why)",
            "files other than openb_pod_list_default.csv are drawn from it, not recorded (the trace's README)",
        ],
        refused: None,
        signs: &["name", "num_gpu", "gpu_milli", "gpu_spec"],
    },
    FormEntry {
        form: Form::Kueue,
        name: "kueue",
        summary: "Kueue on Kubernetes: what `kubectl get workloads -A -o json` prints",
        known_doubts: &[
            "a workload keeps only the last time of each condition: of one that was evicted, the first start is lost",
            "workloads are deleted with their jobs: a list is of those that are still there, the long-lived more than others",
        ],
        refused: None,
        signs: &[],
    },
    FormEntry {
        form: Form::Dlrm,
        name: "dlrm",
        summary: "Alibaba's inference services, 2025: disaggregated_DLRM_trace.csv; only with --force",
        known_doubts: &["instances of inference services, not trainings: they run until they are removed"],
        refused: Some("its rows are instances of inference services, not jobs that train and end"),
        signs: &["instance_sn", "role", "app_name"],
    },
    FormEntry {
        form: Form::Gpu2026,
        name: "gpu-2026",
        summary: "Alibaba's hourly tables, 2026: refused",
        known_doubts: &[],
        refused: Some(
            "it has no time of submission (alibaba/clusterdata#257), its summary of jobs begins about day 109 (#259), and \
             states are unknown for 100 days (#258)",
        ),
        signs: &["pod_id", "workload_id", "server_id"],
    },
    FormEntry {
        form: Form::SuperCloud,
        name: "supercloud",
        summary: "MIT's SuperCloud, 2021: refused",
        known_doubts: &[],
        refused: Some(
            "the meaning of its columns is not published where this reader could be checked against it",
        ),
        signs: &["id_job", "time_submit", "tres_alloc"],
    },
];

/// The columns of PAI's table of tasks.
pub(crate) const PAI_TASKS: &[&str] = &[
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
];

/// The columns of PAI's table of jobs.
pub(crate) const PAI_JOBS: &[&str] = &["job_name", "inst_id", "user", "status", "start_time", "end_time"];

/// The files of PAI's tables, with their columns.
const PAI_TABLES: [(&str, &[&str]); 7] = [
    ("pai_task_table.csv", PAI_TASKS),
    ("pai_job_table.csv", PAI_JOBS),
    (
        "pai_instance_table.csv",
        &[
            "job_name",
            "task_name",
            "inst_name",
            "worker_name",
            "inst_id",
            "status",
            "start_time",
            "end_time",
            "machine",
        ],
    ),
    (
        "pai_sensor_table.csv",
        &[
            "job_name",
            "task_name",
            "worker_name",
            "inst_id",
            "machine",
            "gpu_name",
            "cpu_usage",
            "gpu_wrk_util",
            "avg_mem",
            "max_mem",
            "avg_gpu_wrk_mem",
            "max_gpu_wrk_mem",
            "read",
            "write",
            "read_count",
            "write_count",
        ],
    ),
    ("pai_group_tag_table.csv", &["inst_id", "user", "gpu_type_spec", "group", "workload"]),
    ("pai_machine_spec.csv", &["machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"]),
    (
        "pai_machine_metric.csv",
        &[
            "worker_name",
            "machine",
            "start_time",
            "end_time",
            "machine_cpu_iowait",
            "machine_cpu_kernel",
            "machine_cpu_usr",
            "machine_gpu",
            "machine_load_1",
            "machine_net_receive",
            "machine_num_worker",
            "machine_cpu",
        ],
    ),
];

/// The PAI table with the columns of a header, and the one with the columns `own`, where the header has not those. A header
/// may lack columns of its table, or have others, too.
pub(crate) fn other_pai_table(header: &[&str], own: &[&str]) -> Option<(&'static str, &'static str)> {
    let has = |columns: &[&str]| {
        header.iter().all(|name| columns.contains(name)) || columns.iter().all(|name| header.contains(name))
    };
    let (expected, _) = PAI_TABLES.iter().find(|(_, columns)| *columns == own && !has(own))?;
    let (other, _) = PAI_TABLES.iter().find(|(_, columns)| has(columns))?;
    Some((*other, *expected))
}

/// The PAI table with this number of columns.
pub(crate) fn pai_table_of(n_columns: usize) -> Option<&'static str> {
    PAI_TABLES.iter().find(|(_, columns)| columns.len() == n_columns).map(|(name, _)| *name)
}

impl Form {
    /// Description of the form.
    ///
    /// # Panics
    /// Never: every form has an entry.
    pub fn entry(self) -> &'static FormEntry {
        FORMS.iter().find(|entry| entry.form == self).expect("every form has an entry")
    }

    /// Name of the form on command lines.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// The form with a name; none if there is none.
    pub fn of(name: &str) -> Option<Self> {
        FORMS.iter().find(|entry| entry.name == name).map(|entry| entry.form)
    }

    /// The form that a first line looks like; none if it looks like no form, or like several.
    pub fn like(first_line: &str) -> Option<Self> {
        let separator = if first_line.contains('|') { '|' } else { ',' };
        let columns: Vec<&str> =
            first_line.split(separator).map(|name| name.trim().trim_matches('"')).collect();
        let is_like = |entry: &&FormEntry| {
            !entry.signs.is_empty() && entry.signs.iter().all(|sign| columns.contains(sign))
        };
        let mut like = FORMS.iter().filter(is_like).map(|entry| entry.form);
        like.next().filter(|_| like.next().is_none())
    }
}
