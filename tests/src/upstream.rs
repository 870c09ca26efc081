//! An HTTP/1.1 server whose answer is a closure, also a bad one.
//!
//! Stands in for the service behind Envoy, and for aggregators that answer late,
//! at length, or nonsense.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// The first line, without its end.
    pub line: String,
    /// Every header, name in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, whole.
    pub body: Vec<u8>,
}

/// A running server; it stops taking connections when dropped.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    seen: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Upstream {
    /// A server that answers 200 with the body `upstream`.
    #[must_use]
    pub fn start() -> Self {
        Self::answering(|_| response(200, &[], b"upstream\n"))
    }

    /// A server that sends what `answer` returns, as it is; an empty answer
    /// closes the connection.
    ///
    /// # Panics
    /// If there is no port for it.
    #[must_use]
    pub fn answering(answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let server = Self {
            address: listener
                .local_addr()
                .expect("a bound socket has an address"),
            seen: Arc::default(),
            stop: Arc::default(),
        };
        let (seen, stop) = (server.seen.clone(), server.stop.clone());
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let (seen, answer) = (seen.clone(), answer.clone());
                thread::spawn(move || serve(stream, &seen, answer.as_ref()));
            }
        });
        server
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests have come.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// An answer as bytes, with its length.
#[must_use]
pub fn response(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut out = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    out.push_str("\r\n");
    let mut out = out.into_bytes();
    out.extend_from_slice(body);
    out
}

fn serve(stream: TcpStream, seen: &AtomicU64, answer: &dyn Fn(&Request) -> Vec<u8>) {
    let _ = stream.set_nodelay(true);
    let mut stream = BufReader::new(stream);
    while let Ok(request) = read(&mut stream) {
        seen.fetch_add(1, Ordering::Relaxed);
        let bytes = answer(&request);
        if bytes.is_empty() || stream.get_mut().write_all(&bytes).is_err() {
            return;
        }
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Request> {
    let mut request = Request {
        line: line(stream)?,
        headers: Vec::new(),
        body: Vec::new(),
    };
    loop {
        let line = line(stream)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        request
            .headers
            .push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    match header(&request, "content-length").and_then(|length| length.parse().ok()) {
        Some(length) => {
            stream.take(length).read_to_end(&mut request.body)?;
        }
        None if header(&request, "transfer-encoding") == Some("chunked") => {
            read_chunks(stream, &mut request.body)?;
        }
        None => {}
    }
    Ok(request)
}

fn read_chunks(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let length = u64::from_str_radix(&line(stream)?, 16).map_err(io::Error::other)?;
        stream.take(length).read_to_end(body)?;
        line(stream)?;
        if length == 0 {
            return Ok(());
        }
    }
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request
        .headers
        .iter()
        .find(|(n, _)| n == name)
        .map(|(_, value)| value.as_str())
}

fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = Vec::new();
    if stream.read_until(b'\n', &mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}
