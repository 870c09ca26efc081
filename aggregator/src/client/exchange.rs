//! A request and its answer as bytes, for those who only pass them on.

use ureq::http::{HeaderName, HeaderValue, Method, Request, header::AUTHORIZATION};

use super::{Client, ClientError};

/// The most bytes of an answer: rules with the longest lists there may be.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// `GET`, `PUT`, `POST`.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Beyond those that say who asks.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What is sent.
    pub body: Vec<u8>,
}

impl Exchange {
    /// Bytes to be taken.
    pub fn post(path: &str, body: Vec<u8>) -> Self {
        Self {
            method: Method::POST,
            path: path.to_owned(),
            headers: Vec::new(),
            body,
        }
    }
}

/// What was answered.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Client {
    /// Asks, and takes the answer as it is, whatever its status.
    pub fn exchange(&self, asked: Exchange) -> Result<Answered, ClientError> {
        let mut request = Request::builder()
            .method(asked.method)
            .uri(self.at(&asked.path));
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        for (name, value) in asked.headers {
            request = request.header(name, value);
        }
        let request = request.body(asked.body);
        let request = request.map_err(|_| ClientError::Url {
            url: self.url.clone(),
        })?;
        let response = self.reached(self.agent.run(request))?;
        let (parts, mut body) = response.into_parts();
        let body = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let headers = parts.headers.iter();
        Ok(Answered {
            status: parts.status.as_u16(),
            headers: headers
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            body: self.reached(body)?,
        })
    }
}
