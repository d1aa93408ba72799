"""What a test script stands on: checks that are counted, waiting for what is to come, and the last line, which
tests/run counts.

A machine may do ten other things: wait() for what is to come, as long as it takes, and look at a clock only for what
must not come too early. Nothing here or in a test says how fast something has to be."""

import subprocess
import threading
import time

PATIENCE_S = 120   # far more than anything takes that comes at all

_lock = threading.Lock()
_counts = {True: 0, False: 0}


class Failed(Exception):
    """Something that does not hold."""


class Skipped(Exception):
    """What this machine does not allow."""


def check(name, ok, detail=""):
    """One thing that must hold. Where it does not, that is told with the detail, and the script goes on."""
    with _lock:
        _counts[bool(ok)] += 1
    print(f"ok    {name}" if ok else f"FAIL  {name}\n{str(detail)[:4000]}", flush=True)


def attempt(name, function, *arguments):
    """Run something that raises Failed where it does not hold; whether it holds, or cannot be tried here."""
    begin = time.monotonic()
    try:
        function(*arguments)
    except Skipped as why:
        print(f"skip  {name}: {why}", flush=True)
        return True
    except (Failed, subprocess.TimeoutExpired, OSError) as error:
        check(name, False, error)
        return False
    check(f"{name} ({time.monotonic() - begin:.1f} s)", True)
    return True


def wait(condition, seconds=PATIENCE_S):
    """Until something holds; what it was in the end."""
    until = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < until:
        time.sleep(0.05)
    return holds


def verdict():
    """Says how many held; the exit status."""
    print(f"{_counts[True]} passed, {_counts[False]} failed")
    return int(_counts[False] > 0)
