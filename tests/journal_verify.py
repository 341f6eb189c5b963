#!/usr/bin/env python3
"""A second, independent reader of a nightloop run: chain, segments, blobs, seal, signature.

Written from the format's description, not from the engine's code, so that a mistake in one
shows up as a disagreement. Exit code 0: as written. 1: changed, or torn under a seal.
"""
import base64
import hashlib
import json
import os
import sys

DOMAIN = b"nightloop.journal.v1\n"
FIELDS = ["v", "seq", "ts", "mono", "boot", "iter", "type", "data", "prev", "h"]


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def chain(root):
    """Returns the head; raises on the first line that does not fit."""
    with open(os.path.join(root, "genesis.json"), "rb") as file:
        head = hashlib.sha256(file.read()).hexdigest()
    seq = 0
    names = sorted(n for n in os.listdir(os.path.join(root, "journal")) if n.endswith(".jsonl"))
    for index, name in enumerate(names, 1):
        assert name == f"{index:08}.jsonl", f"segment {index} is missing"
        with open(os.path.join(root, "journal", name), "rb") as file:
            lines = file.read().split(b"\n")
        assert lines.pop() == b"", f"{name} does not end in a newline"
        kind = None
        for count, line in enumerate(lines):
            assert kind != "segment.end", f"{name}: an event after the end"
            event = json.loads(line)
            body, mark, rest = line.rpartition(b',"h":')
            assert mark and rest == b'"%s"}' % event["h"].encode(), f"seq {seq}: spelling"
            # Everything but `data` is spelled in one way only.
            start = {k: event[k] for k in FIELDS[:7]}
            text = json.dumps(start, separators=(",", ":"), ensure_ascii=False).encode()[:-1]
            assert line.startswith(text + b',"data":') and list(event) == FIELDS, f"seq {seq}: spelling"
            assert (event["v"], event["seq"], event["prev"]) == (1, seq, head), f"seq {seq}: order"
            digest = hashlib.sha256(DOMAIN + bytes.fromhex(head) + body).hexdigest()
            assert digest == event["h"], f"seq {seq}: hash"
            kind = event["type"]
            if kind == "segment.end":
                assert event["data"] == {"count": count, "head": head}, f"seq {seq}: segment end"
            head, seq = digest, seq + 1
        assert index == len(names) or kind == "segment.end", f"{name} has no end"
    return head


P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def point(raw):
    """A point of Ed25519 from its 32 bytes."""
    y = int.from_bytes(raw, "little")
    odd, y = y >> 255, y & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    assert y < P and (x * x - square) % P == 0, "not a point"
    return (P - x if x & 1 != odd else x), y


def plus(a, b):
    (x, y), (u, v) = a, b
    both = D * x * u * y * v % P
    return (x * v + u * y) * pow(1 + both, -1, P) % P, (y * v + x * u) * pow(1 - both, -1, P) % P


def times(n, a):
    total = (0, 1)
    while n:
        total = plus(total, a) if n & 1 else total
        a, n = plus(a, a), n >> 1
    return total


def signed(key, message, signature):
    """Whether this key signed this message (RFC 8032)."""
    assert len(key) == 32 and len(signature) == 64, "signature: length"
    s = int.from_bytes(signature[32:], "little")
    assert s < ORDER, "signature: range"
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    base = point((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    return times(s, base) == plus(point(signature[:32]), times(h, point(key)))


def envelope(raw, seal):
    """The signature of a seal, in DSSE."""
    value = json.loads(raw)
    assert canonical(value) == raw, "signature: spelling"
    assert sorted(value) == ["payload", "payloadType", "signatures"], "signature: fields"
    assert value["payloadType"] == "application/vnd.in-toto+json", "signature: type"
    assert base64.b64encode(seal).decode() == value["payload"], "signature: another statement"
    (one,) = value["signatures"]
    assert sorted(one) == ["keyid", "sig"], "signature: fields"
    kind, key = one["keyid"].split(" ")
    wire = base64.b64decode(key, validate=True)
    start = b"\0\0\0\x0bssh-ed25519\0\0\0\x20"
    assert kind == "ssh-ed25519" and wire[:19] == start, "signature: key"
    assert base64.b64encode(wire).decode() == key, "signature: key"
    signature = base64.b64decode(one["sig"], validate=True)
    assert base64.b64encode(signature).decode() == one["sig"], "signature: spelling"
    kind = value["payloadType"].encode()
    message = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(seal), seal)
    assert signed(wire[19:], message, signature), "signature: does not hold"
    print_of_key = base64.b64encode(hashlib.sha256(wire).digest()).decode().rstrip("=")
    return f"SHA256:{print_of_key}"


def main(root):
    head = chain(root)
    for folder, _, names in os.walk(os.path.join(root, "blobs", "sha256")):
        for name in (n for n in names if not n.startswith(".tmp-")):
            with open(os.path.join(folder, name), "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            assert digest == os.path.basename(folder) + name, f"blob {name}"
    path = os.path.join(root, "seal.json")
    if os.path.exists(path):
        with open(path, "rb") as file:
            raw = file.read()
        seal = json.loads(raw)
        assert canonical(seal) == raw, "seal: spelling"
        assert sorted(seal) == ["_type", "predicate", "predicateType", "subject"], "seal: fields"
        assert seal["_type"] == "https://in-toto.io/Statement/v1", "seal: type"
        assert seal["predicateType"] == "https://nightloop.dev/halting-certificate/v1", "seal: type"
        heads = [s["digest"]["sha256"] for s in seal["subject"] if s["name"] == "journal/head"]
        assert heads[:1] == [head], "seal: head"
        path, named = os.path.join(root, "seal.dsse.json"), seal["predicate"].get("signer")
        if os.path.exists(path):
            with open(path, "rb") as file:
                signer = envelope(file.read(), raw)
            assert named in (None, signer), "signature: by another key"


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except (AssertionError, ValueError, KeyError, TypeError, OSError) as error:
        print(f"not as written: {error}", file=sys.stderr)
        sys.exit(1)
