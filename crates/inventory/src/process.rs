//! One process as it was seen at one moment.

use model::{ExeId, Foreign, Known, ProcessId, ProcessRef, Wall};
use serde::{Deserialize, Serialize};

use crate::{Descriptor, ThreadWait, Wait};

/// One process as it was seen at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Which process.
    pub id: ProcessId,
    /// When it was read.
    pub observed_at: Wall,
    /// Effective user id.
    pub uid: u32,
    /// That user's name, or its number where it has none.
    pub user: Foreign,
    /// The name that the process gives itself, 15 bytes at most.
    pub comm: Foreign,
    /// The command line, values that look like secrets redacted; empty for a kernel thread or zombie.
    pub command: Known<Vec<Foreign>>,
    /// Where its program was found.
    pub exe: Known<Foreign>,
    /// Its working folder.
    pub cwd: Known<Foreign>,
    /// The parent as it is now.
    pub ppid: u32,
    /// The process group.
    pub pgid: u32,
    /// The session.
    pub sid: u32,
    /// The controlling terminal.
    pub tty: Option<String>,
    /// State letter and flags as ps(1) shows them (`s` session leader, `l` threads, `+` foreground).
    pub stat: String,
    /// How long it runs.
    pub elapsed_ms: u64,
    /// Processor time it used.
    pub cpu_ms: u64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// How many threads it has.
    pub threads: u32,
    /// Whether it is a thread of the kernel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel_thread: bool,
    /// Its open descriptors.
    pub descriptors: Known<Vec<Descriptor>>,
    /// What a closer look showed, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closer: Option<Closer>,
}

/// What is read of few processes only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closer {
    /// Names of the variables it was started with, never values; what it set later is not among them.
    pub env_names: Known<Vec<Foreign>>,
    /// Its control group (version 2).
    pub cgroup: Known<Foreign>,
    /// Inode of its network namespace.
    pub network_namespace: Known<u64>,
    /// Inode of its namespace of process numbers.
    #[serde(default = "not_asked")]
    pub pid_namespace: Known<u64>,
    /// Inode of its mount namespace: paths are to be read within it.
    #[serde(default = "not_asked")]
    pub mount_namespace: Known<u64>,
    /// Inode of its user namespace.
    #[serde(default = "not_asked")]
    pub user_namespace: Known<u64>,
    /// The numbers it has, from the observer's namespace to its own.
    #[serde(default = "not_asked")]
    pub namespace_pids: Known<Vec<u32>>,
    /// The file its program was loaded from.
    pub exe_id: Known<ExeId>,
    /// Whether it ignores or blocks SIGTERM. A handler that does nothing cannot be told from one that does.
    pub withstands_term: Known<bool>,
    /// How long its main thread ran or waited for a processor: on a busy machine a process that never rests
    /// gets little of one and still shows here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runnable_ms: Option<u64>,
    /// When any of its threads last ran, to within seconds: of a stopped one, when it was stopped.
    #[serde(default = "not_asked")]
    pub last_ran: Known<Wall>,
    /// What its main thread waits for.
    #[serde(default = "not_asked")]
    pub waits: Known<Wait>,
    /// Its other threads that will wake by themselves, of the first 64.
    #[serde(default = "not_asked")]
    pub wakers: Known<Vec<ThreadWait>>,
}

fn not_asked<T>() -> Known<T> {
    Known::unknown("not asked")
}

impl Closer {
    /// Returns the unit of a service manager that its control group is: a service or a scope, which holds one program.
    #[must_use]
    pub fn unit(&self) -> Option<&str> {
        let last = self.cgroup.value()?.raw().rsplit('/').next()?;
        let is_unit = last.ends_with(".service") || last.ends_with(".scope");
        is_unit.then_some(last)
    }

    /// Returns the id of the container that its control group belongs to.
    ///
    /// Engines name the group by the whole id (64 hex digits), some with what made it in front: `/docker/ID`,
    /// `docker-ID.scope`, `libpod-ID.scope`, `cri-containerd-ID.scope`, `cri-containerd:…:ID`.
    #[must_use]
    pub fn container(&self) -> Option<&str> {
        let groups = self.cgroup.value()?.raw().rsplit('/');
        let ids = groups.filter_map(|group| {
            let name = group.strip_suffix(".scope").unwrap_or(group);
            name.rsplit(['-', ':']).next().filter(|id| is_whole_id(id))
        });
        ids.into_iter().next()
    }
}

fn is_whole_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Something that could not be read, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// Of which process; none if it concerns the whole look.
    pub pid: Option<u32>,
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

impl Process {
    /// Returns its number.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.id.pid
    }

    /// Tells whether it has ended and only its parent has not taken notice. One whose first thread has ended shows
    /// the same letter, and lives by its others.
    #[must_use]
    pub fn is_zombie(&self) -> bool {
        self.stat.starts_with(['Z', 'X', 'x']) && !self.stat.contains('l')
    }

    /// Tells whether it is stopped by a signal or a debugger.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stat.starts_with(['T', 't'])
    }

    /// Tells whether it waits in the kernel for something that no signal ends, as for a dead disk.
    #[must_use]
    pub fn is_uninterruptible(&self) -> bool {
        self.stat.starts_with('D')
    }

    /// Returns for how long none of its threads has run, where that was seen.
    #[must_use]
    pub fn still_for_ms(&self) -> Option<u64> {
        let ran = self.closer.as_ref()?.last_ran.value()?;
        Some(self.observed_at.millis().saturating_sub(ran.millis()))
    }

    /// Returns its descriptors, none where they could not be read.
    pub fn open(&self) -> impl Iterator<Item = &Descriptor> {
        self.descriptors.value().into_iter().flatten()
    }

    /// Returns one of its descriptors.
    #[must_use]
    pub fn descriptor(&self, fd: u32) -> Option<&Descriptor> {
        self.open().find(|descriptor| descriptor.fd == fd)
    }

    pub(crate) fn descriptor_mut(&mut self, fd: u32) -> Option<&mut Descriptor> {
        let Known::Yes(open) = &mut self.descriptors else {
            return None;
        };
        open.iter_mut().find(|descriptor| descriptor.fd == fd)
    }

    /// Returns the arguments, none where they could not be read.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.command.value().into_iter().flatten().map(Foreign::raw)
    }

    /// Returns it as records and people name it.
    #[must_use]
    pub fn reference(&self) -> ProcessRef {
        let exe_id = self
            .closer
            .as_ref()
            .and_then(|closer| closer.exe_id.value());
        ProcessRef {
            id: self.id.clone(),
            command: self.command.value().cloned().unwrap_or_default(),
            exe: self.exe.value().cloned(),
            exe_id: exe_id.copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNREAD: &str = r#"{"cgroup": "GROUP", "env_names": {"unknown": "x"}, "exe_id": {"unknown": "x"},
        "network_namespace": {"unknown": "x"}, "withstands_term": {"unknown": "x"}}"#;

    #[test]
    fn a_control_group_tells_the_unit_and_the_container_however_its_engine_names_it() {
        let id = "0123456789abcdef".repeat(4);
        let of = |group: &str| {
            let text = UNREAD.replace("GROUP", group);
            let closer: Closer = serde_json::from_str(&text).unwrap();
            let told = |text: Option<&str>| text.unwrap_or("none").to_owned();
            (told(closer.unit()), told(closer.container()))
        };

        for group in [
            "/docker/ID",
            "/system.slice/docker-ID.scope",
            "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
            "/kubepods.slice/kubepods-pod7.slice/cri-containerd-ID.scope",
            "/kubepods/besteffort/pod7/cri-containerd:kube:ID",
        ] {
            assert_eq!(of(&group.replace("ID", &id)).1, id, "{group}");
        }
        let none = "none".to_owned();
        assert_eq!(
            of("/system.slice/mcp.service"),
            ("mcp.service".to_owned(), none.clone())
        );
        assert_eq!(
            of("/user.slice/app-code-0123.scope"),
            ("app-code-0123.scope".to_owned(), none.clone())
        );
        assert_eq!(of("/user.slice"), (none.clone(), none));
    }
}
