// Accepts, judges and carries. Everything but the table of services lives on one strand.
#include "runtime/net/door.hpp"

#include "runtime/async/deadline.hpp"
#include "runtime/async/notifier.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/net/carry.hpp"
#include "runtime/net/door_protocol.hpp"
#include "runtime/net/failure_book.hpp"
#include "runtime/net/listener.hpp"
#include "runtime/net/strand_scope.hpp"
#include "runtime/net/tls_context.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <mutex>
#include <optional>
#include <utility>

namespace troupe::net {

namespace asio = boost::asio;
namespace limits = core::limits;
using asio::ip::tcp;
using core::ErrorCode;

namespace {

constexpr auto kToken = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds kFullNotice{1};  // at most one line of a full door in this time

// One connection. `cut` ends every wait on it.
struct Visitor {
  Visitor(tcp::socket peer, SSL_CTX* context, const async::Executor& executor)
      : tls(std::move(peer), context, TlsStream::Side::kServer), local(executor) {}
  void cut() {
    late = true;
    tls.cut();
    boost::system::error_code ignored;
    local.close(ignored);
  }
  TlsStream tls;
  tcp::socket local;
  std::string address, endpoint;
  bool late = false;
};

// A counter that is held up as long as this lives.
class Held {
 public:
  Held(std::size_t& count, async::Notifier& freed) : count_(&count), freed_(freed) { ++*count_; }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { release(); }
  void release() {
    if (count_ == nullptr) return;
    --*std::exchange(count_, nullptr);
    freed_.notify_all();
  }

 private:
  std::size_t* count_;
  async::Notifier& freed_;
};

// Failures are counted by host: for IPv6 that is the network of 64 bits.
std::string host_of(const asio::ip::address& address) {
  if (!address.is_v6()) return address.to_string();
  auto bytes = address.to_v6().to_bytes();
  if (address.to_v6().is_v4_mapped()) return address.to_string();
  for (std::size_t i = 8; i < bytes.size(); ++i)
    bytes[i] = 0;
  return asio::ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace

struct Door::Impl {
  Impl(async::IoThreads& io, DoorAuth given, Services initial, Hooks called)
      : auth(std::move(given)),
        hooks(std::move(called)),
        work(io),
        freed(timers),
        services(std::move(initial)) {}

  void refuse(const std::string& who, const std::string& why) {
    if (hooks.refused) hooks.refused(who + ": " + why);
  }
  std::optional<std::uint16_t> port_of(const std::string& service) {
    const std::lock_guard lock(mutex);
    const auto found = services.find(service);
    if (found == services.end()) return std::nullopt;
    return found->second;
  }

  static async::task<void> accept_all(Impl* self);
  void welcome(tcp::socket socket);
  static async::task<void> visit(Impl* self, std::shared_ptr<Visitor> visitor);
  static async::task<core::Result<DoorRequest>> greet(Impl* self, Visitor* visitor);
  static async::task<core::Result<void>> connect(Impl* self, Visitor* visitor, DoorRequest request);
  void book_failure(const Visitor& visitor, const core::Error& error);

  const DoorAuth auth;
  const Hooks hooks;
  async::SteadyTimers timers;
  StrandScope work;
  SslContextPtr context;
  std::optional<tcp::acceptor> acceptor;
  async::Notifier freed;
  FailureBook book;
  std::size_t pending = 0, connections = 0;
  core::TimePoint full_notice = core::TimePoint::min();
  std::uint16_t port = 0;
  bool stopped = false;
  std::mutex mutex;
  Services services;  // under the mutex
};

async::task<void> Door::Impl::accept_all(Impl* self) {
  for (;;) {
    while (self->pending >= limits::kDoorPending_max) {
      co_await self->freed.wait(async::Deadline::none());
    }
    tcp::socket socket(self->work.executor());
    const auto [code] = co_await self->acceptor->async_accept(socket, kToken);
    if (self->work.scope().cancelled()) co_return;
    if (!code) {
      self->welcome(std::move(socket));
      continue;
    }
    if (code == asio::error::connection_aborted) continue;
    self->refuse("door", "cannot accept: " + code.message());
    co_await async::sleep_for(self->timers, limits::kAcceptPause);
  }
}

void Door::Impl::welcome(tcp::socket socket) {
  boost::system::error_code code;
  const auto endpoint = socket.remote_endpoint(code);
  if (code) return;  // gone already
  const core::TimePoint now = timers.now();
  const std::string address = host_of(endpoint.address());
  if (book.blocked(address, now)) return reset_on_close(socket, true);
  if (connections >= limits::kDoorConnections_max) {
    reset_on_close(socket, true);
    if (full_notice != core::TimePoint::min() && now - full_notice < kFullNotice) return;
    full_notice = now;
    return refuse(endpoint_text(endpoint),
                  "the door carries " + std::to_string(connections) + " connections already");
  }
  set_peer_options(socket);
  auto visitor = std::make_shared<Visitor>(std::move(socket), context.get(), work.executor());
  visitor->address = address;
  visitor->endpoint = endpoint_text(endpoint);
  ++pending;  // `visit` takes these over at once or, cancelled unstarted, nobody counts any more
  ++connections;
  work.scope().spawn("", visit(this, std::move(visitor)));
}

void Door::Impl::book_failure(const Visitor& visitor, const core::Error& error) {
  const std::string why =
      visitor.late
          ? "no proof within " + std::to_string(limits::kDoorAuthentication.count()) + " ms"
          : printable(error.message);
  refuse(visitor.endpoint, why);
  if (book.failed(visitor.address, timers.now())) {
    refuse(visitor.address, std::to_string(limits::kDoorFailures_max) +
                                " failures within a minute; refused at once until they are older");
  }
}

async::task<void> Door::Impl::visit(Impl* self, std::shared_ptr<Visitor> visitor) {
  --self->pending;  // the two counts of `welcome`, from now on by scope
  --self->connections;
  Held pending(self->pending, self->freed);
  const Held connection(self->connections, self->freed);
  auto executor = co_await asio::this_coro::executor;
  std::function<void()> cut = [visitor] { visitor->cut(); };
  async::Timer limit =
      self->timers.arm(executor, self->timers.now() + limits::kDoorAuthentication, std::move(cut));

  auto request = co_await greet(self, visitor.get());
  if (self->work.scope().cancelled()) co_return;
  if (!request) {
    self->book_failure(*visitor, request.error());
    co_return;
  }
  auto connected = co_await connect(self, visitor.get(), *request);
  if (self->work.scope().cancelled()) co_return;
  if (!connected) {
    self->refuse(visitor->endpoint, request->service + ": " + printable(connected.error().message));
    co_return;
  }
  limit.disarm();
  pending.release();
  if (request->errand == DoorErrand::kIntroduce) co_return;
  // How a carried connection ends is its two ends' business.
  static_cast<void>(co_await carry(&visitor->tls, &visitor->local));
}

async::task<core::Result<DoorRequest>> Door::Impl::greet(Impl* self, Visitor* visitor) {
  TROUPE_CO_TRY(co_await visitor->tls.handshake());
  auto request = co_await admit(&visitor->tls, &self->auth);
  co_return request;
}

// The verdict, after the local side is known to answer.
async::task<core::Result<void>> Door::Impl::connect(Impl* self,
                                                    Visitor* visitor,
                                                    DoorRequest request) {
  TlsStream* tls = &visitor->tls;
  const auto port = self->port_of(request.service);
  if (!port) {
    const std::string reason = "there is no service '" + request.service + "' behind this door";
    TROUPE_CO_TRY(co_await answer(tls, DoorVerdict::kNoService, request.proof, reason));
    co_return core::fail(ErrorCode::kNotFound, "no such service");
  }
  if (request.errand == DoorErrand::kIntroduce) {
    std::string pass;
    if (self->hooks.pass) pass = self->hooks.pass(request.service, visitor->endpoint);
    TROUPE_CO_TRY(co_await answer(tls, DoorVerdict::kWelcome, request.proof, std::move(pass)));
    auto ended = co_await tls->finish();
    co_return ended;
  }
  const tcp::endpoint target(asio::ip::address_v4::loopback(), *port);
  const auto [code] = co_await visitor->local.async_connect(target, kToken);
  if (code) {
    const std::string reason = "the service '" + request.service + "' does not answer";
    TROUPE_CO_TRY(co_await answer(tls, DoorVerdict::kNoService, request.proof, reason));
    co_return core::fail(ErrorCode::kPeerLost, "does not answer: " + code.message());
  }
  reset_on_close(visitor->local, true);
  auto sent = co_await answer(tls, DoorVerdict::kWelcome, request.proof, "");
  co_return sent;
}

core::Result<std::unique_ptr<Door>> Door::open(async::IoThreads& io,
                                               const std::string& host,
                                               std::uint16_t port,
                                               DoorAuth auth,
                                               Services services,
                                               Hooks hooks) {
  TROUPE_TRY_ASSIGN(context, make_door_context(auth));
  auto impl = std::make_unique<Impl>(io, std::move(auth), std::move(services), std::move(hooks));
  TROUPE_TRY_ASSIGN(acceptor, listen_on(impl->work.executor(), host, port));
  impl->context = std::move(context);
  impl->port = acceptor.local_endpoint().port();
  impl->acceptor.emplace(std::move(acceptor));
  impl->work.start(Impl::accept_all(impl.get()));
  return std::unique_ptr<Door>(new Door(std::move(impl)));
}

Door::Door(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Door::~Door() {
  stop();
}

void Door::set_service(const std::string& name, std::uint16_t local_port) {
  const std::lock_guard lock(impl_->mutex);
  impl_->services[name] = local_port;
}

std::uint16_t Door::port() const noexcept {
  return impl_->port;
}

void Door::stop() {
  if (std::exchange(impl_->stopped, true)) return;
  impl_->work.stop([this] {
    boost::system::error_code ignored;
    impl_->acceptor->close(ignored);
  });
}

}  // namespace troupe::net
