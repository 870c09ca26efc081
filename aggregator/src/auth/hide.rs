//! Texts that may repeat what somebody wrote, without the tokens in it.

use super::token::PREFIX;

/// Letters after the prefix from which on it is taken for a token.
const SHORTEST: usize = 12;

/// The text with `weir_...` for every token in it.
pub fn hide_tokens(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(PREFIX) {
        hidden.push_str(before);
        hidden.push_str(PREFIX);
        let of_token = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        let end = after.find(|letter| !of_token(letter));
        let (secret, onward) = after.split_at(end.unwrap_or(after.len()));
        hidden.push_str(if secret.len() < SHORTEST {
            secret
        } else {
            "..."
        });
        rest = onward;
    }
    hidden + rest
}

#[cfg(test)]
mod tests {
    use super::{super::Token, *};

    #[test]
    fn a_token_is_hidden_wherever_it_stands_and_the_rest_stays() {
        let token = Token::random().unwrap();
        let token = token.reveal();
        let text = format!("got \"{token}\", {token} and weir_keys");
        let hidden = hide_tokens(&text);
        assert_eq!(hidden, "got \"weir_...\", weir_... and weir_keys");
    }
}
