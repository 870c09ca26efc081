//! The answers to the parts of one message, as one answer.
//!
//! What each part was acknowledged and lent stands as it is: no key is in two of them.
//! Of a part without an answer nothing is said, so its source sends it again.

use limiter::wire::{SyncReply, SyncRequest};

/// One answer to `request`; none if there are no parts.
pub(super) fn merge(request: &Asked, replies: Vec<SyncReply>) -> Option<SyncReply> {
    let latest = replies.iter().map(|reply| reply.rules_revision).max()?;
    let mut whole = SyncReply {
        message: request.message,
        sent_at_us: request.sent_at_us,
        // The clock of the member that is last: nothing is taken for heard that one of
        // them may yet say.
        now_us: replies.iter().map(|reply| reply.now_us).min()?,
        rules_revision: latest.max(request.rules_revision),
        sources: replies.iter().map(|reply| reply.sources).max()?,
        ..SyncReply::default()
    };
    let mut crowded = Vec::new();
    for mut reply in replies {
        whole.acks.append(&mut reply.acks);
        whole.leases.append(&mut reply.leases);
        crowded.extend_from_slice(&reply.crowded);
        whole.crowded_more |= reply.crowded_more;
        // A source never goes back to older rules: a group that has not heard of the
        // new ones yet will in a moment.
        if reply.rules_revision == latest && latest > request.rules_revision {
            whole.rules = whole.rules.or(reply.rules);
        }
    }
    whole.crowded = crowded.into();
    Some(whole)
}

/// What an answer repeats of its message.
pub(super) struct Asked {
    message: u64,
    sent_at_us: u64,
    rules_revision: u64,
}

impl Asked {
    pub(super) const fn of(request: &SyncRequest) -> Self {
        Self {
            message: request.message,
            sent_at_us: request.sent_at_us,
            rules_revision: request.rules_revision,
        }
    }
}

#[cfg(test)]
mod tests {
    use limiter::wire::{Ack, RuleSet};

    use super::*;

    fn asked(rules_revision: u64) -> Asked {
        Asked::of(&SyncRequest {
            message: 9,
            rules_revision,
            ..SyncRequest::default()
        })
    }

    fn reply(rules_revision: u64, now_us: u64, rules: bool) -> SyncReply {
        let ack = Ack {
            partition: u32::try_from(now_us).unwrap(),
            ..Ack::default()
        };
        SyncReply {
            rules_revision,
            now_us,
            acks: vec![ack],
            rules: rules.then(RuleSet::default),
            ..SyncReply::default()
        }
    }

    #[test]
    fn what_each_part_was_told_is_told_and_nothing_of_those_without_an_answer() {
        let whole = merge(&asked(1), vec![reply(1, 5, false), reply(1, 3, false)]).unwrap();
        assert_eq!((whole.message, whole.now_us, whole.acks.len()), (9, 3, 2));
        assert!(whole.rules.is_none() && whole.rules_revision == 1);
        assert_eq!(merge(&asked(1), Vec::new()), None);
    }

    #[test]
    fn a_source_gets_the_latest_rules_and_never_older_ones_than_it_has() {
        let older = merge(&asked(3), vec![reply(2, 1, true)]).unwrap();
        assert!(older.rules.is_none() && older.rules_revision == 3);
        let newer = merge(&asked(2), vec![reply(2, 1, false), reply(3, 1, true)]).unwrap();
        assert!(newer.rules.is_some() && newer.rules_revision == 3);
    }
}
