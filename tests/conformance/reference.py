#!/usr/bin/env python3
"""Checks case files against a second opinion: the limits as arithmetic says they are, not as the server computes them.

    tests/conformance/reference.py tests/conformance/*.json

Exact rationals, waits found by searching instead of by formula, windows of calendars found by walking the clock of a
zone, Envelope over all pairs of admissions. Slow and plain on purpose; it shares no code and no formula with the
decision core. `ebbgate replay` runs the same files on the core: when both agree with a file, the file is right.
Exit code: 0 all as expected, 1 something differs. Standard library only.
"""

import json
import re
import sys
from fractions import Fraction
from math import ceil, floor

from buckets import DEDUPE_NS, MAX_COST, MICRO, NS, SECOND, Bucket, Limit, Take, length_ns, wall_ns


# --- Calls ------------------------------------------------------------------------------------------------------------


class Refused(Exception):
    """An error instead of a decision; its text is the code."""


class Reservation:
    """One charge of it: who, the take (None where a shadow limit let it pass for nothing), what was reserved."""

    def __init__(self, act, expires, parts):
        self.act, self.expires, self.parts = act, expires, parts
        self.answer = None  # once it has ended
        self.ended = None


class World:
    """All buckets of one case."""

    def __init__(self, case):
        self.start = wall_ns(case.get("start_wall", "1970-01-01T00:00:00Z"))
        self.limits = {}
        self.buckets = {}
        self.answers = {}  # by request id: (when, call, answer)
        self.spent = {}  # by bucket: takes, for Envelope; None once its rules have changed
        self.reservations = []
        self.names = {}  # what the case calls them
        self.install(case["limits"], 0)

    def install(self, entries, now):
        limits = {entry["name"]: Limit(entry) for entry in entries}
        if any(limit.rule["capacity"] < 1 or limit.rule.get("rate", 1) <= 0 for limit in limits.values()):
            raise Refused("INVALID_ARGUMENT")
        self.expire(now)
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

    def once(self, kind, call, now, answer_anew):
        """The answer to an earlier call with the same id, or a new one."""
        self.check(call)
        self.expire(now)
        request_id = call.get("request_id", "")
        if request_id in self.answers:
            when, asked, answer = self.answers[request_id]
            if now - when < DEDUPE_NS:
                if asked != (kind, call["charges"]):
                    raise Refused("INVALID_ARGUMENT")
                return dict(answer, replayed=True)
        answer = answer_anew()
        if request_id:
            self.answers[request_id] = (now, (kind, call["charges"]), answer)
        return answer

    def ask(self, call, now, whole):
        """The answer; unless `whole`, only whether and why, since waits are dear to find by searching."""
        whole = whole or "request_id" in call
        return self.once("ask", call, now, lambda: self.decide(call, now, whole))

    def cost_of(self, charge):
        return charge.get("cost", self.limits[charge["limit"]].default_cost)

    def open(self, call, now):
        """The buckets of a call, and what it costs each."""
        totals = {}
        for charge in call["charges"]:
            pair = charge["limit"], charge["key"]
            totals[pair] = totals.get(pair, 0) + self.cost_of(charge)
        found = {pair: self.buckets.get(pair) or Bucket(self.limits[pair[0]].rule_of(pair[1]), self.start, now)
                 for pair in totals}
        return found, totals

    def note(self, pair, bucket, take):
        self.buckets[pair] = bucket
        if self.spent.setdefault(pair, []) is not None:
            self.spent[pair].append(take)

    def decide(self, call, now, whole):
        found, totals = self.open(call, now)
        verdicts = {pair: self.verdict(found[pair], cost, now) for pair, cost in totals.items()}
        shadowed = {pair for pair in totals if self.limits[pair[0]].shadow and verdicts[pair] != "ALLOWED"}
        causes = {verdicts[pair] for pair in totals if pair not in shadowed} - {"ALLOWED"}
        allowed = not causes
        late = [pair for pair in totals if verdicts[pair] == "QUOTA_EXCEEDED" and whole]
        waits = {pair: found[pair].earliest(now, totals[pair]) - max(now, found[pair].last) for pair in late}
        if allowed and not call.get("peek", False):
            for pair, cost in totals.items():
                if pair not in shadowed and cost > 0:
                    self.note(pair, found[pair], found[pair].take(now, cost))
        if "COST_EXCEEDS_CAPACITY" in causes:
            reason = "COST_EXCEEDS_CAPACITY"
        else:
            reason = "QUOTA_EXCEEDED" if causes else "SHADOWED" if shadowed else "ALLOWED"
        answer = {"allowed": allowed, "reason": reason, "replayed": False}
        if whole:
            answer["charges"] = self.describe(call, found, verdicts, shadowed, waits, now)
        if whole and reason == "QUOTA_EXCEEDED":
            hindering = {pair: found[pair] for pair in totals if totals[pair] > 0 and not self.limits[pair[0]].shadow}
            late = max([now, *(bucket.last for bucket in hindering.values())])
            answer["retry_after"] = self.together(hindering, totals, late) - late
        return answer

    @staticmethod
    def verdict(bucket, cost, now):
        if cost > bucket.rule["capacity"]:
            return "COST_EXCEEDS_CAPACITY"
        return "ALLOWED" if cost == 0 or bucket.fits(now, cost) else "QUOTA_EXCEEDED"

    @staticmethod
    def describe(call, found, verdicts, shadowed, waits, now):
        charges = []
        for charge in call["charges"]:
            pair = charge["limit"], charge["key"]
            result = {"remaining": found[pair].remaining(now), "capacity": found[pair].rule["capacity"],
                      "reset_after": found[pair].reset(now),
                      "reason": "SHADOWED" if pair in shadowed else verdicts[pair]}
            if pair in waits and pair not in shadowed:
                result["retry_after"] = waits[pair]
            charges.append(result)
        return charges

    # --- Reservations -------------------------------------------------------------------------------------------------

    def reserve(self, call, now):
        def times(answer):
            if answer["granted"]:
                reservation = answer["reservation"]
                answer = dict(answer, act_after=max(0, reservation.act - now),
                              expires_after=max(0, reservation.expires - now))
                self.names[call.get("as")] = reservation
            return answer

        return times(self.once("reserve", call, now, lambda: self.promise(call, now)))

    def promise(self, call, now):
        found, totals = self.open(call, now)
        latest = now + length_ns(call.get("max_wait", "0s"))
        shadow = {pair for pair in totals if self.limits[pair[0]].shadow}
        fitting = {pair for pair in totals if totals[pair] <= found[pair].rule["capacity"]}
        act = self.together({pair: found[pair] for pair in fitting - shadow if totals[pair] > 0}, totals, now)
        verdicts = {pair: self.objection(pair, found[pair], totals[pair], now, act, latest) for pair in totals}
        causes = {verdicts[pair] for pair in totals if pair not in shadow} - {"ALLOWED"}
        if not causes and act > latest:
            causes = {"QUOTA_EXCEEDED"}
            verdicts = {pair: "ALLOWED" if pair in shadow else "QUOTA_EXCEEDED" for pair in totals}
        shadowed = {pair for pair in shadow if verdicts[pair] != "ALLOWED"}
        waits = {pair: found[pair].earliest(now, totals[pair]) - max(now, found[pair].last) for pair in totals
                 if verdicts[pair] == "QUOTA_EXCEEDED"}
        answer = {"granted": not causes, "replayed": False,
                  "reason": next((reason for reason in ("COST_EXCEEDS_CAPACITY", "QUOTA_EXCEEDED", "TOO_MUCH_DEBT",
                                                        "TOO_MANY_HOLDS") if reason in causes),
                                 "SHADOWED" if shadowed else "ALLOWED")}
        if answer["reason"] == "QUOTA_EXCEEDED":
            answer["retry_after"] = act - latest
        if not causes:
            expires = act + length_ns(call.get("hold_for", "10m"))
            answer["reservation"] = self.hold(call, found, shadowed, now, act, expires)
        answer["charges"] = self.describe(call, found, verdicts, shadowed, waits, now)
        return answer

    @staticmethod
    def together(found, totals, now):
        """The first time that suits all of these buckets."""
        at = now
        while True:
            later = max([at, *(bucket.earliest(at, totals[pair]) for pair, bucket in found.items())])
            if later == at:
                return at
            at = later

    def objection(self, pair, bucket, cost, now, act, latest):
        limit = self.limits[pair[0]]
        if cost == 0:
            return "ALLOWED"
        if cost > bucket.rule["capacity"]:
            return "COST_EXCEEDS_CAPACITY"
        if act > latest:  # the call as a whole comes too late, perhaps on account of others
            return "QUOTA_EXCEEDED" if bucket.earliest(now, cost) > latest else "ALLOWED"
        if limit.shadow and not bucket.fits(act, cost):
            return "QUOTA_EXCEEDED"
        if act > now and bucket.owed(now) + cost > limit.debt_of(bucket.rule):
            return "TOO_MUCH_DEBT"
        # What was settled before its turn still has its turn to come.
        holds = len({id(r) for r in self.reservations for where, take, _ in r.parts
                     if where == pair and take is not None and (r.ended is None or take.cost > 0 and take.at > now)})
        return "TOO_MANY_HOLDS" if holds >= limit.max_holds else "ALLOWED"

    def hold(self, call, found, shadowed, now, act, expires):
        parts = []
        for charge in call["charges"]:
            pair, cost = (charge["limit"], charge["key"]), self.cost_of(charge)
            take = None
            if pair not in shadowed and cost > 0:
                bucket = found[pair]
                bucket.last = max(bucket.last, now)
                take = bucket.add(Take(max(act, bucket.last), cost, open_until=expires))
                self.note(pair, bucket, take)
            parts.append((pair, take, cost))
        self.reservations.append(Reservation(act, expires, parts))
        return self.reservations[-1]

    def end(self, name, amounts, now):
        """Settles with `amounts`, or cancels."""
        self.expire(now)
        reservation = self.names.get(name)
        if reservation is None or (reservation.ended is not None and now - reservation.ended >= DEDUPE_NS):
            raise Refused("NOT_FOUND" if reservation or re.fullmatch("[0-9a-f]{32}", name) else "INVALID_ARGUMENT")
        if amounts is not None and len(amounts) != len(reservation.parts):
            raise Refused("INVALID_ARGUMENT")
        if any(not 0 <= amount <= MAX_COST for amount in amounts or []):
            raise Refused("INVALID_ARGUMENT")
        if reservation.ended is not None:
            return dict(reservation.answer, repeated=True)
        state = "cancelled" if amounts is None else "settled"
        return self.close(reservation, state, amounts or [0] * len(reservation.parts), now)

    def close(self, reservation, state, amounts, now):
        charges, spent = [], {}
        for (pair, take, cost), amount in zip(reservation.parts, amounts):
            over = max(0, amount - cost)
            charges.append({"limit": pair[0], "reserved": cost, "actual": amount, "given_back": max(0, cost - amount),
                            "overrun": over, "uncovered": 0 if take else over})
            if take is not None:
                spent[pair] = spent.get(pair, 0) + amount
        # Several charges of one bucket are one amount.
        for pair, amount in spent.items():
            for where, take, cost in reservation.parts:
                if where == pair and take is not None:
                    take.cost, take.open_until = min(cost, amount), None
                    amount -= take.cost
            over = amount
            bucket = self.buckets[pair]
            bucket.last = max(bucket.last, now)
            room = self.limits[pair[0]].debt_of(bucket.rule) - bucket.owed(now)
            covered = min(max(Fraction(floor(room * MICRO), MICRO), 0), over)
            if covered > 0:
                bucket.take(now, covered)
            missing = ceil(over - covered)
            for (where, take, _), charge in zip(reservation.parts, charges):
                if where == pair and take is not None:
                    charge["uncovered"] = min(missing, charge["overrun"])
                    missing -= charge["uncovered"]
        reservation.ended = now
        reservation.answer = {"state": state, "repeated": False, "charges": charges}
        return reservation.answer

    def expire(self, now):
        """Holds that nobody ended in time, each at its own time."""
        due = [each for each in self.reservations if each.ended is None and each.expires <= now]
        for reservation in sorted(due, key=lambda each: each.expires):
            amounts = [0 if self.limits[pair[0]].gives_back else cost for pair, _, cost in reservation.parts]
            self.close(reservation, "expired", amounts, reservation.expires)

    def envelope_breaches(self):
        for (name, key), spent in self.spent.items():
            rule = self.buckets[name, key].rule
            if spent is None or "rate" not in rule or rule["algorithm"] not in ("token_bucket", "gcra"):
                continue
            spent = sorted((take for take in spent if take.cost > 0), key=lambda take: take.at)
            for i, first in enumerate(spent):
                total = 0
                for take in spent[i:]:
                    total += take.cost
                    if total > rule["capacity"] + rule["rate"] * (take.at - first.at):
                        yield f"Envelope: {total} admitted to {name} / {key} from {first.at} ns to {take.at} ns"


# --- Case files -------------------------------------------------------------------------------------------------------


def differences(want, got, path=""):
    """Each field that `want` names and `got` does not match."""
    for field, value in want.items():
        where = f"{path}{field}"
        if field == "charges":
            for i, charge in enumerate(value):
                yield from differences(charge, got["charges"][i], f"charges[{i}].")
        elif field in ("retry_after", "reset_after", "act_after", "expires_after"):
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
            answer = run_action(world, step, at + i * every, whole)
            allowed += answer.get("allowed", answer.get("granted", False))
        except Refused as refusal:
            answer = {"error": str(refusal)}
        if "error" in answer and "error" not in expect:
            yield f"error: want none, got {answer['error']}"
        else:
            yield from differences(expect, answer)
    if count is not None and allowed != count:
        yield f"allowed_count: want {count}, got {allowed}"


def run_action(world, step, now, whole):
    if "reserve" in step:
        return world.reserve(step["reserve"], now)
    if "settle" in step:
        return world.end(step["settle"]["reservation"], step["settle"]["actual"], now)
    if "cancel" in step:
        return world.end(step["cancel"]["reservation"], None, now)
    return world.ask(step["should_allow"], now, whole)


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
