//! What a restart keeps, and a scheduler that was stopped for a while.

use apportion::Seconds;
use apportion_live::core::{JobRecord, State};
use apportion_live::protocol::End;

use super::small::{Small, job};

#[test]
fn a_back_off_goes_on_over_a_restart() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.settings.back_off = Seconds::new(100.0);
    small.start("v100=1");
    small.until(5.0);
    let failing = small.submit(job(1000));
    small.doom(failing, &End::Exit(1));
    small.until(20.0);
    small.nodes[0].fates.clear();
    small.start("v100=1");
    small.until(100.0);
    assert_eq!(small.jobs[&failing].incarnation, 1);
    assert!(small.why(failing).because[0].contains("is not started again for"));
    small.until(120.0);
    assert_eq!(small.why(failing).job.state, State::Running);
}

#[test]
fn a_record_of_before_back_offs_were_kept_is_read() {
    let mut small = Small::new("fifo", &[("v100", 1)]);
    small.start("v100=1");
    let number = small.submit(job(1000));
    let text = serde_json::to_string(&small.jobs[&number]).unwrap();
    assert!(!text.contains("not_before"));
    let record: JobRecord = serde_json::from_str(&text).unwrap();
    assert_eq!(record, small.jobs[&number]);
}
