//! How many share a limit, by the word of a region that may have forgotten.

/// So many sources, or regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    /// As last told; [`u32::MAX`] by who cannot tell: it has just started, and knows
    /// neither its sources nor which keys are crowded.
    pub(super) told: u32,
    /// As last told by who could tell. As many are there still, most likely.
    pub(super) known: u32,
}

impl Count {
    /// Nobody has told.
    pub(super) const UNKNOWN: Self = Self {
        told: u32::MAX,
        known: u32::MAX,
    };

    /// Takes in what a region tells.
    pub(super) fn hear(&mut self, told: u32) {
        self.told = told.max(1);
        if told != u32::MAX {
            self.known = self.told;
        }
    }

    /// Of each of these, so many of the others.
    pub(super) const fn times(self, others: Self) -> Self {
        Self {
            told: self.told.saturating_mul(others.told),
            known: self.known.saturating_mul(others.known),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_tell_changes_nothing_that_is_known_and_nothing_is_known_by_itself() {
        let (mut sources, mut regions) = (Count::UNKNOWN, Count::UNKNOWN);
        regions.hear(u32::MAX);
        sources.hear(3);
        assert_eq!(sources.times(regions), Count::UNKNOWN);
        regions.hear(4);
        regions.hear(u32::MAX);
        let known = 12;
        let told = u32::MAX;
        assert_eq!(sources.times(regions), Count { told, known });
    }
}
