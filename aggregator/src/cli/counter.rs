//! `weir counter`: durable counters, for scripts.

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::{
    fail, print,
    target::{Format, Target, failed, field},
};
use crate::client::{Client, ClientError, segment};

const EXAMPLES: &str = "\
Examples:
  weir counter add signups
  weir counter add seats -1 --min 0
  weir counter add orders 1 --idempotency-key order-4711
  weir counter get signups --format json
  weir counter reset signups --namespace shop
  weir counter watch signups

The value alone is printed, or with --format json the service's answer.
Exit codes: 0 done, 3 not applied (the sum would have left --min or --max), 5 never
written, 1 refused (the reason is on standard error), 2 not understood, 69 the
service cannot be reached: then it is not known whether it was done, and an add with
--idempotency-key can be sent again.";

/// The exit code of an add that was not applied.
const NOT_APPLIED: u8 = 3;

/// The exit code for a counter that was never written.
const NEVER_WRITTEN: u8 = 5;

/// What `weir counter` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
    /// The namespace that the counter is in [default: default]
    #[arg(long, global = true)]
    namespace: Option<String>,
    /// How to say it
    #[arg(long, value_enum, default_value_t, global = true)]
    format: Format,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add to a counter, and print the sum
    Add {
        /// The counter
        name: String,
        /// How much; less than 0 takes away
        #[arg(default_value_t = 1, allow_negative_numbers = true)]
        delta: i64,
        /// Only if the sum is this or less
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        max: Option<i64>,
        /// Only if the sum is this or more
        #[arg(long, value_name = "N", allow_negative_numbers = true)]
        min: Option<i64>,
        /// Forget the counter after so many seconds
        #[arg(long, value_name = "SECONDS")]
        ttl_s: Option<u64>,
        /// Whatever is sent under this key is added once
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Print a counter
    Get {
        /// The counter
        name: String,
    },
    /// Set a counter to 0
    Reset {
        /// The counter
        name: String,
    },
    /// Print a counter whenever it changes, until interrupted
    Watch {
        /// The counter
        name: String,
    },
}

pub(super) fn run(args: Args) -> ExitCode {
    let client = match args.target.client() {
        Ok(client) => client,
        Err(error) => return failed(&error),
    };
    let namespace = args.namespace.as_deref();
    let answered = match args.command {
        Command::Watch { name } => return watch(&client, &name, namespace, args.format),
        Command::Get { name } => client.get(&path(&name, "", namespace)),
        Command::Reset { name } => {
            let body = body(namespace, &[("counter_id", Some(name.into()))]);
            client.post("/v1/counter/reset", &body)
        }
        Command::Add {
            name,
            delta,
            max,
            min,
            ttl_s,
            idempotency_key,
        } => {
            let body = body(
                namespace,
                &[
                    ("counter_id", Some(name.into())),
                    ("delta", Some(delta.into())),
                    ("max", max.map(Value::from)),
                    ("min", min.map(Value::from)),
                    ("ttl_s", ttl_s.map(Value::from)),
                    ("idempotency_key", idempotency_key.map(Value::from)),
                ],
            );
            client.post("/v1/counter/increment", &body)
        }
    };
    match answered {
        Ok(answer) => {
            print(&describe(&answer, args.format));
            match answer.get("applied") {
                Some(Value::Bool(false)) => ExitCode::from(NOT_APPLIED),
                _ => ExitCode::SUCCESS,
            }
        }
        Err(ClientError::Refused(problem)) if problem.is("never-written") => {
            fail(&problem);
            ExitCode::from(NEVER_WRITTEN)
        }
        Err(error) => failed(&error),
    }
}

fn watch(client: &Client, name: &str, namespace: Option<&str>, format: Format) -> ExitCode {
    let events = match client.events(&path(name, "/watch", namespace)) {
        Ok(events) => events,
        Err(error) => return failed(&error),
    };
    for event in events {
        match event {
            Ok(event) => print(&describe(&event, format)),
            Err(error) => return failed(&error),
        }
    }
    fail(&WatchEnded)
}

/// The service hung up, as it does when it stops.
#[derive(Debug, thiserror::Error)]
#[error("the service ended the watch")]
struct WatchEnded;

/// The value, or that there is none.
fn describe(answer: &Value, format: Format) -> String {
    match (format, field(answer, "value")) {
        (Format::Json, _) => answer.to_string(),
        (Format::Text, none) if none.is_empty() => "none".to_owned(),
        (Format::Text, value) => value,
    }
}

fn path(name: &str, below: &str, namespace: Option<&str>) -> String {
    let path = format!("/v1/counter/{}{below}", segment(name));
    match namespace {
        Some(namespace) => format!("{path}?namespace={}", segment(namespace)),
        None => path,
    }
}

fn body(namespace: Option<&str>, fields: &[(&str, Option<Value>)]) -> Value {
    let mut body = Map::new();
    for (name, value) in fields {
        if let Some(value) = value {
            body.insert((*name).to_owned(), value.clone());
        }
    }
    if let Some(namespace) = namespace {
        body.insert("namespace".to_owned(), json!(namespace));
    }
    body.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_not_sent() {
        let sent = body(None, &[("counter_id", Some("a".into())), ("max", None)]);
        assert_eq!(sent, json!({"counter_id": "a"}));
        assert_eq!(
            path("a/b", "/watch", Some("é")),
            "/v1/counter/a%2Fb/watch?namespace=%C3%A9"
        );
    }
}
