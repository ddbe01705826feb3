#include "runtime/cluster/caf/shell.hpp"

#include "runtime/wire/header.hpp"

#include <boost/asio/post.hpp>
#include <caf/message_view.hpp>

#include <utility>

namespace troupe::cluster::exchange {

void ignore_strangers(caf::event_based_actor& actor,
                      std::shared_ptr<Core> core,
                      const std::string& name) {
  actor.set_default_handler(
      [core, name](caf::scheduled_actor*, caf::message_view&) -> caf::result<caf::message> {
        core->refuse(name + " got a message that is not a frame");
        // Any other result would be sent back, and end a sender that does not expect it.
        return caf::delegated<caf::message>();
      });
  actor.set_error_handler(
      [core, name](caf::error&) { core->refuse(name + " got an error that is not a frame"); });
  actor.set_exit_handler([core, name](caf::exit_msg&) {
    core->refuse(name + " was told to exit, not by its process");
  });
  actor.set_down_handler([](caf::down_msg&) {});
}

Shell::Shell(caf::actor_config& config,
             std::shared_ptr<Core> core,
             caf::actor introducer,
             std::weak_ptr<Member> member,
             PeerName name)
    : caf::event_based_actor(config),
      core_(std::move(core)),
      introducer_(std::move(introducer)),
      member_(std::move(member)),
      name_(std::move(name)) {}

void Shell::on_exit() {
  introducer_ = nullptr;
}

caf::behavior Shell::make_behavior() {
  ignore_strangers(*this, core_, name_);
  return {
      [this](const Parcel& parcel) { take(parcel); },
      [this](const Lost& lost) {
        const auto member = member_.lock();
        if (!member) return;
        boost::asio::post(member->strand(), [member, lost] {
          member->on_peer_lost(lost.peer, lost.cause, lost.epoch);
        });
      },
      [this](const Doubt& cleared) { check(cleared.parcel, cleared.from, true); },
      [this](const Leave&) { quit(); },
  };
}

void Shell::take(const Parcel& parcel) {
  if (parcel.frame) taken_from_caf(*parcel.frame);
  core_->count_in(parcel);
  const auto from = current_sender();
  if (!parcel.frame) return core_->refuse(name_ + " got garbage: " + parcel.problem);
  if (!from) return core_->refuse(name_ + " got a frame without a sender");
  check(parcel, from, false);
}

void Shell::check(const Parcel& parcel, const caf::strong_actor_ptr& from, bool cleared) {
  const auto header = wire::read_header(*parcel.frame);
  if (!header) return core_->refuse(name_ + " got garbage: " + header.error().message);
  switch (core_->directory.sender(header->sender, address_of(from))) {
    case Directory::Sender::kBound:
      return hand_over(*header, *parcel.frame);
    case Directory::Sender::kDeparted:
      // The peer answered and then left: the answer counts.
      if (header->reply) return hand_over(*header, *parcel.frame);
      [[fallthrough]];
    case Directory::Sender::kFenced:
      core_->stray.fetch_add(1, std::memory_order_relaxed);
      if (!header->reply)
        turn_away(*header, from, "was given up here: it can come back as a later epoch");
      return;
    case Directory::Sender::kStranger:
      break;
  }
  if (!cleared) return send(introducer_, Doubt{caf::actor_cast<caf::actor>(this), from, parcel});
  core_->refuse(name_ + " got a frame that says it is from " + shown(header->sender) +
                ", from an address that is not known under this name");
  // A role that is not introduced here yet, for example.
  if (!header->reply) turn_away(*header, from, "is not known here");
}

// Answers a request that is not served, so that its sender need not wait for the deadline.
void Shell::turn_away(const wire::Header& header,
                      const caf::strong_actor_ptr& from,
                      const char* why_not) {
  const core::Error why{ErrorCode::kPeerLost, shown(header.sender) + " " + why_not};
  const auto frame = wire::failure_frame(wire::reply_header(header, name_), why);
  core_->count_out(frame);
  send(caf::actor_cast<caf::actor>(from), Parcel(frame));
}

void Shell::hand_over(const wire::Header& header, const wire::Frame& frame) {
  const auto member = member_.lock();
  if (!member) return;
  if (header.reply) {
    boost::asio::post(member->strand(),
                      [member, from = header.sender, frame] { member->on_reply(from, frame); });
  } else if (const auto admitted = member->admit()) {
    boost::asio::post(member->strand(),
                      [member, from = header.sender, frame] { member->on_request(from, frame); });
  } else {
    const auto refusal = wire::failure_frame(wire::reply_header(header, name_), admitted.error());
    member->send_reply(header.sender, refusal);
  }
}

}  // namespace troupe::cluster::exchange
