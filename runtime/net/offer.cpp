#include "runtime/net/offer.hpp"

#include "runtime/async/deadline.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/net/await_token.hpp"
#include "runtime/net/carry.hpp"
#include "runtime/net/gateway_dial.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/net/socket.hpp"
#include "runtime/net/strand_scope.hpp"

#include <boost/asio/local/stream_protocol.hpp>

#include <utility>
#include <vector>

namespace troupe::net {

using boost::asio::local::stream_protocol;

struct Offer::Impl {
  async::task<core::Result<std::string>> dial(std::shared_ptr<Dialled> dialled,
                                              core::Duration limit) {
    return dialler.pass(std::move(dialled), GatewayErrand::kOffer, service, limit);
  }
  std::shared_ptr<Dialled> fresh() {
    auto dialled = std::make_shared<Dialled>(work.executor());
    std::erase_if(ready, [](const auto& one) { return one.expired(); });
    ready.push_back(dialled);
    return dialled;
  }
  bool over() { return ended || work.scope().cancelled(); }
  async::task<void> keep_one(std::shared_ptr<Dialled> ready);
  async::task<core::Result<void>> await_peer(Dialled* dialled);
  async::task<void> carry_one(std::shared_ptr<Dialled> dialled);

  GatewayDialler dialler;  // on the strand
  const std::string service, path;
  const std::function<void(const std::string&)> log;
  StrandScope work;
  async::SteadyTimers timers{};
  std::vector<std::weak_ptr<Dialled>> ready{};  // that are not taken, and some that are gone
  bool ended = false;
};

// Keeps one connection ready; the first may be there already.
async::task<void> Offer::Impl::keep_one(std::shared_ptr<Dialled> one) {
  std::string last;  // what was logged
  while (!over()) {
    core::Result<void> taken;
    if (!one) {
      one = fresh();
      auto dialled = co_await dial(one, limits::kTunnelConnect);
      if (!dialled) taken = dialled.failure();
    }
    if (taken) taken = co_await await_peer(one.get());
    if (work.scope().cancelled()) co_return;
    if (taken) {
      std::erase_if(ready, [&one](const auto& other) { return other.lock() == one; });
      work.scope().spawn("", carry_one(std::move(one)));
      one = nullptr;
      last.clear();
      continue;
    }
    one = nullptr;
    if (over()) co_return;
    if (log && taken.error().message != last) log(taken.error().message);
    last = taken.error().message;
    co_await async::sleep_for(timers, limits::kOfferPause);
  }
}

async::task<core::Result<void>> Offer::Impl::await_peer(Dialled* dialled) {
  char told = 0;
  TROUPE_CO_TRY(co_await dialled->tls->read_exactly(&told, 1));
  if (told == kOfferTaken) co_return core::Result<void>();
  co_return core::fail(ErrorCode::kPeerLost, "the verdict on service " + service + " is malformed");
}

async::task<void> Offer::Impl::carry_one(std::shared_ptr<Dialled> dialled) {
  LocalSocket local(work.executor());
  const stream_protocol::endpoint target(path);
  const auto [code] = co_await local.async_connect(target, kToken);
  if (code) {
    if (log) log(service + " does not answer: " + code.message());
    co_return;
  }
  if (!same_user(local.native_handle())) co_return;
  LastHeard unused;
  static_cast<void>(co_await carry(&*dialled->tls, &local, &unused));
}

core::Result<std::unique_ptr<Offer>> Offer::open(async::IoThreads& io,
                                                 const std::string& host,
                                                 std::uint16_t port,
                                                 GatewayAuth auth,
                                                 const std::string& service,
                                                 const std::string& path,
                                                 core::Duration deadline,
                                                 std::function<void(const std::string&)> log) {
  TROUPE_TRY_ASSIGN(context, LiveContext::open(auth, LiveContext::Side::kTunnel, log));
  std::unique_ptr<Impl> made(
      new Impl{GatewayDialler(host, port, std::move(auth), std::move(context)), service, path,
               std::move(log), StrandScope(io)});
  std::unique_ptr<Offer> offer(new Offer(std::move(made)));
  Impl* impl = offer->impl_.get();
  auto first = impl->fresh();
  TROUPE_TRY(io.run(impl->dial(first, deadline)));
  impl->work.start(impl->keep_one(std::move(first)));
  for (std::size_t more = 1; more < limits::kOffers_ready; ++more)
    impl->work.start(impl->keep_one(nullptr));
  return {std::move(offer)};
}

Offer::Offer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Offer::~Offer() {
  stop();
}

void Offer::end() {
  async::post(impl_->work.executor(), [impl = impl_.get()] {
    impl->ended = true;
    for (const auto& one : impl->ready)
      if (const auto dialled = one.lock()) dialled->cut();
  });
}

void Offer::stop() {
  impl_->work.stop();
}

}  // namespace troupe::net
