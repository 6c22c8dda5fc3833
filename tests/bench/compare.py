#!/usr/bin/env python3
"""Measures ebbgated against the yardstick, a bare gRPC echo server, and prints medians of ratios.

    tests/bench/compare.py                        with the programs of build/release/bin
    tests/bench/compare.py --bin build/dev/bin --rounds 9

Both servers run side by side on this machine, driven by `ebbgate load`. A round measures everything once, in an order
that changes from round to round; each ratio is taken within one round, so that a machine that is slow or busy for a
while is so for both sides. The exit code is 0 if every median reaches its goal, 1 if one does not, 2 on an error.
Standard library only.
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# What is measured: name, server, flags of `ebbgate load`.
UNARY = ["--mode", "unary", "--outstanding", "64"]
BATCH_100 = ["--mode", "batch", "--batch", "100", "--outstanding", "16"]
BATCH_1000 = ["--mode", "batch", "--batch", "1000", "--outstanding", "8"]
MANY_KEYS = ["--limit", "bench", "--keys", "10000"]
HOT_KEY = ["--limit", "bench", "--distribution", "hot"]
HALF_DENIED = MANY_KEYS + ["--deny-share", "0.5", "--deny-limit", "exhausted"]
MEASUREMENTS = {
    "echo": ("yardstick", UNARY + ["--target", "yardstick"]),
    "unary": ("ebbgated", UNARY + MANY_KEYS),
    "unary hot": ("ebbgated", UNARY + HOT_KEY),
    "unary half denied": ("ebbgated", UNARY + HALF_DENIED),
    "batch 100": ("ebbgated", BATCH_100 + MANY_KEYS),
    "batch 100 hot": ("ebbgated", BATCH_100 + HOT_KEY),
    "batch 1000": ("ebbgated", BATCH_1000 + MANY_KEYS),
    "batch 1000 half denied": ("ebbgated", BATCH_1000 + HALF_DENIED),
}

# What is claimed: words, what is divided by what, which figure, whether more is better, the goal (None: shown only).
RATIOS = [
    ("unary calls/s, of the yardstick's", "unary", "echo", "calls_per_s", True, 0.9),
    ("server CPU a unary call, of the yardstick's", "unary", "echo", "server_cpu_ns_per_call", False, 1.1),
    ("unary calls/s with half denied, of the yardstick's", "unary half denied", "echo", "calls_per_s", True, None),
    ("decisions/s in batches of 100, of the yardstick's calls", "batch 100", "echo", "decisions_per_s", True, 20),
    ("decisions/s in batches of 1,000, of the yardstick's calls", "batch 1000", "echo", "decisions_per_s", True, 30),
    ("the same with half denied", "batch 1000 half denied", "echo", "decisions_per_s", True, None),
    ("unary calls/s on one hot key, of many keys", "unary hot", "unary", "calls_per_s", True, 0.9),
    ("decisions/s on one hot key, of many keys, batches of 100", "batch 100 hot", "batch 100", "decisions_per_s", True,
     0.9),
]


@contextlib.contextmanager
def running(command, ready_line, environment):
    """A server as a child process, and the address that it prints when it is ready."""
    with tempfile.TemporaryFile("w+") as log:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        try:
            line = child.stdout.readline() if ready_line else ""
            if ready_line and not line.startswith(ready_line):
                child.wait(timeout=10)
                log.seek(0)
                raise RuntimeError(f"{command[0]} did not start: {log.read()}")
            yield child, line.removeprefix(ready_line).strip()
        finally:
            child.terminate()
            try:
                child.wait(timeout=30)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            child.stdout.close()


def measure(ebbgate, address, pid, flags, seconds, connections, environment):
    command = [ebbgate, "load", "--json", "--server", address, "--server-pid", str(pid), "--timeout", "10s",
               "--duration", f"{seconds}s", "--connections", str(connections), *flags]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def wait_until_serving(ebbgate, address, environment):
    for _ in range(100):
        done = subprocess.run([ebbgate, "health", "--server", address], capture_output=True, env=environment)
        if done.returncode == 0:
            return
    raise RuntimeError(f"ebbgated does not serve at {address}")


def run_rounds(servers, ebbgate, options, environment):
    """A list of rounds, each a dictionary of measurements."""
    order = list(MEASUREMENTS)
    rounds = []
    for number in range(-1, options.rounds):  # The first warms everything up and does not count.
        random.Random(number).shuffle(order)
        results = {}
        for name in order:
            server, flags = MEASUREMENTS[name]
            pid, address = servers[server]
            seconds = options.seconds if number >= 0 else min(1.0, options.seconds)
            results[name] = measure(ebbgate, address, pid, flags, seconds, options.connections, environment)
            rate = results[name]["decisions_per_s"]
            print(f"  round {number + 1}/{options.rounds}  {name:<24} {rate:>12,.0f} decisions/s"
                  f"  {results[name].get('server_cpu_ns_per_call', 0) / 1000:>8,.1f} us CPU a call", file=sys.stderr)
        if number >= 0:
            rounds.append(results)
    return rounds


def report(rounds):
    """Prints the medians; returns whether all goals are reached."""
    print(f"\nmedians of {len(rounds)} rounds")
    for name in MEASUREMENTS:
        figures = [r[name] for r in rounds]
        rate = statistics.median(f["decisions_per_s"] for f in figures)
        cpu = statistics.median(f["server_cpu_ns_per_call"] for f in figures) / 1000
        p50, p99 = (statistics.median(f["latency_ns"][q] for f in figures) / 1e6 for q in ("p50", "p99"))
        print(f"  {name:<24} {rate:>12,.0f} decisions/s {cpu:>9,.1f} us server CPU a call"
              f"   p50 {p50:.2f} ms  p99 {p99:.2f} ms")
    print("\nratios, median (least to most)")
    good = True
    for words, above, below, figure, more_is_better, goal in RATIOS:
        values = [r[above][figure] / r[below][figure] for r in rounds]
        median = statistics.median(values)
        verdict = ""
        if goal is not None:
            reached = median >= goal if more_is_better else median <= goal
            good &= reached
            verdict = f"goal {'>=' if more_is_better else '<='} {goal}: {'reached' if reached else 'MISSED'}"
        print(f"  {words:<58} {median:>7.2f} ({min(values):.2f} to {max(values):.2f})  {verdict}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"), help="where the programs are")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--connections", type=int, default=2)
    options = parser.parse_args()

    def program(name):
        path = os.path.join(options.bin, name)
        if not os.access(path, os.X_OK):
            sys.exit(f"{path} is missing; build it first: cmake --preset release && cmake --build --preset release")
        return path

    ebbgate, ebbgated, yardstick = program("ebbgate"), program("ebbgated"), program("yardstick_server")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EBBGATE_")}
    with tempfile.TemporaryDirectory() as folder:
        # Unix sockets need no free port, and both servers pay the same for them.
        ebbgated_address = f"unix:{folder}/calls"
        ebbgated_command = [ebbgated, "--limits", os.path.join(HERE, "limits.yaml"), "--listen", ebbgated_address,
                            "--ops-listen", "127.0.0.1:0", "--admin-listen", f"unix:{folder}/admin"]
        yardstick_command = [yardstick, "--listen", f"unix:{folder}/yardstick"]
        with running(ebbgated_command, "", environment) as (server, _), \
                running(yardstick_command, "listening on ", environment) as (echo, echo_address):
            wait_until_serving(ebbgate, ebbgated_address, environment)
            servers = {"ebbgated": (server.pid, ebbgated_address), "yardstick": (echo.pid, echo_address)}
            rounds = run_rounds(servers, ebbgate, options, environment)
    return 0 if report(rounds) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as error:
        sys.exit(f"compare.py: {error}")
