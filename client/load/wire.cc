#include "client/load/wire.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ebbgate::client {
namespace {

constexpr int kKeyDigits = 8;
// Close to what is seen of users of services: the first of 10,000 keys gets about a seventh of all calls.
constexpr double kZipfExponent = 1.1;

// Tags: field number and wire type.
constexpr char kBytes1 = 0x0a;   // field 1, length-delimited
constexpr char kBytes2 = 0x12;   // field 2, length-delimited
constexpr char kVarint1 = 0x08;  // field 1, varint
constexpr char kVarint3 = 0x18;  // field 3, varint

void AppendVarint(std::uint64_t value, std::string& to) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

void AppendBytes(char tag, absl::string_view bytes, std::string& to) {
  to.push_back(tag);
  AppendVarint(bytes.size(), to);
  to.append(bytes.data(), bytes.size());
}

void WriteDigits(std::int64_t number, char* to) {
  for (int i = kKeyDigits - 1; i >= 0; --i, number /= 10) to[i] = static_cast<char>('0' + number % 10);
}

// Fields of a message, one after the other. After a false `ok` nothing that was read counts.
class FieldReader {
 public:
  explicit FieldReader(absl::string_view message) : rest_(message) {}

  bool ok() const { return ok_; }

  // The next field: its tag, and its bytes or number. False at the end, and when the message is broken.
  bool Next() {
    if (rest_.empty() || !ok_) return false;
    std::uint64_t tag = 0, length = 0;
    if (!Varint(tag)) return false;
    tag_ = tag;
    switch (tag & 7) {
      case 0:
        return Varint(number_);
      case 1:
        return Take(8);
      case 2:
        return Varint(length) && Take(length);
      case 5:
        return Take(4);
      default:
        return ok_ = false;
    }
  }

  std::uint64_t tag() const { return tag_; }
  std::uint64_t number() const { return number_; }
  absl::string_view bytes() const { return bytes_; }

 private:
  bool Varint(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return ok_ = false;
  }

  bool Take(std::uint64_t length) {
    if (length > rest_.size()) return ok_ = false;
    bytes_ = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
  }

  absl::string_view rest_;
  bool ok_ = true;
  std::uint64_t tag_ = 0;
  std::uint64_t number_ = 0;
  absl::string_view bytes_;
};

}  // namespace

KeyPicker::KeyPicker(KeyDistribution distribution, std::int64_t keys)
    : distribution_(distribution), keys_(keys), zipf_(keys - 1, kZipfExponent) {}

std::int64_t KeyPicker::Next() {
  switch (distribution_) {
    case KeyDistribution::kUniform:
      return absl::Uniform<std::int64_t>(random_, 0, keys_);
    case KeyDistribution::kZipf:
      return zipf_(random_);
    case KeyDistribution::kHot:
      return 0;
  }
  return 0;
}

RequestWriter::RequestWriter(const LoadOptions& options)
    : in_batch_(options.mode != LoadMode::kUnary),
      calls_(in_batch_ ? options.batch : 1),
      deny_share_(options.deny_share),
      keys_(options.distribution, options.keys),
      usual_(MakeTemplate(options.limit, options)),
      denied_(MakeTemplate(options.deny_limit, options)) {}

RequestWriter::Template RequestWriter::MakeTemplate(absl::string_view limit, const LoadOptions& options) const {
  std::string charge;
  AppendBytes(kBytes1, limit, charge);
  AppendBytes(kBytes2, absl::StrCat("key-", std::string(kKeyDigits, '0')), charge);
  std::size_t digits_end = charge.size();
  if (options.cost.has_value()) {
    charge.push_back(kVarint3);
    AppendVarint(static_cast<std::uint64_t>(*options.cost), charge);
  }
  Template result;
  std::string call;
  AppendBytes(kBytes1, charge, call);
  digits_end += call.size() - charge.size();
  const bool wrapped = in_batch_ || options.target == LoadTarget::kYardstick;
  if (wrapped) {
    AppendBytes(kBytes1, call, result.bytes);
  } else {
    result.bytes = call;
  }
  result.digits_at = digits_end + result.bytes.size() - call.size() - kKeyDigits;
  return result;
}

void RequestWriter::AppendCall() {
  const bool denied = deny_share_ > 0 && absl::Bernoulli(random_, deny_share_);
  const Template& chosen = denied ? denied_ : usual_;
  const std::size_t at = message_.size();
  message_.append(chosen.bytes);
  WriteDigits(keys_.Next(), message_.data() + at + chosen.digits_at);
}

absl::string_view RequestWriter::Next() {
  message_.clear();
  for (int i = 0; i < calls_; ++i) AppendCall();
  return message_;
}

AnswerCounts CountResponse(absl::string_view message) {
  bool allowed = false;
  FieldReader fields(message);
  while (fields.Next()) {
    if (fields.tag() == kVarint1) allowed = fields.number() != 0;
  }
  if (!fields.ok()) return {.errors = 1};
  return allowed ? AnswerCounts{.allowed = 1} : AnswerCounts{.denied = 1};
}

AnswerCounts CountBatchResponse(absl::string_view message) {
  AnswerCounts sum;
  FieldReader outcomes(message);
  while (outcomes.Next()) {
    if (outcomes.tag() != kBytes1) continue;
    AnswerCounts one{.errors = 1};
    FieldReader outcome(outcomes.bytes());
    while (outcome.Next()) {
      if (outcome.tag() == kBytes1) one = CountResponse(outcome.bytes());
    }
    if (!outcome.ok()) one = {.errors = 1};
    sum.allowed += one.allowed;
    sum.denied += one.denied;
    sum.errors += one.errors;
  }
  if (!outcomes.ok()) ++sum.errors;
  return sum;
}

}  // namespace ebbgate::client
