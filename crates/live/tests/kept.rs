//! What a store keeps, and for how long.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use apportion::Seconds;
use apportion_live::store::Store;
use tempfile::TempDir;

#[test]
fn the_clock_goes_on_by_the_node_s() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("scheduler.sqlite");
    let (mut store, _) = Store::open(&path).unwrap();
    assert!(store.node_clock().unwrap().is_none());
    // The wall's clock is set forward by a day meanwhile.
    store.note_clock(Seconds::new(100.0), apportion_live::clock::wall_s() - 86_400.0).unwrap();
    let now = store.node_clock().unwrap().unwrap().now();
    assert!(now >= Seconds::new(100.0) && now < Seconds::new(3_700.0), "{now}");
    drop(store);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute("UPDATE meta SET value = '[100.0, 0.0, \"another\"]' WHERE key = 'node_clock'", [])
        .unwrap();
    drop(connection);
    let (store, _) = Store::open(&path).unwrap();
    assert!(store.node_clock().unwrap().is_none(), "the node has been started since");
}
