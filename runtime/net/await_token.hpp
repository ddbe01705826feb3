// How this room waits for Asio: the coroutine goes on with the error code as a value. Only
// cancellation unwinds.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace troupe::net {

inline constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace troupe::net
