//! YAML into settings, and every error with its place. Nothing that looks like a
//! token is repeated in one.

use std::{fs::File, io::Read, path::Path};

use serde::de::DeserializeOwned;
use serde_saphyr::Location;

use super::ConfigError;
use crate::auth::hide_tokens;

/// The most bytes of a file.
const FILE_LEN_MAX: u64 = 4 << 20;

/// The bytes of a file, of which there is a limit.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, ConfigError> {
    let unread = |source| ConfigError::Read {
        file: file.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(unread)?;
    let mut bounded = opened.take(FILE_LEN_MAX + 1);
    bounded.read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > FILE_LEN_MAX {
        let what = format!("longer than {FILE_LEN_MAX} bytes, the most it may have");
        return Err(wrong(file, 1, 1, what));
    }
    Ok(bytes)
}

/// What the bytes say; none if that is nothing at all.
pub(super) fn parse<T: DeserializeOwned>(
    bytes: &[u8],
    file: &Path,
) -> Result<Option<T>, ConfigError> {
    let text = str::from_utf8(bytes).map_err(|_| wrong(file, 1, 1, "not UTF-8".to_owned()))?;
    let nothing = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(nothing) {
        return Ok(None);
    }
    let read = serde_saphyr::from_str(text).map(Some);
    read.map_err(|error| {
        let place = error.location();
        let what = without_place(&error.without_snippet().to_string());
        let line = place.map_or(1, |at| at.line());
        wrong_at(file, place, with_field(text, line, &what))
    })
}

/// What is wrong at a place; without one, with the file as a whole.
pub(super) fn wrong_at(file: &Path, place: Option<Location>, what: String) -> ConfigError {
    let (line, column) = place.map_or((1, 1), |at| (at.line(), at.column()));
    wrong(file, line, column, what)
}

fn wrong(file: &Path, line: u64, column: u64, what: String) -> ConfigError {
    ConfigError::Parse {
        file: file.display().to_string(),
        line,
        column,
        what: hide_tokens(&what),
    }
}

/// The message without the place that the parser puts after it.
fn without_place(message: &str) -> String {
    let end = message.rfind(" at line ").unwrap_or(message.len());
    message.get(..end).unwrap_or(message).to_owned()
}

/// The message with the field whose line it is, unless it names it itself.
fn with_field(text: &str, line: u64, what: &str) -> String {
    let before = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    let line = text.lines().nth(before).unwrap_or_default().trim_start();
    let field = line.trim_start_matches("- ").split_once(':');
    let word = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match field {
        Some((field, _)) if word(field) && !what.contains(field) => format!("{field}: {what}"),
        _ => what.to_owned(),
    }
}
