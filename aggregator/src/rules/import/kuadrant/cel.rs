//! CEL, as far as limits use it: comparisons of texts, joined.
//!
//! What a rule cannot look at makes the whole expression unreadable.

use limiter::rule::KeyPart;

use super::variable;
use crate::rules::import::{
    entries::Entries,
    expr::Expr,
    lexer::{Token, Tokens, Wrong, glob_of_regex},
    report::Draft,
    subject::{Op, test},
};

/// How a method compares its argument.
type Compares = fn(String) -> Op;

/// Reads expressions; what is not quite the same is noted.
pub(super) struct Reader<'a> {
    pub(super) entries: &'a Entries,
    pub(super) draft: &'a mut Draft,
}

impl Reader<'_> {
    /// Reads what must hold.
    pub(super) fn predicate(&mut self, text: &str) -> Result<Expr, String> {
        let read = Tokens::new(text).and_then(|mut tokens| {
            let expr = self.or(&mut tokens)?;
            end(&tokens)?;
            Ok(expr)
        });
        read.map_err(|wrong| format!("{text}: {wrong}"))
    }

    /// Reads what is counted per.
    pub(super) fn part(&mut self, text: &str) -> Result<KeyPart, String> {
        let read = Tokens::new(text).and_then(|mut tokens| {
            let part = variable::read(&mut tokens, self.entries, self.draft)?;
            end(&tokens)?;
            Ok(part)
        });
        read.map_err(|wrong| format!("{text}: {wrong}"))
    }

    fn or(&mut self, tokens: &mut Tokens) -> Result<Expr, Wrong> {
        let first = self.and(tokens)?;
        let mut parts = vec![first];
        while tokens.takes("||") {
            parts.push(self.and(tokens)?);
        }
        Ok(Expr::Any(parts))
    }

    fn and(&mut self, tokens: &mut Tokens) -> Result<Expr, Wrong> {
        let mut parts = vec![self.unary(tokens)?];
        while tokens.takes("&&") {
            parts.push(self.unary(tokens)?);
        }
        Ok(Expr::All(parts))
    }

    fn unary(&mut self, tokens: &mut Tokens) -> Result<Expr, Wrong> {
        tokens.deeper(|tokens| {
            if tokens.takes("!") {
                return Ok(self.unary(tokens)?.not());
            }
            if tokens.takes("(") {
                let inner = self.or(tokens)?;
                tokens.need(")")?;
                return Ok(inner);
            }
            self.primary(tokens)
        })
    }

    fn primary(&mut self, tokens: &mut Tokens) -> Result<Expr, Wrong> {
        if tokens.takes_word("true") {
            return Ok(Expr::True);
        }
        if tokens.takes_word("has") {
            tokens.need("(")?;
            let part = variable::read(tokens, self.entries, self.draft)?;
            tokens.need(")")?;
            return is(tokens, &part, Op::Present);
        }
        if let Some(Token::Text(name)) = tokens.peek() {
            let name = name.clone();
            return self.text_first(tokens, &name);
        }
        self.comparison(tokens)
    }

    /// `'x-key' in request.headers`, or a comparison the other way round.
    fn text_first(&mut self, tokens: &mut Tokens, text: &str) -> Result<Expr, Wrong> {
        tokens.next();
        if tokens.takes_word("in") {
            return match tokens.takes_word("request.headers") {
                true => is(
                    tokens,
                    &crate::rules::import::aws_waf::header(text.to_owned()),
                    Op::Present,
                ),
                false => Err(tokens.wrong("expected request.headers")),
            };
        }
        tokens.need("==")?;
        let part = variable::read(tokens, self.entries, self.draft)?;
        is(tokens, &part, Op::OneOf(vec![text.to_owned()]))
    }

    fn comparison(&mut self, tokens: &mut Tokens) -> Result<Expr, Wrong> {
        const METHODS: [(&str, Compares); 3] = [
            ("startsWith", Op::Prefix),
            ("endsWith", Op::Suffix),
            ("contains", Op::Contains),
        ];
        let (part, method) = self.subject(tokens)?;
        if let Some(method) = method {
            tokens.need("(")?;
            let text = tokens.need_text()?;
            tokens.need(")")?;
            if let Some((_, op)) = METHODS.iter().find(|(name, _)| *name == method) {
                return is(tokens, &part, op(text));
            }
            return match glob_of_regex(&text, false).filter(|_| method == "matches") {
                Some(glob) => is(tokens, &part, Op::Like(glob)),
                None => Err(tokens.wrong_before(format!("{method}(): nothing that a rule asks"))),
            };
        }
        if tokens.takes("==") {
            let text = tokens.need_text()?;
            return is(tokens, &part, Op::OneOf(vec![text]));
        }
        if tokens.takes("!=") {
            let text = tokens.need_text()?;
            let same = is(tokens, &part, Op::OneOf(vec![text]))?;
            // Of what is not there nothing holds.
            return Ok(Expr::All(vec![is(tokens, &part, Op::Present)?, same.not()]));
        }
        if tokens.takes_word("in") {
            tokens.need("[")?;
            let mut values = vec![tokens.need_text()?];
            while tokens.takes(",") {
                values.push(tokens.need_text()?);
            }
            tokens.need("]")?;
            return is(tokens, &part, Op::OneOf(values));
        }
        Err(tokens.wrong("expected ==, !=, in or a method that compares texts"))
    }

    /// What is compared, and the method that compares it, if it is one.
    fn subject(&mut self, tokens: &mut Tokens) -> Result<(KeyPart, Option<String>), Wrong> {
        let part = variable::read(tokens, self.entries, self.draft)?;
        let method = match tokens.peek() {
            Some(Token::Word(word)) => word.strip_prefix('.').map(str::to_owned),
            _ => None,
        };
        if method.is_some() {
            tokens.next();
        }
        Ok((part, method))
    }
}

fn end(tokens: &Tokens) -> Result<(), Wrong> {
    match tokens.is_done() {
        true => Ok(()),
        false => Err(tokens.wrong("not understood")),
    }
}

fn is(tokens: &Tokens, part: &KeyPart, op: Op) -> Result<Expr, Wrong> {
    test(part, op).map_err(|why| tokens.wrong_before(why))
}
