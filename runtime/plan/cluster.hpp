// The machines that a run is planned for: nodes that are alike, each with devices that are alike,
// or one host whose processors compute everything. Devices are numbered through: node 0 has the
// first. A value type.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::plan {

struct Cluster {
  std::int64_t nodes = 1;
  std::int64_t devices_each = 1;
  std::string card;               // "H100-80"; empty: processors
  std::int64_t device_bytes = 0;  // 0: unknown
  std::int64_t host_bytes = 0;    // of each node; 0: unknown

  bool on_host() const { return card.empty(); }
  std::int64_t devices() const { return nodes * devices_each; }
  std::int64_t node_of(std::int64_t device) const { return device / devices_each; }
  // "node 2 device 5", "the host".
  std::string name_of(std::int64_t device) const;
  // "16 nodes of 8 A100-80", "processors of one host".
  std::string text() const;
};

// Reads "8x8xH100-80": nodes x devices of a node x card-GB, where a GB is 1e9 bytes; "4xA10-24" is
// one node. Error kConfig that says what is expected.
core::Result<Cluster> parse_cluster(std::string_view text);

// One host without devices, with that many bytes of memory (0: unknown).
Cluster processors(std::int64_t host_bytes);

}  // namespace troupe::plan
