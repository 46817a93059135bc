//! The daemon as a user of its own: root says once under which users, makes the folders, and starts it.
//!
//! The home is root's. In it the daemon's user has `private/` for itself (vault, policy, the operator's socket), and
//! shows `run/`, `audit/` and `launches/` to its group, which the agents' user must be in. Nothing that root or
//! the daemon runs may be in the hands of the agents' user: a program that he could exchange would make him both.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use model::{Exit, Explain, Fault, Foreign, Home, HomeError, Users};
use sys::spawn::{Detached, User};

use crate::mcp::{self, StartedBy};

/// Where it lives unless somebody says otherwise.
pub(crate) const USUAL: &str = "/var/lib/lychgate";

/// Returns the home below a folder, in the mode that root gave it.
///
/// # Errors
/// The path is not absolute, or somebody else than root could have said which mode it is.
pub(crate) fn home_at(folder: &Path) -> Result<Home, Explain> {
    let realm = sys::realm::of(folder).map_err(|error| {
        Explain::new(
            Exit::Refused,
            Fault::Operator,
            "it is not clear under which users this home runs",
        )
        .because(error)
        .next("root sets it up anew: sudo lych up --system")
    })?;
    let home = match realm {
        None => Home::below(folder),
        Some(users) => Home::separate(folder, users, own(folder)),
    };
    home.map_err(|error: HomeError| {
        Explain::new(Exit::Usage, Fault::Caller, error.to_string())
            .next("name a folder with --home DIR")
    })
}

/// Where the caller keeps what is his; root without a home of its own keeps it with the daemon.
fn own(folder: &Path) -> PathBuf {
    let usual = |name: &str| std::env::var_os(name).filter(|_| name != "LYCH_HOME");
    Home::from_vars(|name| usual(name).map(PathBuf::from)).map_or_else(
        |_| folder.join("private"),
        |home| home.own_folder().to_owned(),
    )
}

/// Says under which users the home in this folder runs, and makes what they need.
///
/// # Errors
/// This is not root; a user is missing or is not in the group; something is in the wrong hands.
pub(crate) fn set_up(home: &Home, daemon: &str, agent: Option<&str>) -> Result<Home, Explain> {
    let folder = home.root().unwrap_or(Path::new(USUAL));
    if sys::process::own_uid() != 0 {
        return Err(only_root("makes the daemon a user of its own"));
    }
    let (daemon, agent) = accounts(daemon, agent)?;
    let users = Users {
        daemon: daemon.uid,
        agent: agent.uid,
    };
    in_safe_hands(&programs()?)?;
    match home.realm() {
        model::Realm::SeparateUser(there) if there == users => {}
        model::Realm::SeparateUser(there) => {
            return Err(refused(format!(
                "{} runs under other users already",
                folder.display()
            ))
            .because(format!("daemon {}, agents {}", there.daemon, there.agent))
            .next("name another folder with --home DIR"));
        }
        model::Realm::SameUser if home.audit().join("LOG").exists() => {
            return Err(
                refused(format!("{} is the home of one user", folder.display()))
                    .because("its vault and its log were within reach of that user's programs")
                    .next("name another folder with --home DIR, and add the secrets anew"),
            );
        }
        model::Realm::SameUser => {}
    }
    make(folder, users, daemon.gid).map_err(|error| {
        refused(format!("{} cannot be set up", folder.display())).because(error)
    })?;
    in_safe_hands(&[folder.to_owned()])?;
    home_at(folder)
}

fn make(folder: &Path, users: Users, group: u32) -> io::Result<()> {
    made(folder, 0o755, (0, 0))?;
    let home = Home::separate(folder, users, folder.join("private")).map_err(io::Error::other)?;
    let theirs = (users.daemon, group);
    for private in home.private_folders() {
        made(&private, 0o700, theirs)?;
    }
    for shared in home.shared_folders() {
        made(&shared, 0o750, theirs)?;
    }
    // Last: with it the home is one of this kind.
    let file = sys::realm::file(folder);
    sys::durable::replace(&file, sys::realm::text(users).as_bytes())?;
    fs::set_permissions(&file, Permissions::from_mode(0o644))
}

/// Makes a folder if there is none; one that is there must be as it would be made.
fn made(path: &Path, mode: u32, (uid, gid): (u32, u32)) -> io::Result<()> {
    if fs::symlink_metadata(path).is_err() {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        return chown(path, Some(uid), Some(gid));
    }
    let meta = fs::symlink_metadata(path)?;
    let is_as_made = meta.is_dir() && meta.uid() == uid && meta.mode() & 0o777 == mode;
    if is_as_made && (uid == 0 || meta.gid() == gid) {
        return Ok(());
    }
    let text = format!(
        "{} must be a folder of uid {uid} and gid {gid} with mode {mode:o}",
        path.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Starts the daemon as its user, with nothing of ours.
///
/// # Errors
/// This is not root, or the daemon cannot be started.
pub(crate) fn start(home: &Home, started_by: StartedBy) -> Result<(), Explain> {
    if sys::process::own_uid() != 0 {
        return Err(Explain::new(
            Exit::Unreachable,
            Fault::Operator,
            "the daemon is not running, and only root starts it",
        )
        .because("it is a user of its own")
        .next(format!("sudo lych{} up", home.option())));
    }
    in_safe_hands(&programs()?)?;
    let log = home.daemon_log();
    let folder = log.parent().unwrap_or(Path::new("/"));
    let meta = fs::metadata(folder).map_err(|error| {
        refused(format!("{} cannot be looked at", folder.display())).because(error)
    })?;
    mcp::start_detached(&Detached {
        program: mcp::daemon_beside_us()?,
        arguments: mcp::arguments(home, started_by),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        as_user: Some(User {
            uid: home.realm().daemon(meta.uid()),
            gid: meta.gid(),
        }),
        log,
    })
}

fn programs() -> Result<[PathBuf; 2], Explain> {
    let own = std::env::current_exe()
        .map_err(|error| refused("this program's own file cannot be told").because(error))?;
    Ok([own, mcp::daemon_beside_us()?])
}

/// Sees that nobody but root can exchange these files or the folders they lie in.
fn in_safe_hands(paths: &[PathBuf]) -> Result<(), Explain> {
    for path in paths {
        let real = fs::canonicalize(path).map_err(|error| {
            refused(format!("{} cannot be found", path.display())).because(error)
        })?;
        for part in real.ancestors() {
            let meta = fs::metadata(part).map_err(|error| {
                refused(format!("{} cannot be looked at", part.display())).because(error)
            })?;
            if !is_roots(&meta) {
                return Err(refused(format!(
                    "{} could be exchanged by somebody else than root",
                    path.display()
                ))
                .because(format!(
                    "{} belongs to uid {} and has mode {:o}",
                    part.display(),
                    meta.uid(),
                    meta.mode() & 0o7777
                ))
                .next("install both programs where only root writes, as in /usr/local/bin"));
            }
        }
    }
    Ok(())
}

/// In a folder with the sticky bit nobody exchanges what is root's (unlink(2), rename(2)).
fn is_roots(meta: &fs::Metadata) -> bool {
    let mode = meta.mode();
    meta.uid() == 0 && (mode & 0o022 == 0 || (meta.is_dir() && mode & 0o1000 != 0))
}

/// A user as passwd(5) has him.
struct Account {
    uid: u32,
    gid: u32,
}

fn accounts(daemon: &str, agent: Option<&str>) -> Result<(Account, Account), Explain> {
    let caller = std::env::var("SUDO_USER").ok();
    let Some(agent) = agent.map(str::to_owned).or(caller) else {
        return Err(
            Explain::new(Exit::Usage, Fault::Caller, "whose agents shall be served?")
                .next("name him with --agent-user NAME"),
        );
    };
    let passwd = read("/etc/passwd")?;
    let (daemon_account, agent_account) = (account(&passwd, daemon)?, account(&passwd, &agent)?);
    let same = daemon_account.uid == agent_account.uid;
    if same || daemon_account.uid == 0 || agent_account.uid == 0 {
        return Err(
            refused("the daemon and its agents must be two users, neither of them root").because(
                format!(
                    "{} is uid {}, {} is uid {}",
                    Foreign::from(daemon),
                    daemon_account.uid,
                    Foreign::from(agent.as_str()),
                    agent_account.uid
                ),
            ),
        );
    }
    if !is_in_group(
        &read("/etc/group")?,
        daemon_account.gid,
        (&agent, agent_account.gid),
    ) {
        let (daemon, agent) = (Foreign::from(daemon), Foreign::from(agent.as_str()));
        return Err(refused(format!("{agent} is not in the group of {daemon}"))
            .because("the agents reach their socket as members of that group")
            .next(format!(
                "usermod --append --groups {daemon} {agent}, then let him log in anew"
            )));
    }
    Ok((daemon_account, agent_account))
}

fn read(path: &str) -> Result<String, Explain> {
    fs::read_to_string(path)
        .map_err(|error| refused(format!("{path} cannot be read")).because(error))
}

fn account(passwd: &str, name: &str) -> Result<Account, Explain> {
    let entry = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let is_it = fields.first() == Some(&name);
        let number = |at: usize| fields.get(at)?.parse().ok();
        is_it.then_some(Account {
            uid: number(2)?,
            gid: number(3)?,
        })
    };
    let found = passwd.lines().find_map(entry);
    found.ok_or_else(|| {
        let name = Foreign::from(name);
        refused(format!("there is no user {name} on this machine"))
            .because("only local users count: a daemon must not wait for a directory service")
            .next(format!(
                "useradd --system --user-group --no-create-home --shell /usr/sbin/nologin {name}"
            ))
    })
}

/// Tells whether a user, with this group of his own, is a member of a group.
fn is_in_group(groups: &str, gid: u32, (name, own): (&str, u32)) -> bool {
    let lists = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let is_it = fields.get(2).and_then(|text| text.parse().ok()) == Some(gid);
        let members = fields.get(3).copied().unwrap_or_default();
        is_it && members.split(',').any(|member| member == name)
    };
    own == gid || groups.lines().any(lists)
}

fn only_root(what: &str) -> Explain {
    refused(format!("only root {what}")).next("the same with sudo")
}

fn refused(what: impl Into<String>) -> Explain {
    Explain::new(Exit::Refused, Fault::Operator, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0::/root:/bin/sh\nbroken\nlychgate:x:998:997::/:/bin/false\n";

    #[test]
    fn a_user_is_found_by_his_whole_name_and_one_who_is_not_there_is_not() {
        let found = account(PASSWD, "lychgate").unwrap();
        assert_eq!((found.uid, found.gid), (998, 997));
        for name in ["lych", "lychgate2", "x", "", "broken"] {
            assert!(account(PASSWD, name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_member_is_named_in_the_group_or_has_it_as_his_own() {
        let groups = "root:x:0:\nlychgate:x:997:ann,bob\nothers:x:99:eve\n";
        assert!(is_in_group(groups, 997, ("bob", 1)));
        assert!(is_in_group(groups, 997, ("eve", 997)));
        for name in ["eve", "an", "ann,bob", ""] {
            assert!(!is_in_group(groups, 997, (name, 1)), "{name}");
        }
    }

    #[test]
    fn what_another_user_could_exchange_is_not_in_safe_hands() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, "").unwrap();
        let safe = || in_safe_hands(std::slice::from_ref(&program)).is_ok();
        if sys::process::own_uid() != 0 {
            assert!(!safe(), "it is not root's");
            return;
        }
        assert!(safe());
        for (path, mode) in [(program.as_path(), 0o722), (folder.path(), 0o777)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            assert!(!safe(), "{path:?}");
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        chown(folder.path(), Some(1), None).unwrap();
        assert!(!safe(), "its folder is another's");
    }
}
