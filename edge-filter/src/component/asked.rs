//! A request as the interface has it, for the rules to look at; and a response.

use core::cell::OnceCell;
use core::net::{IpAddr, SocketAddr};

use limiter::edge::Answered;
use limiter::rule::Attribute;
use limiter::ruleset::RuleSet;

use super::exports::types;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The request at hand under some rules.
pub(super) struct Asked<'a> {
    request: &'a types::Request,
    rules: &'a RuleSet,
    address: OnceCell<Option<IpAddr>>,
}

impl<'a> Asked<'a> {
    pub(super) const fn new(request: &'a types::Request, rules: &'a RuleSet) -> Self {
        Self {
            request,
            rules,
            address: OnceCell::new(),
        }
    }

    /// The peer, seen past trusted proxies.
    fn client(&self) -> Option<IpAddr> {
        let peer = self.request.peer.as_deref()?;
        let with_port = || peer.parse::<SocketAddr>().ok();
        let address = with_port().map(|address| address.ip());
        let address = address.or_else(|| peer.parse().ok())?;
        if self.rules.trusted_proxies.is_empty() {
            return Some(address.to_canonical());
        }
        let headers = self.request.headers.iter();
        let lists = headers.filter(|(name, _)| name == FORWARDED_FOR);
        let lists: Vec<&[u8]> = lists.map(|(_, value)| &**value).collect();
        Some(self.rules.client_address(address, &lists.join(&b","[..])))
    }
}

impl limiter::request::Request for Asked<'_> {
    fn method(&self) -> &[u8] {
        &self.request.method
    }

    fn host(&self) -> &[u8] {
        &self.request.host
    }

    fn path(&self) -> &[u8] {
        &self.request.path
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        first(&self.request.headers, |known| known == name)
    }

    fn address(&self) -> Option<IpAddr> {
        *self.address.get_or_init(|| self.client())
    }

    fn attribute(&self, attribute: &Attribute) -> Option<&[u8]> {
        first(&self.request.attributes, |known| names(known, attribute))
    }
}

impl Answered for types::Response {
    fn status(&self) -> u16 {
        self.status
    }

    fn header(&self, name: &str) -> Option<Vec<u8>> {
        first(&self.headers, |known| known == name).map(<[u8]>::to_vec)
    }
}

/// Whether this is the attribute's name, as rules have it.
fn names(known: &str, attribute: &Attribute) -> bool {
    match attribute {
        Attribute::Country => known == "country",
        Attribute::Asn => known == "asn",
        Attribute::Ja4 => known == "ja4",
        Attribute::Jwt(claim) => known.strip_prefix("jwt.") == Some(claim),
    }
}

fn first(values: &[(String, Vec<u8>)], is: impl Fn(&str) -> bool) -> Option<&[u8]> {
    let found = values.iter().find(|(name, _)| is(name));
    found.map(|(_, value)| &**value)
}
