#include "server/config/server_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/config/settings.h"
#include "tests/support/temp_dir.h"

namespace ebbgate {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Environment = std::map<std::string, std::string>;

absl::StatusOr<ServerOptions> Parse(std::vector<std::string> arguments, const Environment& environment = {}) {
  arguments.insert(arguments.begin(), "ebbgated");
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return ParseServerOptions(static_cast<int>(argv.size()), argv.data(), [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

ServerOptions MustParse(const std::vector<std::string>& arguments, const Environment& environment = {}) {
  absl::StatusOr<ServerOptions> options = Parse(arguments, environment);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? *std::move(options) : ServerOptions();
}

std::string ErrorOf(const std::vector<std::string>& arguments, const Environment& environment = {}) {
  const absl::Status status = Parse(arguments, environment).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

std::vector<std::string> Texts(const std::vector<ListenAddress>& addresses) {
  std::vector<std::string> texts;
  for (const ListenAddress& address : addresses) texts.push_back(address.text);
  return texts;
}

// --- Where values come from ------------------------------------------------------------------------------------------

TEST(ServerOptions, HasSafeDefaults) {
  const ServerOptions options = MustParse({"--limits", "l.yaml"});
  EXPECT_EQ(options.print_and_exit, std::nullopt);
  EXPECT_EQ(options.limits, "l.yaml");
  EXPECT_THAT(Texts(options.listen), ElementsAre("127.0.0.1:7370"));
  EXPECT_EQ(options.ops_listen.text, "127.0.0.1:7371");
  EXPECT_EQ(options.admin_listen.text, "127.0.0.1:7373");
  EXPECT_TRUE(options.reflection_on());
  EXPECT_TRUE(options.json_twin_on());
  EXPECT_FALSE(options.allow_plaintext);
  EXPECT_FALSE(options.tls.enabled());
  EXPECT_FALSE(options.check_config);
  EXPECT_GE(options.threads, 1);
  EXPECT_EQ(options.engine.when_full, WhenFull::kDeny);
  EXPECT_EQ(options.engine.unknown_limit, UnknownLimit::kReject);
}

TEST(ServerOptions, ReadsEveryFlag) {
  const ServerOptions options = MustParse({"--limits=l.yaml",
                                           "--listen",
                                           "unix:/s",
                                           "--listen",
                                           "[::1]:0",
                                           "--ops-listen",
                                           "127.0.0.1:1",
                                           "--admin-listen",
                                           "unix:/a",
                                           "--reflection",
                                           "off",
                                           "--allow-plaintext",
                                           "--max-keys",
                                           "7",
                                           "--max-store-bytes",
                                           "2MiB",
                                           "--when-full",
                                           "allow",
                                           "--unknown-limit",
                                           "deny",
                                           "--wall-step-hold",
                                           "3s",
                                           "--dedupe-window",
                                           "90s",
                                           "--max-request-ids",
                                           "8",
                                           "--max-holds",
                                           "11",
                                           "--threads",
                                           "3",
                                           "--max-calls-in-flight",
                                           "9",
                                           "--max-connection-age",
                                           "0s",
                                           "--drain-delay",
                                           "1m",
                                           "--drain-timeout",
                                           "250ms",
                                           "--log-format",
                                           "json",
                                           "--log-level",
                                           "warning",
                                           "--check-config"});
  EXPECT_THAT(Texts(options.listen), ElementsAre("unix:/s", "[::1]:0"));
  EXPECT_EQ(options.ops_listen.port, 1);
  EXPECT_EQ(options.admin_listen.path, "/a");
  EXPECT_FALSE(options.reflection_on());
  EXPECT_TRUE(options.allow_plaintext);
  EXPECT_EQ(options.engine.max_keys, 7);
  EXPECT_EQ(options.engine.max_store_bytes, 2 << 20);
  EXPECT_EQ(options.engine.when_full, WhenFull::kAllow);
  EXPECT_EQ(options.engine.unknown_limit, UnknownLimit::kDeny);
  EXPECT_EQ(options.engine.wall_step_hold_ns, 3'000'000'000);
  EXPECT_EQ(options.engine.dedupe_window_ns, 90'000'000'000);
  EXPECT_EQ(options.engine.max_request_ids, 8);
  EXPECT_EQ(options.engine.max_holds, 11);
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.max_calls_in_flight, 9);
  EXPECT_EQ(options.max_connection_age_ns, 0);
  EXPECT_EQ(options.drain_delay_ns, 60'000'000'000);
  EXPECT_EQ(options.drain_timeout_ns, 250'000'000);
  EXPECT_EQ(options.log_format, LogFormat::kJson);
  EXPECT_EQ(options.log_level, "warning");
  EXPECT_TRUE(options.check_config);
}

TEST(ServerOptions, LetsFlagsBeatVariablesAndVariablesBeatTheFile) {
  const TempDir dir;
  const std::string file = dir.Write("s.yaml", "limits: file\nlog_level: error\nthreads: 5\nlog-format: json\n");
  const ServerOptions options = MustParse({"--config", file, "--log-level", "debug"},
                                          {{"EBBGATE_LOG_LEVEL", "warning"}, {"EBBGATE_THREADS", "6"}});
  EXPECT_EQ(options.log_level, "debug");
  EXPECT_EQ(options.threads, 6);
  EXPECT_EQ(options.limits, "file");
  EXPECT_EQ(options.log_format, LogFormat::kJson) << "keys may have dashes as well";
  EXPECT_EQ(MustParse({}, {{"EBBGATE_CONFIG", file}}).threads, 5);
}

TEST(ServerOptions, TakesAnEmptyVariableForNone) {
  EXPECT_EQ(MustParse({"--limits", "l"}, {{"EBBGATE_LOG_LEVEL", ""}}).log_level, "info");
}

TEST(ServerOptions, LetsAFlagTurnASwitchOffAgain) {
  const Environment environment = {{"EBBGATE_ALLOW_PLAINTEXT", "true"}};
  EXPECT_TRUE(MustParse({"--limits", "l"}, environment).allow_plaintext);
  EXPECT_FALSE(MustParse({"--limits", "l", "--allow-plaintext=false"}, environment).allow_plaintext);
}

TEST(ServerOptions, ReadsSeveralListenersFromAnyPlace) {
  const TempDir dir;
  const std::string list = dir.Write("list.yaml", "limits: l\nlisten:\n- unix:/a\n- \"[::1]:1\"\n");
  const std::string one = dir.Write("one.yaml", "limits: l\nlisten: unix:/a\n");
  EXPECT_THAT(Texts(MustParse({"--config", list}).listen), ElementsAre("unix:/a", "[::1]:1"));
  EXPECT_THAT(Texts(MustParse({"--config", one}).listen), ElementsAre("unix:/a"));
  EXPECT_THAT(Texts(MustParse({"--limits", "l"}, {{"EBBGATE_LISTEN", "unix:/b,127.0.0.1:1"}}).listen),
              ElementsAre("unix:/b", "127.0.0.1:1"));
}

TEST(ServerOptions, OffersReflectionByItselfOnlyWhereAllListenersAreLocal) {
  EXPECT_TRUE(MustParse({"--limits", "l", "--listen", "unix:/s", "--listen", "127.0.0.1:1"}).reflection_on());
  EXPECT_FALSE(MustParse({"--limits", "l", "--listen", "unix:/s", "--listen", "0.0.0.0:1", "--allow-plaintext"})
                   .reflection_on());
  EXPECT_TRUE(
      MustParse({"--limits", "l", "--listen", "0.0.0.0:1", "--allow-plaintext", "--reflection", "on"}).reflection_on());
}

TEST(ServerOptions, OffersTheJsonTwinBeyondLoopbackOnlyWherePlainTextIsAllowed) {
  EXPECT_FALSE(MustParse({"--limits", "l", "--ops-listen", "0.0.0.0:7371"}).json_twin_on());
  EXPECT_TRUE(MustParse({"--limits", "l", "--ops-listen", "0.0.0.0:7371", "--allow-plaintext"}).json_twin_on());
}

// --- What is printed -------------------------------------------------------------------------------------------------

TEST(ServerOptions, PrintsHelpWithEverySettingDefaultAndVariable) {
  const std::string help = *MustParse({"--help"}).print_and_exit;
  for (const Setting& setting : Settings()) {
    EXPECT_THAT(help, HasSubstr(absl::StrCat("\n  --", setting.name)));
    EXPECT_THAT(help, HasSubstr(VariableOf(setting)));
  }
  for (const char* text : {"--config FILE", "EBBGATE_CONFIG", "--version", "--help", "Default: 127.0.0.1:7370.",
                           "Default: 5s.", "Default: 1GiB.", "Default: 2000000.", "Examples:"}) {
    EXPECT_THAT(help, HasSubstr(text));
  }
  for (const absl::string_view line : absl::StrSplit(help, '\n')) EXPECT_LE(line.size(), 110u) << line;
  EXPECT_EQ(MustParse({"-h", "--version"}).print_and_exit, help);
}

TEST(ServerOptions, PrintsItsVersion) {
  EXPECT_THAT(*MustParse({"--version"}).print_and_exit, StartsWith("ebbgated "));
}

TEST(ServerOptions, PrintsAConfigThatItReadsBack) {
  const TempDir dir;
  const std::string file = dir.Write("s.yaml", "limits: \"a \\\"b\\\" # c\"\n\nthreads: 5\n");
  const std::vector<std::string> arguments = {"--config",  file,           "--listen", "[::1]:0",           "--listen",
                                              "unix:/a,b", "--reflection", "off",      "--max-store-bytes", "3MiB"};
  std::vector<std::string> with_print = arguments;
  with_print.push_back("--print-config");
  const std::string printed = *MustParse(with_print, {{"EBBGATE_LOG_LEVEL", "debug"}}).print_and_exit;
  EXPECT_THAT(printed, AllOf(HasSubstr("\nlisten: [\"[::1]:0\", \"unix:/a,b\"]  # --listen\n"),
                             HasSubstr(absl::StrCat("\nthreads: 5  # ", file, ":3\n")),
                             HasSubstr("\nlog_level: debug  # EBBGATE_LOG_LEVEL\n"),
                             HasSubstr("\nlog_format: text  # default\n"), HasSubstr("\n# tls_cert:  # not set\n")));
  const std::string copy = dir.Write("copy.yaml", printed);
  const std::string again = *MustParse({"--config", copy, "--print-config"}).print_and_exit;
  // The same but for the origins.
  const std::vector<std::string> before = absl::StrSplit(printed, '\n'), after = absl::StrSplit(again, '\n');
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].substr(0, before[i].rfind("  # ")), after[i].substr(0, after[i].rfind("  # ")));
  }
  EXPECT_EQ(MustParse({"--config", copy}).limits, "a \"b\" # c");
}

TEST(ServerOptions, ReadsTheExampleFile) {
  const ServerOptions options = MustParse({"--config", EBBGATE_SOURCE_DIR "/deploy/examples/server.yaml"});
  EXPECT_EQ(options.limits, "deploy/examples/limits.yaml");
  EXPECT_EQ(options.log_format, LogFormat::kJson);
  EXPECT_EQ(options.engine.max_store_bytes, 1 << 30);
}

// --- What is wrong ---------------------------------------------------------------------------------------------------

struct Bad {
  std::vector<std::string> arguments;
  const char* error;
};

TEST(ServerOptions, SaysWhatIsWrongWithFlags) {
  const Bad cases[] = {
      {{}, "--limits: is missing (hint: "},
      {{"--limts", "x"}, "\"--limts\": is no flag (hint: did you mean --limits?)"},
      {{"--limits", "x", "--frobnicate"}, "\"--frobnicate\": is no flag (hint: see ebbgated --help)"},
      {{"--limits", "x", "extra"}, "\"extra\": belongs to no flag"},
      {{"--limits", "x", "--listen", "127.0.0.1:1", "127.0.0.1:2"}, "\"127.0.0.1:2\": belongs to no flag"},
      {{"--limits"}, "--limits: 1 required FILE missing (hint: see ebbgated --help)"},
      {{"--limits", ""}, "--limits: must not be empty"},
      {{"--limits", "a\nb"}, "--limits: \"a\\nb\" holds a control character"},
      {{"--limits", "a\xFF"}, "--limits: is not valid UTF-8"},
      {{"--limits", "x", "--limits", "y"}, "--limits: is given more than once"},
      {{"--limits", "x", "--threads", "1"}, "--threads: \"1\" must be from 2 to 256"},
      {{"--limits", "x", "--threads", "many"}, "--threads: \"many\" must be a whole number"},
      {{"--limits", "x", "--max-keys", "1e6"}, "--max-keys: \"1e6\" must be a whole number"},
      {{"--limits", "x", "--max-holds", "0"}, "--max-holds: \"0\" must be from 1 to 100000000"},
      {{"--limits", "x", "--max-keys", "1000000001"}, "--max-keys: \"1000000001\" must be from 1 to 1000000000"},
      {{"--limits", "x", "--max-store-bytes", "1GB"}, "--max-store-bytes: \"1GB\" must be a whole number of bytes"},
      {{"--limits", "x", "--max-store-bytes", "1023KiB"},
       "--max-store-bytes: \"1023KiB\" must be from 1MiB to 65536GiB"},
      {{"--limits", "x", "--max-store-bytes", "9223372036854775807GiB"}, "--max-store-bytes: "},
      {{"--limits", "x", "--drain-delay", "5"}, "--drain-delay: \"5\" has no unit; write 5s"},
      {{"--limits", "x", "--drain-delay", "25h"}, "--drain-delay: \"25h\" must be from 0s to 24h"},
      {{"--limits", "x", "--max-connection-age", "1ms"}, "--max-connection-age: \"1ms\" must be from 1s to 24h"},
      {{"--limits", "x", "--dedupe-window", "0s"}, "--dedupe-window: \"0s\" must be from 1s to 24h"},
      {{"--limits", "x", "--when-full", "maybe"}, "--when-full: \"maybe\" must be one of deny, allow"},
      {{"--limits", "x", "--reflection", "true"}, "--reflection: \"true\" must be one of off, on"},
      {{"--limits", "x", "--log-level", "trace"}, "--log-level: \"trace\" must be one of debug, info, warning, error"},
      {{"--limits", "x", "--listen", "7370"}, "--listen: \"7370\" is no address (hint: "},
      {{"--limits", "x", "--listen", "127.0.0.1:65536"}, "--listen: \"127.0.0.1:65536\" has no valid port"},
      {{"--limits", "x", "--ops-listen", "unix:/x"}, "--ops-listen: \"unix:/x\" cannot be a Unix socket"},
      {{"--limits", "x", "--listen", "127.0.0.1:1", "--listen", "127.0.0.1:1"}, "--listen: 127.0.0.1:1 is used twice"},
      {{"--limits", "x", "--ops-listen", "127.0.0.1:7370"},
       "--ops-listen: 127.0.0.1:7370 is used twice, also by --listen"},
      {{"--limits", "x", "--listen", "unix:/x", "--admin-listen", "unix:/x"}, "--admin-listen: unix:/x is used twice"},
      {{"--limits", "x", "--config", "none.yaml"}, "--config: none.yaml: cannot be read: No such file"},
      {{"--limits", "x", "--config", "a", "--config", "b"}, "--config: is given more than once"},
      {{"--limits", "x", "--config", "a\nb"}, "--config: \"a\\nb\" is no path"},
  };
  for (const Bad& bad : cases) EXPECT_THAT(ErrorOf(bad.arguments), StartsWith(bad.error));
}

TEST(ServerOptions, TakesPortZeroAsOftenAsAsked) {
  EXPECT_EQ(MustParse({"--limits", "l", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--admin-listen",
                       "127.0.0.1:0"})
                .listen.size(),
            1u);
}

TEST(ServerOptions, TellsAllFaultsAndWhereTheyCameFrom) {
  const TempDir dir;
  const std::string file = dir.Write("s.yaml", "limits: l\nthreads: 0\nlog_leve: info\nmax_keys: [1]\nlisten: []\n");
  const std::string error = ErrorOf({"--config", file, "--when-full", "x"},
                                    {{"EBBGATE_DRAIN_DELAY", "x"}, {"EBBGATE_ALLOW_PLAINTEXT", "yes"}});
  for (const std::string& part :
       {absl::StrCat(file, ":3: does not know the key \"log_leve\" (hint: did you mean log_level?)"),
        absl::StrCat(file, ":4: max_keys: must be a value, but is a list"),
        absl::StrCat(file, ":5: listen: must be a value, but is a list"),
        absl::StrCat(file, ":2: threads: \"0\" must be from 2 to 256"),
        std::string("--when-full: \"x\" must be one of"),
        std::string("EBBGATE_DRAIN_DELAY: \"x\" is not a length of time"),
        std::string("EBBGATE_ALLOW_PLAINTEXT: \"yes\" must be true or false")}) {
    EXPECT_THAT(error, HasSubstr(part));
  }
}

TEST(ServerOptions, SaysWhatIsWrongWithTheFile) {
  const TempDir dir;
  const std::pair<const char*, const char*> cases[] = {
      {"", ": is empty"},
      {"- a\n", ":1: must be a map"},
      {"limits:\n", ":1: limits: must be a value, but is nothing (hint: remove the line"},
      {"limits: a\nlimits: b\n", ":2: has the key \"limits\" a second time"},
      {"limits: a\nlog_level: info\nlog-level: info\n",
       ":3: log-level: is the same as log_level, which stands on line 2"},
      {"limits: a\nlisten: [[b]]\n", ":2: listen: must be a list of values, but holds a list"},
      {"limits: a\nconfig: b\n", ":2: does not know the key \"config\""},
      {"limits: *a\n", ":1: "},
  };
  for (const auto& [text, error] : cases) {
    const std::string file = dir.Write("s.yaml", text);
    EXPECT_THAT(ErrorOf({"--config", file}), StartsWith(file + error));
  }
}

TEST(ServerOptions, RefusesPlainTextThatOthersCanReach) {
  EXPECT_THAT(ErrorOf({"--limits", "l", "--listen", "0.0.0.0:7370"}),
              AllOf(StartsWith("--listen: 0.0.0.0:7370 can be reached from other machines, and would be in plain text"),
                    HasSubstr("--allow-plaintext")));
  EXPECT_THAT(
      ErrorOf({"--limits", "l"}, {{"EBBGATE_ADMIN_LISTEN", "[::]:7373"}}),
      StartsWith("EBBGATE_ADMIN_LISTEN: [::]:7373 can be reached from other machines, and whoever reaches it may"));
  EXPECT_TRUE(
      Parse({"--limits", "l", "--listen", "0.0.0.0:7370", "--admin-listen", "[::]:7373", "--allow-plaintext"}).ok());
}

// --- TLS -------------------------------------------------------------------------------------------------------------

struct Pem {
  std::string cert;
  std::string key;
};

std::string Content(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string content(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return content;
}

// A key, and a certificate that it signed itself.
Pem MakePem() {
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
  X509* cert = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
  X509_gmtime_adj(X509_getm_notBefore(cert), 0);
  X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
  X509_set_pubkey(cert, key);
  X509_sign(cert, key, EVP_sha256());
  BIO* cert_bio = BIO_new(BIO_s_mem());
  BIO* key_bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(cert_bio, cert);
  PEM_write_bio_PrivateKey(key_bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  X509_free(cert);
  EVP_PKEY_free(key);
  return {.cert = Content(cert_bio), .key = Content(key_bio)};
}

class ServerOptionsTls : public ::testing::Test {
 protected:
  // Arguments with TLS files, and more.
  static std::vector<std::string> With(const std::string& cert, const std::string& key,
                                       std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"--limits", "l", "--tls-cert", cert, "--tls-key", key};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  const TempDir dir_;
  const Pem pem_ = MakePem();
  const std::string cert_ = dir_.Write("cert.pem", pem_.cert);
  const std::string key_ = dir_.Write("key.pem", pem_.key);
};

TEST_F(ServerOptionsTls, PermitsOtherMachinesWithTls) {
  const ServerOptions options = MustParse(With(cert_, key_, {"--listen", "0.0.0.0:7370"}));
  EXPECT_TRUE(options.tls.enabled());
  EXPECT_FALSE(options.reflection_on());
  EXPECT_TRUE(Parse(With(dir_.Write("chain.pem", pem_.cert + MakePem().cert), key_)).ok());
}

TEST_F(ServerOptionsTls, PermitsAdminFromOtherMachinesWithMutualTlsOnly) {
  EXPECT_THAT(ErrorOf(With(cert_, key_, {"--admin-listen", "0.0.0.0:7373"})), StartsWith("--admin-listen: "));
  EXPECT_TRUE(Parse(With(cert_, key_, {"--admin-listen", "0.0.0.0:7373", "--tls-client-ca", cert_})).ok());
}

TEST_F(ServerOptionsTls, SaysWhatIsWrongWithTheFiles) {
  const std::string other_key = dir_.Write("other.pem", MakePem().key);
  const std::string garbage = dir_.Write("garbage.pem", "garbage");
  const std::string cut = dir_.Write("cut.pem", pem_.cert.substr(0, pem_.cert.size() / 2));
  const std::string second_cut = dir_.Write("second.pem", pem_.cert + pem_.cert.substr(0, pem_.cert.size() / 2));
  const std::string locked =
      dir_.Write("locked.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--limits", "l", "--tls-cert", cert_}, "--tls-cert: needs --tls-key beside it"},
      {{"--limits", "l", "--tls-key", key_}, "--tls-key: needs --tls-cert beside it"},
      {{"--limits", "l", "--tls-client-ca", cert_}, "--tls-client-ca: needs --tls-cert and --tls-key beside it"},
      {With(dir_.File("none"), key_), "--tls-cert: " + dir_.File("none") + ": cannot be read: No such file"},
      {With(dir_.path(), key_), "--tls-cert: " + dir_.path() + ": is a directory"},
      {With(garbage, key_), "--tls-cert: " + garbage + ": holds no certificate (hint: "},
      {With(cut, key_), "--tls-cert: " + cut + ": certificate 1 cannot be read (hint: "},
      {With(second_cut, key_), "--tls-cert: " + second_cut + ": certificate 2 cannot be read (hint: "},
      {With(cert_, garbage), "--tls-key: " + garbage + ": holds no private key (hint: "},
      {With(cert_, cert_), "--tls-key: " + cert_ + ": holds no private key (hint: "},
      {With(cert_, locked), "--tls-key: " + locked + ": is protected by a passphrase (hint: "},
      {With(cert_, other_key), "--tls-key: " + other_key + ": does not belong to the first certificate of " + cert_},
      {With(cert_, key_, {"--tls-client-ca", garbage}), "--tls-client-ca: " + garbage + ": holds no certificate"},
  };
  for (const auto& [arguments, error] : cases) EXPECT_THAT(ErrorOf(arguments), StartsWith(error));
}

}  // namespace
}  // namespace ebbgate
