//! What a statement asks of a request.

use limiter::rule::{Attribute, KeyPart};

use super::field;
use crate::rules::{
    at::At,
    import::{
        expr::Expr,
        lexer::glob_of_regex,
        report::Draft,
        subject::{Op, test},
    },
};

/// Reads a statement; else why a rule cannot ask that. What is not quite the same
/// is noted.
pub(super) fn read(at: &At<'_>, draft: &mut Draft) -> Result<Expr, String> {
    let entries = at.entries("one statement").unwrap_or_default();
    let [entry] = entries else {
        return Err("a statement is one thing".into());
    };
    let inner = at.entry(entry);
    match &*entry.key {
        "AndStatement" => Ok(Expr::All(several(&inner, draft)?)),
        "OrStatement" => Ok(Expr::Any(several(&inner, draft)?)),
        "NotStatement" => {
            let one = inner
                .peek("Statement")
                .ok_or("NotStatement has no Statement")?;
            Ok(read(&one, draft)?.not())
        }
        "ByteMatchStatement" => bytes(&inner, draft),
        "RegexMatchStatement" => regex(&inner, draft),
        "GeoMatchStatement" => {
            sender(&inner, draft);
            test(
                &KeyPart::Attribute(Attribute::Country),
                Op::OneOf(texts(&inner, "CountryCodes")?),
            )
        }
        "AsnMatchStatement" => {
            sender(&inner, draft);
            test(
                &KeyPart::Attribute(Attribute::Asn),
                Op::OneOf(texts(&inner, "AsnList")?),
            )
        }
        "IPSetReferenceStatement" => Err(
            "IPSetReferenceStatement: a set that is kept elsewhere cannot be looked into".into(),
        ),
        other => Err(format!("{other} asks what no rule can")),
    }
}

fn texts(at: &At<'_>, name: &str) -> Result<Vec<String>, String> {
    let list = at
        .peek(name)
        .ok_or_else(|| format!("its {name} is missing"))?;
    let items = list.items("a list").unwrap_or_default();
    let texts = items.iter().filter_map(|item| item.scalar());
    Ok(texts.map(str::to_owned).collect())
}

/// Whose address is looked up: a header's word is not taken.
fn sender(at: &At<'_>, draft: &mut Draft) {
    if at.peek("ForwardedIPConfig").is_some() {
        draft.approximate("ForwardedIPConfig: the client is who the edge says it is");
    }
}

fn several(at: &At<'_>, draft: &mut Draft) -> Result<Vec<Expr>, String> {
    let list = at.peek("Statements").ok_or("its Statements are missing")?;
    let statements = list.items("a list of statements").unwrap_or_default();
    statements.iter().map(|one| read(one, draft)).collect()
}

fn text(at: &At<'_>, name: &str) -> Result<String, String> {
    let text = at.peek(name).and_then(|field| field.scalar());
    text.map(str::to_owned)
        .ok_or_else(|| format!("its {name} is missing"))
}

fn subject(at: &At<'_>, draft: &mut Draft) -> Result<KeyPart, String> {
    let field = at
        .peek("FieldToMatch")
        .ok_or("its FieldToMatch is missing")?;
    let part = field::to_match(&field, draft)?;
    field::transformed(at, &part, draft)?;
    Ok(part)
}

fn bytes(at: &At<'_>, draft: &mut Draft) -> Result<Expr, String> {
    let part = subject(at, draft)?;
    let wanted = wanted(&text(at, "SearchString")?, draft);
    let op = match &*text(at, "PositionalConstraint")? {
        "EXACTLY" => Op::OneOf(vec![wanted]),
        "STARTS_WITH" => Op::Prefix(wanted),
        "ENDS_WITH" => Op::Suffix(wanted),
        "CONTAINS" => Op::Contains(wanted),
        other => return Err(format!("PositionalConstraint {other} is not understood")),
    };
    test(&part, op)
}

fn regex(at: &At<'_>, draft: &mut Draft) -> Result<Expr, String> {
    let part = subject(at, draft)?;
    match glob_of_regex(&text(at, "RegexString")?, false) {
        Some(glob) => test(&part, Op::Like(glob)),
        None => Err("RegexMatchStatement: rules know no regular expressions".into()),
    }
}

/// A search string as it was meant: the API has it in base64, consoles do not.
fn wanted(text: &str, draft: &mut Draft) -> String {
    match decoded(text) {
        Some(decoded) => {
            draft.say(format!("SearchString {text} is base64 of {decoded:?}"));
            decoded
        }
        None => text.to_owned(),
    }
}

/// What a text says if it is base64 of something that can be read.
fn decoded(text: &str) -> Option<String> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return None;
    }
    let body = text.trim_end_matches('=');
    if text.len() - body.len() > 2 {
        return None;
    }
    let (mut bits, mut held, mut bytes) = (0_u32, 0_u32, Vec::new());
    for letter in body.bytes() {
        let value = LETTERS.iter().position(|other| *other == letter)?;
        held = (held << 6) | u32::try_from(value).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((held >> bits) & 0xff).ok()?);
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    text.bytes()
        .all(|byte| matches!(byte, b' '..=b'~'))
        .then_some(text)
}
