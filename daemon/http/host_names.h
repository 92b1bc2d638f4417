#pragma once

#include <set>
#include <string>
#include <string_view>

namespace batchwright {

/// The names by which a page may be asked for. A browser on this machine sends whatever name a page
/// on the web has for us, also where that name's owner made it resolve to our address (DNS
/// rebinding): such a page could else read feeds and clients.
class HostNames {
 public:
  /// `more` beside localhost, numeric addresses and what this machine calls itself.
  explicit HostNames(const std::set<std::string>& more = {});

  /// Whether a request with this Host header is for us: upper and lower case, a port and a dot at
  /// the end make no difference.
  bool includes(std::string_view header) const;

  /// All of them, for the text of a refusal.
  std::string text() const;

 private:
  std::set<std::string, std::less<>> names_;
};

}  // namespace batchwright
