#!/usr/bin/env python3
"""`gputally top` on a terminal of 80 columns, driven by keys, and without a terminal.

    tests/peers/test_top.py BINARY
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from checks import PATIENCE_S, check, verdict  # noqa: E402
from service import Service  # noqa: E402


class Terminal:
    def __init__(self, command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.seen = ""

    def read(self, until, seconds=PATIENCE_S):
        """What came up to a text; all of it so far where it does not come."""
        end, fresh = time.monotonic() + seconds, ""
        while time.monotonic() < end and until not in fresh:
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    fresh += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    break
        self.seen += fresh
        return fresh

    def key(self, text):
        os.write(self.fd, text.encode())

    def ended(self, seconds=PATIENCE_S):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read("\0", 0.2)    # its last words
                return os.waitstatus_to_exitcode(status)
            self.read("\0", 0.2)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        db = os.path.join(folder, "gpu.db")
        subprocess.run([binary, "demo", "--gpus", "32", "--days", "1", "--step", "5m", "--gap", "15m", "--quiet", "--db", db],
                       check=True, stdout=subprocess.DEVNULL)
        with Service(binary, ["--db", db, "--prometheus", "http://127.0.0.1:1"], folder).wait() as service:
            url = service.url
            once = subprocess.run([binary, "top", "--server", url], capture_output=True, text=True, check=False)
            check("without a terminal it is printed once", once.returncode == 0 and "HOLDER" in once.stdout
                  and "\033" not in once.stdout, once.stdout + once.stderr)
            top = Terminal([binary, "top", "--server", url])
            screen = top.read("HOLDER")
            check("it takes another screen", "\033[?1049h" in screen and "HOLDER" in screen, screen)
            top.key("t")
            check("t sums by team", "TEAM      GPUS" in top.read("TEAM      GPUS"))
            top.key("s")
            check("s orders anew", "by use" in top.read("by use"))
            top.key("/")
            top.key("zzz")
            check("/ filters", "no GPU matches" in top.read("no GPU matches"))
            top.key("\r")
            top.key("q")
            status = top.ended()
            check("q ends, and gives the terminal back", status == 0 and "\033[?1049l" in top.seen[-2000:], status)
            top = Terminal([binary, "top", "--server", url])
            top.read("HOLDER")
            os.kill(top.pid, signal.SIGTERM)
            status = top.ended()
            check("a signal gives it back too", status is not None and "\033[?1049l" in top.seen[-2000:], status)
        nobody = subprocess.run([binary, "top", "--server", url], capture_output=True, text=True, check=False)
        check("no server: said, with what to do", nobody.returncode == 1 and "--server" in nobody.stderr, nobody.stderr)
    return verdict()


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
