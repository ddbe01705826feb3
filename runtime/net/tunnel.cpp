#include "runtime/net/tunnel.hpp"

#include "runtime/async/deadline.hpp"
#include "runtime/net/await_token.hpp"
#include "runtime/net/carry.hpp"
#include "runtime/net/gateway_protocol.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/net/live_context.hpp"
#include "runtime/net/socket_folder.hpp"
#include "runtime/net/strand_scope.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/local/stream_protocol.hpp>

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
  tcp::socket socket;  // moved into `tls` once connected
  tcp::resolver resolver;
  std::optional<TlsStream> tls;
  bool late = false;
};

}  // namespace

struct Tunnel::Impl {
  std::string where() const { return "gateway " + host + ":" + std::to_string(port); }

  async::task<core::Result<void>> dial(Dialled* dialled);
  async::task<core::Result<std::string>> enter_gateway(Dialled* dialled, GatewayErrand errand);
  async::task<core::Result<std::string>> pass_gateway(std::shared_ptr<Dialled> dialled,
                                                      GatewayErrand errand,
                                                      core::Duration limit);
  async::task<void> accept_all();
  async::task<void> carry_one(std::shared_ptr<LocalSocket> local);

  const std::string host;
  const std::uint16_t port;
  const GatewayAuth auth;
  const std::string service;
  const std::function<void(const std::string&)> log;
  LiveContext context;  // on the strand
  StrandScope work;
  async::SteadyTimers timers{};
  std::optional<SocketFolder> folder{};
  std::optional<stream_protocol::acceptor> acceptor{};
  std::size_t connections = 0;
  std::string pass{}, path{};
};

async::task<core::Result<void>> Tunnel::Impl::dial(Dialled* dialled) {
  boost::system::error_code not_an_address;
  const auto address = asio::ip::make_address(host, not_an_address);
  if (!not_an_address) {
    const tcp::endpoint endpoint(address, port);
    const auto [code] = co_await dialled->socket.async_connect(endpoint, kToken);
    if (code) co_return core::fail(ErrorCode::kPeerLost, "cannot connect: " + code.message());
  } else {
    const std::string number = std::to_string(port);
    auto [code, found] = co_await dialled->resolver.async_resolve(host, number, kToken);
    if (code) co_return core::fail(ErrorCode::kPeerLost, "cannot resolve: " + code.message());
    const auto [failed, endpoint] = co_await asio::async_connect(dialled->socket, found, kToken);
    if (failed) co_return core::fail(ErrorCode::kPeerLost, "cannot connect: " + failed.message());
  }
  set_peer_options(dialled->socket);
  co_return core::Result<void>();
}

async::task<core::Result<std::string>> Tunnel::Impl::enter_gateway(Dialled* dialled,
                                                                   GatewayErrand errand) {
  TROUPE_CO_TRY(co_await dial(dialled));
  if (dialled->late) co_return core::fail(ErrorCode::kClosed, "closed");
  dialled->tls.emplace(std::move(dialled->socket), context.current(), TlsStream::Side::kClient);
  TlsStream* tls = &*dialled->tls;
  auto shaken = co_await tls->handshake();
  if (!shaken) {
    co_return core::fail(shaken.error().code,
                         shaken.error().message +
                             " (no gateway of this run, or one that refuses this address after "
                             "wrong proofs in the last minute)");
  }
  if (!auth.by_token()) TROUPE_CO_TRY(check_host_name(tls->native(), host));
  const bool known = errand == GatewayErrand::kCarry && !pass.empty();
  std::string name = known ? service + "/" + pass : service;
  auto entering = enter(tls, &auth, errand, std::move(name));
  auto entered = co_await std::move(entering);
  co_return entered;
}

// Calls `enter_gateway`, but cuts the connection after `limit`.
async::task<core::Result<std::string>> Tunnel::Impl::pass_gateway(std::shared_ptr<Dialled> dialled,
                                                                  GatewayErrand errand,
                                                                  core::Duration limit) {
  auto executor = co_await asio::this_coro::executor;
  std::function<void()> cut = [dialled] { dialled->cut(); };
  const async::Timer timer = timers.arm(executor, timers.now() + limit, std::move(cut));
  auto entered = co_await enter_gateway(dialled.get(), errand);
  if (entered) co_return entered;
  if (dialled->late) {
    const auto limit_ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
    co_return core::fail(ErrorCode::kDeadline,
                         where() + ": not let in within " + std::to_string(limit_ms) + " ms");
  }
  co_return core::fail(entered.error().within(where()));
}

async::task<void> Tunnel::Impl::accept_all() {
  for (;;) {
    stream_protocol::socket socket(work.executor());
    const auto [code] = co_await acceptor->async_accept(socket, kToken);
    if (work.scope().cancelled()) co_return;
    if (code == asio::error::connection_aborted) continue;
    if (code) {
      if (log) log("tunnel: cannot accept: " + code.message());
      co_await async::sleep_for(timers, limits::kAcceptPause);
      continue;
    }
    if (!same_user(socket.native_handle())) continue;
    if (connections >= limits::kGatewayConnections_max) {
      if (log) log("tunnel: too many connections at once");
      continue;
    }
    ++connections;
    auto local = std::make_shared<LocalSocket>(std::move(socket));
    work.scope().spawn("", carry_one(std::move(local)));
  }
}

async::task<void> Tunnel::Impl::carry_one(std::shared_ptr<LocalSocket> local) {
  const Counted counted{connections};
  auto dialled = std::make_shared<Dialled>(work.executor());
  auto entered = co_await pass_gateway(dialled, GatewayErrand::kCarry, limits::kTunnelConnect);
  if (work.scope().cancelled()) co_return;
  if (!entered) {
    if (log) log(entered.error().message);
    co_return;
  }
  LastHeard unused;
  static_cast<void>(co_await carry(&*dialled->tls, local.get(), &unused));
}

core::Result<std::unique_ptr<Tunnel>> Tunnel::open(async::IoThreads& io,
                                                   const std::string& host,
                                                   std::uint16_t port,
                                                   GatewayAuth auth,
                                                   const std::string& service,
                                                   core::Duration deadline,
                                                   std::function<void(const std::string&)> log) {
  TROUPE_TRY_ASSIGN(context, LiveContext::open(auth, LiveContext::Side::kTunnel, log));
  std::unique_ptr<Impl> made(new Impl{host, port, std::move(auth), service, std::move(log),
                                      std::move(context), StrandScope(io)});
  std::unique_ptr<Tunnel> tunnel(new Tunnel(std::move(made)));
  Impl* impl = tunnel->impl_.get();
  auto dialled = std::make_shared<Dialled>(impl->work.executor());
  TROUPE_TRY_SET(impl->pass, io.run(impl->pass_gateway(std::move(dialled),
                                                       GatewayErrand::kIntroduce, deadline)));
  TROUPE_TRY_ASSIGN(folder, SocketFolder::make());
  impl->path = folder.socket("tunnel");
  TROUPE_TRY_ASSIGN(listener, listen_unix(impl->path));
  impl->folder.emplace(std::move(folder));
  impl->acceptor.emplace(impl->work.executor(), stream_protocol(), listener.release());
  impl->work.start(impl->accept_all());
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
  impl_->work.stop();
  impl_->acceptor.reset();
}

}  // namespace troupe::net
