//! The fields of the Rules language that a rule can look at.

use limiter::rule::{Attribute, KeyPart, text};

use crate::rules::import::{
    build::WHOLE_ADDRESS,
    lexer::{Token, Tokens, Wrong},
};

/// A field as an expression has it.
pub(super) struct Field {
    pub(super) part: KeyPart,
    /// What is looked at is not quite that; how.
    pub(super) doubt: Option<&'static str>,
    /// A header that is not there is an empty text.
    pub(super) empty_if_missing: bool,
    /// Only the file name's ending is compared.
    pub(super) extension: bool,
}

/// Reads a field that stands alone.
pub(super) fn whole(name: &str) -> Result<KeyPart, Wrong> {
    let mut tokens = Tokens::new(name)?;
    let field = read(&mut tokens)?;
    match (tokens.is_done(), field.doubt) {
        (true, None) if !field.extension => Ok(field.part),
        (true, _) => Err(tokens.wrong("it is not quite what a rule looks at")),
        (false, _) => Err(tokens.wrong("not understood")),
    }
}

/// Reads a field: a name, perhaps with an index in brackets.
pub(super) fn read(tokens: &mut Tokens) -> Result<Field, Wrong> {
    let Some(Token::Word(name)) = tokens.next() else {
        return Err(tokens.wrong_before("expected a field"));
    };
    let field = |part| Field {
        part,
        doubt: None,
        empty_if_missing: false,
        extension: false,
    };
    let plain = |part| Ok(field(part));
    let text = |name: &str| {
        let header = field(KeyPart::Header(name.into()));
        let empty_if_missing = true;
        Ok(Field {
            empty_if_missing,
            ..header
        })
    };
    match &*name {
        "http.request.uri.path" | "raw.http.request.uri.path" => plain(KeyPart::Path),
        "http.request.uri" | "raw.http.request.uri" => Ok(Field {
            doubt: Some("http.request.uri: only its path is looked at, not its query"),
            ..field(KeyPart::Path)
        }),
        "http.request.uri.path.extension" => Ok(Field {
            doubt: Some("http.request.uri.path.extension: upper and lower case are told apart"),
            extension: true,
            ..field(KeyPart::Path)
        }),
        "http.request.method" => plain(KeyPart::Method),
        "http.host" => plain(KeyPart::Host),
        "ip.src" => plain(WHOLE_ADDRESS),
        "ip.src.country" | "ip.geoip.country" => plain(KeyPart::Attribute(Attribute::Country)),
        "ip.src.asnum" | "ip.geoip.asnum" => plain(KeyPart::Attribute(Attribute::Asn)),
        "cf.bot_management.ja4" => plain(KeyPart::Attribute(Attribute::Ja4)),
        "http.user_agent" => text("user-agent"),
        "http.referer" => text("referer"),
        "http.cookie" => text("cookie"),
        "http.x_forwarded_for" => text("x-forwarded-for"),
        "http.request.headers" => plain(KeyPart::Header(index(tokens, header)?)),
        "http.request.cookies" => plain(KeyPart::Cookie(index(tokens, cookie)?)),
        "http.request.uri.args" => plain(KeyPart::Query(index(tokens, query)?)),
        other if other.starts_with("http.response.") => Err(tokens.wrong_before(format!(
            "{other} stands in the response, which no rule reads"
        ))),
        other => Err(tokens.wrong_before(format!("{other} is nothing that a rule looks at"))),
    }
}

/// The name in `["x"]`, and what may follow it: `[*]` or `[0]`.
fn index(tokens: &mut Tokens, check: fn(&str) -> Option<String>) -> Result<String, Wrong> {
    tokens.need("[")?;
    let name = tokens.need_text()?;
    let name = check(&name).ok_or_else(|| tokens.wrong_before("cannot be named like this"))?;
    tokens.need("]")?;
    if tokens.takes("[") {
        if !tokens.takes("*") && !tokens.takes_word("0") {
            return Err(tokens.wrong("only the first of several values is looked at"));
        }
        tokens.need("]")?;
    }
    Ok(name)
}

fn header(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    text::header_name(&name).is_ok().then_some(name)
}

fn cookie(name: &str) -> Option<String> {
    text::token(name).is_ok().then(|| name.to_owned())
}

fn query(name: &str) -> Option<String> {
    text::value(name).is_ok().then(|| name.to_owned())
}
