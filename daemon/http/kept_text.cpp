#include "daemon/http/kept_text.h"

namespace batchwright {

const std::string& KeptText::text() {
  if (now_() >= end_) {
    text_ = make_();
    end_ = now_() + kKept;
  }
  return text_;
}

}  // namespace batchwright
