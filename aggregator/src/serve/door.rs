//! Tokens and certificates: read before the service starts, and looked after while
//! it runs.

use std::sync::Arc;

use tokio::task::JoinHandle;

use super::{
    ServeError,
    gate::{Gate, TokenFile},
    http::{Tls, TlsContents},
    metrics::Metrics,
};
use crate::config::Config;

/// What stands between the network and the service.
pub(super) struct Door {
    pub(super) gate: Arc<Gate>,
    /// With what was read at start.
    token_file: Option<(TokenFile, Vec<u8>)>,
    tls: Option<(Arc<Tls>, TlsContents)>,
}

impl Door {
    /// Reads what the configuration names.
    pub(super) fn open(config: &Config) -> Result<Self, ServeError> {
        let rate = config.limits.tenant_requests_per_second_max;
        let (gate, token_file) = match config.token_file.clone().map(TokenFile::new) {
            None => (Gate::new(None, rate), None),
            Some(file) => {
                let (bytes, tokens) = file.load().map_err(ServeError::Tokens)?;
                (Gate::new(Some(tokens), rate), Some((file, bytes)))
            }
        };
        let timeout = config.limits.handshake_timeout;
        let tls = config.tls.clone().map(|files| Tls::load(files, timeout));
        let tls = tls.transpose()?;
        Ok(Self {
            gate: Arc::new(gate),
            token_file,
            tls: tls.map(|(tls, contents)| (Arc::new(tls), contents)),
        })
    }

    /// What TLS is spoken with, if it is.
    pub(super) fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.as_ref().map(|(tls, _)| Arc::clone(tls))
    }

    /// Takes over every change of the files from now on, until aborted.
    pub(super) fn watch(self, metrics: &Arc<Metrics>) -> Vec<JoinHandle<()>> {
        let mut watches = Vec::new();
        if let Some((file, bytes)) = self.token_file {
            let (gate, metrics) = (Arc::clone(&self.gate), Arc::clone(metrics));
            watches.push(tokio::spawn(file.keep_in_force(bytes, gate, metrics)));
        }
        if let Some((tls, contents)) = self.tls {
            let metrics = Arc::clone(metrics);
            watches.push(tokio::spawn(tls.keep_in_force(contents, metrics)));
        }
        watches
    }
}
