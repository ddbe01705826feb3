// The completion token of all Asio operations in this folder: `co_await` returns the error code as
// a value instead of throwing it. Only cancellation of the coroutine throws.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace troupe::net {

inline constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace troupe::net
