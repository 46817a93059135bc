#!/usr/bin/env python3
"""A second verifier for Lychgate's audit log, written from docs/audit-format.md alone.

    verify.py DIR [--log-id ID] [--pin FILE]... [--require-pin]

It needs Python 3.10, PyNaCl (pip install -r requirements.txt) and the folder: no key, no daemon. It prints what it found as JSON.
Exit 0 intact, 3 tampered, truncated, forked, unendorsed or out of order, 1 no judgement.
"""
import argparse, base64, hashlib, json, os, re, struct, sys
from datetime import datetime, timezone
from pathlib import Path

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

SEGMENT, MAX_FRAME, MAX_BATCH = 16 << 20, 256 << 10, 1 << 20
OPENED, COMMIT, ENDORSED, ROOT, CLOSED, REPAIRED, ERASED, PRUNED, SESSION = 1, 2, 3, 4, 5, 6, 7, 8, 16
ATTEMPT, DENIED, CLEARED, WITHDRAWN, ANSWERED, OUTLIVING, WAITING, UNRESOLVED, RECONCILED, REVOKED = *range(32, 41), 48
KINDS = {*range(1, 9), *range(16, 21), *range(32, 42), 48, 49, 50}
LENGTH = {OPENED: 106, COMMIT: 98, ENDORSED: 139, ROOT: 192, CLOSED: 0, REPAIRED: 56, ERASED: 32, PRUNED: 80}
DOMAIN = {COMMIT: b"lychgate/commit/v1\0", ENDORSED: b"lychgate/epoch-endorsed/v1\0", ROOT: b"lychgate/root-endorsed/v1\0"}
LETTERS = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghjkmnpqrstvwxyz")
TIME = rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z"
LOG_FORM = rb"lychgate audit log 1\nsuite 1\nroot ([0-9a-f]{64})\nrecipient [!-~]+\ncreated " + TIME + rb"\n"
HEAD_FORM = (rb'\{"schema":"lych\.head/v1","log_id":"([0-9a-f]{64})","seq":(0|[1-9]\d*),"head":"([0-9a-f]{64})","at":"' + TIME +
             rb'","epoch":"(e-[0-9a-hjkmnp-tv-z]{16})","signature":"([0-9a-f]{128})"\}\n')


class Bad(Exception):
    """What was acknowledged is not there as it was written: what is wrong, and in which file."""


class Unknown(Exception):
    """There can be no judgement."""


def sha(data): return hashlib.sha256(data).digest()


def named(prefix, raw): return prefix + base64.b32encode(raw).decode().translate(LETTERS)


def read(path):
    """None if there is no such file. One that cannot be read raises, and then there is no judgement."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def names(folder, form=".*"):
    try:
        return sorted(name for name in os.listdir(folder) if re.fullmatch(form, name))
    except FileNotFoundError:
        return []


def numbers(folder): return [int(name[:10]) for name in names(folder, r"[0-9]{10}\.(seg|cert)")]


def millis(text):
    at = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f").replace(tzinfo=timezone.utc)
    return round(at.timestamp() * 1000)


def signed_by(public, message, signature):
    try:
        VerifyKey(public).verify(message, signature)
        return True
    except (BadSignatureError, ValueError):
        return False


class Record:
    def __init__(self, frame, file, offset):
        self.file, self.offset, self.end, self.id = file, offset, offset + len(frame), sha(frame)
        self.header, self.body = frame[4:92], frame[92:]
        (version, self.kind, sealing, reserved, self.seq, _, _, self.session, self.call, self.refers,
         self.prev) = struct.unpack(">BBBBQQQ10s10sQ32s", self.header)
        self.known = version == 1 and self.kind in KINDS
        self.proper = reserved == 0 and sealing <= 2 and (self.kind < 16) == (sealing == 0)

    def signed(self, log_id, *publics):
        """Whether the body ends in the signatures of these keys."""
        end = len(self.body) - 64 * len(publics)
        message = DOMAIN[self.kind] + log_id + self.header + self.body[:end]
        return all(signed_by(public, message, self.body[end + 64 * n:][:64]) for n, public in enumerate(publics))


def frames(data, file, at):
    """The records from here on, as long as their frames are whole."""
    while at + 92 <= (end := at + 4 + int.from_bytes(data[at:at + 4], "big")) <= min(len(data), at + MAX_FRAME):
        yield Record(data[at:end], file, at)
        at = end


class Order:
    """The rules of order, which need no key."""
    def __init__(self):
        self.open, self.answered, self.revoked, self.closed, self.begins = {}, set(), set(), False, 0

    def broken(self, r):
        """For each rule that a record of this kind is under: whether it breaks it."""
        attempt = self.open.get(r.refers)
        self.closed = self.closed and r.kind != OPENED
        yield self.closed and r.kind != COMMIT
        self.closed = self.closed or r.kind == CLOSED
        if r.kind == REVOKED and any(r.session):
            self.revoked.add(r.session)
        elif r.kind == ATTEMPT:
            self.open[r.seq] = [r.call, r.session, ATTEMPT]
            yield not any(r.call) or not any(r.session)
        elif r.kind == CLEARED:
            yield r.session in self.revoked
            yield attempt is None or attempt[:2] != [r.call, r.session]
            if attempt and attempt[:2] == [r.call, r.session]:
                attempt[2] = CLEARED
        elif r.kind == RECONCILED:
            yield not 0 < r.refers < r.seq
            self.open.pop(r.refers, None)
        elif DENIED <= r.kind <= UNRESOLVED and not r.refers:
            yield r.kind != DENIED
        elif DENIED <= r.kind <= UNRESOLVED and attempt is None:
            yield r.refers >= self.begins and (r.kind != ANSWERED or r.refers not in self.answered)
        elif DENIED <= r.kind <= UNRESOLVED:
            yield attempt[0] != r.call
            if attempt[0] == r.call:
                yield r.kind in (ANSWERED, OUTLIVING) if attempt[2] == ATTEMPT else r.kind == DENIED
                attempt[2] = r.kind
                self.answered |= {r.refers} if r.kind == ANSWERED else set()
                if r.kind in (DENIED, WITHDRAWN, ANSWERED):
                    del self.open[r.refers]


class Log:
    def __init__(self, folder, pins):
        self.dir, self.pins, self.id, self.root, self.why, self.complete = Path(folder), pins, None, None, None, False
        self.next, self.head, self.epoch, self.first, self.last, self.tail = 1, bytes(32), None, None, None, None
        self.epochs, self.order, self.structure, self.repairs, self.prunes = [], Order(), [], 0, []
        self.certificate, self.bad, self.absent = None, [], {}

    def judge(self):
        """Reads all there is. What is wrong is then in `bad`; why there can be no judgement is in `why`."""
        head = pin = None
        try:
            # Before the segments: a head is written behind its commit.
            head, log = read(self.dir / "HEAD"), read(self.dir / "LOG")
            if log is None:
                raise Bad("LOG is missing", "LOG") if self.is_lost() else Unknown("there is no log")
            self.read_log(log)
            pin = head is not None and self.read_head(head)
            self.walk()
            self.complete = True
            if self.certificate and self.certificate[1] not in self.prunes:
                raise Bad("no record vouches for this certificate", self.certificate[0])
        except Bad as bad:
            self.bad.insert(0, bad)
        except (Unknown, OSError) as error:
            self.why = str(error)
        if head is not None and self.id and not self.is_head_good(pin):
            self.bad.append(Bad("HEAD is not of its form, or not signed by a daemon run of this log", "HEAD"))
        self.bad += sorted(self.absent.values(), key=lambda bad: bad.args[1])

    def is_lost(self):
        """Whether more is left than the making of a log leaves if a crash comes before LOG."""
        there, segments = names(self.dir), names(self.dir / "seg", r".*\.seg")
        begun = segments and (segments != ["0000000000.seg"] or any((self.dir / "seg" / segments[0]).read_bytes()[96:]))
        return "seg" in there and ("HEAD" in there or "pruned" in there or names(self.dir / "keys") or begun)

    def read_log(self, data):
        """LOG names the first root. In a later form it can still be told whether the segments are chained to it."""
        self.id, form = sha(data), re.fullmatch(LOG_FORM, data)
        try:
            millis(form[2].decode())
            self.root = bytes.fromhex(form[1].decode())
        except (TypeError, ValueError):
            self.why = "LOG does not have the five lines of version 1"

    def read_head(self, data):
        """HEAD as a pin, with what its epoch has signed; None if it is not of its form."""
        try:
            log_id, seq, head, at, epoch, signature = (part.decode() for part in re.fullmatch(HEAD_FORM, data).groups())
            pin = {"local": True, "log_id": bytes.fromhex(log_id), "seq": int(seq), "head": bytes.fromhex(head), "result": None,
                   "epoch": epoch, "signature": bytes.fromhex(signature)}
            signed = pin["log_id"] + struct.pack(">Q32sQ", pin["seq"], pin["head"], millis(at))
        except (AttributeError, ValueError, struct.error):
            return None
        self.pins.append(pin | {"signed": b"lychgate/head/v1\0" + signed})
        return self.pins[-1]

    def is_head_good(self, pin):
        """Whether HEAD is of its form and signed by its epoch. One of a later epoch than there is will be missed as a pin."""
        epoch = next((e for e in reversed(self.epochs) if pin and named("e-", e["id"]) == pin["epoch"]), None)
        if epoch:
            return signed_by(epoch["key"], pin["signed"] + epoch["id"], pin["signature"])
        return bool(pin) and pin["seq"] >= self.next

    # -- the chain -------------------------------------------------------------------------------------------------

    def walk(self):
        """Believes batch after batch; what is wrong behind the last commit is left in `tail`."""
        present = numbers(self.dir / "seg")
        index = self.carried_over(present) if present and present[0] > 0 else 0
        while index in present:
            name, offset = f"seg/{index:010}.seg", 96
            data = (self.dir / name).read_bytes()
            self.segment_header(data, name, index)
            try:
                while batch := self.batch(data, name, index, offset):
                    offset = batch[-1].end
                    for record in batch:
                        self.inspect(record)
            except Bad as bad:
                if index + 1 in present:
                    raise
                self.tail = (bad, self.acknowledged(data[offset:]))
                return
            index += 1
        if present and present[-1] >= index:
            raise Bad("the segment is missing", f"seg/{index:010}.seg")

    def segment_header(self, data, name, index):
        want = b"LYCHSEG1\1" + bytes(7) + self.id + struct.pack(">QQ", index, self.next) + self.head
        if data[:96] != want or len(data) > SEGMENT:
            # What the first record is chained to is what was written.
            chained = len(data) >= 188 and data[156:188] == sha(data[:96])
            if chained and data[:16] != want[:16]:
                raise Unknown("a later version wrote this segment")
            raise Bad("the segment does not continue the log", "LOG" if chained and data[16:48] != self.id else name)
        self.head = sha(want)

    def batch(self, data, name, index, offset):
        """The records up to the next commit; none if only zeros follow."""
        records, head, epoch = [], self.head, self.epoch
        for r in frames(data, name, offset):
            records.append(r)
            if r.kind == COMMIT or r.offset - offset > MAX_BATCH:
                break
        if not records and not data[offset:].strip(b"\0"):
            return []
        if not records or r.kind != COMMIT or r.offset - offset > MAX_BATCH:
            raise Bad("these bytes lead to no commit", name)
        for seq, each in enumerate(records, self.next):
            if (each.prev, each.seq) != (head, seq):
                raise Bad("the chain breaks here", name)
            head = each.id
        strange = next((each for each in records if not (each.known and each.proper)), None)
        if strange:
            if not strange.known and strange is not r and (epoch is None or r.signed(self.id, epoch[1])):
                raise Unknown(f"record {strange.seq}: a version or kind that this program does not know")
            raise Bad("the header holds what version 1 never writes", name)
        if records[0].kind == OPENED:
            epoch = (records[0].body[:10], records[0].body[10:42])
        if epoch is None or any(e.kind == OPENED and (e is not records[0] or len(e.body) != 106) for e in records):
            raise Bad("a daemon run begins wrongly", name)
        says = struct.pack(">10sQQQ", epoch[0], self.next, index, r.offset)
        if len(r.body) != 98 or r.body[:34] != says or not r.signed(self.id, epoch[1]):
            raise Bad("the commit is not its daemon run's word for the records before it", name)
        self.next, self.head, self.epoch = r.seq + 1, head, epoch
        return records

    def acknowledged(self, data):
        """Whether a signed commit follows that does not continue the last good one: then this is no torn write."""
        def shaped(kind):
            front = re.escape(struct.pack(">IBBBB", 88 + LENGTH[kind], 1, kind, 0, 0))
            for found in re.finditer(b"(?=" + front + b")", data):
                yield from [r for r in frames(data, "", found.start())][:1]
        publics = [r.body[10:42] for r in shaped(OPENED)] + ([self.epoch[1]] if self.epoch else [])
        return any(int.from_bytes(r.body[10:18], "big") > self.next and r.signed(self.id, public)
                   for r in shaped(COMMIT) for public in publics)

    def carried_over(self, present):
        """Begins behind segments that were given up, with what their certificate carries over."""
        index = next((n for n in numbers(self.dir / "pruned") if n >= present[0]), None)
        if index is None:
            return 0
        name = f"pruned/{index:010}.cert"
        data = (self.dir / name).read_bytes()
        front, records = b"LYCHPRUN\1" + bytes(7) + self.id + struct.pack(">Q", index), list(frames(data, name, 96))
        opened = [r.body for r in records if r.kind == OPENED and len(r.body) == 106]
        if not opened or data[:56] != front or records[-1].end != len(data) or not all(r.known and r.proper for r in records):
            raise Bad("it is no certificate for this log and segment", name)
        self.next, self.head = int.from_bytes(data[56:64], "big"), data[64:96]
        self.epoch, self.order.begins = (opened[-1][:10], opened[-1][10:42]), self.next
        self.certificate = (name, data[48:96] + sha(data))
        if index not in present:
            raise Bad("the segment is missing", f"seg/{index:010}.seg")
        for r in records:
            self.inspect(r, carried=True)
        return index

    # -- what the records say --------------------------------------------------------------------------------------

    def inspect(self, r, carried=False):
        self.structure += [r.seq for broken in self.order.broken(r) if broken]
        for pin in self.pins:
            if (pin["log_id"], pin["seq"]) == (self.id, r.seq):
                pin["result"] = "confirms" if pin["head"] == r.id else "differs"
        if not carried:
            self.first, self.last = self.first or r.seq, r
        self.bad += [Bad(what, r.file) for what in self.faults(r, r.body)]

    def faults(self, r, b):
        if LENGTH.get(r.kind, len(b)) != len(b) or (r.kind == SESSION and (len(b) < 64 or not any(r.session))):
            yield "the record's clear part is malformed"
        elif r.kind == OPENED:
            self.epochs.append({"id": b[:10], "key": b[10:42], "endorsed": False})
            self.key_file(named("e-", b[:10]), b[42:74])
        elif r.kind == SESSION and any(b[:64]):
            self.key_file(named("s-", r.session), b[:32], r.session)
        elif r.kind == ENDORSED:
            epoch = next((e for e in reversed(self.epochs) if (e["id"], e["key"]) == (b[1:11], b[11:43])), None)
            may = epoch and (b[0] == 2 or (b[0] == 1 and epoch is self.epochs[-1]))
            if may and b[43:75] == self.root and r.signed(self.id, self.root):
                epoch["endorsed"] = True
            else:
                yield "an endorsement is not the root's word for that daemon run"
        elif r.kind == ROOT:
            if b[:32] == self.root and r.signed(self.id, b[:32], b[32:64]):
                self.root = b[32:64]
            else:
                yield "the new root is not signed by both roots"
        elif r.kind == ERASED:
            self.absent.pop(r.session, None)
            if not any(r.session):
                yield "an erasure names no run"
        elif r.kind == PRUNED:
            self.prunes.append(b)
        self.repairs += r.kind == REPAIRED

    def key_file(self, name, digest, session=None):
        file = f"keys/{name}.age"
        data = read(self.dir / file)
        if data is None and session:
            self.absent[session] = Bad("the key file is missing", file)
        elif data is None or sha(data) != digest:
            self.bad.append(Bad("the key file is not the one on record", file))


def read_pin(path):
    """A pin from outside: a copy of HEAD, a receipt, an earlier report, or an incident that holds one."""
    pin = {"local": False, "log_id": None, "seq": None, "result": "unusable"}
    try:
        value = json.loads(Path(path).read_bytes())
        value = value.get("verify", value)
        return pin | {"log_id": bytes.fromhex(value["log_id"]), "seq": int(value.get("last_seq", value.get("seq"))),
                      "head": bytes.fromhex(value.get("head") or value["id"]), "result": None}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return pin


def verify(folder, log_id=None, pin_files=(), require_pin=False):
    log = Log(folder, [read_pin(path) for path in pin_files])
    log.judge()
    for pin in (pin for pin in log.pins if pin["result"] is None):
        other = log.id and pin["log_id"] != log.id
        gone = log.first and pin["seq"] < log.first
        pin["result"] = ("other_log" if other else "pruned" if gone else "reaches_further" if log.complete else "unusable")
    results = {pin["result"] for pin in log.pins}
    outside = any(pin["result"] == "confirms" and not pin["local"] for pin in log.pins)
    if log.tail and (log.tail[1] or "reaches_further" in results):
        log.bad.insert(0, log.tail[0])
    if log.last is None or "unusable" in results or (require_pin and not outside):
        log.why = log.why or "there is no commit, a pin cannot be used, or one is required"
    verdict = next(name for name, holds in [
        ("tampered", log.bad),
        ("forked", (log.id and log_id and log_id != log.id.hex()) or results & {"differs", "other_log"}),
        ("truncated", "reaches_further" in results),
        ("cannot_judge", log.why),
        ("torn_tail", log.tail),
        ("intact_pinned", outside),
        ("intact_local_pin", "confirms" in results),
        ("intact_unpinned", True)] if holds)
    first_bad = next((dict(zip(("what", "file"), bad.args)) for bad in log.bad), None)
    return {
        "verdict": verdict, "why": log.why if verdict == "cannot_judge" else None, "first_bad": first_bad,
        "log_id": log.id and log.id.hex(), "first_seq": log.first, "last_seq": log.last and log.last.seq,
        "head": log.last and log.last.id.hex(), "repairs": log.repairs, "prunes": len(log.prunes),
        "unendorsed": [named("e-", epoch["id"]) for epoch in log.epochs if not epoch["endorsed"]],
        "structure": log.structure, "open_attempts": sorted(log.order.open)}


def exit_code(said):
    if said["verdict"] == "cannot_judge":
        return 1
    return 3 if said["verdict"] in ("tampered", "forked", "truncated") or said["unendorsed"] or said["structure"] else 0


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("dir")
    args.add_argument("--log-id")
    args.add_argument("--pin", action="append", default=[])
    args.add_argument("--require-pin", action="store_true")
    given = args.parse_args()
    said = verify(given.dir, given.log_id, given.pin, given.require_pin)
    print(json.dumps(said, indent=1))
    return exit_code(said)


if __name__ == "__main__":
    sys.exit(main())
