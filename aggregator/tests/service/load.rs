//! What the metrics tell of load and of what there is room for.

use crate::{
    common::{
        client::{get, metric, sync},
        messages::flush,
    },
    server::Place,
};

/// A metric that is no whole number.
fn seconds(text: &str, name: &str, label: &str) -> f64 {
    let line = text
        .lines()
        .find(|line| line.split(['{', ' ']).next() == Some(name) && line.contains(label));
    let line = line.unwrap_or_else(|| panic!("{name} {label} is not in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn what_alerts_divide_by_is_what_was_set() {
    let mut place = Place::new();
    place.settings.queue_requests_max = Some(77);
    place.settings.connections_max = Some(88);
    place.settings.keys_max = Some(99);
    let server = place.start();
    let to = server.address;
    assert_eq!(metric(to, "weir_queue_requests_max", ""), 77);
    assert_eq!(metric(to, "weir_connections_max", ""), 88);
    assert_eq!(metric(to, "weir_keys_max", ""), 99);
    assert_eq!(metric(to, "weir_ready", ""), 1);
    let version = format!("version=\"{}\"", env!("CARGO_PKG_VERSION"));
    assert_eq!(metric(to, "weir_build_info", &version), 1);
    let free = metric(to, "weir_disk_free_bytes", "");
    assert!(free > 0 && free <= metric(to, "weir_disk_bytes", ""));
}

#[test]
fn every_request_s_wait_for_the_ledger_is_measured() {
    let place = Place::new();
    let server = place.start();
    let before = metric(server.address, "weir_queue_wait_seconds_count", "");
    for sequence in 1..=3 {
        sync(server.address, &flush(sequence, "a", 1)).reply();
    }
    let after = metric(server.address, "weir_queue_wait_seconds_count", "");
    assert_eq!(after - before, 3);
}

#[test]
fn silent_sources_show_and_a_clock_that_is_set_back_does_too() {
    let place = Place::new();
    let server = place.start();
    let to = server.address;
    let longest = |text: &str| seconds(text, "weir_source_silence_seconds", "quantile=\"1\"");
    // Of nobody there is nothing to tell.
    assert!(longest(&get(to, "/metrics").text()).abs() < f64::EPSILON);
    sync(to, &flush(1, "a", 1)).reply();
    place.set_clock_ahead_s(20);
    let text = get(to, "/metrics").text();
    let half = seconds(&text, "weir_source_silence_seconds", "quantile=\"0.5\"");
    assert!((19.0..30.0).contains(&longest(&text)), "{text}");
    assert!((19.0..30.0).contains(&half), "{text}");
    place.set_clock_ahead_s(0);
    let ahead = seconds(&get(to, "/metrics").text(), "weir_clock_ahead_seconds", "");
    assert!((10.0..21.0).contains(&ahead), "{ahead}");
}
