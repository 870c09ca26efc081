//! The demo as it runs: time passes, answers come in, rows are printed.

use std::thread;
use std::time::{Duration, Instant};

use weir_tests::wait::wall_us;

use crate::board::{self, View};
use crate::interrupt::{Interrupted, Interrupts};
use crate::plan::Plan;
use crate::stage::Stage;
use crate::tally::Tally;
use crate::traffic::Traffic;
use crate::verdict::Verdict;

/// Between two looks at what has come in.
const STEP: Duration = Duration::from_millis(50);

/// How long after a second's end its row is printed: answers are on their way.
const ROW_AFTER_US: u64 = 120_000;

/// Everything that runs, and what is known of it. The clients end first.
pub(crate) struct Show {
    pub(crate) traffic: Traffic,
    pub(crate) stage: Stage,
    pub(crate) tally: Tally,
    pub(crate) plan: Plan,
    pub(crate) verdict: Verdict,
    interrupts: Interrupts,
    view: Option<View>,
    next_row: u64,
    rows: u64,
}

impl Show {
    /// Starts everything.
    pub(crate) fn open(plan: Plan, interrupts: Interrupts) -> Result<Self, Interrupted> {
        println!("Starting one aggregator, three Envoys of two workers, and a service.");
        let stage = Stage::set(&plan, &interrupts)?;
        let mut show = Self {
            traffic: Traffic::start(&[]),
            stage,
            tally: Tally::new(plan.window_s),
            plan,
            verdict: Verdict::default(),
            interrupts,
            view: None,
            next_row: 0,
            rows: 0,
        };
        let ready = show.until(Duration::from_secs(30), |show| show.stage.has_rules())?;
        assert!(ready, "every worker has the rules in time");
        show.traffic = Traffic::start(&show.stage.addresses());
        Ok(show)
    }

    /// Prints such rows from now on, under a head of their own.
    pub(crate) fn watch(&mut self, view: View) {
        println!("\n{}", board::head(view));
        self.view = Some(view);
        self.next_row = wall_us() / 1_000_000;
        self.rows = 0;
    }

    /// Prints no more rows.
    pub(crate) fn look_away(&mut self) {
        self.view = None;
    }

    /// Lets time pass until `done`; false if it is not within `most`, or not
    /// before the whole has to be over.
    pub(crate) fn until(
        &mut self,
        most: Duration,
        mut done: impl FnMut(&Self) -> bool,
    ) -> Result<bool, Interrupted> {
        let deadline = self.plan.deadline.min(Instant::now() + most);
        loop {
            self.take_in();
            self.interrupts.check()?;
            if done(self) {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            thread::sleep(STEP);
        }
    }

    /// Lets so much time pass.
    pub(crate) fn pass(&mut self, time: Duration) -> Result<(), Interrupted> {
        let end = Instant::now() + time;
        self.until(time, |_| Instant::now() >= end).map(drop)
    }

    /// Lets time pass until window `window` is over and its last row printed.
    pub(crate) fn pass_window(&mut self, window: u64) -> Result<(), Interrupted> {
        let end_us = (window + 1) * self.plan.window_s * 1_000_000;
        let most = Duration::from_micros(end_us.saturating_sub(wall_us())) + Duration::from_secs(2);
        let end_us = end_us + ROW_AFTER_US + 100_000;
        self.until(most, |_| wall_us() >= end_us).map(drop)
    }

    /// The window that it is now.
    pub(crate) fn window(&self) -> u64 {
        wall_us() / (self.plan.window_s * 1_000_000)
    }

    /// Ends the clients and takes in their last answers.
    pub(crate) fn end_traffic(&mut self) {
        self.traffic.stop();
        self.take_in();
        self.look_away();
    }

    /// Prints what was found; true if every promise held.
    pub(crate) fn close(self) -> bool {
        println!();
        for line in self.verdict.lines() {
            println!("{line}");
        }
        self.verdict.holds()
    }

    fn take_in(&mut self) {
        for answer in self.traffic.answers() {
            self.tally.add(answer);
        }
        let Some(view) = self.view else { return };
        while wall_us() >= (self.next_row + 1) * 1_000_000 + ROW_AFTER_US {
            self.rows += 1;
            let row = match view {
                View::Windows(limits) => {
                    board::windows(&self.tally, limits, self.next_row, self.plan.window_s)
                }
                View::Leaks => board::leaks(
                    self.tally.second(self.next_row),
                    self.stage.of_pops("weir_leaked_total", &[]),
                    self.rows,
                ),
            };
            println!("{row}");
            self.next_row += 1;
        }
    }
}
