#include "runtime/cluster/caf/member.hpp"

#include "runtime/cluster/caf/messages.hpp"
#include "runtime/cluster/caf/shell.hpp"
#include "runtime/cluster/caf/system.hpp"

#include <boost/asio/post.hpp>
#include <caf/send.hpp>

#include <utility>

namespace troupe::cluster::exchange {

using core::ErrorCode;
using core::Result;

Member::Member(Identity identity,
               async::Executor strand,
               async::Timers& timers,
               std::shared_ptr<Core> core)
    : Endpoint(std::move(identity), std::move(strand), timers), core_(std::move(core)) {}

Member::~Member() {
  leave();
}

Result<void> Member::enter(caf::actor_system& system, const caf::actor& introducer) {
  const PeerName name = identity().self;
  const std::weak_ptr<Member> self = std::static_pointer_cast<Member>(shared_from_this());
  const Visit visit;
  const caf::actor handle = system.spawn<Shell>(core_, introducer, self, name);
  address_ = address_of(handle);
  actor_ = handle.id();
  core_->living.add(handle.id(), name);
  handle->attach_functor([shared = core_, self, name, address = address_] {  // on any thread
    if (shared->directory.drop(name, address)) {
      const core::Error cause{ErrorCode::kPeerLost, name + ": its actor was ended"};
      shared->tell_lost(name, cause);
      if (const auto alive = self.lock()) {
        boost::asio::post(alive->strand(), [alive, cause] { alive->broken(cause); });
      }
    }
    shared->living.remove(address.actor);
  });
  const wire::Hello hello{name, identity().run, identity().epoch, ""};
  auto introducers = core_->directory.join(hello, handle);
  if (!introducers) {
    caf::anon_send(handle, Leave{});
    return introducers.failure();
  }
  left_ = false;
  const auto frame = wire::hello_frame(hello);
  for (const auto& remote : *introducers) {
    core_->count_out(frame);
    caf::send_as(introducer, remote, Parcel(frame), handle);
  }
  return {};
}

// Answers open requests with kPeerLost before the role leaves.
async::task<void> Member::stop() {
  end(true);
  leave();
  co_await Endpoint::stop();
}

void Member::leave() {
  if (left_.exchange(true)) return;
  const auto gone = core_->directory.drop(identity().self, address_);
  if (!gone) return;  // its actor had ended before
  caf::anon_send(gone->handle, Leave{});
  core_->tell_lost(gone->hello.name, {ErrorCode::kPeerLost, gone->hello.name + " has stopped"});
}

Result<void> Member::send_request(const PeerName& peer, const wire::Frame& frame) {
  TROUPE_TRY(core_->directory.send(identity().self, peer, frame));
  core_->count_out(frame);
  return {};
}

void Member::send_reply(const PeerName& peer, const wire::Frame& frame) {
  // An asker that is gone needs no answer.
  if (core_->directory.send(identity().self, peer, frame)) core_->count_out(frame);
}

}  // namespace troupe::cluster::exchange
