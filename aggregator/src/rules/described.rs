//! A request that somebody describes in words.

use std::net::IpAddr;

use limiter::{
    request::Request,
    rule::{Attribute, AttributeError},
    ruleset::RuleSet,
};

/// A request as it was described.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// The method.
    pub method: String,
    /// The host, with its port if it was given.
    pub host: String,
    /// The path with its query.
    pub path: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// Who is at the other end of the connection; then the client, proxies that
    /// are trusted seen past.
    pub address: Option<IpAddr>,
    /// What its host knows of it.
    pub attributes: Vec<(Attribute, String)>,
}

/// Why a description is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescribedError {
    /// Not a method and a path.
    #[error("request: expected a method and a path or URL, as in 'POST /v1/x?y=z', got {0:?}")]
    Request(String),
    /// Not a header.
    #[error("header: expected a name, a colon and a value, as in 'x-api-key: 8fa3', got {0:?}")]
    Header(String),
    /// Not an attribute.
    #[error("attribute: {error}; as in 'country=DE', got {got:?}")]
    Attribute {
        /// What is wrong.
        error: AttributeError,
        /// What was given.
        got: String,
    },
}

impl Described {
    /// Reads `POST /v1/x` or `POST https://host/v1/x`, headers as `name: value`, and
    /// the address of whoever connects. A header `host` is the host.
    pub fn new(
        request: &str,
        headers: &[String],
        address: Option<IpAddr>,
    ) -> Result<Self, DescribedError> {
        let wrong = || DescribedError::Request(request.to_owned());
        let (method, target) = request.trim().split_once(' ').ok_or_else(wrong)?;
        let target = target.trim();
        let (host, path) = match target.split_once("://") {
            Some((_, rest)) => match rest.find('/') {
                Some(slash) => rest.split_at_checked(slash).ok_or_else(wrong)?,
                None => (rest, "/"),
            },
            None => ("", target),
        };
        if method.is_empty() || !(path.starts_with('/') || path == "*") || path.contains(' ') {
            return Err(wrong());
        }
        let mut described = Self {
            method: method.into(),
            host: host.into(),
            path: path.into(),
            headers: Vec::new(),
            address,
            attributes: Vec::new(),
        };
        headers
            .iter()
            .try_for_each(|header| described.add(header))?;
        Ok(described)
    }

    /// The same request, and what its host knows of it, as `country=DE`.
    pub fn with_attributes(mut self, attributes: &[String]) -> Result<Self, DescribedError> {
        for text in attributes {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            let wrong = |error| DescribedError::Attribute {
                error,
                got: text.clone(),
            };
            let attribute = name.trim().parse().map_err(wrong)?;
            self.attributes.push((attribute, value.trim().to_owned()));
        }
        Ok(self)
    }

    fn add(&mut self, header: &str) -> Result<(), DescribedError> {
        let split = header
            .split_once(':')
            .filter(|(name, _)| !name.trim().is_empty());
        let (name, value) = split.ok_or_else(|| DescribedError::Header(header.to_owned()))?;
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
        match &*name {
            "host" => self.host = value,
            _ => self.headers.push((name, value)),
        }
        Ok(())
    }

    /// The same request, its address that of the client as these rules see it.
    pub(super) fn seen_by(&self, rules: &RuleSet) -> Self {
        let forwarded = Request::header(self, "x-forwarded-for").unwrap_or_default();
        let address = self
            .address
            .map(|peer| rules.client_address(peer, forwarded));
        Self {
            address,
            ..self.clone()
        }
    }
}

impl Request for Described {
    fn method(&self) -> &[u8] {
        self.method.as_bytes()
    }

    fn host(&self) -> &[u8] {
        self.host.as_bytes()
    }

    fn path(&self) -> &[u8] {
        self.path.as_bytes()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_bytes())
    }

    fn address(&self) -> Option<IpAddr> {
        self.address
    }

    fn attribute(&self, attribute: &Attribute) -> Option<&[u8]> {
        let found = self.attributes.iter().find(|(known, _)| known == attribute);
        found.map(|(_, value)| value.as_bytes())
    }
}
