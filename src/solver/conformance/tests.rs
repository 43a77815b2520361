use super::*;
use crate::solver::registry::BACKENDS;

#[test]
fn every_backend_of_this_build_conforms() {
    let mut complaints = Vec::new();
    for entry in BACKENDS {
        let failures = run(entry.make().as_mut());
        complaints.extend(failures.iter().map(|failure| format!("{}: {failure}", entry.name)));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
