// Which processes of a host can share memory with each other. A plain function; any thread.
#pragma once

#include <string>

namespace troupe::net {

// An id of this boot of the machine and of this process's network namespace. Processes with equal
// ids reach each other's abstract sockets and can share memory.
std::string own_host_id();

}  // namespace troupe::net
