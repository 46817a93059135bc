//! The vault put under another passphrase or key file.

use std::sync::Arc;

use model::{Act, Explain, Operator};
use serde_json::Value;
use wire::operator::Opener;

use super::{acted, closed, init};
use crate::daemon::Daemon;

/// Locks the vault's identity anew. Whoever kept the old file and the old passphrase still opens what he kept.
pub(super) async fn change(
    daemon: &Arc<Daemon>,
    by: &Operator,
    given: Opener,
) -> Result<Value, Explain> {
    let _turn = daemon.vault_turn.lock().await;
    let opener = init::opener(given)?;
    daemon.store.with(|_| ()).ok_or_else(|| closed(daemon))?;
    acted(daemon, by, Act::OpenerChanged).await?;
    let store = Arc::clone(&daemon.store);
    let changed =
        init::slowly(move || store.with(|vault| vault.change_opener(&opener)).transpose()).await?;
    changed.ok_or_else(|| closed(daemon))?;
    Ok(Value::Null)
}
