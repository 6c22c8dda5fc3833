#include "server/config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/config/text.h"
#include "server/limiter/bounds.h"

namespace ebbgate {
namespace {

// Leaves the parser where it stands; the fault was added. Never leaves this file.
struct Stop {};

int LineOf(const YAML::Mark& mark) { return mark.line + 1; }

// Builds the tree from the parser's events, and refuses what it must before it grows.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Faults& faults) : faults_(faults) {}

  YamlNode Take() { return std::move(root_); }
  // The position of the last scalar in the text, or 0.
  std::size_t last_scalar_at() const { return last_scalar_at_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      Refuse(LineOf(mark), "begins a second document", "one file holds one document; remove the \"---\"");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Check(mark, "?", anchor);
    if (TakesKey()) Refuse(LineOf(mark), "has a key that is empty");
    // The parser's mark is that of what comes next.
    const bool of_key = !open_.empty() && open_.back().kind == YamlNode::Kind::kMap;
    Place({.line = of_key ? open_.back().keys.back().line : LineOf(mark)});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Refuse(LineOf(mark), "uses an alias (*name)",
           "aliases are not accepted; write the value out, or quote a text with *");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Check(mark, tag, anchor);
    last_scalar_at_ = static_cast<std::size_t>(mark.pos);
    if (TakesKey()) return TakeKey(mark, value);
    Place({.kind = YamlNode::Kind::kScalar, .quoted = tag == "!", .line = LineOf(mark), .text = value});
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override {
    RefuseDuplicates(open_.back());
    Close();
  }

 private:
  [[noreturn]] void Refuse(int line, absl::string_view reason, absl::string_view hint = {}) {
    faults_.Add(line, Path(open_.size()), reason, hint);
    throw Stop();
  }

  // What holds for every node.
  void Check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor)
      Refuse(LineOf(mark), "uses an anchor (&name)", "anchors are not accepted; write values out");
    if (tag != "?" && tag != "!" && !tag.empty()) {
      Refuse(LineOf(mark), absl::StrCat("uses the tag ", Quote(tag)), "tags are not accepted; quote what is text");
    }
  }

  // Whether the next node is the key of a map.
  bool TakesKey() const {
    return !open_.empty() && open_.back().kind == YamlNode::Kind::kMap &&
           open_.back().keys.size() == open_.back().items.size();
  }

  void TakeKey(const YAML::Mark& mark, const std::string& key) {
    if (key == "<<") Refuse(LineOf(mark), "uses a merge key (<<)", "merge keys are not accepted; write the values out");
    open_.back().keys.push_back({key, LineOf(mark)});
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    Check(mark, tag, anchor);
    if (TakesKey()) Refuse(LineOf(mark), "has a key that is not text", "or a bracket that opens here is never closed");
    if (open_.size() >= kMaxYamlDepth)
      Refuse(LineOf(mark), absl::StrCat("is nested more than ", kMaxYamlDepth, " levels deep"));
    open_.push_back({.kind = kind, .line = LineOf(mark)});
  }

  void Close() {
    YamlNode node = std::move(open_.back());
    open_.pop_back();
    Place(std::move(node));
  }

  void Place(YamlNode node) {
    if (++nodes_ > kMaxYamlNodes) Refuse(node.line, absl::StrCat("goes beyond ", kMaxYamlNodes, " values"));
    if (open_.empty()) {
      root_ = std::move(node);
    } else {
      open_.back().items.push_back(std::move(node));
    }
  }

  void RefuseDuplicates(const YamlNode& map) {
    std::vector<const YamlKey*> sorted;
    for (const YamlKey& key : map.keys) sorted.push_back(&key);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const YamlKey* a, const YamlKey* b) { return a->text < b->text; });
    const std::string path = Path(open_.size() - 1);
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      if (sorted[i]->text != sorted[i - 1]->text) continue;
      faults_.Add(sorted[i]->line, path,
                  absl::StrCat("has the key ", Quote(sorted[i]->text), " a second time (first on line ",
                               sorted[i - 1]->line, ")"));
    }
  }

  // The path of the node being read in the innermost of the first `depth` open nodes.
  std::string Path(std::size_t depth) const {
    std::string path;
    for (std::size_t i = 0; i < depth; ++i) {
      const YamlNode& node = open_[i];
      if (node.kind == YamlNode::Kind::kList) {
        absl::StrAppend(&path, "[", node.items.size(), "]");
      } else if (node.keys.size() > node.items.size()) {
        absl::StrAppend(&path, path.empty() ? "" : ".", PathPart(node.keys.back().text));
      }
    }
    return path;
  }

  Faults& faults_;
  std::vector<YamlNode> open_;  // the nodes being read, the outermost first
  YamlNode root_;
  std::size_t nodes_ = 0;  // placed so far
  int documents_ = 0;
  std::size_t last_scalar_at_ = 0;
};

int LineAt(absl::string_view text, std::size_t position) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
}

// Whether the document as a whole is JSON or written in its style; there tabs may indent.
bool IsFlow(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripLeadingAsciiWhitespace(line);
    if (line.empty() || line.front() == '#' || absl::StartsWith(line, "---") || line.front() == '%') continue;
    return line.front() == '{' || line.front() == '[';
  }
  return false;
}

bool CheckTabs(absl::string_view text, Faults& faults) {
  if (!absl::StrContains(text, '\t') || IsFlow(text)) return true;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view content = absl::StripLeadingAsciiWhitespace(line);
    if (content.empty() || content.front() == '#') continue;
    if (!absl::StrContains(line.substr(0, line.size() - content.size()), '\t')) continue;
    faults.Add(number, "", "is indented with a tab", "YAML indents with spaces");
    return false;
  }
  return true;
}

// Bounds the tokens that the parser will hold, before it sees the first.
bool CheckMarks(absl::string_view text, Faults& faults) {
  std::size_t marks = 0;
  for (const char c : text) marks += absl::StrContains("[]{},:?!&*", c) ? 2 : (c == '"' || c == '\'' ? 1 : 0);
  if (marks <= kMaxYamlMarks) return true;
  faults.Add(0, "", "holds too many brackets, commas, colons and quotes", "write fewer limits and overrides");
  return false;
}

// What the parser would read past, repair or choke on.
bool CheckBytes(absl::string_view text, Faults& faults) {
  if (text.size() > kMaxLimitsFileBytes) {
    faults.Add(0, "", absl::StrCat("is larger than ", kMaxLimitsFileBytes, " bytes"));
    return false;
  }
  const std::size_t valid = ValidUtf8Prefix(text);
  if (valid < text.size()) {
    faults.Add(LineAt(text, valid), "", "is not valid UTF-8", "save the file as UTF-8");
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (!absl::ascii_iscntrl(c) || c == '\n' || c == '\t' || c == '\r') continue;
    faults.Add(LineAt(text, i), "", "holds a control character", "remove it, or escape it in double quotes");
    return false;
  }
  return CheckMarks(text, faults) && CheckTabs(text, faults);
}

// The parser takes a quoted text without its closing quote for one that ends with the file; so a file cut short could
// pass for a whole one. Only the last scalar can be such.
bool CheckClosingQuote(absl::string_view text, std::size_t at, Faults& faults) {
  if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) return true;
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    // In double quotes \ escapes what follows; in single ones '' stands for one '.
    const bool pair = quote == '"' ? text[i] == '\\' : text.substr(i, 2) == "''";
    if (!pair && text[i] == quote) return true;
    if (pair) ++i;
  }
  faults.Add(LineAt(text, at), "", "begins a text in quotes that never ends", "add the closing quote");
  return false;
}

absl::string_view HintFor(absl::string_view message) {
  if (absl::StrContains(message, "alias") || absl::StrContains(message, "anchor")) {
    return "a text that begins with * or & must be in double quotes";
  }
  if (absl::StrContains(message, "scalar") || absl::StrContains(message, "escape")) return "look for a missing quote";
  if (absl::StrContains(message, "flow")) return "look for a missing or stray bracket or comma";
  if (absl::StrContains(message, "unknown token")) return "a text that begins with @, ` or % must be in quotes";
  return "look at the indentation here and on the lines before";
}

}  // namespace

std::string PathPart(absl::string_view key) {
  const bool plain =
      !key.empty() && key.size() <= kMaxLimitNameBytes && std::all_of(key.begin(), key.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
      });
  return plain ? std::string(key) : Quote(key);
}

std::optional<YamlNode> ReadYaml(absl::string_view text, Faults& faults) {
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // a byte order mark
  if (!CheckBytes(text, faults)) return std::nullopt;
  // Nothing that the parser throws gets past this function.
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    TreeBuilder builder(faults);
    bool any = false;
    while (parser.HandleNextDocument(builder)) any = true;
    if (!any) {
      faults.Add(0, "", "is empty");
    } else if (CheckClosingQuote(text, builder.last_scalar_at(), faults)) {
      return builder.Take();
    }
  } catch (const Stop&) {
    // The fault was added.
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 0 : LineOf(error.mark);
    faults.Add(line, "", absl::StrCat("is not valid YAML: ", Escape(error.msg)), HintFor(error.msg));
  } catch (const std::exception& error) {
    faults.Add(0, "", absl::StrCat("cannot be read as YAML: ", Escape(error.what())));
  }
  return std::nullopt;
}

absl::string_view Name(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return "a single value";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
  }
  return "nothing";
}

}  // namespace ebbgate
