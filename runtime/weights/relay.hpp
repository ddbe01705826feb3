// What a receiver passes on to others: the snapshots that come to it bucket by bucket, and a server
// with the publisher's protocol that streams them to receivers on other hosts, as far as they have
// come, and lends them whole to processes of its own host. It admits any peer with the key of the
// publisher, and what it gives carries the publisher's signature. Owned by a subscriber, whose
// fetching thread fills the snapshots; one for each publisher.
#pragma once

#include "runtime/weights/weight_server.hpp"

#include <functional>
#include <memory>
#include <string>

namespace troupe::weights {

// How relays of different hosts reach each other. Without `reach`, or if it returns nothing, only
// processes of the same host get weights from this receiver.
struct RelayOptions {
  // The address ("host:port") at which others reach a port of this host's 127.0.0.1.
  std::function<std::string(std::uint32_t port)> reach;
  // Connects to an address of another relay. Empty: plain TCP.
  std::function<core::Result<net::OwnedFd>(const std::string& address, core::TimePoint until)> dial;
};

class Relay {
 public:
  // `key`: of the publisher's location. `number`: Hello::place.number of its receiver. Error
  // kResources: a socket cannot be opened.
  static core::Result<std::unique_ptr<Relay>> create(const std::string& key,
                                                     std::uint32_t number,
                                                     const RelayOptions& options);

  const std::string& key() const { return key_; }
  const RelayPlace& place() const { return place_; }
  SnapshotPool& pool(kernels::PanelDtype image) { return shelves_.of(image).pool; }
  // More of a snapshot is ready.
  void look() { server_.look(); }
  ServerCounters counters() const { return server_.counters(); }

 private:
  Relay(std::string key,
        std::string secret,
        const RelayPlace& place,
        WeightServer::Listeners listeners);

  const std::string key_;
  const RelayPlace place_;
  ImageShelves shelves_{true};
  WeightServer server_;  // last, so that it ends before the shelves that it reads
};

}  // namespace troupe::weights
