#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/command/top/figures.h"
#include "client/command/top/keys.h"
#include "client/command/top/line.h"

using namespace batchwright;

namespace {

/// All that the keys mean in these bytes, after a pause.
std::vector<TopKey> keys_in(std::string_view bytes) {
  KeyReader reader;
  std::vector<TopKey> keys;
  for (const char byte : bytes) {  // a slow line: one byte at a time
    reader.add({&byte, 1});
    while (const auto key = reader.next()) keys.push_back(*key);
  }
  if (const auto key = reader.finish()) keys.push_back(*key);
  return keys;
}

}  // namespace

TEST_CASE("command: keys are found in what terminals send, byte by byte") {
  using K = TopKey;
  CHECK(keys_in("jkq?<>r\r") == std::vector<K>{K::down, K::up, K::quit, K::help, K::previous_column,
                                               K::next_column, K::reverse, K::open});
  CHECK(keys_in("\x1b[A\x1bOB\x1b[5~\x1b[6~") ==
        std::vector<K>{K::up, K::down, K::page_up, K::page_down});
  CHECK(keys_in("\x1b[H\x1b[4~\x1bOF\x1b[1~") == std::vector<K>{K::home, K::end, K::end, K::home});
  CHECK(keys_in("\x1b[1;5A\x1b[6;2~") == std::vector<K>{K::up, K::page_down});
  CHECK(keys_in("\x1b") == std::vector<K>{K::back});
  CHECK(keys_in("\x7f\x08") == std::vector<K>{K::back, K::back});
  CHECK(keys_in("\x1b\x1b[B") == std::vector<K>{K::back, K::down});
  CHECK(keys_in("x\xc3\xa9") == std::vector<K>{K::other, K::other, K::other});
  CHECK(keys_in("\x1b[") == std::vector<K>{K::other});
  CHECK(keys_in("\x1b[200~") == std::vector<K>{K::other});
  // What never ends is no key, and what follows is one.
  const auto flood = keys_in("\x1b[" + std::string(1000, '1') + "Aj");
  CHECK(flood.back() == K::down);
}

TEST_CASE("command: figures have three digits and a unit") {
  CHECK(count_text(0) == "0");
  CHECK(count_text(7.25) == "7.25");
  CHECK(count_text(999.6) == "1.00 k");
  CHECK(count_text(-1) == "0");
  CHECK(whole_text(999) == "999");
  CHECK(whole_text(1234567) == "1,234,567");
  CHECK(rate_text(41000) == "41.0 k/s");
  CHECK(memory_text(13107200) == "12.5 MiB");
  CHECK(seconds_text(std::nullopt) == "-");
  CHECK(seconds_text(0.00035) == "350 us");
  CHECK(seconds_text(0.9996) == "1.00 s");
  CHECK(seconds_text(250) == "4 min 10 s");
  CHECK(share_text(0.1254) == "12.5 %");
  CHECK(bar_text(0.5, 10) == "[####....]");
  CHECK(bar_text(7, 2).empty());
}

TEST_CASE("command: a line is cut where it is too long, also between characters of several bytes") {
  CHECK(cut_to("feeds", 5) == "feeds");
  CHECK(cut_to("feeds", 4) == "fee\u2026");
  CHECK(cut_to("a\u2013b\u2013c", 4) == "a\u2013b\u2026");
  CHECK(cut_to("feeds", 0).empty());
  CHECK(cut_within("corpus-10", 9) == "corpus-10");
  CHECK(cut_within("corpus-10", 8) == "corp\u2026-10");
  CHECK(cut_within("\u2013\u2013\u2013\u2013", 3) == "\u2013\u2026\u2013");
  CHECK(cut_within("corpus-10", 1) == "\u2026");
  CHECK(cut_within("corpus-10", 0).empty());
  CHECK(columns_of("a\u2013\u25bc") == 3);
  CHECK(in_ascii("a\u2013\u25bc\u25b2\u2026") == "a-v^~");
}
