// One connection from a client of a gateway, from its first byte on. Used on the gateway's strand
// until its bytes are carried, then on that strand of its own.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/net/carry.hpp"
#include "runtime/net/gateway_offers.hpp"
#include "runtime/net/tls_stream.hpp"

#include <boost/asio/ip/network_v6.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <memory>
#include <string>
#include <utility>

namespace troupe::net {

// `cut` closes it and ends every wait on it.
struct Visitor {
  Visitor(TlsStream::Socket peer, SSL_CTX* context, const async::Executor& executor)
      : tls(std::move(peer), context, TlsStream::Side::kServer), local(executor) {}
  void cut() {
    late = true;
    tls.cut();
    boost::system::error_code ignored;
    local.close(ignored);
    if (other) other->tls->cut();
  }
  // True when no whole ClientHello was read and no bytes wait to be read.
  bool silent() {
    boost::system::error_code code;
    return SSL_get_state(tls.native()) == TLS_ST_BEFORE && tls.socket().available(code) == 0;
  }
  TlsStream tls;
  LocalSocket local;
  std::shared_ptr<Offered> other;  // in place of `local`: the service is another peer's
  async::Executor strand;          // while its bytes are carried
  std::string address, network, endpoint;
  std::string pass;
  LastHeard heard;
  core::TimePoint since{};  // when its silence can have begun
  bool late = false;        // `cut` was called, by the timer unless `crowded`
  bool crowded = false;     // it was cut to make room
  bool shaken = false;      // its TLS handshake is complete
};

// The network of an address: for IPv6 its first 64 bits, otherwise the address itself.
inline std::string network_of(const boost::asio::ip::address& address) {
  if (!address.is_v6() || address.to_v6().is_v4_mapped()) return address.to_string();
  const boost::asio::ip::address_v6 without_interface(address.to_v6().to_bytes());
  return boost::asio::ip::network_v6(without_interface, 64).canonical().to_string();
}

}  // namespace troupe::net
