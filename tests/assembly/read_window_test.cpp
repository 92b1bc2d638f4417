#include "daemon/assembly/disk/read_window.h"

#include <doctest/doctest.h>

using namespace batchwright;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMiB = 1 << 20;

/// A disk that answers each read after `latency`, as many at once as are under way, up to a rate.
struct Disk {
  ReadWindow::Duration latency;
  double bytes_per_second;
};

/// Keeps the window full with reads of 256 KiB for so long.
void read_from(const Disk& disk, ReadWindow& window, ReadWindow::Time& now,
               ReadWindow::Duration span) {
  constexpr std::size_t kRead = 256 << 10;
  const auto end = now + span;
  while (now < end) {
    std::size_t reads = 0;
    for (; window.has_room(kRead); ++reads) window.began(kRead, now);
    window.was_full();
    const std::chrono::duration<double> transfer(static_cast<double>(reads * kRead) /
                                                 disk.bytes_per_second);
    now += std::max(disk.latency, std::chrono::duration_cast<ReadWindow::Duration>(transfer));
    for (; reads > 0; --reads) window.done(kRead, disk.latency, true, now);
  }
}

ReadWindow window_of(const Disk& disk) {
  ReadWindow window;
  ReadWindow::Time now{};
  read_from(disk, window, now, 5s);
  return window;
}

}  // namespace

TEST_CASE("assembly: nothing is known of a disk at first, and one read may always go out") {
  ReadWindow window;
  CHECK(window.bytes() == ReadWindow::kLeastBytes);
  CHECK(window.bytes_per_second() == 0.0);
  CHECK(window.latency() == 0s);
  CHECK(window.has_room(100 * kMiB));
  window.began(100 * kMiB, {});
  CHECK_FALSE(window.has_room(1));
}

TEST_CASE("assembly: a quick disk gets the least window, one far away what its latency takes") {
  CHECK(window_of({100us, 1e9}).bytes() == ReadWindow::kLeastBytes);
  // 1 GB/s over 5 ms are 5 MB; the window is kGain times as much.
  const ReadWindow far = window_of({5ms, 1e9});
  CHECK(far.latency() == 5ms);
  CHECK(far.bytes_per_second() == doctest::Approx(1e9).epsilon(0.1));
  CHECK(far.bytes() > 15 * kMiB);
  CHECK(far.bytes() < 25 * kMiB);
}

TEST_CASE("assembly: the window ends somewhere") {
  CHECK(window_of({1s, 1e11}).bytes() == ReadWindow::kMostBytes);
}

TEST_CASE("assembly: a disk that becomes slower gets a smaller window") {
  ReadWindow window;
  ReadWindow::Time now{};
  read_from({5ms, 2e9}, window, now, 5s);
  const std::size_t before = window.bytes();
  read_from({5ms, 5e8}, window, now, 60s);
  CHECK(window.bytes() < before / 2);
}

TEST_CASE("assembly: what was in memory already says nothing of the disk") {
  ReadWindow window;
  ReadWindow::Time now{};
  for (int i = 0; i < 1000; ++i) {
    window.began(kMiB, now);
    now += 1ms;
    window.done(kMiB, 1ms, false, now);
  }
  CHECK(window.under_way() == 0);
  CHECK(window.bytes_per_second() == 0.0);
}

TEST_CASE("assembly: a span in which little was asked for does not lower the rate") {
  ReadWindow window;
  ReadWindow::Time now{};
  read_from({1ms, 1e9}, window, now, 1s);
  const double before = window.bytes_per_second();
  for (int i = 0; i < 1000; ++i) {
    window.began(4096, now);
    now += 1ms;
    window.done(4096, 1ms, true, now);
  }
  CHECK(window.bytes_per_second() >= before);
}
