//! Rows that are written as a normalized log are read back as they were.

use std::io::Cursor;
use std::sync::Arc;

use apportion_logs::normalized::write_rows;
use apportion_logs::read::read_log_from;
use apportion_logs::{Form, ReadOptions, Row, State};
use proptest::prelude::*;
use proptest::{collection, option, sample};

fn text() -> impl Strategy<Value = Option<Arc<str>>> {
    // Blanks around a text are not kept, and a blank one is none.
    let text = "[a-zA-Zé0-9\"|,;#=' -]{0,9}".prop_map(|text| text.trim().to_owned());
    text.prop_map(|text| if text.is_empty() { None } else { Some(text.as_str().into()) })
}

fn time() -> impl Strategy<Value = Option<f64>> {
    option::of(prop_oneof![-1e9..1e10, (0..2_000_000_000_u32).prop_map(f64::from)])
}

fn row() -> impl Strategy<Value = Row> {
    let texts = (text(), text(), text(), text(), text());
    let times = (time(), time(), time(), time(), time());
    let counts = (option::of(0..5000_u32), option::of(0..5000_u32), option::of(0..9_u32));
    let others = (option::of(0.001..0.999), sample::select(State::ALL.to_vec()));
    (texts, times, counts, others).prop_map(|(texts, times, counts, others)| {
        // Times of a row are in order, as readers have them.
        let (mut at, mut last) = ([times.0, times.2, times.3], f64::MIN);
        for time in at.iter_mut().flatten() {
            last = time.max(last);
            *time = last;
        }
        Row {
            name: texts.0,
            user: texts.1,
            group: texts.2,
            worker_type: texts.3,
            class: texts.4,
            submitted_s: at[0],
            eligible_s: times.1,
            started_s: at[1],
            ended_s: at[2],
            ran_s: times.4.map(f64::abs),
            n_workers: counts.0,
            n_nodes: counts.1,
            n_attempts: counts.2,
            fraction: others.0,
            state: others.1,
            ..Row::new("".into(), 0)
        }
    })
}

proptest! {
    #[test]
    fn rows_come_back_as_they_were(rows in collection::vec(row(), 0..20)) {
        let named = rows.into_iter().enumerate();
        let rows: Vec<Row> = named
            .map(|(at, row)| Row { id: format!("job, \"{at}\"").into(), line: at as u64 + 2, ..row })
            .collect();
        let mut text = Vec::new();
        write_rows(&mut text, rows.clone()).unwrap();
        let log = read_log_from("log.csv", Cursor::new(text), &ReadOptions::new(Form::Log)).unwrap();
        prop_assert!(log.complaints.is_empty(), "{:?}", log.complaints);
        prop_assert!(log.rows.iter().eq(rows.iter().map(Row::seen)));
    }
}
