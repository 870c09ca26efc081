//! What every path has in common.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use crate::{
    common::client::{get, send},
    server::Place,
};

#[test]
fn what_is_not_there_is_a_problem_that_says_what_is() {
    let place = Place::new();
    let server = place.start();
    let lost = get(server.address, "/v2/sync");
    assert_eq!(
        (lost.status, lost.problem().as_str()),
        (404, "no-such-path")
    );
    assert!(lost.text().contains("/v1/sync"));
    let wrong = send(server.address, "DELETE", "/v1/sync", b"");
    assert_eq!(
        (wrong.status, wrong.problem().as_str()),
        (405, "no-such-method")
    );
    assert_eq!(wrong.header("allow"), Some("POST"));
}

#[test]
fn http_2_is_spoken_without_being_announced() {
    let place = Place::new();
    let server = place.start();
    let mut stream = TcpStream::connect(server.address).unwrap();
    let empty_settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    stream.write_all(&empty_settings).unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[3], 4, "the first frame is SETTINGS");
}

#[test]
fn a_request_with_an_enormous_head_is_refused_and_the_service_lives() {
    let place = Place::new();
    let server = place.start();
    let mut stream = TcpStream::connect(server.address).unwrap();
    let head = format!("GET /healthz HTTP/1.1\r\nx: {}\r\n", "y".repeat(64 << 10));
    // It may hang up before it has read all of it.
    let _ = stream.write_all(head.as_bytes());
    let mut answer = [0; 12];
    if stream.read_exact(&mut answer).is_ok() {
        assert_eq!(&answer, b"HTTP/1.1 431");
    }
    assert_eq!(get(server.address, "/healthz").status, 200);
}
