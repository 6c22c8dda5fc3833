"""The limiter that can be caught: reports of what was received, compared by the server and by a real Prometheus."""

import json
import os
import signal
import subprocess
import threading
import time
import unittest
import urllib.parse

import support

RULES = os.path.join(support.ROOT, "deploy", "prometheus")

# Short windows, so that a test need not wait for ten minutes. Capacity is no concern here.
LIMIT = "  - {{name: {name}, capacity: 1000000, refill: {{tokens: 1000000, per: 1s}}{more}}}\n"
DRIFT = ", drift: {ratio: 1.15, window: 4s, minimum: 20}"


def limits(*names):
    return "limits:\n" + "".join(LIMIT.format(name=name, more=DRIFT) for name in names)


class Prometheus:
    """Debian's, with the rules of deploy/, on a port and in a directory of its own."""

    def __init__(self, directory, target):
        self.address = f"127.0.0.1:{support.free_port()}"
        config = os.path.join(directory, "prometheus.yaml")
        support.write_file(config, json.dumps({
            "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
            "rule_files": [os.path.join(RULES, name) for name in ("recording-rules.yaml", "alerts.yaml")],
            "scrape_configs": [{"job_name": "ebbgate",
                                "static_configs": [{"targets": [target]}]}]}))
        self.log_path = os.path.join(directory, "prometheus.log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={config}", f"--web.listen-address={self.address}",
                 f"--storage.tsdb.path={os.path.join(directory, 'prometheus')}"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def wait_ready(self):
        def ready():
            if self.process.poll() is not None:
                with open(self.log_path, encoding="utf-8", errors="replace") as log:
                    raise AssertionError(f"prometheus ended with {self.process.returncode}:\n{log.read()}")
            try:
                return support.http("GET", f"http://{self.address}/-/ready", timeout_s=5).status == 200
            except OSError:
                return False

        support.wait_until(ready, "prometheus is ready")
        return self

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(timeout=support.DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def get(self, path, **query):
        reply = support.http("GET", f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}")
        if reply.status != 200:
            raise AssertionError(f"{path}: {reply.status} {reply.body}")
        return reply.json()["data"]

    def query(self, expression):
        """{limit: value}."""
        return {sample["metric"].get("limit"): float(sample["value"][1])
                for sample in self.get("query", query=expression)["result"]}

    def rule(self, name):
        return next(rule for group in self.get("rules")["groups"] for rule in group["rules"] if rule["name"] == name)


class Traffic:
    """Asks one limit after the other in a thread of its own, and reports for each so many hundredths of what was
    admitted."""

    def __init__(self, server, hundredths):
        self.server = server
        self.hundredths = hundredths
        self.admitted = dict.fromkeys(hundredths, 0)
        self.failure = None
        self._stop = threading.Event()
        self._start_time = str(time.time_ns() // 10**9)
        self.report()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def report(self):
        totals = [f"{limit}={self.admitted[limit] * share // 100}" for limit, share in self.hundredths.items()]
        done = self.server.cli("report", "billing", *totals, "--start-time", self._start_time)
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    def _run(self):
        try:
            while not self._stop.is_set():
                for limit in self.hundredths:
                    if not self.server.ask(limit, "alice", cost=100).allowed:
                        raise AssertionError("the limit is wide enough for all")
                    self.admitted[limit] += 100
                self.report()
                self._stop.wait(0.05)
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error


def states(server):
    return {each["limit"]: each["state"] for each in server.cli_json("drift")["limits"]}


def changes(server, limit):
    """(from, to) of each change of a limit's state that was logged."""
    events = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
    return [(event["from"], event["to"]) for event in events
            if event["event"] == "drift_state_changed" and event["limit"] == limit]


class Drift(support.TestCase):
    def start_json(self, text):
        return self.start(text, args=("--log-format", "json"))

    def test_30_percent_too_much_is_caught_by_prometheus_and_by_the_server(self):
        # Nothing of this is charged, and all of it arrives.
        shadowed = "  - {name: shadowed, capacity: 100, refill: {tokens: 1, per: 1h}, shadow: true" + DRIFT + "}\n"
        server = self.start_json(limits("over", "honest", "under") + shadowed)
        prometheus = Prometheus(self.directory, server.ops_address)
        self.addCleanup(prometheus.stop)
        prometheus.wait_ready()
        with Traffic(server, {"over": 130, "honest": 100, "under": 70, "shadowed": 100}) as traffic:
            support.wait_until(lambda: states(server)["over"] == "drifting" and states(server)["under"] == "drifting",
                               "the server says that two limits drift")
            self.assertEqual(server.cli("drift").returncode, 1)
            self.assertIn("drifting", server.cli("drift", "over").stdout)
            self.assertEqual(server.cli("drift", "honest").returncode, 0)

            more = prometheus.rule("EbbgateReceivedMoreThanAdmitted")
            less = prometheus.rule("EbbgateReceivedLessThanAdmitted")
            self.assertEqual((more["duration"], less["duration"]), (600, 600))
            support.wait_until(lambda: set(prometheus.query(more["query"])) == {"over"}, "its expression is true")
            support.wait_until(lambda: set(prometheus.query(less["query"])) == {"under"}, "that of the other one too")
            support.wait_until(
                lambda: any(alert["labels"]["limit"] == "over" and alert["state"] == "pending"
                            for alert in prometheus.rule("EbbgateReceivedMoreThanAdmitted")["alerts"]),
                "the alert has begun to wait for ten minutes")
            support.wait_until(
                lambda: {alert["labels"]["limit"] for alert in prometheus.rule("EbbgateDrifting")["alerts"]
                         if alert["state"] == "firing"} == {"over", "under"}, "the server's own state fires an alert")
            ratio = "limit:ebbgate_observed_per_admitted:ratio_rate5m"
            support.wait_until(lambda: abs(prometheus.query(ratio)["over"] - 1.3) < 0.05, "about 1.3")
            for limit in ("honest", "shadowed"):
                support.wait_until(lambda of=limit: abs(prometheus.query(ratio)[of] - 1) < 0.05, "about 1")
            self.assertEqual([rule["health"] for group in prometheus.get("rules")["groups"] for rule in group["rules"]
                              if rule["health"] != "ok"], [])

            # Told as information: the server takes calls as before.
            ready = server.get("/readyz")
            self.assertEqual(ready.status, 200)
            told = [line for line in ready.json()["information"] if "drifting" in line]
            self.assertEqual(len(told), 2, told)
            self.assertEqual(server.metric("ebbgate_drift_state", limit="over", state="drifting"), 1)
        self.assertEqual(changes(server, "over").count(("suspect", "drifting")), 1)
        for limit in ("honest", "shadowed"):
            self.assertNotIn("drifting", [to for _, to in changes(server, limit)])
        self.assertIn("suspect the limiter's window logic before assuming a traffic spike", server.log())

        traffic.report()
        total = traffic.admitted["over"]
        self.assertEqual(server.metric("ebbgate_admitted_cost_total", limit="over"), total)
        received = server.metric("ebbgate_observed_cost_total", limit="over", reporter="billing")
        self.assertEqual(received, total * 130 // 100)
        # Nobody reports any more: nothing to compare.
        support.wait_until(lambda: set(states(server).values()) == {"ok"}, "silence ends the comparison")
        self.assertEqual(server.cli("drift").returncode, 0)

    def test_reports_add_up_whatever_happens_to_them(self):
        server = self.start_json(limits("api", "other"))
        now = time.time_ns() // 10**9

        def report(*totals, start=now + 10, instance="pod-1", reporter="billing"):
            done = server.cli("report", reporter, *totals, "--start-time", str(start), "--instance", instance)
            self.assertEqual(done.returncode, 0, done.stderr)
            return server.metric("ebbgate_observed_cost_total", limit="api")

        self.assertEqual(report("api=0"), 0)
        self.assertEqual(report("api=10"), 10)
        self.assertEqual(report("api=10"), 10)  # repeated
        self.assertEqual(report("api=50", "other=5"), 50)  # one was lost
        self.assertEqual(report("api=30"), 50)  # overtaken
        self.assertEqual(report("api=7", start=now + 20), 57)  # restarted
        self.assertEqual(report("api=60"), 67)  # a late one of the earlier start
        self.assertEqual(report("api=100", instance="pod-2"), 167)
        self.assertEqual(report("api=1", reporter="search"), 168)
        self.assertEqual(server.metric("ebbgate_observed_cost_total", limit="api", reporter="billing"), 167)
        # It was counting before this server watched the limit: from now on.
        self.assertEqual(report("api=1000000", start=now - 3600, instance="old"), 168)
        self.assertEqual(report("api=1000003", start=now - 3600, instance="old"), 171)
        self.assertEqual(server.metric("ebbgate_observed_instances"), 4)
        self.assertEqual(server.metric("ebbgate_observed_reports_total", result="accepted"), 11)
        shown = server.cli_json("drift", "api")["limits"][0]
        self.assertEqual(shown["reporters"], {"billing": 170, "search": 1})
        self.assertEqual(shown["received_total"], 171)

    def test_bad_reports_are_refused_and_change_nothing(self):
        server = self.start_json(limits("api"))
        start = ("--start-time", str(time.time_ns() // 10**9))
        for args, field in (
            (("billing", "nobody=1", *start), "totals[0].limit"),
            (("billing", "api=1", "api=2", *start), "totals[1].limit"),
            (("billing", "api=-1", *start), "totals[0].total"),
            (("billing", f"api={2**53 + 1}", *start), "totals[0].total"),
            (("two words", "api=1", *start), "reporter"),
            (("r" * 65, "api=1", *start), "reporter"),
            (("billing", "api=1", "--instance", "i" * 129, *start), "instance"),
            (("billing", "api=1", "--start-time", "-5"), "start_time"),
            (("billing", "api=1", "--start-time", "9999-12-31T23:59:59Z"), "start_time"),
        ):
            with self.subTest(args=args):
                done = server.cli("report", *args)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(field, done.stderr)
        self.assertEqual(server.metric("ebbgate_observed_reports_total", result="rejected"), 9)
        self.assertEqual(server.metric("ebbgate_observed_reports_total", result="accepted"), 0)
        self.assertEqual(server.metric("ebbgate_observed_reporters"), 0)
        self.assertEqual(server.cli("drift", "nobody").returncode, 2)
        self.assert_alive(server)

    def test_a_reload_that_removes_a_limit_forgets_its_reports(self):
        server = self.start_json(limits("api", "other"))
        start = ("--start-time", str(time.time_ns() // 10**9 + 10))
        self.assertEqual(server.cli("report", "billing", "api=10", "other=1", *start).returncode, 0)
        for names, told in ((("other",), {"other": 1}), (("api", "other"), {"api": 0, "other": 1})):
            support.write_file(server.limits_path, limits(*names))
            self.assertEqual(server.cli("reload").returncode, 0)
            shown = {each["limit"]: each["received_total"] for each in server.cli_json("drift")["limits"]}
            self.assertEqual(shown, told)


if __name__ == "__main__":
    unittest.main(verbosity=2)
