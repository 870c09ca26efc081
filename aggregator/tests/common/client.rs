//! The smallest HTTP client that will do: one request a connection.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use limiter::wire::{SyncReply, SyncRequest};
use prost::Message;

/// How long a test waits for an answer before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Response {
    pub status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn reply(&self) -> SyncReply {
        assert_eq!(self.status, 200, "{}", self.text());
        SyncReply::decode(self.body.as_slice()).unwrap()
    }

    /// The problem's type, less what all of ours have in common.
    pub fn problem(&self) -> String {
        let kind = self.header("content-type");
        assert_eq!(kind, Some("application/problem+json"), "{}", self.text());
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        problem["type"]
            .as_str()
            .unwrap()
            .replace("urn:weir:problem:", "")
    }
}

/// Sends a request and waits for the answer. An error means that it is not
/// known what became of it.
pub fn try_send(to: SocketAddr, method: &str, path: &str, body: &[u8]) -> io::Result<Response> {
    let stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    try_send_over(stream, method, path, "", body)
}

/// The same over what is connected already, with more header lines.
pub fn try_send_over(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    headers: &str,
    body: &[u8],
) -> io::Result<Response> {
    let length = body.len();
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    )
    .into_bytes();
    request.extend_from_slice(body);
    stream.write_all(&request)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    parse(&answer).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}

/// Sends a request with a bearer token.
pub fn send_as(to: SocketAddr, token: &str, method: &str, path: &str, body: &[u8]) -> Response {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let headers = format!("authorization: Bearer {token}\r\n");
    try_send_over(stream, method, path, &headers, body).unwrap()
}

/// The response, if all of it is there.
fn parse(answer: &[u8]) -> Option<Response> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8(answer.get(..end)?.to_vec()).ok()?;
    let response = Response {
        status: head.split(' ').nth(1)?.parse().ok()?,
        head,
        body: answer.get(end + 4..)?.to_vec(),
    };
    let length: usize = response.header("content-length")?.parse().ok()?;
    (response.body.len() == length).then_some(response)
}

pub fn send(to: SocketAddr, method: &str, path: &str, body: &[u8]) -> Response {
    try_send(to, method, path, body).unwrap()
}

pub fn get(to: SocketAddr, path: &str) -> Response {
    send(to, "GET", path, b"")
}

pub fn sync(to: SocketAddr, message: &SyncRequest) -> Response {
    send(to, "POST", "/v1/sync", &message.encode_to_vec())
}

pub fn check(to: SocketAddr, body: &serde_json::Value) -> Response {
    send(
        to,
        "POST",
        "/v1/ratelimit/check",
        body.to_string().as_bytes(),
    )
}

/// A metric's value: the line that begins with `name` and contains `label`;
/// zero if there is none.
pub fn metric(to: SocketAddr, name: &str, label: &str) -> u64 {
    metric_in(&get(to, "/metrics").text(), name, label)
}

/// The same in what `/metrics` answered.
pub fn metric_in(text: &str, name: &str, label: &str) -> u64 {
    let line = text
        .lines()
        .find(|line| line.split(['{', ' ']).next() == Some(name) && line.contains(label));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// Waits until something holds; fails if it never does.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}
