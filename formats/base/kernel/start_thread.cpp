#include "formats/base/kernel/start_thread.h"

#include <pthread.h>

#include <new>
#include <system_error>
#include <utility>

namespace batchwright {

std::optional<std::jthread> start_thread(const char* name,
                                         std::function<void(const std::stop_token&)> work) {
  try {
    std::jthread thread(std::move(work));
    if (name != nullptr) pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error&) {
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

}  // namespace batchwright
