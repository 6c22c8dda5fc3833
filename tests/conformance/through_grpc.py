#!/usr/bin/env python3
"""Asks a real server the conformance cases that need no clock moved by hand, by the command line over gRPC.

    EBBGATE_BIN=build/dev/bin tests/conformance/through_grpc.py tests/conformance/*.json

These are cases without a reload whose steps all fall at one instant, on buckets and windows slow enough that the
seconds this takes refill nothing, with holds that outlast it. One server serves them all: each case's limits get a name
of their own. What counts down while the program runs (`retry_after`, `act_after` and the like) may be less than in the
file by the time that has passed, never more. Standard library only.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from buckets import NS, SECOND, length_ns

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("EBBGATE_BIN", os.path.join(HERE, "..", "..", "build", "dev", "bin"))
# A token must take longer to come back than this whole program takes.
SLOW_NS = NS["h"]
LONG_NS = 10 * NS["m"]
# What counts down.
WAITS = ("retry_after", "reset_after", "act_after", "expires_after")


def is_slow(limit):
    """Whether what the limit gives back within minutes is nothing."""
    for rule in [limit, *limit.get("overrides", [])]:
        if "at_most" in rule:
            return False
        if "refill" in rule and length_ns(rule["refill"]["per"]) < SLOW_NS * rule["refill"]["tokens"]:
            return False
        if "window" in rule and (limit["algorithm"] != "exact_window" or length_ns(rule["window"]) < SLOW_NS):
            return False  # Windows that turn by the clock could turn right now.
    return True


def is_timeless(step):
    """Whether the step means the same some seconds later."""
    if "reload" in step or "every" in step:
        return False
    reserve = step.get("reserve", {})
    if length_ns(reserve.get("hold_for", "10m")) < LONG_NS:
        return False
    # A wait that is too long by little is short enough soon.
    expect = step.get("expect", {})
    return (reserve.get("max_wait", "0s") == "0s" or expect.get("reason") != "QUOTA_EXCEEDED"
            or length_ns(expect.get("retry_after", "0s")) >= LONG_NS)


def needs_no_clock(case):
    steps = case["steps"]
    return (all(is_timeless(step) for step in steps)
            and len({length_ns(step.get("at", "0s")) for step in steps}) == 1
            and all(is_slow(limit) for limit in case["limits"])
            # The command line cannot ask for nothing.
            and all(step.get("should_allow", step.get("reserve", {"charges": True}))["charges"] for step in steps))


def seconds_to_ns(text):
    return None if text is None else length_ns(text)


class Server:
    """ebbgated on Unix sockets in a directory of its own."""

    def __init__(self, folder, limits):
        path = os.path.join(folder, "limits.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"limits": limits}, file)
        self.address = f"unix:{folder}/calls"
        self.log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("EBBGATE_")}
        self.process = subprocess.Popen(
            [os.path.join(BIN, "ebbgated"), "--limits", path, "--listen", self.address, "--ops-listen", "127.0.0.1:0",
             "--admin-listen", f"unix:{folder}/admin", "--drain-delay", "0s"],
            stdout=self.log, stderr=self.log, env=self.environment)

    def run(self, *arguments):
        command = [os.path.join(BIN, "ebbgate"), "--server", self.address, "--timeout", "30s", "--json", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment)

    def wait_until_serving(self):
        for _ in range(600):
            if self.run("health").returncode == 0:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.log.seek(0)
        sys.exit("ebbgated does not serve:\n" + self.log.read())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        self.log.close()
        return code


def arguments(prefix, step, ids):
    """The command line of one step. Empty limits and keys are arguments like others. `ids`: reservations by name."""
    if "settle" in step or "cancel" in step:
        command = "settle" if "settle" in step else "cancel"
        name = step[command]["reservation"]
        return [command, "--", ids.get(name, name), *map(str, step[command].get("actual", []))]
    words = ["check"] if "should_allow" in step else ["reserve"]
    call = step.get("should_allow", step.get("reserve"))
    first, *others = call["charges"]
    for flag, member in (("--max-wait", "max_wait"), ("--hold-for", "hold_for")):
        if member in call:
            words += [flag, call[member]]
    if call.get("peek"):
        words.append("--peek")
    if "request_id" in call:
        # Ids are the server's, not a limit's; those that are about their length keep it.
        words += ["--request-id", call["request_id"] if len(call["request_id"]) > 48 else prefix + call["request_id"]]
    if "cost" in first:
        words.append(f"--cost={first['cost']}")
    words += ["--", prefix + first["limit"], first["key"]]
    for charge in others:
        words += ["--and", "--", prefix + charge["limit"], charge["key"]]
        if "cost" in charge:
            words.append(f"--cost={charge['cost']}")
    return words


def differences(want, got, elapsed_ns, prefix, path=""):
    for field, value in want.items():
        if field == "charges":
            for i, charge in enumerate(value):
                yield from differences(charge, got["charges"][i], elapsed_ns, prefix, f"charges[{i}].")
        elif field == "limit":
            if got["limit"] != prefix + value:
                yield f"{path}limit: want {prefix}{value}, got {got['limit']}"
        elif field == "state":
            if got.get("state", "").lower() != value:
                yield f"state: want {value}, got {got.get('state')}"
        elif field in WAITS and value is not None and length_ns(value) > 0:
            left = seconds_to_ns(got.get(field))
            if left is None or not length_ns(value) - elapsed_ns <= left <= length_ns(value):
                yield f"{path}{field}: want {value}, less {elapsed_ns / SECOND:.3f} s at most, got {got.get(field)}"
        elif field == "error":
            if value not in (got.get("error"), got.get("reason")):
                yield f"{path}error: want {value}, got {got.get('error')}"
        elif field in WAITS and value is not None and got.get(field) is not None:
            if seconds_to_ns(got[field]) != 0:
                yield f"{path}{field}: want {value}, got {got[field]}"
        elif got.get(field) != value:
            yield f"{path}{field}: want {value}, got {got.get(field)}"


def exit_code(step, got):
    """What the command should exit with, by what it printed."""
    if "state" in got:
        return 0 if got["state"] == ("SETTLED" if "settle" in step else "CANCELLED") else 1
    return {True: 0, False: 1}.get(got.get("allowed", got.get("granted")), 2)


def run_case(server, prefix, case):
    begun = time.monotonic_ns()
    ids = {}
    for number, step in enumerate(case["steps"], 1):
        expect = dict(step.get("expect", {}))
        count = expect.pop("allowed_count", None)
        allowed = 0
        for _ in range(step.get("times", 1)):
            done = server.run(*arguments(prefix, step, ids))
            try:
                got = json.loads(done.stdout)
            except ValueError:
                got = {"error": done.stdout + done.stderr}
            allowed += done.returncode == 0
            if done.returncode != exit_code(step, got):
                yield f"step {number}: exit code {done.returncode} for {got}"
            if got.get("granted"):
                ids[step["reserve"].get("as")] = got["reservation_id"]
            if "error" in got and "error" not in expect:
                yield f"step {number}: error: want none, got {got}"
                continue
            for line in differences(expect, got, time.monotonic_ns() - begun, prefix):
                yield f"step {number}: {line}"
        if count is not None and allowed != count:
            yield f"step {number}: allowed_count: want {count}, got {allowed}"


def main(paths):
    chosen = []
    total = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            cases = json.load(file)["cases"]
        total += len(cases)
        chosen += [(path, case) for case in cases if needs_no_clock(case)]
    limits = [dict(limit, name=f"c{i}.{limit['name']}")
              for i, (_, case) in enumerate(chosen) for limit in case["limits"]]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder, limits)
        try:
            server.wait_until_serving()
            for i, (path, case) in enumerate(chosen):
                lines = list(run_case(server, f"c{i}.", case))
                failed += bool(lines)
                for line in lines[:20]:
                    print(f"{path}: {case['name']}: {line}")
        finally:
            code = server.stop()
    print(f"{len(chosen)} of {total} cases need no clock; {failed} differ through gRPC")
    return 1 if failed or code != 0 or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
