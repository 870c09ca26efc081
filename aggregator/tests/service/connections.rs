//! How many connections there may be.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

use crate::{
    common::client::{get, metric, until},
    server::Place,
};

#[test]
fn one_address_has_only_its_share_of_connections() {
    let mut place = Place::new();
    place.settings.connections_per_address_max = Some(2);
    let server = place.start();
    let mut open = Vec::new();
    // Those that asked whether it is ready may not have gone yet.
    until("two are open", || {
        open.extend(answered(server.address));
        open.len() == 2
    });
    let refused = get(server.address, "/healthz");
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    drop(open.pop());
    until("there is room again", || {
        get(server.address, "/healthz").status == 200
    });
    let refused = "reason=\"address\"";
    until("it is counted", || {
        metric(server.address, "weir_connections_refused_total", refused) >= 1
    });
}

/// A connection that was answered, and is still open.
pub fn answered(to: SocketAddr) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(to).unwrap();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n")
        .unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    (&answer == b"HTTP/1.1 200").then_some(stream)
}
