"""A client that opens streams only to reset them (CVE-2023-44487) costs the server no memory worth speaking of.

HTTP/2 is spoken here by hand, since no client library does such a thing.
"""

import socket
import struct
import threading
import unittest

import support

LIMITS = "limits: [{name: L, capacity: 10, refill: {tokens: 1, per: 1h}}]\n"

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, RST_STREAM, SETTINGS = 1, 3, 4
END_HEADERS = 4
CANCEL = 8

CONNECTIONS = 4
STREAMS_PER_CONNECTION = 20_000
# A server that keeps something for every stream until it has served it grows by 250 MB for one connection, and one that
# keeps it for good by a gigabyte for all four.
MOST_GROWTH_BYTES = 160 * 1024 * 1024


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header_block(path):
    """HPACK, each field as a literal with a new name, never indexed."""
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost",
              "content-type": "application/grpc", "te": "trailers"}
    return b"".join(b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
                    for name, value in fields.items())


def resident_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")


def read_away(connection):
    try:
        while connection.recv(65536):
            pass
    except OSError:
        pass


def reset_many(address, path):
    """Opens streams and resets each at once. Returns how many were sent before the server hung up, if it did."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=support.DEADLINE_S) as connection:
        reader = threading.Thread(target=read_away, args=(connection,))
        reader.start()
        block = header_block(path)
        sent = 0
        try:
            connection.sendall(PREFACE + frame(SETTINGS, 0, 0))
            for first in range(0, STREAMS_PER_CONNECTION, 100):
                connection.sendall(b"".join(frame(HEADERS, END_HEADERS, 2 * i + 1, block) +
                                            frame(RST_STREAM, 0, 2 * i + 1, struct.pack(">I", CANCEL))
                                            for i in range(first, first + 100)))
                sent += 100
            connection.shutdown(socket.SHUT_WR)  # The server hangs up when it has read all of it.
        except OSError:
            pass  # It may hang up on such a client.
        reader.join()
        return sent


class RapidReset(support.TestCase):
    def test_streams_that_are_reset_at_once_cost_no_memory(self):
        server = self.start(LIMITS)
        before = resident_bytes(server.process.pid)
        for path in ("/ebbgate.v1.RateLimiter/ShouldAllow", "/ebbgate.v1.RateLimiter/StreamShouldAllow",
                     "/grpc.health.v1.Health/Watch", "/no.such.Service/Method"):
            with self.subTest(path):
                most = before
                for _ in range(CONNECTIONS):
                    self.assertGreater(reset_many(server.call_address, path), 0)
                    most = max(most, resident_bytes(server.process.pid))
                self.assertLess(most - before, MOST_GROWTH_BYTES, f"grew by {(most - before) / 1e6:.0f} MB")
                self.assertEqual(server.cli("check", "L", "user", "--cost", "0").returncode, 0)
                self.assert_alive(server)
        # Nothing that was reset was charged.
        self.assertEqual(server.metric("ebbgate_admitted_cost_total", limit="L"), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
