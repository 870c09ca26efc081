//! The Rules language, as far as rate-limiting rules use it.
//!
//! `not` binds closest, then `and`, `xor`, `or`. What a rule cannot look at makes
//! the whole expression unreadable: a part that is left out could match requests
//! that were never meant.

use limiter::rule::KeyPart;

use super::field::{self, Field};
use crate::rules::import::{
    expr::Expr,
    lexer::{Token, Tokens, Wrong, glob_of_regex},
    report::Draft,
    subject::{Op, test},
};

/// Reads an expression; what is not quite the same is noted.
pub(super) fn read(text: &str, draft: &mut Draft) -> Result<Expr, Wrong> {
    let mut tokens = Tokens::new(text)?;
    let expr = or(&mut tokens, draft)?;
    match tokens.is_done() {
        true => Ok(expr),
        false => Err(tokens.wrong("not understood")),
    }
}

fn or(tokens: &mut Tokens, draft: &mut Draft) -> Result<Expr, Wrong> {
    let mut parts = vec![xor(tokens, draft)?];
    while tokens.takes_word("or") || tokens.takes("||") {
        parts.push(xor(tokens, draft)?);
    }
    Ok(several(parts, Expr::Any))
}

fn xor(tokens: &mut Tokens, draft: &mut Draft) -> Result<Expr, Wrong> {
    let mut left = and(tokens, draft)?;
    while tokens.takes_word("xor") || tokens.takes("^^") {
        let right = and(tokens, draft)?;
        let one = Expr::All(vec![left.clone(), right.clone().not()]);
        left = Expr::Any(vec![one, Expr::All(vec![left.not(), right])]);
    }
    Ok(left)
}

fn and(tokens: &mut Tokens, draft: &mut Draft) -> Result<Expr, Wrong> {
    let mut parts = vec![unary(tokens, draft)?];
    while tokens.takes_word("and") || tokens.takes("&&") {
        parts.push(unary(tokens, draft)?);
    }
    Ok(several(parts, Expr::All))
}

fn several(mut parts: Vec<Expr>, join: fn(Vec<Expr>) -> Expr) -> Expr {
    match (parts.len(), parts.pop()) {
        (1, Some(one)) => one,
        (_, last) => {
            parts.extend(last);
            join(parts)
        }
    }
}

fn unary(tokens: &mut Tokens, draft: &mut Draft) -> Result<Expr, Wrong> {
    tokens.deeper(|tokens| {
        if tokens.takes_word("not") || tokens.takes("!") {
            return Ok(unary(tokens, draft)?.not());
        }
        if tokens.takes("(") {
            let inner = or(tokens, draft)?;
            tokens.need(")")?;
            return Ok(inner);
        }
        primary(tokens, draft)
    })
}

fn primary(tokens: &mut Tokens, draft: &mut Draft) -> Result<Expr, Wrong> {
    if tokens.takes_word("true") {
        return Ok(Expr::True);
    }
    for (function, op) in [
        ("starts_with", Op::Prefix as fn(String) -> Op),
        ("ends_with", Op::Suffix),
    ] {
        if tokens.takes_word(function) {
            tokens.need("(")?;
            let (field, _) = subject(tokens, draft)?;
            tokens.need(",")?;
            let text = tokens.need_text()?;
            tokens.need(")")?;
            return compared(tokens, &field, op(text));
        }
    }
    if tokens.takes_word("any") {
        tokens.need("(")?;
        let inner = comparison(tokens, draft, true)?;
        tokens.need(")")?;
        return Ok(inner);
    }
    if tokens.takes_word("len") {
        return length(tokens, draft);
    }
    comparison(tokens, draft, false)
}

/// `len(field) > 0`: whether there is anything.
fn length(tokens: &mut Tokens, draft: &mut Draft) -> Result<Expr, Wrong> {
    tokens.need("(")?;
    let (field, _) = subject(tokens, draft)?;
    tokens.need(")")?;
    let operator = operator(tokens)?;
    if !tokens.takes_word("0") {
        return Err(tokens.wrong("a length is only compared with 0"));
    }
    let is = |op| test(&field.part, op).map_err(|why| tokens.wrong_before(why));
    let there = is(Op::Present)?;
    let empty = is(Op::OneOf(vec![String::new()]))?;
    match &*operator {
        "gt" | "ne" => Ok(Expr::All(vec![there, empty.not()])),
        "eq" | "le" => Ok(Expr::Any(vec![there.not(), empty])),
        other => Err(tokens.wrong_before(format!("{other} 0 is not understood for a length"))),
    }
}

/// A field, perhaps in `lower()`; says whether it was.
fn subject(tokens: &mut Tokens, draft: &mut Draft) -> Result<(Field, bool), Wrong> {
    let lower = tokens.takes_word("lower");
    if lower {
        tokens.need("(")?;
    }
    let field = field::read(tokens)?;
    if lower {
        tokens.need(")")?;
        if field.part != KeyPart::Host {
            draft.approximate("lower(): upper and lower case are told apart here");
        }
    }
    if let Some(doubt) = field.doubt {
        draft.approximate(doubt);
    }
    Ok((field, lower))
}

/// `in_any`: within `any(...)`, where each of a header's values is asked.
fn comparison(tokens: &mut Tokens, draft: &mut Draft, in_any: bool) -> Result<Expr, Wrong> {
    let (field, _) = subject(tokens, draft)?;
    let operator = operator(tokens)?;
    match &*operator {
        "eq" => {
            let values = vec![value(tokens)?];
            compared(tokens, &field, Op::OneOf(values))
        }
        "ne" => {
            let values = vec![value(tokens)?];
            let other = compared(tokens, &field, Op::OneOf(values))?.not();
            let there = compared(tokens, &field, Op::Present)?;
            Ok(if in_any {
                Expr::All(vec![there, other])
            } else {
                other
            })
        }
        "in" => {
            let values = set(tokens)?;
            compared(tokens, &field, Op::OneOf(values))
        }
        "contains" => {
            let text = tokens.need_text()?;
            compared(tokens, &field, Op::Contains(text))
        }
        "wildcard" | "strict wildcard" => {
            if operator == "wildcard" && field.part != KeyPart::Host {
                draft.approximate("wildcard: upper and lower case are told apart here");
            }
            let glob = tokens.need_text()?;
            if glob.contains('\\') {
                return Err(tokens.wrong_before("an escaped `*` cannot be said in a rule"));
            }
            compared(tokens, &field, Op::Like(glob))
        }
        "matches" => {
            let regex = tokens.need_text()?;
            match glob_of_regex(&regex, false) {
                Some(glob) => compared(tokens, &field, Op::Like(glob)),
                None => Err(tokens.wrong_before("rules know no regular expressions")),
            }
        }
        other => Err(tokens.wrong_before(format!("{other} compares nothing that a rule does"))),
    }
}

/// The operator's word.
fn operator(tokens: &mut Tokens) -> Result<String, Wrong> {
    let word = match tokens.next() {
        Some(Token::Word(word)) if word == "strict" && tokens.takes_word("wildcard") => {
            "strict wildcard"
        }
        Some(Token::Word(word)) => return Ok(word),
        Some(Token::Sign("==")) => "eq",
        Some(Token::Sign("!=")) => "ne",
        Some(Token::Sign(">")) => "gt",
        Some(Token::Sign("<=")) => "le",
        Some(Token::Sign("<")) => "lt",
        Some(Token::Sign(">=")) => "ge",
        Some(Token::Sign("~")) => "matches",
        _ => return Err(tokens.wrong_before(
            "expected a comparison: fields that are true or false are nothing that a rule looks at",
        )),
    };
    Ok(word.to_owned())
}

fn value(tokens: &mut Tokens) -> Result<String, Wrong> {
    match tokens.next() {
        Some(Token::Text(text) | Token::Word(text)) => Ok(text),
        _ => Err(tokens.wrong_before("expected a value")),
    }
}

/// `{"a" "b"}` or `{10.0.0.0/8 192.0.2.1}`.
fn set(tokens: &mut Tokens) -> Result<Vec<String>, Wrong> {
    if tokens.takes("$") {
        return Err(tokens.wrong_before("a list that is kept elsewhere cannot be looked into"));
    }
    tokens.need("{")?;
    let mut values = Vec::new();
    while !tokens.takes("}") {
        values.push(value(tokens)?);
    }
    Ok(values)
}

fn compared(tokens: &Tokens, field: &Field, op: Op) -> Result<Expr, Wrong> {
    let wrong = |why| tokens.wrong_before(why);
    match (field.extension, op) {
        (false, op) => {
            let empty = matches!(&op, Op::OneOf(values) if values.iter().any(String::is_empty));
            let holds = test(&field.part, op).map_err(wrong)?;
            match empty && field.empty_if_missing {
                true => {
                    let there = test(&field.part, Op::Present).map_err(wrong)?;
                    Ok(Expr::Any(vec![there.not(), holds]))
                }
                false => Ok(holds),
            }
        }
        (true, Op::OneOf(endings)) => {
            let ending = |ending: String| test(&field.part, Op::Suffix(format!(".{ending}")));
            let each: Result<Vec<_>, _> = endings.into_iter().map(ending).collect();
            each.map(Expr::Any).map_err(wrong)
        }
        (true, _) => Err(tokens.wrong_before("a file's ending is compared whole")),
    }
}
