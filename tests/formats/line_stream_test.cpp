#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "formats/formats.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;

namespace {

/// A stream with few bytes of room, and its reader.
struct Stream {
  Descriptor reader;
  Descriptor writer;
};

Stream make_pipe() {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  ::fcntl(ends[1], F_SETPIPE_SZ, 4096);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Stream make_socket() {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const int bytes = 4096;
  ::setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::string line_of(int number) { return std::to_string(number) + std::string(92, '.') + "\n"; }

/// Reads until the lines end with this one.
std::string read_until(int descriptor, const std::string& last) {
  std::string text;
  std::array<char, 1024> piece{};
  while (!text.ends_with(last)) {
    const ssize_t got = ::read(descriptor, piece.data(), piece.size());
    REQUIRE(got > 0);
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

void check_order(const std::string& text, int from, int to) {
  std::string expected;
  for (int i = from; i < to; ++i) expected += line_of(i);
  CHECK(text == expected);
}

constexpr int kMany = 1000;     // more than a pipe or a socket of this size has room for
constexpr int kTooMany = 5000;  // more than the queue has, too

}  // namespace

TEST_CASE("formats: lines that are not read wait in a queue, and come in order") {
  const Stream stream = make_pipe();
  LineStream lines(stream.writer.get());
  for (int i = 0; i < kMany; ++i) lines.write(line_of(i));
  CHECK(lines.dropped() == 0);
  check_order(read_until(stream.reader.get(), line_of(kMany - 1)), 0, kMany);
  // Nothing is in the way of the next.
  lines.write(line_of(kMany));
  check_order(read_until(stream.reader.get(), line_of(kMany)), kMany, kMany + 1);
}

TEST_CASE("formats: a socket is not waited for either") {
  const Stream stream = make_socket();
  LineStream lines(stream.writer.get());
  for (int i = 0; i < kMany; ++i) lines.write(line_of(i));
  check_order(read_until(stream.reader.get(), line_of(kMany - 1)), 0, kMany);
}

TEST_CASE("formats: beyond the queue lines are dropped and counted, and told of with the next") {
  const Stream stream = make_pipe();
  LineStream lines(stream.writer.get());
  std::atomic<std::uint64_t> told = 0;
  lines.on_room([&told](std::uint64_t count) { told = count; });
  for (int i = 0; i < kTooMany; ++i) lines.write(line_of(i));
  const std::uint64_t dropped = lines.dropped();
  CHECK(dropped > 0);
  CHECK(told == 0);
  const int kept = kTooMany - static_cast<int>(dropped);
  check_order(read_until(stream.reader.get(), line_of(kept - 1)), 0, kept);
  while (told == 0) std::this_thread::yield();
  CHECK(told == dropped);
  lines.on_room(nullptr);
}

TEST_CASE("formats: a reader that has left costs the lines, and no signal") {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  Stream stream = make_pipe();
  {
    LineStream lines(stream.writer.get());
    for (int i = 0; i < kMany; ++i) lines.write(line_of(i));
    stream.reader = Descriptor();
    while (lines.dropped() == 0) lines.write(line_of(kMany));
    const std::uint64_t dropped = lines.dropped();
    while (lines.dropped() == dropped) lines.write(line_of(kMany));
  }
  ::signal(SIGPIPE, before);
}

TEST_CASE("formats: the stream's flags, which others share, stay as they are") {
  const Stream stream = make_pipe();
  const int before = ::fcntl(stream.writer.get(), F_GETFL);
  LineStream lines(stream.writer.get());
  for (int i = 0; i < kMany; ++i) lines.write(line_of(i));
  CHECK(::fcntl(stream.writer.get(), F_GETFL) == before);
}

TEST_CASE("formats: a stream ends though no one reads what is left") {
  const Stream stream = make_pipe();
  const auto begin = std::chrono::steady_clock::now();
  {
    LineStream lines(stream.writer.get());
    for (int i = 0; i < kMany; ++i) lines.write(line_of(i));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}

TEST_CASE("formats: what is left is written at the end, if somebody reads") {
  const Stream stream = make_pipe();
  std::string text;
  std::thread reader([&] { text = read_until(stream.reader.get(), line_of(kMany - 1)); });
  {
    LineStream lines(stream.writer.get());
    for (int i = 0; i < kMany; ++i) lines.write(line_of(i));
  }
  reader.join();
  check_order(text, 0, kMany);
}

TEST_CASE("formats: lines for a file come after what is there") {
  const test::TemporaryFolder folder;
  const Descriptor file(
      ::open((folder / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  REQUIRE(::write(file.get(), "before\n", 7) == 7);
  LineStream lines(file.get());
  lines.write("after\n");
  CHECK(file_text(folder / "log").value_or("") == "before\nafter\n");
}
