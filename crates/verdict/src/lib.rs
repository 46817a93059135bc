//! Judges what a look saw: what is left over, whose it was, how sure that is, and on what it rests.
//!
//! Works on values that are given to it and reads nothing. Every verdict carries its evidence. What was not
//! seen is *unknown*, never clean: an orphan is *proven* only if it was a stdio server (by a record, or by
//! program and server argument), the other end of its transport is gone, and no client lives in its chain.
//! PPID 1 alone proves nothing, and neither does an idle wire.

mod authority;
mod case;
mod dependents;
mod input;
mod judge;
mod kinds;
mod leftovers;
mod named;
mod owners;
mod parentage;
mod records;
mod recycled;
mod report;
mod unit_verdict;
mod units;
mod waits;
mod wire;
mod world;

pub use input::{Input, LogFacts, SessionFact};
pub use judge::{Extent, candidates, command_text, judge};
pub use kinds::{
    Also, AuthorityLevel, Confidence, EndKind, EndState, EvidenceSource, EvidenceStrength, Fits,
    Proof, Suggest, Verdict,
};
pub use report::{
    Authority, Evidence, Finding, Owner, ProcessView, Report, SCHEMA, ServerView, Sums, Transport,
    TransportEnd,
};
