//! What the texts in a rule may look like.

/// The longest name of a rule, in bytes.
pub const NAME_LEN_MAX: usize = 128;

/// The longest value in a rule, in bytes: a host, a path, a header's value.
pub const VALUE_LEN_MAX: usize = 1024;

/// Why a text cannot stand where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// There is nothing.
    #[error("expected some text")]
    Empty,
    /// There is too much.
    #[error("longer than {max} bytes")]
    TooLong {
        /// The most bytes allowed.
        max: usize,
    },
    /// Names travel in headers, metrics and logs.
    #[error("a name has letters, digits, inner spaces and punctuation of ASCII, without \" and \\")]
    Name,
    /// Not what HTTP calls a token (RFC 9110, section 5.6.2).
    #[error("expected a token: letters, digits and any of !#$%&'*+-.^_`|~")]
    Token,
    /// Header names are compared in lower case.
    #[error("a header is named in lower case")]
    UpperCase,
    /// Every path begins with a slash.
    #[error("a path begins with a slash")]
    NoSlash,
    /// A pattern speaks of the path alone.
    #[error("a path pattern ends before the query")]
    QueryInPath,
    /// `**` stands for whole segments.
    #[error("`**` is a segment of its own, as in /v1/**; within a segment write `*`")]
    StarsInSegment,
    /// The pattern is too deep.
    #[error("a path pattern has at most {} segments", super::SEGMENTS_MAX)]
    TooManySegments,
    /// Not a host.
    #[error("expected a host, or `*.` and a host")]
    Host,
    /// Hosts are compared without their port.
    #[error("a host is written without its port")]
    PortInHost,
}

/// Checks the name of a rule.
pub fn name(name: &str) -> Result<(), TextError> {
    length(name, NAME_LEN_MAX)?;
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    let padded = name.starts_with(' ') || name.ends_with(' ');
    ensure(name.bytes().all(plain) && !padded, TextError::Name)
}

/// Checks a value that is compared or counted per, and may be any text.
pub fn value(value: &str) -> Result<(), TextError> {
    length(value, VALUE_LEN_MAX)
}

/// Checks a method, or the name of a cookie.
pub fn token(token: &str) -> Result<(), TextError> {
    length(token, VALUE_LEN_MAX)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    ensure(token.bytes().all(plain), TextError::Token)
}

/// Checks the name of a header.
pub fn header_name(name: &str) -> Result<(), TextError> {
    token(name)?;
    let lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    ensure(lower, TextError::UpperCase)
}

fn length(text: &str, max: usize) -> Result<(), TextError> {
    ensure(!text.is_empty(), TextError::Empty)?;
    ensure(text.len() <= max, TextError::TooLong { max })
}

const fn ensure(holds: bool, error: TextError) -> Result<(), TextError> {
    if holds { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_be_quoted_in_a_header_as_it_is() {
        for good in ["per-key", "a", "domain/key_value", "Login, 5 a minute"] {
            assert_eq!(name(good), Ok(()), "{good}");
        }
        for bad in ["a\"b", "a\\b", " a", "a ", "a\nb", "é", "a\u{7f}"] {
            assert_eq!(name(bad), Err(TextError::Name), "{bad:?}");
        }
        assert_eq!(name(""), Err(TextError::Empty));
        assert_eq!(
            name(&"a".repeat(NAME_LEN_MAX + 1)),
            Err(TextError::TooLong { max: NAME_LEN_MAX })
        );
    }

    #[test]
    fn a_header_is_named_in_lower_case() {
        assert_eq!(header_name("x-api-key"), Ok(()));
        assert_eq!(header_name("X-Api-Key"), Err(TextError::UpperCase));
        assert_eq!(header_name("x api"), Err(TextError::Token));
        assert_eq!(header_name(":path"), Err(TextError::Token));
    }
}
