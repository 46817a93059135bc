//! Tells a person that something waits, where a person looks: in the system's journal and on the desktop.
//!
//! Only ids and our own words go out, since what an agent wrote must not speak to anybody from here. Neither
//! way is needed for anything: `lych pending` shows what waits, and a place that takes no notice is no error.

use std::{
    io,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use model::SessionId;
use tokio::{process::Command, time::timeout};
use tokio_util::task::TaskTracker;

/// Where notices go.
#[derive(Debug)]
pub(crate) struct Notices {
    /// The journal's socket (systemd.io, "Native Journal Protocol").
    pub(crate) journal: PathBuf,
    /// A program that shows its last argument on the desktop, as notify-send(1) does.
    pub(crate) desktop: PathBuf,
    /// Owns every notice under way: whoever waits for a run's admission does not wait for a desktop.
    pub(crate) tasks: TaskTracker,
}

impl Notices {
    /// Waits for what is under way, which is bounded.
    pub(crate) async fn end(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Tells that a run waits, and returns who could be told.
    pub(crate) async fn run_waits(&self, session: SessionId) -> String {
        let text = format!("An agent's run waits for you: lych allow {session}");
        let journal = match self.to_journal(&text, session) {
            Ok(()) => "told",
            Err(_) => "not told",
        };
        let desktop = if self.to_desktop(&text).await {
            "told"
        } else {
            "not told"
        };
        format!("journal {journal}, desktop {desktop}")
    }

    fn to_journal(&self, text: &str, session: SessionId) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        // A journal that is stuck must not hold the gate up.
        socket.set_nonblocking(true)?;
        let fields = format!(
            "MESSAGE={text}\nPRIORITY=5\nSYSLOG_IDENTIFIER=lychd\nLYCHGATE_SESSION={session}\n"
        );
        socket.send_to(fields.as_bytes(), &self.journal).map(drop)
    }

    async fn to_desktop(&self, text: &str) -> bool {
        if !self.desktop.is_file() {
            return false;
        }
        // Where the desktop is, and nothing else that we were started with.
        let kept =
            std::env::vars_os().filter(|(name, _)| *name == "HOME" || *name == "XDG_RUNTIME_DIR");
        let started = Command::new(&self.desktop)
            .env_clear()
            .envs(kept)
            .args(["--app-name=Lychgate", "Lychgate", text])
            .current_dir(Path::new("/"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        let Ok(mut shown) = started else { return false };
        let ended = timeout(SHOWN_WITHIN, shown.wait()).await;
        matches!(ended, Ok(Ok(status)) if status.success())
    }
}

/// How long the desktop may take: it is one message over its bus.
const SHOWN_WITHIN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    fn script(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("show");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    #[tokio::test]
    async fn a_run_that_waits_is_told_to_journal_and_desktop_in_our_own_words() {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("journal");
        let listener = UnixDatagram::bind(&journal).unwrap();
        let shown = folder.path().join("shown");
        let desktop = script(
            folder.path(),
            &format!("printf '%s\\n' \"$@\" >{}", shown.display()),
        );
        let session = SessionId::from_bytes([7; 10]);

        let notices = Notices {
            journal,
            desktop,
            tasks: TaskTracker::new(),
        };

        let told = notices.run_waits(session).await;

        assert_eq!(told, "journal told, desktop told");
        let mut bytes = [0; 512];
        let length = listener.recv(&mut bytes).unwrap();
        let fields = String::from_utf8_lossy(&bytes[..length]).into_owned();
        assert_eq!(
            fields,
            format!(
                "MESSAGE=An agent's run waits for you: lych allow {session}\nPRIORITY=5\n\
                 SYSLOG_IDENTIFIER=lychd\nLYCHGATE_SESSION={session}\n"
            )
        );
        assert_eq!(
            fs::read_to_string(shown).unwrap(),
            format!(
                "--app-name=Lychgate\nLychgate\nAn agent's run waits for you: lych allow {session}\n"
            )
        );
    }

    #[tokio::test]
    async fn where_nobody_can_be_told_that_is_said_and_nothing_fails() {
        let folder = tempfile::tempdir().unwrap();
        for desktop in [folder.path().join("none"), script(folder.path(), "exit 1")] {
            let notices = Notices {
                journal: folder.path().join("none"),
                desktop,
                tasks: TaskTracker::new(),
            };

            let told = notices.run_waits(SessionId::from_bytes([7; 10])).await;

            assert_eq!(told, "journal not told, desktop not told");
        }
    }
}
