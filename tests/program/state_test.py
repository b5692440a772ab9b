#!/usr/bin/env python3
"""The program where a lab's state cannot be used: one clear error, and the state is untouched.

  tests/program/state_test.py --sextant PROGRAM

A full and a read-only disk are tmpfs mounts in a user and mount namespace of their own; where those
are forbidden, those cases are skipped and say so.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

SEXTANT = None
SECONDS = 120


def can_mount():
    return subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"],
                          capture_output=True).returncode == 0


def ends(pid):
    """Its lock is free a moment before it is gone."""
    for _ in range(500):
        try:
            if pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


class StateTest(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="sextant-state-")
        self.env = dict(os.environ, SEXTANT_HOME=self.home + "/home",
                        KUBECONFIG=self.home + "/kubeconfig", XDG_RUNTIME_DIR=self.home)
        self.name = "state-%d" % os.getpid()
        self.lab = pathlib.Path(self.home, "home", "labs", self.name)

    def tearDown(self):
        self.run_(["down", "--name", self.name])
        shutil.rmtree(self.home, ignore_errors=True)

    def run_(self, arguments):
        return subprocess.run([SEXTANT, *arguments], env=self.env, text=True, timeout=SECONDS,
                              stdin=subprocess.DEVNULL, capture_output=True)

    def good(self, *arguments):
        done = self.run_(arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def up(self, *more):
        return self.run_(["up", "--name", self.name, "--runtime", "simulated", *more])

    def good_up(self, *more):
        done = self.up(*more)
        self.assertEqual(done.returncode, 0, done.stderr)

    def refused(self, done, *words):
        """One line of error, with these words in it."""
        self.assertIn(done.returncode, (1, 2), done.stderr)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, done.stderr)
        for word in words:
            self.assertIn(word, errors[0])

    def state(self):
        """What must not change: the files of a lab, but for locks, logs and SQLite's helpers."""
        return {str(path.relative_to(self.lab)): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in sorted(self.lab.rglob("*"))
                if path.is_file() and path.suffix in (".db", ".json", ".kubeconfig")
                and path.name != "status.json"}

    def refused_untouched(self, arguments, *words):
        before = self.state()
        self.refused(self.run_(arguments), *words)
        self.assertEqual(self.state(), before)

    def start_refused(self, *words):
        self.refused_untouched(["start", "--name", self.name], *words)

    def test_second_up_of_a_running_lab(self):
        self.good_up()
        self.refused(self.up(), "is running already", "sextant down --name")
        self.good("get", "nodes", "--name", self.name)

    def test_two_up_at_once(self):
        for _ in range(3):
            ups = [subprocess.Popen([SEXTANT, "up", "--name", self.name, "--runtime", "simulated"],
                                    env=self.env, text=True, stdin=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE) for _ in range(4)]
            ends = [(up.communicate(timeout=SECONDS)[1], up.returncode) for up in ups]
            self.assertEqual(sorted(code for _, code in ends)[0], 0, ends)
            for text, code in ends:
                if code != 0:
                    self.assertIn("is running already", text)
            self.assertEqual(sum(code == 0 for _, code in ends), 1, ends)
            self.good("get", "nodes", "--name", self.name)
            self.assertTrue((self.lab / "config.json").exists(), "a loser removed the winner's state")
            self.good("stop", "--name", self.name)
            self.good("start", "--name", self.name)
            self.good("down", "--name", self.name)
            self.assertEqual(os.listdir(self.lab.parent), [])

    def test_up_over_a_stopped_lab(self):
        self.good_up()
        self.good("stop", "--name", self.name)
        self.refused_untouched(["up", "--name", self.name], "exists and is stopped", "sextant start")
        self.good("start", "--name", self.name)

    def test_only_the_holder_of_the_lock_is_stopped(self):
        self.good_up()
        bystander = subprocess.Popen(["sleep", "600"])
        try:
            status = self.lab / "status.json"
            told = json.loads(status.read_text())
            status.write_text(json.dumps(dict(told, pid=bystander.pid)))  # as of a run before
            self.good("stop", "--name", self.name)
            self.assertIsNone(bystander.poll(), "another process was ended")
            self.assertTrue(ends(told["pid"]), "the lab runs on")
        finally:
            bystander.kill()
            bystander.wait()

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            self.refused(self.up("--port", port), "127.0.0.1:" + port, "in use")
            self.assertFalse(self.lab.exists(), "nothing is left of what did not come up")

    def test_port_taken_while_stopped(self):
        self.good_up()
        port = json.loads((self.lab / "config.json").read_text())["port"]
        self.good("stop", "--name", self.name)
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", port))
            taken.listen()
            self.start_refused("127.0.0.1:%d" % port, "in use")
        self.good("start", "--name", self.name)

    def stopped(self):
        self.good_up()
        self.good("stop", "--name", self.name)

    def test_damaged_state(self):
        self.stopped()
        path = self.lab / "lab.db"
        whole = path.read_bytes()
        path.write_bytes(b"x" * len(whole))
        self.start_refused("lab.db", "is damaged", "restore it from a copy")
        path.write_bytes(whole[:len(whole) // 2])
        self.start_refused("lab.db", "is damaged")
        path.write_bytes(whole)
        self.good("start", "--name", self.name)

    def test_damaged_configuration(self):
        self.stopped()
        path = self.lab / "config.json"
        whole = path.read_bytes()
        path.write_bytes(whole[:len(whole) // 2])
        self.start_refused("config.json")
        path.write_bytes(whole.replace(b'"version": 1', b'"version": 9'))
        self.start_refused("config.json", "newer")
        path.write_bytes(whole)
        self.good("start", "--name", self.name)

    def test_newer_state(self):
        self.stopped()
        with sqlite3.connect(self.lab / "lab.db") as db:
            db.execute("PRAGMA user_version=7")
        db.close()
        self.start_refused("lab.db", "newer version of sextant", "format 7")

    def test_two_processes_on_one_state(self):
        self.good_up()
        second = subprocess.run(["sh", "-c", 'exec "$0" __lab --name "$1" 3>/dev/null', SEXTANT, self.name],
                                env=self.env, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL,
                                capture_output=True)
        self.refused(second, "is running already")
        self.good("stop", "--name", self.name)
        starts = [subprocess.Popen([SEXTANT, "start", "--name", self.name], env=self.env, text=True,
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
                  for _ in range(4)]
        ends = [(start.communicate(timeout=SECONDS)[1], start.returncode) for start in starts]
        self.assertTrue(any(code == 0 for _, code in ends), ends)
        for text, code in ends:
            if code != 0:
                self.assertIn("is running already", text)
        self.good("get", "nodes", "--name", self.name)

    def test_logs_are_the_files_that_the_lab_wrote(self):
        self.good_up()
        self.good("stop", "--name", self.name)
        secret = pathlib.Path(self.home, "secret.log")
        secret.write_text("secret")
        pods = self.lab / "nodes" / (self.name + "-worker") / "pods"
        logs = pods / "uid" / "logs" / "main"
        logs.mkdir(parents=True)
        (logs / "0.log").write_text("now")
        (logs / "0.log.1").write_text("before")
        (logs / "1.log").symlink_to(secret)
        (pods / "uid" / "logs" / "linked").symlink_to(self.home)
        volume = pods / "uid" / "volumes" / "v"
        volume.mkdir(parents=True)
        (volume / "own.log").write_text("a Pod's file")
        to = pathlib.Path(self.home, "logs")
        self.good("export", "logs", str(to), "--name", self.name)
        copied = sorted(str(path.relative_to(to)) for path in to.rglob("*") if path.is_file())
        own = self.name + "-worker/pods/uid/logs/main/"
        self.assertEqual(copied, ["lab.log", own + "0.log", own + "0.log.1"])
        self.assertEqual((to / own / "0.log.1").read_text(), "before")

    def in_tmpfs(self, size, script):
        """Runs a script of sh with SEXTANT_HOME on a disk of this size; returns what it printed."""
        if not can_mount():
            self.skipTest("no user namespaces here: a full or read-only disk cannot be made")
        os.makedirs(self.home + "/home")
        script = "set -e; mount -t tmpfs -o size=%s none $SEXTANT_HOME; %s" % (size, textwrap.dedent(script))
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script], text=True, capture_output=True,
                              env=dict(self.env, S=SEXTANT, N=self.name), timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_full_disk_at_up(self):
        said = self.in_tmpfs("200k", """
            $S up --name $N --runtime simulated 2>&1 && exit 1
            echo left: $(ls $SEXTANT_HOME/labs)
            """)
        errors = [line for line in said.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, said)
        self.assertRegex(errors[0], "is full|No space left|no space left")
        self.assertIn("left:\n", said + "\n")

    def test_full_disk_at_start(self):
        said = self.in_tmpfs("8m", """
            $S up --name $N --runtime simulated
            $S stop --name $N
            cd $SEXTANT_HOME/labs/$N
            sha256sum lab.db config.json > /tmp/before.$$
            dd if=/dev/zero of=$SEXTANT_HOME/fill bs=4k 2>/dev/null || true
            $S start --name $N 2>&1 && exit 1
            sha256sum --quiet -c /tmp/before.$$
            rm $SEXTANT_HOME/fill /tmp/before.$$
            $S start --name $N
            $S down --name $N
            """)
        errors = [line for line in said.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, said)
        self.assertRegex(errors[0], "full|[Nn]o space left")

    def test_disk_fills_while_running(self):
        said = self.in_tmpfs("8m", """
            err=$(mktemp -p /tmp); node=$N-worker
            $S up --name $N --runtime simulated --foreground 2>$err & pid=$!
            until $S node stop $node --name $N 2>/dev/null; do sleep 0.1; done
            dd if=/dev/zero of=$SEXTANT_HOME/fill bs=4k 2>/dev/null || true
            for i in $(seq 100); do
              $S node start $node --name $N 2>/dev/null && $S node stop $node --name $N 2>/dev/null ||
                break
            done
            code=0; wait $pid || code=$?
            cat $err; rm $err; echo ended: $code
            rm $SEXTANT_HOME/fill
            $S start --name $N
            $S get nodes --name $N
            $S down --name $N
            """)
        errors = [line for line in said.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, said)
        for word in ("lab.db is full", "make room and start again"):
            self.assertIn(word, errors[0])
        self.assertIn("ended: 1\n", said)
        self.assertIn(self.name + "-worker2\n", said)

    def test_read_only_disk(self):
        said = self.in_tmpfs("8m", """
            $S up --name $N --runtime simulated
            $S stop --name $N
            mount -o remount,ro $SEXTANT_HOME
            $S start --name $N 2>&1 && exit 1
            $S up --name other --runtime simulated 2>&1 && exit 1
            mount -o remount,rw $SEXTANT_HOME
            $S start --name $N
            $S down --name $N
            """)
        errors = [line for line in said.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 2, said)
        for error in errors:
            self.assertRegex(error, "[Rr]ead-only")

    def test_snapshot(self):
        self.good_up("--wait", "60s")
        file = self.home + "/lab.snapshot"
        self.good("snapshot", "save", file, "--name", self.name)
        self.refused(self.run_(["snapshot", "restore", file]), "is running", "sextant stop")
        self.good("node", "add", "late", "--name", self.name)
        self.good("down", "--name", self.name)
        self.good("snapshot", "restore", file)
        self.good("start", "--name", self.name, "--wait", "60s")
        nodes = self.good("get", "nodes", "--name", self.name).stdout.split()
        self.assertEqual(nodes, [self.name + suffix for suffix in
                                 ("-control-plane", "-worker", "-worker2")])
        self.refused(self.run_(["snapshot", "restore", self.home + "/kubeconfig"]), "is no snapshot")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sextant", required=True)
    options, rest = parser.parse_known_args()
    SEXTANT = os.path.abspath(options.sextant)
    unittest.main(argv=[sys.argv[0], *rest])
