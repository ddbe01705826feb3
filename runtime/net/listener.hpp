// Opens a listening TCP socket; its errors name the address. A plain function.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <string>

namespace troupe::net {

// `host` is an address or a name that resolves; port 0 takes a free one. Errors: kResources if the
// port is taken, otherwise kConfig.
core::Result<boost::asio::ip::tcp::acceptor> listen_on(async::Executor executor,
                                                       const std::string& host,
                                                       std::uint16_t port);

}  // namespace troupe::net
