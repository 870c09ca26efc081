//! Rules, on their way from the group that numbers them to every group.

use std::sync::Arc;

use limiter::{ruleset::RuleSet, wire};
use prost::Message;

use super::Keeper;
use crate::shared::RULES_GROUP;

impl Keeper {
    /// From the group that numbers them to the store, and from there to all others.
    pub(super) fn carry_rules(&mut self, known_to_store: u64) {
        let held = self.held.get_mut(&RULES_GROUP);
        if let Some(rules) = held.and_then(|held| held.kept.rules_on_record())
            && rules.revision > known_to_store
        {
            let published = self
                .engine
                .publish_rules(rules.revision, &rules.encode_to_vec());
            if let Err(error) = published {
                self.away(&error);
            }
            self.spread(rules);
        } else if known_to_store > self.groups.rules().revision {
            match self.engine.rules() {
                Ok(bytes) => {
                    let rules = bytes.and_then(|bytes| wire::RuleSet::decode(&*bytes).ok());
                    rules.into_iter().for_each(|rules| self.spread(rules));
                }
                Err(error) => self.away(&error),
            }
        }
    }

    fn spread(&self, rules: wire::RuleSet) {
        match RuleSet::try_from(rules) {
            Ok(rules) => self.groups.set_rules(&Arc::new(rules)),
            Err(error) => tracing::error!(%error, "the rules in the shared store are refused"),
        }
    }
}
