//! What happens, in order. Each act says what it is about to do, shows it, and
//! notes whether a promise held.

use std::time::Duration;
use std::{fs, iter};

use weir_tests::wait::wall_us;

use crate::board::View;
use crate::interrupt::Interrupted;
use crate::plan::{CLIENTS, Limits, POPS, Rule};
use crate::show::Show;
use crate::stage::{Away, ByRule, rules};
use crate::verdict::{is_the_limit, spare};

/// How soon a changed rule file has to be in force everywhere.
const RULES_WITHIN_US: u64 = 2_000_000;

/// How long something that should happen soon is waited for.
const PATIENCE: Duration = Duration::from_secs(12);

/// Three POPs, one limit.
pub(crate) fn share(show: &mut Show) -> Result<(), Interrupted> {
    let (limits, window_s) = (show.plan.first_limits(), show.plan.window_s);
    println!(
        "\n1. One limit for all three: {} requests per API key and {} per address\n   \
         in every {window_s} s. Asked for, in {window_s} s:",
        limits.key, limits.address
    );
    let asked = CLIENTS.map(|client| format!("{} {}", client.name, client.offered() * window_s));
    println!("   {}.", asked.join(", "));
    show.watch(View::Windows(limits));
    let first = show.window() + 1;
    let last = first + show.plan.share_windows - 1;
    show.pass_window(last)?;
    judge(show, first, last, limits, "three POPs admit the one limit");
    Ok(())
}

/// Another limit, while it runs.
pub(crate) fn change(show: &mut Show) -> Result<(), Interrupted> {
    let limits = show.plan.second_limits();
    // Well into a window, when keys are at their limit and refusals name it.
    show.pass(Duration::from_millis(show.plan.window_s * 600))?;
    println!(
        "\n2. The rule file is changed: {} per key and window from now on.",
        limits.key
    );
    let text = rules(&show.plan, limits);
    let changed_us = wall_us();
    show.stage.aggregator.set_rules(&text);
    show.watch(View::Windows(limits));
    show.until(PATIENCE, |show| {
        let past = wall_us() >= changed_us + RULES_WITHIN_US;
        past && show.tally.took_hold_us(changed_us, limits.key).is_some()
    })?;
    let took = show
        .tally
        .took_hold_us(changed_us, limits.key)
        .map(|times| times.map(|time| time.saturating_sub(changed_us)));
    note_took_hold(show, took);
    let window = show.window() + 1;
    show.pass_window(window)?;
    judge(show, window, window, limits, "they admit the new limit");
    Ok(())
}

fn note_took_hold(show: &mut Show, took: Option<[u64; POPS]>) {
    let (held, text) = match took {
        Some(times) => {
            let seconds = times.map(|us| format!("{}.{:02}", us / 1_000_000, us / 10_000 % 100));
            let slowest = times.into_iter().max().unwrap_or(u64::MAX);
            let text = format!("in force after {} s (at most 2)", seconds.join(", "));
            (slowest <= RULES_WITHIN_US, text)
        }
        None => (false, "in force at some POP never".to_owned()),
    };
    println!("   {text}");
    show.verdict
        .note(held, format!("a changed rule file is {text}"));
}

/// The aggregator dies; the POPs go on and count what they let through unasked.
/// Returns the books as they were a second before.
pub(crate) fn kill(show: &mut Show) -> Result<ByRule, Interrupted> {
    let before = show.stage.books().unwrap_or_default();
    // What was read may still be on its way to the disk: a second is plenty.
    show.pass(Duration::from_secs(1))?;
    println!(
        "\n3. SIGKILL to the aggregator. A second ago its books said {}.\n   \
         On its own, each worker admits up to its local cap, and counts it.",
        tell(before)
    );
    show.stage.aggregator.kill();
    let failed = show.tally.failed;
    show.watch(View::Leaks);
    let leaking = show.until(PATIENCE, |show| {
        let leaked = show.stage.of_pops("weir_leaked_total", &[]);
        show.stage.away() == Away::All && leaked.iter().all(|leaked| *leaked > 0)
    })?;
    show.pass(Duration::from_millis(2_200))?;
    let leaked = show.stage.of_pops("weir_leaked_total", &[]);
    let failed = show.tally.failed - failed;
    show.verdict.note(
        leaking && failed == 0,
        format!(
            "without a region every request is answered ({failed} were not), and\n          \
             what is let through is counted: {} + {} + {} leaked",
            leaked[0], leaked[1], leaked[2]
        ),
    );
    Ok(before)
}

/// The aggregator comes back on the same data.
pub(crate) fn restart(show: &mut Show, before: ByRule) -> Result<(), Interrupted> {
    show.look_away();
    println!("\n4. The aggregator starts again on the same data directory.");
    if show.plan.lose_data {
        println!("   DEMO_BREAK=data: without its data directory, that is.");
        let _ = fs::remove_dir_all(show.stage.aggregator.data_dir());
    }
    let on_disk = show.stage.books_on_disk();
    println!(
        "   Before any POP can reach it, its books say {}.",
        tell(on_disk)
    );
    let kept = iter::zip(before, on_disk).all(|(before, after)| after >= before);
    show.verdict.note(
        kept,
        format!(
            "no acknowledged hit is missing after SIGKILL: {} before,\n          {} on disk after",
            tell(before),
            tell(on_disk)
        ),
    );
    show.stage.aggregator.restart();
    let limits = show.plan.second_limits();
    show.watch(View::Windows(limits));
    let back = show.until(PATIENCE, |show| show.stage.away() == Away::None)?;
    let window = show.window() + 1;
    show.pass_window(window)?;
    show.verdict.note(back, "every POP finds the region again");
    judge(
        show,
        window,
        window,
        limits,
        "and they share the limit again",
    );
    Ok(())
}

/// Clients, POPs and the region have counted the same.
pub(crate) fn account(show: &mut Show) -> Result<(), Interrupted> {
    show.end_traffic();
    println!("\n5. The clients stop. Admitted since the beginning:\n");
    let clients = show.tally.admitted();
    let agreed = show.until(PATIENCE, |show| {
        show.stage.books() == Some(clients) && show.stage.admitted() == clients
    })?;
    let (pops, region) = (
        show.stage.admitted(),
        show.stage.books().unwrap_or_default(),
    );
    println!("   rule            clients were told   the POPs count   on record");
    for (place, rule) in Rule::ALL.iter().enumerate() {
        let at = |sums: ByRule| sums.get(place).copied().unwrap_or(0);
        println!(
            "   {:<12} {:>20} {:>16} {:>11}",
            rule.name(),
            at(clients),
            at(pops),
            at(region)
        );
    }
    show.verdict.note(
        agreed,
        "every hit is on record exactly once: clients, POPs and region agree",
    );
    let leaked: u64 = show.stage.of_pops("weir_leaked_total", &[]).iter().sum();
    let told = show.stage.leaks_told();
    println!("   leaked: the POPs count {leaked}, the region was told of {told}");
    show.verdict.note(
        leaked == told && leaked > 0,
        format!("the region knows of every leak: {told} of {leaked}"),
    );
    Ok(())
}

/// Notes whether every client got its limit in each of these windows, or what it
/// asked for where that is less; within the tolerance.
fn judge(show: &mut Show, first: u64, last: u64, limits: Limits, promise: &str) {
    let mut held = true;
    let mut evidence = Vec::new();
    for window in first..=last {
        for (place, client) in CLIENTS.iter().enumerate() {
            let cell = show.tally.window(place, window);
            let limit = limits.of(client.rule);
            let over = client.offered() * show.plan.window_s > limit;
            let right = match over {
                true => is_the_limit(&cell, limit),
                false => cell.denied <= spare(limit),
            };
            held &= right;
            if over || !right {
                evidence.push(format!("{}/{limit}", cell.sum()));
            }
        }
    }
    let text = format!("{promise}: {}", evidence.join(" "));
    show.verdict.note(held, text);
}

fn tell(books: ByRule) -> String {
    let [key, address] = books;
    format!("{key} + {address} hits")
}
