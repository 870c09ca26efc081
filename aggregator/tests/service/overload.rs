//! Too much at once is refused at once.

use std::{io::Read, net::TcpStream, thread};

use crate::{
    common::{
        client::{get, metric, sync, try_send, until},
        messages::flush,
    },
    connections::answered,
    server::Place,
};

#[test]
fn a_request_too_many_is_refused_at_once_and_told_when_to_come_again() {
    let mut place = Place::new();
    place.settings.queue_requests_max = Some(1);
    let server = place.start();
    let to = server.address;
    server.gate.hold();
    let first = thread::spawn(move || sync(to, &flush(1, "a", 5)).status);
    server.gate.wait_for_sync();
    let refused = sync(to, &flush(1, "b", 5));
    assert_eq!(
        (refused.status, refused.problem().as_str()),
        (503, "queue-full")
    );
    assert!(refused.header("retry-after").is_some());
    assert_eq!(metric(to, "weir_queue_depth", ""), 1);
    server.gate.open();
    assert_eq!(first.join().unwrap(), 200);
    assert_eq!(sync(to, &flush(1, "b", 5)).status, 200);
}

#[test]
fn an_answer_that_takes_too_long_is_given_up_and_the_hit_is_kept() {
    let mut place = Place::new();
    place.settings.request_timeout_ms = Some(50);
    let server = place.start();
    server.gate.hold();
    let late = sync(server.address, &flush(1, "a", 5));
    assert_eq!((late.status, late.problem().as_str()), (503, "late"));
    server.gate.open();
    drop(server);
    let server = place.start();
    assert_eq!(
        metric(server.address, "weir_hits_total", "rule=\"wide\""),
        5
    );
}

#[test]
fn a_connection_too_many_is_turned_away_with_a_word() {
    let mut place = Place::new();
    place.settings.connections_max = Some(2);
    let server = place.start();
    let mut open = Vec::new();
    // Those that asked whether it is ready may not have gone yet.
    until("two are open", || {
        open.extend(answered(server.address));
        open.len() == 2
    });
    let mut word = String::new();
    let mut third = TcpStream::connect(server.address).unwrap();
    third.read_to_string(&mut word).unwrap();
    assert!(
        word.starts_with("HTTP/1.1 503 ") && word.contains("retry-after"),
        "{word}"
    );
    drop(open);
    until("there is room again", || {
        try_send(server.address, "GET", "/healthz", b"")
            .is_ok_and(|response| response.status == 200)
    });
    assert_eq!(get(server.address, "/healthz").status, 200);
}
