// Which of this host's addresses lies in a network that the user names. Plain functions; any
// thread.
#pragma once

#include "runtime/core/result.hpp"

#include <string>

namespace troupe::net {

// Whether the text is a network, as 10.0.0.0/8 or fd00::/8. Error kConfig says what is expected.
core::Result<void> check_network(const std::string& network);

// The first address of an interface of this host in that network. Errors: kConfig (no network, or
// no address in it), kResources (the system does not tell).
core::Result<std::string> own_address_in(const std::string& network);

}  // namespace troupe::net
