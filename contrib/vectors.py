#!/usr/bin/env python3
"""Judges every vector in a folder with verify.py and prints the verdicts as one JSON object by name.

    vectors.py FOLDER

A vector is a folder with `log/`, perhaps `pin.json`, and `verdict.json`, which says what the verifier is told and must say.
"""
import json, sys
from pathlib import Path

import verify

said = {}
for folder in sorted(Path(sys.argv[1]).iterdir()):
    told = json.loads((folder / "verdict.json").read_bytes())
    pins = [p for p in [folder / "pin.json"] if p.exists()]
    found = verify.verify(folder / "log", told["log_id"], pins, told["require_pin"])
    said[folder.name] = found | {"exit": verify.exit_code(found)}
print(json.dumps(said))
