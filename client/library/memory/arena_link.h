#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "client/library/deadline.h"
#include "client/library/fork_guard.h"
#include "client/library/memory/arenas.h"
#include "client/library/memory/mapping.h"
#include "formats/formats.h"

namespace batchwright {

/// The Unix stream socket on which the daemon hands over arenas. Layout of request and reply:
/// formats/PROTOCOL.md.
class ArenaLink final : public ArenaSource {
 public:
  /// Connects, and binds the connection to the session.
  /// Errors: timed_out, io_error, disconnected, malformed_message, what the daemon refuses with.
  static Result<std::unique_ptr<ArenaLink>> open(const std::string& path, SessionId session,
                                                 const Deadline& deadline);

  ArenaLink(Descriptor socket, SessionId session)
      : socket_(std::move(socket)), guard_(socket_.get()), session_(session) {}

  Result<std::shared_ptr<const Mapping>> fetch(ArenaNumber arena,
                                               const Deadline& deadline) override;
  Result<std::shared_ptr<const Area>> fetch_area(ArenaNumber area,
                                                 const Deadline& deadline) override;
  bool alive() const override;
  int descriptor() const override { return socket_.get(); }

 private:
  struct Answer {
    ArenaReply reply;
    Descriptor arena;
  };
  Result<Answer> ask(ArenaNumber arena, const Deadline& deadline);
  Result<Answer> ask_for_descriptor(ArenaNumber arena, const Deadline& deadline);
  Result<void> send_request(ArenaNumber arena, const Deadline& deadline);
  Result<void> receive(const Deadline& deadline);
  bool wait_for(short event, const Deadline& deadline) const;

  Descriptor socket_;
  ForkGuard guard_;
  SessionId session_;
  std::optional<ArenaNumber> asked_;  ///< What the next answer is about; empty: none is due.
  Answer answer_;                     ///< As far as it has come.
  std::size_t have_ = 0;              ///< Its bytes.
};

}  // namespace batchwright
