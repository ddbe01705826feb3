// Connects each rank of a gang with every other: a rank listens, dials the ranks below it and
// accepts those above it. Strangers, ranks of other gangs, and a second process for a rank are
// refused and logged; the ranks of the gang go on. The listeners are closed before this returns, so
// a gang at work has no port. Blocks its thread; no deadline.
#pragma once

#include "runtime/collective/peer.hpp"
#include "runtime/collective/rank_options.hpp"
#include "runtime/collective/rendezvous.hpp"

#include <atomic>
#include <memory>
#include <vector>

namespace troupe::collective {

// The peers, by rank, without this rank itself. Errors: kConfig (refused by a rank, with the
// reason; no way to a rank of another host), kPeerLost (a rank went away), kClosed (`given_up`),
// kResources, and those of the rendezvous.
core::Result<std::vector<std::unique_ptr<Peer>>> connect_ranks(const RankOptions& options,
                                                               Rendezvous& rendezvous,
                                                               const std::atomic<bool>& given_up);

}  // namespace troupe::collective
