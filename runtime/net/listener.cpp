#include "runtime/net/listener.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fstream>

namespace troupe::net {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

// Why a port may be taken by nobody that listens: the system gives those of a range to outgoing
// connections.
std::string hint_for(std::uint16_t port) {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  unsigned first = 0, last = 0;
  if (!(range >> first >> last) || port < first || port > last) return "choose another one";
  return "the system gives ports from " + std::to_string(first) + " to " + std::to_string(last) +
         " to outgoing connections, so choose one outside, or 0 for any that is free";
}

}  // namespace

core::Result<tcp::acceptor> listen_on(async::Executor executor,
                                      const std::string& host,
                                      std::uint16_t port) {
  const std::string where = host + ":" + std::to_string(port);
  boost::system::error_code code;
  const auto found = tcp::resolver(executor).resolve(host, std::to_string(port), code);
  if (code || found.empty())
    return core::fail(ErrorCode::kConfig, "cannot listen on " + where + ": " + code.message());
  const tcp::endpoint endpoint = found.begin()->endpoint();
  tcp::acceptor acceptor(executor);
  acceptor.open(endpoint.protocol(), code);
  if (!code) acceptor.set_option(tcp::acceptor::reuse_address(true), code);
  if (!code) acceptor.bind(endpoint, code);
  if (!code) acceptor.listen(asio::socket_base::max_listen_connections, code);
  if (code == asio::error::address_in_use) {
    return core::fail(ErrorCode::kResources, "cannot listen on " + where + ": the port is taken",
                      hint_for(port));
  }
  if (code)
    return core::fail(ErrorCode::kConfig, "cannot listen on " + where + ": " + code.message());
  return acceptor;
}

core::TimePoint silent_since(tcp::socket& socket, core::TimePoint now) {
  boost::system::error_code code;
  if (socket.available(code) > 0 || code) return now;
  tcp_info info = {};
  socklen_t size = sizeof info;
  if (::getsockopt(socket.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return now;
  return now - std::chrono::milliseconds(info.tcpi_last_data_recv);
}

}  // namespace troupe::net
