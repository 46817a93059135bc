//! A real user of this machine that a test makes, and removes again; only root can make one.

use std::{
    ffi::OsString,
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use crate::program::bare;

/// A user with neither home nor password.
#[derive(Debug)]
pub struct User {
    name: String,
    uid: u32,
}

/// Tells the users of one process apart.
static MADE: AtomicU32 = AtomicU32::new(0);

impl User {
    /// Makes a user, with a group of its own name and further ones; none where we cannot.
    #[must_use]
    pub fn make(groups: &[&str]) -> Option<Self> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("lych{}x{number}", std::process::id());
        let mut add = Command::new("useradd");
        add.args(["--no-create-home", "--user-group", "--shell", "/bin/false"]);
        if !groups.is_empty() {
            add.args(["--groups", &groups.join(",")]);
        }
        let made = add.arg(&name).stderr(Stdio::null()).status();
        made.ok().filter(std::process::ExitStatus::success)?;
        let said = Command::new("id").args(["-u", &name]).output().ok()?;
        let uid = String::from_utf8(said.stdout).ok()?.trim().parse().ok();
        // Made, so it is removed also if its number cannot be told.
        let user = Self {
            name,
            uid: uid.unwrap_or(u32::MAX),
        };
        (user.uid != u32::MAX).then_some(user)
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its number.
    #[must_use]
    pub const fn uid(&self) -> u32 {
        self.uid
    }

    /// Returns the same command, to be run by this user in its own groups.
    #[must_use]
    pub fn as_it(&self, command: &Command) -> Command {
        let mut its = bare("setpriv");
        its.args(["--reuid", &self.name, "--regid", &self.name]);
        its.args(["--init-groups", "--"]);
        its.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => its.env(name, value),
                None => its.env_remove(name),
            };
        }
        // What we have in ours may be out of its reach.
        its.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let folder = command.get_current_dir();
        its.current_dir(folder.map_or_else(|| OsString::from("/"), Into::into));
        its
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let mut remove = Command::new("userdel");
        remove.arg("--force").arg(&self.name);
        drop(remove.stdout(Stdio::null()).stderr(Stdio::null()).status());
    }
}
