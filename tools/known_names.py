#!/usr/bin/env python3
"""Writes src/lab/kubernetes_1_36.txt: the feature gates and group versions that Kubernetes 1.36 knows.

From the recorded facts of the real API server; run it again after `./dev record`.
"""
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FACTS = ROOT / "tests/api/facts"


def main():
    lines = [
        "# Feature gates (name stage default locked) and group versions of Kubernetes 1.36, from"
        " tests/api/facts.",
        "# Written by tools/known_names.py.",
    ]
    for gate in json.loads((FACTS / "feature-gates.json").read_text()):
        lines.append(
            f"gate {gate['name']} {gate['stage']} {str(gate['default']).lower()}"
            f" {str(gate['lockToDefault']).lower()}"
        )
    for version in json.loads((FACTS / "group-versions.json").read_text()):
        lines.append(f"version {version['groupVersion']} {str(version['served']).lower()}")
    (ROOT / "src/lab/kubernetes_1_36.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
