#include "runtime/cluster/caf/member.hpp"

#include "runtime/cluster/caf/messages.hpp"
#include "runtime/cluster/caf/shell.hpp"
#include "runtime/cluster/caf/system.hpp"

#include <boost/asio/post.hpp>
#include <caf/send.hpp>

#include <utility>

namespace troupe::cluster::exchange {

Member::Member(Identity identity,
               async::Executor strand,
               async::Timers& timers,
               std::shared_ptr<Core> core)
    : Endpoint(std::move(identity), std::move(strand), timers), core_(std::move(core)) {}

Member::~Member() {
  leave();
}

// Spawns the role's actor.
caf::actor Member::spawn(caf::actor_system& system, const caf::actor& introducer) {
  const PeerName name = identity().self;
  const std::weak_ptr<Member> self = std::static_pointer_cast<Member>(shared_from_this());
  const caf::actor handle = system.spawn<Shell>(core_, introducer, self, name);
  const Address address = address_of(handle);
  actor_ = handle.id();
  core_->living.add(handle.id(), name);
  const std::uint64_t epoch = identity().epoch;
  handle->attach_functor([shared = core_, self, name, epoch, address] {  // on any thread
    if (shared->directory.drop(name, address)) {
      const core::Error cause{ErrorCode::kPeerLost, name + ": its actor was ended"};
      shared->tell_lost(name, epoch, cause);
      if (const auto alive = self.lock()) {
        boost::asio::post(alive->strand(), [alive, cause] { alive->broken(cause); });
      }
    }
    shared->living.remove(address.actor);
  });
  return handle;
}

wire::Hello Member::hello() const {
  const Identity& self = identity();
  return {self.self, self.run, self.epoch, "", self.arithmetic};
}

void Member::introduce(const caf::actor& introducer,
                       const caf::actor& handle,
                       const std::vector<caf::actor>& to) {
  const auto frame = wire::hello_frame(hello());
  for (const auto& remote : to) {
    core_->count_out(frame);
    caf::send_as(introducer, remote, Parcel(frame), handle);
  }
}

Result<void> Member::enter(caf::actor_system& system, const caf::actor& introducer) {
  const Visit visit;
  const caf::actor handle = spawn(system, introducer);
  auto introducers = core_->directory.join(hello(), handle);
  if (!introducers) {
    caf::anon_send(handle, Leave{});
    return introducers.failure();
  }
  left_ = false;
  introduce(introducer, handle, *introducers);
  return {};
}

// CAF keeps what it knows of the way to an actor, even when the process in between is gone. So the
// role gets another one.
void Member::enter_again(caf::actor_system& system, const caf::actor& introducer) {
  const Visit visit;
  const auto old = core_->directory.find(identity().self);
  if (left_ || !old) return;
  const caf::actor handle = spawn(system, introducer);
  const auto introducers = core_->directory.announce(identity().self, handle);
  introduce(introducer, handle, introducers);
  const auto now = core_->directory.find(identity().self);
  const bool taken = now && now->handle == handle;
  caf::anon_send(taken ? old->handle : handle, Leave{});
}

// Answers open requests with kPeerLost before the role leaves.
async::task<void> Member::stop() {
  end(true);
  leave();
  co_await Endpoint::stop();
}

void Member::leave() {
  if (left_.exchange(true)) return;
  const auto role = core_->directory.find(identity().self);
  if (!role || !role->local || role->handle.id() != actor_) return;  // its actor had ended before
  const auto gone = core_->directory.drop(identity().self, address_of(role->handle));
  if (!gone) return;
  caf::anon_send(gone->handle, Leave{});
  core_->tell_lost(gone->hello.name, gone->hello.epoch,
                   {ErrorCode::kPeerLost, gone->hello.name + " has stopped"});
}

Result<std::uint64_t> Member::send_request(const PeerName& peer, const wire::Frame& frame) {
  TROUPE_TRY_ASSIGN(epoch, core_->directory.send(identity().self, peer, frame));
  core_->count_out(frame);
  return epoch;
}

void Member::send_reply(const PeerName& peer, const wire::Frame& frame) {
  // An asker that is gone needs no answer.
  if (core_->directory.send(identity().self, peer, frame)) core_->count_out(frame);
}

}  // namespace troupe::cluster::exchange
