//! The examples, each run against a service; what it prints is what it promises.

use std::{error::Error, io::Write, process::Command};

use crate::server::Place;

#[expect(dead_code, reason = "an example has a main of its own")]
#[path = "../../examples/limiter.rs"]
mod limiter;
#[expect(dead_code, reason = "an example has a main of its own")]
#[path = "../../examples/seats.rs"]
mod seats;
#[expect(dead_code, reason = "an example has a main of its own")]
#[path = "../../examples/tally.rs"]
mod tally;

type Run = fn(&str, &mut dyn Write) -> Result<(), Box<dyn Error>>;

const EXAMPLES: [(&str, Run, &str); 3] = [
    (
        "limiter",
        limiter::run,
        "allowed 2\nallowed 1\nallowed 0\ndenied 0\nallowed 2\n",
    ),
    (
        "seats",
        seats::run,
        "ann has a seat\nann has a seat\nbob has a seat\ncem has none\ndee has a seat\n",
    ),
    ("tally", tally::run, "so far 0\nat last 20\n"),
];

#[test]
fn the_examples_do_what_they_say_in_rust_and_in_python() {
    let place = Place::new();
    let server = place.start();
    let url = format!("http://{}", server.address);
    for (name, run, promised) in EXAMPLES {
        let mut said = Vec::new();
        run(&url, &mut said).unwrap();
        assert_eq!(String::from_utf8(said).unwrap(), promised, "{name}.rs");
        let file = format!("{}/examples/{name}.py", env!("CARGO_MANIFEST_DIR"));
        let output = Command::new("python3").args([&file, &url]).output();
        let output = output.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            promised,
            "{name}.py: {errors}"
        );
    }
}
