#!/usr/bin/env python3
"""Pods that spin, fork, fill memory or the disk, or flood their logs: the lab stays usable.

  tests/program/hostile_pods_test.py --sextant PROGRAM --tools FOLDER

Nothing is timed here: how long a request takes meanwhile is a benchmark's to tell. Exit status 77:
skipped, no kubectl.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

SEXTANT = KUBECTL = None
SECONDS = 120
LOG_BOUND = 64 << 20  # of one container: five files of 10 MiB, and some slack

HOGS = {
    "spin": "while :; do :; done",
    "fork": "b() { b | b & b; }; b; sleep 600",
    "memory": "x=x; while :; do x=$x$x; done; sleep 600",
    "flood": "yes flood",
    "root": "while :; do cat /bin/busybox >> /tmp/full || sleep 1; done",
    "volume": "while :; do dd if=/dev/zero of=/data/$(date +%s%N) bs=1M count=16; done",
}
SIZE_LIMIT = "64Mi"


MARK = "SEXTANT_HOSTILE_TEST"  # in the environment of every Pod


def manifest(name, command):
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", command],
                 "env": [{"name": MARK, "value": str(os.getpid())}]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    if name == "volume":
        container["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        spec["volumes"] = [{"name": "data", "emptyDir": {"sizeLimit": SIZE_LIMIT}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


class HostilePodsTest(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="sextant-hostile-")
        self.env = dict(os.environ, HOME=self.home, SEXTANT_HOME=self.home + "/state",
                        KUBECONFIG=self.home + "/kubeconfig", XDG_RUNTIME_DIR=self.home)
        self.run_(SEXTANT, "up", "--name", "hostile", "--wait", "60s")

    def tearDown(self):
        subprocess.run([SEXTANT, "down", "--name", "hostile"], env=self.env, capture_output=True)
        shutil.rmtree(self.home, ignore_errors=True)

    def run_(self, *arguments, text=None):
        done = subprocess.run(arguments, env=self.env, text=True, timeout=SECONDS, input=text,
                              capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def kubectl(self, *arguments, text=None):
        return self.run_(KUBECTL, *arguments, text=text)

    def apply(self, *pods):
        self.kubectl("apply", "-f", "-", text=json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": list(pods)}))

    def pod(self, name):
        return json.loads(self.kubectl("get", "pod", name, "-o", "json"))

    def processes_of_pods(self):
        wanted = b"%s=%d\0" % (MARK.encode(), os.getpid())
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes())
            except OSError:
                continue  # it has ended, or it is another user's
        return found

    def test_the_lab_stays_usable(self):
        self.apply(*[manifest(name, command) for name, command in HOGS.items()])
        self.kubectl("wait", "--for=jsonpath={.status.reason}=Evicted", "pod/volume",
                     "--timeout=60s")
        self.assertEqual(self.pod("volume")["status"]["message"],
                         'Usage of EmptyDir volume "data" exceeds the limit "%s". ' % SIZE_LIMIT)
        self.apply(manifest("guest", "echo hello"))
        self.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/guest",
                     "--timeout=60s")
        self.assertEqual(self.kubectl("logs", "guest"), "hello\n")
        for _ in range(20):
            self.kubectl("get", "pods")
        self.assertEqual(self.pod("flood")["status"]["phase"], "Running")
        logs = sum(path.stat().st_size for path in pathlib.Path(self.home).glob(
            "state/**/logs/**/*") if path.is_file())
        self.assertLess(logs, LOG_BOUND * len(HOGS))
        self.assertNotEqual(self.processes_of_pods(), [])
        self.kubectl("delete", "pod", "--all", "--now")
        for _ in range(300):
            if not self.processes_of_pods():
                break
            time.sleep(0.1)
        self.assertEqual(self.processes_of_pods(), [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sextant", required=True)
    parser.add_argument("--tools", required=True)
    arguments, rest = parser.parse_known_args()
    SEXTANT = os.path.realpath(arguments.sextant)
    KUBECTL = os.path.realpath(os.path.join(arguments.tools, "kubectl"))
    if not os.access(KUBECTL, os.X_OK):
        print("skipped: no kubectl in %s: ./dev tools" % arguments.tools)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest])
