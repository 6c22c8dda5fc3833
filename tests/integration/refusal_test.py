"""What a refusal is, and what it is not: it costs nothing, and being overloaded is something else."""

import unittest

import support

# One of each algorithm, with ten to spend and hardly any refill.
REFILL = "refill: {tokens: 1, per: 1h}"
LIMITS = f"""
limits:
  - {{name: token_bucket, capacity: 10, {REFILL}}}
  - {{name: gcra, algorithm: gcra, capacity: 10, {REFILL}}}
  - {{name: fixed_window, algorithm: fixed_window, count: 10, window: year}}
  - {{name: sliding_window, algorithm: sliding_window, count: 10, window: 1000h}}
  - {{name: exact_window, algorithm: exact_window, count: 10, window: 1000h}}
"""
ALGORITHMS = ("token_bucket", "gcra", "fixed_window", "sliding_window", "exact_window")


class FreeRefusal(support.TestCase):
    def test_refusals_change_nothing_that_a_later_call_sees(self):
        server = self.start(LIMITS)
        for limit in ALGORITHMS:
            with self.subTest(limit):
                self.assertTrue(server.ask(limit, "alice", cost=8).allowed)
                waits = []
                for _ in range(100):
                    answer = server.ask(limit, "alice", cost=3)
                    self.assertEqual((answer.allowed, answer.reason), (False, "QUOTA_EXCEEDED"))
                    waits.append(answer.retry_after_s)
                # The wait only ever shrinks, by the time that passes.
                self.assertEqual(waits, sorted(waits, reverse=True))
                self.assertFalse(server.ask(limit, "alice", cost=11).allowed)
                self.assertTrue(server.ask(limit, "alice", cost=2).allowed)


class OverloadIsNotDenial(support.TestCase):
    def test_a_full_store_is_an_error_and_no_decision(self):
        # Memory for a few hundred keys, none of which can be forgotten: each has spent something.
        server = self.start(LIMITS, args=["--max-keys", "256"])
        statuses = []
        for number in range(400):
            reply = server.post({"charges": [{"limit": "token_bucket", "key": f"key{number}", "cost": 1}]})
            statuses.append(reply.status)
            self.assertIn(reply.status, (200, 503), reply.body)
            if reply.status == 503:
                self.assertIn("STORE_FULL", reply.body)
        refused = statuses.count(503)
        self.assertGreater(refused, 0)
        self.assertEqual(server.metric("ebbgate_decisions_total", limit="token_bucket", outcome="failed"), refused)
        self.assertEqual(server.metric("ebbgate_decisions_total", limit="token_bucket", outcome="denied"), 0)
        # The key that was there first is still known, still decided, and its denial is still a denial.
        self.assertFalse(server.ask("token_bucket", "key0", cost=10).allowed)
        self.assertEqual(server.metric("ebbgate_decisions_total", limit="token_bucket", outcome="denied"), 1)

    def test_the_command_line_tells_them_apart(self):
        server = self.start(LIMITS, args=["--max-keys", "256"])
        for number in range(400):
            server.post({"charges": [{"limit": "token_bucket", "key": f"key{number}", "cost": 10}]})
        self.assertEqual(server.cli("check", "token_bucket", "key0").returncode, 1)
        newcomers = [server.cli("check", "token_bucket", f"newcomer{number}").returncode for number in range(3)]
        self.assertEqual(newcomers, [2, 2, 2])

    def test_with_the_other_policy_newcomers_pass_and_are_counted(self):
        server = self.start(LIMITS, args=["--max-keys", "256", "--when-full", "allow"])
        for number in range(400):
            self.assertTrue(server.ask("token_bucket", f"key{number}", cost=10).allowed)
        self.assertGreater(server.metric("ebbgate_store_full_total", policy="allow"), 0)
        self.assertFalse(server.ask("token_bucket", "key0").allowed)


if __name__ == "__main__":
    unittest.main(verbosity=2)
