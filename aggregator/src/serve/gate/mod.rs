//! Who comes in: the holder of a token, within its rights and as often as it and
//! its tenant may. Without a token file, everyone who can reach the service, which
//! then is this machine alone.
//!
//! The service holds its tenants to their rates with the limiter that it is.

use std::sync::{Arc, PoisonError, RwLock};

use core::num::NonZeroU32;
use limiter::time::Micros;
use tokio::sync::watch;

mod rates;
mod token_file;

use self::rates::Rates;
pub(super) use self::token_file::TokenFile;
use super::clock::Stopwatch;
use crate::auth::{Digest, Holder, Name, Right, Rights, Tokens};

/// Lets requests in.
pub(super) struct Gate {
    stopwatch: Stopwatch,
    tenant_rate: NonZeroU32,
    book: RwLock<Arc<Book>>,
    /// Told of every new book.
    changes: watch::Sender<()>,
}

/// The tokens that are known, and how much each has asked for.
struct Book {
    /// The tenant of those who are not asked.
    everyone: Name,
    /// None: nobody is asked for one.
    tokens: Option<Tokens>,
    rates: Rates,
}

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guest {
    /// On whose behalf.
    pub(super) tenant: Name,
    /// What the token is called; none if none was asked for.
    pub(super) token: Option<Name>,
    /// The token's digest; none if none was asked for.
    pub(super) digest: Option<Digest>,
}

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// A token, whatever its rights.
    Known,
    /// A token with this right.
    Right(Right),
    /// What no right gives.
    Nobody,
}

/// Why a request is not let in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It has no token.
    NoToken,
    /// Nobody knows its token.
    UnknownToken,
    /// Its token has other rights.
    NoRight {
        /// Whose token it is.
        name: Name,
        /// What it would need; none if no right is enough.
        needs: Option<Right>,
        /// What it may do.
        held: Rights,
    },
    /// Too many came before it.
    TooFast {
        /// Whose: the token's or the tenant's.
        whose: &'static str,
        /// How many may come in a second.
        per_second: NonZeroU32,
        /// When there will be room.
        wait: Micros,
    },
}

impl Gate {
    /// A gate that asks for one of these tokens, or lets everyone in.
    pub(super) fn new(tokens: Option<Tokens>, tenant_rate: NonZeroU32) -> Self {
        let rates = Rates::default().for_tokens(tokens.as_ref(), tenant_rate);
        Self {
            stopwatch: Stopwatch::start(),
            tenant_rate,
            book: RwLock::new(Arc::new(Book {
                everyone: Name::nobody_in_particular(),
                tokens,
                rates,
            })),
            changes: watch::Sender::default(),
        }
    }

    /// Knows these tokens from now on. What was asked for before still counts.
    pub(super) fn set_tokens(&self, tokens: Tokens) {
        let rates = self
            .book()
            .rates
            .for_tokens(Some(&tokens), self.tenant_rate);
        let book = Book {
            everyone: Name::nobody_in_particular(),
            tokens: Some(tokens),
            rates,
        };
        *self.book.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(book);
        self.changes.send_replace(());
    }

    /// Whether anyone is asked for a token.
    pub(super) fn asks(&self) -> bool {
        self.book().tokens.is_some()
    }

    /// Lets a request in, or not.
    pub(super) fn enter(&self, token: Option<&[u8]>, access: Access) -> Result<Guest, Refused> {
        let book = self.book();
        let guest = book.guest(token, access)?;
        book.rates.spend(&guest, self.stopwatch.now())?;
        Ok(guest)
    }

    /// Waits until a guest would no longer be let in: for answers that take long.
    /// A token keeps no more than its rights, and one that is taken away nothing.
    pub(super) async fn until_unwelcome(&self, digest: Option<Digest>, access: Access) {
        let mut changes = self.changes.subscribe();
        let welcome = || match digest {
            None => true,
            Some(digest) => self.book().lets_in(&digest, access),
        };
        while welcome() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn book(&self) -> Arc<Book> {
        Arc::clone(&self.book.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Book {
    fn guest(&self, token: Option<&[u8]>, access: Access) -> Result<Guest, Refused> {
        let Some(tokens) = &self.tokens else {
            return Ok(Guest {
                tenant: self.everyone.clone(),
                token: None,
                digest: None,
            });
        };
        let token = token.ok_or(Refused::NoToken)?;
        let holder = tokens.holder(token).ok_or(Refused::UnknownToken)?;
        if !access.is_given_to(holder) {
            return Err(Refused::NoRight {
                name: holder.name.clone(),
                needs: match access {
                    Access::Right(right) => Some(right),
                    Access::Known | Access::Nobody => None,
                },
                held: holder.rights.clone(),
            });
        }
        Ok(Guest {
            tenant: holder.tenant.clone(),
            token: Some(holder.name.clone()),
            digest: Some(holder.digest),
        })
    }

    fn lets_in(&self, digest: &Digest, access: Access) -> bool {
        let holder = |tokens: &Tokens| tokens.holder_of(digest).cloned();
        let holder = self.tokens.as_ref().and_then(holder);
        holder.is_some_and(|holder| access.is_given_to(&holder))
    }
}

impl Access {
    fn is_given_to(self, holder: &Holder) -> bool {
        match self {
            Self::Known => true,
            Self::Right(right) => holder.rights.contains(right),
            Self::Nobody => false,
        }
    }
}

impl Refused {
    /// What it is counted under.
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::NoToken => "no_token",
            Self::UnknownToken => "unknown_token",
            Self::NoRight { .. } => "no_right",
            Self::TooFast { .. } => "too_fast",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Access = Access::Right(Right::Read);

    fn tokens(secret: &str, rate: Option<u32>) -> Tokens {
        let holder = Holder {
            name: "n".parse().unwrap(),
            tenant: "t".parse().unwrap(),
            rights: Rights::new(vec![Right::Read]).unwrap(),
            requests_per_second: rate.and_then(NonZeroU32::new),
            digest: Digest::of(secret.as_bytes()),
        };
        Tokens::new(vec![holder]).unwrap()
    }

    fn gate(tokens: Option<Tokens>, rate: u32) -> Gate {
        Gate::new(tokens, NonZeroU32::new(rate).unwrap())
    }

    #[test]
    fn without_tokens_everyone_is_the_default_tenant() {
        let guest = gate(None, 10).enter(Some(b"x"), Access::Nobody).unwrap();
        assert_eq!((guest.tenant.as_str(), guest.token), ("default", None));
    }

    #[test]
    fn a_token_gives_its_rights_and_no_others() {
        let gate = gate(Some(tokens("one", None)), 10);
        assert_eq!(gate.enter(None, READ), Err(Refused::NoToken));
        assert_eq!(gate.enter(Some(b"x"), READ), Err(Refused::UnknownToken));
        let guest = gate.enter(Some(b"one"), READ).unwrap();
        assert_eq!(guest.tenant.as_str(), "t");
        assert!(gate.enter(Some(b"one"), Access::Known).is_ok());
        for access in [Access::Right(Right::Rules), Access::Nobody] {
            let refused = gate.enter(Some(b"one"), access).unwrap_err();
            assert_eq!(refused.reason(), "no_right");
        }
    }

    #[test]
    fn tokens_that_are_replaced_are_no_longer_known_and_their_tenant_stays_as_spent() {
        let gate = gate(Some(tokens("one", None)), 1);
        gate.enter(Some(b"one"), READ).unwrap();
        gate.set_tokens(tokens("two", None));
        assert_eq!(gate.enter(Some(b"one"), READ), Err(Refused::UnknownToken));
        let refused = gate.enter(Some(b"two"), READ).unwrap_err();
        assert_eq!(refused.reason(), "too_fast");
    }
}
