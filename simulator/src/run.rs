//! One file, run: scenarios, or vectors to be replayed.

use std::{
    fs,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::Value;

use crate::{
    arrivals::Arrivals, gateway, plan::Plan, report, report::Report, scenario::Scenario,
    setup::Setup, vectors, world::World,
};

/// Hears of each scenario as it is done.
pub type Progress = dyn Fn(&str, usize, usize) + Sync;

/// How a file is run.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Only the scenario of this name.
    pub only: Option<&'a str>,
    /// Another seed than the scenarios'.
    pub seed: Option<u64>,
    /// What is printed.
    pub format: Format,
    /// Told of each scenario as it is done: its name, how many are, and of how
    /// many.
    pub progress: Option<&'a Progress>,
}

/// What is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A table for people.
    #[default]
    Table,
    /// An array with an object for each scenario.
    Json,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What to print.
    pub text: String,
    /// What to exit with: 0 if all is well, 1 if something failed, 2 if the
    /// file cannot be run.
    pub exit_code: u8,
}

/// Runs a file.
pub fn run(path: &Path, options: &Options<'_>) -> Outcome {
    let name = path.display();
    match fs::read_to_string(path) {
        Ok(text) => run_text(&name.to_string(), &text, options),
        Err(error) => unusable(&format!("{name}: {error}")),
    }
}

/// Runs what stands in a file of this name.
pub fn run_text(name: &str, text: &str, options: &Options<'_>) -> Outcome {
    let done = match form(text) {
        Ok(Form::Vectors) => vectors::replay(text, options.only),
        Ok(Form::Gateway) => gateway::replay(text, options.only),
        Ok(Form::Scenarios) => simulate(text, options),
        Err(error) => Err(error),
    };
    done.unwrap_or_else(|error| unusable(&format!("{name}:{error}")))
}

/// What a file holds.
enum Form {
    Scenarios,
    Vectors,
    Gateway,
}

/// Told by what only one of the forms has.
fn form(text: &str) -> Result<Form, String> {
    let cases: Vec<Value> = parse(text)?;
    let have = |field: &str| cases.iter().any(|case| case.get(field).is_some());
    Ok(if have("steps") {
        Form::Vectors
    } else if have("requests") {
        Form::Gateway
    } else {
        Form::Scenarios
    })
}

/// Reads cases; the error begins with `line:column`.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<Vec<T>, String> {
    serde_json::from_str(text).map_err(|error| {
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or_default();
        format!("{}:{}: {words}", error.line(), error.column())
    })
}

/// The cases of this name, or all; an error if there are none.
pub(crate) fn select<T>(
    mut cases: Vec<T>,
    only: Option<&str>,
    name: impl Fn(&T) -> &str,
) -> Result<Vec<T>, String> {
    if let Some(only) = only {
        cases.retain(|case| name(case) == only);
        if cases.is_empty() {
            return Err(format!(" nothing in it is called {only}"));
        }
    }
    Ok(cases)
}

fn simulate(text: &str, options: &Options<'_>) -> Result<Outcome, String> {
    let scenarios = select(parse::<Scenario>(text)?, options.only, |case| &case.name)?;
    for scenario in &scenarios {
        let check = scenario.check();
        check.map_err(|error| format!(" {}: {error}", scenario.name))?;
    }
    let reports = all(&scenarios, options)?;
    let text = match options.format {
        Format::Table => report::table(&reports),
        Format::Json => json(&reports)?,
    };
    let passed = reports.iter().all(|report| report.pass);
    Ok(Outcome {
        text,
        exit_code: u8::from(!passed),
    })
}

/// Runs all scenarios, as many at once as there are processors. Each is a world
/// of its own, so that this changes nothing but the time it takes.
fn all(scenarios: &[Scenario], options: &Options<'_>) -> Result<Vec<Report>, String> {
    let slots: Vec<Mutex<Option<Result<Report, String>>>> =
        scenarios.iter().map(|_| Mutex::new(None)).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
            let place = scenarios.element_offset(scenario).unwrap_or_default();
            let report = one(scenario, options.seed);
            if let Ok(mut slot) = slots[place].lock() {
                *slot = Some(report);
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = options.progress {
                progress(&scenario.name, done, scenarios.len());
            }
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers.min(scenarios.len()) {
            scope.spawn(work);
        }
    });
    let reports = slots.into_iter().filter_map(|slot| slot.into_inner().ok()?);
    reports.collect()
}

/// Runs one scenario.
fn one(scenario: &Scenario, seed: Option<u64>) -> Result<Report, String> {
    let setup = Setup::of(scenario, seed);
    let plan = Plan::new(setup.rules.clone(), setup.keys)
        .map_err(|error| format!(" {}: {error}", scenario.name))?;
    let run = World::new(&setup, &plan).run(Arrivals::new(&setup));
    Ok(Report::new(scenario, run))
}

fn json(reports: &[Report]) -> Result<String, String> {
    let lines: Result<Vec<String>, _> = reports.iter().map(serde_json::to_string).collect();
    let lines = lines.map_err(|error| format!(" {error}"))?;
    Ok(format!("[\n{}\n]\n", lines.join(",\n")))
}

fn unusable(error: &str) -> Outcome {
    Outcome {
        text: format!("{error}\n"),
        exit_code: 2,
    }
}
