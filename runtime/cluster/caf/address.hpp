// Where an actor is: the process and its number there. Equal for an actor and its proxies, whatever
// pointers they have. Values.
#pragma once

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>
#include <caf/actor_control_block.hpp>
#include <caf/node_id.hpp>

#include <string>

namespace troupe::cluster::exchange {

struct Address {
  caf::node_id node;
  caf::actor_id actor = 0;

  friend bool operator==(const Address& a, const Address& b) {
    return a.actor == b.actor && a.node == b.node;
  }
};

inline Address address_of(const caf::strong_actor_ptr& actor) {
  return actor ? Address{actor->node(), actor->id()} : Address{};
}
inline Address address_of(const caf::actor& actor) {
  return actor ? Address{actor.node(), actor.id()} : Address{};
}
inline Address address_of(const caf::actor_addr& actor) {
  return actor ? Address{actor.node(), actor.id()} : Address{};
}

inline std::string origin_of(const caf::node_id& node) {
  return to_string(node);
}

}  // namespace troupe::cluster::exchange
