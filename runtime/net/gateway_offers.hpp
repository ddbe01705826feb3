// The connections that peers keep ready at a gateway for services of theirs (kOffer): each is
// joined with one peer that asks for the service. A service is known as long as any of its
// connections is there. Owned by the gateway, used on its strand; the gateway bounds the number of
// connections.
#pragma once

#include "runtime/async/notifier.hpp"
#include "runtime/async/task.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/net/tls_stream.hpp"

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <string>

namespace troupe::net {

// One connection on offer.
struct Offered {
  std::shared_ptr<TlsStream> tls;
  bool taken = false;  // it is joined with a peer
  bool over = false;   // and is no more
};

class GatewayOffers {
 public:
  explicit GatewayOffers(async::Timers& timers) : timers_(timers), changed_(timers) {}

  // Keeps the connection on offer. Returns when it may be closed: its peer has left, or whoever
  // took it is done with it.
  async::task<void> keep(std::string service, std::shared_ptr<Offered> offered);
  bool knows(const std::string& service) const { return services_.contains(service); }
  // The next connection to a service, whose peer has been told. Waits until the deadline while the
  // service has others; null: none came.
  async::task<std::shared_ptr<Offered>> take(std::string service, async::Deadline deadline);
  // Whoever took it is done with it.
  void finish(Offered& offered);

 private:
  struct Service {
    std::list<std::shared_ptr<Offered>> ready;  // the oldest first
    std::size_t all = 0;                        // that are there, also those that were taken
  };
  struct Listing;  // of a connection, while it is there

  async::Timers& timers_;
  std::map<std::string, Service> services_;
  async::Notifier changed_;
};

}  // namespace troupe::net
