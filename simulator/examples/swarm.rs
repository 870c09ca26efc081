//! Which seeds of a swarm fail, and why:
//! `cargo run --release -p simulator --example swarm -- FIRST LAST [REQUESTS] [regions]`

use std::env;

fn main() {
    let numbers = env::args().skip(1).filter_map(|arg| arg.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    let (first, last, requests) = match *numbers {
        [first, last] => (first, last, 3_000),
        [first, last, requests] => (first, last, requests),
        _ => (1, 100, 3_000),
    };
    let regions = env::args().any(|arg| arg == "regions");
    let swarm = if regions {
        simulator::swarm_of_regions
    } else {
        simulator::swarm
    };
    let mut failed = 0;
    for seed in first..=last {
        if let Err(failure) = swarm(seed, requests) {
            failed += 1;
            println!("{seed}: {}", failure.what.join("; "));
            if first == last {
                println!("{}", failure.settings);
            }
        }
    }
    println!("{failed} of {} fail", last - first + 1);
}
