#include "client/library/session/subscription.h"

#include <utility>

namespace batchwright {
namespace {

/// A subscription to one daemon. The session sees to it that one thread at a time is in next().
class SingleSubscription final : public Subscription {
 public:
  SingleSubscription(std::shared_ptr<Session> session, std::shared_ptr<ClientSubscription> inner)
      : session_(std::move(session)),
        inner_(std::move(inner)),
        grant_(inner_->grant()),
        terms_(inner_->expected().terms()) {}
  ~SingleSubscription() override { session_->unsubscribe(*inner_); }

  Result<Session::Event> next(std::chrono::milliseconds limit) override {
    return session_->next(inner_, session_->after(limit));
  }
  Result<Session::Upcoming> upcoming(std::uint32_t count,
                                     std::chrono::milliseconds limit) override {
    return session_->upcoming(*inner_, count, session_->after(limit));
  }
  bool forked() const override { return session_->link().forked(); }
  const Grant& grant() const override { return grant_; }
  const std::string& terms() const override { return terms_; }
  Position position() const override { return inner_->expected().position(); }
  std::uint64_t steps() const override { return inner_->expected().steps(); }

 private:
  const std::shared_ptr<Session> session_;
  const std::shared_ptr<ClientSubscription> inner_;
  const Grant grant_;
  const std::string terms_;
};

}  // namespace

Result<std::unique_ptr<Subscription>> Subscription::subscribe(const Sessions& sessions,
                                                              wire::SubscribeT request,
                                                              bool writable) {
  if (sessions.size() != 1) return merge(sessions, request, writable);
  auto inner = sessions.front()->subscribe(std::move(request), writable);
  if (!inner) return inner.error();
  return std::unique_ptr<Subscription>(
      std::make_unique<SingleSubscription>(sessions.front(), std::move(*inner)));
}

}  // namespace batchwright
