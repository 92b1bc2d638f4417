#include "daemon/delivery/wire/access.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>

#include <array>

namespace batchwright {
namespace {

std::optional<unsigned> take_number(std::string_view& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto number = parse_whole<unsigned>(text.substr(colon + 1));
  text = text.substr(0, colon);
  return number;
}

}  // namespace

std::optional<PeerCredentials> credentials_of(std::string_view peer_address) {
  std::string_view rest = peer_address;
  const auto pid = take_number(rest);
  const auto gid = pid ? take_number(rest) : std::nullopt;
  const auto uid = gid ? take_number(rest) : std::nullopt;
  if (!uid) return std::nullopt;
  return PeerCredentials{*uid, *gid};
}

std::optional<PeerCredentials> credentials_of(int socket) {
  ucred found{};
  socklen_t size = sizeof found;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &size) != 0) return std::nullopt;
  return PeerCredentials{found.uid, found.gid};
}

Result<void> AllowList::check(const std::optional<PeerCredentials>& peer) const {
  if (uids.empty() && gids.empty()) return {};
  if (peer && (uids.contains(peer->uid) || gids.contains(peer->gid))) return {};
  const std::string peer_name =
      peer ? fmt::format("uid {}, gid {}", peer->uid, peer->gid) : "an unknown user";
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} is not allowed to be a client; allowed: uids [{}], gids [{}]",
                           peer_name, fmt::join(uids, " "), fmt::join(gids, " "))};
}

}  // namespace batchwright
