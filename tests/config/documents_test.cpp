// The sample configuration and the manual page say of each key what its row says.

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/config/keys.h"
#include "tests/config/texts.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

const std::string kSample = BATCHWRIGHT_SOURCE "/systemd/batchwrightd.toml";
const std::string kManual = BATCHWRIGHT_SOURCE "/systemd/batchwrightd.toml.5";
/// Where the sample's live feed begins, all of it as comments, and the one key that it has again.
const std::string kLiveFeed = "# [[feed]]";
const std::string kLiveName = "# name = \"rollouts\"";
const std::regex kSampleHeader(R"(^(# )?\[+([a-z.]+)\]+$)");
const std::regex kSampleKey(R"(^(# )?([a-z_]+) = (.*)$)");

struct Entry {
  bool example = false;  ///< There is no default: as a comment, or in brackets.
  std::string value;     ///< As a file writes it.
  std::string text;      ///< With single blanks between words.
};
/// By "daemon.memory" and so on.
using Entries = std::map<std::string, Entry>;

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void append(std::string& text, const std::string& line) {
  text += (text.empty() ? "" : " ") + line;
}

Entries sample_entries() {
  Entries entries;
  std::string table;
  std::string text;
  for (const std::string& line : lines_of(kSample)) {
    std::smatch match;
    const bool is_header = std::regex_match(line, match, kSampleHeader);
    if (is_header) table = match[2];
    const bool is_key = std::regex_match(line, match, kSampleKey);
    if (is_key && line != kLiveName) {
      const std::string name = table + "." + match[2].str();
      CAPTURE(name);
      CHECK(entries.emplace(name, Entry{match[1].matched, match[3], text}).second);
    }
    if (line.starts_with("# ") && !is_key && !is_header) {
      append(text, line.substr(2));
    } else {
      text.clear();
    }
  }
  return entries;
}

/// `Qq word` is a text, `Qq \&` an empty one.
std::string plain_value(std::string words) {
  if (words.ends_with(' ')) words.pop_back();  // a bracket after a text stands apart
  if (!words.starts_with("Qq ")) return words;
  return words == "Qq \\&" ? "\"\"" : '"' + words.substr(3) + '"';
}

Entries manual_entries() {
  const std::regex header(R"(^\.Ss \[+([a-z.]+)\]+$)");
  const std::regex item(R"(^\.It Va ([a-z_]+) No (?:= (.*)|\(= (.*)\))$)");
  Entries entries;
  std::string table;
  Entry* entry = nullptr;
  for (const std::string& line : lines_of(kManual)) {
    std::smatch match;
    if (line == ".Sh RELOAD") break;
    if (std::regex_match(line, match, header)) table = match[1];
    if (std::regex_match(line, match, item)) {
      const bool example = match[3].matched;
      const std::string value = plain_value(example ? match[3] : match[2]);
      const auto added = entries.emplace(table + "." + match[1].str(), Entry{example, value, ""});
      CHECK_MESSAGE(added.second, match[1].str());
      entry = &added.first->second;
    } else if (line == ".El") {
      entry = nullptr;
    } else if (entry != nullptr) {
      append(entry->text, line);
    }
  }
  return entries;
}

std::string full_name(const ConfigKey& key) { return key.table + "." + std::string(key.row.name); }

std::string sentence_of(const ConfigKey& key) { return std::string(key.row.sentence) + "."; }

std::string allowed_by(const ConfigKey& key) {
  return "Allowed: " + std::string(key.row.allowed) + ".";
}

/// How an entry begins.
std::string beginning(const ConfigKey& key) { return sentence_of(key) + " " + allowed_by(key); }

/// In lines of at most 100 bytes.
std::string wrapped(const std::string& text, const std::string& prefix) {
  std::string out;
  std::string line = prefix;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() + 1 + word.size() > 100) {
      out += line + "\n";
      line = prefix;
    }
    line += (line == prefix ? "" : " ") + word;
  }
  return out + line + "\n";
}

std::string sample_text(const ConfigKey& key) {
  const std::string name(key.row.name);
  const bool set = !key.by_default.empty();
  return wrapped(beginning(key), "# ") + (is_live(key) ? "# " : "") +
         (set            ? name + " = " + key.by_default
          : is_live(key) ? name + " = AN EXAMPLE"
                         : "# " + name + " = AN EXAMPLE");
}

std::string manual_text(const ConfigKey& key) {
  const std::string& value = key.by_default;
  const std::string inner = value.starts_with('"') ? value.substr(1, value.size() - 2) : "";
  const std::string words = value.empty()             ? "(= AN EXAMPLE)"
                            : !value.starts_with('"') ? "= " + value
                            : inner.empty()           ? "= Qq \\&"
                                                      : "= Qq " + inner;
  return ".It Va " + std::string(key.row.name) + " No " + words + "\n" +
         wrapped(sentence_of(key), "") + wrapped(allowed_by(key), "");
}

/// Whether a file may leave the key out, and then it has no value; or what it is shows an example.
bool is_unset(const ConfigKey& key) {
  return key.by_default.empty() && (key.table == "feed.plan" || is_live(key));
}

/// Whether it is a comment in the sample, whose one feed has a dataset.
bool is_comment(const ConfigKey& key) { return is_unset(key) || is_live(key); }

void check_entries(Entries entries, const std::string& file,
                   std::string (*text_of)(const ConfigKey&), bool (*is_example)(const ConfigKey&)) {
  for (const ConfigKey& key : config_keys()) {
    const auto found = entries.find(full_name(key));
    const std::string paste = file + " lacks for [" + key.table + "]:\n" + text_of(key);
    if (found == entries.end()) {
      FAIL_CHECK(paste);
      continue;
    }
    const Entry& entry = found->second;
    CHECK_MESSAGE(entry.text.starts_with(beginning(key)), paste, "\nand has: ", entry.text);
    CHECK_MESSAGE(entry.example == is_example(key), paste);
    if (!key.by_default.empty()) CHECK_MESSAGE(entry.value == key.by_default, paste);
    entries.erase(found);
  }
  for (const auto& [name, entry] : entries) FAIL_CHECK(file, " has, and there is none: ", name);
}

}  // namespace

TEST_CASE("config: the sample says of each key what its row says") {
  check_entries(sample_entries(), kSample, sample_text, is_comment);
}

TEST_CASE("config: the manual page says of each key what its row says") {
  check_entries(manual_entries(), kManual, manual_text, is_unset);
}

TEST_CASE("config: the manual page and the sample have the same values") {
  const Entries sample = sample_entries();
  for (const auto& entry : manual_entries()) {
    const auto found = sample.find(entry.first);
    if (found == sample.end()) continue;  // told above
    CHECK_MESSAGE(entry.second.value == found->second.value, entry.first);
  }
}

TEST_CASE("config: the sample is a configuration, and its examples are accepted") {
  const auto config = load_config(kSample);
  REQUIRE_MESSAGE(config, (config ? "" : config.error().message));
  CHECK(config->feeds.size() == 1);
  const std::string table = "feed.plan.";
  for (const auto& entry : sample_entries()) {
    if (!entry.second.example || !entry.first.starts_with(table)) continue;
    CAPTURE(entry.first);
    // Alone it may lack a companion, but its own value is one that is accepted.
    const std::string fault =
        plan_fault(entry.first.substr(table.size()) + " = " + entry.second.value);
    if (!fault.empty()) CHECK(fault.starts_with("x.toml:4:1: feed.plan: "));
  }
}

TEST_CASE("config: the sample's live feed is one when it is no comment") {
  std::string text;
  bool live = false;
  for (const std::string& line : lines_of(kSample)) {
    live |= line == kLiveFeed;
    const bool commented = line.starts_with("# ") && (std::regex_match(line, kSampleHeader) ||
                                                      std::regex_match(line, kSampleKey));
    if (!live || !commented) continue;
    // Alone it has no effect, and is refused.
    if (line.starts_with("# fresh_share")) continue;
    // The sample's fields do not name what is joined.
    if (line.starts_with("# join")) continue;
    text += line.substr(2) + "\n";
  }
  const Config config = parsed(text);
  REQUIRE(config.feeds.size() == 1);
  CHECK(config.feeds[0].dataset.empty());
  REQUIRE(config.feeds[0].served.live);
  CHECK(config.feeds[0].served.live->schema.fields.size() == 2);
}

TEST_CASE("config: the manual page names what a reload takes up at once") {
  // What a key file contains is read again, the key itself is not.
  std::set<std::string> wanted{"authorized_keys_file"};
  for (const ConfigKey& key : config_keys()) {
    if (key.row.applies == Applies::in_place) wanted.emplace(key.row.name);
  }
  std::set<std::string> named;
  std::string section;
  const std::regex variable(R"(^\.Va ([a-z_]+).*$)");
  for (const std::string& line : lines_of(kManual)) {
    std::smatch match;
    if (line.starts_with(".Sh ")) section = line.substr(4);
    if (section == "RELOAD" && std::regex_match(line, match, variable)) named.insert(match[1]);
  }
  for (const std::string& name : wanted) {
    CHECK_MESSAGE(named.contains(name), "RELOAD lacks: .Va ", name);
  }
  for (const std::string& name : named) {
    CHECK_MESSAGE(wanted.contains(name), "RELOAD has, and it does not change at once: ", name);
  }
}
