//! `weir check`: spends from a rule, and says whether that was allowed.

use std::{num::NonZeroU64, process::ExitCode};

use serde_json::{Value, json};

use super::{
    print,
    target::{Format, Target, failed, field},
};

const EXAMPLES: &str = "\
Examples:
  weir check per-key apikey_8fa3
  weir check per-key apikey_8fa3 --cost 5 --url https://weir.example.com --format json

Exit codes: 0 allowed, 3 denied, 1 the service refused to say (the reason is on
standard error), 2 not understood, 69 the service cannot be reached.";

/// The exit code of a denial.
const DENIED: u8 = 3;

/// What `weir check` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The rule
    rule: String,
    /// The values of its key, in order
    key: Vec<String>,
    /// The tier that it is of [default: what the rule's lists of keys say]
    #[arg(long)]
    tier: Option<String>,
    /// What is spent if it is allowed [default: 1]
    #[arg(long, value_name = "N")]
    cost: Option<NonZeroU64>,
    /// How to say it
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    target: Target,
}

pub(super) fn run(args: Args) -> ExitCode {
    let cost = args.cost.map_or(1, NonZeroU64::get);
    let body = json!({ "rule": args.rule, "tier": args.tier, "key": args.key, "cost": cost });
    let client = args.target.client();
    match client.and_then(|client| client.post("/v1/ratelimit/check", &body)) {
        Ok(answer) => {
            let allowed = answer.get("allowed") == Some(&Value::Bool(true));
            print(&match args.format {
                Format::Json => answer.to_string(),
                Format::Text => describe(&answer, allowed),
            });
            match allowed {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(DENIED),
            }
        }
        Err(error) => failed(&error),
    }
}

fn describe(answer: &Value, allowed: bool) -> String {
    let verdict = if allowed { "allowed" } else { "denied" };
    let [rule, tier, remaining, limit] =
        ["rule", "rule_tier", "remaining", "limit"].map(|name| field(answer, name));
    let tier = match &*tier {
        "" => String::new(),
        tier => format!(" for tier {tier}"),
    };
    if limit.is_empty() {
        return format!("{verdict} by {rule}{tier}: unlimited");
    }
    let text = format!("{verdict} by {rule}{tier}: {remaining} of {limit} left");
    match (allowed, field(answer, "retry_after")) {
        (true, _) => text,
        (false, wait) if wait.is_empty() => text + ", and so large a cost never is",
        (false, wait) => format!("{text}, try again in {wait} s"),
    }
}
