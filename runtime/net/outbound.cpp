#include "runtime/net/outbound.hpp"

#include "runtime/net/await_token.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <memory>

namespace troupe::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;

std::string Outbound::where() const {
  return (url.tls ? "https://" : "http://") + url.host_header + url.target;
}

core::Failure Outbound::failure(const char* doing,
                                const boost::system::error_code& code,
                                ErrorCode otherwise) const {
  if (code == beast::error::timeout || code == asio::error::operation_aborted) {
    const auto limit_ms = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
    return core::fail(ErrorCode::kDeadline,
                      where() + ": no reply within " + std::to_string(limit_ms) + " ms");
  }
  return core::fail(otherwise, where() + ": cannot " + doing + ": " + code.message());
}

namespace {

async::task<core::Result<void>> reach(beast::tcp_stream* stream, const Outbound* call) {
  stream->expires_at(
      std::chrono::time_point_cast<std::chrono::steady_clock::duration>(call->until));
  boost::system::error_code code;
  const auto address = asio::ip::make_address(call->url.host, code);
  if (!code) {
    const tcp::endpoint endpoint(address, call->url.port);
    const auto [failed] = co_await stream->async_connect(endpoint, kToken);
    if (failed) co_return call->failure("connect", failed);
    co_return core::Result<void>();
  }
  auto executor = co_await asio::this_coro::executor;
  auto resolver = std::make_shared<tcp::resolver>(executor);
  async::SteadyTimers timers;
  std::function<void()> cut = [resolver] { resolver->cancel(); };
  async::Timer timer = timers.arm(executor, call->until, std::move(cut));
  const std::string port = std::to_string(call->url.port);
  auto [unresolved, found] = co_await resolver->async_resolve(call->url.host, port, kToken);
  timer.disarm();
  if (unresolved) co_return call->failure("resolve the host", unresolved);
  const auto [failed, endpoint] = co_await stream->async_connect(found, kToken);
  if (failed) co_return call->failure("connect", failed);
  co_return core::Result<void>();
}

// Made once: reading the system's CAs takes a while.
struct ClientTls {
  ClientTls() {
    SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
    context.set_default_verify_paths(failed);
    if (!failed) context.set_verify_mode(asio::ssl::verify_peer, failed);
  }
  asio::ssl::context context{asio::ssl::context::tls_client};
  boost::system::error_code failed;
};
}  // namespace

core::Result<asio::ssl::context*> client_tls(const Url& url) {
  if (!url.tls) return nullptr;
  static ClientTls tls;
  if (!tls.failed) return &tls.context;
  return core::fail(ErrorCode::kResources, "cannot set up TLS: " + tls.failed.message());
}

async::task<core::Result<void>> connect(AnyStream* stream, const Outbound* call) {
  TROUPE_CO_TRY(co_await reach(&stream->plain(), call));
  const auto failed = co_await stream->agree(call->url.host);
  if (failed) co_return call->failure("agree on TLS", failed);
  co_return core::Result<void>();
}

}  // namespace troupe::net
