#include "runtime/net/gateway_offers.hpp"

#include "runtime/net/await_token.hpp"
#include "runtime/net/gateway_protocol.hpp"

namespace troupe::net {

struct GatewayOffers::Listing {
  Listing(GatewayOffers& offers, std::string name, std::shared_ptr<Offered> one)
      : self(offers), service(std::move(name)), offered(std::move(one)) {
    Service& listed = self.services_[service];
    listed.ready.push_back(offered);
    ++listed.all;
    self.changed_.notify_all();
  }
  ~Listing() {
    const auto listed = self.services_.find(service);
    listed->second.ready.remove(offered);
    if (--listed->second.all == 0) self.services_.erase(listed);
    self.changed_.notify_all();
  }
  GatewayOffers& self;
  const std::string service;
  const std::shared_ptr<Offered> offered;
};

async::task<void> GatewayOffers::keep(std::string service, std::shared_ptr<Offered> offered) {
  const Listing listed(*this, std::move(service), offered);
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
