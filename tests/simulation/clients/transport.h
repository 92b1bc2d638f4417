#pragma once

#include <memory>
#include <string>
#include <utility>

#include "client/library/link/transport.h"
#include "tests/simulation/world/network.h"

namespace batchwright::simulation {

/// What a session takes from the machine, in virtual time.
class VirtualTransport final : public Transport {
 public:
  VirtualTransport(Network& network, Onlooker& onlooker, std::shared_ptr<Process> process)
      : network_(network), onlooker_(onlooker), process_(std::move(process)) {
    virtual_time_ = process_->world().clock();
  }

  std::uint64_t draw_token() override { return process_->world().dice.bits() | 1U; }
  Result<std::unique_ptr<DaemonSocket>> connect(const Address& address) override;
  Result<std::shared_ptr<ArenaSource>> open_arenas(const std::string& path, SessionId session,
                                                   const Deadline& deadline) override;
  Result<void> wait(DaemonSocket* socket, const ArenaSource* arenas,
                    std::chrono::milliseconds limit) override;
  void wake() override { process_->wake(); }

 private:
  Network& network_;
  Onlooker& onlooker_;
  const std::shared_ptr<Process> process_;
};

}  // namespace batchwright::simulation
