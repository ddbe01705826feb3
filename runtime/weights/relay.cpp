#include "runtime/weights/relay.hpp"

#include <unistd.h>

namespace troupe::weights {

core::Result<std::unique_ptr<Relay>> Relay::create(const std::string& key,
                                                   std::uint32_t number,
                                                   const RelayOptions& options) {
  TROUPE_TRY_ASSIGN(parts, parts_of_key(key));
  RelayPlace place;
  place.number = number;
  WeightServer::Listeners listeners;
  const std::string socket =
      "@troupe-relay-" + std::to_string(::getpid()) + "-" + std::to_string(random_id() % 1'000'000);
  TROUPE_TRY_SET(listeners.unix_listener, net::listen_unix(socket));
  place.socket = socket;
  if (options.reach) {
    std::uint32_t port = 0;
    TROUPE_TRY_SET(listeners.tcp_listener, net::listen_tcp("127.0.0.1", port));
    const std::string address = options.reach(port);
    if (address.size() < sizeof place.address) place.address = address;
  }
  return std::unique_ptr<Relay>(
      new Relay(key, std::move(parts.secret), place, std::move(listeners)));
}

Relay::Relay(std::string key,
             std::string secret,
             const RelayPlace& place,
             WeightServer::Listeners listeners)
    : key_(std::move(key)),
      place_(place),
      server_(std::move(listeners), std::move(secret), shelves_, {.relay = true, .main = {}}) {}

}  // namespace troupe::weights
