#include <sys/stat.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <filesystem>
#include <fstream>

#include "tests/http/served_http.h"
#include "tests/support/temporary_folder.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

/// A socket's file with no daemon behind it, as a killed daemon leaves it.
void leave_behind(const std::string& path) {
  asio::io_context loop;
  asio::local::stream_protocol::acceptor acceptor(loop, {path});
}

Error refusal(const std::string& address) {
  asio::io_context loop;
  const auto listening = HttpServer::listen(loop, {{address}, {}}, {});
  REQUIRE_FALSE(listening);
  return listening.error();
}

}  // namespace

TEST_CASE("http: HEAD tells what GET would bring, without bringing it") {
  Served served;
  served.page = "{\"a\":1}";
  const std::string answer =
      served.answer("HEAD /stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  CHECK(starts(answer, "200 OK\r\n"));
  CHECK(answer.find("Content-Length: 7\r\n") != std::string::npos);
  CHECK(answer.ends_with("\r\n\r\n"));
}

TEST_CASE("http: a connection goes on after HEAD") {
  Served served;
  Peer peer(served.loop, served.port());
  peer.send("HEAD /stats HTTP/1.1\r\nHost: localhost\r\n\r\n" + get("/healthz"));
  REQUIRE(served.run_until([&] { return peer.count("ok\n") == 1; }));
  CHECK(peer.count("HTTP/1.1 200 OK\r\n") == 2);
}

TEST_CASE("http: a path with a name in it, and its query, are decoded") {
  Served served;
  Peer peer(served.loop, served.port());
  peer.send(get("/feeds/a%2Fb%20c/plan?epoch=3&%65=%26&flag"));
  REQUIRE(served.run_until([&] { return served.asked.size() == 1; }));
  CHECK(served.asked[0].names == std::vector<std::string>{"a/b c"});
  CHECK(served.asked[0].query ==
        std::map<std::string, std::string>{{"epoch", "3"}, {"e", "&"}, {"flag", ""}});
}

TEST_CASE("http: an answer may come later, and the connection waits for it") {
  Served served;
  Peer peer(served.loop, served.port());
  peer.send(get("/feeds/train/plan") + get("/healthz"));
  REQUIRE(served.run_until([&] { return served.answers.size() == 1; }));
  CHECK(served.answer(get_once("/healthz")).ends_with("ok\n"));
  CHECK(peer.received().empty());
  served.answers[0]({200, "application/json", "{}"});
  REQUIRE(served.run_until([&] { return peer.count("ok\n") == 1; }));
  CHECK(peer.received().find("\r\n\r\n{}HTTP/1.1 200 OK") != std::string::npos);
}

TEST_CASE("http: an answer that comes when its peer is gone does no harm") {
  Served served;
  {
    Peer peer(served.loop, served.port());
    peer.send(get("/feeds/train/plan"));
    REQUIRE(served.run_until([&] { return served.answers.size() == 1; }));
  }
  served.answers[0]({200, "application/json", "{}"});
  CHECK(starts(served.answer(get_once("/healthz")), "200"));
  SUBCASE("nor when the endpoint is gone, too") {
    Peer other(served.loop, served.port());
    other.send(get("/feeds/train/plan"));
    REQUIRE(served.run_until([&] { return served.answers.size() == 2; }));
    served.endpoint.reset();
    served.answers[1]({200, "application/json", "{}"});
    CHECK(served.run_until([&] { return other.closed(); }));
  }
}

TEST_CASE("http: a % without two digits is refused, and so are other paths of that kind") {
  Served served;
  for (const char* path : {"/feeds/%/plan", "/feeds/%4/plan", "/feeds/%xy/plan", "/feeds/a/plan?%",
                           "/feeds/a/plan?a=%+1"}) {
    CAPTURE(path);
    CHECK(starts(served.answer(get_once(path)), "400"));
  }
  for (const char* path : {"/feeds/plan", "/feeds/a/b/plan", "/feeds/a/plans", "/feeds/a/plan/"}) {
    CAPTURE(path);
    CHECK(starts(served.answer(get_once(path)), "404"));
  }
  CHECK(served.asked.empty());
}

TEST_CASE("http: events come at once and then each second, until the reader goes") {
  Served served;
  auto peer = std::make_unique<Peer>(served.loop, served.port());
  peer->send(get("/live"));
  REQUIRE(served.run_until([&] { return peer->count("event: stats\ndata: {}\n\n") == 1; }));
  CHECK(peer->received().find("Content-Type: text/event-stream\r\n") != std::string::npos);
  served.page = "{\"later\":1}";
  REQUIRE(served.run_until([&] { return peer->count("data: {\"later\":1}\n\n") == 2; }));
  CHECK(served.endpoint->figures().connections == 1);
  peer.reset();
  CHECK(served.run_until([&] { return served.endpoint->figures().connections == 0; }));
}

TEST_CASE("http: so many read events and no more") {
  Served served({64, 2, 10s});
  std::vector<std::unique_ptr<Peer>> readers;
  for (int i = 0; i < 2; ++i) {
    readers.push_back(std::make_unique<Peer>(served.loop, served.port()));
    readers.back()->send(get("/live"));
    REQUIRE(served.run_until([&] { return readers.back()->count("data: ") == 1; }));
  }
  CHECK(starts(served.answer(get_once("/live")), "503"));
  CHECK(served.endpoint->figures().refused == 1);
  readers.pop_back();
  REQUIRE(served.run_until([&] { return served.endpoint->figures().connections == 1; }));
  Peer next(served.loop, served.port());
  next.send(get("/live"));
  CHECK(served.run_until([&] { return next.count("data: ") == 1; }));
}

TEST_CASE("http: a reader of events that takes none is hung up on, others go on") {
  Served served({64, 16, 3s});
  constexpr std::size_t kEvent = 16 << 20;  // more than the kernel keeps for a reader
  served.page = std::string(kEvent, 'x');
  Peer slow(served.loop, served.port());
  slow.send(get("/live"));
  REQUIRE(served.run_until([&] { return !slow.received().empty(); }));
  slow.stop_reading();
  Peer quick(served.loop, served.port());
  quick.send(get("/live"));
  REQUIRE(served.run_until([&] { return quick.received().size() > kEvent; }));
  CHECK(served.run_until([&] { return served.endpoint->figures().connections == 1; }));
  const std::size_t before = quick.received().size();
  CHECK(served.run_until([&] { return quick.received().size() > before; }));
}

TEST_CASE("http: stop ends the streams of events") {
  Served served;
  Peer peer(served.loop, served.port());
  peer.send(get("/live"));
  REQUIRE(served.run_until([&] { return peer.count("data: ") == 1; }));
  served.endpoint->stop();
  CHECK(served.run_until([&] { return peer.closed(); }));
}

TEST_CASE("http: one endpoint answers on a port and on a Unix socket") {
  const TemporaryFolder folder;
  const std::string path = folder / "stats.sock";
  Served served({}, {kAnyPort, "unix://" + path});
  CHECK(served.endpoint->ports().at(1) == 0);
  Peer peer(served.loop, asio::local::stream_protocol::endpoint(path));
  peer.send(get("/healthz"));
  CHECK(served.run_until([&] { return peer.count("ok\n") == 1; }));
  CHECK(starts(served.answer(get_once("/healthz")), "200"));
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777u) == 0660u);
  served.endpoint.reset();
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("http: a socket that a killed daemon left is taken over, a living one is not") {
  const TemporaryFolder folder;
  const std::string path = folder / "stats.sock";
  leave_behind(path);
  REQUIRE(std::filesystem::exists(path));
  Served served({}, {"unix://" + path});
  const Error error = refusal("unix://" + path);
  CHECK(error.code == ErrorCode::already_exists);
  CHECK(error.message == path + ": another daemon answers there, or is about to");
  // The one that was refused has taken nothing away.
  Peer peer(served.loop, asio::local::stream_protocol::endpoint(path));
  peer.send(get("/healthz"));
  CHECK(served.run_until([&] { return peer.count("ok\n") == 1; }));
}

TEST_CASE("http: a file in the socket's place stays, and a folder that is not there is named") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  std::ofstream(path) << "mine";
  CHECK(refusal("unix://" + path).code == ErrorCode::already_exists);
  CHECK(std::filesystem::file_size(path) == 4);
  const Error error = refusal("unix://" + (folder / "none" / "s").string());
  CHECK(error.code == ErrorCode::io_error);
  CHECK(error.message.find((folder / "none" / "s").string()) != std::string::npos);
}

TEST_CASE("http: an address that fails leaves none of the others behind") {
  const TemporaryFolder folder;
  const std::string path = folder / "stats.sock";
  asio::io_context loop;
  CHECK_FALSE(HttpServer::listen(loop, {{"unix://" + path, "everywhere"}, {}}, {}));
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("http: a client without the secret gets 403 over TCP, and all is as before with it") {
  const TemporaryFolder folder;
  const std::string file = (folder / "s").string();
  Served served({}, {kAnyPort, "unix://" + file}, "s3cret");
  const auto asked = [&](const std::string& path) {
    return served.answer("GET " + path +
                         " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  };
  for (const char* path : {"/", "/stats", "/s3cre/stats", "/s3cret", "/s3cretx/stats",
                           "/S3cret/stats", "/stats?/s3cret/", "//s3cret/stats"}) {
    CAPTURE(path);
    CHECK(starts(asked(path), "403 Forbidden\r\n"));
  }
  CHECK(starts(asked("/s3cret/healthz"), "200 OK\r\n"));
  CHECK(starts(asked("/s3cret/nothing"), "404 Not Found\r\n"));
  Peer peer(served.loop, served.port());
  peer.send(get("/s3cret/feeds/a/plan?epoch=3"));
  REQUIRE(served.run_until([&] { return served.asked.size() == 1; }));
  CHECK(served.asked[0].names == std::vector<std::string>{"a"});
  // The socket's access is its secret.
  Peer local(served.loop, asio::local::stream_protocol::endpoint(file));
  local.send(get("/healthz"));
  CHECK(served.run_until([&] { return local.count("ok\n") == 1; }));
}

TEST_CASE("http: a file says where the pages are, until they are gone") {
  const TemporaryFolder folder;
  const std::string file = (folder / "pages").string();
  std::ofstream(file) << "what a killed daemon left";
  {
    Served served({}, {"unix://" + (folder / "s").string(), kAnyPort}, "s3cret");
    REQUIRE(served.endpoint->publish(file));
    const std::string tcp =
        "http://127.0.0.1:" + std::to_string(served.endpoint->ports()[1]) + "/s3cret/";
    std::ifstream in(file);
    std::string first, second;
    std::getline(in, first);
    std::getline(in, second);
    CHECK(first == "unix://" + (folder / "s").string());
    CHECK(second == tcp);
    CHECK_FALSE(served.endpoint->publish((folder / "no" / "pages").string()));
  }
  CHECK_FALSE(std::filesystem::exists(file));
}
