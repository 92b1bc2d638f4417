// The C ABI of what trainers say of live feeds.

#include "client/library/api_border.h"
#include "client/library/batchwright/client.h"
#include "formats/formats.h"

using namespace batchwright;

static_assert(BW_LAST_VERSION == kLastVersion);

namespace {

bw_status report_unknown(const char* feed) {
  return report({ErrorCode::not_found, fmt::format("there is no live feed \"{}\"", feed)});
}

bw_status answer_to_c(const Result<wire::VersionT>& answer, std::uint64_t* version) {
  if (!answer) return report(answer.error());
  if (version != nullptr) *version = answer->version;
  if (answer->code == 0) return BW_OK;
  return report({static_cast<ErrorCode>(answer->code), answer->text});
}

}  // namespace

extern "C" {

bw_status bw_advance(bw_connection* connection, const char* feed, uint64_t version,
                     int32_t restored, int32_t replays) {
  if (version > kLastVersion) return report_invalid("the version is above 2^62");
  if (replays != 0 && restored == 0) return report_invalid("replays goes with restored");
  return with_live(connection, feed, [&](Session& session, bool) {
    wire::AdvanceT advance;
    advance.feed = feed;
    advance.version = version;
    advance.restored = restored != 0;
    advance.replays = replays != 0;
    return answer_to_c(session.advance(std::move(advance)), nullptr);
  });
}

bw_status bw_wait_version(bw_connection* connection, const char* feed, uint64_t above,
                          int64_t timeout_ms, uint64_t* version) {
  if (timeout_ms < 0) return report_invalid("timeout_ms is below 0");
  if (version == nullptr) return report_invalid("no place for the version is given");
  return with_live(connection, feed, [&](Session& session, bool) {
    wire::AwaitVersionT question;
    question.feed = feed;
    question.above = above;
    return answer_to_c(session.await_version(std::move(question),
                                             session.after(std::chrono::milliseconds(timeout_ms))),
                       version);
  });
}

bw_status bw_keep_from(bw_connection* connection, const char* feed, uint64_t step) {
  return with_live(connection, feed, [&](Session& session, bool is_known) {
    if (!is_known) return report_unknown(feed);
    wire::KeepFromT mark;
    mark.feed = feed;
    mark.step = step;
    const auto marked = session.keep_from(std::move(mark));
    return marked ? static_cast<bw_status>(BW_OK) : report(marked.error());
  });
}

bw_status bw_end_feed(bw_connection* connection, const char* feed) {
  return with_live(connection, feed, [&](Session& session, bool is_known) {
    wire::EndFeedT end;
    end.feed = feed;
    const auto ended = session.end_feed(std::move(end), is_known);
    return ended ? static_cast<bw_status>(BW_OK) : report(ended.error());
  });
}

}  // extern "C"
