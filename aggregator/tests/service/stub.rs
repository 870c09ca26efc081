//! What plays a service: it answers what it was told to, and remembers what it was
//! asked.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// One answer.
pub struct Answer {
    status: u16,
    body: String,
}

/// One request: method and path, and the body.
#[derive(Clone)]
pub struct Asked {
    pub head: String,
    pub body: String,
}

pub struct Stub {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Answer {
    pub fn of(status: u16, body: &str) -> Self {
        let body = body.to_owned();
        Self { status, body }
    }
}

impl Stub {
    /// Gives these answers, in turn.
    pub fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stub = Self {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
        };
        let asked = Arc::clone(&stub.asked);
        thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                asked.lock().unwrap().push(read(&stream));
                let (status, length) = (answer.status, answer.body.len());
                write!(
                    stream,
                    "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{}",
                    answer.body
                )
                .unwrap();
            }
        });
        stub
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> Asked {
    let mut lines = BufReader::new(stream);
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    let (head, _) = first.split_once(" HTTP/").unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().unwrap();
            }
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).unwrap();
    Asked {
        head: head.to_owned(),
        body: String::from_utf8(body).unwrap(),
    }
}
