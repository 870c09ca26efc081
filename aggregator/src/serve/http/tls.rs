//! TLS: certificates from files, read again whenever they change, and handshakes
//! that end in time.
//!
//! A change of files is taken whole or not at all: a certificate whose key has not
//! come yet does not match, and the old pair stays. Connections that are open keep
//! what they began with; new ones get what is new.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, RootCertStore, ServerConfig,
        crypto::CryptoProvider,
        crypto::ring::default_provider,
        pki_types::{
            CertificateDer, PrivateKeyDer,
            pem::{self, PemObject},
        },
        server::{VerifierBuilderError, WebPkiClientVerifier},
    },
    server::TlsStream,
};

use crate::{
    chain::chain,
    config::{ConfigError, TlsFiles, yaml},
    serve::{
        metrics::Metrics,
        watched::{LOOK_EVERY, Watch},
    },
};

/// What is spoken inside, the preferred first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The first byte of every TLS connection.
const HANDSHAKE: u8 = 0x16;

/// The certificates in force.
pub(in crate::serve) struct Tls {
    files: TlsFiles,
    handshake_timeout: Duration,
    config: RwLock<Arc<ServerConfig>>,
}

/// What stands in the files: certificate, key, and clients' authority.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::serve) struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

/// Why TLS cannot be spoken with these files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is not there, or cannot be read.
    #[error(transparent)]
    Read(#[from] ConfigError),
    /// A file is not PEM, or has nothing of what it should have.
    #[error("{} has no {what} in PEM", file.display())]
    Pem {
        /// The file.
        file: PathBuf,
        /// What should be in it.
        what: &'static str,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// Certificate and key are of no use, or not together.
    #[error("{} and {} are not a certificate and its key", cert.display(), key.display())]
    Pair {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What is wrong with them.
        source: rustls::Error,
    },
    /// An authority's certificate cannot be relied on.
    #[error("{} has a certificate that is no authority's", file.display())]
    Authority {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: rustls::Error,
    },
    /// There is no authority.
    #[error("clients' certificates cannot be checked")]
    Verifier(#[from] VerifierBuilderError),
}

impl Tls {
    /// Reads the files.
    pub(in crate::serve) fn load(
        files: TlsFiles,
        handshake_timeout: Duration,
    ) -> Result<(Self, Contents), TlsError> {
        let contents = read(&files)?;
        let config = RwLock::new(configure(&files, &contents)?);
        let tls = Self {
            files,
            handshake_timeout,
            config,
        };
        Ok((tls, contents))
    }

    /// Looks at the files for ever, `contents` being in force.
    pub(in crate::serve) async fn keep_in_force(
        self: Arc<Self>,
        contents: Contents,
        metrics: Arc<Metrics>,
    ) {
        let mut watch = Watch::new(contents);
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let configured = match watch.look(read(&self.files)) {
                Ok(None) => continue,
                Ok(Some(contents)) => configure(&self.files, contents),
                Err(error) => {
                    refused(&error.into(), &metrics);
                    continue;
                }
            };
            match configured {
                Ok(config) => {
                    *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
                    tracing::info!("the certificate is in force");
                }
                Err(error) => refused(&error, &metrics),
            }
            watch.settle();
        }
    }

    /// Speaks TLS with who has connected.
    pub(super) async fn accept(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, Refused> {
        let accepted = timeout(self.handshake_timeout, self.shake_hands(stream));
        accepted.await.unwrap_or(Err(Refused::Late))
    }

    fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    async fn shake_hands(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, Refused> {
        let mut first = [0];
        let there = stream.peek(&mut first).await.is_ok_and(|bytes| bytes > 0);
        if there && first != [HANDSHAKE] {
            return Err(Refused::NotTls(stream));
        }
        let acceptor = TlsAcceptor::from(self.config());
        acceptor.accept(stream).await.map_err(|error| {
            tracing::debug!(%error, "a handshake failed");
            Refused::Failed
        })
    }
}

/// Why TLS is not spoken with somebody.
pub(super) enum Refused {
    /// The handshake took too long.
    Late,
    /// It failed: a wrong certificate, say.
    Failed,
    /// This is no handshake. It may be HTTP.
    NotTls(TcpStream),
}

impl Refused {
    /// What it is counted under.
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::Late => "handshake_late",
            Self::Failed => "handshake_failed",
            Self::NotTls(_) => "not_tls",
        }
    }
}

fn refused(error: &TlsError, metrics: &Metrics) {
    metrics.door.tls_files_refused.inc();
    tracing::error!(
        error = chain(error),
        "the certificate is refused; the one before it stays"
    );
}

fn read(files: &TlsFiles) -> Result<Contents, ConfigError> {
    let client_ca = files.client_ca.as_deref().map(yaml::read);
    Ok(Contents {
        cert: yaml::read(&files.cert)?,
        key: yaml::read(&files.key)?,
        client_ca: client_ca.transpose()?,
    })
}

fn configure(files: &TlsFiles, contents: &Contents) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(default_provider());
    let pair = |source| TlsError::Pair {
        cert: files.cert.clone(),
        key: files.key.clone(),
        source,
    };
    let chain = certificates(&files.cert, &contents.cert)?;
    let key = PrivateKeyDer::from_pem_slice(&contents.key)
        .map_err(|source| no_pem(&files.key, "private key", source))?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(pair)?;
    let builder = match files
        .client_ca
        .as_deref()
        .zip(contents.client_ca.as_deref())
    {
        None => builder.with_no_client_auth(),
        Some((file, bytes)) => {
            let roots = Arc::new(authorities(file, bytes)?);
            builder.with_client_cert_verifier(verifier(roots, provider)?)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(pair)?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    Ok(Arc::new(config))
}

fn verifier(
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, VerifierBuilderError> {
    WebPkiClientVerifier::builder_with_provider(roots, provider).build()
}

fn authorities(file: &Path, bytes: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file, bytes)? {
        let added = roots.add(certificate);
        added.map_err(|source| TlsError::Authority {
            file: file.to_owned(),
            source,
        })?;
    }
    Ok(roots)
}

fn certificates(file: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let wrong = |source| no_pem(file, "certificate", source);
    match read {
        Ok(none) if none.is_empty() => Err(wrong(pem::Error::NoItemsFound)),
        read => read.map_err(wrong),
    }
}

fn no_pem(file: &Path, what: &'static str, source: pem::Error) -> TlsError {
    TlsError::Pem {
        file: file.to_owned(),
        what,
        source,
    }
}
