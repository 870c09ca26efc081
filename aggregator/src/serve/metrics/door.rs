//! What is counted about who comes in, and who does not.

use prometheus_client::metrics::{counter::Counter, family::Family};

use super::{Label, Maker};

/// Metrics of connections, tokens and certificates.
pub(in crate::serve) struct DoorMetrics {
    connections: Family<Label, Counter>,
    requests: Family<Label, Counter>,
    pub(in crate::serve) token_files_refused: Counter,
    pub(in crate::serve) tls_files_refused: Counter,
}

impl DoorMetrics {
    pub(super) fn new(m: &mut Maker) -> Self {
        Self {
            connections: m.of(
                "connections_refused",
                "Connections that were closed before a request, by reason",
            ),
            requests: m.of(
                "requests_refused",
                "Requests that were refused for who sent them or how many, by reason",
            ),
            token_files_refused: m.of(
                "token_files_refused",
                "Token files that were refused, the old tokens staying",
            ),
            tls_files_refused: m.of(
                "tls_files_refused",
                "Certificates and keys that were refused, the old ones staying",
            ),
        }
    }

    /// Takes note of a connection that was closed.
    pub(in crate::serve) fn count_connection(&self, reason: &str) {
        let labels = [("reason", reason.to_owned())];
        self.connections.get_or_create(&labels).inc();
    }

    /// Takes note of a request that was refused.
    pub(in crate::serve) fn count_request(&self, reason: &str) {
        let labels = [("reason", reason.to_owned())];
        self.requests.get_or_create(&labels).inc();
    }
}
