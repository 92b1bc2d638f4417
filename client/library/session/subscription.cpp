#include "client/library/session/subscription.h"

#include <utility>

namespace batchwright {
namespace {

/// A subscription to one daemon. The session sees to it that one thread at a time is in next().
class SingleSubscription final : public Subscription {
 public:
  SingleSubscription(std::shared_ptr<Session> session, std::shared_ptr<Lane> lane)
      : session_(std::move(session)),
        lane_(std::move(lane)),
        grant_(lane_->grant()),
        terms_(lane_->progress().terms()) {}
  ~SingleSubscription() override { session_->unsubscribe(*lane_); }

  Result<Session::Event> next(const Deadline& deadline) override {
    return session_->next(lane_, deadline);
  }
  bool forked() const override { return session_->forked(); }
  const Grant& grant() const override { return grant_; }
  const std::string& terms() const override { return terms_; }
  Position position() const override { return lane_->progress().position(); }
  std::uint64_t steps() const override { return lane_->progress().steps(); }

 private:
  const std::shared_ptr<Session> session_;
  const std::shared_ptr<Lane> lane_;
  const Grant grant_;
  const std::string terms_;
};

}  // namespace

Result<std::unique_ptr<Subscription>> Subscription::subscribe(const Sessions& sessions,
                                                              wire::SubscribeT request,
                                                              bool writable) {
  if (sessions.size() != 1) return merge(sessions, request, writable);
  auto lane = sessions.front()->subscribe(std::move(request), writable);
  if (!lane) return lane.error();
  return std::unique_ptr<Subscription>(
      std::make_unique<SingleSubscription>(sessions.front(), std::move(*lane)));
}

}  // namespace batchwright
