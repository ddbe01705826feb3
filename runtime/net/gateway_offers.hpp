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

  // Makes a service known while this object lives. A peer that offers it is told that it is let in
  // before its connection is kept, and others may ask for the service at once.
  class Announced {
   public:
    Announced(GatewayOffers& offers, std::string service);
    Announced(const Announced&) = delete;
    Announced& operator=(const Announced&) = delete;
    ~Announced();
    const std::string& service() const { return service_; }

   private:
    GatewayOffers& self_;
    const std::string service_;
  };

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
    std::size_t all = 0;                        // announced and kept ones, taken ones included
  };
  struct Listing;  // of a connection, while it is there

  async::Timers& timers_;
  std::map<std::string, Service> services_;
  async::Notifier changed_;
};

}  // namespace troupe::net
