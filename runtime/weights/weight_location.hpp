// Where to fetch a version of the weights. Travels in messages; the weights themselves never do.
#pragma once

#include <cstdint>
#include <string>

namespace troupe::weights {

// An empty field means that this way is not available.
struct WeightLocation {
  std::string host_id;   // of the sender: receivers with the same id share its memory
  std::string socket;    // Unix socket that hands out the shared buffer; '@' first: abstract
  std::string tcp_host;  // or a path: the Unix socket of this host that leads to the port
  std::uint32_t tcp_port = 0;
  std::string key;  // a receiver sends it first, as proof that it may read
  friend bool operator==(const WeightLocation&, const WeightLocation&) = default;
};

}  // namespace troupe::weights
