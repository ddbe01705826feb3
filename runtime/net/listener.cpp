#include "runtime/net/listener.hpp"

namespace troupe::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using core::ErrorCode;

core::Result<tcp::acceptor> listen_on(async::Executor executor,
                                      const std::string& host,
                                      std::uint16_t port) {
  const std::string where = host + ":" + std::to_string(port);
  boost::system::error_code code;
  const auto found = tcp::resolver(executor).resolve(host, std::to_string(port), code);
  if (code || found.empty()) {
    return core::fail(ErrorCode::kConfig, "cannot listen on " + where + ": " + code.message());
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  tcp::acceptor acceptor(executor);
  acceptor.open(endpoint.protocol(), code);
  if (!code) acceptor.set_option(tcp::acceptor::reuse_address(true), code);
  if (!code) acceptor.bind(endpoint, code);
  if (!code) acceptor.listen(asio::socket_base::max_listen_connections, code);
  if (code == asio::error::address_in_use) {
    return core::fail(ErrorCode::kResources, "cannot listen on " + where + ": the port is taken",
                      "choose another one");
  }
  if (code) {
    return core::fail(ErrorCode::kConfig, "cannot listen on " + where + ": " + code.message());
  }
  return acceptor;
}

}  // namespace troupe::net
