#include "runtime/cluster/transport.hpp"

#include <algorithm>
#include <limits>

namespace troupe::cluster {

wire::Header Transport::new_request(async::Deadline deadline) {
  wire::Header header;
  header.run = identity_.run;
  header.epoch = identity_.epoch;
  header.request = core::RequestId{++last_request_};
  header.sender = identity_.self;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline.remaining(timers_)).count();
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  header.budget_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 0, kMost));
  return header;
}

}  // namespace troupe::cluster
