#include <fmt/format.h>

#include <bit>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <string_view>

#include "client/command/live/patient_producer.h"
#include "client/command/live/push_source.h"
#include "client/command/watch/feeds.h"

namespace batchwright {
namespace {

namespace json = boost::json;

std::uint32_t float_bits(double value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

/// Reads the value of one field, element after element.
class ValueReader {
 public:
  explicit ValueReader(const bw_field& field) : field_(field) {}

  /// `length` is set to that of the value, in frames. False: error() says why.
  bool read(const json::value& value, std::vector<std::byte>& out, std::uint32_t& length) {
    out_ = &out;
    if (field_.kind == BW_SCALAR) {
      length = 1;
      return element(value, "");
    }
    if (!value.is_array() || value.get_array().size() > std::numeric_limits<std::uint32_t>::max()) {
      return fail("", value, "a list of frames");
    }
    length = static_cast<std::uint32_t>(value.get_array().size());
    for (std::size_t i = 0; i < length; ++i) {
      if (!frame(value.get_array()[i], 0, fmt::format("[{}]", i))) return false;
    }
    return true;
  }
  const std::string& error() const { return error_; }

 private:
  bool frame(const json::value& value, std::uint32_t depth, const std::string& place) {
    if (depth == field_.ndim) return element(value, place);
    const std::uint64_t wanted = field_.shape[depth];
    if (!value.is_array() || value.get_array().size() != wanted) {
      return fail(place, value, fmt::format("a list of {}", wanted));
    }
    for (std::size_t i = 0; i < wanted; ++i) {
      const json::value& inner = value.get_array()[i];
      // A place is written only where one is needed: a step down, or an error.
      if (depth + 1 == field_.ndim ? !element(inner, place, i)
                                   : !frame(inner, depth + 1, fmt::format("{}[{}]", place, i))) {
        return false;
      }
    }
    return true;
  }
  bool element(const json::value& value, const std::string& place, std::size_t i) {
    return element(value, place) || fail(fmt::format("{}[{}]", place, i), value, allowed());
  }
  bool element(const json::value& value, const std::string& place) {
    switch (field_.dtype) {
      case BW_FLOAT32: return real(value, place, [](double x) { return static_cast<float>(x); });
      case BW_FLOAT16:
        return real(value, place, [](double x) { return to_float16(float_bits(x)); });
      case BW_BFLOAT16:
        return real(value, place, [](double x) { return to_bfloat16(float_bits(x)); });
      case BW_INT64: return whole<std::int64_t>(value, place);
      case BW_INT32: return whole<std::int32_t>(value, place);
      case BW_INT16: return whole<std::int16_t>(value, place);
      case BW_UINT8: return whole<std::uint8_t>(value, place);
      default: return fail(place, value, "nothing: the field's type is not known here");
    }
  }
  template <class Convert>
  bool real(const json::value& value, const std::string& place, const Convert& convert) {
    if (!value.is_number()) return fail(place, value, allowed());
    append(convert(value.to_number<double>()));
    return true;
  }
  template <class Whole>
  bool whole(const json::value& value, const std::string& place) {
    json::error_code failed;
    const auto number = value.to_number<Whole>(failed);
    if (failed) return fail(place, value, allowed());
    append(number);
    return true;
  }
  template <class Element>
  void append(Element element) {
    const auto bytes = std::as_bytes(std::span(&element, 1));
    out_->insert(out_->end(), bytes.begin(), bytes.end());
  }
  std::string allowed() const {
    return fmt::format("a number that {} can hold", bw_dtype_name(field_.dtype));
  }
  bool fail(const std::string& place, const json::value& value, const std::string& wanted) {
    error_ = fmt::format("{}{} = {}; allowed: {}", field_.name, place,
                         shortened(json::serialize(value)), wanted);
    return false;
  }

  const bw_field& field_;
  std::vector<std::byte>* out_ = nullptr;
  std::string error_;
};

class LinesToPush final : public PushSource {
 public:
  LinesToPush(std::string name, const bw_feed& feed) : name_(std::move(name)), feed_(feed) {}

  bool open() {
    if (name_ == "-") return true;
    file_.open(name_);
    return file_.is_open();
  }

  Result<std::optional<SequenceToPush>> next(std::uint64_t from) override {
    std::istream& in = name_ == "-" ? std::cin : file_;
    for (std::string text; std::getline(in, text);) {
      ++line_;
      if (text.find_first_not_of(" \t\r") == text.npos) continue;
      json::error_code failed;
      const json::value line = json::parse(text, failed);
      if (failed) return fail(failed.message());
      if (!line.is_object())
        return fail(fmt::format("found {}; allowed: an object", shortened(json::serialize(line))));
      if (auto counted = count(line.get_object()); !counted) return counted.error();
      if (number_ < from) continue;
      return sequence(line.get_object());
    }
    if (in.bad()) return fail("the rest cannot be read");
    return std::optional<SequenceToPush>();
  }
  std::optional<std::uint64_t> total() const override { return std::nullopt; }

 private:
  Error fail(const std::string& what) const {
    return {ErrorCode::invalid_argument,
            fmt::format("{}:{}: {}", name_ == "-" ? "standard input" : name_, line_, what)};
  }

  /// The number of this line. Numbers have no gaps; the first may be any.
  Result<void> count(const json::object& line) {
    const std::uint64_t counted = is_first_ ? 0 : number_ + 1;
    const auto given = whole(line, "number", counted);
    if (!given) return given.error();
    if (!is_first_ && *given != counted) {
      return fail(
          fmt::format("number = {}; allowed: {}, since numbers count sequences", *given, counted));
    }
    is_first_ = false;
    number_ = *given;
    return {};
  }

  Result<std::uint64_t> whole(const json::object& line, std::string_view member,
                              std::uint64_t otherwise) const {
    const json::value* const found = line.if_contains(member);
    if (found == nullptr || found->is_null()) return otherwise;
    json::error_code failed;
    const auto value = found->to_number<std::uint64_t>(failed);
    if (failed || value > BW_LAST_VERSION) {
      return fail(fmt::format("{} = {}; allowed: a whole number from 0 to 2^62", member,
                              shortened(json::serialize(*found))));
    }
    return value;
  }

  Result<std::optional<SequenceToPush>> sequence(const json::object& line) const {
    SequenceToPush sequence;
    sequence.number = number_;
    if (auto read = read_origin(line, sequence); !read) return read.error();
    for (std::size_t i = 0; i < feed_.pushed_count; ++i) {
      const bw_field& field = *feed_.fields[i];
      const json::value* const value = line.if_contains(field.name);
      if (value == nullptr) {
        return fail(fmt::format("no \"{}\"; feed \"{}\" takes {}", field.name, feed_.name,
                                field_text(field)));
      }
      ValueReader reader(field);
      if (!reader.read(*value, sequence.values.emplace_back(), sequence.lengths.emplace_back())) {
        return fail(reader.error());
      }
    }
    if (auto known = check_members(line); !known) return known.error();
    return std::optional(std::move(sequence));
  }

  Result<void> read_origin(const json::object& line, SequenceToPush& sequence) const {
    bw_origin& origin = sequence.origin;
    const auto version = whole(line, "version", kNewestVersion);
    const auto newest = whole(line, "version_newest", 0);
    const auto group = whole(line, "group", BW_NO_GROUP);
    const auto size = whole(line, "group_size", 0);
    for (const auto* const each : {&version, &newest, &group, &size}) {
      if (!*each) return each->error();
    }
    if (*size > std::numeric_limits<std::uint32_t>::max()) return fail("group_size is above 2^32");
    origin.version = *version;
    origin.version_newest = *newest;
    origin.group = *group;
    origin.group_size = static_cast<std::uint32_t>(*size);
    if (const json::value* const weight = line.if_contains("weight")) {
      if (!weight->is_number()) {
        return fail(
            fmt::format("weight = {}; allowed: a number", shortened(json::serialize(*weight))));
      }
      origin.weight = weight->to_number<float>();
    }
    if (auto row = read_row(line, sequence); !row) return row.error();
    const json::value* const key = line.if_contains("key");
    if (key == nullptr || key->is_null()) return {};
    if (!key->is_string())
      return fail(fmt::format("key = {}; allowed: a text", shortened(json::serialize(*key))));
    sequence.key = key->get_string();
    return {};
  }

  /// What it names of a row, where the feed joins rows.
  Result<void> read_row(const json::object& line, SequenceToPush& sequence) const {
    const json::value* const of = line.if_contains("of");
    if (of == nullptr || of->is_null()) return {};
    const auto wrong = [&] {
      return fail(
          fmt::format("of = {}; allowed: an object of feed and fingerprint, texts, ordinal, "
                      "and where they are not 0 epoch, start and use",
                      shortened(json::serialize(*of))));
    };
    if (!of->is_object()) return wrong();
    const json::object& row = of->get_object();
    const json::value* const feed = row.if_contains("feed");
    const json::value* const fingerprint = row.if_contains("fingerprint");
    if (feed == nullptr || !feed->is_string() || feed->get_string().empty()) return wrong();
    if (fingerprint == nullptr || !fingerprint->is_string() ||
        bw_fingerprint_parse(fingerprint->get_string().c_str(), &sequence.row.fingerprint) !=
            BW_OK) {
      return wrong();
    }
    const auto epoch = whole(row, "epoch", 0), ordinal = whole(row, "ordinal", BW_NO_GROUP);
    const auto start = whole(row, "start", 0), use = whole(row, "use", 0);
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    if (!epoch || !ordinal || *ordinal == BW_NO_GROUP || !start || *start > kMost || !use ||
        *use > kMost) {
      return wrong();
    }
    sequence.row_feed = feed->get_string();
    sequence.row.epoch = *epoch;
    sequence.row.ordinal = *ordinal;
    sequence.row.start = static_cast<std::uint32_t>(*start);
    sequence.row.use = static_cast<std::uint32_t>(*use);
    return {};
  }

  /// A member that is misspelled would be left out in silence.
  Result<void> check_members(const json::object& line) const {
    for (const auto& member : line) {
      const std::string_view name = member.key();
      bool is_known = false;
      for (const std::string_view known :
           {"key", "number", "version", "version_newest", "group", "group_size", "weight", "of"}) {
        is_known = is_known || name == known;
      }
      for (std::size_t i = 0; i < feed_.pushed_count; ++i) {
        is_known = is_known || name == feed_.fields[i]->name;
      }
      if (!is_known) {
        return fail(
            fmt::format("\"{}\" is no field of feed \"{}\", and none of: key number "
                        "version version_newest group group_size weight of",
                        name, feed_.name));
      }
    }
    return {};
  }

  std::string name_;
  const bw_feed& feed_;
  std::ifstream file_;
  std::uint64_t line_ = 0;
  std::uint64_t number_ = 0;
  bool is_first_ = true;
};

}  // namespace

Result<std::unique_ptr<PushSource>> open_lines_to_push(const std::filesystem::path& path,
                                                       const bw_feed& feed) {
  auto lines = std::make_unique<LinesToPush>(path.string(), feed);
  if (!lines->open()) {
    return Error{ErrorCode::invalid_argument, fmt::format("{}: cannot be read", path.string())};
  }
  return std::unique_ptr<PushSource>(std::move(lines));
}

}  // namespace batchwright
