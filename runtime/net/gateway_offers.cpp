#include "runtime/net/gateway_offers.hpp"

#include "runtime/net/await_token.hpp"
#include "runtime/net/gateway_protocol.hpp"

namespace troupe::net {

GatewayOffers::Announced::Announced(GatewayOffers& offers, std::string service)
    : self_(offers), service_(std::move(service)) {
  ++self_.services_[service_].all;
}

GatewayOffers::Announced::~Announced() {
  const auto listed = self_.services_.find(service_);
  if (--listed->second.all == 0) self_.services_.erase(listed);
  self_.changed_.notify_all();
}

struct GatewayOffers::Listing {
  Listing(GatewayOffers& offers, const std::string& service, std::shared_ptr<Offered> one)
      : self(offers), announced(offers, service), offered(std::move(one)) {
    self.services_[service].ready.push_back(offered);
    self.changed_.notify_all();
  }
  ~Listing() { self.services_[announced.service()].ready.remove(offered); }
  GatewayOffers& self;
  const Announced announced;
  const std::shared_ptr<Offered> offered;
};

async::task<void> GatewayOffers::keep(std::string service, std::shared_ptr<Offered> offered) {
  const Listing listed(*this, service, offered);
  // The peer sends nothing before it is told, so whatever wakes this means that it has left.
  using Socket = TlsStream::Socket;
  static_cast<void>(co_await offered->tls->socket().async_wait(Socket::wait_read, kToken));
  while (offered->taken && !offered->over)
    co_await changed_.wait(async::Deadline::none());
}

async::task<std::shared_ptr<Offered>> GatewayOffers::take(std::string service,
                                                          async::Deadline deadline) {
  for (;;) {
    const auto known = services_.find(service);
    if (known == services_.end()) co_return nullptr;
    if (known->second.ready.empty()) {
      if (!co_await changed_.wait(deadline)) co_return nullptr;
      continue;
    }
    std::shared_ptr<Offered> next = known->second.ready.front();
    known->second.ready.pop_front();
    next->taken = true;
    next->tls->socket().cancel();  // ends the wait of `keep`
    auto told = co_await next->tls->write(&kOfferTaken, 1);
    if (told) co_return next;
    finish(*next);
  }
}

void GatewayOffers::finish(Offered& offered) {
  offered.over = true;
  changed_.notify_all();
}

}  // namespace troupe::net
