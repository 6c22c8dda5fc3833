"""Limits as arithmetic says they are: the buckets of reference.py, in exact rationals. Standard library only."""

import datetime
import re
import zoneinfo
from fractions import Fraction
from math import floor

NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
SECOND = NS["s"]
MICRO = 10**6  # microtokens in a token: the grain in which a level is kept across a change of limits
MAX_COST = (2**63 - 1) // MICRO
DEDUPE_NS = 60 * SECOND
DEFAULT_MAX_DEBT_CAPACITIES = 1000
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
    rule["pace"] = entry.get("pace", rule.get("pace", False))
    return rule


class Limit:
    def __init__(self, entry):
        self.name = entry["name"]
        self.rule = rules(entry)
        self.overrides = [(o["key"], rules(o, self.rule)) for o in entry.get("overrides", [])]
        self.shadow = entry.get("shadow", False)
        self.default_cost = entry.get("default_cost", 1)
        self.max_cost = entry.get("max_cost")
        self.gives_back = entry.get("on_hold_expiry", "spend") == "give_back"
        self.max_debt = entry.get("max_debt")
        self.max_holds = entry.get("max_holds", 1000)

    def debt_of(self, rule):
        return DEFAULT_MAX_DEBT_CAPACITIES * rule["capacity"] if self.max_debt is None else self.max_debt

    def rule_of(self, key):
        for pattern, rule in self.overrides:
            if "*" not in pattern and pattern == key:
                return rule
        for pattern, rule in self.overrides:
            if "*" in pattern and re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), key, re.DOTALL):
                return rule
        return self.rule


class Take:
    """An admission: at a time, perhaps one to come, of so many tokens. A hold's may become less while it is open."""

    def __init__(self, at, cost, open_until=None):
        self.at, self.cost, self.open_until = at, cost, open_until
        self.overrun = False


class Change:
    """New rules for a bucket that goes on with what it had."""

    def __init__(self, at, rule):
        self.at, self.rule = at, rule


def changed_level(level, new):
    """What was there stays so up to the new capacity, to the grain of the new rate; nothing is added."""
    if level >= new["capacity"]:
        return Fraction(new["capacity"])
    fraction = level * MICRO % 1
    kept = Fraction(floor(fraction * new["per"]), new["per"]) if is_bucket(new) else 0
    return Fraction(floor(level * MICRO) + kept, MICRO)


def is_bucket(rule):
    return rule["algorithm"] in ("token_bucket", "gcra")


class Bucket:
    """What one key was admitted and has promised, and how much is free at a time. `last`: no reading before it counts.

    There is no level that is carried along: what is free is found by going through all that was taken since the
    beginning, with the amounts as they are known now. A hold that was settled for less thus counts as if less had been
    taken when it was.
    """

    def __init__(self, rule, start, now):
        self.rule, self.start, self.last = rule, start, now
        self.base = (now, Fraction(rule["capacity"]), rule)  # what lies before it cannot change any more
        self.takes = []  # and changes, by time, then by arrival

    def add(self, take):
        self.takes.append(take)
        self.takes.sort(key=lambda each: each.at)
        return take

    def fold(self, now):
        """Forgets what is settled for good."""
        while self.takes and self.takes[0].at <= now and not (
                isinstance(self.takes[0], Take) and self.takes[0].open_until is not None):
            if not is_bucket(self.rule):
                return
            first = self.takes.pop(0)
            self.base = self.after(self.base, first)

    @staticmethod
    def after(base, event):
        at, level, rule = base
        moment = max(at, event.at)
        level = min(Fraction(rule["capacity"]), level + rule["rate"] * (moment - at))
        if isinstance(event, Change):
            return moment, changed_level(level, event.rule), event.rule
        return moment, level - event.cost, rule

    def free(self, now, takes=None):
        """Tokens that are there at a time, when of all `takes` those up to then have been."""
        now = max(now, self.last)
        takes = [take for take in (self.takes if takes is None else takes) if take.at <= now]
        rule = self.rule
        if is_bucket(rule):
            base = self.base
            for take in takes:
                base = self.after(base, take)
            at, level, rule = base
            return min(Fraction(rule["capacity"]), level + rule["rate"] * (now - at))
        if rule["algorithm"] == "fixed_window":
            begin = window_of(rule, self.start + now)[0]
            return rule["capacity"] - sum(take.cost for take in takes if self.start + take.at >= begin)
        size = rule["window"]
        if rule["algorithm"] == "exact_window":
            return rule["capacity"] - sum(take.cost for take in takes if now - size < take.at)
        number = (self.start + now) // size
        counts = {n: sum(take.cost for take in takes if (self.start + take.at) // size == n)
                  for n in (number, number - 1)}
        elapsed = (self.start + now) % size
        return rule["capacity"] - counts[number] - counts[number - 1] * (1 - Fraction(elapsed, size))

    def need(self, cost):
        """What must be there for a cost to be taken."""
        return self.rule["capacity"] if self.rule.get("pace") else cost

    def fits(self, now, cost):
        """Whether a cost may be taken at a time and every act promised for later still finds what it would have."""
        now = max(now, self.last)
        if self.free(now) < self.need(cost):
            return False
        one_more = sorted([*self.takes, Take(now, cost)], key=lambda each: each.at)
        for act in self.takes:
            if act.at <= now or act.cost == 0:
                continue
            before = lambda takes: takes[:takes.index(act)]
            found, could = self.free(act.at, before(one_more)), self.free(act.at, before(self.takes))
            if found < self.need(act.cost) and found < could:
                return False
        return True

    def wait(self, now, cost, takes=None):
        """The least number of nanoseconds after which `cost` is there, promises to come aside."""
        now = max(now, self.last)
        need = self.need(cost)
        if self.free(now, takes) >= need:
            return 0
        if self.rule["algorithm"] == "fixed_window":
            at = now
            while self.free(at, takes) < need:
                at = window_of(self.rule, self.start + at)[1] - self.start
            return at - now
        high = 1
        while self.free(now + high, takes) < need:
            high *= 2
        return first_ns(lambda n: self.free(now + n, takes) >= need, 0, high)

    def earliest(self, now, cost):
        """The first time, not before `now`, at which the cost may be taken."""
        now = max(now, self.last)
        begins = [now, *sorted({take.at for take in self.takes if take.at > now})]
        for begin, end in zip(begins, [*begins[1:], None]):
            at = begin + self.wait(begin, cost, [take for take in self.takes if take.at <= begin])
            if end is not None and at >= end:
                continue
            if self.fits(at, cost):
                return at
            # Between two acts a later time is no better. Where it were, this would not be the first.
            assert end is None or not self.fits(end - 1, cost)
        raise AssertionError("behind all promises everything fits that ever can")

    def remaining(self, now):
        low, high = 0, max(0, floor(self.free(now))) + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(now, middle) else (low, middle)
        return low

    def reset(self, now):
        now = max(now, self.last)
        over = max([now, *(take.at for take in self.takes if isinstance(take, Take) and take.cost > 0)])
        if self.rule["algorithm"] == "fixed_window":
            return window_of(self.rule, self.start + over)[1] - self.start - now
        return over + self.wait(over, self.rule["capacity"]) - now

    def take(self, now, cost):
        self.last = max(now, self.last)
        take = self.add(Take(self.last, cost))
        self.fold(self.last)
        return take

    def owed(self, now):
        """What the acts to come take beyond what is there now; negative while there is more."""
        now = max(now, self.last)
        return sum(take.cost for take in self.takes if take.at > now) - self.free(now)

    def change(self, rule, now):
        """New rules: what was free stays so up to the new capacity, to the grain of the new rate; nothing is added."""
        now = max(now, self.last)
        if rule == self.rule:
            return
        if is_bucket(rule) and is_bucket(self.rule):
            self.rule, self.last = rule, now
            self.add(Change(now, rule))
            return self.fold(now)
        free, old = self.free(now), self.rule
        remembers = rule["algorithm"] in ("sliding_window", "exact_window")
        same_window = rule["algorithm"] == old["algorithm"] and rule.get("window") == old.get("window")
        self.rule, self.last = rule, now
        if remembers and same_window:
            surplus = floor((self.free(now) - free) * MICRO)
            if surplus > 0:
                self.add(Take(now, Fraction(surplus, MICRO)))
            return
        free = changed_level(free, rule)
        self.takes = [take for take in self.takes if take.at > now]
        self.base = (now, free, rule)
        if not is_bucket(rule):
            self.add(Take(now, rule["capacity"] - free))
