#!/usr/bin/env python3
"""Makes up histories with reservations, has the reference answer them, and replays them on the decision core.

    EBBGATE_BIN=build/dev/bin tests/conformance/random_cases.py [--seed N] [--cases N] [--keep FILE]

What the two do not agree on is printed, and the case kept in FILE. Times are multiples of a quarter of what a token
takes, so that acts, expiries and calls often meet at one instant. Standard library only.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

from buckets import NS, length_ns
from reference import Refused, World, run_action

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("EBBGATE_BIN", os.path.join(HERE, "..", "..", "build", "dev", "bin"))
QUARTER_NS = NS["ms"] * 250


def made_limit(chance, name):
    kind = chance.choice(["token_bucket", "token_bucket", "gcra", "fixed_window", "sliding_window", "exact_window"])
    limit = {"name": name, "algorithm": kind}
    size = chance.choice([1, 2, 5, 10])
    if kind in ("token_bucket", "gcra"):
        limit["capacity"] = size
        limit["refill"] = {"tokens": chance.choice([1, 1, 2, 3]), "per": chance.choice(["1s", "1s", "3s"])}
        limit["pace"] = chance.random() < 0.2
    else:
        limit.update(count=size, window=chance.choice(["4s", "10s"]))
    if chance.random() < 0.3:
        limit["on_hold_expiry"] = "give_back"
    if chance.random() < 0.3:
        limit["max_debt"] = chance.choice([0, 2, 7])
    if chance.random() < 0.2:
        limit["max_holds"] = chance.choice([1, 3])
    if chance.random() < 0.1:
        limit["shadow"] = True
    return limit


def changed(chance, limits):
    """The same limits with other numbers, none raised: a full bucket may have been forgotten, and is then full anew."""
    again = [dict(limit) for limit in limits]
    for limit in again:
        if "refill" in limit:
            limit["refill"] = {"tokens": chance.choice([1, 2, 5]), "per": chance.choice(["1s", "2s"])}
            if chance.random() < 0.5:
                limit["capacity"] = max(1, limit["capacity"] - chance.choice([1, 4]))
    return again


def most(limit):
    return limit.get("capacity", limit.get("count"))


def made_charges(chance, limits):
    chosen = chance.sample(limits, 1 if chance.random() < 0.7 else len(limits))
    if chance.random() < 0.1:
        chosen.append(chosen[0])
    return [{"limit": limit["name"], "key": "k", "cost": min(chance.choice([1, 1, 2, 3, 5]), most(limit))}
            for limit in chosen]


def made_action(chance, limits, granted):
    roll = chance.random()
    if roll < 0.35 or not granted:
        call = {"charges": made_charges(chance, limits), "max_wait": chance.choice(["0s", "2s", "10s", "1h"]),
                "hold_for": chance.choice(["1s", "3s", "10m", "10m"]), "as": f"r{len(granted)}"}
        return {"reserve": call}
    if roll < 0.65:
        return {"should_allow": {"charges": made_charges(chance, limits)}}
    name, costs = chance.choice(list(granted.items())[-6:])
    if roll < 0.8:
        return {"cancel": {"reservation": name}}
    return {"settle": {"reservation": name, "actual": [max(0, cost + chance.choice([-2, -1, 0, 0, 1, 3]))
                                                       for cost in costs]}}


def expected(answer):
    """The answer as a case file writes it."""
    def write(value):
        return {field: f"{content}ns" if field.endswith("_after") else content for field, content in value.items()
                if field not in ("charges", "reservation", "replayed")}

    expect = write(answer)
    expect["charges"] = [write(charge) for charge in answer["charges"]]
    if not answer.get("granted", True):
        expect["act_after"] = None
    return expect


def made_case(number, seed):
    chance = random.Random(f"{seed}/{number}")
    limits = [made_limit(chance, name) for name in ("L", "M")[:chance.choice([1, 1, 2])]]
    case = {"name": f"made up {seed}/{number}", "start_wall": "2026-01-01T00:00:00Z", "limits": limits, "steps": []}
    world, now, granted = World(case), 0, {}
    for _ in range(chance.choice([10, 25])):
        now += chance.choice([0, 0, 0, 1, 2, 4, 7]) * QUARTER_NS
        if chance.random() < 0.04:
            limits = changed(chance, limits)
            world.install(limits, now)
            case["steps"].append({"at": f"{now}ns", "reload": {"limits": limits}})
        step = {"at": f"{now}ns", **made_action(chance, limits, granted)}
        try:
            answer = run_action(world, step, now, True)
            step["expect"] = expected(answer)
            if answer.get("granted"):
                granted[step["reserve"]["as"]] = [charge["cost"] for charge in step["reserve"]["charges"]]
        except Refused as refusal:
            step["expect"] = {"error": str(refusal)}
        case["steps"].append(step)
    return case


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--keep")
    options = parser.parse_args()
    cases = [made_case(number, options.seed) for number in range(options.cases)]
    grants = sum(step.get("expect", {}).get("granted", False) for case in cases for step in case["steps"])
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or os.path.join(folder, "cases.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"cases": cases}, file)
        done = subprocess.run([os.path.join(BIN, "ebbgate"), "replay", path], check=False)
    print(f"{grants} reservations granted")
    return done.returncode if grants > options.cases else 1


if __name__ == "__main__":
    sys.exit(main())
