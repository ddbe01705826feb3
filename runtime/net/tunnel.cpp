#include "runtime/net/tunnel.hpp"

#include "runtime/async/deadline.hpp"
#include "runtime/net/await_token.hpp"
#include "runtime/net/carry.hpp"
#include "runtime/net/gateway_protocol.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/net/socket_folder.hpp"
#include "runtime/net/strand_scope.hpp"
#include "runtime/net/tls_context.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <optional>
#include <utility>

namespace troupe::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;
using core::ErrorCode;

namespace {


// A connection to the gateway that a timer can cut at any stage.
struct Dialled {
  explicit Dialled(const async::Executor& executor) : socket(executor), resolver(executor) {}
  void cut() {
    late = true;
    boost::system::error_code ignored;
    resolver.cancel();
    socket.close(ignored);
    if (tls) tls->cut();
  }
  tcp::socket socket;  // until it becomes the stream's
  tcp::resolver resolver;
  std::optional<TlsStream> tls;
  bool late = false;
};

}  // namespace

struct Tunnel::Impl {
  Impl(async::IoThreads& io,
       std::string to_host,
       std::uint16_t to_port,
       GatewayAuth given,
       std::string named,
       std::function<void(const std::string&)> called)
      : host(std::move(to_host)),
        port(to_port),
        auth(std::move(given)),
        service(std::move(named)),
        log(std::move(called)),
        work(io) {}

  std::string where() const { return "gateway " + host + ":" + std::to_string(port); }

  static async::task<core::Result<void>> dial(Impl* self, Dialled* dialled);
  static async::task<core::Result<std::string>> enter_gateway(Impl* self,
                                                           Dialled* dialled,
                                                           GatewayErrand errand);
  static async::task<core::Result<std::string>> pass_gateway(Impl* self,
                                                          std::shared_ptr<Dialled> dialled,
                                                          GatewayErrand errand,
                                                          core::Duration limit);
  static async::task<void> introduce(Impl* self,
                                     core::Duration limit,
                                     std::shared_ptr<std::promise<core::Result<std::string>>> out);
  static async::task<void> accept_all(Impl* self);
  static async::task<void> carry_one(Impl* self, std::shared_ptr<LocalSocket> local);

  const std::string host;
  const std::uint16_t port;
  const GatewayAuth auth;
  const std::string service;
  const std::function<void(const std::string&)> log;
  async::SteadyTimers timers;
  StrandScope work;
  SslContextPtr context;
  std::optional<SocketFolder> folder;
  std::optional<stream_protocol::acceptor> acceptor;
  std::size_t connections = 0;
  std::string pass, path;
  bool stopped = false;
};

async::task<core::Result<void>> Tunnel::Impl::dial(Impl* self, Dialled* dialled) {
  boost::system::error_code not_an_address;
  const auto address = asio::ip::make_address(self->host, not_an_address);
  if (!not_an_address) {
    const tcp::endpoint endpoint(address, self->port);
    const auto [code] = co_await dialled->socket.async_connect(endpoint, kToken);
    if (code) co_return core::fail(ErrorCode::kPeerLost, "cannot connect: " + code.message());
  } else {
    const std::string port = std::to_string(self->port);
    auto [code, found] = co_await dialled->resolver.async_resolve(self->host, port, kToken);
    if (code) co_return core::fail(ErrorCode::kPeerLost, "cannot resolve: " + code.message());
    const auto [failed, endpoint] = co_await asio::async_connect(dialled->socket, found, kToken);
    if (failed) co_return core::fail(ErrorCode::kPeerLost, "cannot connect: " + failed.message());
  }
  set_peer_options(dialled->socket);
  co_return core::Result<void>();
}

async::task<core::Result<std::string>> Tunnel::Impl::enter_gateway(Impl* self,
                                                                Dialled* dialled,
                                                                GatewayErrand errand) {
  TROUPE_CO_TRY(co_await dial(self, dialled));
  if (dialled->late) co_return core::fail(ErrorCode::kClosed, "closed");
  dialled->tls.emplace(std::move(dialled->socket), self->context.get(), TlsStream::Side::kClient);
  TlsStream* tls = &*dialled->tls;
  auto shaken = co_await tls->handshake();
  if (!shaken) {
    co_return core::fail(shaken.error().code,
                         shaken.error().message +
                             " (no gateway of this run, or one that refuses this address after "
                             "wrong proofs in the last minute)");
  }
  if (!self->auth.by_token()) TROUPE_CO_TRY(check_host_name(tls->native(), self->host));
  auto entered = co_await enter(tls, &self->auth, errand, self->service);
  co_return entered;
}

// `enter_gateway` within `limit`.
async::task<core::Result<std::string>> Tunnel::Impl::pass_gateway(Impl* self,
                                                               std::shared_ptr<Dialled> dialled,
                                                               GatewayErrand errand,
                                                               core::Duration limit) {
  auto executor = co_await asio::this_coro::executor;
  std::function<void()> cut = [dialled] { dialled->cut(); };
  const async::Timer timer = self->timers.arm(executor, self->timers.now() + limit, std::move(cut));
  auto entered = co_await enter_gateway(self, dialled.get(), errand);
  if (entered) co_return entered;
  if (dialled->late) {
    const auto limit_ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
    co_return core::fail(ErrorCode::kDeadline,
                         self->where() + ": not let in within " + std::to_string(limit_ms) + " ms");
  }
  co_return core::fail(entered.error().within(self->where()));
}

async::task<void> Tunnel::Impl::introduce(
    Impl* self,
    core::Duration limit,
    std::shared_ptr<std::promise<core::Result<std::string>>> out) {
  auto dialled = std::make_shared<Dialled>(self->work.executor());
  auto entered = co_await pass_gateway(self, std::move(dialled), GatewayErrand::kIntroduce, limit);
  out->set_value(std::move(entered));
}

async::task<void> Tunnel::Impl::accept_all(Impl* self) {
  for (;;) {
    stream_protocol::socket socket(self->work.executor());
    const auto [code] = co_await self->acceptor->async_accept(socket, kToken);
    if (self->work.scope().cancelled()) co_return;
    if (code == asio::error::connection_aborted) continue;
    if (code) {
      if (self->log) self->log("tunnel: cannot accept: " + code.message());
      co_await async::sleep_for(self->timers, limits::kAcceptPause);
      continue;
    }
    if (!same_user(socket.native_handle())) continue;
    if (self->connections >= limits::kGatewayConnections_max) {
      if (self->log) self->log("tunnel: too many connections at once");
      continue;
    }
    ++self->connections;
    auto local = std::make_shared<LocalSocket>(std::move(socket));
    self->work.scope().spawn("", carry_one(self, std::move(local)));
  }
}

async::task<void> Tunnel::Impl::carry_one(Impl* self, std::shared_ptr<LocalSocket> local) {
  struct Counted {
    std::size_t& count;
    ~Counted() { --count; }
  };
  const Counted counted{self->connections};
  auto dialled = std::make_shared<Dialled>(self->work.executor());
  auto entered = co_await pass_gateway(self, dialled, GatewayErrand::kCarry, limits::kTunnelConnect);
  if (self->work.scope().cancelled()) co_return;
  if (!entered) {
    if (self->log) self->log(entered.error().message);
    co_return;
  }
  static_cast<void>(co_await carry(&*dialled->tls, local.get()));
}

core::Result<std::unique_ptr<Tunnel>> Tunnel::open(async::IoThreads& io,
                                                   const std::string& host,
                                                   std::uint16_t port,
                                                   GatewayAuth auth,
                                                   const std::string& service,
                                                   core::Duration deadline,
                                                   std::function<void(const std::string&)> log) {
  TROUPE_TRY_ASSIGN(context, make_tunnel_context(auth));
  std::unique_ptr<Tunnel> tunnel(
      new Tunnel(std::make_unique<Impl>(io, host, port, std::move(auth), service, std::move(log))));
  Impl* impl = tunnel->impl_.get();
  impl->context = std::move(context);
  auto out = std::make_shared<std::promise<core::Result<std::string>>>();
  auto entered = out->get_future();
  impl->work.start(Impl::introduce(impl, deadline, out));
  TROUPE_TRY_SET(impl->pass, entered.get());
  TROUPE_TRY_ASSIGN(folder, SocketFolder::make());
  impl->path = folder.socket("tunnel");
  TROUPE_TRY_ASSIGN(listener, listen_unix(impl->path));
  impl->folder.emplace(std::move(folder));
  impl->acceptor.emplace(impl->work.executor(), stream_protocol(), listener.release());
  impl->work.start(Impl::accept_all(impl));
  return {std::move(tunnel)};
}

Tunnel::Tunnel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tunnel::~Tunnel() {
  stop();
}

const std::string& Tunnel::path() const noexcept {
  return impl_->path;
}
const std::string& Tunnel::pass() const noexcept {
  return impl_->pass;
}

void Tunnel::stop() {
  if (std::exchange(impl_->stopped, true)) return;
  impl_->work.stop([this] {
    boost::system::error_code ignored;
    if (impl_->acceptor) impl_->acceptor->close(ignored);
  });
}

}  // namespace troupe::net
