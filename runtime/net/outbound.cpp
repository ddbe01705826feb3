#include "runtime/net/outbound.hpp"

#include "runtime/net/await_token.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <memory>

namespace troupe::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using core::ErrorCode;

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

async::task<core::Result<void>> connect_stream(PlainClientStream* stream, const Outbound* call) {
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

namespace {
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

core::Result<asio::ssl::context*> client_tls() {
  static ClientTls tls;
  if (!tls.failed) return &tls.context;
  return core::fail(ErrorCode::kResources, "cannot set TLS up: " + tls.failed.message());
}

async::task<core::Result<void>> connect_tls(TlsClientStream* stream, const Outbound* call) {
  boost::system::error_code code;
  stream->set_verify_callback(asio::ssl::host_name_verification(call->url.host), code);
  if (code) co_return core::fail(ErrorCode::kResources, "cannot set TLS up: " + code.message());
  SSL_set_tlsext_host_name(stream->native_handle(), call->url.host.c_str());
  TROUPE_CO_TRY(co_await connect_stream(&beast::get_lowest_layer(*stream), call));
  const auto [unshaken] = co_await stream->async_handshake(asio::ssl::stream_base::client, kToken);
  if (unshaken) co_return call->failure("agree on TLS", unshaken);
  co_return core::Result<void>();
}

}  // namespace troupe::net
