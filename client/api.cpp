// The C ABI: arguments checked, errors told, exceptions stopped. The work is done elsewhere.

#include <errno.h>

#include <string>

#include "client/batch.h"
#include "client/batchwright/client.h"
#include "client/error_text.h"
#include "client/options.h"
#include "client/session.h"

using namespace batchwright;

struct bw_connection {
  std::shared_ptr<Session> session;
};

struct bw_subscription {
  std::shared_ptr<Session> session;
  std::shared_ptr<Lane> lane;
};

namespace {

bw_status invalid(const char* what) { return report({ErrorCode::invalid_argument, what}); }

bw_status forked() {
  return report({ErrorCode::forked,
                 "this connection was made before fork(); a child process must connect anew"});
}

bw_connect_options default_connect_options() { return BW_CONNECT_OPTIONS_INIT; }
bw_subscribe_options default_subscribe_options() { return BW_SUBSCRIBE_OPTIONS_INIT; }

bw_status connect(const char* endpoint, const bw_connect_options* given,
                  bw_connection** connection) {
  const auto options = read_options(given, default_connect_options());
  if (!options) return report(options.error());
  if (options->timeout_ms < 1) return invalid("timeout_ms is below 1");
  auto session = Session::connect(
      endpoint != nullptr ? endpoint : BW_DEFAULT_ENDPOINT,
      options->program != nullptr ? options->program : program_invocation_short_name,
      std::chrono::milliseconds(options->timeout_ms));
  if (!session) return report(session.error());
  *connection = new bw_connection{std::move(*session)};
  return BW_OK;
}

bw_status subscribe(bw_connection& connection, const bw_subscribe_options& given,
                    bw_subscription** subscription) {
  const auto options = read_options(&given, default_subscribe_options());
  if (!options) return report(options.error());
  auto request = to_request(*options);
  if (!request) return report(request.error());
  auto handle = std::make_unique<bw_subscription>();
  const auto session = connection.session;  // bw_close may free the connection meanwhile
  auto lane = session->subscribe(std::move(*request));
  if (!lane) return report(lane.error());
  *handle = {session, std::move(*lane)};
  *subscription = handle.release();
  return BW_OK;
}

bw_status next(bw_subscription& subscription, const Deadline& deadline, bw_batch** batch,
               std::uint64_t* epoch) {
  auto event = subscription.session->next(subscription.lane, deadline);
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

}  // namespace

extern "C" {

bw_status bw_connect(const char* endpoint, const bw_connect_options* options,
                     bw_connection** connection) {
  if (connection == nullptr) return invalid("no place for the connection is given");
  *connection = nullptr;
  return at_border([&] { return connect(endpoint, options, connection); });
}

bw_status bw_close(bw_connection* connection) {
  if (connection == nullptr) return BW_OK;
  if (connection->session->forked()) return forked();
  return at_border([&] {
    connection->session->close();
    delete connection;
    return BW_OK;
  });
}

size_t bw_feed_count(const bw_connection* connection) {
  return connection != nullptr ? connection->session->feeds().size() : 0;
}

const bw_feed* bw_feed_at(const bw_connection* connection, size_t i) {
  return i < bw_feed_count(connection) ? &connection->session->feeds().at(i) : nullptr;
}

bw_status bw_subscribe(bw_connection* connection, const bw_subscribe_options* options,
                       bw_subscription** subscription) {
  if (subscription == nullptr) return invalid("no place for the subscription is given");
  *subscription = nullptr;
  if (connection == nullptr || options == nullptr) return invalid("no connection or no options");
  if (connection->session->forked()) return forked();
  return at_border([&] { return subscribe(*connection, *options, subscription); });
}

bw_status bw_unsubscribe(bw_subscription* subscription) {
  if (subscription == nullptr) return BW_OK;
  if (subscription->session->forked()) return forked();
  return at_border([&] {
    subscription->session->unsubscribe(subscription->lane->number());
    delete subscription;
    return BW_OK;
  });
}

const bw_grant* bw_subscription_grant(const bw_subscription* subscription) {
  return subscription != nullptr ? &subscription->lane->grant() : nullptr;
}

bw_status bw_next(bw_subscription* subscription, int64_t timeout_ms, bw_batch** batch,
                  uint64_t* epoch) {
  if (batch == nullptr) return invalid("no place for the batch is given");
  *batch = nullptr;
  if (subscription == nullptr) return invalid("no subscription");
  if (timeout_ms < 0) return invalid("timeout_ms is below 0");
  if (subscription->session->forked()) return forked();
  return at_border([&] {
    return next(*subscription, Deadline(std::chrono::milliseconds(timeout_ms)), batch, epoch);
  });
}

bw_status bw_subscription_position(const bw_subscription* subscription, bw_position* position) {
  if (subscription == nullptr || position == nullptr) return invalid("no subscription or no place");
  if (subscription->session->forked()) return forked();
  return at_border([&] {
    *position = subscription->lane->position();
    return BW_OK;
  });
}

bw_status bw_release(bw_batch* batch) {
  if (batch == nullptr) return BW_OK;
  if (batch->session->forked()) return forked();
  return at_border([&] {
    const std::unique_ptr<bw_batch> gone(batch);
    gone->session->give_back(gone->lane->number(), gone->ticket.lease);
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
  if (batch == nullptr || position == nullptr) return invalid("no batch or no place");
  *position = batch->lane->position_after(batch->header.epoch, batch->header.index);
  return BW_OK;
}

}  // extern "C"
