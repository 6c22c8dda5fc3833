"""Limits follow the content of their file, however it is changed; a bad file changes nothing and is told."""

import os
import signal
import unittest

import support


def limits(capacity, name="api"):
    return f"limits:\n  - name: {name}\n    capacity: {capacity}\n    refill: {{tokens: 1, per: 1h}}\n"


class Reload(support.TestCase):
    def capacity(self, server, limit="api"):
        return int(server.ask(limit, "somebody", cost=0).charges[0]["capacity"])

    def await_capacity(self, server, capacity):
        support.wait_until(lambda: self.capacity(server) == capacity, f"the capacity is {capacity}")

    def test_written_in_place(self):
        server = self.start(limits(10))
        support.write_file(server.limits_path, limits(20))
        self.await_capacity(server, 20)

    def test_renamed_over(self):
        server = self.start(limits(10))
        support.write_file(server.limits_path + ".new", limits(20))
        os.rename(server.limits_path + ".new", server.limits_path)
        self.await_capacity(server, 20)

    def test_deleted_and_created_again(self):
        server = self.start(limits(10))
        os.remove(server.limits_path)
        support.wait_until(lambda: server.metric("ebbgate_config_last_reload_successful") == 0, "the loss is told")
        self.assertEqual(self.capacity(server), 10)
        support.write_file(server.limits_path, limits(20))
        self.await_capacity(server, 20)
        self.assertEqual(server.metric("ebbgate_config_last_reload_successful"), 1)

    def test_symlink_swapped_as_in_a_mounted_configmap(self):
        server = self.make(None)
        mount = server.directory
        for version, capacity in (("..v1", 10), ("..v2", 20)):
            os.mkdir(os.path.join(mount, version))
            support.write_file(os.path.join(mount, version, "limits.yaml"), limits(capacity))
        os.symlink("..v1", os.path.join(mount, "..data"))
        os.symlink("..data/limits.yaml", server.limits_path)
        server.launch().wait_ready()
        self.addCleanup(self._finish, server)
        self.assertEqual(self.capacity(server), 10)
        os.symlink("..v2", os.path.join(mount, "..data_tmp"))
        os.rename(os.path.join(mount, "..data_tmp"), os.path.join(mount, "..data"))
        self.await_capacity(server, 20)

    def test_sighup_reloads(self):
        server = self.start(limits(10))
        support.write_file(server.limits_path, limits(20))
        server.signal(signal.SIGHUP)
        self.await_capacity(server, 20)
        self.assert_alive(server)

    def test_admin_reloads_at_once(self):
        server = self.start(limits(10))
        support.write_file(server.limits_path, limits(20))
        self.assertEqual(server.cli("reload").returncode, 0)
        self.assertEqual(self.capacity(server), 20)

    def test_a_bad_file_keeps_the_last_good_one(self):
        server = self.start(limits(10))
        self.assertEqual(server.metric("ebbgate_config_last_reload_successful"), 1)
        support.write_file(server.limits_path, limits(0))
        support.wait_until(lambda: server.metric("ebbgate_config_last_reload_successful") == 0, "the metric turns 0")
        self.assertEqual(self.capacity(server), 10)
        # The log names the file, the line and the reason.
        self.assertIn("limits.yaml:3", server.log())
        self.assertEqual(server.get("/readyz").status, 200)
        support.write_file(server.limits_path, limits(30))
        self.await_capacity(server, 30)
        self.assertEqual(server.metric("ebbgate_config_last_reload_successful"), 1)

    def test_no_sequence_of_reloads_adds_tokens(self):
        server = self.start(limits(10))
        self.assertTrue(server.ask("api", "alice", cost=9).allowed)
        for capacity in (1000, 5, 2000, 10):
            support.write_file(server.limits_path, limits(capacity))
            self.await_capacity(server, capacity)
            self.assertLessEqual(server.ask("api", "alice", cost=0).remaining, 1)
        self.assertFalse(server.ask("api", "alice", cost=2).allowed)

    def test_a_limit_comes_and_goes(self):
        server = self.start(limits(10))
        charge = {"charges": [{"limit": "later", "key": "k"}]}
        self.assertEqual(server.post(charge).status, 404)
        support.write_file(server.limits_path, limits(10) + limits(3, "later").removeprefix("limits:\n"))
        support.wait_until(lambda: server.post(charge).status == 200, "the new limit answers")
        support.write_file(server.limits_path, limits(10))
        support.wait_until(lambda: server.post(charge).status == 404, "the removed limit is unknown")

    def test_the_same_content_changes_nothing(self):
        server = self.start(limits(10))
        self.assertTrue(server.ask("api", "alice", cost=4).allowed)
        before = server.cli_json("inspect", "api", "alice")
        loads = server.metric("ebbgate_config_reloads_total")
        server.signal(signal.SIGHUP)
        support.wait_until(lambda: server.metric("ebbgate_config_reloads_total") > loads, "the reload is counted")
        after = server.cli_json("inspect", "api", "alice")
        self.assertEqual(after["remaining"], before["remaining"])
        # 1 token an hour: what flowed back between the two looks is far below a token.
        self.assertLess(int(after["level_microtokens"]) - int(before["level_microtokens"]), 100_000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
