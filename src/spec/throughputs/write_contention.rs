//! The writer of contention models, as the `colocation` section of our format.

use super::document::Header;
use super::write::{list, push, scalar, write_isolated};
use crate::throughput::contention::network::{Configuration, NetworkModel};
use crate::throughput::contention::resource::ResourceModel;
use crate::throughput::{ContentionModel, Measured};

/// The text of a throughput file whose co-located throughputs come from a model; for `measured`, that of
/// [`write_throughputs`](super::write_throughputs).
pub fn write_modelled(header: &Header, measured: &Measured, model: &ContentionModel) -> String {
    match model {
        ContentionModel::Measured => super::write_throughputs(header, measured),
        _ => format!("{}\n{}", write_isolated(header, measured), write_contention(model)),
    }
}

/// The `colocation` section alone.
pub fn write_contention(model: &ContentionModel) -> String {
    let mut text = "colocation:\n".to_owned();
    match model {
        ContentionModel::None => text.push_str("  model: none\n"),
        ContentionModel::Measured => text.push_str("  model: measured\n"),
        ContentionModel::Resource(model) => resource(&mut text, model),
        ContentionModel::Network(model) => network(&mut text, model),
    }
    text
}

fn numbers(values: &[f64]) -> String {
    list(values.iter().copied().map(Some))
}

fn resource(text: &mut String, model: &ResourceModel) {
    let names: Vec<String> = model.resources.iter().map(|name| scalar(name)).collect();
    text.push_str("  model: resource\n  # Per job type, the fractions of each resource's capacity that it takes when alone, and\n");
    text.push_str("  # the weights of its share where a resource is contended.\n  resource:\n");
    push(text, format_args!("    resources: [{}]\n    worker_types:\n", names.join(", ")));
    for (worker_type, shared) in &model.worker_types {
        push(
            text,
            format_args!("      {}:\n        efficiency: {}\n", scalar(worker_type), shared.efficiency),
        );
        if shared.demands.is_empty() {
            text.push_str("        demands: {}\n");
        } else {
            text.push_str("        demands:\n");
        }
        for (job_type, demands) in &shared.demands {
            let (demand, weight) = (numbers(&demands.demand), numbers(&demands.weight));
            let job_type = scalar(job_type);
            push(text, format_args!("          {job_type}: {{demand: {demand}, weight: {weight}}}\n"));
        }
        if !shared.cannot_share.is_empty() {
            text.push_str("        cannot_share:\n");
        }
        for [one, other] in &shared.cannot_share {
            push(text, format_args!("          - [{}, {}]\n", scalar(one), scalar(other)));
        }
    }
}

fn network(text: &mut String, model: &NetworkModel) {
    text.push_str("  model: network\n  # Per job type at two workers on two servers, the part of a step spent communicating and\n");
    text.push_str("  # the competing flows it puts on the link.\n  network:\n");
    push(text, format_args!("    workers_per_server: {}\n", model.workers_per_server));
    push(text, format_args!("    efficiency: {}\n", model.efficiency));
    text.push_str(if model.job_types.is_empty() { "    job_types: {}\n" } else { "    job_types:\n" });
    for (job_type, traffic) in &model.job_types {
        let (communication, flows) = (traffic.communication, traffic.flows);
        let job_type = scalar(job_type);
        push(text, format_args!("      {job_type}: {{communication: {communication}, flows: {flows}}}\n"));
    }
    let growth = &model.growth;
    text.push_str("    growth:\n");
    for (exponent, value) in [
        ("communication_servers", growth.communication_servers),
        ("communication_workers", growth.communication_workers),
        ("flows_servers", growth.flows_servers),
        ("flows_workers", growth.flows_workers),
    ] {
        push(text, format_args!("      {exponent}: {value}\n"));
    }
    if !model.measured.is_empty() {
        text.push_str("    # Fractions retained beside each of these configurations, in this order; null = not measured.\n");
        text.push_str("    measured:\n");
    }
    for row in &model.measured {
        let beside = list(row.beside.iter().copied());
        push(text, format_args!("      - {{job: {}, beside: {beside}}}\n", configuration(&row.job)));
    }
    if !model.measured_sets.is_empty() {
        text.push_str("    measured_sets:\n");
    }
    for set in &model.measured_sets {
        let beside: Vec<String> = set.beside.iter().map(configuration).collect();
        let (job, beside, retained) = (configuration(&set.job), beside.join(", "), set.retained);
        push(text, format_args!("      - {{job: {job}, beside: [{beside}], retained: {retained}}}\n"));
    }
}

fn configuration(job: &Configuration) -> String {
    let Configuration { job_type, workers, servers } = job;
    format!("{{job_type: {}, workers: {workers}, servers: {servers}}}", scalar(job_type))
}
