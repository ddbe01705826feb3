#include "runtime/net/gateway.hpp"

#include "runtime/async/deadline.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/notifier.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/core/at_exit.hpp"
#include "runtime/core/open_files.hpp"
#include "runtime/net/await_token.hpp"
#include "runtime/net/carry.hpp"
#include "runtime/net/gateway_protocol.hpp"
#include "runtime/net/gateway_records.hpp"
#include "runtime/net/gateway_visitor.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/net/listener.hpp"
#include "runtime/net/live_context.hpp"
#include "runtime/net/socket.hpp"
#include "runtime/net/strand_scope.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <algorithm>
#include <list>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::net {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// A client sends first. When connections wait, one that has sent nothing for this long may be cut.
constexpr std::chrono::milliseconds kSilence{250};
constexpr std::chrono::milliseconds kLook{50};  // between two searches for such a client

asio::generic::stream_protocol::endpoint endpoint_of(const Gateway::Service& service) {
  if (!service.path.empty()) return asio::local::stream_protocol::endpoint(service.path);
  return tcp::endpoint(asio::ip::address_v4::loopback(), service.port);
}

int gateway_threads() {
  return std::clamp<int>(static_cast<int>(std::thread::hardware_concurrency()), 1,
                         static_cast<int>(limits::kGatewayThreads_max));
}

}  // namespace

struct Gateway::Impl {
  Impl(GatewayAuth given, LiveContext tls, Services initial, Hooks called)
      : auth(std::move(given)),
        hooks(std::move(called)),
        context(std::move(tls)),
        threads(gateway_threads()),
        work(threads),
        freed(timers),
        offers(timers),
        services(std::move(initial)) {}

  void refuse(const Visitor& visitor, const std::string& why);
  std::optional<Service> find(const std::string& service) {
    const std::lock_guard lock(mutex);
    const auto found = services.find(service);
    if (found == services.end()) return std::nullopt;
    return found->second;
  }

  // Lists a visitor whose bytes are carried, while this object lives.
  struct Carried {
    Carried(Impl& gateway, std::shared_ptr<Visitor> one) : self(gateway), visitor(std::move(one)) {
      const std::lock_guard lock(self.mutex);
      self.carrying.push_back(visitor);
    }
    ~Carried() {
      const std::lock_guard lock(self.mutex);
      self.carrying.remove(visitor);
    }
    Impl& self;
    const std::shared_ptr<Visitor> visitor;
  };

  void close();
  async::task<void> accept_all();
  async::task<void> carry_through(std::shared_ptr<Visitor> visitor);
  async::task<void> watch_certificates();
  void welcome(tcp::socket socket);
  async::task<void> visit(std::shared_ptr<Visitor> visitor);
  async::task<core::Result<GatewayRequest>> greet(Visitor* visitor);
  async::task<core::Result<void>> connect(Visitor* visitor, GatewayRequest request);
  async::task<core::Result<void>> reach(Visitor* visitor,
                                        std::optional<Service> service,
                                        std::string name);
  // No further connection may be taken from strangers.
  bool crowded() {
    return pending.size() >= pending_max ||
           !core::has_room_for_strangers(acceptor->native_handle());
  }
  bool make_room();
  void book_failure(const Visitor& visitor, const core::Error& error);

  const GatewayAuth auth;
  const Hooks hooks;
  LiveContext context;
  async::SteadyTimers timers;
  async::IoThreads threads;
  StrandScope work;
  std::optional<tcp::acceptor> acceptor;
  async::Notifier freed;                              // a connection left `pending`
  GatewayOffers offers;                               // of services by peers
  std::list<std::shared_ptr<Visitor>> pending;        // not proven yet, the oldest first
  MinuteBook failures{limits::kGatewayFailures_max};  // by address
  MinuteBook lines{limits::kGatewayFailures_max};     // by network
  MinuteBook all_lines{limits::kGatewayLines_max};    // by ""
  ProvenBook proven;
  // Each that is carried takes a second descriptor.
  const std::uint64_t pending_max = core::share_of_files(limits::kGatewayPending_max);
  const std::uint64_t carried_max = core::share_of_files(limits::kGatewayConnections_max);
  std::size_t carried = 0;
  bool closing = false;
  std::uint16_t port = 0;
  mutable std::mutex mutex;
  std::list<std::shared_ptr<Visitor>> carrying;  // under the mutex
  Services services;                             // under the mutex
};

// Logs a refusal, at most kGatewayFailures_max lines a minute about one network and
// kGatewayLines_max in all.
void Gateway::Impl::refuse(const Visitor& visitor, const std::string& why) {
  const core::TimePoint now = timers.now();
  if (!hooks.refused || lines.full(visitor.network, now) || all_lines.full("", now)) return;
  const bool last = lines.add(visitor.network, now);
  const bool last_of_all = all_lines.add("", now);
  hooks.refused(visitor.endpoint + ": " + why);
  if (last_of_all) {
    hooks.refused("no more is said about anybody within this minute");
  } else if (last) {
    hooks.refused(visitor.network + ": no more is said about it within this minute");
  }
}

async::task<void> Gateway::Impl::accept_all() {
  for (;;) {
    while (crowded()) {
      co_await asio::post(work.executor(), kToken);  // what was read already counts first
      if (crowded() && !make_room()) co_await freed.wait(async::Deadline::after(timers, kLook));
    }
    tcp::socket socket(work.executor());
    const auto [code] = co_await acceptor->async_accept(socket, kToken);
    if (work.scope().cancelled()) co_return;
    if (!code) {
      welcome(std::move(socket));
      continue;
    }
    if (code == asio::error::connection_aborted) continue;
    if (hooks.refused) hooks.refused("cannot accept: " + code.message());
    co_await async::sleep_for(timers, limits::kAcceptPause);
  }
}

// Without it, a gateway without clients would not warn.
async::task<void> Gateway::Impl::watch_certificates() {
  for (;;) {
    context.current();
    co_await async::sleep_for(timers, limits::kCertificateLook);
  }
}

void Gateway::Impl::welcome(tcp::socket socket) {
  boost::system::error_code code;
  const auto endpoint = socket.remote_endpoint(code);
  if (code) return;  // the client has disconnected already
  const core::TimePoint now = timers.now();
  const std::string address = endpoint.address().to_string();
  if (failures.full(address, now) && !proven.knows(address, now))
    return reset_on_close(socket.native_handle(), true);
  set_peer_options(socket);
  const core::TimePoint since = silent_since(socket, now);
  auto visitor = std::make_shared<Visitor>(std::move(socket), context.current(), work.executor());
  visitor->address = address;
  visitor->network = network_of(endpoint.address());
  visitor->endpoint = (std::ostringstream() << endpoint).str();
  visitor->since = since;
  pending.push_back(visitor);
  work.scope().spawn("", visit(std::move(visitor)));
}

// Makes room in `pending`: cuts the oldest silent connection of the network that has the most
// silent connections. Returns false if none is silent.
bool Gateway::Impl::make_room() {
  const core::TimePoint now = timers.now();
  std::map<std::string, std::vector<std::shared_ptr<Visitor>>> crowds;
  for (const auto& visitor : pending) {
    if (now - visitor->since >= kSilence && visitor->silent())
      crowds[visitor->network].push_back(visitor);
  }
  const auto most =
      std::ranges::max_element(crowds, {}, [](const auto& crowd) { return crowd.second.size(); });
  if (most == crowds.end()) return false;
  const auto oldest = most->second.front();
  oldest->crowded = true;
  oldest->cut();
  pending.remove(oldest);
  return true;
}

void Gateway::Impl::book_failure(const Visitor& visitor, const core::Error& error) {
  const std::string why =
      visitor.crowded ? "said nothing while others waited"
      : visitor.late
          ? "no proof within " + std::to_string(limits::kGatewayAuthentication.count()) + " ms"
          : printable(error.message);
  const core::TimePoint now = timers.now();
  // Failures before the end of the handshake are not counted, since anybody can cause them.
  const bool full = visitor.shaken && !visitor.crowded && failures.add(visitor.address, now);
  const bool locked = full && !proven.knows(visitor.address, now);
  refuse(visitor, locked ? why + "; after " + std::to_string(limits::kGatewayFailures_max) +
                               " wrong proofs within a minute it is refused at once"
                         : why);
}

async::task<void> Gateway::Impl::visit(std::shared_ptr<Visitor> visitor) {
  auto executor = co_await asio::this_coro::executor;
  const std::function<void()> cut = [visitor] { visitor->cut(); };
  async::Timer limit = timers.arm(executor, timers.now() + limits::kGatewayAuthentication, cut);

  auto request = co_await greet(visitor.get());
  if (work.scope().cancelled()) co_return;
  pending.remove(visitor);
  freed.notify_all();
  if (!request) {
    book_failure(*visitor, request.error());
    co_return;
  }
  limit = timers.arm(executor, timers.now() + limits::kGatewayReach, cut);
  const ProvenVisit inside(proven, carried, timers, visitor->address);
  const core::AtExit let_go([this, visitor] {
    if (visitor->other) offers.finish(*visitor->other);
  });
  std::optional<GatewayOffers::Announced> announced;
  if (request->errand == GatewayErrand::kOffer) announced.emplace(offers, request->service);
  auto connected = co_await connect(visitor.get(), *request);
  if (work.scope().cancelled()) co_return;
  if (!connected) {
    refuse(*visitor, request->service + ": " + printable(connected.error().message));
    co_return;
  }
  limit.disarm();
  if (request->errand == GatewayErrand::kIntroduce) co_return;
  if (closing) co_return;
  if (request->errand == GatewayErrand::kOffer) {
    auto offered = std::make_shared<Offered>();
    offered->tls = std::shared_ptr<TlsStream>(visitor, &visitor->tls);
    auto kept = offers.keep(request->service, std::move(offered));
    co_await std::move(kept);
    co_return;
  }
  visitor->pass = request->label;
  auto carried_through = carry_through(std::move(visitor));
  co_await std::move(carried_through);
}

// Carries the bytes of a connection on a strand of its own; nothing else touches it meanwhile but
// `close`, which ends it there. Asio 1.26 must not cancel a coroutine that waits for another
// strand. Both ends see how the connection ends, so the gateway does not log it.
async::task<void> Gateway::Impl::carry_through(std::shared_ptr<Visitor> visitor) {
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  visitor->strand = threads.make_strand();
  const Carried listed(*this, visitor);
  visitor->heard.now();
  auto bytes = visitor->other ? carry(&visitor->tls, visitor->other->tls.get(), &visitor->heard)
                              : carry(&visitor->tls, &visitor->local, &visitor->heard);
  static_cast<void>(co_await async::run_on(visitor->strand, std::move(bytes)));
}

// Ends all connections that are carried and lets no other begin. On the gateway's strand.
void Gateway::Impl::close() {
  closing = true;
  const std::lock_guard lock(mutex);
  for (const auto& visitor : carrying)
    async::post(visitor->strand, [visitor] { visitor->cut(); });
}

async::task<core::Result<GatewayRequest>> Gateway::Impl::greet(Visitor* visitor) {
  TROUPE_CO_TRY(co_await visitor->tls.handshake());
  visitor->shaken = true;
  auto request = co_await admit(&visitor->tls, &auth);
  co_return request;
}

// Sends the verdict. For kCarry it connects to the service first, so kWelcome means that the
// service has accepted the connection.
async::task<core::Result<void>> Gateway::Impl::connect(Visitor* visitor, GatewayRequest request) {
  TlsStream* tls = &visitor->tls;
  const auto service = find(request.service);
  const bool offer = request.errand == GatewayErrand::kOffer;
  const bool known = offer ? !service : service || offers.knows(request.service);
  if (!known) {
    const std::string reason =
        offer ? "'" + request.service + "' is a service of the gateway's own"
              : "there is no service '" + request.service + "' behind this gateway";
    TROUPE_CO_TRY(co_await answer(tls, GatewayVerdict::kNoService, request.proof, reason));
    co_return core::fail(ErrorCode::kNotFound,
                         offer ? "others may not offer it" : "no such service");
  }
  if (request.errand == GatewayErrand::kIntroduce) {
    std::string pass;
    if (hooks.pass) pass = hooks.pass(request.service, visitor->endpoint);
    TROUPE_CO_TRY(co_await answer(tls, GatewayVerdict::kWelcome, request.proof, std::move(pass)));
    auto ended = co_await tls->finish();
    co_return ended;
  }
  if (carried > carried_max) {
    const std::string reason = "the gateway carries " + std::to_string(carried_max) +
                               " connections already" +
                               (carried_max < limits::kGatewayConnections_max
                                    ? ", a quarter of its limit on open files (`ulimit -n` there)"
                                    : "");
    TROUPE_CO_TRY(co_await answer(tls, GatewayVerdict::kFull, request.proof, reason));
    co_return core::fail(ErrorCode::kOverloaded, reason);
  }
  if (!offer) {
    auto reached = co_await reach(visitor, service, request.service);
    if (!reached) {
      const std::string reason = "the service '" + request.service + "' does not answer";
      TROUPE_CO_TRY(co_await answer(tls, GatewayVerdict::kNoService, request.proof, reason));
      co_return reached;
    }
  }
  auto sent = co_await answer(tls, GatewayVerdict::kWelcome, request.proof, "");
  co_return sent;
}

// Connects a visitor to the gateway's own service, or else to the one that another peer offers.
async::task<core::Result<void>> Gateway::Impl::reach(Visitor* visitor,
                                                     std::optional<Service> service,
                                                     std::string name) {
  if (!service) {
    const auto deadline = async::Deadline::after(timers, limits::kOfferWait);
    auto taken = offers.take(std::move(name), deadline);
    visitor->other = co_await std::move(taken);
    if (!visitor->other) co_return core::fail(ErrorCode::kPeerLost, "its peer is gone or busy");
    co_return core::Result<void>();
  }
  const auto target = endpoint_of(*service);
  const auto [code] = co_await visitor->local.async_connect(target, kToken);
  const bool ours = service->path.empty() || same_user(visitor->local.native_handle());
  if (code || !ours) {
    co_return core::fail(ErrorCode::kPeerLost, code ? "does not answer: " + code.message()
                                                    : "another user has its place");
  }
  reset_on_close(visitor->local.native_handle(), true);
  co_return core::Result<void>();
}

core::Result<std::unique_ptr<Gateway>> Gateway::open(
    const std::string& host, std::uint16_t port, GatewayAuth auth, Services services, Hooks hooks) {
  TROUPE_TRY_ASSIGN(context,
                    LiveContext::open(auth, LiveContext::Side::kGateway, hooks.certificates));
  auto impl = std::make_unique<Impl>(std::move(auth), std::move(context), std::move(services),
                                     std::move(hooks));
  TROUPE_TRY_ASSIGN(acceptor, listen_on(impl->work.executor(), host, port));
  impl->port = acceptor.local_endpoint().port();
  impl->acceptor.emplace(std::move(acceptor));
  impl->work.start(impl->accept_all());
  if (!impl->auth.by_token()) impl->work.start(impl->watch_certificates());
  return std::unique_ptr<Gateway>(new Gateway(std::move(impl)));
}

Gateway::Gateway(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Gateway::~Gateway() {
  stop();
}

void Gateway::set_service(const std::string& name, Service service) {
  const std::lock_guard lock(impl_->mutex);
  impl_->services.insert_or_assign(name, std::move(service));
}

void Gateway::drop_service(const std::string& name) {
  const std::lock_guard lock(impl_->mutex);
  impl_->services.erase(name);
}

std::uint16_t Gateway::port() const noexcept {
  return impl_->port;
}

std::optional<core::TimePoint> Gateway::heard(const std::string& pass) const {
  std::optional<core::TimePoint> last;
  if (pass.empty()) return last;
  const std::lock_guard lock(impl_->mutex);
  for (const auto& visitor : impl_->carrying)
    if (visitor->pass == pass)
      last = std::max(last.value_or(core::TimePoint()), visitor->heard.when());
  return last;
}

void Gateway::stop() {
  async::post(impl_->work.executor(), [impl = impl_.get()] { impl->close(); });
  impl_->work.stop();
  impl_->acceptor.reset();
}

}  // namespace troupe::net
