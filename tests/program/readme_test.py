#!/usr/bin/env python3
"""The commands of the README work as they stand, and print what it shows.

  tests/program/readme_test.py --sextant PROGRAM --tools FOLDER

Every `sh` block of README.md and README.zh-TW.md is run, in order, in one shell a file, with the
program under test and the tools' kubectl and helm first on PATH and a home of its own. A plain block
that follows holds lines of the output. `./dev` words are not run again inside the tests they call:
`demo` stands for the two commands that it runs. Exit status 77: skipped, the tools are missing.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 300
# What a block's `./dev` word does, as far as it is worth running here.
DEV_WORDS = {
    "demo": "sextant up --name gpu-lab --wait 30s && "
            "sextant preflight --context sextant-gpu-lab --probe && sextant down --name gpu-lab",
    "tools": ":", "build": ":", "test": ":", "lint": ":",
}
SEXTANT = TOOLS = None


def blocks(text):
    """(commands, the output that is shown) of each sh block."""
    found = []
    for words, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        if words == "sh":
            found.append([body, ""])
        elif not words and found:
            found[-1][1] += body
    return found


def replace_dev_words(commands):
    return re.sub(r"^\./dev (\w+).*$", lambda match: DEV_WORDS[match[1]], commands, flags=re.M)


def plain(line):
    """Without what is made up anew each time."""
    return re.sub(r"gpu-preflight-[a-z0-9]{5}", "gpu-preflight-<x>", " ".join(line.split()))


class ReadmeTest(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="sextant-readme-"))
        (self.home / "bin").mkdir()
        (self.home / "bin" / "sextant").symlink_to(SEXTANT)
        self.env = dict(os.environ, HOME=str(self.home), SEXTANT_HOME=str(self.home / "state"),
                        KUBECONFIG=str(self.home / "kubeconfig"), XDG_RUNTIME_DIR=str(self.home),
                        PATH="%s:%s:%s" % (self.home / "bin", TOOLS, os.environ["PATH"]))

    def tearDown(self):
        listed = subprocess.run([SEXTANT, "list", "-o", "json"], env=self.env, text=True,
                                capture_output=True).stdout
        for name in re.findall(r'"name": *"([^"]+)"', listed):
            subprocess.run([SEXTANT, "down", "--name", name], env=self.env, capture_output=True)
        shutil.rmtree(self.home, ignore_errors=True)

    def run_readme(self, name):
        marker = "--- the next block ---"
        found = blocks((ROOT / name).read_text())
        self.assertGreater(len(found), 1)
        # PATH stays as it is here: a README puts build/release first, this run the program under test.
        script = "set -euo pipefail\n" + ("echo '%s'\n" % marker).join(
            re.sub(r"^export PATH=.*$", ":", replace_dev_words(commands), flags=re.M)
            for commands, _ in found)
        done = subprocess.run(["bash", "-c", script], cwd=ROOT, env=self.env, text=True,
                              timeout=SECONDS, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        outputs = done.stdout.split(marker + "\n")
        self.assertEqual(done.returncode, 0, "block %d of %s:\n%s\n%s\n%s" % (
            len(outputs), name, found[len(outputs) - 1][0], outputs[-1], done.stderr))
        for (commands, shown), output in zip(found, outputs):
            lines = [plain(line) for line in output.splitlines()]
            for line in shown.splitlines():
                self.assertIn(plain(line), lines, "%s shows it below\n%s" % (name, commands))

    def test_english(self):
        self.run_readme("README.md")

    def test_traditional_chinese(self):
        self.run_readme("README.zh-TW.md")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--sextant", required=True)
    parser.add_argument("--tools", required=True)
    arguments, rest = parser.parse_known_args()
    SEXTANT, TOOLS = os.path.realpath(arguments.sextant), os.path.realpath(arguments.tools)
    if not all(os.access(os.path.join(TOOLS, tool), os.X_OK) for tool in ("kubectl", "helm")):
        print("skipped: no kubectl and helm in %s: ./dev tools" % TOOLS)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest])
