//! Names of a sweep's axes for people.

/// An axis of a sweep with its unit: `rate` → `arrival rate (jobs/h)`.
pub fn axis(name: &str) -> String {
    let last = name.rsplit('.').next().unwrap_or(name);
    match last {
        "rate" => "arrival rate (jobs/h)".to_owned(),
        "static" => "jobs at the start".to_owned(),
        "round_length" | "reset_interval" | "preemption_cost" | "duration" | "look_ahead" | "start_up"
        | "stop" => {
            format!("{} (s)", last.replace('_', " "))
        }
        _ => last.replace('_', " "),
    }
}
