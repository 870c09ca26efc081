//! The service as its clients on the command line see it: a request, and its
//! answer or why there is none.

use std::{io, path::PathBuf, time::Duration};

use serde_json::Value;
use ureq::{
    Agent, RequestBuilder,
    http::Response,
    typestate::{WithBody, WithoutBody},
};

mod download;
mod events;
mod exchange;
mod problem;
mod tls;

pub use download::Download;
pub use events::Events;
pub use exchange::{Answered, Exchange};
pub use problem::Problem;

/// How long it may take to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections that are kept to be used again.
const KEPT: usize = 16;

/// How long an answer may take, a second more than the service lets itself.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(11);

/// Asks a service.
pub struct Client {
    agent: Agent,
    url: String,
    bearer: Option<String>,
}

/// Where a service is, and as whom to ask it.
pub struct Target {
    /// `http://` or `https://`, host and port.
    pub url: String,
    /// The bearer token.
    pub token: Option<String>,
    /// The authority (PEM) to trust in place of the usual ones.
    pub ca: Option<PathBuf>,
    /// The certificate to show, with its chain, and its key (both PEM).
    pub cert: Option<(PathBuf, PathBuf)>,
}

/// Why there is no answer to go on with.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A file with a certificate or a key is of no use.
    #[error("cannot read {}", file.display())]
    Pem {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// The URL is not one.
    #[error("{url:?} is not the URL of a service; expected one as in http://127.0.0.1:8080")]
    Url {
        /// What was given.
        url: String,
    },
    /// Nobody answered. Whether the request was done is not known.
    #[error("cannot reach {url}")]
    Unreachable {
        /// The service.
        url: String,
        /// What is in the way.
        source: ureq::Error,
    },
    /// The service answered that it does not do it.
    #[error(transparent)]
    Refused(#[from] Problem),
    /// What answered is not the service, or another version of it.
    #[error("{url} answers, but not as weir does: {what}")]
    Strange {
        /// The service.
        url: String,
        /// What is strange.
        what: String,
    },
}

impl Client {
    /// A client that has not connected yet.
    pub fn new(target: Target) -> Result<Self, ClientError> {
        Self::with_patience(target, CONNECT_TIMEOUT, ANSWER_TIMEOUT)
    }

    /// The same, that waits no longer than this to connect, and for an answer.
    pub fn with_patience(
        target: Target,
        connect: Duration,
        answer: Duration,
    ) -> Result<Self, ClientError> {
        let url = target.url.trim_end_matches('/').to_owned();
        let host = url
            .strip_prefix("http://")
            .or_else(|| url.strip_prefix("https://"));
        if host.is_none_or(|host| host.is_empty() || host.contains('/')) {
            return Err(ClientError::Url { url });
        }
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(connect))
            .timeout_recv_response(Some(answer))
            .max_idle_connections_per_host(KEPT)
            .tls_config(tls::config(target.ca.as_deref(), target.cert.as_ref())?)
            .build()
            .new_agent();
        Ok(Self {
            agent,
            url,
            bearer: target.token.map(|token| format!("Bearer {token}")),
        })
    }

    /// Asks for what is at a path.
    pub fn get(&self, path: &str) -> Result<Value, ClientError> {
        let request = self.agent.get(self.at(path));
        self.answer(self.with_token(request).call())
    }

    /// Sends a JSON body to a path.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.post_if(path, body, None)
    }

    /// Asks for the text at a path.
    pub fn text(&self, path: &str) -> Result<String, ClientError> {
        let request = self.with_token(self.agent.get(self.at(path)));
        let mut response = self.reached(request.call())?;
        if response.status().is_success() {
            return self.reached(response.body_mut().read_to_string());
        }
        match self.read(response) {
            Ok(_) => Err(self.strange("neither a text nor an error")),
            Err(error) => Err(error),
        }
    }

    /// Puts a text in the place of what is at a path; if `if_match` is said, only in
    /// that of the version with this tag.
    pub fn put(
        &self,
        path: &str,
        text: &[u8],
        if_match: Option<&str>,
    ) -> Result<Value, ClientError> {
        let request = self.with_body(self.agent.put(self.at(path)), if_match);
        self.answer(request.send(text))
    }

    /// Sends a JSON body to a path; if `if_match` is said, for the version with this
    /// tag only.
    pub fn post_if(
        &self,
        path: &str,
        body: &Value,
        if_match: Option<&str>,
    ) -> Result<Value, ClientError> {
        let request = self.with_body(self.agent.post(self.at(path)), if_match);
        let request = request.header("content-type", "application/json");
        self.answer(request.send(body.to_string()))
    }

    /// What happens at a path, as it happens.
    pub fn events(&self, path: &str) -> Result<Events, ClientError> {
        let request = self.with_token(self.agent.get(self.at(path)));
        let response = self.reached(request.header("accept", "text/event-stream").call())?;
        if response.status().is_success() {
            return Ok(Events::new(&self.url, response.into_body().into_reader()));
        }
        match self.read(response) {
            Ok(_) => Err(self.strange("neither events nor an error")),
            Err(error) => Err(error),
        }
    }

    /// What is at a path, however long it is.
    pub fn download(&self, path: &str) -> Result<Download, ClientError> {
        let request = self.with_token(self.agent.get(self.at(path)));
        let response = self.reached(request.call())?;
        if response.status().is_success() {
            let bytes = response.body().content_length();
            let bytes = bytes.ok_or_else(|| self.strange("it does not say how much there is"))?;
            return Ok(Download::new(response.into_body().into_reader(), bytes));
        }
        match self.read(response) {
            Ok(_) => Err(self.strange("neither what was asked for nor an error")),
            Err(error) => Err(error),
        }
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn with_token(&self, request: RequestBuilder<WithoutBody>) -> RequestBuilder<WithoutBody> {
        match &self.bearer {
            Some(bearer) => request.header("authorization", bearer),
            None => request,
        }
    }

    fn with_body(
        &self,
        mut request: RequestBuilder<WithBody>,
        if_match: Option<&str>,
    ) -> RequestBuilder<WithBody> {
        if let Some(bearer) = &self.bearer {
            request = request.header("authorization", bearer);
        }
        if let Some(tag) = if_match {
            request = request.header("if-match", tag);
        }
        request
    }

    fn answer(
        &self,
        called: Result<Response<ureq::Body>, ureq::Error>,
    ) -> Result<Value, ClientError> {
        self.read(self.reached(called)?)
    }

    fn reached<T>(&self, called: Result<T, ureq::Error>) -> Result<T, ClientError> {
        called.map_err(|source| match source {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => ClientError::Url {
                url: self.url.clone(),
            },
            source => ClientError::Unreachable {
                url: self.url.clone(),
                source,
            },
        })
    }

    fn read(&self, response: Response<ureq::Body>) -> Result<Value, ClientError> {
        let status = response.status();
        let bytes = self.reached(response.into_body().read_to_vec())?;
        let value: Option<Value> = serde_json::from_slice(&bytes).ok();
        if status.is_success() {
            return value.ok_or_else(|| self.strange("the answer is not JSON"));
        }
        let problem = value.and_then(|value| Problem::read(&value));
        match problem {
            Some(problem) => Err(problem.into()),
            None => Err(self.strange(&format!("status {status}"))),
        }
    }

    fn strange(&self, what: &str) -> ClientError {
        ClientError::Strange {
            url: self.url.clone(),
            what: what.to_owned(),
        }
    }
}

/// A name as one part of a path.
pub fn segment(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text += &format!("%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path_whatever_is_in_it() {
        assert_eq!(segment("a/b c?é"), "a%2Fb%20c%3F%C3%A9");
        assert_eq!(segment("seats-1_x.y~"), "seats-1_x.y~");
    }

    #[test]
    fn what_is_no_url_of_a_service_is_said_before_anything_is_sent() {
        for url in ["", "127.0.0.1:8080", "ftp://x", "http://", "http://x/v1"] {
            let target = Target {
                url: url.to_owned(),
                token: None,
                ca: None,
                cert: None,
            };
            let refused = Client::new(target).map(|_| ()).unwrap_err();
            assert!(matches!(refused, ClientError::Url { .. }), "{url}");
        }
    }
}
