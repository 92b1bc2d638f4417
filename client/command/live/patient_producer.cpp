#include "client/command/live/patient_producer.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/command/exit_code.h"
#include "client/command/watch/feeds.h"

namespace batchwright {
namespace {

using Clock = std::chrono::steady_clock;

/// How often a call that waits looks up, for Ctrl-C.
constexpr std::int64_t kSliceMs = 100;
/// A wait has no end of its own: a trainer may stand still for a weekend.
constexpr std::int64_t kLongMs = std::int64_t{30} * 24 * 3600 * 1000;
/// A wait that is longer is told.
constexpr std::chrono::seconds kTold{5};
/// Looks once.
constexpr std::int64_t kLookMs = 0;

}  // namespace

PatientProducer::PatientProducer(const client::Connection& connection, const std::string& feed,
                                 const std::string& name, const Interrupt& interrupt)
    : connection_(&connection), interrupt_(&interrupt), feed_name_(feed) {
  bw_produce_options options = BW_PRODUCE_OPTIONS_INIT;
  options.feed = feed.c_str();
  options.name = name.empty() ? nullptr : name.c_str();
  options.slice_ms = kSliceMs;
  bw_producer* raw = nullptr;
  client::check(bw_produce(connection.raw(), &options, &raw));
  raw_.reset(raw);
  feed_ = &feed_named(connection, feed);
  first_incarnation_ = info().incarnation;
  known_version_ = info().version;
}

bw_producer_info PatientProducer::info() const {
  bw_producer_info info{};
  info.struct_size = sizeof info;
  client::check(bw_producer_get_info(raw_.get(), &info));
  return info;
}

/// Calls until the library has an answer, or the user has had enough.
template <class Call>
bw_status PatientProducer::repeat(const Call& call, const char* what) {
  const auto start = Clock::now();
  bool is_told = false;
  while (true) {
    const bw_status status = call();
    if (status != BW_PENDING) return status;
    if (interrupt_->came()) {
      client::check(bw_producer_forget(raw_.get()));
      return BW_PENDING;
    }
    if (!is_told && Clock::now() - start > kTold) {
      is_told = true;
      warn(fmt::format("feed \"{}\": {}; waiting", feed_name_, what));
    }
  }
}

PatientProducer::Outcome PatientProducer::claim(std::uint32_t count, std::uint64_t& version) {
  const auto call = [&] { return bw_claim(raw_.get(), count, kLongMs, &version); };
  const bw_status status = client::check(
      repeat(call,
             "no more may be pushed yet: the trainer has not begun or is behind, or its "
             "daemon is away"));
  if (status == BW_PENDING) return Outcome::interrupted;
  if (status == BW_END) return Outcome::ended;
  known_version_ = version;
  return Outcome::done;
}

PatientProducer::Outcome PatientProducer::push(const Sequences& what) {
  std::size_t done = 0;
  while (done < what.sequences.size()) {
    const std::uint64_t incarnation = info().incarnation;
    const auto sequences = what.sequences.subspan(done);
    std::vector<bw_origin> origins(what.origins.begin() + static_cast<std::ptrdiff_t>(done),
                                   what.origins.end());
    fill_in_newest(origins);
    std::size_t taken = 0;
    const auto call = [&] {
      return bw_push_many(raw_.get(), sequences.data(), sequences.size(), origins.data(), kLongMs,
                          &taken);
    };
    const bw_status status =
        repeat(call, "it takes no more for now: its pool is full, or its daemon is away");
    done += taken;
    accepted_ += taken;
    if (status == BW_PENDING) return Outcome::interrupted;
    if (status == BW_END) return Outcome::ended;
    // A daemon that is new knows no version that the last one knew.
    const bool is_new = info().incarnation != incarnation;
    if (status == BW_INVALID_ARGUMENT && is_new) {
      known_version_ = info().version;
      continue;
    }
    client::check(status);
  }
  return Outcome::done;
}

/// The daemon is asked once for all; where it does not answer, the last known version will do.
void PatientProducer::fill_in_newest(std::span<bw_origin> origins) {
  const auto wants = [](const bw_origin& origin) { return origin.version == kNewestVersion; };
  if (std::none_of(origins.begin(), origins.end(), wants)) return;
  std::uint64_t version = 0;
  const bw_status status =
      bw_wait_version(connection_->raw(), feed_name_.c_str(), known_version_, kLookMs, &version);
  if (status == BW_OK) known_version_ = version;
  for (bw_origin& origin : origins) {
    if (wants(origin)) origin.version = known_version_;
  }
}

}  // namespace batchwright
