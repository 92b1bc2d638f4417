#include "daemon/http/host_names.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "tests/http/served_http.h"

using namespace batchwright;
using namespace batchwright::test;

TEST_CASE("http: pages are asked for by numeric addresses, localhost and this machine's name") {
  const HostNames names({"Gpu01.Cluster.Example"});
  for (const char* header : {"localhost", "LocalHost:9477", "localhost.", "127.0.0.1",
                             "127.0.0.1:80", "10.1.2.3:9477", "[::1]", "[::1]:9477", "[fe80::1]:80",
                             "gpu01.cluster.example", "GPU01.cluster.example:9477"}) {
    CAPTURE(header);
    CHECK(names.includes(header));
  }
  std::array<char, 256> own{};
  REQUIRE(::gethostname(own.data(), own.size() - 1) == 0);
  CHECK(names.includes(std::string(own.data()) + ":9477"));
}

TEST_CASE("http: a name that another server may have is no name of ours") {
  const HostNames names({"gpu01.cluster.example"});
  for (const char* header :
       {"", ":9477", "evil.example.com", "localhost.evil.com", "127.0.0.1.evil.com", "[evil]", "[",
        "gpu01", "gpu01.cluster.example.evil.com", "xlocalhost", "localhost..", "::1"}) {
    CAPTURE(header);
    CHECK_FALSE(names.includes(header));
  }
}

TEST_CASE("http: a request for another host is refused with the names that are served") {
  Served served;
  const std::string answer =
      served.answer("GET /stats HTTP/1.1\r\nHost: evil.example.com\r\nConnection: close\r\n\r\n");
  CHECK(starts(answer, "421 Misdirected Request\r\n"));
  CHECK(answer.find("host \"evil.example.com\" is not served here; allowed: numeric addresses ") !=
        std::string::npos);
  CHECK(answer.find(served.page) == std::string::npos);
}

TEST_CASE("http: each path is refused to another host, the stream of events, too") {
  Served served;
  for (const char* path : {"/", "/metrics", "/live", "/healthz", "/feeds/a/plan"}) {
    CAPTURE(path);
    const std::string answer = served.answer(
        std::string("GET ") + path + " HTTP/1.1\r\nHost: evil\r\nConnection: close\r\n\r\n");
    CHECK(starts(answer, "421 "));
  }
}

TEST_CASE("http: a request without a host is answered: no browser sends one") {
  Served served;
  CHECK(served.answer("GET /healthz HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200 OK\r\n"));
}
