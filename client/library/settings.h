#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace batchwright {

/// Keys of CURVE, each as Z85 text of 40 characters.
struct CurveKeys {
  std::string server;  ///< The daemon's public key.
  std::string own_public;
  std::string own_secret;
};

/// The settings of a connection, as plain values.
struct ConnectSettings {
  std::string program;
  std::chrono::milliseconds limit{10'000};      ///< Limit of connecting, and of each subscription.
  std::chrono::milliseconds reconnect{60'000};  ///< A daemon gone for longer is given up; 0: never
                                                ///< look for it again.
  bool always_inline = false;
  bool produces = false;  ///< The session is a producer's, and subscribes to nothing.
  std::optional<CurveKeys> keys;
};

}  // namespace batchwright
