// What ranks tell each other before they connect their devices by a link, and what follows from it,
// which is the same on all ranks. Plain values and pure functions, except for interface_for_link.
#pragma once

#include "runtime/collective/rank_options.hpp"
#include "runtime/core/fixed_text.hpp"

#include <string>
#include <vector>

namespace troupe::collective {

using FixedText = core::FixedText<256>;

struct LinkFacts {
  FixedText why_not;       // of a rank that has no link
  FixedText name, device;  // of the link
  FixedText host;          // RankOptions::host_id
  bool trusts = false;     // it has an address on a trusted network
};
LinkFacts facts_of(const RankOptions& options);

// Why ranks with these facts can have no link; empty if they can.
std::string obstacle_to_link(const std::vector<LinkFacts>& all);
// The network interface for the link's connections of this rank; empty: any.
std::string interface_for_link(const RankOptions& options, const std::vector<LinkFacts>& all);

struct LinkOutcome {
  bool heard = false;  // had begun, and knows that another rank failed
  FixedText why_not;   // empty: it is connected with all
};
// Empty if there is none.
std::string first_failure(const std::vector<LinkOutcome>& all);

}  // namespace troupe::collective
