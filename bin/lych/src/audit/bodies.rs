//! The sealed part of records, as the daemon opens it while its vault is open; some at a time.

use std::collections::BTreeMap;

use ledger::{Sealing, Stored};
use model::{Exit, Explain, Home, Seq};
use serde::Deserialize;
use serde_json::{Value, json};
use wire::operator::Request;

use crate::{
    operator::{self, Operator},
    ui,
};

/// Asked for at once.
const MOST: usize = 1000;

/// Whoever can open bodies, and those that were opened last.
pub(super) struct Bodies {
    daemon: Option<Operator>,
    page: BTreeMap<Seq, Value>,
}

#[derive(Deserialize)]
struct Page {
    bodies: Vec<Opened>,
}

#[derive(Deserialize)]
struct Opened {
    seq: Seq,
    body: Value,
}

impl Bodies {
    /// Finds whoever can open the bodies of this home's log.
    ///
    /// # Errors
    /// The daemon is there and cannot answer. That it is not there is no error, and is said.
    pub(super) fn of(home: &Home) -> Result<Self, Explain> {
        if !operator::is_operator(home, sys::process::own_uid()) {
            ui::note("Clear headers only: only root asks this daemon for more.");
            return Ok(Self::none());
        }
        let daemon = match Operator::connect(home) {
            Ok(daemon) => Some(daemon),
            Err(error) if error.exit == Exit::Unreachable => {
                ui::note("Clear headers only: the daemon is not running.");
                None
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            daemon,
            page: BTreeMap::new(),
        })
    }

    /// Nobody opens the bodies of a log elsewhere.
    pub(super) const fn none() -> Self {
        Self {
            daemon: None,
            page: BTreeMap::new(),
        }
    }

    /// Returns what a record says, or why that cannot be told.
    ///
    /// # Errors
    /// The daemon went away meanwhile.
    pub(super) fn of_record(
        &mut self,
        stored: &Stored,
        most: Option<usize>,
    ) -> Result<Value, Explain> {
        let seq = stored.header.seq;
        if stored.header.sealing == Sealing::Clear {
            return Ok(json!({"clear_bytes": stored.body.len()}));
        }
        if !self.page.contains_key(&seq) {
            self.turn(seq, most.unwrap_or(MOST))?;
        }
        let unknown = || json!({"unknown": "sealed"});
        Ok(self.page.remove(&seq).unwrap_or_else(unknown))
    }

    fn turn(&mut self, from: Seq, most: usize) -> Result<(), Explain> {
        let Some(daemon) = &mut self.daemon else {
            return Ok(());
        };
        match daemon.ask_for::<Page>(&Request::AuditBodies { from, most }) {
            Ok(page) => {
                self.page = page
                    .bodies
                    .into_iter()
                    .map(|one| (one.seq, one.body))
                    .collect();
                Ok(())
            }
            Err(error) if error.exit == Exit::Locked => {
                ui::note("Clear headers only: the vault is locked (lych unlock).");
                self.daemon = None;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
