// Opens a listening TCP socket; its errors name the address. Says since when a connection that it
// gave has been silent. Plain functions.
#pragma once

#include "runtime/async/task.hpp"
#include "runtime/core/clock.hpp"
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

// Since when a just accepted connection has been silent: `now` if it has bytes to
// read, else the time when it was made, which may be long before it was accepted if many others
// waited in the system's queue.
core::TimePoint silent_since(boost::asio::ip::tcp::socket& socket, core::TimePoint now);

}  // namespace troupe::net
