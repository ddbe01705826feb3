// Settings of TRL that are one key of ours only together: a batch by device, processes and
// accumulation, the two sides of a clip, a data set with its splits. Pure, but for a look at
// whether the name of a data set is a path.
#pragma once

#include "runtime/config/peer_file.hpp"

namespace troupe::config {

// Puts keys of ours, or whole names, in the place of such settings. What is no number stays as it
// is, and so does a batch that TRL refuses: the table of names answers it.
void join_trl_settings(PeerFile& file);

}  // namespace troupe::config
