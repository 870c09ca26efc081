//! A blocking HTTP/1.1 client that sends any bytes it is given.
//!
//! Tests need header names and values that no decent client would send, so
//! requests are bytes and nothing is checked on the way out.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::wait::PATIENCE;

/// What a server answered.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Every header, name in lower case, in the order it came.
    pub headers: Vec<(String, String)>,
    /// The body, whole.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this name (in lower case).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body as text; bytes that are not are replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One connection, kept open from request to request.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// As the socket says.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// How long an answer is waited for.
    ///
    /// # Errors
    /// As the socket says.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(timeout))
    }

    /// Sends `request` as it is and reads one answer.
    ///
    /// # Errors
    /// When the peer closes, says nothing in time, or does not speak HTTP/1.1.
    pub fn send(&mut self, request: &[u8]) -> io::Result<Response> {
        self.stream.get_mut().write_all(request)?;
        self.receive()
    }

    fn receive(&mut self) -> io::Result<Response> {
        let status = self
            .line()?
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .ok_or_else(|| bad("no status line"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| bad("a header without a colon"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        self.body(&mut response)?;
        Ok(response)
    }

    fn body(&mut self, response: &mut Response) -> io::Result<()> {
        if let Some(length) = response.header("content-length") {
            let length: u64 = length
                .parse()
                .map_err(|_| bad("content-length is no number"))?;
            return self.read_exactly(length, &mut response.body);
        }
        if response.header("transfer-encoding") != Some("chunked") {
            return Ok(());
        }
        loop {
            let length = u64::from_str_radix(&self.line()?, 16)
                .map_err(|_| bad("a chunk without a length"))?;
            self.read_exactly(length, &mut response.body)?;
            self.line()?;
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn read_exactly(&mut self, length: u64, into: &mut Vec<u8>) -> io::Result<()> {
        let read = self.stream.by_ref().take(length).read_to_end(into)?;
        if u64::try_from(read) == Ok(length) {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    /// One line without its end; bytes that are not UTF-8 are replaced.
    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        if self.stream.read_until(b'\n', &mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}

/// A GET of `path` as bytes, with headers given as `("name", "value")`.
#[must_use]
pub fn get(path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    request("GET", path, headers, &[])
}

/// A request as bytes, with a `host` and, if there is a body, its length.
#[must_use]
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut out = format!("{method} {path} HTTP/1.1\r\n");
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        out.push_str("host: test.local\r\n");
    }
    for (name, value) in headers {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        out.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    out.push_str("\r\n");
    let mut out = out.into_bytes();
    out.extend_from_slice(body);
    out
}

/// One request on a connection of its own.
///
/// # Errors
/// As [`Connection::open`] and [`Connection::send`].
pub fn send(address: SocketAddr, request: &[u8]) -> io::Result<Response> {
    Connection::open(address)?.send(request)
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
