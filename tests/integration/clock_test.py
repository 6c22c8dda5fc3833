"""A real server whose clock is moved: daylight saving both ways, and jumps of +1 h, -1 h and +10 years.

libfaketime stands between the server and its clocks. It reads what time it is from a file, so a test moves the clock
of a running server by writing that file. Two ways of using it:

* only the wall clock is moved and the monotonic clock is real: what NTP, an operator or a virtual machine do;
* both clocks run faster, together: five minutes pass in ten seconds, and no clock steps.

The envelope is judged from outside: admitted <= capacity + rate * elapsed, where elapsed is measured around all the
calls, by the monotonic clock that the server sees, and admitted is what callers saw and what the server counted.
"""

import calendar
import glob
import os
import time
import unittest

import support

NEW_YORK = "America/New_York"
LIBRARY = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)

CAPACITY = 5
PER_SECOND = 2
LIMITS = f"""
limits:
  - name: bucket
    capacity: {CAPACITY}
    refill: {{tokens: {PER_SECOND}, per: 1s}}
    time_zone: {NEW_YORK}
  - name: journal
    capacity: 1000
    refill: {{tokens: 1, per: 1h}}
    time_zone: {NEW_YORK}
  - name: daily
    algorithm: fixed_window
    count: 3
    window: day
    time_zone: {NEW_YORK}
"""


def utc(text):
    return calendar.timegm(time.strptime(text, "%Y-%m-%d %H:%M:%S"))


class ClockTest(support.TestCase):
    def start_at(self, text, speed=None, args=("--wall-step-hold", "300ms")):
        """A server whose wall clock starts at `text` (UTC); with `speed`, all its clocks run that many times faster."""
        self.clock_path = os.path.join(self.directory, "clock")
        self.set_clock(text, speed)
        env = {"LD_PRELOAD": LIBRARY, "FAKETIME_TIMESTAMP_FILE": self.clock_path, "TZ": "UTC"}
        if speed is None:
            env |= {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1"}
        else:
            # The file is read once: threads that read it at the same time get in each other's way inside libfaketime,
            # and where the monotonic clock is made up, too, a wrong reading would not be forgotten.
            env["FAKETIME_CACHE_DURATION"] = "1000000"
        return self.start(LIMITS, env=env, args=args)

    def set_clock(self, text, speed=None):
        # An offset from the real clock. Replaced as a whole: the server reads this file whenever it looks at its clock.
        offset = utc(text) - time.time()
        support.write_file(self.clock_path + ".new", f"{offset:+.3f}" + (f" x{speed}" if speed else "") + "\n")
        os.rename(self.clock_path + ".new", self.clock_path)

    def label(self, server, key):
        return server.cli_json("inspect", "bucket", key)["last_change_label"]

    def label_now(self, server):
        """Of a charge made now, to a bucket that stays known for hours."""

        def charged():
            try:
                return server.ask("journal", "label").allowed
            except OSError:
                return False

        support.wait_until(charged, "a charge gets through")
        return server.cli_json("inspect", "journal", "label")["last_change_label"]

    def steps_followed(self, server):
        return server.metric("ebbgate_wall_clock_steps_total")

    def await_step(self, server, before):
        support.wait_until(lambda: self.steps_followed(server) > before, "the step of the wall clock is followed")


class Envelope:
    """Asks as often as it can, and adds up what was admitted over what time."""

    def __init__(self, server, key, speed=1):
        self.server = server
        self.key = key
        self.speed = speed
        self.admitted = 0
        self.asked = 0
        self.started = time.monotonic()

    def ask(self):
        self.asked += 1
        try:
            allowed = self.server.ask("bucket", self.key).allowed
        except OSError:
            # Where time runs fast, so do the server's time-outs. If the call was charged, the server's counter knows.
            return False
        self.admitted += allowed
        return allowed

    def ask_for(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.ask()

    def ask_until_allowed(self):
        """Not locked out: at this rate a token comes within half a second."""
        support.wait_until(self.ask, "a token flows back", pause_s=0.05)

    def check(self, test):
        counted = self.server.metric("ebbgate_admitted_cost_total", limit="bucket")
        elapsed = (time.monotonic() - self.started) * self.speed
        test.assertGreaterEqual(self.admitted, CAPACITY)
        test.assertGreaterEqual(counted, self.admitted)
        test.assertLessEqual(counted, CAPACITY + PER_SECOND * elapsed,
                             f"{counted:.0f} of {self.asked} admitted in {elapsed:.3f} s")


@unittest.skipIf(LIBRARY is None, "libfaketime is not installed (Debian package faketime)")
class DaylightSaving(ClockTest):
    def cross(self, before, after, change_utc, zone_before, zone_after):
        """Live through a change of the clocks at real speed, the wall clock alone being set."""
        start = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(utc(change_utc) - 3))
        server = self.start_at(start)
        envelope = Envelope(server, "alice")
        envelope.ask()
        labels = [self.label(server, "alice")]
        self.assertEqual(labels[0], f"{before} {zone_before}")

        def crossed():
            envelope.ask()
            labels.append(self.label(server, "alice"))
            return labels[-1].startswith(after)

        support.wait_until(crossed, f"the label reads {after}")
        self.assertEqual(labels[-1], f"{after} {zone_after}")
        envelope.ask_for(1.0)
        envelope.check(self)
        # The change of the local time is no step of the clock.
        self.assertEqual(self.steps_followed(server), 0)

    def test_fall_back_2026_11_01(self):
        self.cross("2026-11-01 01:59", "2026-11-01 01:00", "2026-11-01 06:00:00", "EDT", "EST")

    def test_spring_forward_2026_03_08(self):
        self.cross("2026-03-08 01:59", "2026-03-08 03:00", "2026-03-08 07:00:00", "EST", "EDT")

    def test_the_minutes_around_the_fall_back_at_30_times_the_speed(self):
        # Where the limiter of the incident forgot half of its window, every minute.
        speed = 30
        server = self.start_at("2026-11-01 05:57:00", speed)
        envelope = Envelope(server, "alice", speed)
        self.assertRegex(self.label_now(server), r"^2026-11-01 01:5\d EDT$")
        envelope.ask_for(5 * 60 / speed)
        envelope.check(self)
        envelope.ask_until_allowed()
        self.assertRegex(self.label_now(server), r"^2026-11-01 01:0\d EST$")


@unittest.skipIf(LIBRARY is None, "libfaketime is not installed (Debian package faketime)")
class Jumps(ClockTest):
    def jump(self, to, zone):
        server = self.start_at("2026-06-01 12:00:00")
        envelope = Envelope(server, "alice")
        envelope.ask_for(0.5)
        before = self.steps_followed(server)
        self.set_clock(to)
        # In the moments before the step is believed, and after.
        envelope.ask_for(0.2)
        self.await_step(server, before)
        envelope.ask_for(1.0)
        envelope.check(self)
        envelope.ask_until_allowed()
        self.assertRegex(self.label(server, "alice"), rf"^{to[:4]}-\d\d-\d\d \d\d:\d\d {zone}$")
        self.assert_alive(server)

    def test_an_hour_forward(self):
        self.jump("2026-06-01 13:00:00", "EDT")

    def test_an_hour_back(self):
        self.jump("2026-06-01 11:00:00", "EDT")

    def test_ten_years_forward(self):
        self.jump("2036-01-01 12:00:00", "EST")

    def test_a_short_jump_is_not_followed(self):
        # The default: a step must hold for 10 s. A day ahead for a second neither reopens the quota nor shuts it.
        server = self.start_at("2026-06-01 12:00:00", args=())
        self.assertEqual([server.ask("daily", "bob").allowed for _ in range(4)], [True] * 3 + [False])
        self.set_clock("2026-06-02 12:00:00")
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            self.assertFalse(server.ask("daily", "bob").allowed)
        self.set_clock("2026-06-01 12:00:02")
        self.assertFalse(server.ask("daily", "bob").allowed)
        self.assertEqual(self.steps_followed(server), 0)


@unittest.skipIf(LIBRARY is None, "libfaketime is not installed (Debian package faketime)")
class CalendarDay(ClockTest):
    def spend_all(self, server, key):
        """What is left of the day's quota."""
        return sum(server.ask("daily", key).allowed for _ in range(6))

    def await_quota(self, server, key):
        support.wait_until(lambda: server.ask("daily", key, cost=0).remaining == 3, "the day has turned", pause_s=0.1)

    def test_the_quota_resets_at_local_midnight_and_once(self):
        # 2026-10-31 23:59:57 in New York; the day that follows has 25 hours.
        server = self.start_at("2026-11-01 03:59:57")
        self.assertEqual(self.spend_all(server, "carol"), 3)
        self.await_quota(server, "carol")
        self.assertEqual(self.spend_all(server, "carol"), 3)
        # Through both 01:59:58s of that day, and to its last second: the same window still.
        for moment in ("2026-11-01 05:59:58", "2026-11-01 06:59:58", "2026-11-02 04:00:00", "2026-11-02 04:59:57"):
            before = self.steps_followed(server)
            self.set_clock(moment)
            self.await_step(server, before)
            self.assertEqual(self.spend_all(server, "carol"), 0, moment)
        self.await_quota(server, "carol")
        self.assertEqual(self.spend_all(server, "carol"), 3)

    def test_a_step_back_over_midnight_does_not_reopen_the_day(self):
        server = self.start_at("2026-06-02 04:00:05")
        self.assertEqual(self.spend_all(server, "dave"), 3)
        before = self.steps_followed(server)
        self.set_clock("2026-06-02 03:59:00")
        self.await_step(server, before)
        self.assertEqual(self.spend_all(server, "dave"), 0)
        # Nor does the key stay shut: the real next midnight turns the window.
        before = self.steps_followed(server)
        self.set_clock("2026-06-03 03:59:58")
        self.await_step(server, before)
        self.await_quota(server, "dave")
        self.assertEqual(self.spend_all(server, "dave"), 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
