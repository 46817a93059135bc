//! An incident from the first look to the record: preserve, attribute, revoke, confirm, terminate, reconcile,
//! record, in that order and no other.
//!
//! Whoever kills first stops the noise and destroys the best evidence. So each step consumes the value that
//! the step before it returned, and "kill first" does not compile:
//!
//! ```text
//! preserve ─► Preserved ─► Attributed ─► Revoked ─► Confirmed ─► Terminated ─► Reconciled ─► Recorded
//! ```
//!
//! An incident is a folder. Every step is one file, durable before the next step begins, so a crash loses at
//! most the step under way; [`resume`] reads the folder and hands back the value to go on from. The steps
//! name their predecessor by its digest, and where a daemon runs each digest is also in its log.
//!
//! This room reaches authority only through the trait [`Authority`] and processes only through [`Eyes`] and
//! `supervise`. It never opens the log, and it never talks to a person.

mod attribute;
mod authority;
mod case;
mod confirm;
mod desk;
mod error;
mod eyes;
mod fate;
#[cfg(test)]
mod fixture;
mod folder;
mod follow_up;
mod preserve;
mod reconcile;
mod record;
mod resume;
mod revoke;
mod row;
mod step;
mod subject;
mod terminate;
#[cfg(test)]
mod tests;
mod times;
mod view;

pub use attribute::{Attribute, Attributed, Attribution, Source};
pub use authority::{
    Absent, Authority, CallFact, Probed, Refusal, RefusedBy, Revocation, RunFact, Unanswered,
    Verification,
};
pub use case::{Case, list};
pub use confirm::{Confirmation, Confirmed};
pub use desk::Desk;
pub use error::IncidentError;
pub use eyes::{Eyes, Look, Sight};
pub use fate::Fate;
pub use folder::{Anchor, EvidenceFile};
pub use follow_up::{Done, FollowUp, FollowUpKind};
pub use preserve::{Opening, Preserve, Preserved, RawEvidence, Selection, preserve};
pub use reconcile::{Reconcile, Reconciled};
pub use record::{Record, Recorded, State};
pub use resume::{Stage, resume};
pub use revoke::{Revoke, Revoked};
pub use row::{Acted, CallRow, Outcome, Row, Taken, Termination};
pub use step::{Body, Step};
pub use subject::{AuthorityLevel, LostSeen, Named, Place, Reach, Subject};
pub use supervise::Standing;
pub use terminate::{Ending, NotSignalled, Terminate, Terminated};
pub use times::{ClientLost, Window, window};
pub use view::{Anchored, ConfirmationView, StepView, View};
