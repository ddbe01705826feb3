// How the ranks of a gang come to have a device link: they tell each other what they have, and
// where all have the same, connect the ends.
#pragma once

#include "runtime/collective/collectives.hpp"

namespace troupe::collective {

// Connects the link of this rank with those of all others by operations of the gang, whose peers
// are `peers`. Returns why there is none, the same on all ranks; empty: it is connected. An error
// in place of a link says why this rank has none. Errors: those of an operation.
core::Result<std::string> form_link(Collectives& ranks,
                                    RankPeers& peers,
                                    const RankOptions& options,
                                    const core::Result<std::unique_ptr<DeviceLink>>& given);

}  // namespace troupe::collective
