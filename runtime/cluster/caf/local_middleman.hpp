// Makes CAF communicate over Unix sockets instead of TCP: an actor that listens on and connects to
// paths, through CAF's extension point for transports (its "middleman"). Both ends check that the
// other belongs to the same user before they read a byte, so other users never reach CAF's parser.
// It runs on a thread of its own, alongside CAF's built-in middleman, which is never used. Owned by
// System.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/io/middleman_actor.hpp>

namespace troupe::cluster::exchange {

// Takes CAF's messages `publish` and `connect`, with a path where CAF has a host. The port is a
// number above 0 that identifies a listener of this process, and 0 to connect.
caf::io::middleman_actor make_local_middleman(caf::actor_system& system);

}  // namespace troupe::cluster::exchange
