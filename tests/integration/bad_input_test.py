"""Bad input gets a clear error, changes nothing, and leaves the process alive. Each case asks a live server."""

import json
import os
import random
import signal
import socket
import unittest

import support

LIMITS = """
limits:
  - name: api
    capacity: 10
    refill: {tokens: 1, per: 1h}
  - name: capped
    capacity: 10
    max_cost: 3
    refill: {tokens: 1, per: 1h}
"""

HOUR_LIMIT = "    refill: {tokens: 1, per: 1h}\n"
# Nine to the ninth nodes, if anchors were followed.
ANCHOR_BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefghi", "bcdefghij")
) + "limits: *j\n"


def one(charge):
    return {"charges": [charge]}


class BadCalls(support.TestCase):
    def setUp(self):
        super().setUp()
        self.server = self.start(LIMITS)

    def tearDown(self):
        # Nothing was charged, and it still decides.
        self.assert_alive(self.server)
        self.assertEqual(self.server.ask("api", "alice", cost=0).remaining, 10)
        self.assertEqual(self.server.ask("capped", "alice", cost=0).remaining, 10)

    def refuse(self, body, status, *words):
        reply = self.server.post(body)
        self.assertEqual(reply.status, status, reply.body)
        for word in words:
            self.assertIn(word, reply.body)

    def test_unknown_limit(self):
        self.refuse(one({"limit": "nobody", "key": "alice"}), 404, "UNKNOWN_LIMIT")
        known = self.server.ask("api", "alice", cost=0)
        self.assertEqual(known.remaining, 10)
        # All or nothing: a call that names one unknown limit charges none.
        self.refuse({"charges": [{"limit": "api", "key": "alice"}, {"limit": "nobody", "key": "alice"}]}, 404)

    def test_empty_limit_and_key(self):
        self.refuse(one({"limit": "", "key": "alice"}), 400, "charges[0].limit")
        self.refuse(one({"limit": "api", "key": ""}), 400, "charges[0].key")

    def test_over_long_key(self):
        self.refuse(one({"limit": "api", "key": "k" * 1025}), 400, "KEY_TOO_LONG")
        self.assertTrue(self.server.ask("api", "k" * 1024).allowed)

    def test_cost_0_takes_nothing(self):
        for _ in range(20):
            self.assertTrue(self.server.ask("api", "alice", cost=0).allowed)

    def test_costs_out_of_range(self):
        for cost in (-1, -2**63, 2**63 - 1, 9_223_372_036_855):
            self.refuse(one({"limit": "api", "key": "alice", "cost": str(cost)}), 400, "charges[0].cost")

    def test_cost_above_capacity_is_a_denial_for_ever(self):
        answer = self.server.ask("api", "alice", cost=11)
        self.assertEqual((answer.allowed, answer.reason, answer.retry_after_s), (False, "COST_EXCEEDS_CAPACITY", None))

    def test_cost_above_the_maximum(self):
        self.refuse(one({"limit": "capped", "key": "alice", "cost": 4}), 400, "COST_ABOVE_MAXIMUM")

    def test_charges_beside_the_bounds(self):
        self.refuse({"charges": []}, 400, "charges")
        self.refuse({"charges": [{"limit": "api", "key": "alice"}] * 33}, 400, "charges")
        self.refuse({**one({"limit": "api", "key": "alice"}), "request_id": "i" * 65}, 400, "request_id")

    def test_bodies_that_are_no_call(self):
        for body in (b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"charges": 1}',
                     b'{"charges":[{"limit":"api","key":1}]}',
                     b'{"charges":[{"limit":"api","key":"a","cost":1.5}]}', b'{"unheard_of":true}', b"[" * 100_000,
                     b'{"charges":[{"limit":"api","key":"\xc3\x28"}]}', b'{"charges":[{"limit":"\\ud800","key":"a"}]}'):
            with self.subTest(body=body[:40]):
                reply = self.server.post(body)
                self.assertEqual(reply.status, 400, reply.body)
                json.loads(reply.body)

    def test_other_http(self):
        self.assertEqual(self.server.get("/nowhere").status, 404)
        self.assertIn(self.server.get("/v1/should_allow").status, (404, 405))
        form = self.server.post(b"limit=api", content_type="application/x-www-form-urlencoded")
        self.assertEqual(form.status, 415, form.body)
        self.assertIn(self.server.post(b"x" * (1 << 20)).status, (400, 413))

    def test_the_command_line_tells_what_is_wrong(self):
        for args, word in (
            (("check", "api", "k" * 1025), "key"),
            (("check", "api", "alice", "--cost", "-1"), "cost"),
            (("check", "api", "alice", "--cost", "9223372036854775807"), "cost"),
            (("check", "api", "alice", "--cost", "many"), "cost"),
            (("check", "nobody", "alice"), "nobody"),
            (("check", "api"), "KEY"),
            (("no-such-command",), "subcommand"),
        ):
            with self.subTest(args=args):
                done = self.server.cli(*args)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(word.lower(), (done.stderr + done.stdout).lower())


class Garbage(support.TestCase):
    def send(self, address, data):
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=support.DEADLINE_S) as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            except (ConnectionError, OSError):
                pass  # hanging up on garbage is a fine answer

    def test_bytes_that_are_no_protocol(self):
        server = self.start(LIMITS)
        random_bytes = random.Random(20261101).randbytes
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        for address in (server.call_address, server.ops_address, server.admin_address):
            for data in (random_bytes(4096), b"GET / HTTP/1.1\r\n\r\n", preface + random_bytes(4096),
                         preface + b"\xff\xff\xff\x00\x00\x00\x00\x00\x00", b"\x00" * 70_000, b"\n" * 70_000):
                self.send(address, data)
                self.assertTrue(server.alive(), server.log())
        self.assert_alive(server)
        self.assertEqual(server.cli("check", "api", "alice").returncode, 0)

    def test_the_log_stays_one_line_an_event(self):
        server = self.start(LIMITS, args=["--log-format", "json", "--log-level", "debug"])
        nasty = "two\nlines\x1b[2J\"quoted\"\u2028"
        server.post(one({"limit": nasty, "key": nasty}))
        server.cli("reset", "api", "alice", "--reason", nasty)
        for line in server.log().splitlines():
            json.loads(line)
        self.assertNotIn("\x1b", server.log())


class BadFiles(support.TestCase):
    BAD = {
        "duplicate names": ("limits:\n  - name: a\n    capacity: 1\n" + HOUR_LIMIT) +
                           ("  - name: a\n    capacity: 2\n" + HOUR_LIMIT),
        "tabs": "limits:\n\t- name: a\n\t  capacity: 1\n",
        "an anchor bomb": ANCHOR_BOMB,
        "a refill of 0": "limits:\n  - {name: a, capacity: 1, refill: {tokens: 0, per: 1s}}\n",
        "a capacity of 0": "limits:\n  - {name: a, capacity: 0, refill: {tokens: 1, per: 1s}}\n",
        "per 0s": "limits:\n  - {name: a, capacity: 1, refill: {tokens: 1, per: 0s}}\n",
        "a zone that does not exist": "limits:\n  - {name: a, algorithm: fixed_window, count: 1, window: day, "
                                      "time_zone: Mars/Olympus}\n",
        "a name that is no UTF-8": b"limits:\n  - {name: \"a\xff\", capacity: 1, refill: {tokens: 1, per: 1s}}\n",
        "a negative capacity": "limits:\n  - {name: a, capacity: -1, refill: {tokens: 1, per: 1s}}\n",
        "a capacity beyond all": "limits:\n  - {name: a, capacity: 9223372036854775808, "
                                 "refill: {tokens: 1, per: 1s}}\n",
        "an unknown field": "limits:\n  - {name: a, capactiy: 1, refill: {tokens: 1, per: 1s}}\n",
        "an unknown algorithm": "limits:\n  - {name: a, algorithm: leaky, capacity: 1, "
                                "refill: {tokens: 1, per: 1s}}\n",
        "an empty file": "",
        "not YAML": "limits: [}",
        "deep nesting": "limits: " + "[" * 5000 + "\n",
    }

    def write(self, path, content):
        with open(path, "wb") as out:
            out.write(content if isinstance(content, bytes) else content.encode())

    def test_a_server_does_not_start_with_them(self):
        for name, content in self.BAD.items():
            with self.subTest(name):
                server = self.make(None)
                self.write(server.limits_path, content)
                server.launch()
                code = server.wait_exit()
                self.assertGreater(code, 0, f"code {code}: {server.log()}")
                self.assertIn("limits.yaml", server.log())

    def test_a_running_server_keeps_what_it_had(self):
        server = self.start(LIMITS)

        def failures():
            return server.metric("ebbgate_config_reloads_total", result="failure")

        for name, content in self.BAD.items():
            with self.subTest(name):
                before = failures()
                self.write(server.limits_path, content)
                server.signal(signal.SIGHUP)
                support.wait_until(lambda before=before: failures() > before, "the failure is counted")
                self.assert_alive(server)
                self.assertEqual(server.ask("api", "alice", cost=0).remaining, 10)
        self.assertEqual(server.metric("ebbgate_config_last_reload_successful"), 0)

    def test_lint_tells_file_and_line(self):
        path = os.path.join(self.directory, "limits.yaml")
        server = self.start(LIMITS)
        for name, content in self.BAD.items():
            with self.subTest(name):
                self.write(path, content)
                done = server.cli("lint", path)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertIn("limits.yaml", done.stdout + done.stderr)
        missing = server.cli("lint", os.path.join(self.directory, "missing.yaml"))
        self.assertEqual(missing.returncode, 2)
        self.assertIn("missing.yaml", missing.stdout + missing.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
