//! Whom the command trusts, and what it shows of itself.

use std::{
    io,
    path::{Path, PathBuf},
};

use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use super::ClientError;

/// TLS that trusts an authority in place of the usual ones, and shows a certificate.
pub(super) fn config(
    ca: Option<&Path>,
    cert: Option<&(PathBuf, PathBuf)>,
) -> Result<TlsConfig, ClientError> {
    let mut tls = TlsConfig::builder();
    if let Some(file) = ca {
        tls = tls.root_certs(RootCerts::new_with_certs(&certificates(file)?));
    }
    if let Some((cert, key)) = cert {
        let client = ClientCert::new_with_certs(&certificates(cert)?, private_key(key)?);
        tls = tls.client_cert(Some(client));
    }
    Ok(tls.build())
}

fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, ClientError> {
    let mut certificates = Vec::new();
    for item in items(file)? {
        if let PemItem::Certificate(certificate) = item {
            certificates.push(certificate);
        }
    }
    match certificates.is_empty() {
        true => Err(lacks(file, "certificate")),
        false => Ok(certificates),
    }
}

fn private_key(file: &Path) -> Result<PrivateKey<'static>, ClientError> {
    let key = items(file)?.into_iter().find_map(|item| match item {
        PemItem::PrivateKey(key) => Some(key),
        _ => None,
    });
    key.ok_or_else(|| lacks(file, "private key"))
}

fn items(file: &Path) -> Result<Vec<PemItem<'static>>, ClientError> {
    let bytes = std::fs::read(file).map_err(|source| unread(file, source))?;
    let items: Result<_, _> = parse_pem(&bytes).collect();
    items.map_err(|error| unread(file, io::Error::other(error)))
}

fn lacks(file: &Path, what: &str) -> ClientError {
    unread(file, io::Error::other(format!("there is no {what} in it")))
}

fn unread(file: &Path, source: io::Error) -> ClientError {
    ClientError::Pem {
        file: file.to_owned(),
        source,
    }
}
