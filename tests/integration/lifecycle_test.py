"""Start and stop: ports in use, settings that cannot work, the order of a drain, TLS and certificates that change."""

import os
import signal
import socket
import subprocess
import threading
import unittest

import support

LIMITS = "limits:\n  - {name: api, capacity: 1000000, refill: {tokens: 1, per: 1s}}\n"


class Start(support.TestCase):
    def test_a_second_server_on_the_same_port_fails_at_once(self):
        first = self.start(LIMITS)
        for taken in ("call_address", "ops_address", "admin_address"):
            second = self.make(LIMITS)
            address = getattr(first, taken)
            second.command = [address if part == getattr(second, taken) else part for part in second.command]
            second.launch()
            self.assertGreater(second.wait_exit(), 0)
            self.assertIn(address.rsplit(":", 1)[1], second.log())
            self.assertIn("in use", second.log().lower())
        self.assert_alive(first)

    def test_a_unix_socket_that_is_served_is_not_taken_over(self):
        path = os.path.join(self.directory, "calls.sock")
        first = self.start(LIMITS, listen=f"unix:{path}")
        second = self.fail_to_start(LIMITS, listen=f"unix:{path}")
        self.assertIn(path, second.log())
        self.assertEqual(first.cli("check", "api", "alice").returncode, 0)

    def test_a_socket_left_by_a_killed_server_is_no_obstacle(self):
        path = os.path.join(self.directory, "calls.sock")
        killed = self.make(LIMITS, listen=f"unix:{path}")
        killed.launch().wait_ready()
        killed.kill()
        self.assertTrue(os.path.exists(path))
        server = self.start(LIMITS, listen=f"unix:{path}")
        self.assertEqual(server.cli("check", "api", "alice").returncode, 0)

    def test_settings_that_cannot_work_are_told_before_anything_starts(self):
        missing, good = os.path.join(self.directory, "nowhere"), os.path.join(self.directory, "limits.yaml")
        support.write_file(good, LIMITS)
        for args, words in (
            (["--limits", missing], ["nowhere"]),
            (["--limits", good, "--tls-cert", missing, "--tls-key", missing], ["tls-cert", "nowhere"]),
            (["--limits", good, "--no-such-flag"], ["no-such-flag"]),
            (["--limits", good, "--log-format", "xml"], ["log-format", "xml"]),
            (["--limits", good, "--listen", "nonsense"], ["nonsense"]),
        ):
            with self.subTest(args=args):
                server = self.make(LIMITS)
                server.command = [support.EBBGATED, *args]
                server.launch()
                self.assertGreater(server.wait_exit(), 0)
                for word in words:
                    self.assertIn(word, server.log())

    def test_an_unreadable_certificate_is_told(self):
        bad = os.path.join(self.directory, "bad.pem")
        support.write_file(bad, "this is no certificate\n")
        server = self.fail_to_start(LIMITS, args=["--tls-cert", bad, "--tls-key", bad])
        self.assertIn("bad.pem", server.log())

    def test_check_config_and_version_start_nothing(self):
        server = self.make(LIMITS)
        good = subprocess.run([support.EBBGATED, "--limits", server.limits_path, "--check-config"], text=True,
                              env=support.environment(), capture_output=True, timeout=support.DEADLINE_S, check=False)
        self.assertEqual(good.returncode, 0, good.stderr)
        support.write_file(server.limits_path, LIMITS.replace("1000000", "0"))
        bad = subprocess.run([support.EBBGATED, "--limits", server.limits_path, "--check-config"], text=True,
                             env=support.environment(), capture_output=True, timeout=support.DEADLINE_S, check=False)
        self.assertGreater(bad.returncode, 0)
        self.assertIn("limits.yaml:2", bad.stdout + bad.stderr)
        version = subprocess.run([support.EBBGATED, "--version"], text=True, capture_output=True,
                                 env=support.environment(), timeout=support.DEADLINE_S, check=False)
        self.assertEqual(version.returncode, 0)
        self.assertRegex(version.stdout, r"\d+\.\d+\.\d+")

    def test_flags_beat_the_environment_and_the_environment_beats_the_file(self):
        config = os.path.join(self.directory, "ebbgated.yaml")
        support.write_file(config, "log_format: json\nlog_level: warning\ndrain_timeout: 7s\n")
        printed = subprocess.run(
            [support.EBBGATED, "--config", config, "--log-level", "error", "--print-config", "--limits", "x.yaml"],
            env=support.environment({"EBBGATE_LOG_FORMAT": "text", "EBBGATE_LOG_LEVEL": "debug"}), text=True,
            capture_output=True, timeout=support.DEADLINE_S, check=False)
        self.assertEqual(printed.returncode, 0, printed.stderr)
        settings = dict(line.split(": ", 1) for line in printed.stdout.splitlines()
                        if ": " in line and not line.startswith("#"))
        self.assertEqual(settings["log_level"].split()[0], "error")
        self.assertEqual(settings["log_format"].split()[0], "text")
        self.assertEqual(settings["drain_timeout"].split()[0], "7s")


class Drain(support.TestCase):
    def test_health_first_then_a_delay_then_the_end(self):
        # The delay is long enough to look around in, however slow the machine.
        server = self.start(LIMITS, args=["--drain-delay", "5s"])
        self.assertEqual(server.cli("health").returncode, 0)
        server.signal(signal.SIGTERM)
        support.wait_until(lambda: server.get("/readyz").status == 503, "/readyz says no")
        self.assertIn("drain", server.get("/readyz").body)
        self.assertNotEqual(server.cli("health").returncode, 0)
        # Told to go, it still serves those who have not heard yet.
        self.assertEqual(server.get("/healthz").status, 200)
        self.assertEqual(server.cli("check", "api", "alice").returncode, 0)
        self.assertTrue(server.alive())
        self.assertEqual(server.wait_exit(), 0)

    def test_no_call_fails_while_it_drains_slowly(self):
        server = self.start(LIMITS, args=["--drain-delay", "2s"])
        codes, stop = [], threading.Event()

        def ask_all_the_time():
            while not stop.is_set():
                codes.append(server.cli("check", "api", "alice").returncode)

        asking = threading.Thread(target=ask_all_the_time)
        asking.start()
        support.wait_until(lambda: len(codes) >= 3, "calls are being made")
        server.signal(signal.SIGTERM)
        support.wait_until(lambda: server.get("/readyz").status == 503, "/readyz says no")
        asked = len(codes)
        support.wait_until(lambda: len(codes) >= asked + 2, "calls are made during the drain")
        stop.set()
        asking.join()
        self.assertEqual(set(codes), {0})
        self.assertEqual(server.wait_exit(), 0)

    def test_interrupt_stops_it_too(self):
        server = self.start(LIMITS)
        server.signal(signal.SIGINT)
        self.assertEqual(server.wait_exit(), 0)

    def test_an_idle_connection_does_not_hold_up_the_end(self):
        server = self.start(LIMITS)
        host, port = server.call_address.split(":")
        with socket.create_connection((host, int(port)), timeout=support.DEADLINE_S):
            server.signal(signal.SIGTERM)
            self.assertEqual(server.wait_exit(), 0)


class Tls(support.TestCase):
    def openssl(self, *args):
        done = subprocess.run(["openssl", *args], capture_output=True, text=True, timeout=support.DEADLINE_S,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def path(self, name):
        return os.path.join(self.directory, name)

    def make_authority(self, name):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                     "-subj", f"/CN={name}", "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.pem"))

    def make_certificate(self, name, authority, serial):
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                     "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.csr"))
        support.write_file(self.path("san.cnf"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        self.openssl("x509", "-req", "-in", self.path(f"{name}.csr"), "-CA", self.path(f"{authority}.pem"),
                     "-CAkey", self.path(f"{authority}.key"), "-set_serial", str(serial), "-days", "2",
                     "-extfile", self.path("san.cnf"), "-out", self.path(f"{name}.pem"))

    def tls_server(self, *args):
        self.make_authority("authority")
        self.make_certificate("server", "authority", 1)
        return self.start(LIMITS, args=["--tls-cert", self.path("server.pem"), "--tls-key", self.path("server.key"),
                                        *args])

    def check(self, server, *args):
        return server.cli("check", "api", "alice", "--timeout", "5s", *args)

    def serial(self, server):
        """The serial number of the certificate that the server shows."""
        shown = subprocess.run(["openssl", "s_client", "-connect", server.call_address, "-alpn", "h2"], input=b"",
                               capture_output=True, timeout=support.DEADLINE_S, check=False)
        read = subprocess.run(["openssl", "x509", "-noout", "-serial"], input=shown.stdout, capture_output=True,
                              timeout=support.DEADLINE_S, check=False)
        return read.stdout.decode().strip().removeprefix("serial=")

    def test_tls(self):
        server = self.tls_server()
        authority = ("--tls-ca", self.path("authority.pem"))
        self.assertEqual(self.check(server, *authority).returncode, 0)
        # Plain text gets no answer, and neither does a caller who trusts another authority.
        self.assertEqual(self.check(server).returncode, 2)
        self.make_authority("other")
        self.assertEqual(self.check(server, "--tls-ca", self.path("other.pem")).returncode, 2)
        self.assert_alive(server)

    def test_mutual_tls(self):
        self.make_authority("callers")
        server = self.tls_server("--tls-client-ca", self.path("callers.pem"))
        self.make_certificate("caller", "callers", 2)
        self.make_certificate("stranger", "authority", 3)
        authority = ("--tls-ca", self.path("authority.pem"))

        def shown(name):
            return ("--tls-cert", self.path(f"{name}.pem"), "--tls-key", self.path(f"{name}.key"))

        self.assertEqual(self.check(server, *authority, *shown("caller")).returncode, 0)
        self.assertEqual(self.check(server, *authority).returncode, 2)
        self.assertEqual(self.check(server, *authority, *shown("stranger")).returncode, 2)
        self.assert_alive(server)

    def test_certificates_change_while_it_runs(self):
        server = self.tls_server()
        self.assertEqual(self.serial(server), "01")
        # One after the other: in between they do not match, and the old pair stays in use.
        self.make_certificate("next", "authority", 0x77)
        os.rename(self.path("next.pem"), self.path("server.pem"))
        os.rename(self.path("next.key"), self.path("server.key"))
        support.wait_until(lambda: self.serial(server) == "77", "the new certificate is shown")
        self.assertEqual(self.check(server, "--tls-ca", self.path("authority.pem")).returncode, 0)
        self.assert_alive(server)


if __name__ == "__main__":
    unittest.main(verbosity=2)
