#!/usr/bin/env python3
"""A second, independent reader of a nightloop run: chain, segments, blobs, seal.

Written from the format's description, not from the engine's code, so that a mistake in one
shows up as a disagreement. Exit code 0: as written. 1: changed, or torn under a seal.
"""
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


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except (AssertionError, ValueError, KeyError, TypeError, OSError) as error:
        print(f"not as written: {error}", file=sys.stderr)
        sys.exit(1)
