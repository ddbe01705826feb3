#include "apps/session/node/relay_gate.hpp"

#include "apps/cli/words.hpp"

#include <algorithm>
#include <utility>

namespace troupe::session {

core::Result<std::unique_ptr<RelayGate>> RelayGate::open(async::IoThreads& io,
                                                         const JoinTarget& target,
                                                         const std::string& listen) {
  std::unique_ptr<RelayGate> gate(new RelayGate(io, target));
  if (listen.empty()) return gate;
  TROUPE_TRY_ASSIGN(address, parse_address(listen, "--relay"));
  gate->host_ = address.first;
  net::Gateway::Hooks hooks;
  hooks.refused = cli::say;
  hooks.certificates = cli::say;
  auto opened = net::Gateway::open(address.first, address.second, target.auth, {}, hooks);
  if (!opened) return core::fail(opened.error().within("--relay " + listen));
  gate->gateway_ = std::move(*opened);
  return gate;
}

weights::RelayOptions RelayGate::options() {
  weights::RelayOptions options;
  if (gateway_) options.reach = [this](std::uint32_t port) { return reach(port); };
  options.dial = [this](const std::string& address, core::TimePoint until) {
    return dial(address, until);
  };
  return options;
}

std::string RelayGate::reach(std::uint32_t port) {
  const std::string service = "weights-" + std::to_string(port);
  gateway_->set_service(service, static_cast<std::uint16_t>(port));
  const bool v6 = host_.find(':') != std::string::npos;
  return (v6 ? "[" + host_ + "]" : host_) + ":" + std::to_string(gateway_->port()) + "/" + service;
}

core::Result<net::OwnedFd> RelayGate::dial(const std::string& address, core::TimePoint until) {
  TROUPE_TRY_ASSIGN(tunnel, tunnel_to(address));
  return net::connect_unix(tunnel->path(), until);
}

// Opens a tunnel only once; one to a node that has gone makes connections that end at once. Others
// do not wait while it is opened.
core::Result<std::shared_ptr<net::Tunnel>> RelayGate::tunnel_to(const std::string& address) {
  if (auto known = known_tunnel(address)) return known;
  const std::size_t slash = address.rfind('/');
  if (slash == std::string::npos) {
    return core::fail(core::ErrorCode::kConfig, "the relay at '" + address + "' has no service");
  }
  TROUPE_TRY_ASSIGN(place, parse_address(address.substr(0, slash), "a relay"));
  JoinTarget there;
  there.host = place.first;
  there.port = place.second;
  there.auth = target_.auth;
  TROUPE_TRY_ASSIGN(opened, enter(io_, there, address.substr(slash + 1), cli::say));
  std::shared_ptr<net::Tunnel> tunnel = std::move(opened);
  std::shared_ptr<net::Tunnel> oldest;  // ends without the lock
  const std::lock_guard lock(mutex_);
  if (ways_.size() >= kTunnels_max) {
    oldest = std::move(ways_.front().tunnel);
    ways_.pop_front();
  }
  ways_.push_back({address, tunnel});
  return tunnel;
}

std::shared_ptr<net::Tunnel> RelayGate::known_tunnel(const std::string& address) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(ways_.begin(), ways_.end(),
                                  [&](const Way& way) { return way.address == address; });
  return known != ways_.end() ? known->tunnel : nullptr;
}

}  // namespace troupe::session
