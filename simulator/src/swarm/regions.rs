//! What a swarm's run in several regions has that one in a single region has not.

use limiter::{
    rule::{Rule, Scope},
    time::Micros,
};

use super::path_of;
use crate::{
    chance::{Chance, Purpose},
    scenario::Fault,
    setup::Setup,
};

/// Spreads a run over regions. What it was drawn as stays, so that the two may be
/// compared.
pub(super) fn draw(mut setup: Setup) -> Setup {
    let mut chance = Chance::new(setup.seed, Purpose::Upstream);
    setup.pops = setup.pops.max(2);
    setup.skews.resize(setup.pops, 0);
    setup.regions = 2 + chance.place((setup.pops - 1).min(3));
    if chance.hits(0.1) {
        return setup;
    }
    let millis = chance.one_of(&[1, 30, 150, 150, 400]);
    setup.global = Some(path_of(Micros::from_millis(millis), &mut chance));
    if chance.hits(0.7) {
        let later = setup.changes.iter_mut().map(|(_, rules)| rules);
        let revisions = std::iter::once(&mut setup.rules).chain(later);
        revisions
            .filter_map(|rules| rules.first_mut())
            .for_each(share);
    }
    while chance.hits(0.5) {
        let fault = fault(&mut chance, &setup);
        setup.fault(&fault);
    }
    setup
}

/// Has all regions share a rule.
fn share(rule: &mut Rule) {
    rule.scope = Scope::Global;
}

#[allow(
    clippy::cast_precision_loss,
    reason = "about when is all that is asked for"
)]
fn fault(chance: &mut Chance, setup: &Setup) -> Fault {
    let at_s = chance.unit() * setup.duration.get() as f64 / 1e6;
    let down_s = chance.one_of(&[0.05, 1.0, 10.0, 60.0]);
    let region = chance.place(setup.regions);
    match chance.below(3) {
        0 => Fault::GlobalRestart { at_s, down_s },
        1 => Fault::GlobalUnreachable {
            region,
            at_s,
            down_s,
        },
        _ => Fault::RegionRestart {
            region,
            at_s,
            down_s,
        },
    }
}
