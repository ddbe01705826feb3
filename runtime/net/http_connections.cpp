#include "runtime/net/http_connections.hpp"

#include "runtime/core/at_exit.hpp"
#include "runtime/net/limits.hpp"

#include <utility>

namespace troupe::net {

class HttpConnections::Young {
 public:
  Young(std::weak_ptr<HttpConnections> owner, Host& host) : owner_(std::move(owner)), host_(host) {
    ++host_.young;
  }
  Young(const Young&) = delete;
  Young& operator=(const Young&) = delete;
  ~Young() { end(); }

  void end() {
    const auto owner = owner_.lock();
    if (!owner || std::exchange(ended_, true)) return;
    --host_.young;
    owner->wake(host_);
  }
  void end_at(async::Timer timer) { timer_ = std::move(timer); }

 private:
  const std::weak_ptr<HttpConnections> owner_;  // of the host
  Host& host_;
  bool ended_ = false;
  async::Timer timer_;
};

HttpConnections::Host& HttpConnections::host_of(const HttpCall& call) {
  return hosts_[(call.url.tls ? "https " : "http ") + call.url.host + " " +
                std::to_string(call.url.port)];
}

std::unique_ptr<HttpConnection> HttpConnections::idle_of(Host& host) {
  while (!host.idle.empty()) {
    auto connection = std::move(host.idle.back().connection);
    host.idle.pop_back();
    if (!connection->spent()) return connection;
  }
  return nullptr;
}

void HttpConnections::wake(Host& host) {
  if (host.idle.empty() && host.young >= limits::kHttpYoung_max) return;
  for (const auto& waiter : host.waiting)
    if (waiter->set(true)) return;
}

async::task<core::Result<HttpConnections::Lease>> HttpConnections::take(
    std::shared_ptr<HttpConnections> self, const HttpCall* call) {
  Host& host = self->host_of(*call);
  // A wake that came to nothing here goes to the next.
  const core::AtExit pass([self, &host] { self->wake(host); });
  auto executor = co_await boost::asio::this_coro::executor;
  Lease lease;
  for (bool first = true;; first = false) {
    const bool in_turn = !first || host.waiting.empty();
    if (in_turn) lease.connection = self->idle_of(host);
    if (lease.connection) co_return std::move(lease);
    if (in_turn && host.young < limits::kHttpYoung_max) break;
    const auto signal = std::make_shared<Signal>();
    const async::Listed<Signal> listed(host.waiting, signal);
    const async::Deadline until{call->until};
    const auto late = call->failure("connect", boost::beast::error::timeout);
    TROUPE_CO_TRY(co_await async::take_until(self->timers_, signal, until, late.error));
  }
  lease.young = std::make_shared<Young>(self->weak_from_this(), host);
  TROUPE_CO_TRY_ASSIGN(tls, client_tls(call->url));
  lease.connection = std::make_unique<HttpConnection>(executor, tls);
  ++self->opened_;
  TROUPE_CO_TRY(co_await lease.connection->open(call));
  std::function<void()> grown = [young = std::weak_ptr<Young>(lease.young)] {
    if (const auto still = young.lock()) still->end();
  };
  lease.young->end_at(
      self->timers_.arm(executor, self->timers_.now() + limits::kHttpYoung, std::move(grown)));
  co_return std::move(lease);
}

void HttpConnections::give(const HttpCall& call, async::Executor executor, Lease lease) {
  Host& host = host_of(call);
  if (lease.young) lease.young->end();
  if (!lease.connection->reusable()) return;
  const core::TimePoint until = timers_.now() + limits::kHttpKept;
  std::function<void()> close = [weak = weak_from_this(), &host] {
    if (const auto self = weak.lock()) self->sweep(host);
  };
  host.idle.push_back({std::move(lease.connection), until,
                       timers_.arm(std::move(executor), until, std::move(close))});
  wake(host);
}

void HttpConnections::sweep(Host& host) {
  const core::TimePoint now = timers_.now();
  host.idle.remove_if([now](const Idle& idle) { return idle.until <= now; });
}

}  // namespace troupe::net
