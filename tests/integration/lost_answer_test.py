"""**Once**: the connection dies after the server has decided and before its answer has arrived. Who asks again with the
same id is charged once.

A proxy between the two reads the frames of HTTP/2 on their way back. What keeps a connection going (settings, pings,
windows) passes; the first answer is swallowed, which proves that the server has decided, and both sides are cut off.
"""

import json
import socket
import threading
import unittest

import support

LIMITS = """
limits:
  - name: reports
    capacity: 60
    refill: {tokens: 1, per: 1h}
"""

HEADERS = 1  # the type of the frame that an answer begins with


class Proxy:
    """Between a caller and a server, on a port of its own. Swallows the answer on each of the first `cuts` connections
    that come to one."""

    def __init__(self, server_address, cuts):
        host, port = server_address.rsplit(":", 1)
        self.target = (host, int(port))
        self.cuts = cuts
        self.swallowed = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.sockets = [self.listener]
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def accept(self):
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return  # closed
            server = socket.create_connection(self.target)
            self.sockets += [caller, server]
            for run in (self.forward, self.answer):
                thread = threading.Thread(target=run, args=(caller, server))
                self.threads.append(thread)
                thread.start()

    @staticmethod
    def end(*sockets):
        for each in sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other side was faster

    def forward(self, caller, server):
        try:
            while chunk := caller.recv(65536):
                server.sendall(chunk)
        except OSError:
            pass
        self.end(caller, server)

    @staticmethod
    def frame(server):
        """The next whole frame, and its type; nothing at the end."""
        def exactly(size):
            data = b""
            while len(data) < size:
                chunk = server.recv(size - len(data))
                if not chunk:
                    raise EOFError
                data += chunk
            return data

        head = exactly(9)
        return head + exactly(int.from_bytes(head[:3], "big")), head[3]

    def answer(self, caller, server):
        try:
            while True:
                data, kind = self.frame(server)
                if kind == HEADERS and self.swallowed < self.cuts:
                    self.swallowed += 1
                    break
                caller.sendall(data)
        except (OSError, EOFError):
            pass
        self.end(caller, server)

    def close(self):
        # A socket that another thread waits on is shut down first: closing alone does not wake it.
        self.end(*self.sockets)
        for each in self.sockets:
            each.close()
        for thread in list(self.threads):
            thread.join()


class OnceWhenTheAnswerIsLost(support.TestCase):
    def setUp(self):
        super().setUp()
        self.server = self.start(LIMITS)

    def through(self, cuts, *args):
        """Runs the command line through a proxy; returns what it exited with, what it printed, and the proxy."""
        proxy = Proxy(self.server.call_address, cuts)
        try:
            done = self.server.cli(*args, "--json", env={"EBBGATE_SERVER": proxy.address})
        finally:
            proxy.close()
        self.assertEqual(proxy.swallowed, cuts, "each answer that was to be lost was lost")
        return done.returncode, json.loads(done.stdout)

    def remaining(self):
        return self.server.ask("reports", "k", cost=0).remaining

    def test_a_reservation_is_made_once(self):
        code, answer = self.through(1, "reserve", "reports", "k", "--cost", "50")
        self.assertEqual(code, 0, answer)
        self.assertTrue(answer["replayed"])
        self.assertEqual(self.remaining(), 10)
        self.assertEqual(self.server.metric("ebbgate_admitted_cost_total", limit="reports"), 50)
        self.assertEqual(self.server.metric("ebbgate_decisions_total", limit="reports", outcome="allowed"), 1)
        self.assertEqual(self.server.metric("ebbgate_holds_open", limit="reports"), 1)
        self.assertEqual(self.server.metric("ebbgate_replayed_calls_total"), 1)
        # It is the one that the server holds.
        self.assertEqual(self.server.cli("settle", answer["reservation_id"], "37").returncode, 0)
        self.assertEqual(self.remaining(), 23)

    def test_again_and_again(self):
        code, answer = self.through(3, "reserve", "reports", "k", "--cost", "50", "--request-id", "job-1")
        self.assertEqual(code, 0, answer)
        self.assertEqual(self.remaining(), 10)
        self.assertEqual(self.server.metric("ebbgate_replayed_calls_total"), 3)

    def test_a_check_with_an_id_is_charged_once(self):
        code, answer = self.through(1, "check", "reports", "k", "--cost", "20", "--request-id", "call-1")
        self.assertEqual(code, 0, answer)
        self.assertTrue(answer["replayed"])
        self.assertEqual(self.remaining(), 40)
        self.assertEqual(self.server.metric("ebbgate_admitted_cost_total", limit="reports"), 20)

    def test_a_check_without_an_id_is_not_made_again(self):
        code, answer = self.through(1, "check", "reports", "k", "--cost", "20")
        self.assertEqual((code, answer["error"]), (2, "UNAVAILABLE"))
        self.assertEqual(self.remaining(), 40, "an error is no evidence of a denial")

    def test_a_settlement_gives_back_once(self):
        work = self.server.cli_json("reserve", "reports", "k", "--cost", "50")["reservation_id"]
        code, answer = self.through(1, "settle", work, "37")
        self.assertEqual((code, answer["state"], answer["repeated"]), (0, "SETTLED", True))
        self.assertEqual(self.remaining(), 23)
        self.assertEqual(self.server.metric("ebbgate_given_back_cost_total", limit="reports"), 13)

    def test_without_cuts_the_proxy_changes_nothing(self):
        code, answer = self.through(0, "reserve", "reports", "k", "--cost", "50")
        self.assertEqual((code, answer["replayed"]), (0, False))


if __name__ == "__main__":
    unittest.main(verbosity=2)
