// The messages that the actors of one exchange get from within their process. CAF's serialisation
// knows none of these types, so none can come from another process.
#pragma once

#include "runtime/cluster/caf/parcel.hpp"
#include "runtime/cluster/transport.hpp"
#include "runtime/core/error.hpp"
#include "runtime/core/result.hpp"
#include "runtime/wire/hello.hpp"

#include <caf/actor.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include <future>
#include <memory>

namespace troupe::cluster::exchange {

// To a role's actor: this peer is gone.
struct Lost {
  PeerName peer;
  std::uint64_t epoch = 0;
  core::Error cause;
};

// To any of these actors: end.
struct Leave {};

// To the introducer, from a role's actor: a frame whose sender's address is not known under the
// name in its header. The introducer returns it when it has processed the introductions that came
// before.
struct Doubt {
  caf::actor asker;
  caf::strong_actor_ptr from;
  Parcel parcel;
};

// What a call of `connect` waits for: the other side's answer, which the introducer sets once.
using Welcome = std::promise<core::Result<void>>;

// To the introducer: introduce this local role once more to that connected process.
struct Present {
  PeerName name;
  caf::node_id process;
  std::shared_ptr<Welcome> welcome;
};

// To the introducer: introduce these two remote roles to each other.
struct Acquaint {
  PeerName one, other;
};

// To the introducer: this remote role has been given up.
struct GivenUp {
  wire::Hello role;
  core::Error cause;
};

// To the introducer: this process has nothing more to do with that one, nor with those that it
// knows through it.
struct PartFrom {
  caf::node_id process;
};

// To the introducer: introduce this role to that process.
struct Dial {
  caf::actor introducer;
  wire::Hello self;
  std::shared_ptr<Welcome> welcome;
};

}  // namespace troupe::cluster::exchange

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::exchange::Lost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::exchange::Leave)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::exchange::Doubt)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::exchange::Present)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::exchange::Acquaint)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::exchange::GivenUp)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::exchange::PartFrom)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::cluster::exchange::Dial)
