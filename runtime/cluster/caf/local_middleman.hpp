// CAF's own extension point for other transports, used to carry BASP over Unix sockets: where CAF
// would open or dial a TCP port, this opens or dials a path. Both ends see that the other belongs
// to the same user before a byte is read, so that no stranger ever speaks to CAF's parser. One
// actor beside CAF's own middleman, which is never asked; it runs on a thread of its own. Owned by
// System.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/io/middleman_actor.hpp>

namespace troupe::cluster::exchange {

// Takes CAF's messages `publish` and `connect`, with a path where CAF has a host; the port is a
// number above 0 by which a listener is told from others of this process, and 0 to connect.
caf::io::middleman_actor make_local_middleman(caf::actor_system& system);

}  // namespace troupe::cluster::exchange
