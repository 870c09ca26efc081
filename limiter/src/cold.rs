//! Cold credit: what a source may admit of a key that it has never asked about.
//!
//! Most keys are met once in a while and never come near their limit. Where a
//! request can wait for the region's answer it does, once, and a source admits
//! unasked only what the rule's tolerance allows ([`within`]).
//!
//! Where it cannot, being too far away, that would turn the first request of
//! every key away. So such a source may admit the first few hits of a key unasked,
//! provided that the region has told it lately which keys are crowded and this is
//! not among them. The region keeps that safe: until every source must have heard
//! that a key is crowded it lends nothing of what all of them together could admit
//! unasked ([`reserve`]).

use crate::time::Micros;

/// The most hits of a key that a source admits unasked.
const HITS_MAX: u64 = 2;

/// The part of a limit that all sources together may admit unasked.
const PART: u64 = 4;

/// That part when each may admit more than one hit.
const PART_OF_MORE: u64 = 8;

/// How old a source's knowledge of crowded keys may be.
pub(crate) const FRESH: Micros = Micros::from_millis(1_600);

/// How long the region waits for its word to have reached every source: as long
/// as it may be used, and as a message may take.
pub(crate) const NOTICE: Micros = Micros::from_millis(2_100);

/// How long after the sources were told that a key is crowded some may no longer
/// know; they remember it for longer.
pub(crate) const REMINDER: Micros = Micros::from_secs(40);

/// Hits that one of `sources` may admit unasked within a tolerance of so many
/// millionths of the limit.
pub(crate) fn within(limit: u64, tolerance_ppm: u32, sources: u32) -> u64 {
    let tolerance = u128::from(limit) * u128::from(tolerance_ppm) / 1_000_000;
    let part = tolerance / u128::from(sources.max(1));
    u64::try_from(part).unwrap_or(u64::MAX).min(HITS_MAX)
}

/// The smallest limit of which each of `sources` may admit a hit unasked that is too far
/// away to ask.
pub(crate) fn least_for_credit(sources: u32) -> u64 {
    PART.saturating_mul(u64::from(sources.max(1)))
}

/// Hits that one of `sources` may admit unasked that is too far away to ask.
pub(crate) fn credit(limit: u64, sources: u32) -> u64 {
    let parts = |part: u64| part.saturating_mul(u64::from(sources.max(1)));
    if limit < least_for_credit(sources) {
        0
    } else {
        (limit / parts(PART_OF_MORE)).clamp(1, HITS_MAX)
    }
}

/// Hits that one of so many regions may admit before it has asked the aggregator above:
/// all together a quarter of the limit, or one each of a limit that is too small for
/// that.
pub(crate) fn of_region(limit: u64, regions: u32) -> u64 {
    let regions = u64::from(regions.max(1));
    let one = (limit / regions).min(1);
    (limit / PART.saturating_mul(regions)).max(one)
}

/// Who may admit unasked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fleet {
    /// All who share the limit.
    pub(crate) sources: u32,
    /// Of those, sources that are too far away to ask.
    pub(crate) impatient: u32,
    /// Of those, regions.
    pub(crate) regions: u32,
}

/// Hits that all of a fleet may admit unasked together.
pub(crate) fn reserve(limit: u64, fleet: Fleet) -> u64 {
    let far = u64::from(fleet.impatient.min(fleet.sources));
    let far = credit(limit, fleet.sources).saturating_mul(far);
    let regions = u64::from(fleet.regions.min(fleet.sources));
    let regions = of_region(limit, fleet.sources).saturating_mul(regions);
    far.saturating_add(regions)
}

/// Hits that are left beyond the reserve when a key is first called crowded: as
/// many as go while the word spreads, where a limit is large enough for that.
pub(crate) fn margin(limit: u64, reserve: u64) -> u64 {
    let early = (limit / 2).saturating_sub(reserve.saturating_mul(4));
    early.max(limit / 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(sources: u32, impatient: u32) -> Fleet {
        Fleet {
            sources,
            impatient,
            regions: 0,
        }
    }

    #[test]
    fn regions_that_have_not_asked_never_admit_more_than_the_limit() {
        for (limit, regions) in [(1, 3), (2, 3), (3, 3), (5, 3), (100, 3), (1_000, 40)] {
            let fleet = Fleet {
                sources: regions,
                impatient: 0,
                regions,
            };
            assert!(reserve(limit, fleet) <= limit, "{limit} over {regions}");
        }
        assert_eq!(of_region(1_000, 3), 83);
        assert_eq!(of_region(5, 3), 1);
        assert_eq!(of_region(1_000, u32::MAX), 0);
    }

    #[test]
    fn all_sources_together_get_a_quarter_of_the_limit_at_the_most() {
        for (limit, sources) in [(100, 20), (100, 25), (100, 26), (1_000, 20), (7, 3), (1, 1)] {
            assert!(
                reserve(limit, far(sources, sources)) * PART <= limit,
                "{limit} over {sources}"
            );
        }
    }

    #[test]
    fn a_fleet_that_can_wait_needs_no_reserve() {
        assert_eq!(reserve(1_000, far(20, 0)), 0);
        assert_eq!(within(1_000, 20_000, 20), 1);
        assert_eq!(within(100, 20_000, 20), 0);
    }

    #[test]
    fn a_limit_too_small_to_share_gives_nobody_anything() {
        assert_eq!(credit(100, 300), 0);
        assert_eq!(credit(1_000_000, u32::MAX), 0);
    }
}
