"""The first minutes of a newcomer: the limits of deploy/examples, the command line, the JSON twin, the counters."""

import json
import os
import socket
import subprocess
import unittest

import support

# Four tokens, two a second, as in deploy/examples/limits.yaml.
LIMITS = """
limits:
  - name: api-user
    capacity: 4
    refill: {tokens: 2, per: 1s}
  - name: slow
    capacity: 2
    refill: {tokens: 1, per: 1h}
  - name: tenant
    capacity: 100
    refill: {tokens: 1, per: 1h}
  - name: watched
    capacity: 1
    refill: {tokens: 1, per: 1h}
    shadow: true
"""


class QuickStart(support.TestCase):
    def test_the_example_limits_start_a_server(self):
        with open(os.path.join(support.ROOT, "deploy", "examples", "limits.yaml"), encoding="utf-8") as example:
            server = self.start(example.read())
        first = server.cli("check", "api-user", "alice")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("allowed", first.stdout.lower())

    def test_five_checks_at_once_give_four_and_an_honest_wait(self):
        server = self.start(LIMITS)
        body = json.dumps({"charges": [{"limit": "api-user", "key": "alice"}]}).encode()
        answers = self.at_once(server, body, 5)
        self.assertEqual([answer.allowed for answer in answers], [True] * 4 + [False])
        denied = answers[-1]
        self.assertEqual(denied.status, 429)
        self.assertEqual(denied.reason, "QUOTA_EXCEEDED")
        # At 2/s a whole token takes 500 ms; a little has already flowed back since the first.
        self.assertGreater(denied.retry_after_s, 0)
        self.assertLessEqual(denied.retry_after_s, 0.5)

    def at_once(self, server, body, count):
        """Sends `count` requests in one write, over one connection, so that hardly any time passes between them."""
        host, port = server.ops_address.split(":")
        request = (f"POST /v1/should_allow HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                   f"Content-Length: {len(body)}\r\n\r\n").encode() + body
        with socket.create_connection((host, int(port)), timeout=support.DEADLINE_S) as connection:
            connection.sendall(request * count)
            reader = connection.makefile("rb")
            return [self.read_answer(reader) for _ in range(count)]

    def read_answer(self, reader):
        status = int(reader.readline().split()[1])
        length = 0
        for line in iter(reader.readline, b"\r\n"):
            self.assertTrue(line, "the connection was closed early")
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return support.Answer(status, json.loads(reader.read(length)))

    def test_the_command_line_tells_by_its_exit_code(self):
        server = self.start(LIMITS)
        self.assertEqual([server.cli("check", "slow", "bob").returncode for _ in range(3)], [0, 0, 1])
        self.assertEqual(server.cli("check", "no-such-limit", "bob").returncode, 2)
        nobody = server.cli("check", "slow", "bob", "--timeout", "2s",
                            env={"EBBGATE_SERVER": f"127.0.0.1:{support.free_port()}"})
        self.assertEqual(nobody.returncode, 2)
        self.assertTrue(nobody.stderr.strip(), "an error must be told")

    def test_several_charges_are_taken_together_or_not_at_all(self):
        server = self.start(LIMITS)
        both = ("check", "slow", "carol", "--cost", "1", "--and", "tenant", "acme", "--cost", "10")
        self.assertEqual([server.cli(*both).returncode for _ in range(3)], [0, 0, 1])
        # The third took nothing from the tenant, although it would have fitted there.
        self.assertEqual(server.ask("tenant", "acme", cost=0).remaining, 80)

    def test_a_cost_above_capacity_never_fits_and_no_wait_is_promised(self):
        server = self.start(LIMITS)
        answer = server.ask("slow", "dave", cost=3)
        self.assertFalse(answer.allowed)
        self.assertEqual(answer.reason, "COST_EXCEEDS_CAPACITY")
        self.assertIsNone(answer.retry_after_s)
        self.assertEqual(server.ask("slow", "dave", cost=2).allowed, True)

    def test_shadow_counts_and_never_denies(self):
        server = self.start(LIMITS)
        answers = [server.ask("watched", "erin") for _ in range(3)]
        self.assertTrue(all(answer.allowed for answer in answers))
        self.assertEqual(answers[2].reason, "SHADOWED")

    def test_a_unix_socket_serves_and_is_removed(self):
        path = os.path.join(self.directory, "calls.sock")
        server = self.start(LIMITS, listen=f"unix:{path}")
        self.assertEqual(server.cli("check", "slow", "frank").returncode, 0)
        self.assertEqual(server.cli("health").returncode, 0)
        # TestCase checks, after the stop, that the socket is gone.

    def test_admin_inspects_resets_and_lists(self):
        server = self.start(LIMITS)
        for _ in range(2):
            self.assertTrue(server.ask("slow", "grace").allowed)
        self.assertFalse(server.ask("slow", "grace").allowed)
        inspected = server.cli_json("inspect", "slow", "grace")
        self.assertEqual(int(inspected.get("remaining", 0)), 0)
        self.assertTrue(inspected["known"])
        self.assertEqual(server.cli("reset", "slow", "grace").returncode, 0)
        self.assertEqual(server.ask("slow", "grace", cost=0).remaining, 2)
        listed = server.cli("limits")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        for name in ("api-user", "slow", "tenant", "watched"):
            self.assertIn(name, listed.stdout)
        self.assertIn("limits.yaml", listed.stdout)


class Counted(support.TestCase):
    def test_requests_are_allowed_plus_denied_plus_failed(self):
        server = self.start(LIMITS)
        outcomes = [server.ask("slow", f"key{n % 5}").allowed for n in range(25)]
        self.assertEqual(sum(outcomes), 10)
        # max_cost is absent, so the only failures a known limit can have here are malformed costs.
        failures = [server.post({"charges": [{"limit": "slow", "key": "x", "cost": -1}]}).status for _ in range(3)]
        self.assertEqual(failures, [400] * 3)
        allowed = server.metric("ebbgate_decisions_total", limit="slow", outcome="allowed")
        denied = server.metric("ebbgate_decisions_total", limit="slow", outcome="denied")
        failed = server.metric("ebbgate_decisions_total", limit="slow", outcome="failed")
        self.assertEqual((allowed, denied, failed), (10, 15, 3))
        self.assertEqual(server.metric("ebbgate_admitted_cost_total", limit="slow"), 10)
        # Other limits were not touched, and their series exist at 0.
        self.assertEqual(server.metric("ebbgate_decisions_total", limit="tenant"), 0)

    def test_weighted_costs_add_up_in_the_admitted_cost(self):
        server = self.start(LIMITS)
        costs = [7, 30, 50, 40, 13, 1]
        admitted = sum(cost for cost in costs if server.ask("tenant", "acme", cost=cost).allowed)
        self.assertEqual(admitted, 100)
        self.assertEqual(server.metric("ebbgate_admitted_cost_total", limit="tenant"), admitted)

    def test_promtool_accepts_the_metrics(self):
        server = self.start(LIMITS)
        server.ask("slow", "heidi")
        scrape = server.get("/metrics")
        self.assertEqual(scrape.status, 200)
        checked = subprocess.run(["promtool", "check", "metrics"], input=scrape.body, text=True, capture_output=True,
                                 timeout=support.DEADLINE_S, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertEqual((checked.stdout + checked.stderr).strip(), "")

    def test_a_key_is_never_a_label(self):
        server = self.start(LIMITS)
        server.ask("slow", "a-secret-key")
        server.post({"charges": [{"limit": "made-up-limit", "key": "k"}]})
        body = server.get("/metrics").body
        self.assertNotIn("a-secret-key", body)
        self.assertNotIn("made-up-limit", body)


if __name__ == "__main__":
    unittest.main(verbosity=2)
