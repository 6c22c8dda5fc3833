#include "server/config/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ebbgate {
namespace {

using ::testing::HasSubstr;

struct Good {
  const char* text;
  const char* as_grpc_takes_it;
  const char* host;
  int port;
  const char* path;
  bool local;
};

TEST(ListenAddress, ReadsHostsPortsAndSockets) {
  const Good cases[] = {
      {"127.0.0.1:7370", "127.0.0.1:7370", "127.0.0.1", 7370, "", true},
      {"127.9.9.9:0", "127.9.9.9:0", "127.9.9.9", 0, "", true},
      {"localhost:65535", "localhost:65535", "localhost", 65535, "", true},
      {"[::1]:7370", "[::1]:7370", "::1", 7370, "", true},
      {"0.0.0.0:7370", "0.0.0.0:7370", "0.0.0.0", 7370, "", false},
      {"[::]:7370", "[::]:7370", "::", 7370, "", false},
      {"10.0.0.1:1", "10.0.0.1:1", "10.0.0.1", 1, "", false},
      {"gate.example:7370", "gate.example:7370", "gate.example", 7370, "", false},
      {"127.0.0.1.example.com:7370", "127.0.0.1.example.com:7370", "127.0.0.1.example.com", 7370, "", false},
      {"[::ffff:10.0.0.1]:7370", "[::ffff:10.0.0.1]:7370", "::ffff:10.0.0.1", 7370, "", false},
      {"unix:/run/e.sock", "unix:/run/e.sock", "", 0, "/run/e.sock", true},
      {"unix:///run/e.sock", "unix:/run/e.sock", "", 0, "/run/e.sock", true},
      {"unix:e.sock", "unix:e.sock", "", 0, "e.sock", true},
  };
  for (const Good& good : cases) {
    const absl::StatusOr<ListenAddress> address = ParseListenAddress(good.text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->text, good.as_grpc_takes_it);
    EXPECT_EQ(address->host, good.host);
    EXPECT_EQ(address->port, good.port);
    EXPECT_EQ(address->path, good.path);
    EXPECT_EQ(address->is_local(), good.local) << good.text;
  }
}

struct Bad {
  std::string text;
  const char* reason;
};

TEST(ListenAddress, SaysWhatIsWrong) {
  const Bad cases[] = {
      {"", "is no address"},
      {"7370", "is no address (hint: host:port such as 127.0.0.1:7370"},
      {":7370", "names no host (hint: 0.0.0.0 is every interface"},
      {"*:7370", "names no host"},
      {"127.0.0.1:", "has no valid port"},
      {"127.0.0.1:65536", "has no valid port"},
      {"127.0.0.1:-1", "has no valid port"},
      {"127.0.0.1:http", "has no valid port"},
      {"127.0.0.1:99999999999999999999", "has no valid port"},
      {"::1:7370", "has no valid host"},
      {"[::1:7370", "has no valid host"},
      {"[localhost]:7370", "has no valid host"},
      {"a b:7370", "has no valid host"},
      {"http://x:7370", "has no valid host"},
      {std::string(254, 'x') + ":7370", "has no valid host"},
      {"unix:", "names no socket"},
      {"unix:" + std::string(108, 'x'), "has a path longer than 107 bytes"},
      {"unix:/a\nb", "holds a control character"},
  };
  for (const Bad& bad : cases) {
    const absl::Status status = ParseListenAddress(bad.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.reason)) << bad.text;
  }
}

}  // namespace
}  // namespace ebbgate
