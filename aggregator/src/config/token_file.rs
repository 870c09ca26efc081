//! The token file: which tokens there are, each as its hash. Made to be edited by
//! hand with what `weir token new` prints.

use std::{num::NonZeroU32, path::Path};

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::{ConfigError, yaml};
use crate::auth::{Digest, Holder, Name, Rights, TOKENS_MAX, Tokens};

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    tokens: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Name,
    tenant: Name,
    rights: Rights,
    sha256: Digest,
    requests_per_second: Option<NonZeroU32>,
}

/// The tokens in a file's bytes; messages call it `file`. A file that says
/// nothing is refused: whoever empties it by mistake keeps everyone out.
pub(crate) fn parse(bytes: &[u8], file: &Path) -> Result<Tokens, ConfigError> {
    let read: Option<TokenFile> = yaml::parse(bytes, file)?;
    let entries = read.map(|file| file.tokens).unwrap_or_default();
    let wrong = |place: usize, what: String| {
        let at = entries.get(place).map(|entry| entry.referenced);
        yaml::wrong_at(file, at, what)
    };
    if entries.is_empty() {
        let what = "tokens: there are none; `weir token new` makes one and prints its entry";
        return Err(wrong(0, what.to_owned()));
    }
    if entries.len() > TOKENS_MAX {
        let what = format!("tokens: at most {TOKENS_MAX} of them, here begins one more");
        return Err(wrong(TOKENS_MAX, what));
    }
    let holders = entries.iter().map(|entry| entry.value.to_holder());
    Tokens::new(holders.collect())
        .map_err(|error| wrong(error.place(), format!("tokens[{}]: {error}", error.place())))
}

impl Entry {
    fn to_holder(&self) -> Holder {
        Holder {
            name: self.name.clone(),
            tenant: self.tenant.clone(),
            rights: self.rights.clone(),
            requests_per_second: self.requests_per_second,
            digest: self.sha256,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Right, Token};

    fn entry(name: &str, token: &str) -> String {
        let sha256 = Digest::of(token.as_bytes());
        format!(
            "  - name: {name}\n    tenant: t\n    rights: [sync, read]\n    sha256: \"{sha256}\"\n"
        )
    }

    fn read(text: &str) -> Result<Tokens, String> {
        parse(text.as_bytes(), Path::new("tokens.yaml")).map_err(|error| error.to_string())
    }

    #[test]
    fn an_entry_says_who_may_do_what() {
        let text = format!("tokens:\n{}    requests_per_second: 7\n", entry("a", "one"));
        let tokens = read(&text).unwrap();
        let holder = tokens.holder(b"one").unwrap();
        assert_eq!((holder.name.as_str(), holder.tenant.as_str()), ("a", "t"));
        assert!(holder.rights.contains(Right::Read) && !holder.rights.contains(Right::Check));
        assert_eq!(holder.requests_per_second, NonZeroU32::new(7));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_field_and_place() {
        let good = format!("tokens:\n{}", entry("a", "one"));
        let two = format!("{good}{}", entry("b", "one"));
        for (text, place, part) in [
            (good.replace("tenant", "tennant"), "3:5", "tennant"),
            (good.replace("read", "reed"), "4:20", "expected a right"),
            (good.replace("[sync, read]", "[]"), "4:", "one or more"),
            (good.replace(": a\n", ": a b\n"), "2:11", "expected a name"),
            (
                good.replace("\"\n", "0\"\n"),
                "5:",
                "sha256: expected the SHA-256",
            ),
            (
                good.replace("tenant: t", "requests_per_second: 0"),
                "3:",
                "requests_per_second",
            ),
            (two, "6:5", "same sha256 as tokens[0]"),
            ("tokens: []\n".to_owned(), "", "weir token new"),
            ("# nothing\n".to_owned(), "", "weir token new"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(
                error.starts_with(&format!("tokens.yaml:{place}")),
                "{error}"
            );
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_token_where_its_hash_should_be_is_not_repeated() {
        let token = Token::random().unwrap();
        let token = token.reveal();
        let good = format!("tokens:\n{}", entry("a", "one"));
        let hash = Digest::of(b"one").to_string();
        for text in [
            good.replace(&hash, token),
            good.replace("tenant: t", &format!("tenant: {token}{token}")),
            good.replace("tenant: t", &format!("{token}: t")),
            good.replace("sync", token),
            format!("tokens: {token}\n"),
            format!("{token}\n"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(!error.contains(&token[..20]), "{error}");
        }
    }
}
