//! `make demo`: three Envoys, one limit, one rule file; then a new limit, a killed
//! aggregator, and the books.
//!
//! Everything is real and on this machine's loopback: `weir serve` on a data
//! directory, three Envoys of two workers with the filter as shipped, a service
//! behind them, clients in front. What is printed comes from three sides that do
//! not know of each other: what clients were answered, what the Envoys count, and
//! what the region has on disk. The last lines say whether they agree, and so does
//! the exit code: 0 they do, 1 they do not, 130 it was interrupted.
//!
//! `DEMO_SECONDS` (default 45, at least 40) is how long it may take, building
//! excluded. `DEMO_BREAK=data` deletes the data directory while the aggregator is
//! down, to show that the demo can fail.

#![expect(clippy::disallowed_methods, reason = "people watch it, in real time")]

mod acts;
mod board;
mod interrupt;
mod plan;
mod show;
mod stage;
mod tally;
mod traffic;
mod verdict;

use std::process::ExitCode;

use interrupt::Interrupted;
use plan::Plan;
use show::Show;

fn main() -> ExitCode {
    let plan = match Plan::from_environment() {
        Ok(plan) => plan,
        Err(error) => {
            println!("demo: {error}");
            return ExitCode::from(2);
        }
    };
    match play(plan) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(Interrupted) => {
            println!("\ndemo: interrupted; everything it started has been stopped");
            ExitCode::from(130)
        }
    }
}

/// Plays it all; true if every promise held.
fn play(plan: Plan) -> Result<bool, Interrupted> {
    let interrupts = interrupt::listen();
    let mut show = Show::open(plan, interrupts)?;
    acts::share(&mut show)?;
    acts::change(&mut show)?;
    let before = acts::kill(&mut show)?;
    acts::restart(&mut show, before)?;
    acts::account(&mut show)?;
    Ok(show.close())
}
