#include "runtime/net/tunnel.hpp"

#include "runtime/async/deadline.hpp"
#include "runtime/core/open_files.hpp"
#include "runtime/net/await_token.hpp"
#include "runtime/net/carry.hpp"
#include "runtime/net/gateway_dial.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/net/socket_folder.hpp"
#include "runtime/net/strand_scope.hpp"

#include <boost/asio/local/stream_protocol.hpp>

#include <optional>
#include <utility>

namespace troupe::net {

namespace asio = boost::asio;
using asio::local::stream_protocol;

struct Tunnel::Impl {
  async::task<void> accept_all();
  async::task<void> carry_one(std::shared_ptr<LocalSocket> local);

  GatewayDialler dialler;  // on the strand
  const std::string service;
  const std::function<void(const std::string&)> log;
  StrandScope work;
  async::SteadyTimers timers{};
  std::optional<SocketFolder> folder{};
  std::optional<stream_protocol::acceptor> acceptor{};
  const std::uint64_t connections_max = core::share_of_files(limits::kGatewayConnections_max);
  std::size_t connections = 0;
  std::string pass{}, path{};
};

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
    if (connections >= connections_max) {
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
  std::string name = pass.empty() ? service : service + "/" + pass;
  auto entering =
      dialler.pass(dialled, GatewayErrand::kCarry, std::move(name), limits::kTunnelConnect);
  auto entered = co_await std::move(entering);
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
  std::unique_ptr<Impl> made(
      new Impl{GatewayDialler(host, port, std::move(auth), std::move(context)), service,
               std::move(log), StrandScope(io)});
  std::unique_ptr<Tunnel> tunnel(new Tunnel(std::move(made)));
  Impl* impl = tunnel->impl_.get();
  auto dialled = std::make_shared<Dialled>(impl->work.executor());
  TROUPE_TRY_SET(
      impl->pass,
      io.run(impl->dialler.pass(std::move(dialled), GatewayErrand::kIntroduce, service, deadline)));
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
