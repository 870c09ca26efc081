//! Words, texts and signs of the two languages that sources write conditions in:
//! Cloudflare's Rules language and CEL.

/// A piece of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name, a number or an address: whatever has no quotes.
    Word(String),
    /// A text in quotes.
    Text(String),
    /// A sign, as `==` or `(`.
    Sign(&'static str),
}

/// The longest first, so that `!=` is not `!` and `=`.
const SIGNS: &[&str] = &[
    "&&", "||", "^^", "==", "!=", "<=", ">=", "(", ")", "[", "]", "{", "}", "!", "<", ">", "~",
    ",", "*", "?", "$", "+", "-", "%", "=",
];

/// A token, and the column where it begins, from 1.
pub(super) type Placed = (Token, usize);

/// What is wrong with an expression, and in which column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) column: usize,
    pub(super) what: String,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "column {} of the expression: {}", self.column, self.what)
    }
}

/// Takes an expression apart.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, Wrong> {
    let letters: Vec<char> = text.chars().collect();
    let mut rest = Rest {
        letters: &letters,
        at: 0,
    };
    let mut tokens = Vec::new();
    while let Some(letter) = rest.peek() {
        let column = rest.at + 1;
        if letter.is_whitespace() {
            rest.at += 1;
            continue;
        }
        let token = rest.token(letter).ok_or_else(|| {
            let what = format!("{letter:?} begins nothing that is understood, or is not ended");
            Wrong { column, what }
        })?;
        push(&mut tokens, token, column, rest.peek() == Some('('));
    }
    Ok(tokens)
}

/// A method that is called is a word of its own: `request.path` and `.startsWith`.
fn push(tokens: &mut Vec<Placed>, token: Token, column: usize, called: bool) {
    let split = match &token {
        Token::Word(word) if called => word.rsplit_once('.'),
        _ => None,
    };
    if let Some((name, method)) = split.filter(|(name, _)| !name.is_empty()) {
        tokens.push((Token::Word(name.into()), column));
        let column = column + name.chars().count();
        return tokens.push((Token::Word(format!(".{method}")), column));
    }
    tokens.push((token, column));
}

struct Rest<'a> {
    letters: &'a [char],
    at: usize,
}

impl Rest<'_> {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += 1;
        Some(letter)
    }

    fn token(&mut self, letter: char) -> Option<Token> {
        let after = self.letters.get(self.at + 1).copied();
        match letter {
            'r' if matches!(after, Some('"' | '\'' | '#')) => self.raw().map(Token::Text),
            '"' | '\'' => self.quoted().map(Token::Text),
            letter if is_word(letter) => Some(Token::Word(self.word())),
            _ => self.sign(),
        }
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(letter) = self
            .peek()
            .filter(|letter| is_word(*letter) || "/:".contains(*letter))
        {
            word.push(letter);
            self.at += 1;
        }
        word
    }

    fn sign(&mut self) -> Option<Token> {
        let rest = self.letters.get(self.at..)?;
        let fits = |sign: &&&str| sign.chars().eq(rest.iter().copied().take(sign.len()));
        let sign = SIGNS.iter().find(fits)?;
        self.at += sign.len();
        Some(Token::Sign(sign))
    }

    fn quoted(&mut self) -> Option<String> {
        let quote = self.next()?;
        let mut text = String::new();
        loop {
            match self.next()? {
                letter if letter == quote => return Some(text),
                '\\' => text.push(self.escaped()?),
                letter => text.push(letter),
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        match self.next()? {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'x' => {
                let digits: String = [self.next()?, self.next()?].into_iter().collect();
                u8::from_str_radix(&digits, 16)
                    .ok()
                    .filter(u8::is_ascii)
                    .map(char::from)
            }
            letter => Some(letter),
        }
    }

    /// `r"..."` or `r#"..."#`: nothing in it is an escape.
    fn raw(&mut self) -> Option<String> {
        self.next()?;
        let mut hashes = 0;
        while self.peek() == Some('#') {
            hashes += 1;
            self.at += 1;
        }
        let quote = self.next().filter(|letter| matches!(letter, '"' | '\''))?;
        let end: Vec<char> = std::iter::once(quote)
            .chain(std::iter::repeat_n('#', hashes))
            .collect();
        let rest = self.letters.get(self.at..)?;
        let len = (0..rest.len())
            .find(|&start| rest.get(start..).is_some_and(|rest| rest.starts_with(&end)))?;
        let text = rest.get(..len)?.iter().collect();
        self.at += len + end.len();
        Some(text)
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '.')
}

/// The tokens of an expression, read one by one.
pub(super) struct Tokens {
    tokens: Vec<Placed>,
    at: usize,
    end: usize,
    depth: usize,
}

/// How deep expressions may nest.
const DEPTH_MAX: usize = 32;

impl Tokens {
    pub(super) fn new(text: &str) -> Result<Self, Wrong> {
        let (at, end) = (0, text.chars().count() + 1);
        Ok(Self {
            tokens: tokens(text)?,
            at,
            end,
            depth: 0,
        })
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        let token = self.peek()?.clone();
        self.at += 1;
        Some(token)
    }

    /// Takes the field that follows an index, if one does: `.x` and no method.
    pub(super) fn takes_field(&mut self) -> Option<String> {
        let called = matches!(self.tokens.get(self.at + 1), Some((Token::Sign("("), _)));
        match self.peek() {
            Some(Token::Word(word)) if !called => {
                let field = word.strip_prefix('.')?.to_owned();
                self.at += 1;
                Some(field)
            }
            _ => None,
        }
    }

    /// Takes a sign, if it is the next token.
    pub(super) fn takes(&mut self, sign: &str) -> bool {
        let next = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.at += usize::from(next);
        next
    }

    /// Takes a word, if it is the next token.
    pub(super) fn takes_word(&mut self, word: &str) -> bool {
        let next = matches!(self.peek(), Some(Token::Word(next)) if next == word);
        self.at += usize::from(next);
        next
    }

    pub(super) fn need(&mut self, sign: &str) -> Result<(), Wrong> {
        match self.takes(sign) {
            true => Ok(()),
            false => Err(self.wrong(format!("expected `{sign}`"))),
        }
    }

    pub(super) fn need_text(&mut self) -> Result<String, Wrong> {
        match self.peek() {
            Some(Token::Text(text)) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.wrong("expected a text in quotes")),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// Says what is wrong with the next token.
    pub(super) fn wrong(&self, what: impl Into<String>) -> Wrong {
        let what = what.into();
        let column = self
            .tokens
            .get(self.at)
            .map_or(self.end, |(_, column)| *column);
        Wrong { column, what }
    }

    /// Says what is wrong with the token that was taken last.
    pub(super) fn wrong_before(&self, what: impl Into<String>) -> Wrong {
        let what = what.into();
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        Wrong {
            column: before.map_or(1, |(_, column)| *column),
            what,
        }
    }

    /// Reads what nests one deeper.
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Wrong>,
    ) -> Result<T, Wrong> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.wrong("nests too deep"));
        }
        let read = read(self);
        self.depth -= 1;
        read
    }
}

/// The glob that fits what a regular expression finds anywhere in a text; none if
/// there is none. Of expressions, texts, `.*`, `^`, `$` and escaped signs.
pub(super) fn glob_of_regex(regex: &str, whole: bool) -> Option<String> {
    let (start, rest) = match regex.strip_prefix('^') {
        Some(rest) => ("", rest),
        None => (if whole { "" } else { "*" }, regex),
    };
    let ended = rest.ends_with('$') && !rest.ends_with("\\$");
    let rest = if ended { rest.strip_suffix('$')? } else { rest };
    let mut glob = start.to_owned();
    let mut letters = rest.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '.' if letters.peek() == Some(&'*') => {
                letters.next();
                glob.push('*');
            }
            '\\' => match letters.next()? {
                sign @ ('.' | '/' | '-' | '+' | '?' | '$' | '(' | ')' | '[' | ']') => {
                    glob.push(sign)
                }
                _ => return None,
            },
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' => {
                return None;
            }
            letter => match letters.peek() {
                Some('*' | '+' | '?' | '{') => return None,
                _ => glob.push(letter),
            },
        }
    }
    if !ended && !whole {
        glob.push('*');
    }
    Some(glob)
}
