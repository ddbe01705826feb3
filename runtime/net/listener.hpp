// Opens a listening socket, with errors that name the address. A plain function.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/core/result.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <string>

namespace troupe::net {

// `host` is an address or a name that resolves. Errors: kConfig (no such address), kResources
// (taken).
core::Result<boost::asio::ip::tcp::acceptor> listen_on(async::Executor executor,
                                                       const std::string& host,
                                                       std::uint16_t port);

}  // namespace troupe::net
