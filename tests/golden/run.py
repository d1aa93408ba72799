#!/usr/bin/env python3
"""Runs the golden tests of the command line: run.py BINARY [FILE...]

A .golden file is a conversation. `$ command` is run by bash in an empty folder that holds a copy of
data/ and a `gputally` on the PATH; the lines after it are what must come on standard output, those
that begin with `! ` on standard error, and `= N` is the exit status where it is not 0. `# ` lines
are comments: there the expected figures are worked out. In an expected line `[...]` stands for any
text (times, addresses, what the system says).

Documents (.md) are read the same way inside their ```console blocks, so that what they show is what
comes.

Commands of one file share their folder, so that a database that one fills is there for the next.
Nothing is taken from the caller's environment.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_S = 600


class Step:
    """One command and what must come of it."""

    def __init__(self, line, command):
        self.line, self.command, self.status = line, command, 0
        self.stdout, self.stderr = [], []


def read(path):
    """The steps of a file."""
    steps, inside = [], not path.endswith(".md")
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if path.endswith(".md") and line.startswith("```"):
                inside = line == "```console"
            elif not inside:
                continue
            elif line.startswith("$ "):
                steps.append(Step(number, line[2:]))
            elif line.startswith("# ") or line == "#" or not steps:
                continue
            elif line.startswith("! ") or line == "!":
                steps[-1].stderr.append(line[2:])
            elif re.fullmatch(r"= \d+", line):
                steps[-1].status = int(line[2:])
            else:
                steps[-1].stdout.append(line)
    for step in steps:      # blank lines before the next comment or command are layout
        while step.stdout and step.stdout[-1] == "":
            step.stdout.pop()
    return steps


def fits(expected, line):
    """Does a line fit what is expected, with [...] for anything?"""
    return re.fullmatch(".*".join(re.escape(part) for part in expected.split("[...]")), line) is not None


def differences(what, expected, text):
    """Sentences about the first line that is not as expected."""
    lines = text.split("\n")
    while lines and lines[-1] == "":
        lines.pop()
    for i in range(max(len(expected), len(lines))):
        want = expected[i] if i < len(expected) else None
        have = lines[i] if i < len(lines) else None
        if want is None or have is None or not fits(want, have):
            yield (f"  {what}, line {i + 1}\n    expected {want if want is not None else '(nothing more)'}\n"
                   f"    came     {have if have is not None else '(nothing more)'}")
            return


def run_step(step, folder, environment):
    """Sentences about what is not as expected."""
    try:
        done = subprocess.run(["bash", "-c", step.command], cwd=folder, env=environment, capture_output=True,
                              timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return [f"  no end after {TIMEOUT_S} s"]
    found = list(differences("standard output", step.stdout, done.stdout.decode("utf-8", "backslashreplace")))
    found += differences("standard error", step.stderr, done.stderr.decode("utf-8", "backslashreplace"))
    if done.returncode != step.status:
        found.append(f"  exit status {done.returncode} where {step.status} was expected")
    return found


def run_file(binary, path):
    """Number of steps that failed."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gputally-golden-") as root:
        folder, programs = os.path.join(root, "work"), os.path.join(root, "bin")
        shutil.copytree(os.path.join(HERE, "data"), folder)
        os.mkdir(programs)
        os.symlink(binary, os.path.join(programs, "gputally"))
        os.symlink(binary, os.path.join(programs, "kubectl-gputally"))
        environment = {"PATH": programs + ":/usr/bin:/bin", "HOME": root, "LC_ALL": "C", "TZ": "UTC",
                       "DOCS": os.path.join(HERE, "..", "..", "docs")}
        for step in read(path):
            found = run_step(step, folder, environment)
            if found:
                failed += 1
                print(f"{os.path.basename(path)}:{step.line}: {step.command}")
                print("\n".join(found))
    return failed


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.splitlines()[0])
    binary = os.path.abspath(sys.argv[1])
    if not os.access(binary, os.X_OK):
        sys.exit(f"{binary} is no program: make build")
    docs = os.path.join(HERE, "..", "..", "docs")
    paths = [os.path.join(HERE, name) for name in sorted(os.listdir(HERE)) if name.endswith(".golden")]
    paths += [os.path.join(docs, name) for name in ("commands.md", "formats.md")]
    failed = steps = 0
    for path in sys.argv[2:] or paths:
        steps += len(read(path))
        failed += run_file(binary, path)
    print(f"golden: {steps - failed} of {steps} commands as expected")
    return 1 if failed or not steps else 0


if __name__ == "__main__":
    sys.exit(main())
