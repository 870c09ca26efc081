//! `GET /v1/counter/{id}/watch`.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    common::client::{get, metric, send, until},
    counters::add,
    server::Place,
};

/// How long a test waits for an event before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Someone who watches.
struct Reader(BufReader<TcpStream>);

impl Reader {
    fn new(to: SocketAddr, name: &str) -> Self {
        let mut stream = TcpStream::connect(to).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let request = format!("GET /v1/counter/{name}/watch HTTP/1.1\r\nhost: test\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    /// The next event; none at the end of the stream.
    fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            let read = self.0.read_line(&mut line).unwrap();
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
            // The last chunk has no bytes.
            if read == 0 || line == "0\r\n" {
                return None;
            }
        }
    }

    /// Whether nothing is told for long enough to be sure.
    fn hears_nothing(&mut self) -> bool {
        let stream = self.0.get_ref();
        stream
            .set_read_timeout(Some(Duration::from_millis(150)))
            .unwrap();
        let mut read = String::new();
        while self.0.read_line(&mut read).is_ok() {}
        self.0.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        !read.contains("data: ")
    }

    fn value(&mut self) -> Value {
        self.next().unwrap()["value"].clone()
    }
}

#[test]
fn a_watch_tells_the_counter_as_it_is_and_then_each_change() {
    let place = Place::new();
    let server = place.start();
    let to = server.address;
    let mut reader = Reader::new(to, "a");
    assert_eq!(
        reader.next(),
        Some(json!({"counter_id": "a", "value": null}))
    );
    add(to, &json!({"counter_id": "a", "delta": 5}));
    assert_eq!(reader.next(), Some(json!({"counter_id": "a", "value": 5})));
    send(to, "POST", "/v1/counter/reset", br#"{"counter_id": "a"}"#);
    assert_eq!(reader.value(), 0);
    send(to, "DELETE", "/v1/counter/a", b"");
    assert_eq!(reader.value(), Value::Null);
    add(to, &json!({"counter_id": "other", "delta": 9}));
    add(to, &json!({"counter_id": "a", "delta": 1, "ttl_s": 1}));
    assert_eq!(reader.value(), 1);
    // It ends, and nobody has to ask.
    assert_eq!(reader.value(), Value::Null);
}

#[test]
fn a_change_is_told_once_it_is_durable_and_not_before() {
    let place = Place::new();
    let server = place.start();
    let to = server.address;
    add(to, &json!({"counter_id": "a"}));
    let mut reader = Reader::new(to, "a");
    assert_eq!(reader.value(), 1);
    server.gate.hold();
    let adding = std::thread::spawn(move || add(to, &json!({"counter_id": "a"})));
    server.gate.wait_for_sync();
    assert!(reader.hears_nothing());
    server.gate.open();
    assert_eq!(reader.value(), 2);
    adding.join().unwrap();
}

#[test]
fn a_reader_that_is_slow_costs_nobody_and_is_told_the_latest() {
    let place = Place::new();
    let server = place.start();
    let to = server.address;
    // It reads nothing until its socket is full many times over.
    let mut slow = Reader::new(to, "a");
    assert_eq!(slow.value(), Value::Null);
    let mut quick = Reader::new(to, "a");
    let name = "x".repeat(250);
    let sum = 100 * 1_000;
    for n in 1..=100 {
        let adds = vec![json!({"counter_id": "a"}); 1_000];
        assert_eq!(add(to, &json!({"adds": adds})).status, 200);
        assert_eq!(add(to, &json!({"counter_id": name})).json()["value"], n);
    }
    while quick.value() != sum {}
    let mut events = 1;
    while slow.value() != sum {
        events += 1;
    }
    assert!(events <= 101, "{events} events for 100 commits");
}

#[test]
fn one_who_watches_too_many_is_refused_and_finds_room_when_another_leaves() {
    let mut place = Place::new();
    place.settings.watchers_max = Some(1);
    let server = place.start();
    let to = server.address;
    let mut first = Reader::new(to, "a");
    assert_eq!(first.value(), Value::Null);
    let refused = get(to, "/v1/counter/b/watch");
    assert_eq!(
        (refused.status, refused.problem().as_str()),
        (503, "too-many-watchers")
    );
    assert!(refused.header("retry-after").is_some());
    assert_eq!(metric(to, "weir_watchers", ""), 1);
    drop(first);
    until("there is room", || {
        // Writing to one that has gone is how it is found out.
        add(to, &json!({"counter_id": "a"}));
        metric(to, "weir_watchers", "") == 0
    });
    assert_eq!(Reader::new(to, "b").value(), Value::Null);
}

#[test]
fn a_watch_ends_when_the_service_stops() {
    let place = Place::new();
    let mut server = place.start();
    let mut reader = Reader::new(server.address, "a");
    assert_eq!(reader.value(), Value::Null);
    server.begin_stop();
    assert_eq!(reader.next(), None);
    server.end().unwrap();
}
