//! The token file: read at start, and again whenever it changes. One that is
//! wrong is refused whole, and the tokens before it stay.

use std::{path::PathBuf, sync::Arc};

use super::Gate;
use crate::{
    auth::Tokens,
    chain::chain,
    config::{ConfigError, token_file, yaml},
    serve::{
        metrics::Metrics,
        watched::{LOOK_EVERY, Watch},
    },
};

/// A token file on disk.
#[derive(Debug)]
pub(in crate::serve) struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    pub(in crate::serve) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The tokens in it, and the bytes that said so.
    pub(in crate::serve) fn load(&self) -> Result<(Vec<u8>, Tokens), ConfigError> {
        let bytes = yaml::read(&self.path)?;
        let tokens = token_file::parse(&bytes, &self.path)?;
        Ok((bytes, tokens))
    }

    /// Looks at the file for ever, `bytes` being in force.
    pub(in crate::serve) async fn keep_in_force(
        self,
        bytes: Vec<u8>,
        gate: Arc<Gate>,
        metrics: Arc<Metrics>,
    ) {
        let mut watch = Watch::new(bytes);
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let read = match watch.look(yaml::read(&self.path)) {
                Ok(None) => continue,
                Ok(Some(bytes)) => token_file::parse(bytes, &self.path),
                Err(error) => {
                    refused(&error, &metrics);
                    continue;
                }
            };
            match read {
                Ok(tokens) => {
                    let count = tokens.holders().count();
                    gate.set_tokens(tokens);
                    tracing::info!(tokens = count, "the token file is in force");
                }
                Err(error) => refused(&error, &metrics),
            }
            watch.settle();
        }
    }
}

fn refused(error: &ConfigError, metrics: &Metrics) {
    metrics.door.token_files_refused.inc();
    tracing::error!(
        error = chain(error),
        "the token file is refused; the tokens before it stay"
    );
}
