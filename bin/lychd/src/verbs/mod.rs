//! The operator's verbs, one function each.

mod backup;
mod init;
mod journals;
mod log;
mod opener;
mod pending;
mod policy;
mod presence;
mod revoke;
mod sealed;
mod secrets;

use std::sync::Arc;

use model::{Act, Body, Entry, Exit, Explain, Fault, Kind, NotDurable, Operator, Ticket};
use serde_json::{Value, json};
use wire::operator::Request;

use crate::{daemon::Daemon, operator::Caller};
pub(crate) use journals::unresolved;
pub(crate) use opener::by_machine;
pub(crate) use policy::draft_differs;
use sealed::sealed as sealed_now;
pub(crate) use sealed::sealed;

/// Does what an operator asks.
pub(crate) async fn run(
    daemon: &Arc<Daemon>,
    caller: &mut Caller,
    request: Request,
) -> Result<Value, Explain> {
    if presence::widens(&request) {
        presence::require(daemon, caller).await?;
    }
    let by = &caller.by;
    match request {
        Request::Status => daemon.status().await,
        Request::Init { opener, pin } => init::init(daemon, caller, opener, pin).await,
        Request::Unlock { opener } => init::unlock(daemon, caller, opener).await,
        Request::Present { pin } => {
            caller.pin = Some(Arc::new(crate::pin::of(&pin)?));
            Ok(Value::Null)
        }
        Request::PresenceChoose { pin } => presence::choose(daemon, by, pin).await,
        Request::Pending => pending::list(daemon).await,
        Request::Allow { session, remember } => pending::allow(daemon, by, session, remember).await,
        Request::Forget { shape } => pending::forget(daemon, by, &shape).await,
        Request::AllowRepeat { call } => pending::allow_repeat(daemon, by, call).await,
        Request::Lock => init::lock(daemon, by).await,
        Request::Stop => stop(daemon, by).await,
        Request::VaultAdd {
            name,
            value,
            destinations,
            header,
        } => {
            secrets::add(
                daemon,
                by,
                secrets::New {
                    name,
                    value,
                    destinations,
                    header,
                },
            )
            .await
        }
        Request::VaultRotate { name, value } => secrets::rotate(daemon, by, name, &value).await,
        Request::VaultRemove { name } => secrets::remove(daemon, by, name).await,
        Request::StandBehind { act } => presence::stand_behind(daemon, by, act).await,
        Request::VaultOpener { opener } => opener::change(daemon, by, opener).await,
        Request::VaultRecovery { recipient } => opener::recovery(daemon, by, recipient).await,
        Request::VaultMachine { key_file } => opener::machine(daemon, by, key_file).await,
        Request::VaultBackup => backup::copy(daemon, by).await,
        Request::VaultRestore {
            vault,
            identity,
            opener,
        } => backup::restore(daemon, caller, (&vault, &identity), opener).await,
        Request::AuditBodies { from, most } => log::bodies(daemon, from, most).await,
        Request::AuditErase { session } => log::erase(daemon, by, session).await,
        Request::AuditAdopt { epoch } => log::adopt(daemon, by, epoch).await,
        Request::AuditPrune { days, bytes, from } => {
            log::prune(daemon, by, (days, bytes), from).await
        }
        Request::VaultList => secrets::list(daemon),
        Request::ChannelsList => policy::list(daemon),
        Request::ChannelsApply { dry_run } => policy::apply(daemon, by, dry_run).await,
        Request::SessionsList => journals::sessions(daemon).await,
        Request::SessionShow { id } => journals::session(daemon, id).await,
        Request::Probe { session } => revoke::probe(daemon, session).await,
        Request::Revoke { scope, reason } => revoke::revoke(daemon, by, scope, reason).await,
        Request::ActivityList {
            session,
            since,
            open_only,
            last,
        } => {
            journals::calls(
                daemon,
                journals::Wanted {
                    session,
                    since,
                    open_only,
                    last,
                },
            )
            .await
        }
        Request::ActivityShow { call } => journals::call(daemon, call).await,
        Request::Resolve {
            call,
            happened,
            evidence,
        } => journals::resolve(daemon, by, call, (happened, evidence)).await,
        Request::IncidentStep {
            incident,
            step,
            sha256,
            late,
            from,
        } => {
            let body = Body::IncidentStep {
                incident,
                step,
                sha256,
                late,
                from,
            };
            let receipt = push(daemon, Kind::IncidentStep, body)
                .await
                .map_err(|error| unrecorded(&error))?;
            Ok(json!({"seq": receipt.seq, "log_id": receipt.log_id}))
        }
    }
}

/// Puts an operator act on record before it is done.
///
/// # Errors
/// It could not be recorded, so it must not be done.
pub(crate) async fn acted(daemon: &Arc<Daemon>, by: &Operator, act: Act) -> Result<(), Explain> {
    let body = Body::Acted {
        act,
        by: by.clone(),
    };
    push(daemon, Kind::Acted, body)
        .await
        .map(drop)
        .map_err(|error| unrecorded(&error))
}

async fn push(daemon: &Arc<Daemon>, kind: Kind, body: Body) -> Result<model::Receipt, NotDurable> {
    let ticket: Ticket = daemon.journal().push(Entry {
        kind,
        session: None,
        call: None,
        refers_to: None,
        body,
    });
    ticket.await
}

fn unrecorded(error: &NotDurable) -> Explain {
    Explain::new(
        Exit::Failed,
        Fault::Operator,
        "nothing was done, because it could not be recorded",
    )
    .because(error)
    .next("look at the disk and the log's folder, then restart the daemon")
}

fn locked() -> Explain {
    Explain::new(Exit::Locked, Fault::Operator, "the vault is locked").next("lych unlock")
}

fn no_vault() -> Explain {
    Explain::new(Exit::Locked, Fault::Operator, "there is no vault yet").next("lych init")
}

/// Says why the vault cannot be used now.
fn closed(daemon: &Arc<Daemon>) -> Explain {
    match daemon.store.state() {
        wire::VaultState::None => no_vault(),
        wire::VaultState::Locked | wire::VaultState::Unlocked => locked(),
    }
}

async fn stop(daemon: &Arc<Daemon>, by: &Operator) -> Result<Value, Explain> {
    // The daemon ends also if its end cannot be recorded; the log then simply stops.
    if let Err(error) = acted(daemon, by, Act::Stop).await {
        daemon
            .notes
            .say(&format!("the stop could not be recorded: {}", error.what));
    }
    daemon.stop.cancel();
    Ok(Value::Null)
}
