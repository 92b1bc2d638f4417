#include "daemon/delivery/wire/zap_authenticator.h"

#include <string_view>
#include <utility>

namespace batchwright {
namespace {

// Frames of a question: version, request, domain, address, routing id, mechanism, credentials.
constexpr std::size_t kRequest = 1;
constexpr std::size_t kAddress = 3;
constexpr std::size_t kMechanism = 5;
constexpr std::size_t kCredentials = 6;
constexpr std::size_t kFrames = 7;

std::string_view text_of(std::span<const std::byte> frame) {
  return {reinterpret_cast<const char*>(frame.data()), frame.size()};
}

SocketOptions reply_socket() {
  SocketOptions options;
  options.kind = SocketOptions::Kind::reply;
  return options;
}

}  // namespace

ZapAuthenticator::ZapAuthenticator(boost::asio::io_context& loop, SocketThreads& threads,
                                   EventLog& log, std::set<std::string> authorized)
    : authorized_(std::move(authorized)),
      log_(log),
      socket_(loop, threads, reply_socket(),
              [this](const IncomingMessage& question) { answer(question); }) {}

Result<void> ZapAuthenticator::open() {
  if (auto bound = socket_.bind("inproc://zeromq.zap.01"); !bound) return bound.error();
  return {};
}

void ZapAuthenticator::answer(const IncomingMessage& question) {
  using namespace std::string_view_literals;
  const bool welcome = admits(question);
  const std::span<const std::byte> none;
  const auto request = question.frames.size() > kRequest ? question.frames[kRequest] : none;
  const auto sent = socket_.send({bytes_of("1.0"sv), request, bytes_of(welcome ? "200"sv : "400"sv),
                                  bytes_of(welcome ? ""sv : "unknown key"sv), none, none});
  if (!sent) log_.note<Event::gatekeeper_failed>(sent.error().message);
}

bool ZapAuthenticator::admits(const IncomingMessage& question) {
  const auto& frames = question.frames;
  std::string key = "no CURVE key";
  if (frames.size() == kFrames && text_of(frames[kMechanism]) == "CURVE") {
    key = key_text(frames[kCredentials]);
    if (authorized_.contains(key)) return true;
  }
  log_.note<Event::key_refused>(frames.size() > kAddress ? text_of(frames[kAddress]) : "?", key);
  return false;
}

}  // namespace batchwright
