//! Workloads of Kueue on Kubernetes: `kubectl get workloads -A -o json`.

mod times;

use std::collections::BTreeMap;

use apportion::spec::SpecError;
use apportion::spec::trace::field::Field;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use self::times::{Condition, Course, SchedulingStats};
use super::philly::{NAME, name};
use super::resources::{self, Counts, WHOLE};
use crate::input::Input;
use crate::json::{Entry, List};
use crate::reading::{Fault, Reading};
use crate::row::{Row, TOO_MANY_WORKERS};
use crate::table::Value;
use crate::tally::Doubt;

const LIST: List = List {
    under: Some("items"),
    expected: "a JSON document {items: [workloads]}, as `kubectl get workloads -A -o json` prints",
};

/// The document without its workloads.
#[derive(Deserialize)]
struct Whole {
    #[serde(rename = "items")]
    _items: IgnoredAny,
    metadata: Option<WholeMetadata>,
}

#[derive(Deserialize)]
struct WholeMetadata {
    /// Token with which the list continues, if it is a part of a longer one.
    #[serde(rename = "continue")]
    rest: Option<String>,
}

/// The kind of an entry.
#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Workload<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    spec: Spec<'a>,
    #[serde(default, borrow)]
    status: Status<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    name: &'a RawValue,
    #[serde(borrow)]
    namespace: Option<&'a RawValue>,
    #[serde(borrow)]
    creation_timestamp: Option<&'a RawValue>,
    #[serde(default)]
    owner_references: Vec<Named>,
}

/// An object whose name is read.
#[derive(Deserialize)]
struct Named {
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow)]
    queue_name: Option<&'a RawValue>,
    #[serde(borrow)]
    priority_class_name: Option<&'a RawValue>,
    priority_class_ref: Option<Named>,
    active: Option<bool>,
    #[serde(default, borrow)]
    pod_sets: Vec<PodSet<'a>>,
}

#[derive(Deserialize)]
struct PodSet<'a> {
    name: Option<String>,
    count: Option<u32>,
    #[serde(borrow)]
    template: Template<'a>,
}

#[derive(Deserialize)]
struct Template<'a> {
    #[serde(borrow)]
    spec: PodSpec<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec<'a> {
    #[serde(default, borrow)]
    containers: Vec<Container<'a>>,
    #[serde(default, borrow)]
    init_containers: Vec<Container<'a>>,
    #[serde(borrow)]
    resource_claims: Option<&'a RawValue>,
}

impl<'a> PodSpec<'a> {
    fn all_containers(&self) -> impl Iterator<Item = &Container<'a>> {
        self.containers.iter().chain(&self.init_containers)
    }
}

#[derive(Deserialize)]
struct Container<'a> {
    #[serde(default, borrow)]
    resources: Resources<'a>,
}

#[derive(Default, Deserialize)]
struct Resources<'a> {
    #[serde(default, borrow)]
    requests: BTreeMap<String, &'a RawValue>,
    #[serde(default, borrow)]
    limits: BTreeMap<String, &'a RawValue>,
    #[serde(borrow)]
    claims: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status<'a> {
    #[serde(default, borrow)]
    conditions: Vec<Condition<'a>>,
    #[serde(borrow)]
    admission: Option<Admission<'a>>,
    scheduling_stats: Option<SchedulingStats>,
    /// Running time of earlier runs, s.
    #[serde(rename = "accumulatedPastExecutionTimeSeconds")]
    past_s: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Admission<'a> {
    #[serde(default, borrow)]
    pod_set_assignments: Vec<Assignment<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Assignment<'a> {
    name: Option<String>,
    count: Option<u32>,
    #[serde(default)]
    flavors: BTreeMap<String, String>,
    #[serde(default, borrow)]
    resource_usage: BTreeMap<String, &'a RawValue>,
}

pub(crate) fn read(input: &mut Input, log: &mut Reading) -> Result<(), SpecError> {
    let Whole { metadata, .. } = LIST.read(input, |entry| {
        log.n_read += 1;
        match row(&entry, log) {
            Ok(Some(row)) => log.take(row),
            Ok(None) => {}
            Err(fault) => {
                let text = if log.is_full() { "".into() } else { entry.line_text(fault.place) };
                log.complain(fault, &text);
            }
        }
    })?;
    if metadata.and_then(|metadata| metadata.rest).is_some_and(|rest| !rest.is_empty()) {
        log.doubt(Doubt::PartOfList, 0, None);
    }
    Ok(())
}

fn row(entry: &Entry<'_>, log: &mut Reading) -> Result<Option<Row>, Fault> {
    let Kind { kind } = entry.parse()?;
    if kind.as_deref() != Some("Workload") {
        let shown = Field::shortened(&kind.unwrap_or_default());
        return Err(Fault {
            place: entry.place(),
            message: format!("an entry of kind `{shown}`, expected a Workload"),
        });
    }
    let Workload { metadata, spec, status } = entry.parse()?;
    let own = entry.value(Some(metadata.name), ("name", NAME), name)?;
    let own = own.ok_or_else(|| Fault {
        place: entry.place_of(metadata.name),
        message: "a workload without a name".to_owned(),
    })?;
    let namespace = entry.value(metadata.namespace, ("namespace", NAME), name)?;
    let id = namespace.as_ref().map_or_else(|| own.clone(), |namespace| format!("{namespace}/{own}"));
    let mut row = Row::new(id.into(), entry.line());
    let plain = |text: Option<String>| text.filter(|text| !text.trim().is_empty() && name(text).is_some());
    let owner = metadata.owner_references.into_iter().find_map(|owner| plain(owner.name));
    row.name = Some(log.share(&owner.unwrap_or(own)));
    row.group = entry.value(spec.queue_name, ("queueName", NAME), name)?.map(|name| log.share(&name));
    let class = entry.value(spec.priority_class_name, ("priorityClassName", NAME), name)?;
    let class = class.or_else(|| spec.priority_class_ref.and_then(|class| plain(class.name)));
    row.class = class.map(|name| log.share(&name));
    row.submitted_s = time(entry, metadata.creation_timestamp, log)?;
    let admission = status.admission.as_ref();
    check_resources(entry, &spec.pod_sets, admission, log)?;
    row.n_workers = Some(match admission.filter(|admission| admission.says_usage()) {
        Some(admission) => used(entry, admission)?,
        None => asked(entry, &spec.pod_sets, admission)?,
    });
    if let Some(kind) = slice_of(&spec.pod_sets) {
        row.worker_type = Some(log.share(kind));
    } else if let Some(admission) = admission {
        take_flavors(&mut row, admission, log);
    }
    let course = Course {
        conditions: &status.conditions,
        evictions: status.scheduling_stats.as_ref().map_or(&[], |stats| &stats.evictions),
        past_s: status.past_s.filter(|past| *past > 0.0),
        is_active: spec.active != Some(false),
    };
    Ok(course.take_into(&mut row, entry, log)?.then_some(row))
}

impl Admission<'_> {
    fn says_usage(&self) -> bool {
        let mut used = self.pod_set_assignments.iter().flat_map(|set| set.resource_usage.keys());
        used.any(|resource| counts_workers(resource))
    }
}

/// Whether a resource counts accelerators.
fn counts_workers(resource: &str) -> bool {
    resources::counts(resource) == Counts::Workers
}

/// Refuses a workload that asks for accelerators in units that cannot be converted to whole ones, and notes the names of
/// unknown resources.
fn check_resources(
    entry: &Entry<'_>,
    pod_sets: &[PodSet<'_>],
    admission: Option<&Admission<'_>>,
    log: &mut Reading,
) -> Result<(), Fault> {
    let containers = || pod_sets.iter().flat_map(|set| set.template.spec.all_containers());
    let of_containers = containers()
        .flat_map(|container| container.resources.requests.iter().chain(&container.resources.limits));
    let assignments = admission.into_iter().flat_map(|admission| &admission.pod_set_assignments);
    let used = assignments.flat_map(|assignment| &assignment.resource_usage);
    for (resource, raw) in of_containers.chain(used) {
        let is_none = raw.get().trim_matches('"') == "0";
        match resources::counts(resource) {
            Counts::Unclear if !is_none => {
                let shown = Field::shortened(resource);
                let message =
                    format!("`{shown}`: how many whole accelerators that is the workload does not say");
                return Err(Fault { place: entry.place_of(raw), message });
            }
            Counts::Unknown => log.note_unused(&format!("resource {resource}")),
            _ => {}
        }
    }
    let of_pods = pod_sets.iter().filter_map(|set| set.template.spec.resource_claims);
    let mut claims = of_pods.chain(containers().filter_map(|container| container.resources.claims));
    let is_some =
        |raw: &&RawValue| !matches!(raw.get().replace(char::is_whitespace, "").as_str(), "[]" | "null");
    match claims.find(is_some) {
        // Once a workload is admitted, Kueue counts the devices that its claims are for.
        Some(raw) if !admission.is_some_and(Admission::says_usage) => {
            let message = "devices by claims: which and how many the workload does not say".to_owned();
            Err(Fault { place: entry.place_of(raw), message })
        }
        _ => Ok(()),
    }
}

/// Number of accelerators that the admitted workload uses.
fn used(entry: &Entry<'_>, admission: &Admission<'_>) -> Result<u32, Fault> {
    let mut total = Some(0);
    for assignment in &admission.pod_set_assignments {
        for (_, raw) in assignment.resource_usage.iter().filter(|(resource, _)| counts_workers(resource)) {
            total = plus(total, Some(quantity(entry, raw)?));
        }
    }
    total.ok_or_else(|| too_many(entry))
}

/// Number of accelerators that the workload asks for: per pod the larger of its containers' sum and the most that a
/// container running before them asks for. Where fewer pods were admitted, only those count.
fn asked(
    entry: &Entry<'_>,
    pod_sets: &[PodSet<'_>],
    admission: Option<&Admission<'_>>,
) -> Result<u32, Fault> {
    let assignments = admission.into_iter().flat_map(|admission| &admission.pod_set_assignments);
    let mut admitted: BTreeMap<Option<&str>, u32> = BTreeMap::new();
    for assignment in assignments {
        if let Some(n_pods) = assignment.count {
            admitted.entry(assignment.name.as_deref()).or_insert(n_pods);
        }
    }
    let mut total = Some(0);
    for set in pod_sets {
        let mut at_once = Some(0);
        for container in &set.template.spec.containers {
            at_once = plus(at_once, of_container(entry, container)?);
        }
        for container in &set.template.spec.init_containers {
            let alone = of_container(entry, container)?;
            at_once = at_once.zip(alone).map(|(one, other)| one.max(other));
        }
        let n_pods = admitted.get(&set.name.as_deref()).copied().or(set.count).unwrap_or(1);
        total = plus(total, at_once.and_then(|at_once| at_once.checked_mul(n_pods)));
    }
    total.ok_or_else(|| too_many(entry))
}

/// Number of accelerators of one container; for extended resources a limit is a request.
fn of_container(entry: &Entry<'_>, container: &Container<'_>) -> Result<Option<u32>, Fault> {
    let Resources { requests, limits, .. } = &container.resources;
    let all = limits.iter().chain(requests).filter(|(resource, _)| counts_workers(resource));
    let each: BTreeMap<&String, &RawValue> = all.map(|(resource, raw)| (resource, *raw)).collect();
    each.values().try_fold(Some(0), |sum, raw| Ok(plus(sum, Some(quantity(entry, raw)?))))
}

/// Sum of accelerators; none if there are more than can be counted.
fn plus(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    one?.checked_add(other?)
}

fn too_many(entry: &Entry<'_>) -> Fault {
    Fault { place: entry.place(), message: format!("the workload has {TOO_MANY_WORKERS}") }
}

/// Slice of an accelerator that all containers with accelerators ask for: `mig-1g.5gb`.
fn slice_of<'a>(pod_sets: &'a [PodSet<'_>]) -> Option<&'a str> {
    let containers = pod_sets.iter().flat_map(|set| &set.template.spec.containers);
    let resources = containers
        .flat_map(|container| container.resources.requests.keys().chain(container.resources.limits.keys()));
    let mut kinds: Vec<&str> = resources
        .filter(|resource| counts_workers(resource))
        .filter_map(|resource| Some(resource.rsplit_once('/')?.1))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    match kinds[..] {
        [only] if only != WHOLE => Some(only),
        _ => None,
    }
}

/// A whole number of accelerators, as Kubernetes writes quantities: as a number or as text, `2` or `2k`.
fn quantity(entry: &Entry<'_>, raw: &RawValue) -> Result<u32, Fault> {
    let text = raw.get().trim_matches('"');
    let (digits, factor) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1_000),
        None => (text, 1),
    };
    digits.parse::<u32>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(|| Fault {
        place: entry.place_of(raw),
        message: format!(
            "a quantity of accelerators is `{}`, expected a whole number",
            Field::shortened(text)
        ),
    })
}

/// Takes the worker type into a row: the flavor from which its accelerators were assigned.
fn take_flavors(row: &mut Row, admission: &Admission<'_>, log: &mut Reading) {
    let flavors = admission.pod_set_assignments.iter().flat_map(|assignment| &assignment.flavors);
    let mut types: Vec<&str> =
        flavors.filter(|(resource, _)| counts_workers(resource)).map(|(_, flavor)| flavor.trim()).collect();
    types.retain(|flavor| !flavor.is_empty());
    types.sort_unstable();
    types.dedup();
    match types.as_slice() {
        [] => {}
        [only] => row.worker_type = Some(log.share(only)).filter(|flavor| !flavor.is_empty()),
        _ => log.doubt(Doubt::SeveralTypes, row.line, Some(&row.id)),
    }
}

fn time(entry: &Entry<'_>, raw: Option<&RawValue>, log: &mut Reading) -> Value<f64> {
    Ok(entry.moment(raw, "a time", log)?.map(|moment| moment.after(None)))
}
