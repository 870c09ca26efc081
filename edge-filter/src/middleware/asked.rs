//! A request, and a response, as the shared logic sees them.

use core::net::{IpAddr, SocketAddr};

use limiter::edge::Answered;
use limiter::rule::Attribute;
use limiter::time::Timestamp;

use super::exports::types::{Fields, Method, Request, Response};
use super::variables::Variables;
use crate::claims::claim;
use crate::pairs;
use crate::request::Host;

/// The request at hand.
pub(super) struct Asked<'a> {
    pub(super) request: &'a Request,
    pub(super) headers: &'a Fields,
    pub(super) variables: &'a Variables,
    pub(super) now: Timestamp,
}

impl Asked<'_> {
    fn method(&self) -> String {
        let method = match self.request.get_method() {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Connect => "CONNECT",
            Method::Options => "OPTIONS",
            Method::Trace => "TRACE",
            Method::Patch => "PATCH",
            Method::Other(name) => return name,
        };
        method.to_owned()
    }

    /// The host that was asked for: as HTTP/2 says it, or as a header.
    fn authority(&self) -> Vec<u8> {
        let said = self.request.get_authority().map(String::into_bytes);
        said.or_else(|| first(self.headers, "host"))
            .unwrap_or_default()
    }

    fn path(&self) -> Vec<u8> {
        let path = self.request.get_path_with_query();
        path.map(String::into_bytes).unwrap_or_default()
    }
}

impl Host for Asked<'_> {
    fn headers(&self) -> Vec<u8> {
        let mut all: Vec<(String, Vec<u8>)> = vec![
            (":method".to_owned(), self.method().into_bytes()),
            (":authority".to_owned(), self.authority()),
            (":path".to_owned(), self.path()),
        ];
        all.extend(self.headers.copy_all());
        pairs::encode(&all)
    }

    fn header(&self, name: &str) -> Option<Vec<u8>> {
        match name {
            ":method" => Some(self.method().into_bytes()),
            ":authority" => Some(self.authority()),
            ":path" => Some(self.path()),
            name => first(self.headers, name),
        }
    }

    /// With the port that it may not have here, as other hosts tell it.
    fn peer(&self) -> Option<Vec<u8>> {
        let said = first(self.headers, self.variables.client_address.as_deref()?)?;
        let said = str::from_utf8(said.trim_ascii()).ok()?;
        let with_port = || Some(SocketAddr::new(said.parse::<IpAddr>().ok()?, 0));
        let address = said.parse::<SocketAddr>().ok().or_else(with_port)?;
        Some(address.to_string().into_bytes())
    }

    fn attribute(&self, attribute: &Attribute) -> Option<Vec<u8>> {
        let header = self.variables.config.attributes.header(attribute)?;
        let value = first(self.headers, header)?;
        match attribute {
            Attribute::Jwt(name) => claim(&value, name),
            Attribute::Country | Attribute::Asn | Attribute::Ja4 => Some(value),
        }
    }

    fn now(&self) -> Timestamp {
        self.now
    }
}

/// The response at hand.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Fields,
}

impl Answer {
    pub(super) fn of(response: &Response) -> Self {
        Self {
            status: response.get_status_code(),
            headers: response.get_headers(),
        }
    }
}

impl Answered for Answer {
    fn status(&self) -> u16 {
        self.status
    }

    fn header(&self, name: &str) -> Option<Vec<u8>> {
        first(&self.headers, name)
    }
}

/// A header's value, by its lower-case name; the first of several.
pub(super) fn first(headers: &Fields, name: &str) -> Option<Vec<u8>> {
    headers.get(name).into_iter().next()
}
