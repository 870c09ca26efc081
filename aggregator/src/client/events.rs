//! Server-sent events, as the service sends them: each with JSON for its data.

use std::io::{self, BufRead, BufReader, Read};

use serde_json::Value;

use super::ClientError;

/// The most bytes of a line.
const LINE_MAX: u64 = 64 << 10;

/// What happens, one value an event.
pub struct Events {
    url: String,
    lines: BufReader<Box<dyn Read>>,
}

impl Events {
    pub(super) fn new(url: &str, stream: impl Read + 'static) -> Self {
        Self {
            url: url.to_owned(),
            lines: BufReader::new(Box::new(stream)),
        }
    }

    /// The data of the next event: every line of it up to an empty one.
    fn data(&mut self) -> io::Result<Option<String>> {
        let mut data = String::new();
        loop {
            let mut line = String::new();
            if (&mut self.lines).take(LINE_MAX).read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let line = line.trim_end_matches(['\r', '\n']);
            match line.strip_prefix("data:") {
                Some(more) => data.push_str(more.strip_prefix(' ').unwrap_or(more)),
                None if line.is_empty() && !data.is_empty() => return Ok(Some(data)),
                None => {}
            }
        }
    }
}

impl Iterator for Events {
    type Item = Result<Value, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        let url = self.url.clone();
        let strange = |what: String| ClientError::Strange { url, what };
        match self.data() {
            Ok(None) => None,
            Ok(Some(data)) => Some(
                serde_json::from_str(&data)
                    .map_err(|error| strange(format!("an event is not JSON: {error}"))),
            ),
            Err(error) => Some(Err(strange(format!("the events broke off: {error}")))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_ends_with_an_empty_line_and_comments_are_none() {
        let text = ": hello\n\ndata: {\"value\":\ndata: 1}\r\n\r\nevent: x\ndata:2\n\ndata: 3\n";
        let events = Events::new("http://x", text.as_bytes());
        let values: Vec<Value> = events.map(Result::unwrap).collect();
        assert_eq!(values, [json!({"value": 1}), json!(2)]);
    }
}
