#include "runtime/net/gateway_dial.hpp"

#include "runtime/net/await_token.hpp"
#include "runtime/net/carry.hpp"

#include <boost/asio/connect.hpp>

#include <utility>

namespace troupe::net {

namespace asio = boost::asio;
using asio::ip::tcp;

void Dialled::cut() {
  late = true;
  boost::system::error_code ignored;
  resolver.cancel();
  socket.close(ignored);
  if (tls) tls->cut();
}

async::task<core::Result<void>> GatewayDialler::dial(Dialled* dialled) {
  boost::system::error_code not_an_address;
  const auto address = asio::ip::make_address(host_, not_an_address);
  if (!not_an_address) {
    const tcp::endpoint endpoint(address, port_);
    const auto [code] = co_await dialled->socket.async_connect(endpoint, kToken);
    if (code) co_return core::fail(ErrorCode::kPeerLost, "cannot connect: " + code.message());
  } else {
    const std::string number = std::to_string(port_);
    auto [code, found] = co_await dialled->resolver.async_resolve(host_, number, kToken);
    if (code) co_return core::fail(ErrorCode::kPeerLost, "cannot resolve: " + code.message());
    const auto [failed, endpoint] = co_await asio::async_connect(dialled->socket, found, kToken);
    if (failed) co_return core::fail(ErrorCode::kPeerLost, "cannot connect: " + failed.message());
  }
  set_peer_options(dialled->socket);
  co_return core::Result<void>();
}

async::task<core::Result<std::string>> GatewayDialler::enter_gateway(Dialled* dialled,
                                                                     GatewayErrand errand,
                                                                     std::string service) {
  TROUPE_CO_TRY(co_await dial(dialled));
  if (dialled->late) co_return core::fail(ErrorCode::kClosed, "closed");
  dialled->tls.emplace(std::move(dialled->socket), context_.current(), TlsStream::Side::kClient);
  TlsStream* tls = &*dialled->tls;
  auto shaken = co_await tls->handshake();
  if (!shaken) {
    co_return core::fail(shaken.error().code,
                         shaken.error().message +
                             " (no gateway of this run, or one that refuses this address after "
                             "wrong proofs in the last minute)");
  }
  if (!auth_.by_token()) TROUPE_CO_TRY(check_host_name(tls->native(), host_));
  auto entering = enter(tls, &auth_, errand, std::move(service));
  auto entered = co_await std::move(entering);
  co_return entered;
}

async::task<core::Result<std::string>> GatewayDialler::pass(std::shared_ptr<Dialled> dialled,
                                                            GatewayErrand errand,
                                                            std::string service,
                                                            core::Duration limit) {
  auto executor = co_await asio::this_coro::executor;
  std::function<void()> cut = [dialled] { dialled->cut(); };
  const async::Timer timer = timers_.arm(executor, timers_.now() + limit, std::move(cut));
  auto entered = co_await enter_gateway(dialled.get(), errand, std::move(service));
  if (entered) co_return entered;
  if (dialled->late) {
    const auto limit_ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
    co_return core::fail(ErrorCode::kDeadline,
                         where() + ": not let in within " + std::to_string(limit_ms) + " ms");
  }
  co_return core::fail(entered.error().within(where()));
}

}  // namespace troupe::net
