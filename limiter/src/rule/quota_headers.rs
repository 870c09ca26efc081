//! Which headers tell a client of its quota, and on which answers.

/// Which headers, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaHeaders {
    /// Which.
    pub form: HeaderForm,
    /// On which answers.
    pub when: TellWhen,
}

/// Which headers tell a client of its quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderForm {
    /// `RateLimit` and `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers).
    #[default]
    Draft,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, as Envoy has them (an earlier
    /// draft, -03).
    XRateLimit,
    /// All of them.
    Both,
    /// None.
    None,
}

/// On which answers a client is told of its quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TellWhen {
    /// Where it is denied.
    #[default]
    Denied,
    /// Where it is allowed, too.
    Always,
}

impl QuotaHeaders {
    /// Whether a client that is allowed is told, too.
    pub fn on_allowed(self) -> bool {
        self.when == TellWhen::Always && self.form != HeaderForm::None
    }
}
