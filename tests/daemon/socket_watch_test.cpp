#include "daemon/socket_watch.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// Runs the loop until something has changed.
std::vector<std::string> next_change(boost::asio::io_context& loop,
                                     std::vector<std::vector<std::string>>& changes) {
  changes.clear();
  while (changes.empty()) loop.run_one();
  return changes.front();
}

}  // namespace

TEST_CASE("daemon: a socket that somebody removes or replaces is noticed, once") {
  const TemporaryFolder folder;
  const std::string a = (folder / "a").string();
  const std::string b = (folder / "b").string();
  const std::string never = (folder / "never").string();
  for (const std::string& path : {a, b}) std::ofstream(path) << "x";
  boost::asio::io_context loop;
  std::vector<std::vector<std::string>> changes;
  const SocketWatch watch(
      loop, {a, b, never}, [&](const std::vector<std::string>& gone) { changes.push_back(gone); },
      std::chrono::milliseconds(5));
  CHECK(watch.gone().empty());
  std::filesystem::remove(a);
  CHECK(next_change(loop, changes) == std::vector<std::string>{a});
  CHECK(watch.gone() == std::vector<std::string>{a});
  std::ofstream(folder / "c") << "another";
  std::filesystem::rename(folder / "c", b);
  CHECK(next_change(loop, changes) == std::vector<std::string>{b});
  CHECK(watch.gone() == std::vector<std::string>{a, b});
}
