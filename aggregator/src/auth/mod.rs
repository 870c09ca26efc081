//! Who may do what: tokens, the tenants they speak for, and their rights.
//! Nothing here listens, waits or reads a file.

mod digest;
mod hide;
mod name;
mod right;
mod token;
mod tokens;

pub use digest::{Digest, NotADigest};
pub use hide::hide_tokens;
pub use name::{Name, NotAName};
pub use right::{NoRight, Right, Rights};
pub use token::Token;
pub use tokens::{Holder, TOKENS_MAX, Tokens, TokensError};
