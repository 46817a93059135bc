//! What the log says: its head, one record, all of them; their bodies only through a daemon whose vault is open.

use std::path::Path;

use ledger::{Records, Stored};
use model::{EpochId, Exit, Explain, Fault, Home, Seq};
use serde_json::{Value, json};

use super::{Place, bodies::Bodies, copy, refused};
use crate::ui;

/// Prints `HEAD` as it is, so that it can be redirected into a file and used as a pin.
pub(super) fn head(home: &Home, place: &Place) -> Result<Exit, Explain> {
    let path = place.of(home).join("HEAD");
    let bytes = copy::read(&path).map_err(|error| refused("read", &path, &error))?;
    let head = ledger::Head::decode(&bytes).map_err(|error| refused("use", &path, &error))?;
    ui::data(&String::from_utf8_lossy(&bytes))?;
    ui::note(&match copy::newest(home) {
        Some(copy) => format!(
            "The newest copy outside reaches to record {} ({}, {}); the log to {}.",
            copy.seq,
            copy.at,
            copy.to.display(),
            head.seq
        ),
        None => "There never was a copy outside: `lych audit ship --to DIR`".to_owned(),
    });
    Ok(Exit::Done)
}

/// Shows one record.
pub(super) fn show(home: &Home, place: &Place, seq: Seq) -> Result<Exit, Explain> {
    let dir = place.of(home);
    for record in records(&dir)? {
        let (epoch, stored) = record.map_err(|error| refused("read", &dir, &error))?;
        if stored.header.seq == seq {
            let body = bodies(home, place)?.of_record(&stored, Some(1))?;
            ui::json(&shown(epoch, &stored, body))?;
            return Ok(Exit::Done);
        }
    }
    let what = format!("the log holds no record {seq}");
    Err(Explain::new(Exit::Usage, Fault::Caller, what).next("lych audit verify"))
}

/// Prints every record, one JSON object per line.
pub(super) fn export(home: &Home, place: &Place) -> Result<Exit, Explain> {
    let dir = place.of(home);
    let mut bodies = bodies(home, place)?;
    let mut page = String::new();
    for record in records(&dir)? {
        let (epoch, stored) = record.map_err(|error| refused("read", &dir, &error))?;
        let body = bodies.of_record(&stored, None)?;
        page.push_str(&shown(epoch, &stored, body).to_string());
        page.push('\n');
        if page.len() > PAGE {
            ui::data(&page)?;
            page.clear();
        }
    }
    ui::data(&page)?;
    Ok(Exit::Done)
}

fn bodies(home: &Home, place: &Place) -> Result<Bodies, Explain> {
    if place.is_own() {
        Bodies::of(home)
    } else {
        Ok(Bodies::none())
    }
}

fn records(dir: &Path) -> Result<Records, Explain> {
    Records::open(dir).map_err(|error| refused("read", dir, &error))
}

fn shown(epoch: EpochId, stored: &Stored, body: Value) -> Value {
    let header = &stored.header;
    json!({
        "schema": "lych.record/v1", "seq": header.seq, "kind": header.kind.word(), "at": header.stamp.wall,
        "boot_ms": header.stamp.boot_ms, "session_id": header.session, "call": header.call,
        "refers_to": header.refers_to, "epoch": epoch, "prev": header.prev, "id": stored.id,
        "body": body,
    })
}

/// Written out at once.
const PAGE: usize = 64 * 1024;
