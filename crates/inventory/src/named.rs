//! Finds who holds the ends of named pipes that processes have for their input or output.
//!
//! A named pipe is shown by its name, of which it may have several or none any more, and in other mount namespaces
//! another. So it is told by its file system and its number there, of every descriptor that may be one; that costs
//! a call each and is done only if a process that is looked at closer has one. It cannot be asked whether anybody
//! writes, as an anonymous pipe can: opening it hides the end (fifo(7)).

use std::{collections::BTreeSet, io};

use crate::{Access, Look, NamedPipe, Process, Snapshot, Source, Target, pass::entry};

/// Marks all ends of the named pipes that these processes read from or write to at 0 and 1, and returns who holds one.
pub(crate) fn find<S: Source>(
    source: &S,
    snapshot: &mut Snapshot,
    pids: &BTreeSet<u32>,
) -> BTreeSet<u32> {
    let asked = pids.iter().filter_map(|pid| snapshot.process(*pid));
    let sought: BTreeSet<NamedPipe> = asked
        .flat_map(|process| of(source, process, 2).unwrap_or_default())
        .map(|end| end.pipe)
        .collect();
    if sought.is_empty() {
        return BTreeSet::new();
    }
    let mut gaps = Vec::new();
    let mut holders = BTreeSet::new();
    for process in &mut snapshot.processes {
        let ends = match of(source, process, u32::MAX) {
            Ok(ends) => ends,
            Err(error) => {
                gaps.push(entry(Some(process.pid()), WHAT, &error));
                continue;
            }
        };
        for end in ends.iter().filter(|end| sought.contains(&end.pipe)) {
            holders.insert(process.pid());
            mark(process, end);
        }
    }
    snapshot.unreadable.extend(gaps);
    holders
}

/// One end of a named pipe.
struct End {
    fd: u32,
    pipe: NamedPipe,
    access: Access,
    close_on_exec: bool,
}

/// Returns the ends of named pipes that a process holds below a descriptor's number; one that has ended holds none.
fn of<S: Source>(source: &S, process: &Process, below: u32) -> io::Result<Vec<End>> {
    let mut files = process
        .open()
        .filter(|open| open.fd < below && matches!(open.target, Target::File { .. }))
        .peekable();
    if files.peek().is_none() {
        return Ok(Vec::new());
    }
    let ends = || -> io::Result<Vec<End>> {
        let look = source.process(process.pid())?;
        if look.stat()?.start_ticks != process.id.start_ticks {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut ends = Vec::new();
        for file in files {
            ends.extend(end(&look, file.fd)?);
        }
        Ok(ends)
    };
    match ends() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        ends => ends,
    }
}

/// One that was closed meanwhile is none.
fn end<L: Look>(look: &L, fd: u32) -> io::Result<Option<End>> {
    let told = look.named_pipe(fd).and_then(|pipe| {
        let info = pipe.map(|_| look.descriptor_info(fd)).transpose()?;
        Ok(pipe.zip(info))
    });
    match told {
        Ok(told) => Ok(told.map(|(pipe, info)| End {
            fd,
            pipe: pipe.into(),
            access: info.access.into(),
            close_on_exec: info.close_on_exec,
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn mark(process: &mut Process, end: &End) {
    let open = process.descriptor_mut(end.fd);
    if let Some(open) = open {
        open.access = Some(end.access);
        open.close_on_exec = Some(end.close_on_exec);
        open.named_pipe = Some(end.pipe);
    }
}

/// What could not be read of a process if its descriptors could not be told.
pub(crate) const WHAT: &str = "named pipes";
