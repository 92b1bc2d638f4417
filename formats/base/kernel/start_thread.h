#pragma once

#include <functional>
#include <optional>
#include <thread>

namespace batchwright {

/// Runs `work` on a thread of its own, which is asked to stop and joined when its owner goes.
/// Nothing where the system has no thread to spare: for work that its caller can do as well, or do
/// without. `name`, of 15 characters at most, is the thread's shown by ps and top; null:
/// that of the thread that calls.
std::optional<std::jthread> start_thread(const char* name,
                                         std::function<void(const std::stop_token&)> work);

}  // namespace batchwright
