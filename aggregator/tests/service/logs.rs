//! What is never in a log line.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
};

use aggregator::auth::Token;
use serde_json::json;
use tempfile::TempDir;

use crate::common::{
    client::{get, send_as, until},
    messages::RULES,
};

const KEY: &str = "customer-4711";

/// A service in a process of its own that logs whatever it can.
struct Talkative {
    dir: TempDir,
    child: Child,
    address: SocketAddr,
    token: Token,
}

impl Talkative {
    fn start(more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let token = Token::random().unwrap();
        let digest = token.digest();
        let tokens = format!(
            "tokens: [ {{ name: n, tenant: t, rights: [check, read], sha256: \"{digest}\" }} ]\n"
        );
        std::fs::write(dir.path().join("rules.yaml"), RULES).unwrap();
        std::fs::write(dir.path().join("tokens.yaml"), tokens).unwrap();
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .current_dir(dir.path())
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "trace"])
            .args(["--rules", "rules.yaml", "--token-file", "tokens.yaml"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://").unwrap();
        let address = address.parse().unwrap();
        until("ready", || get(address, "/readyz").status == 200);
        Self {
            dir,
            child,
            address,
            token,
        }
    }

    fn check(&self) {
        let body = json!({"rule": "wide", "key": KEY}).to_string();
        let path = "/v1/ratelimit/check";
        let answer = send_as(
            self.address,
            self.token.reveal(),
            "POST",
            path,
            body.as_bytes(),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// Asks for the metrics over HTTP/2, whose library logs what it does.
    fn metrics_over_http_2(&self) {
        let bearer = format!("Bearer {}", self.token.reveal());
        let mut block = vec![0x82, 0x84, 0x86]; // GET, /, http: from HPACK's table.
        for (name, value) in [("authorization", &*bearer), ("host", "test")] {
            block.push(0);
            for text in [name, value] {
                block.push(u8::try_from(text.len()).unwrap());
                block.extend_from_slice(text.as_bytes());
            }
        }
        let mut message = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        message.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
        let length = u8::try_from(block.len()).unwrap();
        message.extend([0, 0, length, 1, 5, 0, 0, 0, 1]);
        message.extend(block);
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(&message).unwrap();
        let mut head = [0; 9];
        loop {
            stream.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            stream.read_exact(&mut payload).unwrap();
            assert_ne!(head[3], 7, "GOAWAY");
            if head[3] == 1 {
                return; // HEADERS: the answer.
            }
        }
    }

    /// Everything that was logged, once it has ended.
    fn log(mut self) -> String {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(self.child.wait().unwrap().success());
        std::fs::read_to_string(self.dir.path().join("log")).unwrap()
    }
}

impl Drop for Talkative {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

#[test]
fn neither_tokens_nor_keys_are_in_the_log_at_any_level() {
    let service = Talkative::start(&[]);
    service.check();
    service.metrics_over_http_2();
    let secret = service.token.reveal().to_owned();
    let log = service.log();
    assert!(log.contains("checked") && log.contains("h2"), "{log}");
    assert!(!log.contains(&secret), "{log}");
    assert!(!log.contains(KEY), "{log}");
}

#[test]
fn keys_are_in_the_log_once_they_are_asked_for_and_tokens_never() {
    let service = Talkative::start(&["--log-keys"]);
    service.check();
    let secret = service.token.reveal().to_owned();
    let log = service.log();
    assert!(log.contains(KEY), "{log}");
    assert!(!log.contains(&secret), "{log}");
}
