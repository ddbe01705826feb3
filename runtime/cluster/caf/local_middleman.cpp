#include "runtime/cluster/caf/local_middleman.hpp"

#include "runtime/cluster/limits.hpp"
#include "runtime/net/socket.hpp"

#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/doorman_impl.hpp>
#include <caf/io/network/scribe_impl.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace troupe::cluster::exchange {
namespace {

using caf::io::network::default_multiplexer;

// CAF asks a connection for its IP address and port, and ends the program for a socket of another
// family. So these classes answer with fixed values instead.
class LocalScribe final : public caf::io::network::scribe_impl {
 public:
  LocalScribe(default_multiplexer& multiplexer, net::OwnedFd socket)
      : scribe_impl(multiplexer, socket.release()) {}
  std::string addr() const override { return ""; }
  std::uint16_t port() const override { return 0; }
};

class LocalDoorman final : public caf::io::network::doorman_impl {
 public:
  LocalDoorman(default_multiplexer& multiplexer, net::OwnedFd socket, std::uint16_t number)
      : doorman_impl(multiplexer, socket.release()), number_(number) {}

  bool new_connection() override {
    net::OwnedFd peer(acceptor_.accepted_socket());
    if (detached()) return false;
    if (!peer || !net::same_user(peer.get())) return true;  // another user: hidden from CAF
    auto& multiplexer = acceptor_.backend();
    auto scribe = caf::make_counted<LocalScribe>(multiplexer, std::move(peer));
    const auto handle = scribe->hdl();
    parent()->add_scribe(std::move(scribe));
    return doorman::new_connection(&multiplexer, handle);
  }
  std::string addr() const override { return ""; }
  std::uint16_t port() const override { return number_; }

 private:
  const std::uint16_t number_;
};

caf::error refused(const core::Error& error) {
  return caf::make_error(caf::sec::cannot_connect_to_node, error.message);
}

class LocalMiddleman final : public caf::io::middleman_actor_impl {
 public:
  using caf::io::middleman_actor_impl::middleman_actor_impl;
  const char* name() const override { return "troupe-middleman"; }

 protected:
  caf::expected<caf::io::scribe_ptr> connect(const std::string& path, std::uint16_t) override {
    const auto until = std::chrono::steady_clock::now() + limits::kLinkBeatEvery;
    auto socket = net::connect_unix(path, until);
    if (!socket) return refused(socket.error());
    return caf::io::scribe_ptr(caf::make_counted<LocalScribe>(multiplexer(), std::move(*socket)));
  }

  caf::expected<caf::io::doorman_ptr> open(std::uint16_t number, const char* path, bool) override {
    auto socket = net::listen_unix(path == nullptr ? "" : path);
    if (!socket) return refused(socket.error());
    return caf::io::doorman_ptr(
        caf::make_counted<LocalDoorman>(multiplexer(), std::move(*socket), number));
  }

 private:
  default_multiplexer& multiplexer() {
    return static_cast<default_multiplexer&>(system().middleman().backend());
  }
};

}  // namespace

caf::io::middleman_actor make_local_middleman(caf::actor_system& system) {
  auto broker = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  return system.spawn<LocalMiddleman, caf::detached + caf::hidden>(std::move(broker));
}

}  // namespace troupe::cluster::exchange
