// A gateway with an echo service behind it, and a tunnel to it, as the tests of both use them.
#pragma once

#include "runtime/net/gateway.hpp"
#include "runtime/net/gateway_auth.hpp"
#include "runtime/net/run_ca.hpp"
#include "runtime/net/tunnel.hpp"
#include "tests/unit/runtime/net/net_support.hpp"

namespace troupe::net::test {

class GatewayFixture : public ::testing::Test {
 protected:
  static GatewayAuth token_auth(std::string token) {
    GatewayAuth auth;
    auth.token = std::move(token);
    return auth;
  }
  // The certificates of a new CA in a folder of that name.
  GatewayAuth ca_auth(const std::string& name, std::vector<std::string> hosts = {}) {
    RunCaOptions options;
    options.folder = scratch_.path / name;
    options.hosts = std::move(hosts);
    EXPECT_TRUE(make_run_ca(options));
    return auth_in(options.folder);
  }
  static GatewayAuth auth_in(const std::filesystem::path& folder) {
    GatewayAuth auth;
    auth.ca = folder / "ca.crt";
    auth.certificate = folder / "node.crt";
    auth.key = folder / "node.key";
    return auth;
  }
  void open_gateway(GatewayAuth auth, const std::string& host = "127.0.0.1") {
    Gateway::Hooks hooks;
    hooks.refused = [this](const std::string& line) { log_.add(line); };
    hooks.certificates = [this](const std::string& line) { certificates_.add(line); };
    hooks.pass = [this](const std::string& service, const std::string&) {
      return "pass-" + std::to_string(++passes_) + "-to-" + service;
    };
    auto gateway = Gateway::open(host, 0, std::move(auth), {{"echo", echo_.port}}, hooks);
    ASSERT_TRUE(gateway) << gateway.error().message;
    gateway_ = std::move(*gateway);
  }
  core::Result<std::unique_ptr<Tunnel>> tunnel(GatewayAuth auth,
                                               const std::string& service = "echo") {
    return tunnel_to(gateway_->port(), std::move(auth), service);
  }
  core::Result<std::unique_ptr<Tunnel>> tunnel_to(std::uint16_t port,
                                                  GatewayAuth auth,
                                                  const std::string& service = "echo",
                                                  const std::string& host = "127.0.0.1") {
    return Tunnel::open(io_, host, port, std::move(auth), service, kPatience,
                        [this](const std::string& line) { tunnel_log_.add(line); });
  }
  // The gateway still lets the right ones in.
  void expect_open(const GatewayAuth& auth) {
    auto good = tunnel(auth);
    ASSERT_TRUE(good) << good.error().message;
    Socket socket = Socket::to((*good)->path());
    ASSERT_TRUE(socket.send("still there?"));
    EXPECT_EQ(socket.receive(12), "still there?");
  }

  Scratch scratch_;
  Log log_, tunnel_log_, certificates_;
  LocalServer echo_{echo};
  async::IoThreads io_{2};
  std::string token_ = *make_token();
  std::atomic<int> passes_{0};
  std::unique_ptr<Gateway> gateway_;
};

}  // namespace troupe::net::test
