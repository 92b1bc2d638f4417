#include "daemon/http/cached_response.h"

namespace batchwright {

const std::string& CachedResponse::text() {
  if (now_() >= end_) {
    text_ = make_();
    end_ = now_() + kKept;
  }
  return text_;
}

}  // namespace batchwright
