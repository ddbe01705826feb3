// The CAF actor that receives for a role. It runs no role code: it checks arriving frames, refuses
// invalid ones and those for which the inbox has no room, and posts the others to the role's
// strand. Runs on CAF's threads; owned by the actor system.
#pragma once

#include "runtime/cluster/caf/core.hpp"
#include "runtime/cluster/caf/member.hpp"
#include "runtime/cluster/caf/messages.hpp"

#include <caf/event_based_actor.hpp>

#include <memory>

namespace troupe::cluster::exchange {

// Makes an actor drop and count messages that it does not expect. CAF would print them or end the
// actor.
void ignore_strangers(caf::event_based_actor& actor,
                      std::shared_ptr<Core> core,
                      const std::string& name);

class Shell final : public caf::event_based_actor {
 public:
  Shell(caf::actor_config& config,
        std::shared_ptr<Core> core,
        caf::actor introducer,
        std::weak_ptr<Member> member,
        PeerName name);

  caf::behavior make_behavior() override;
  void on_exit() override;
  const char* name() const override { return "troupe-role"; }

 private:
  void take(const Parcel& parcel);
  // Hands the frame over if it comes from the role that its header names. If the address is not
  // known, asks the introducer first, where the sender's introduction may still wait; `cleared`:
  // it has been asked.
  void check(const Parcel& parcel, const caf::strong_actor_ptr& from, bool cleared);
  void turn_away(const wire::Header& header,
                 const caf::strong_actor_ptr& from,
                 const char* why_not);
  void hand_over(const wire::Header& header, const wire::Frame& frame);

  const std::shared_ptr<Core> core_;
  caf::actor introducer_;
  const std::weak_ptr<Member> member_;
  const PeerName name_;
};

}  // namespace troupe::cluster::exchange
