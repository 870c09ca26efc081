//! Seats that are reserved once and can be handed back.
//!
//! `max` makes reserving one call: the add is applied only if a seat is left. The
//! idempotency key makes a retry harmless: who asks again after an answer was lost
//! gets the seat they have, and not a second one. `min` keeps a seat from being
//! handed back that nobody had.
//!
//! `cargo run --example seats [URL]`, the URL of `weir serve`.

use std::{env, error::Error, io::Write};

use serde::Deserialize;
use serde_json::json;

/// What the service answers; it says what the counter is, too.
#[derive(Deserialize)]
struct Added {
    applied: bool,
}

/// An event with so many seats.
struct Event<'a> {
    url: &'a str,
    name: &'a str,
    seats: i64,
}

impl Event<'_> {
    /// Whether there was a seat for this booking.
    fn reserve(&self, booking: &str) -> Result<bool, Box<dyn Error>> {
        self.add(1, &format!("reserve {booking}"))
    }

    /// Gives the booking's seat to whoever comes next.
    fn hand_back(&self, booking: &str) -> Result<bool, Box<dyn Error>> {
        self.add(-1, &format!("hand back {booking}"))
    }

    fn add(&self, delta: i64, idempotency_key: &str) -> Result<bool, Box<dyn Error>> {
        let add = json!({
            "namespace": "seats",
            "counter_id": self.name,
            "delta": delta,
            "min": 0,
            "max": self.seats,
            "idempotency_key": idempotency_key,
        });
        let path = format!("{}/v1/counter/increment", self.url);
        let mut response = ureq::post(path).send(add.to_string())?;
        let added: Added = serde_json::from_str(&response.body_mut().read_to_string()?)?;
        Ok(added.applied)
    }
}

/// Four ask for two seats, one of them twice; one seat is handed back.
pub fn run(url: &str, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let event = Event {
        url,
        name: "concert",
        seats: 2,
    };
    for who in ["ann", "ann", "bob", "cem"] {
        let has = event.reserve(who)?;
        writeln!(out, "{who} {}", if has { "has a seat" } else { "has none" })?;
    }
    event.hand_back("bob")?;
    let has = event.reserve("dee")?;
    writeln!(out, "dee {}", if has { "has a seat" } else { "has none" })?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1);
    let url = url.unwrap_or_else(|| "http://127.0.0.1:8080".to_owned());
    run(&url, &mut std::io::stdout())
}
