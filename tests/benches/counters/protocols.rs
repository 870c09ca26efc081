//! How each candidate is asked for the same thing.

use weir_tests::redis_server::write;
use weir_tests::talk::Protocol;

/// Weir over HTTP/1.1: a path, and a body with the key in place of `{key}`.
pub(crate) struct Http {
    pub(crate) path: &'static str,
    pub(crate) body: &'static str,
    /// So many of them in one request, each for a key of its own.
    pub(crate) many: u64,
}

impl Http {
    fn body(&self, key: u64) -> String {
        let one = |key| self.body.replace("{key}", &format!("key-{key}"));
        if self.many == 1 {
            return one(key);
        }
        let all: Vec<String> = (key..key + self.many).map(one).collect();
        format!(r#"{{"adds":[{}]}}"#, all.join(","))
    }
}

impl Protocol for Http {
    fn ask(&self, key: u64, out: &mut Vec<u8>) {
        let body = self.body(key);
        let (path, length) = (self.path, body.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n"
        );
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(body.as_bytes());
    }

    fn is_whole(&self, answer: &[u8]) -> Result<bool, String> {
        let text = String::from_utf8_lossy(answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            return Ok(false);
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.parse().ok()).flatten()
        });
        if !head.starts_with("HTTP/1.1 200") {
            return Err(text.into_owned());
        }
        Ok(length == Some(body.len()))
    }
}

/// Redis: a command with the key in place of `{key}`, answered by a number.
pub(crate) struct Resp {
    pub(crate) words: Vec<String>,
    /// So many of them in one pipeline, each for a key of its own.
    pub(crate) many: u64,
}

impl Protocol for Resp {
    fn ask(&self, key: u64, out: &mut Vec<u8>) {
        for key in key..key + self.many {
            let name = format!("key-{key}");
            let words = self.words.iter().map(|word| word.replace("{key}", &name));
            let words: Vec<String> = words.collect();
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            write(out, &words);
        }
    }

    fn is_whole(&self, answer: &[u8]) -> Result<bool, String> {
        match answer.first() {
            Some(b':') | None => {
                let lines = answer.iter().filter(|byte| **byte == b'\n').count();
                Ok(lines as u64 == self.many)
            }
            Some(_) => Err(String::from_utf8_lossy(answer).into_owned()),
        }
    }
}

/// PostgreSQL: one prepared statement that takes the key.
pub(crate) struct Prepared(pub(crate) &'static str);

impl Protocol for Prepared {
    fn greeting(&self) -> Option<Vec<u8>> {
        let mut hello = 196_608_u32.to_be_bytes().to_vec();
        hello.extend_from_slice(b"user\0postgres\0database\0postgres\0\0");
        let length = u32::try_from(hello.len() + 4).unwrap_or(0);
        let mut greeting = length.to_be_bytes().to_vec();
        greeting.extend(hello);
        let mut parse = b"s\0".to_vec();
        parse.extend_from_slice(self.0.as_bytes());
        parse.extend_from_slice(&[0, 0, 0]);
        message(b'P', &parse, &mut greeting);
        message(b'S', b"", &mut greeting);
        Some(greeting)
    }

    fn ask(&self, key: u64, out: &mut Vec<u8>) {
        let key = format!("key-{key}");
        let mut bind = b"\0s\0".to_vec();
        // All values are text; there is one.
        bind.extend_from_slice(&[0, 0, 0, 1]);
        bind.extend_from_slice(&u32::try_from(key.len()).unwrap_or(0).to_be_bytes());
        bind.extend_from_slice(key.as_bytes());
        bind.extend_from_slice(&[0, 0]);
        message(b'B', &bind, out);
        message(b'E', &[0; 5], out);
        message(b'S', b"", out);
    }

    fn is_whole(&self, answer: &[u8]) -> Result<bool, String> {
        let mut rest = answer;
        // The greeting is answered twice: for the login and for the statement.
        let mut prepared = !matches!(answer.first(), Some(b'R'));
        while let Some((kind, after)) = rest.split_first() {
            let Some((length, _)) = after.split_first_chunk::<4>() else {
                return Ok(false);
            };
            let length = u32::from_be_bytes(*length) as usize;
            let Some((body, next)) = after.split_at_checked(length) else {
                return Ok(false);
            };
            match kind {
                b'E' => return Err(String::from_utf8_lossy(body).into_owned()),
                b'1' => prepared = true,
                b'Z' if prepared => return Ok(next.is_empty()),
                _ => {}
            }
            rest = next;
        }
        Ok(false)
    }
}

fn message(kind: u8, body: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    let length = u32::try_from(body.len() + 4).unwrap_or(0);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(body);
}
