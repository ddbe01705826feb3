// Where to fetch a version of the weights. Travels in messages; the weights themselves never do.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::weights {

// `socket` serves receivers on the same host, `tcp_host` and `tcp_port` any receiver. An empty
// socket, or port 0, means that this way is not available.
struct WeightLocation {
  std::string host_id;   // own_host_id() of the publisher; with an equal id use `socket`
  std::string socket;    // Unix socket that hands out the shared memory; '@' first: abstract
  std::string tcp_host;  // an address, or the path of a local Unix socket that leads to the port
  std::uint32_t tcp_port = 0;
  std::string key;  // a receiver sends it first, as proof that it may read
  friend bool operator==(const WeightLocation&, const WeightLocation&) = default;
};

}  // namespace troupe::weights
