#!/usr/bin/env python3
"""Checks case files against a second opinion: the limits as arithmetic says they are, not as the server computes them.

    tests/conformance/reference.py tests/conformance/*.json

Exact rationals, waits found by searching instead of by formula, windows of calendars found by walking the clock of a
zone, Envelope over all pairs of admissions. Slow and plain on purpose; it shares no code and no formula with the
decision core. `ebbgate replay` runs the same files on the core: when both agree with a file, the file is right.
Exit code: 0 all as expected, 1 something differs. Standard library only.
"""

import datetime
import json
import re
import sys
import zoneinfo
from fractions import Fraction
from math import floor

NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
SECOND = NS["s"]
MICRO = 10**6  # microtokens in a token: the grain in which a level is kept across a change of limits
MAX_COST = (2**63 - 1) // MICRO
DEDUPE_NS = 60 * SECOND
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
UTC = zoneinfo.ZoneInfo("UTC")


def length_ns(text):
    parts = re.findall(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m|h|d)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"no length of time: {text!r}")
    ns = sum(Fraction(number) * NS[unit] for number, unit in parts)
    if ns.denominator != 1:
        raise ValueError(f"not whole nanoseconds: {text!r}")
    return int(ns)


def wall_ns(text):
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (moment - EPOCH) // datetime.timedelta(microseconds=1) * 1000


def local(zone, ns):
    """The clock on the wall of a zone, to the second below."""
    return (EPOCH + datetime.timedelta(seconds=ns // SECOND)).astimezone(zone)


def first_ns(found, low, high):
    """The least n in (low, high] with found(n), which once true stays true."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return high


# --- Windows of calendars ---------------------------------------------------------------------------------------------


def begin_of_date(zone, date):
    """The first instant at which the zone's calendar shows `date` or a later one."""
    noon_before = datetime.datetime.combine(date, datetime.time(), datetime.timezone.utc) - datetime.timedelta(hours=36)
    ns = (noon_before - EPOCH) // datetime.timedelta(seconds=1) * SECOND
    step = 900 * SECOND
    while local(zone, ns).date() < date:
        ns += step
    return first_ns(lambda n: local(zone, n).date() >= date, ns - step, ns)


def first_date(unit, date):
    return {
        "day": date,
        "week": date - datetime.timedelta(days=date.weekday()),
        "month": date.replace(day=1),
        "year": date.replace(month=1, day=1),
    }[unit]


def next_date(unit, date):
    if unit in ("day", "week"):
        return date + datetime.timedelta(days=7 if unit == "week" else 1)
    after = date + datetime.timedelta(days=32 if unit == "month" else 367)
    return first_date(unit, after)


def clock_window(zone, size, ns):
    """An hour or minute of the clock on the wall; a change of the zone's offset begins a new one."""
    offset = local(zone, ns).utcoffset()
    shift = int(offset.total_seconds()) * SECOND
    start = (ns + shift) // size * size - shift
    end = start + size
    same = lambda n: local(zone, n).utcoffset() == offset
    if not same(start):
        start = first_ns(same, start, ns)
    if not same(end - 1):
        end = first_ns(lambda n: not same(n), ns, end - 1)
    return start, end


def window_of(limit, ns):
    unit, zone = limit["window"], limit["zone"]
    if isinstance(unit, int):
        return ns // unit * unit, (ns // unit + 1) * unit
    if unit in ("minute", "hour"):
        return clock_window(zone, 60 * SECOND if unit == "minute" else 3600 * SECOND, ns)
    date = first_date(unit, local(zone, ns).date())
    while begin_of_date(zone, next_date(unit, date)) <= ns:  # a clock set back over midnight shows the old date again
        date = next_date(unit, date)
    return begin_of_date(zone, date), begin_of_date(zone, next_date(unit, date))


# --- Limits -----------------------------------------------------------------------------------------------------------


def rules(entry, base=None):
    """What an entry of the limits file, or an override of it, says of one bucket."""
    rule = dict(base or {"algorithm": "token_bucket", "zone": UTC})
    if "at_most" in entry:
        most = entry["at_most"]
        rule.update(algorithm="token_bucket", capacity=most["burst"])
        rule.update(rate=Fraction(most["count"] - most["burst"], length_ns(most["per"])), per=length_ns(most["per"]))
    rule["algorithm"] = entry.get("algorithm", rule["algorithm"])
    if "capacity" in entry or "count" in entry:
        rule["capacity"] = entry.get("capacity", entry.get("count"))
    if "refill" in entry:
        rule["per"] = length_ns(entry["refill"]["per"])
        rule["rate"] = Fraction(entry["refill"]["tokens"], rule["per"])
    if "window" in entry:
        rule["window"] = length_ns(entry["window"]) if entry["window"][0].isdigit() else entry["window"]
    if "time_zone" in entry:
        rule["zone"] = zoneinfo.ZoneInfo(entry["time_zone"])
    return rule


class Limit:
    def __init__(self, entry):
        self.name = entry["name"]
        self.rule = rules(entry)
        self.overrides = [(o["key"], rules(o, self.rule)) for o in entry.get("overrides", [])]
        self.shadow = entry.get("shadow", False)
        self.default_cost = entry.get("default_cost", 1)
        self.max_cost = entry.get("max_cost")

    def rule_of(self, key):
        for pattern, rule in self.overrides:
            if "*" not in pattern and pattern == key:
                return rule
        for pattern, rule in self.overrides:
            if "*" in pattern and re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), key, re.DOTALL):
                return rule
        return self.rule


class Bucket:
    """What one key was admitted, and how much is free at a time. `last`: no reading before it counts."""

    def __init__(self, rule, start, now):
        self.rule, self.start, self.last = rule, start, now
        self.admitted = []  # (time, cost): of windows
        self.level = Fraction(rule["capacity"])  # of buckets, at `last`

    def is_bucket(self):
        return self.rule["algorithm"] in ("token_bucket", "gcra")

    def free(self, now):
        """Tokens that could be spent at a time, exact."""
        rule = self.rule
        now = max(now, self.last)
        if self.is_bucket():
            return min(Fraction(rule["capacity"]), self.level + rule["rate"] * (now - self.last))
        if rule["algorithm"] == "fixed_window":
            begin = window_of(rule, self.start + now)[0]
            return rule["capacity"] - sum(cost for at, cost in self.admitted if self.start + at >= begin)
        size = rule["window"]
        if rule["algorithm"] == "exact_window":
            return rule["capacity"] - sum(cost for at, cost in self.admitted if now - size < at)
        number = (self.start + now) // size
        counts = {n: sum(cost for at, cost in self.admitted if (self.start + at) // size == n)
                  for n in (number, number - 1)}
        elapsed = (self.start + now) % size
        return rule["capacity"] - counts[number] - counts[number - 1] * (1 - Fraction(elapsed, size))

    def wait(self, now, cost):
        """The least number of nanoseconds after which `cost` is free if nothing else comes."""
        now = max(now, self.last)
        if self.free(now) >= cost:
            return 0
        if self.rule["algorithm"] == "fixed_window":
            return window_of(self.rule, self.start + now)[1] - self.start - now
        high = 1
        while self.free(now + high) < cost:
            high *= 2
        return first_ns(lambda n: self.free(now + n) >= cost, 0, high)

    def reset(self, now):
        now = max(now, self.last)
        if self.rule["algorithm"] == "fixed_window":
            return window_of(self.rule, self.start + now)[1] - self.start - now
        return self.wait(now, self.rule["capacity"])

    def take(self, now, cost):
        now = max(now, self.last)
        if self.is_bucket():
            self.level = self.free(now) - cost
        else:
            self.admitted.append((now, cost))
        self.last = now

    def change(self, rule, now):
        """New rules: what was free stays so up to the new capacity, to the grain of the new rate; nothing is added."""
        now = max(now, self.last)
        if rule == self.rule:
            return
        free = self.free(now)
        remembers = rule["algorithm"] in ("sliding_window", "exact_window")
        same_window = rule["algorithm"] == self.rule["algorithm"] and rule.get("window") == self.rule.get("window")
        fraction = free * MICRO % 1
        self.rule, self.last = rule, now
        if remembers and same_window:
            surplus = floor((self.free(now) - free) * MICRO)
            if surplus > 0:
                self.admitted.append((now, Fraction(surplus, MICRO)))
            return
        if free >= rule["capacity"]:
            free = Fraction(rule["capacity"])
        else:
            kept = Fraction(floor(fraction * rule["per"]), rule["per"]) if self.is_bucket() else 0
            free = Fraction(floor(free * MICRO) + kept, MICRO)
        self.level = free
        self.admitted = [] if self.is_bucket() else [(now, rule["capacity"] - free)]


# --- Calls ------------------------------------------------------------------------------------------------------------


class Refused(Exception):
    """An error instead of a decision; its text is the code."""


class World:
    """All buckets of one case."""

    def __init__(self, case):
        self.start = wall_ns(case.get("start_wall", "1970-01-01T00:00:00Z"))
        self.limits = {}
        self.buckets = {}
        self.answers = {}  # by request id: (when, call, answer)
        self.spent = {}  # by bucket: (time, cost), for Envelope; None once its rules have changed
        self.install(case["limits"], 0)

    def install(self, entries, now):
        limits = {entry["name"]: Limit(entry) for entry in entries}
        if any(limit.rule["capacity"] < 1 or limit.rule.get("rate", 1) <= 0 for limit in limits.values()):
            raise Refused("INVALID_ARGUMENT")
        self.limits = limits
        for (name, key), bucket in self.buckets.items():
            if name in self.limits and bucket.rule != self.limits[name].rule_of(key):
                bucket.change(self.limits[name].rule_of(key), now)
                self.spent[name, key] = None

    def check(self, call):
        if not 1 <= len(call.get("charges", [])) <= 32 or len(call.get("request_id", "").encode()) > 64:
            raise Refused("INVALID_ARGUMENT")
        for charge in call["charges"]:
            cost = charge.get("cost", 0)
            if not 1 <= len(charge["limit"].encode()) <= 128 or not 1 <= len(charge["key"].encode()) <= 1024:
                raise Refused("INVALID_ARGUMENT")
            if not 0 <= cost <= MAX_COST:
                raise Refused("INVALID_ARGUMENT")
        for charge in call["charges"]:
            if charge["limit"] not in self.limits:
                raise Refused("NOT_FOUND")
            most = self.limits[charge["limit"]].max_cost
            if most is not None and charge.get("cost", 0) > most:
                raise Refused("INVALID_ARGUMENT")

    def ask(self, call, now, whole):
        """The answer; unless `whole`, only whether and why, since waits are dear to find by searching."""
        self.check(call)
        request_id = call.get("request_id", "")
        if request_id in self.answers:
            when, asked, answer = self.answers[request_id]
            if now - when < DEDUPE_NS:
                if asked["charges"] != call["charges"]:
                    raise Refused("INVALID_ARGUMENT")
                return dict(answer, replayed=True)
        answer = self.decide(call, now, whole or request_id)
        if request_id:
            self.answers[request_id] = (now, call, answer)
        return answer

    def decide(self, call, now, whole):
        totals = {}
        for charge in call["charges"]:
            name, key = charge["limit"], charge["key"]
            totals[name, key] = totals.get((name, key), 0) + charge.get("cost", self.limits[name].default_cost)
        found = {pair: self.buckets.get(pair) or Bucket(self.limits[pair[0]].rule_of(pair[1]), self.start, now)
                 for pair in totals}
        verdicts = {pair: self.verdict(found[pair], cost, now) for pair, cost in totals.items()}
        shadowed = {pair for pair in totals if self.limits[pair[0]].shadow and verdicts[pair] != "ALLOWED"}
        causes = {verdicts[pair] for pair in totals if pair not in shadowed} - {"ALLOWED"}
        allowed = not causes
        late = [pair for pair in totals if verdicts[pair] == "QUOTA_EXCEEDED" and whole]
        waits = {pair: found[pair].wait(now, totals[pair]) for pair in late}
        if allowed and not call.get("peek", False):
            for pair, cost in totals.items():
                if pair not in shadowed and cost > 0:
                    self.buckets[pair] = found[pair]
                    found[pair].take(now, cost)
                    if self.spent.setdefault(pair, []) is not None:
                        self.spent[pair].append((found[pair].last, cost))
        if "COST_EXCEEDS_CAPACITY" in causes:
            reason = "COST_EXCEEDS_CAPACITY"
        else:
            reason = "QUOTA_EXCEEDED" if causes else "SHADOWED" if shadowed else "ALLOWED"
        answer = {"allowed": allowed, "reason": reason, "replayed": False}
        if whole:
            answer["charges"] = self.describe(call, found, verdicts, shadowed, waits, now)
        if whole and reason == "QUOTA_EXCEEDED":
            answer["retry_after"] = max(wait for pair, wait in waits.items() if pair not in shadowed)
        return answer

    @staticmethod
    def verdict(bucket, cost, now):
        if cost > bucket.rule["capacity"]:
            return "COST_EXCEEDS_CAPACITY"
        return "ALLOWED" if bucket.free(now) >= cost else "QUOTA_EXCEEDED"

    @staticmethod
    def describe(call, found, verdicts, shadowed, waits, now):
        charges = []
        for charge in call["charges"]:
            pair = charge["limit"], charge["key"]
            result = {"remaining": max(0, floor(found[pair].free(now))), "capacity": found[pair].rule["capacity"],
                      "reset_after": found[pair].reset(now),
                      "reason": "SHADOWED" if pair in shadowed else verdicts[pair]}
            if pair in waits and pair not in shadowed:
                result["retry_after"] = waits[pair]
            charges.append(result)
        return charges

    def envelope_breaches(self):
        for (name, key), spent in self.spent.items():
            rule = self.buckets[name, key].rule
            if spent is None or "rate" not in rule or rule["algorithm"] not in ("token_bucket", "gcra"):
                continue
            for i, (begin, _) in enumerate(spent):
                total = 0
                for end, cost in spent[i:]:
                    total += cost
                    if total > rule["capacity"] + rule["rate"] * (end - begin):
                        yield f"Envelope: {total} admitted to {name} / {key} from {begin} ns to {end} ns"


# --- Case files -------------------------------------------------------------------------------------------------------


def differences(want, got, path=""):
    """Each field that `want` names and `got` does not match."""
    for field, value in want.items():
        where = f"{path}{field}"
        if field == "charges":
            for i, charge in enumerate(value):
                yield from differences(charge, got["charges"][i], f"charges[{i}].")
        elif field in ("retry_after", "reset_after"):
            expected = None if value is None else length_ns(value)
            if got.get(field) != expected:
                yield f"{where}: want {value}, got {got.get(field)} ns"
        elif got.get(field) != value:
            yield f"{where}: want {value}, got {got.get(field)}"


def run_step(world, step):
    at, every = length_ns(step.get("at", "0s")), length_ns(step.get("every", "0s"))
    expect = dict(step.get("expect", {}))
    count = expect.pop("allowed_count", None)
    if "reload" in step:
        try:
            for i in range(step.get("times", 1)):
                world.install(step["reload"]["limits"], at + i * every)
            error = None
        except Refused as refusal:
            error = str(refusal)
        if error != expect.get("error"):
            yield f"error: want {expect.get('error')}, got {error}"
        return
    whole = "charges" in expect or "retry_after" in expect
    allowed = 0
    for i in range(step.get("times", 1)):
        try:
            answer = world.ask(step["should_allow"], at + i * every, whole)
            allowed += answer["allowed"]
        except Refused as refusal:
            answer = {"error": str(refusal)}
        if "error" in answer and "error" not in expect:
            yield f"error: want none, got {answer['error']}"
        else:
            yield from differences(expect, answer)
    if count is not None and allowed != count:
        yield f"allowed_count: want {count}, got {allowed}"


def run_case(case):
    world = World(case)
    for number, step in enumerate(case["steps"], 1):
        for line in run_step(world, step):
            yield f"step {number} at {step.get('at', '0s')}: {line}"
    yield from world.envelope_breaches()


def main(paths):
    cases = failed = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for case in json.load(file)["cases"]:
                cases += 1
                lines = list(run_case(case))
                failed += bool(lines)
                for line in lines[:20]:
                    print(f"{path}: {case['name']}: {line}")
    print(f"{cases} cases, {failed} differ from the reference")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
