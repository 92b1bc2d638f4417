// The C ABI: arguments checked, errors reported, exceptions stopped. The work is done elsewhere.

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "client/library/api_border.h"
#include "client/library/batchwright/client.h"
#include "client/library/c_values.h"
#include "client/library/link/zmq_transport.h"
#include "client/library/memory/batch.h"
#include "client/library/memory/fault_handler.h"
#include "client/library/options.h"
#include "client/library/session/connections.h"
#include "client/library/session/subscription.h"
#include "formats/formats.h"

using namespace batchwright;

struct bw_subscription {
  std::unique_ptr<Subscription> inner;
  bw_grant grant;
};

namespace {

const char* default_endpoint() {
  const char* named = std::getenv("BATCHWRIGHT_ENDPOINT");
  return named != nullptr && *named != '\0' ? named : BW_DEFAULT_ENDPOINT;
}

bw_connect_options default_connect_options() { return BW_CONNECT_OPTIONS_INIT; }
bw_subscribe_options default_subscribe_options() { return BW_SUBSCRIBE_OPTIONS_INIT; }

/// The first server's feeds that the others have as well. Only of those can batches be merged.
std::vector<bw_feed> common_feeds(const Subscription::Sessions& sessions) {
  std::vector<bw_feed> common;
  for (std::size_t i = 0; i < sessions.front()->link().feeds().size(); ++i) {
    bw_feed feed = sessions.front()->link().feeds().at(i);
    std::size_t servers = 1;
    for (auto session = sessions.begin() + 1; session != sessions.end(); ++session) {
      for (std::size_t j = 0; j < (*session)->link().feeds().size(); ++j) {
        const bw_feed& other = (*session)->link().feeds().at(j);
        if (std::strcmp(feed.name, other.name) != 0 || !difference(feed, other).empty()) continue;
        feed.sequences += other.sequences;
        ++servers;
      }
    }
    if (servers == sessions.size()) common.push_back(feed);
  }
  return common;
}

bool has_feed(const Feeds& feeds, std::string_view name) {
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    if (name == feeds.at(i).name) return true;
  }
  return std::any_of(feeds.absent().begin(), feeds.absent().end(),
                     [name](const bw_absent_feed& each) { return name == each.name; });
}

/// The feeds that all servers have, and one of them at least cannot serve for now.
std::vector<bw_absent_feed> absent_feeds(const Subscription::Sessions& sessions) {
  std::vector<bw_absent_feed> absent;
  for (const auto& session : sessions) {
    for (const bw_absent_feed& feed : session->link().feeds().absent()) {
      const std::string_view name(feed.name);
      const bool is_listed =
          std::any_of(absent.begin(), absent.end(),
                      [name](const bw_absent_feed& each) { return name == each.name; });
      const bool is_common =
          std::all_of(sessions.begin(), sessions.end(),
                      [name](const auto& each) { return has_feed(each->link().feeds(), name); });
      if (is_common && !is_listed) absent.push_back(feed);
    }
  }
  return absent;
}

bw_status connect(const char* list, const bw_connect_options* given, bw_connection** connection) {
  const auto options = read_options(given, default_connect_options());
  if (!options) return report(options.error());
  const auto settings = to_settings(*options);
  if (!settings) return report(settings.error());
  const auto endpoints = to_endpoints(list != nullptr ? list : default_endpoint());
  if (!endpoints) return report(endpoints.error());
  auto made = std::make_shared<Connected>();
  for (const std::string& endpoint : *endpoints) {
    auto transport = ZmqTransport::make();
    if (!transport) return report(transport.error());
    auto session = Session::connect(endpoint, *settings, std::move(*transport));
    if (!session) {
      for (const auto& other : made->sessions) other->close();
      return report(session.error());
    }
    made->sessions.push_back(std::move(*session));
  }
  made->feeds = common_feeds(made->sessions);
  made->absent = absent_feeds(made->sessions);
  *connection = Connections::of_process().add(std::move(made));
  return BW_OK;
}

bw_status subscribe(const Connected& connection, const bw_subscribe_options& given,
                    bw_subscription** subscription) {
  const auto options = read_options(&given, default_subscribe_options());
  if (!options) return report(options.error());
  auto request = to_request(*options);
  if (!request) return report(request.error());
  auto made =
      Subscription::subscribe(connection.sessions, std::move(*request), options->writable != 0);
  if (!made) return report(made.error());
  const bw_grant grant = to_c((*made)->grant());
  // The program owns it from here, until bw_unsubscribe().
  *subscription = new bw_subscription{std::move(*made), grant};
  return BW_OK;
}

bw_status next(bw_subscription& subscription, std::chrono::milliseconds limit, bw_batch** batch,
               std::uint64_t* epoch) {
  auto event = subscription.inner->next(limit);
  if (!event) return report(event.error());
  if (event->batch) {
    if (epoch != nullptr) *epoch = event->batch->header.epoch;
    *batch = event->batch.release();  // the program owns it from here, until bw_release()
    return BW_OK;
  }
  if (!event->ended) return BW_END;
  if (epoch != nullptr) *epoch = event->ended->epoch;
  return BW_EPOCH_END;
}

bw_status upcoming(bw_subscription& subscription, std::chrono::milliseconds limit,
                   bw_upcoming* batches, std::size_t* count) {
  const auto found = subscription.inner->upcoming(static_cast<std::uint32_t>(*count), limit);
  *count = 0;
  if (!found) return report(found.error());
  for (const wire::UpcomingBatch& batch : found->batches) {
    batches[*count] = to_c(batch, *count < found->certain);
    ++*count;
  }
  return BW_OK;
}

bw_connection_info info_of(const Connected& connection) {
  bw_connection_info info{};
  info.struct_size = sizeof info;
  info.servers = static_cast<std::uint32_t>(connection.sessions.size());
  for (const auto& session : connection.sessions) {
    info.reconnects += session->link().reconnects();
    if (!session->link().is_inline()) continue;
    info.inline_batches = 1;
    if (info.inline_reason == nullptr) info.inline_reason = session->link().inline_reason().c_str();
  }
  return info;
}

}  // namespace

extern "C" {

bw_status bw_connect(const char* endpoint, const bw_connect_options* options,
                     bw_connection** connection) {
  if (connection == nullptr) return report_invalid("`connection` is NULL");
  *connection = nullptr;
  return at_border([&] { return connect(endpoint, options, connection); });
}

bw_status bw_close(bw_connection* connection) {
  if (connection == nullptr) return BW_OK;
  return with(connection, [connection](const Connected& found) {
    if (found.sessions.front()->link().forked()) return forked();
    if (!Connections::of_process().remove(connection)) return closed();  // by another thread
    for (const auto& session : found.sessions) session->close();
    return static_cast<bw_status>(BW_OK);
  });
}

bw_status bw_connection_get_info(const bw_connection* connection, bw_connection_info* info) {
  if (connection == nullptr || info == nullptr)
    return report_invalid("`connection` or `info` is NULL");
  const std::size_t room = info->struct_size;
  if (room < sizeof info->struct_size) return report_invalid("struct_size is not set");
  return with(connection, [room, info](const Connected& connected) {
    bw_connection_info found = info_of(connected);
    found.struct_size = std::min(room, sizeof found);
    std::memcpy(info, &found, found.struct_size);
    return static_cast<bw_status>(BW_OK);
  });
}

size_t bw_feed_count(const bw_connection* connection) {
  const auto found = Connections::of_process().find(connection);
  return found ? found->feeds.size() : 0;
}

const bw_feed* bw_feed_at(const bw_connection* connection, size_t i) {
  const auto found = Connections::of_process().find(connection);
  return found && i < found->feeds.size() ? &found->feeds[i] : nullptr;
}

size_t bw_absent_feed_count(const bw_connection* connection) {
  const auto found = Connections::of_process().find(connection);
  return found ? found->absent.size() : 0;
}

const bw_absent_feed* bw_absent_feed_at(const bw_connection* connection, size_t i) {
  const auto found = Connections::of_process().find(connection);
  return found && i < found->absent.size() ? &found->absent[i] : nullptr;
}

bw_status bw_subscribe(bw_connection* connection, const bw_subscribe_options* options,
                       bw_subscription** subscription) {
  if (subscription == nullptr) return report_invalid("no place for the subscription is given");
  *subscription = nullptr;
  if (connection == nullptr || options == nullptr)
    return report_invalid("no connection or no options");
  return with(connection, [options, subscription](const Connected& found) {
    if (found.sessions.front()->link().forked()) return forked();
    return subscribe(found, *options, subscription);
  });
}

bw_status bw_unsubscribe(bw_subscription* subscription) {
  if (subscription == nullptr) return BW_OK;
  if (subscription->inner->forked()) return forked();
  return at_border([&] {
    delete subscription;
    return BW_OK;
  });
}

const bw_grant* bw_subscription_grant(const bw_subscription* subscription) {
  return subscription != nullptr ? &subscription->grant : nullptr;
}

const char* bw_subscription_terms(const bw_subscription* subscription) {
  return subscription != nullptr ? subscription->inner->terms().c_str() : nullptr;
}

bw_status bw_next(bw_subscription* subscription, int64_t timeout_ms, bw_batch** batch,
                  uint64_t* epoch) {
  if (batch == nullptr) return report_invalid("no place for the batch is given");
  *batch = nullptr;
  if (subscription == nullptr) return report_invalid("no subscription");
  if (timeout_ms < 0) return report_invalid("timeout_ms is below 0");
  if (subscription->inner->forked()) return forked();
  return at_border(
      [&] { return next(*subscription, std::chrono::milliseconds(timeout_ms), batch, epoch); });
}

bw_status bw_subscription_position(const bw_subscription* subscription, bw_position* position) {
  if (subscription == nullptr || position == nullptr)
    return report_invalid("no subscription or no place");
  if (subscription->inner->forked()) return forked();
  return at_border([&] {
    *position = to_c(subscription->inner->position());
    return BW_OK;
  });
}

bw_status bw_subscription_steps(const bw_subscription* subscription, uint64_t* epoch,
                                uint64_t* steps) {
  if (subscription == nullptr || steps == nullptr)
    return report_invalid("no subscription or no place");
  if (subscription->inner->forked()) return forked();
  return at_border([&] {
    if (epoch != nullptr) *epoch = subscription->inner->position().epoch;
    *steps = subscription->inner->steps();
    return BW_OK;
  });
}

bw_status bw_subscription_upcoming(bw_subscription* subscription, int64_t timeout_ms,
                                   bw_upcoming* batches, size_t* count) {
  if (subscription == nullptr || batches == nullptr || count == nullptr)
    return report_invalid("no subscription or no place");
  if (timeout_ms < 0) return report_invalid("timeout_ms is below 0");
  if (*count < 1 || *count > BW_MAX_UPCOMING) {
    return report({ErrorCode::invalid_argument,
                   fmt::format("count is {}; it is 1 to {}", *count, BW_MAX_UPCOMING)});
  }
  if (subscription->inner->forked()) return forked();
  return at_border([&] {
    return upcoming(*subscription, std::chrono::milliseconds(timeout_ms), batches, count);
  });
}

bw_status bw_release(bw_batch* batch) {
  if (batch == nullptr) return BW_OK;
  if (batch->session->link().forked()) return forked();
  return at_border([&] {
    const std::unique_ptr<bw_batch> gone(batch);
    gone->stay.reset();
    gone->subscription->leases().give_back(gone->lease);
    gone->session->tell(*gone->subscription);
    return BW_OK;
  });
}

bw_status bw_return(bw_batch* batch) {
  if (batch == nullptr) return BW_OK;
  if (batch->session->link().forked()) return forked();
  return at_border([&] {
    const std::unique_ptr<bw_batch> gone(batch);
    gone->stay.reset();
    gone->subscription->leases().give_back_undone(gone->lease);
    gone->session->tell(*gone->subscription);
    return BW_OK;
  });
}

bw_status bw_batch_done(bw_batch* batch) {
  if (batch == nullptr) return BW_OK;
  if (batch->session->link().forked()) return forked();
  return at_border([&] {
    batch->subscription->leases().mark_done(batch->lease);
    batch->session->tell(*batch->subscription);
    return BW_OK;
  });
}

const bw_batch_header* bw_batch_get_header(const bw_batch* batch) { return &batch->header; }

const char* bw_batch_key(const bw_batch* batch, size_t row, size_t* size) {
  if (row >= batch->header.sequences) return nullptr;
  const auto* key = batch->content->keys()->Get(static_cast<flatbuffers::uoffset_t>(row));
  if (size != nullptr) *size = key->size();
  return key->c_str();
}

bw_status bw_batch_row(const bw_batch* batch, size_t row, bw_of* of) {
  if (batch == nullptr || of == nullptr) return report_invalid("no batch, or no place for the row");
  const std::size_t room = of->struct_size;
  if (room < sizeof of->struct_size) return report_invalid("struct_size is not set");
  const bw_batch_header& header = batch->header;
  if (row >= header.sequences) {
    return report(
        {ErrorCode::not_found, fmt::format("row {}; the batch has {}", row, header.sequences)});
  }
  const bw_of found{std::min(room, sizeof(bw_of)),
                    header.feed,
                    header.fingerprint,
                    header.epoch,
                    header.ordinals[row],
                    header.starts != nullptr ? header.starts[row] : 0,
                    header.uses != nullptr ? header.uses[row] : 0};
  std::memcpy(of, &found, found.struct_size);
  return BW_OK;
}

const char* bw_batch_producer(const bw_batch* batch, size_t i, size_t* size) {
  if (i >= batch->header.producer_count) return nullptr;
  const auto* name =
      batch->content->live()->producer_names()->Get(static_cast<flatbuffers::uoffset_t>(i));
  if (size != nullptr) *size = name->size();
  return name->c_str();
}

const bw_tensor* bw_batch_tensor(const bw_batch* batch, size_t i) {
  return i < batch->tensors.size() ? &batch->tensors[i] : nullptr;
}

const bw_tensor* bw_batch_tensor_named(const bw_batch* batch, const char* name) {
  if (name == nullptr) return nullptr;
  for (const bw_tensor& tensor : batch->tensors) {
    if (std::string_view(tensor.name) == name) return &tensor;
  }
  return nullptr;
}

bw_status bw_batch_position(const bw_batch* batch, bw_position* position) {
  if (batch == nullptr || position == nullptr) return report_invalid("no batch or no place");
  *position = to_c(batch->position);
  return BW_OK;
}

bw_memory* bw_batch_memory(const bw_batch* batch) {
  if (batch == nullptr) return nullptr;
  return new (std::nothrow) bw_memory{batch->payload.keeper};
}

void bw_memory_release(bw_memory* memory) { delete memory; }

bw_status bw_explain_faults(void) {
  return at_border([] {
    const auto installed = explain_faults();
    return installed ? BW_OK : report(installed.error());
  });
}

}  // extern "C"
