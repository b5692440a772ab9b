#!/usr/bin/env python3
"""Writes src/lab/bootstrap_objects.json: what a new cluster holds, from the recorded facts.

The recordings under tests/api/facts are what the real API server makes by itself on its first start.
Run it again after `./dev record`; the result is committed.
"""
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FACTS = ROOT / "tests/api/facts"
# kubeadm's own bindings are not made by the API server; these are what kind's users rely on.
SYSTEM_METADATA = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")


def items(path):
    listing = json.loads((FACTS / path).read_text())
    kind = listing["kind"].removesuffix("List")
    for item in listing["items"]:
        for key in SYSTEM_METADATA:
            item["metadata"].pop(key, None)
        item = {"kind": kind, "apiVersion": listing["apiVersion"], **item}
        if item.get("rules", 0) is None:
            item.pop("rules")
        yield item


def main():
    objects = []
    for name in ("clusterroles", "clusterrolebindings", "roles", "rolebindings"):
        objects += items(f"rbac/{name}.json")
    objects += items("objects/priorityclasses.json")
    text = "[\n" + ",\n".join(json.dumps(o, separators=(",", ":")) for o in objects) + "\n]\n"
    (ROOT / "src/lab/bootstrap_objects.json").write_text(text)


if __name__ == "__main__":
    main()
