//! What a denied client is answered, where its rule says so itself.

use alloc::{string::String, vec::Vec};

use super::text::{self, TextError};

/// The status unless the rule says otherwise (RFC 6585).
pub const STATUS_DEFAULT: u16 = 429;

/// The longest body of an answer, in bytes.
pub const BODY_LEN_MAX: usize = 30 * 1024;

/// The most headers of an answer.
pub const HEADERS_MAX: usize = 16;

/// Headers that the answer has anyway, or that are not a rule's to say.
const RESERVED: [&str; 8] = [
    "connection",
    "content-length",
    "content-type",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "transfer-encoding",
    "upgrade",
];

/// An answer of a rule's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status: 400 to 599.
    pub status: u16,
    /// Its body and what that is; none: a problem document.
    pub body: Option<Body>,
    /// Headers beside those that every denial has, names in lower case.
    pub headers: Vec<(String, String)>,
}

/// What an answer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Its media type.
    pub content_type: String,
    /// The text.
    pub text: String,
}

/// Why a client cannot be answered like this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// Not one that turns a request away.
    #[error("the status of an answer is 400 to 599, got {0}")]
    Status(u16),
    /// Too much to say.
    #[error("the body of an answer has at most {BODY_LEN_MAX} bytes, got {0}")]
    BodyLen(usize),
    /// Too many headers.
    #[error("an answer has at most {HEADERS_MAX} headers of its own, got {0}")]
    Headers(usize),
    /// Not a header's name.
    #[error("a header of the answer: {0}")]
    Name(TextError),
    /// One that the answer has anyway.
    #[error("this header is not a rule's to say")]
    Reserved,
    /// Not what a header can hold.
    #[error(
        "a header holds visible ASCII and spaces, and at most {} bytes",
        text::VALUE_LEN_MAX
    )]
    Value,
}

impl Default for Response {
    fn default() -> Self {
        Self {
            status: STATUS_DEFAULT,
            body: None,
            headers: Vec::new(),
        }
    }
}

impl Response {
    /// Checks that a client can be answered like this.
    pub fn validate(&self) -> Result<(), ResponseError> {
        if !(400..=599).contains(&self.status) {
            return Err(ResponseError::Status(self.status));
        }
        if let Some(body) = &self.body {
            header_value(&body.content_type)?;
            if body.text.len() > BODY_LEN_MAX {
                return Err(ResponseError::BodyLen(body.text.len()));
            }
        }
        if self.headers.len() > HEADERS_MAX {
            return Err(ResponseError::Headers(self.headers.len()));
        }
        let mut headers = self.headers.iter();
        headers.try_for_each(|(name, value)| header(name, value))
    }
}

/// Checks a header of an answer.
pub fn header(name: &str, value: &str) -> Result<(), ResponseError> {
    text::header_name(name).map_err(ResponseError::Name)?;
    if RESERVED.contains(&name) {
        return Err(ResponseError::Reserved);
    }
    header_value(value)
}

fn header_value(value: &str) -> Result<(), ResponseError> {
    let visible = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    match visible && value.len() <= text::VALUE_LEN_MAX {
        true => Ok(()),
        false => Err(ResponseError::Value),
    }
}

#[cfg(test)]
mod tests {
    use alloc::{string::ToString, vec};

    use super::*;

    fn wrong(change: impl Fn(&mut Response)) -> ResponseError {
        let mut response = Response::default();
        assert_eq!(response.validate(), Ok(()));
        change(&mut response);
        response.validate().unwrap_err()
    }

    #[test]
    fn an_answer_that_would_break_a_response_is_refused() {
        let header = |name: &str, value: &str| vec![(name.to_string(), value.to_string())];
        assert_eq!(wrong(|one| one.status = 200), ResponseError::Status(200));
        let split = header("x-a", "a\r\nset-cookie: b");
        assert_eq!(
            wrong(|one| one.headers = split.clone()),
            ResponseError::Value
        );
        let length = header("content-length", "1");
        assert_eq!(
            wrong(|one| one.headers = length.clone()),
            ResponseError::Reserved
        );
        let body = |content_type: &str, len: usize| Body {
            content_type: content_type.into(),
            text: "x".repeat(len),
        };
        assert_eq!(
            wrong(|one| one.body = Some(body("text/plain", BODY_LEN_MAX + 1))),
            ResponseError::BodyLen(BODY_LEN_MAX + 1)
        );
        assert_eq!(
            wrong(|one| one.body = Some(body("a\nb", 1))),
            ResponseError::Value
        );
    }
}
