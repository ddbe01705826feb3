// What a process must know to be a rank of a gang. Plain values.
#pragma once

#include "runtime/collective/limits.hpp"
#include "runtime/collective/rank_protocol.hpp"
#include "runtime/net/host_id.hpp"

#include <functional>
#include <string>

namespace troupe::collective {

struct RankOptions {
  GangId gang;
  int rank = 0, size = 1;
  // The address on which ranks of other hosts are accepted while the gang forms: that of a trusted
  // network, since only the proofs are protected on it. Empty: none; ranks of other hosts then come
  // through a tunnel, or not at all.
  std::string tcp_host;
  std::string host_id = net::own_host_id();  // ranks with another one get no shared memory
  std::uint64_t window_bytes = limits::kRankWindow_bytes;
  std::function<void(const std::string&)> log;  // for each refusal, once; may be empty
};

}  // namespace troupe::collective
