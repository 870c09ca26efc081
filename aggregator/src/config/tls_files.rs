//! The files that TLS needs: a certificate with its key, or none of it.

use std::path::PathBuf;

use super::{ConfigError, Settings};

/// Where certificates and keys are, each a PEM file.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The service's certificate, and the chain that leads to its authority.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Who signs the clients' certificates; without it they show none.
    pub client_ca: Option<PathBuf>,
}

impl TlsFiles {
    pub(super) fn of(settings: &Settings) -> Result<Option<Self>, ConfigError> {
        let incomplete = |field, needs| Err(ConfigError::Incomplete { field, needs });
        match (&settings.tls_cert, &settings.tls_key) {
            (Some(cert), Some(key)) => Ok(Some(Self {
                cert: cert.clone(),
                key: key.clone(),
                client_ca: settings.tls_client_ca.clone(),
            })),
            (Some(_), None) => incomplete("tls_cert", "tls_key"),
            (None, Some(_)) => incomplete("tls_key", "tls_cert"),
            (None, None) if settings.tls_client_ca.is_some() => {
                incomplete("tls_client_ca", "tls_cert and tls_key")
            }
            (None, None) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_it_is_refused_with_what_is_missing() {
        let key = Settings {
            tls_key: Some("key.pem".into()),
            ..Settings::default()
        };
        let ca = Settings {
            tls_client_ca: Some("ca.pem".into()),
            ..Settings::default()
        };
        for (settings, needs) in [(key, "tls_cert"), (ca, "tls_cert and tls_key")] {
            let error = TlsFiles::of(&settings).unwrap_err().to_string();
            assert!(error.ends_with(&format!("needs {needs}, too")), "{error}");
        }
        assert!(TlsFiles::of(&Settings::default()).unwrap().is_none());
    }
}
