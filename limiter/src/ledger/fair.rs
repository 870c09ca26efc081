//! Sharing: in proportion, and so that a flood takes nothing from a trickle.

use crate::time::Micros;

/// Steps towards the fair level; each leaves out those who want less than it.
const LEVELLINGS: usize = 4;

/// The level up to which all of these wants can be met out of `amount` (max-min
/// fairness): who wants less gets what it wants, nobody gets more than the
/// level. The greatest amount there is when all can be met.
pub(super) fn level<Wants: Iterator<Item = u64>>(amount: u64, wants: impl Fn() -> Wants) -> u64 {
    if wants().fold(0, u64::saturating_add) <= amount {
        return u64::MAX;
    }
    let mut level = 0;
    for _ in 0..LEVELLINGS {
        let (small, many) = wants().fold((0_u64, 0_u64), |(small, many), want| {
            if want < level {
                (small.saturating_add(want), many)
            } else {
                (small, many + 1)
            }
        });
        let rest = amount.saturating_sub(small);
        let next = rest.checked_div(many).unwrap_or(level);
        if next <= level {
            break;
        }
        level = next;
    }
    level
}

/// A demand with a quarter to spare: requests do not come evenly. Those of a whole
/// region do more so.
pub(super) const fn ample(demand: u64, region: bool) -> u64 {
    let part = if region { 32 } else { 4 };
    demand.saturating_add(demand / part)
}

/// `rate` a second, for `span`.
pub(super) fn per_second(rate: u64, span: Micros) -> u64 {
    share(rate, span.get(), 1_000_000)
}

/// `amount × part / whole`, rounded down; nothing of nothing.
pub(super) fn share(amount: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(amount) * u128::from(part);
    u64::try_from(product.checked_div(u128::from(whole)).unwrap_or(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level_of(amount: u64, wants: &[u64]) -> u64 {
        level(amount, || wants.iter().copied())
    }

    #[test]
    fn a_flood_takes_nothing_from_a_trickle() {
        assert_eq!(level_of(100, &[10, 1_000_000]), 90);
        assert_eq!(level_of(100, &[10, 1_000, 1_000]), 45);
    }

    #[test]
    fn when_there_is_enough_for_all_nobody_is_held_to_a_level() {
        assert_eq!(level_of(100, &[10, 90]), u64::MAX);
        assert_eq!(level_of(100, &[]), u64::MAX);
    }

    #[test]
    fn no_more_is_shared_out_than_there_is() {
        for wants in [&[5, 6, 7, 80][..], &[50; 9], &[1, 2, 4, 8, 16, 32, 64]] {
            let level = level_of(60, wants);
            assert!(wants.iter().map(|want| level.min(*want)).sum::<u64>() <= 60);
        }
    }
}
