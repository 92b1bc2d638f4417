#include "client/library/link/host_lookup.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "client/library/held_back_signals.h"

namespace batchwright {
namespace {

constexpr std::string_view kTcpScheme = "tcp://";
constexpr std::chrono::milliseconds kAtHand{10};

/// The address of a host, or why it has none, as IPv4: addresses of IPv6 are written out.
std::pair<std::string, std::string> resolve(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
  if (code == EAI_SYSTEM) return {"", std::strerror(errno)};
  if (code != 0) return {"", ::gai_strerror(code)};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::array<char, INET_ADDRSTRLEN> text{};
  const auto* address = reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  if (::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) == nullptr) {
    return {"", std::strerror(errno)};
  }
  return {text.data(), ""};
}

}  // namespace

/// Shared with the thread that asks, which may outlive its caller.
struct HostLookup::Answer {
  Mutex mutex;
  Condition came;
  bool is_there GUARDED_BY(mutex) = false;
  std::string address GUARDED_BY(mutex);
  std::string trouble GUARDED_BY(mutex);
};

HostLookup::HostLookup(std::string endpoint) : endpoint_(std::move(endpoint)) {
  if (!endpoint_.starts_with(kTcpScheme)) return;
  const std::size_t colon = endpoint_.rfind(':');
  const std::string host = endpoint_.substr(kTcpScheme.size(), colon - kTcpScheme.size());
  in_addr address{};
  // Brackets are around IPv6; a semicolon is behind an address of this side, which is libzmq's own
  // affair.
  if (colon < kTcpScheme.size() || host.find_first_of("[];*") != host.npos) return;
  if (::inet_pton(AF_INET, host.c_str(), &address) == 1) return;
  host_ = host;
  port_ = endpoint_.substr(colon);
}

Result<std::optional<std::string>> HostLookup::address(Clock::time_point now) {
  if (!answer_ || (has_failed() && now - asked_ >= kPause)) {
    auto answer = std::make_shared<Answer>();
    const HeldBackSignals signals;
    auto thread = start_thread(nullptr, [answer, host = host_](const auto&) {
      auto [address, trouble] = resolve(host);
      const MutexLock lock(answer->mutex);
      answer->is_there = true;
      answer->address = std::move(address);
      answer->trouble = std::move(trouble);
      answer->came.notify_all();
    });
    if (!thread) return Error{ErrorCode::io_error, "no thread is left to look up a name"};
    thread->detach();  // nothing ends a lookup; what it touches is its own
    answer_ = std::move(answer);
    asked_ = now;
  }
  MutexLock lock(answer_->mutex);
  const bool came = answer_->came.wait_for(
      lock, kAtHand, [this]() REQUIRES(answer_->mutex) { return answer_->is_there; });
  if (!came || answer_->address.empty()) return std::optional<std::string>();
  return std::optional(fmt::format("{}{}{}", kTcpScheme, answer_->address, port_));
}

bool HostLookup::has_failed() const {
  const MutexLock lock(answer_->mutex);
  return answer_->is_there && answer_->address.empty();
}

bool HostLookup::forget_stale(Clock::time_point now) {
  if (!is_needed() || !answer_ || now - asked_ < kFresh) return false;
  answer_.reset();
  return true;
}

std::string HostLookup::trouble() const {
  if (!is_needed() || !answer_) return "";
  const MutexLock lock(answer_->mutex);
  if (!answer_->is_there) return fmt::format("the host {} is being looked up", host_);
  if (!answer_->address.empty()) return "";
  return fmt::format("the host {} is not known ({})", host_, answer_->trouble);
}

}  // namespace batchwright
