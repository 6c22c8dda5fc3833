"""What deploy/ offers to Prometheus and Grafana is right: promtool accepts the rules and their cases, each alert has a
paragraph in the runbook and cases that fire and that stay quiet, and every metric that rules and dashboard name exists.
"""

import glob
import json
import os
import re
import subprocess
import unittest

import support

FOLDER = os.path.join(support.ROOT, "deploy", "prometheus")
DASHBOARD = os.path.join(support.ROOT, "deploy", "grafana", "ebbgate.json")
# Named here because they are used before they exist. Once they do, the test below wants them off this list.
PENDING = {"ebbgate_audit_violations_total", "ebbgate_audit_checks_total", "ebbgate_audit_keys"}
# Prometheus makes these itself.
OF_PROMETHEUS = {"up", "ALERTS"}
# The service of the example, and what PromQL has of its own.
OF_EXAMPLE = {"orders_requests_total"}

LIMITS = "limits:\n  - {name: api-user, capacity: 4, refill: {tokens: 2, per: 1s}}\n"


def read(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as source:
        return source.read()


def promtool(*args):
    return subprocess.run(["promtool", *args], cwd=FOLDER, capture_output=True, text=True, check=False,
                          timeout=support.DEADLINE_S)


def alerts():
    """{name: whole text of the rule}."""
    parts = re.split(r"^ +- alert: (\w+)$", read("alerts.yaml"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def expressions_of_rules():
    """Of a rule file of ours: `expr: ...` on one line, or `expr: |` and a block that is indented more."""
    for path in ("recording-rules.yaml", "alerts.yaml", "own-counter.yaml"):
        for indent, one_line, block in re.findall(r"^( +)expr: (?:\|\n((?:\1 +[^\n]*\n)+)|([^\n]*)\n)", read(path),
                                                  flags=re.MULTILINE):
            yield one_line or block


def expressions_of_dashboard(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "definition") and isinstance(value, str):
                yield value
            else:
                yield from expressions_of_dashboard(value)
    elif isinstance(node, list):
        for item in node:
            yield from expressions_of_dashboard(item)


def metrics_of(expression):
    """Names in an expression, without texts, labels, durations, and the names of functions."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", bare)
    bare = re.sub(r"\b(?:by|on|without|ignoring) *\([^)]*\)", "", bare)
    bare = re.sub(r"label_values\(([\w:]+), *\w+\)", r"\1", bare)
    words = set(re.findall(r"(?<![\w.$])[a-zA-Z_:][\w:]*(?!\w| *\()", bare))
    return words - {"and", "or", "unless", "by", "on"}


class Rules(unittest.TestCase):
    def test_promtool_accepts_the_rules(self):
        for path in ("recording-rules.yaml", "alerts.yaml", "own-counter.yaml"):
            done = promtool("check", "rules", path)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("SUCCESS", done.stdout)
        done = promtool("check", "config", "prometheus.yaml")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_promtool_finds_every_case_as_expected(self):
        cases = sorted(os.path.basename(path) for path in glob.glob(os.path.join(FOLDER, "*-test.yaml")))
        self.assertEqual(cases, ["alerts-test.yaml", "own-counter-test.yaml"])
        for case in cases:
            done = promtool("test", "rules", case)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_alert_has_a_case_that_fires_and_one_that_stays_quiet(self):
        names = re.findall(r"^  - name: '(.*)'$", read("alerts-test.yaml"), flags=re.MULTILINE)
        self.assertGreaterEqual(len(alerts()), 9)
        for alert in alerts():
            for kind in ("fires", "stays quiet"):
                cases = [name for name in names if name.startswith(f"{alert} {kind}: ")]
                self.assertTrue(cases, f"no case '{alert} {kind}: ...'")

    def test_each_alert_has_a_paragraph_in_the_runbook(self):
        runbook = read("RUNBOOK.md")
        headings = re.findall(r"^## (\w+)$", runbook, flags=re.MULTILINE)
        self.assertEqual(headings, list(alerts()))
        for alert, text in alerts().items():
            self.assertIn(f'runbook: "deploy/prometheus/RUNBOOK.md#{alert.lower()}"', text)
            self.assertRegex(text, r"severity: (page|ticket)\n")
            paragraph = runbook.split(f"## {alert}\n")[1].split("\n## ")[0]
            self.assertGreater(len(paragraph.split()), 40, alert)

    def test_the_drift_alert_says_what_to_suspect(self):
        text = alerts()["EbbgateReceivedMoreThanAdmitted"]
        self.assertIn("> 1.15\n", text)
        self.assertIn("for: 10m\n", text)
        self.assertIn("Suspect the limiter's window logic before assuming a traffic spike", text)

    def test_the_runbook_names_flags_and_commands_that_exist(self):
        helped = "".join(subprocess.run([program, "--help"], capture_output=True, text=True, check=False,
                                        env=support.environment(), timeout=support.DEADLINE_S).stdout
                         for program in (support.EBBGATED, support.EBBGATE))
        runbook = read("RUNBOOK.md")
        for flag in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", runbook)):
            self.assertRegex(helped, rf"(?<![\w-]){flag}(?![\w-])")
        for command in set(re.findall(r"`ebbgate (\w+)", runbook)):
            self.assertRegex(helped, rf"(?m)^  {command} ")


class Dashboard(unittest.TestCase):
    def setUp(self):
        with open(DASHBOARD, encoding="utf-8") as source:
            self.dashboard = json.load(source)

    def test_it_can_be_provisioned_and_found_again(self):
        self.assertEqual(self.dashboard["uid"], "ebbgate")
        self.assertNotIn("id", self.dashboard)
        variables = {each["name"]: each["type"] for each in self.dashboard["templating"]["list"]}
        self.assertEqual(variables["datasource"], "datasource")
        ids = [panel["id"] for panel in self.dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        for panel in self.dashboard["panels"]:
            if panel["type"] != "row":
                self.assertEqual(panel["datasource"]["uid"], "${datasource}", panel["title"])
                self.assertTrue(panel["targets"], panel["title"])

    def test_panels_do_not_overlap(self):
        taken = {}
        for panel in self.dashboard["panels"]:
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
            for x in range(at["x"], at["x"] + at["w"]):
                for y in range(at["y"], at["y"] + at["h"]):
                    self.assertNotIn((x, y), taken, f"{panel['title']} lies on {taken.get((x, y))}")
                    taken[x, y] = panel["title"]

    def test_promtool_can_read_its_expressions(self):
        """As rules, with Grafana's variables filled in."""
        filled = []
        for expression in expressions_of_dashboard(self.dashboard):
            if not expression.startswith("label_values("):
                for name, value in (("$__rate_interval", "1m"), ("$job", "ebbgate"), ("$instance", ".*"),
                                    ("$limit", ".*")):
                    expression = expression.replace(name, value)
                filled.append({"record": f"test:expression{len(filled)}", "expr": expression})
        self.assertGreater(len(filled), 30)
        rules = json.dumps({"groups": [{"name": "dashboard", "rules": filled}]})  # YAML too
        done = subprocess.run(["promtool", "check", "rules", "/dev/stdin"], input=rules, capture_output=True, text=True,
                              check=False, timeout=support.DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Live(support.TestCase):
    def test_every_metric_named_exists_in_a_live_scrape(self):
        server = self.start(LIMITS)
        reported = server.cli("report", "billing", "api-user=0", "--start-time", "1793512020")
        self.assertEqual(reported.returncode, 0, reported.stderr)
        live = set(support.parse_metrics(server.get("/metrics").body))
        recorded = set(re.findall(r"^ +- record: (\S+)$", read("recording-rules.yaml"), flags=re.MULTILINE))
        with open(DASHBOARD, encoding="utf-8") as source:
            expressions = [*expressions_of_rules(), *expressions_of_dashboard(json.load(source))]
        named = set().union(*map(metrics_of, expressions))
        self.assertGreater(len(named), 30, named)
        self.assertEqual(named - live - recorded - PENDING - OF_PROMETHEUS - OF_EXAMPLE, set())
        self.assertEqual(PENDING & live, set(), "these exist now: take them off the list")
        self.assertEqual(PENDING - named, set(), "nothing names these: take them off the list")

    def test_the_measure_of_names_works(self):
        self.assertEqual(metrics_of('sum by (limit, x) (rate(a_total{b="c_total"}[5m])) / on (f) g:h:rate5m > 1.5'),
                         {"a_total", "g:h:rate5m"})
        self.assertEqual(metrics_of('label_values(ebbgate_build_info{job="$job"}, instance)'), {"ebbgate_build_info"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
