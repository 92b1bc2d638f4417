#include "daemon/delivery/wire/curve.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/delivery/talk.h"
#include "tests/delivery/test_server.h"

using namespace batchwright;
using namespace batchwright::test;

namespace {

namespace fs = std::filesystem;

/// A file of this text that its owner alone can read.
fs::path write_file(const TemporaryFolder& folder, const std::string& text) {
  const fs::path path = folder / "keys";
  std::ofstream(path) << text;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  return path;
}

ServerSettings with_keys(const KeyPair& own, std::optional<std::set<std::string>> authorized) {
  ServerSettings settings;
  settings.endpoints = {"tcp://127.0.0.1:0"};
  settings.keys = {own.secret_key, std::move(authorized)};
  return settings;
}

}  // namespace

TEST_CASE("delivery: a secret key is read from a file that is its owner's alone") {
  TemporaryFolder folder;
  const KeyPair keys = make_keys();
  const fs::path path = write_file(folder, "# made today\n" + keys.secret_key + "\n");
  const auto loaded = load_server_keys(path, {});
  REQUIRE(loaded);
  CHECK(loaded->secret_key == keys.secret_key);
  CHECK_FALSE(loaded->authorized);
  CHECK(public_key_of(loaded->secret_key).value() == keys.public_key);
}

TEST_CASE("delivery: a secret key that others can read is refused with its mode") {
  TemporaryFolder folder;
  const fs::path path = write_file(folder, make_keys().secret_key + "\n");
  fs::permissions(path, fs::perms::group_read, fs::perm_options::add);
  const auto loaded = load_server_keys(path, {});
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().code == ErrorCode::bad_configuration);
  CHECK(loaded.error().message ==
        path.string() +
            ": found mode 0640, so that others than its owner may use this secret "
            "key; allowed: 0600 or less (chmod 600)");
}

TEST_CASE("delivery: what is no file of one secret key is refused") {
  TemporaryFolder folder;
  const std::string key = make_keys().secret_key;
  const auto refused = [&](const std::string& text) {
    const fs::path path = write_file(folder, text);
    const auto loaded = load_server_keys(path, {});
    return loaded ? "" : loaded.error().message.substr(path.string().size());
  };
  CHECK(refused("") == ": found 0 keys; allowed: one");
  CHECK(refused(key + "\n" + key + "\n") == ": found 2 keys; allowed: one");
  CHECK(refused("\nk" + key.substr(2) + "\n") ==
        ":2: found 39 characters that are no key; allowed: a key of 40 characters in Z85 at the "
        "start of a line, # before comments");
  CHECK(load_server_keys(folder / "none", {}).error().message ==
        (folder / "none").string() + ": cannot be read: No such file or directory");
  const fs::path sparse = write_file(folder, key + "\n");
  fs::resize_file(sparse, std::uintmax_t{1} << 40);
  CHECK(load_server_keys({}, sparse).error().message ==
        sparse.string() + ": larger than 64 MiB, and so no list of keys");
}

TEST_CASE("delivery: authorized keys stand one a line, with comments") {
  TemporaryFolder folder;
  const std::string a = make_keys().public_key;
  const std::string b = make_keys().public_key;
  const fs::path path =
      write_file(folder, "# trainers\n\n" + a + "  # alice's\r\n  \t" + b + "\n   # none\n" + a);
  const auto loaded = load_server_keys({}, path);
  REQUIRE(loaded);
  CHECK(loaded->authorized == std::set<std::string>{a, b});
  std::ofstream(path, std::ios::app) << "\nalice " << b << "\n";
  CHECK(load_server_keys({}, path).error().message.starts_with(
      path.string() + ":7: found 5 characters that are no key; allowed: "));
}

TEST_CASE("delivery: a client with a key of the list gets its epoch, another no answer") {
  const KeyPair own = make_keys();
  const KeyPair alice = make_keys();
  const KeyPair mallory = make_keys();
  TestServer server(sorted_feed(4), with_keys(own, std::set{alice.public_key}));
  RawClient refused(server.endpoint(0), {own.public_key, mallory.public_key, mallory.secret_key});
  refused.knock();
  CHECK(server.eventually([](TestServer& s) {
    return s.ask([](const Server& each) { return each.log().get(Event::key_refused); });
  }));
  RawClient client(server.endpoint(0), {own.public_key, alice.public_key, alice.secret_key});
  REQUIRE(client.hello(true) != 0);
  client.send(subscribe_to_train());
  CHECK(indices_to_the_end(client) == numbers(0, 10));
  CHECK(refused.silent());
  CHECK(server.sessions() == 1);
}

TEST_CASE("delivery: without a list a client that knows the daemon's key is let in, and no other") {
  const KeyPair own = make_keys();
  const KeyPair any = make_keys();
  TestServer server(sorted_feed(4), with_keys(own, std::nullopt));
  RawClient plain(server.endpoint(0));
  RawClient mistaken(server.endpoint(0), {any.public_key, any.public_key, any.secret_key});
  plain.knock();
  mistaken.knock();
  RawClient client(server.endpoint(0), {own.public_key, any.public_key, any.secret_key});
  REQUIRE(client.hello(true) != 0);
  client.send(subscribe_to_train());
  CHECK(indices_to_the_end(client) == numbers(0, 10));
  CHECK(plain.silent());
  CHECK(mistaken.silent());
  CHECK(server.sessions() == 1);
}
