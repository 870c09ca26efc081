//! `weir token`: makes tokens. Only their hashes are ever kept.

use std::{fmt::Write, num::NonZeroU32, process::ExitCode};

use clap::{Subcommand, ValueEnum};
use serde_json::json;

use super::{fail, print};
use crate::auth::{Name, Right, Rights, Token};

const NEW_EXAMPLES: &str = "\
Examples:
  weir token new --name edges --rights sync
  weir token new --name shop --tenant shop --rights check,count,read --format json

The token is the first line, and is shown this once. What follows is its entry:
append it to the token file (weir serve --token-file), which begins with the line
tokens: and is read again at once.";

/// What `weir token` takes.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a token, and the entry that lets it in
    #[command(after_help = NEW_EXAMPLES)]
    New {
        /// What it is called, in logs and answers
        #[arg(long)]
        name: Name,
        /// For whom it speaks: counters of one tenant are hidden from the others
        #[arg(long, default_value = "default")]
        tenant: Name,
        /// What it may do: sync (edges), check, count, read, rules, backup; one or more
        #[arg(long, value_delimiter = ',', required = true)]
        rights: Vec<Right>,
        /// The most requests it may send a second; without it, what its tenant may
        #[arg(long, value_name = "N")]
        requests_per_second: Option<NonZeroU32>,
        /// How to say it
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

/// How a token is printed.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Format {
    /// The token, then its entry
    #[default]
    Text,
    /// One object with both
    Json,
}

pub(super) fn run(command: Command) -> ExitCode {
    let Command::New {
        name,
        tenant,
        rights,
        requests_per_second,
        format,
    } = command;
    let rights = match Rights::new(rights) {
        Ok(rights) => rights,
        Err(error) => return fail(&error),
    };
    let token = match Token::random() {
        Ok(token) => token,
        Err(error) => return fail(&error),
    };
    let sha256 = token.digest().to_string();
    let text = match format {
        Format::Json => {
            let mut entry = json!({
                "name": name.as_str(), "tenant": tenant.as_str(), "rights": rights.names(), "sha256": sha256,
            });
            if let (Some(rate), Some(entry)) = (requests_per_second, entry.as_object_mut()) {
                entry.insert("requests_per_second".to_owned(), rate.get().into());
            }
            json!({ "token": token.reveal(), "entry": entry }).to_string()
        }
        Format::Text => {
            let mut text = format!(
                "{}\n\n  - name: {name}\n    tenant: {tenant}\n    rights: [{rights}]\n    sha256: \"{sha256}\"\n",
                token.reveal()
            );
            if let Some(rate) = requests_per_second {
                // Writing to a string does not fail.
                let _ = writeln!(text, "    requests_per_second: {rate}");
            }
            text
        }
    };
    print(&text);
    ExitCode::SUCCESS
}
