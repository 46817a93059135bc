#!/usr/bin/env python3
"""A second verifier for Lychgate's audit log, written from docs/audit-format.md alone.

It needs Python 3.10 and PyNaCl (pip install -r requirements.txt), the folder, and nothing else: no key, no daemon.

    verify.py DIR [--log-id ID] [--pin FILE]... [--require-pin] [--json]

Exit 0 intact, 3 tampered, truncated, forked, unendorsed or out of order, 1 no judgement.
It exists so that nobody has to trust one program; `lych audit verify` says more about where and why.
"""
import argparse, base64, hashlib, json, re, struct, sys
from datetime import datetime, timezone
from pathlib import Path

from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

SEGMENT, MAX_FRAME, MAX_BATCH, ZERO = 16 << 20, 256 << 10, 1 << 20, bytes(32)
OPENED, COMMIT, ENDORSED, ROOT, CLOSED, REPAIRED, ERASED, PRUNED, SESSION = 1, 2, 3, 4, 5, 6, 7, 8, 16
ATTEMPT, DENIED, CLEARED, WITHDRAWN, ANSWERED, OUTLIVING, WAITING, UNRESOLVED, RECONCILED, REVOKED = *range(32, 41), 48
KINDS = {*range(1, 9), *range(16, 21), *range(32, 42), 48, 49, 50}
# Kind: signing domain, number of signatures at the end of the body.
SIGNED = {COMMIT: (b"lychgate/commit/v1\0", 1), ENDORSED: (b"lychgate/epoch-endorsed/v1\0", 1),
          ROOT: (b"lychgate/root-endorsed/v1\0", 2)}
# Clear bodies; commit, endorsement and hand-over with their signatures.
LENGTH = {OPENED: 106, COMMIT: 98, ENDORSED: 139, ROOT: 192, CLOSED: 0, REPAIRED: 56, ERASED: 32, PRUNED: 80}


class Bad(Exception):
    """Acknowledged bytes are not what was written."""
    def __init__(self, what, file, offset=None, seq=None):
        super().__init__(what)
        self.place = {"what": what, "file": file, "offset": offset, "seq": seq}


class Unknown(Exception):
    """There can be no judgement."""


class Unsigned(Exception):
    """The last signature of an epoch is wrong: look at all of them."""


def sha(data): return hashlib.sha256(data).digest()


def is_there(path):
    """What cannot be looked at is not absent: then there is no judgement."""
    try:
        path.stat()
        return True
    except FileNotFoundError:
        return False


def signed_by(public, message, signature):
    try:
        VerifyKey(public).verify(message, signature)
        return True
    except (BadSignatureError, ValueError):
        return False


def show_id(prefix, raw):
    text = base64.b32encode(raw).decode().translate(
        str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghjkmnpqrstvwxyz"))
    return prefix + text


def millis(text):
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text):
        raise ValueError(text)
    at = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    return round((at - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds() * 1000)


class Record:
    def __init__(self, frame, file, offset):
        self.frame, self.file, self.offset, self.id = frame, file, offset, sha(frame)
        self.header, self.body = frame[4:92], frame[92:]
        (self.version, self.kind, self.sealing, reserved, self.seq, self.wall, _, self.session, self.call,
         self.refers, self.prev) = struct.unpack(">BBBBQQQ10s10sQ32s", self.header)
        self.unknown = self.version != 1 or self.kind not in KINDS
        self.wrong = not self.unknown and (reserved or self.sealing > 2 or (self.kind < 16) != (self.sealing == 0))

    def message(self, log_id):
        domain, count = SIGNED[self.kind]
        return domain + log_id + self.header + self.body[:len(self.body) - 64 * count]

    def bad(self, what): return Bad(what, self.file, self.offset, self.seq)


def frame_at(data, at):
    """The end of the frame that begins here; none if no whole one can."""
    if at + 4 > len(data):
        return None
    length = int.from_bytes(data[at:at + 4], "big")
    end = at + 4 + length
    return end if 88 <= length <= MAX_FRAME - 4 and end <= len(data) else None


class Order:
    """The rules of order, which need no key."""
    def __init__(self):
        self.open, self.answered, self.revoked, self.closed, self.broken, self.since = {}, set(), set(), False, [], 0

    def apply(self, r):
        if r.kind == OPENED:
            self.closed = False
        elif self.closed and r.kind != COMMIT:
            self.broken.append(r.seq)
        self.closed = self.closed or r.kind == CLOSED
        if r.kind == REVOKED and any(r.session):
            self.revoked.add(r.session)
        if r.kind == ATTEMPT:
            if not any(r.call) or not any(r.session):
                self.broken.append(r.seq)
            self.open[r.seq] = [r.call, r.session, ATTEMPT]
        elif r.kind == CLEARED:
            if r.session in self.revoked:
                self.broken.append(r.seq)
            attempt = self.open.get(r.refers)
            if attempt and attempt[:2] == [r.call, r.session]:
                attempt[2] = CLEARED
            else:
                self.broken.append(r.seq)
        elif r.kind == RECONCILED:
            if 0 < r.refers < r.seq:
                self.open.pop(r.refers, None)
            else:
                self.broken.append(r.seq)
        elif DENIED <= r.kind <= UNRESOLVED:
            self.outcome(r)

    def outcome(self, r):
        attempt = self.open.get(r.refers)
        if not r.refers:
            broken = r.kind != DENIED
        elif not attempt:
            broken = r.refers >= self.since and (r.kind != ANSWERED or r.refers not in self.answered)
        elif attempt[0] != r.call:
            broken = True
        else:
            was, attempt[2] = attempt[2], r.kind
            if r.kind in (DENIED, WITHDRAWN, ANSWERED):
                del self.open[r.refers]
            if r.kind == ANSWERED:
                self.answered.add(r.refers)
            broken = r.kind in (ANSWERED, OUTLIVING) if was == ATTEMPT else r.kind == DENIED
        if broken:
            self.broken.append(r.seq)


class Log:
    def __init__(self, folder, log_id, root, pins, all_signatures):
        self.dir, self.log_id, self.root, self.pins, self.all = folder, log_id, root, pins, all_signatures
        self.next, self.head, self.epoch, self.pending, self.first, self.last = 1, ZERO, None, None, None, None
        self.epochs, self.order, self.absent, self.bad, self.bad_key = [], Order(), {}, None, None
        self.repairs, self.prunes, self.tail, self.certificate = 0, [], None, None

    # -- the chain -------------------------------------------------------------------------------------------------

    def numbers(self, folder, ending):
        return sorted(int(p.name[:10]) for p in (self.dir / folder).glob("[0-9]" * 10 + ending))

    def walk(self):
        """Believes batch after batch; what follows the last commit is left in `tail`."""
        present = self.numbers("seg", ".seg")
        index, offset = 0, None
        if present and present[0] > 0:
            index = self.carry_over(present[0])
        while index in present:
            data, name = (self.dir / f"seg/{index:010}.seg").read_bytes(), f"seg/{index:010}.seg"
            sealed = index + 1 in present
            if len(data) > SEGMENT:
                raise Bad("the file is longer than a segment can be", name)
            self.segment_header(data, name, index)
            offset, used = 96, len(data.rstrip(b"\0"))
            while True:
                batch, bad = self.batch(data, name, index, offset)
                if batch is None and bad is None:
                    break
                if bad is not None:
                    if sealed:
                        raise bad
                    self.tail = (bad, self.acknowledged(data[offset:]), max(used - offset, 0))
                    break
                offset = batch[-1].offset + len(batch[-1].frame)
                for record in batch:
                    self.inspect(record)
                self.epochs[-1]["last"] = self.last[0]
            if self.tail:
                break
            index += 1
        if self.pending and not signed_by(*self.pending):
            raise Unsigned
        if not self.tail and any(n >= index for n in present):
            raise Bad("the segment is missing", f"seg/{index:010}.seg")

    def segment_header(self, data, name, index):
        stored = data[:96]
        want = b"LYCHSEG1\1" + bytes(7) + self.log_id + struct.pack(">QQ", index, self.next) + self.head
        if stored != want:
            chained = data[96 + 60:96 + 92] == sha(stored) and len(data) >= 188
            if chained and stored[:16] != want[:16]:
                raise Unknown("a later version wrote this segment")
            if chained and stored[16:48] != self.log_id:
                raise Bad("LOG is not the file that the segments were chained to", "LOG")
            raise Bad("the segment's header does not continue the log", name, 0, self.next)
        self.head = sha(stored)

    def batch(self, data, name, index, offset):
        """The records up to the next commit, or why they are not to be believed, or neither: only zeros follow."""
        records, at = [], offset
        while not records or records[-1].kind != COMMIT:
            end = frame_at(data, at)
            if end is None and not records and not any(data[at:]):
                return None, None
            if end is None or at - offset > MAX_BATCH:
                return None, Bad("these bytes lead to no commit", name, at, self.next)
            records.append(Record(data[at:end], name, at))
            at = end
        head, seq, epoch, last = self.head, self.next, self.epoch, records[-1]
        for r in records:
            if r.prev != head or r.seq != seq:
                return None, Bad("the chain breaks here", name, r.offset, seq)
            head, seq = r.id, seq + 1
        for r in records:
            if r.unknown and r is not last and (epoch is None or (
                    len(last.body) == 98 and signed_by(epoch[1], last.message(self.log_id), last.body[34:]))):
                raise Unknown(f"record {r.seq}: a version or kind that this program does not know")
            if r.unknown or r.wrong:
                return None, r.bad("the header holds what version 1 never writes")
        for r in records:
            if r.kind == OPENED:
                if len(r.body) != 106 or r is not records[0]:
                    return None, r.bad("a daemon run begins wrongly")
                epoch = (r.body[:10], r.body[10:42])
        if epoch is None:
            return None, records[0].bad("the log does not begin with a daemon run")
        says = struct.pack(">10sQQQ", epoch[0], self.next, index, last.offset)
        if len(last.body) != 98 or last.body[:34] != says:
            return None, last.bad("the commit does not describe the records before it")
        check = (epoch[1], last.message(self.log_id), last.body[34:])
        if self.all and not signed_by(*check):
            return None, last.bad("the commit is not signed by its daemon run")
        if not self.all and epoch != self.epoch and self.pending and not signed_by(*self.pending):
            raise Unsigned
        self.pending = None if self.all else check
        self.head, self.next, self.epoch = head, seq, epoch
        return records, None

    def acknowledged(self, data):
        """A signed commit that does not follow the last good one directly: then this is no torn write."""
        def shaped(kind):
            pattern = struct.pack(">IBBBB", 88 + LENGTH[kind], 1, kind, 0, 0)
            for found in re.finditer(b"(?=" + re.escape(pattern) + b")", data):
                end = frame_at(data, found.start())
                if end:
                    yield Record(data[found.start():end], "", found.start())
        publics = [r.body[10:42] for r in shaped(OPENED)] + ([self.epoch[1]] if self.epoch else [])
        return any(int.from_bytes(r.body[10:18], "big") > self.next and
                   any(signed_by(p, r.message(self.log_id), r.body[34:]) for p in publics) for r in shaped(COMMIT))

    def carry_over(self, lowest):
        """Begins behind segments that were given up, with what a certificate carries over."""
        later = [n for n in self.numbers("pruned", ".cert") if n >= lowest]
        if not later:
            return 0
        name = f"pruned/{later[0]:010}.cert"
        data = (self.dir / name).read_bytes()
        front = b"LYCHPRUN\1" + bytes(7) + self.log_id + struct.pack(">Q", later[0])
        frames, at = [], 96
        while (end := frame_at(data, at)) is not None:
            frames.append(Record(data[at:end], name, at))
            at = end
        if data[:56] != front or len(data) < 96 or at != len(data) or any(r.unknown or r.wrong for r in frames):
            raise Bad("it is no certificate for this log and segment", name)
        opened = [r for r in frames if r.kind == OPENED]
        if not opened or len(opened[-1].body) != 106:
            raise Bad("it carries no daemon run", name)
        self.next, self.head = int.from_bytes(data[56:64], "big"), data[64:96]
        self.epoch = (opened[-1].body[:10], opened[-1].body[10:42])
        self.certificate, self.order.since = (name, data[48:96] + sha(data)), self.next
        if not is_there(self.dir / f"seg/{later[0]:010}.seg"):
            raise Bad("the segment is missing", f"seg/{later[0]:010}.seg")
        for r in frames:
            self.inspect(r, carried=True)
        return later[0]

    # -- what the records say --------------------------------------------------------------------------------------

    def inspect(self, r, carried=False):
        self.order.apply(r)
        for pin in self.pins:
            if pin["log_id"] == self.log_id and pin["seq"] == r.seq:
                pin["result"] = "confirms" if pin["head"] == r.id else "differs"
        if not carried:
            self.first, self.last = self.first or r.seq, (r.seq, r.id)
        b = r.body
        if LENGTH.get(r.kind, len(b)) != len(b) or (r.kind == SESSION and (len(b) < 64 or not any(r.session))):
            self.blame(r, "the record's clear part is malformed")
        elif r.kind == OPENED:
            self.key_file(show_id("e-", b[:10]), b[42:74])
            self.epochs.append({"id": b[:10], "key": b[10:42], "first": r.seq, "last": r.seq, "endorsed": False})
        elif r.kind == ENDORSED:
            epoch = next((e for e in reversed(self.epochs) if e["id"] == b[1:11] and e["key"] == b[11:43]), None)
            own = b[0] == 2 or (b[0] == 1 and self.epochs and self.epochs[-1]["id"] == b[1:11])
            if epoch and own and b[43:75] == self.root and signed_by(b[43:75], r.message(self.log_id), b[75:]):
                epoch["endorsed"] = True
            else:
                self.blame(r, "an endorsement is not the root's word for that daemon run")
        elif r.kind == ROOT:
            message = r.message(self.log_id)
            if b[:32] == self.root and signed_by(b[:32], message, b[64:128]) and signed_by(b[32:64], message, b[128:]):
                self.root = b[32:64]
            else:
                self.blame(r, "the new root is not signed by both roots")
        elif r.kind == REPAIRED:
            self.repairs += 1
        elif r.kind == PRUNED:
            self.prunes.append(b)
        elif r.kind == ERASED:
            if any(r.session):
                self.absent.pop(r.session, None)
            else:
                self.blame(r, "an erasure names no run")
        elif r.kind == SESSION and any(b[:64]):
            self.key_file(show_id("s-", r.session), b[:32], r.session)

    def blame(self, r, what):
        self.bad = self.bad or r.bad(what)

    def key_file(self, name, digest, session=None):
        path = self.dir / f"keys/{name}.age"
        if not is_there(path):
            missing = Bad("the key file is missing", f"keys/{name}.age")
            if session:
                self.absent[session] = missing
            else:
                self.bad_key = self.bad_key or missing
        elif sha(path.read_bytes()) != digest:
            self.bad_key = self.bad_key or Bad("the key file is not the one on record", f"keys/{name}.age")


def read_log(data):
    """The root that LOG names; only the one spelling counts."""
    lines = data.decode("utf-8", "replace").split("\n")
    if len(lines) > 1 and lines[0].startswith("lychgate audit log ") and lines[1].startswith("suite ") and \
            (lines[0][19:], lines[1][6:]) != ("1", "1"):
        raise Unknown("a later version wrote LOG")
    form = re.fullmatch(rb"lychgate audit log 1\nsuite 1\nroot ([0-9a-f]{64})\nrecipient [!-~]+\ncreated (\S+)\n", data)
    try:
        millis(form[2].decode())
    except (TypeError, ValueError):
        raise Unknown("LOG does not have the five lines of version 1") from None
    return bytes.fromhex(form[1].decode())


def read_head(data):
    fields = ["schema", "log_id", "seq", "head", "at", "epoch", "signature"]
    try:
        head = json.loads(data)
        spelled = json.dumps({f: head[f] for f in fields}, separators=(",", ":")) + "\n"
        ok = spelled.encode() == data and head["schema"] == "lych.head/v1" and re.fullmatch(
            "[0-9a-f]{128}", head["signature"]) and re.fullmatch("e-[0-9a-hjkmnp-tv-z]{16}", head["epoch"])
        raw = (bytes.fromhex(head["log_id"]) + head["seq"].to_bytes(8, "big") + bytes.fromhex(head["head"]) +
               millis(head["at"]).to_bytes(8, "big"))
        return head if ok and len(raw) == 80 and head["head"].islower() | head["head"].isdigit() else None, raw
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None, b""


def read_pin(path):
    pin = {"source": str(path), "local": False, "log_id": None, "seq": None, "head": None, "result": "unusable"}
    try:
        value = json.loads(Path(path).read_bytes())
        value = value.get("verify", value)
        pin["log_id"] = bytes.fromhex(value["log_id"])
        pin["seq"] = value.get("last_seq", value.get("seq"))
        pin["head"], pin["result"] = bytes.fromhex(value.get("head") or value["id"]), None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return pin


def unborn(folder):
    """What the making of a log leaves if a crash comes before LOG: no key, at most a segment without a record."""
    if is_there(folder / "HEAD") or is_there(folder / "pruned") or any((folder / "keys").glob("*")):
        return False
    segments = sorted((folder / "seg").glob("*.seg"))
    if [path.name for path in segments] not in ([], ["0000000000.seg"]):
        return False
    return not any(segments[0].read_bytes()[96:]) if segments else True


def verify(folder, log_id=None, pin_files=(), require_pin=False, all_signatures=False):
    folder = Path(folder)
    said = {"verdict": "cannot_judge", "why": None, "first_bad": None, "first_seq": None, "last_seq": None,
            "unendorsed": [], "structure": [], "open_attempts": [], "repairs": 0, "prunes": 0}
    # Before the segments: a head is written behind its commit.
    pins, why, root, bad = [read_pin(p) for p in pin_files], None, ZERO, None
    try:
        head_bytes = (folder / "HEAD").read_bytes() if is_there(folder / "HEAD") else None
        if not is_there(folder / "LOG"):
            if is_there(folder / "seg") and not unborn(folder):
                return said | {"verdict": "tampered", "first_bad": Bad("LOG is missing", "LOG").place}
            return said | {"why": "there is no log"}
        log_bytes = (folder / "LOG").read_bytes()
    except OSError as stop:
        return said | {"why": str(stop)}
    try:
        root = read_log(log_bytes)
    except Unknown as stop:
        why = str(stop)
    head, head_raw = read_head(head_bytes) if head_bytes is not None else (None, b"")
    if head:
        pins.append({"source": "HEAD", "local": True, "log_id": bytes.fromhex(head["log_id"]), "seq": head["seq"],
                     "head": bytes.fromhex(head["head"]), "result": None})
    log, stopped, complete = Log(folder, sha(log_bytes), root, pins, all_signatures), None, True
    try:
        log.walk()
    except Unsigned:
        return verify(folder, log_id, pin_files, require_pin, True)
    except Bad as found:
        stopped, complete = found, False
    except (Unknown, OSError) as stop:
        why, complete = str(stop), False
    if complete and log.certificate and log.certificate[1] not in log.prunes:
        log.bad = log.bad or Bad("no record vouches for this certificate", log.certificate[0])
    for pin in (p for p in pins if p["result"] is None):
        pruned = log.first and pin["seq"] < log.first
        pin["result"] = ("other_log" if pin["log_id"] != log.log_id else "pruned" if pruned else
                         "reaches_further" if complete else "unusable")
    results = {p["result"] for p in pins}
    head_bad = None
    if head_bytes is not None:
        epoch = head and next((e for e in reversed(log.epochs) if show_id("e-", e["id"]) == head["epoch"]), None)
        if head is None:
            head_bad = Bad("HEAD is not of the form of version 1", "HEAD")
        elif epoch and not signed_by(epoch["key"], b"lychgate/head/v1\0" + head_raw + epoch["id"],
                                     bytes.fromhex(head["signature"])):
            head_bad = Bad("the signature in HEAD is not its epoch's", "HEAD")
        elif not epoch and head["seq"] <= (log.last or (0,))[0]:
            head_bad = Bad("HEAD names a daemon run that the log does not hold", "HEAD")
    cut = log.tail and (log.tail[1] or "reaches_further" in results) and log.tail[0]
    absent = min(log.absent.values(), key=lambda b: b.place["file"], default=None)
    bad = stopped or cut or head_bad or log.bad or log.bad_key or absent
    outside = any(not p["local"] and p["result"] == "confirms" for p in pins)
    if why is None and (log.last is None or "unusable" in results or (require_pin and not outside)):
        why = "there is no commit, a pin cannot be used, or one is required"
    if bad:
        verdict = "tampered"
    elif (log_id and log_id != log.log_id.hex()) or results & {"differs", "other_log"}:
        verdict = "forked"
    elif "reaches_further" in results:
        verdict = "truncated"
    elif why:
        verdict = "cannot_judge"
    elif log.tail:
        verdict = "torn_tail"
    else:
        verdict = "intact_pinned" if outside else "intact_local_pin" if "confirms" in results else "intact_unpinned"
    return said | {
        "verdict": verdict, "why": why if verdict == "cannot_judge" else None, "first_bad": bad.place if bad else None,
        "log_id": log.log_id.hex(), "first_seq": log.first, "last_seq": log.last and log.last[0],
        "head": log.last and log.last[1].hex(), "repairs": log.repairs, "prunes": len(log.prunes),
        "unendorsed": [show_id("e-", e["id"]) for e in log.epochs if not e["endorsed"]],
        "structure": log.order.broken, "open_attempts": sorted(log.order.open)}


def exit_code(said):
    if said["verdict"] in ("tampered", "truncated", "forked"):
        return 3
    if said["verdict"] == "cannot_judge":
        return 1
    return 3 if said["unendorsed"] or said["structure"] else 0


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("dir")
    args.add_argument("--log-id")
    args.add_argument("--pin", action="append", default=[])
    args.add_argument("--require-pin", action="store_true")
    args.add_argument("--json", action="store_true")
    given = args.parse_args()
    said = verify(given.dir, given.log_id, given.pin, given.require_pin)
    print(json.dumps(said) if given.json else "\n".join(f"{k}: {v}" for k, v in said.items()))
    return exit_code(said)


if __name__ == "__main__":
    sys.exit(main())
