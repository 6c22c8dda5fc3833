"""Work whose price is known afterwards, with a real server and the command line: reserved, waited for, settled,
cancelled, expired. Buckets refill by the hour, so that nothing depends on how fast this runs.
"""

import json
import time
import unittest

import support

LIMITS = """
limits:
  - name: reports
    capacity: 60
    refill: {tokens: 1, per: 1h}
  - name: all
    capacity: 100
    refill: {tokens: 1, per: 1h}
  - name: queue
    capacity: 1
    refill: {tokens: 1, per: 1h}
  - name: soon
    capacity: 1
    refill: {tokens: 1, per: 50ms}
  - name: lenient
    capacity: 10
    refill: {tokens: 1, per: 1h}
    on_hold_expiry: give_back
  - name: bounded
    capacity: 2
    refill: {tokens: 1, per: 1h}
    max_debt: 1
    max_holds: 2
"""


class Reservations(support.TestCase):
    def setUp(self):
        super().setUp()
        self.server = self.start(LIMITS)

    def reserve(self, *args):
        answer = self.server.cli_json("reserve", *args)
        self.assertTrue(answer["granted"], answer)
        return answer["reservation_id"]

    def remaining(self, limit, key):
        return self.server.ask(limit, key, cost=0).remaining

    def ended(self, limit, state):
        return self.server.metric("ebbgate_holds_ended_total", limit=limit, state=state)

    def test_the_expensive_report(self):
        report = self.reserve("reports", "team-7", "--cost", "50")
        self.assertEqual(self.remaining("reports", "team-7"), 10)
        self.assertEqual(self.server.metric("ebbgate_holds_open", limit="reports"), 1)
        first = self.server.cli_json("settle", report, "37")
        self.assertEqual((first["state"], first["repeated"]), ("SETTLED", False))
        self.assertEqual(first["charges"][0]["given_back"], 13)
        again = self.server.cli_json("settle", report, "37")
        self.assertEqual(again, dict(first, repeated=True))
        self.assertEqual(self.server.cli("cancel", report).returncode, 1)
        self.assertEqual(self.remaining("reports", "team-7"), 23)
        self.assertEqual(self.ended("reports", "settled"), 1)
        self.assertEqual(self.server.metric("ebbgate_holds_open", limit="reports"), 0)
        self.assertEqual(self.server.metric("ebbgate_given_back_cost_total", limit="reports"), 13)
        self.assertEqual(self.server.metric("ebbgate_admitted_cost_total", limit="reports"), 50)

    def test_cancelled_twice_gives_back_once(self):
        work = self.reserve("reports", "k", "--cost", "20", "--and", "all", "total", "--cost", "30")
        self.assertEqual((self.remaining("reports", "k"), self.remaining("all", "total")), (40, 70))
        for repeated in (False, True):
            done = self.server.cli_json("cancel", work)
            self.assertEqual((done["state"], done["repeated"]), ("CANCELLED", repeated))
            self.assertEqual([charge["given_back"] for charge in done["charges"]], [20, 30])
        self.assertEqual((self.remaining("reports", "k"), self.remaining("all", "total")), (60, 100))
        self.assertEqual(self.server.cli("settle", work, "1", "1").returncode, 1)

    def test_an_overrun_is_owed(self):
        work = self.reserve("reports", "k", "--cost", "60")
        done = self.server.cli_json("settle", work, "61")
        self.assertEqual((done["charges"][0]["overrun"], done["charges"][0]["uncovered"]), (1, 0))
        self.assertEqual(self.server.metric("ebbgate_overrun_cost_total", limit="reports"), 1)
        shown = self.server.cli_json("inspect", "reports", "k")
        self.assertGreater(shown["debt_microtokens"], 990_000)
        self.assertFalse(self.server.ask("reports", "k").allowed)

    def test_a_queue_is_served_in_turn(self):
        waits = []
        for _ in range(4):
            answer = self.server.cli_json("reserve", "queue", "k", "--max-wait", "3h")
            waits.append(support.seconds(answer["act_after"]))
        self.assertEqual(waits[0], 0)
        for place, wait in enumerate(waits):
            self.assertLessEqual(wait, place * 3600)
            self.assertGreaterEqual(wait, (place - 1) * 3600)
        refused = self.server.cli("reserve", "queue", "k", "--max-wait", "30m", "--json")
        self.assertEqual(refused.returncode, 1)
        self.assertEqual(json.loads(refused.stdout)["reason"], "QUOTA_EXCEEDED")
        self.assertFalse(self.server.ask("queue", "k").allowed, "no call overtakes into what is promised")
        shown = self.server.cli_json("inspect", "queue", "k")
        self.assertEqual(shown["open_holds"], 4)
        self.assertEqual(sum("act_after" in hold for hold in shown["holds"]), 3)

    def test_wait_returns_when_the_turn_has_come(self):
        for _ in range(3):
            before = time.monotonic()
            done = self.server.cli("reserve", "soon", "k", "--max-wait", "1h", "--wait", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreaterEqual(time.monotonic() - before, support.seconds(json.loads(done.stdout)["act_after"]))

    def test_a_hold_that_nobody_ends_expires(self):
        spent = self.reserve("reports", "k", "--cost", "4", "--hold-for", "10ms")
        back = self.reserve("lenient", "k", "--cost", "4", "--hold-for", "10ms")
        for limit in ("reports", "lenient"):
            support.wait_until(lambda limit=limit: self.ended(limit, "expired") == 1, "the hold has expired")
        for work, given_back in ((spent, 0), (back, 4)):
            done = self.server.cli("settle", work, "1", "--json")
            self.assertEqual(done.returncode, 1)
            answer = json.loads(done.stdout)
            self.assertEqual((answer["state"], answer["repeated"]), ("EXPIRED", True))
            self.assertEqual(answer["charges"][0]["given_back"], given_back)
        self.assertEqual(self.remaining("reports", "k"), 56)
        self.assertEqual(self.remaining("lenient", "k"), 10)

    def test_bounds_of_a_limit_have_reasons_of_their_own(self):
        self.reserve("bounded", "debt", "--cost", "2")
        self.reserve("bounded", "debt", "--max-wait", "5h")
        late = self.server.cli("reserve", "bounded", "debt", "--max-wait", "5h", "--json")
        self.assertEqual((late.returncode, json.loads(late.stdout)["reason"]), (1, "TOO_MUCH_DEBT"))
        for _ in range(2):
            self.reserve("bounded", "holds")
        third = self.server.cli("reserve", "bounded", "holds", "--max-wait", "5h", "--json")
        self.assertIn(json.loads(third.stdout)["reason"], ("TOO_MANY_HOLDS", "TOO_MUCH_DEBT"))
        self.assertEqual(self.server.metric("ebbgate_refusals_total", limit="bounded", reason="TOO_MUCH_DEBT"), 1)

    def test_no_more_holds_than_the_server_keeps_is_overload(self):
        server = self.start(LIMITS, args=["--max-holds", "2"])
        for key in ("a", "b"):
            self.assertEqual(server.cli("reserve", "reports", key).returncode, 0)
        full = server.cli("reserve", "reports", "c", "--timeout", "1s", "--json")
        self.assertEqual(full.returncode, 2)
        self.assertEqual(json.loads(full.stdout)["reason"], "HOLDS_FULL")
        self.assertGreaterEqual(server.metric("ebbgate_holds_refused_total"), 1)
        self.assertEqual(server.ask("reports", "c", cost=0).remaining, 60)

    def test_once_an_id_is_one_reservation(self):
        args = ("reports", "k", "--cost", "5", "--request-id", "job-4711")
        first = self.server.cli_json("reserve", *args)
        again = self.server.cli_json("reserve", *args)
        self.assertEqual((first["replayed"], again["replayed"]), (False, True))
        self.assertEqual(again["reservation_id"], first["reservation_id"])
        self.assertEqual(self.remaining("reports", "k"), 55)
        other = self.server.cli("reserve", "reports", "k", "--cost", "6", "--request-id", "job-4711", "--json")
        self.assertEqual(json.loads(other.stdout)["reason"], "REQUEST_ID_REUSED")
        self.assertEqual(self.server.metric("ebbgate_replayed_calls_total"), 1)
        self.assertGreater(self.server.metric("ebbgate_request_id_bytes"), 0)

    def test_holds_outlive_a_reload(self):
        work = self.reserve("reports", "k", "--cost", "50")
        support.write_file(self.server.limits_path, LIMITS.replace("capacity: 60", "capacity: 80"))
        self.assertEqual(self.server.cli("reload").returncode, 0)
        self.assertEqual(self.server.ask("reports", "k", cost=0).charges[0]["capacity"], "80")
        done = self.server.cli_json("settle", work, "10")
        self.assertEqual(done["charges"][0]["given_back"], 40)
        self.assertEqual(self.remaining("reports", "k"), 50)


if __name__ == "__main__":
    unittest.main(verbosity=2)
