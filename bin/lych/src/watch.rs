//! `lych watch`: `ps`, again whenever what it says has changed.

use std::{
    io::{self, Write},
    os::fd::AsFd,
};

use clap::Args;
use model::{Exit, Explain, Home};
use sys::{
    clock::boot_millis,
    port::{Port, Watch, wait},
};
use verdict::{Confidence, Extent, Report, Verdict};

use crate::{
    ps,
    survey::{Closer, Survey},
};

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Look every so many seconds.
    #[arg(long, value_name = "S", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
    /// End after so many looks.
    #[arg(long, value_name = "N")]
    looks: Option<u64>,
    /// Print one JSON report a line.
    #[arg(long)]
    json: bool,
}

/// Looks again and again until it is interrupted.
///
/// # Errors
/// The processes cannot be listed.
pub(crate) fn run(home: &Home, args: &WatchArgs) -> Result<Exit, Explain> {
    let mut told: Option<Vec<Told>> = None;
    let mut looks = 0_u64;
    loop {
        let report = Survey::take(home, Closer::Candidates, Extent::Servers)?.report;
        let now = essence(&report);
        if told.as_ref() != Some(&now) {
            let text = if args.json {
                serde_json::to_string(&report).unwrap_or_default()
            } else {
                let page = ps::page(&report, false, sys::process::own_uid());
                format!("{}\n{page}", report.observed_at)
            };
            if writeln!(io::stdout().lock(), "{text}").is_err() {
                return Ok(Exit::Done);
            }
            told = Some(now);
        }
        looks = looks.saturating_add(1);
        if args.looks.is_some_and(|limit| looks >= limit) {
            return Ok(Exit::Done);
        }
        if !is_read_until(args.every.saturating_mul(1000)) {
            return Ok(Exit::Done);
        }
    }
}

/// Waits, and tells whether somebody still reads: a watch that nobody reads would be a leftover itself.
fn is_read_until(millis: u64) -> bool {
    let out = io::stdout();
    let Ok(port) = Port::new(out.as_fd()) else {
        return false;
    };
    let deadline = boot_millis().saturating_add(millis);
    wait([Some((port, Watch::default()))], Some(deadline))
        .is_err_and(|error| error.kind() == io::ErrorKind::TimedOut)
}

/// What a person would want to be told about when it changes: not ages, not memory.
type Told = (String, Verdict, Confidence, Vec<u32>);

fn essence(report: &Report) -> Vec<Told> {
    let told = report.findings.iter().map(|finding| {
        let members = finding.members.iter().map(|member| member.pid);
        (
            finding.id.clone(),
            finding.verdict,
            finding.confidence,
            members.collect(),
        )
    });
    told.collect()
}
