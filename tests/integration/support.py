"""What the integration tests share: a real ebbgated on free ports with a directory of its own, and ways to ask it.

    class Something(support.TestCase):
        def test_it(self):
            server = self.start(LIMITS)
            self.assertTrue(server.ask("api-user", "alice").allowed)

Every server started through TestCase is stopped when its test ends, must exit with 0, and must leave nothing behind:
no socket, no process, no file outside its directory. Standard library only.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("EBBGATE_BIN", os.path.join(ROOT, "build", "dev", "bin"))
EBBGATED = os.path.join(BIN, "ebbgated")
EBBGATE = os.path.join(BIN, "ebbgate")

# Generous: a loaded machine, a sanitizer build. Nothing waits this long unless something is wrong.
DEADLINE_S = 60.0


def wait_until(condition, what, deadline_s=DEADLINE_S, pause_s=0.02):
    """Calls condition until it returns something true, and returns that."""
    end = time.monotonic() + deadline_s
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s:.0f} s: {what}")
        time.sleep(pause_s)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def seconds(duration):
    """A protobuf JSON duration such as "0.500s", or None."""
    return None if duration is None else float(duration.removesuffix("s"))


def environment(extra=None):
    """This process's environment without settings of Ebbgate, and what a test adds."""
    result = {name: value for name, value in os.environ.items() if not name.startswith("EBBGATE_")}
    result.update(extra or {})
    return result


class Answer:
    """A decision in protobuf JSON, whose fields are absent where they hold their default."""

    def __init__(self, status, body):
        self.status = status
        self.body = body
        self.allowed = bool(body.get("allowed", False))
        self.reason = body.get("reason")
        self.retry_after_s = seconds(body.get("retryAfter"))
        self.charges = body.get("charges", [])

    @property
    def remaining(self):
        return int(self.charges[0].get("remaining", 0))

    def __repr__(self):
        return f"Answer({self.status}, {self.body})"


class HttpReply:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)


def http(method, url, body=None, headers=None, timeout_s=DEADLINE_S):
    request = urllib.request.Request(url, data=body, method=method, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as reply:
            return HttpReply(reply.status, reply.headers, reply.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return HttpReply(error.code, error.headers, error.read().decode())


class Server:
    """One ebbgated. Not started through TestCase only where the test is about a server that cannot start."""

    def __init__(self, directory, limits, args=(), env=None, listen=None, program=(EBBGATED,)):
        self.directory = directory
        self.limits_path = os.path.join(directory, "limits.yaml")
        if limits is not None:
            write_file(self.limits_path, limits)
        self.call_address = listen or f"127.0.0.1:{free_port()}"
        self.ops_address = f"127.0.0.1:{free_port()}"
        self.admin_address = f"127.0.0.1:{free_port()}"
        self.log_path = os.path.join(directory, "ebbgated.log")
        self.command = [*program, "--limits", self.limits_path, "--listen", self.call_address,
                        "--ops-listen", self.ops_address, "--admin-listen", self.admin_address, *args]
        # Nobody balances calls here; a test about draining says otherwise by a flag.
        self.env = environment({"EBBGATE_DRAIN_DELAY": "0s", **(env or {})})
        self.process = None

    def launch(self):
        with open(self.log_path, "ab") as log:
            # A session of its own, so that whatever it might start can be found, and stopped, as one group.
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=self.env, start_new_session=True)
        return self

    def wait_ready(self):
        def ready():
            if self.process.poll() is not None:
                raise AssertionError(f"ebbgated ended with {self.process.returncode}:\n{self.log()}")
            try:
                return self.get("/readyz", timeout_s=5).status == 200
            except OSError:
                return False

        try:
            wait_until(ready, "ebbgated is ready")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log()}") from None
        return self

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def alive(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """SIGTERM, then the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait_exit()

    def wait_exit(self, deadline_s=DEADLINE_S):
        return self.process.wait(timeout=deadline_s)

    def kill(self):
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    # --- Asking over HTTP -------------------------------------------------------------------------------------------

    def url(self, path):
        return f"http://{self.ops_address}{path}"

    def get(self, path, timeout_s=DEADLINE_S):
        return http("GET", self.url(path), timeout_s=timeout_s)

    def post(self, body, path="/v1/should_allow", content_type="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return http("POST", self.url(path), data, {"Content-Type": content_type})

    def ask(self, limit, key, cost=None, **fields):
        charge = {"limit": limit, "key": key}
        if cost is not None:
            charge["cost"] = cost
        reply = self.post({"charges": [charge], **fields})
        if reply.status not in (200, 429):
            raise AssertionError(f"no decision: {reply.status} {reply.body}")
        return Answer(reply.status, reply.json())

    def metric(self, name, **labels):
        """The value of one series, or the sum of those that carry these labels."""
        total, found = 0.0, False
        for series_labels, value in parse_metrics(self.get("/metrics").body).get(name, []):
            if all(series_labels.get(label) == wanted for label, wanted in labels.items()):
                total, found = total + value, True
        if not found:
            raise AssertionError(f"no series {name}{labels}")
        return total

    # --- Asking with the command line -------------------------------------------------------------------------------

    def cli(self, *args, timeout_s=DEADLINE_S, env=None):
        """Runs ebbgate against this server; returns the finished process, with text output."""
        addresses = {"EBBGATE_SERVER": self.call_address, "EBBGATE_ADMIN": self.admin_address, **(env or {})}
        # The default of a second is for people; a loaded machine may take longer.
        patience = () if "--timeout" in args else ("--timeout", "30s")
        return subprocess.run([EBBGATE, *patience, *args], env=environment(addresses), text=True, errors="replace",
                              capture_output=True, timeout=timeout_s, check=False)

    def cli_json(self, *args):
        done = self.cli(*args, "--json")
        if done.returncode == 2:
            raise AssertionError(f"ebbgate {args}: {done.stderr or done.stdout}")
        return json.loads(done.stdout)


def write_file(path, text):
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)


_SERIES = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$')
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


def parse_metrics(text):
    """{name: [(labels, value), ...]} of the Prometheus text format."""
    series = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = _SERIES.match(line)
        if match is None:
            raise AssertionError(f"not a line of the Prometheus text format: {line!r}")
        labels = dict(_LABEL.findall(match.group(2) or ""))
        series.setdefault(match.group(1), []).append((labels, float(match.group(3))))
    return series


class TestCase(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="ebbgate-test-")
        self.addCleanup(shutil.rmtree, self.directory)
        self._servers = 0

    def make(self, limits, **options):
        """A server that is not running yet, in a directory of its own."""
        self._servers += 1
        directory = os.path.join(self.directory, f"server{self._servers}")
        os.mkdir(directory)
        server = Server(directory, limits, **options)
        self.addCleanup(server.kill)
        return server

    def start(self, limits, **options):
        """A ready server, which is stopped, and judged, when the test ends."""
        server = self.make(limits, **options)
        server.launch().wait_ready()
        self.addCleanup(self._finish, server)
        return server

    def _finish(self, server):
        if not server.alive():
            self.assertEqual(server.process.returncode, 0, f"ebbgated had ended:\n{server.log()}")
        else:
            code = server.stop()
            self.assertEqual(code, 0, f"exit code {code} after SIGTERM:\n{server.log()}")
        # The process group is empty: nothing was left running.
        with self.assertRaises(ProcessLookupError, msg="ebbgated left a process behind"):
            os.killpg(server.process.pid, 0)
        if server.call_address.startswith("unix:"):
            self.assertFalse(os.path.exists(server.call_address.removeprefix("unix:")), "the socket was left behind")

    def fail_to_start(self, limits, **options):
        """Starts a server that must end by itself, with an error; returns it."""
        server = self.make(limits, **options)
        server.launch()
        code = server.wait_exit()
        self.assertGreater(code, 0, f"ended with {code}:\n{server.log()}")
        return server

    def assert_alive(self, server):
        """Still there, and still deciding."""
        self.assertTrue(server.alive(), server.log())
        self.assertEqual(server.get("/healthz").status, 200)
