// A door with an echo service behind it, and a splice to it, as the tests of both use them.
#pragma once

#include "runtime/net/door.hpp"
#include "runtime/net/run_ca.hpp"
#include "runtime/net/splice.hpp"
#include "runtime/net/token_file.hpp"
#include "tests/unit/runtime/net/net_support.hpp"

namespace troupe::net::test {

class DoorFixture : public ::testing::Test {
 protected:
  static DoorAuth token_auth(std::string token) {
    DoorAuth auth;
    auth.token = std::move(token);
    return auth;
  }
  // The certificates of a new CA in a folder of that name.
  DoorAuth ca_auth(const std::string& name, std::vector<std::string> hosts = {}) {
    RunCaOptions options;
    options.folder = scratch_.path / name;
    options.hosts = std::move(hosts);
    EXPECT_TRUE(make_run_ca(options));
    return auth_in(options.folder);
  }
  static DoorAuth auth_in(const std::filesystem::path& folder) {
    DoorAuth auth;
    auth.ca = folder / "ca.crt";
    auth.certificate = folder / "node.crt";
    auth.key = folder / "node.key";
    return auth;
  }
  void open_door(DoorAuth auth, const std::string& host = "127.0.0.1") {
    Door::Hooks hooks;
    hooks.refused = [this](const std::string& line) { log_.add(line); };
    hooks.pass = [this](const std::string& service, const std::string&) {
      return "pass " + std::to_string(++passes_) + " to " + service;
    };
    auto door = Door::open(io_, host, 0, std::move(auth), {{"echo", echo_.port}}, hooks);
    ASSERT_TRUE(door) << door.error().message;
    door_ = std::move(*door);
  }
  core::Result<std::unique_ptr<Splice>> splice(DoorAuth auth, const std::string& service = "echo") {
    return splice_to(door_->port(), std::move(auth), service);
  }
  core::Result<std::unique_ptr<Splice>> splice_to(std::uint16_t port,
                                                  DoorAuth auth,
                                                  const std::string& service = "echo",
                                                  const std::string& host = "127.0.0.1") {
    return Splice::open(io_, host, port, std::move(auth), service, kPatience,
                        [this](const std::string& line) { splice_log_.add(line); });
  }
  // The door still lets the right ones in.
  void expect_open(const DoorAuth& auth) {
    auto good = splice(auth);
    ASSERT_TRUE(good) << good.error().message;
    Socket socket = Socket::to((*good)->path());
    ASSERT_TRUE(socket.send("still there?"));
    EXPECT_EQ(socket.receive(12), "still there?");
  }

  Scratch scratch_;
  Log log_, splice_log_;
  LocalServer echo_{echo};
  async::IoThreads io_{2};
  std::string token_ = *make_token();
  std::atomic<int> passes_{0};
  std::unique_ptr<Door> door_;
};

}  // namespace troupe::net::test
