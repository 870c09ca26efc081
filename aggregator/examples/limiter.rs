//! A fixed-window limiter of a few lines, on one conditional add.
//!
//! A window is a counter of its own, named after its number. An add that would take
//! it over the limit is not applied, so counting and deciding are one call, and no
//! two callers can both have the last place. An hour after its last use a window
//! forgets itself.
//!
//! `cargo run --example limiter [URL]`, the URL of `weir serve`.

use std::{env, error::Error, io::Write};

use serde::Deserialize;
use serde_json::json;

/// What the service answers.
#[derive(Deserialize)]
struct Added {
    applied: bool,
    value: i64,
}

/// What a user is told.
struct Answer {
    allowed: bool,
    left: i64,
}

/// Whether this user may once more at this second, and how often after that.
fn ask(url: &str, user: &str, limit: i64, second: u64) -> Result<Answer, Box<dyn Error>> {
    const WINDOW_S: u64 = 60;
    let add = json!({
        "namespace": "limiter",
        "counter_id": format!("{user}:{}", second / WINDOW_S),
        "max": limit,
        "ttl_s": 3600,
    });
    let path = format!("{url}/v1/counter/increment");
    let mut response = ureq::post(path).send(add.to_string())?;
    let added: Added = serde_json::from_str(&response.body_mut().read_to_string()?)?;
    Ok(Answer {
        allowed: added.applied,
        left: limit - added.value,
    })
}

/// Asks a few times within one minute, and once in the next.
pub fn run(url: &str, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    for second in [0, 10, 20, 30, 60] {
        let answer = ask(url, "bob", 3, second)?;
        let verdict = if answer.allowed { "allowed" } else { "denied" };
        writeln!(out, "{verdict} {}", answer.left)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1);
    let url = url.unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
    run(&url, &mut std::io::stdout())
}
