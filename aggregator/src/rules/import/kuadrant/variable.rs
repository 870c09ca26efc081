//! What an expression names of a request.

use limiter::rule::{KeyPart, text};

use crate::rules::{
    import::{
        aws_waf::header,
        build::WHOLE_ADDRESS,
        entries::{Entries, Meaning},
        lexer::{Token, Tokens, Wrong},
        report::Draft,
    },
    key::Written,
};

/// Reads what stands at the next token, to its last index or field.
pub(super) fn read(
    tokens: &mut Tokens,
    entries: &Entries,
    draft: &mut Draft,
) -> Result<KeyPart, Wrong> {
    let Some(Token::Word(first)) = tokens.next() else {
        return Err(tokens.wrong_before("expected what to look at, as request.method"));
    };
    let mut name = first;
    while tokens.takes("[") {
        match tokens.next() {
            Some(Token::Text(text)) => name = format!("{name}.{text}"),
            Some(Token::Word(place)) => name = format!("{name}[{place}]"),
            _ => return Err(tokens.wrong_before("expected an index")),
        }
        tokens.need("]")?;
        if let Some(field) = tokens.takes_field() {
            name = format!("{name}.{field}");
        }
    }
    named(&name, entries, draft).map_err(|why| tokens.wrong_before(why))
}

fn named(name: &str, entries: &Entries, draft: &mut Draft) -> Result<KeyPart, String> {
    if let Some(part) = entries.said(name) {
        return Ok(part.clone());
    }
    if let Some(entry) = name.strip_prefix("descriptors[0].") {
        return descriptor(entry, entries, draft);
    }
    if let Some(name) = name.strip_prefix("request.headers.") {
        return match text::header_name(&name.to_ascii_lowercase()) {
            Ok(()) => Ok(header(name.to_owned())),
            Err(error) => Err(error.to_string()),
        };
    }
    match name {
        "request.method" => Ok(KeyPart::Method),
        "request.host" => Ok(KeyPart::Host),
        "request.url_path" => Ok(KeyPart::Path),
        "request.path" => {
            draft.approximate("request.path: compared without its query");
            Ok(KeyPart::Path)
        }
        "source.remote_address" => Ok(WHOLE_ADDRESS),
        "source.address" => {
            draft.approximate("source.address: the address without its port");
            Ok(WHOLE_ADDRESS)
        }
        other if !other.contains('.') => descriptor(other, entries, draft),
        other => Err(format!(
            "{other} is nothing that a rule looks at; --map {other}=... can say where it comes from"
        )),
    }
}

fn descriptor(entry: &str, entries: &Entries, draft: &mut Draft) -> Result<KeyPart, String> {
    match entries.meaning(entry) {
        Meaning::Is(part) => Ok(part),
        Meaning::Perhaps(part) => {
            draft.approximate(format!(
                "{entry} is taken to be {}; say where it comes from with --map {entry}=...",
                Written(&part)
            ));
            Ok(part)
        }
        Meaning::Fixed => Err(format!(
            "{entry}: which requests have it stands in the routes, not here"
        )),
        Meaning::Nothing(why) => Err(format!("{entry}: {why}; --map {entry}=... can say it")),
    }
}
