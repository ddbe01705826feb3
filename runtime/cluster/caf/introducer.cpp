#include "runtime/cluster/caf/introducer.hpp"

#include "runtime/cluster/caf/shell.hpp"
#include "runtime/wire/header.hpp"

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>

#include <algorithm>
#include <utility>

namespace troupe::cluster::exchange {

using core::ErrorCode;
using core::Result;

namespace {

std::string cause_of(const caf::error& reason, caf::actor_system& system) {
  if (!reason) return "it has stopped";
  if (reason == caf::exit_reason::remote_link_unreachable) {
    return "the connection to its process was closed";
  }
  if (reason == caf::exit_reason::kill) return "its actor was killed";
  if (reason == caf::exit_reason::unknown) return "its actor has ended";
  return "its actor ended: " + system.render(reason);
}

core::Error lost_error(const Binding& gone, const std::string& cause) {
  return {ErrorCode::kPeerLost, gone.hello.name + " is lost: " + cause};
}

}  // namespace

Introducer::Introducer(caf::actor_config& config, std::shared_ptr<Core> core)
    : caf::event_based_actor(config), core_(std::move(core)) {}

caf::behavior Introducer::make_behavior() {
  ignore_strangers(*this, core_, "the exchange");
  set_down_handler([this](caf::down_msg& down) { ended(down); });
  return {
      [this](const Parcel& parcel, const caf::actor& who) { introduced(parcel, who); },
      [this](const Parcel& parcel) { answered(parcel); },
      [this](const Dial& wanted) { dial(wanted); },
      [this](const Acquaint& pair) { acquaint(pair); },
      [this](const GivenUp& gone) { withdraw(gone.role, gone.cause); },
      [this](const PartFrom& other) { part(other.process); },
      [this](const Doubt& doubt) { send(doubt.asker, doubt); },
      [this](const Leave&) { quit(); },
  };
}

void Introducer::on_exit() {
  const auto remotes = std::exchange(remotes_, {});
  for (const auto& [node, remote] : remotes) {
    for (const auto& open : remote.dials) {
      open.welcome->set_value(
          core::fail(ErrorCode::kClosed, "this process has left the network of roles"));
    }
  }
}

// Monitors before it sends: if the other introducer is gone already, CAF reports that at once.
void Introducer::dial(const Dial& wanted) {
  const auto role = core_->directory.find(wanted.self.name);
  if (!role || !role->local) {
    return wanted.welcome->set_value(core::fail(
        ErrorCode::kInvalidArgument, "no role of this process is named " + wanted.self.name));
  }
  Remote& remote = remotes_[wanted.introducer.node()];
  if (!remote.introducer || !(remote.introducer == wanted.introducer)) {
    remote.introducer = wanted.introducer;
    monitor(remote.introducer);
  }
  remote.trusted = true;  // a process that this one called may introduce any role
  remote.dials.push_back(wanted);
  introduce(remote, {wanted.self, role->handle, true});
}

void Introducer::introduce(const Remote& remote, const Binding& role) {
  const auto frame = wire::hello_frame(role.hello);
  core_->count_out(frame);
  send(remote.introducer, Parcel(frame), role.handle);
}

void Introducer::let_in(Remote& remote) {
  if (std::exchange(remote.in, true)) return;
  for (const auto& role : core_->directory.let_in(remote.introducer))
    introduce(remote, role);
}

// Introduces two roles of other processes to each other. Each of those processes is connected to
// this one, so CAF forwards the frames between them here, unread.
void Introducer::acquaint(const Acquaint& pair) {
  const auto one = core_->directory.find(pair.one), other = core_->directory.find(pair.other);
  if (!one || !other) return;  // gone; its next start is introduced anew
  recommend(*one, *other);
  recommend(*other, *one);
}

void Introducer::recommend(const Binding& role, const Binding& to) {
  const auto remote = remotes_.find(to.handle.node());
  if (role.local || remote == remotes_.end() || role.handle.node() == to.handle.node()) return;
  remote->second.told.insert(role.hello.name);
  introduce(remote->second, role);
}

// Tells the processes that know a role through this one that it has ended. CAF delivers this after
// the introduction.
void Introducer::withdraw(const wire::Hello& role, const core::Error& cause) {
  for (auto& [node, remote] : remotes_)
    if (remote.told.erase(role.name) > 0) tell(remote.introducer, role, core::fail(cause));
}

void Introducer::withdrawn(const PeerName& name, std::uint64_t epoch, const core::Error& cause) {
  const auto known = core_->directory.find(name);
  if (!known || known->hello.epoch != epoch) return;  // known already
  if (const auto gone = core_->directory.drop(name, address_of(known->handle))) lose(*gone, cause);
}

void Introducer::lose(const Binding& gone, const core::Error& cause) {
  core_->lose(gone, cause);
  withdraw(gone.hello, cause);
}

// Sends an acknowledgement or a failure to another introducer, under the name that `hello` gives.
void Introducer::tell(const caf::actor& introducer,
                      const wire::Hello& hello,
                      const Result<void>& word) {
  wire::Header header;
  header.run = hello.run;
  header.epoch = hello.epoch;
  header.sender = hello.name;
  header.reply = true;
  const auto frame = word ? wire::ack_frame(header) : wire::failure_frame(header, word.error());
  core_->count_out(frame);
  send(introducer, Parcel(frame));
}

// Takes an introduction. Introduces the local roles to the other process first: before the new role
// can be called from here, and before the other side learns that it was admitted. So each side
// knows the other's roles before the first call.
void Introducer::introduced(const Parcel& parcel, const caf::actor& who) {
  if (parcel.frame) taken_from_caf(*parcel.frame);
  core_->count_in(parcel);
  const auto introducer = caf::actor_cast<caf::actor>(current_sender());
  const auto wrong = [this](const std::string& what) {
    core_->refuse("an introduction was refused: " + what);
  };
  if (!parcel.frame) return wrong(parcel.problem);
  if (!introducer || introducer.node() == node()) return wrong("nobody of another process sent it");
  const auto hello = wire::read_hello(*parcel.frame);
  if (!hello) return wrong(hello.error().message);
  const auto claim = admitted(*hello, who);
  if (!claim) {
    wrong(claim.error().message);
    return tell(introducer, *hello, claim.failure());
  }
  Remote& remote = remotes_[introducer.node()];
  if (!remote.introducer) {
    remote.introducer = introducer;
    monitor(introducer);
  }
  let_in(remote);
  tell(introducer, *hello, {});
  if (*claim != Directory::Claim::kKnown) bind(*hello, who);
}

Result<Directory::Claim> Introducer::admitted(const wire::Hello& hello, const caf::actor& who) {
  const auto from = current_sender()->node();
  const auto known = remotes_.find(from);
  const bool trusted = known != remotes_.end() && known->second.trusted;
  if (!who || (who.node() != from && !trusted)) {
    return core::fail(ErrorCode::kInvalidArgument,
                      shown(hello.name) + " is not an actor of the process that introduced it");
  }
  TROUPE_TRY_ASSIGN(claim, core_->directory.claim(hello, address_of(who)));
  if (claim == Directory::Claim::kKnown || trusted) return claim;
  if (!core_->hooks.admit) {
    return core::fail(ErrorCode::kUnsupported,
                      "this process does not accept roles of other processes");
  }
  TROUPE_TRY(core_->hooks.admit(hello, to_string(from)));
  return claim;
}

void Introducer::bind(const wire::Hello& hello, const caf::actor& who) {
  const auto old = core_->directory.find(hello.name);
  const auto gone = old ? core_->directory.drop(hello.name, address_of(old->handle)) : std::nullopt;
  if (gone) {
    lose(*gone, {ErrorCode::kPeerLost, hello.name + " is lost: it has started again as epoch " +
                                           std::to_string(hello.epoch)});
  }
  core_->directory.bind(hello, who);
  monitor(who);
  if (core_->hooks.arrived) core_->hooks.arrived(hello, to_string(who.node()));
}

void Introducer::answered(const Parcel& parcel) {
  if (parcel.frame) taken_from_caf(*parcel.frame);
  core_->count_in(parcel);
  const auto from = current_sender();
  const auto found = from ? remotes_.find(from->node()) : remotes_.end();
  if (!parcel.frame || found == remotes_.end()) {
    return core_->refuse("the exchange got " +
                         (parcel.frame ? "a frame of a stranger" : "garbage: " + parcel.problem));
  }
  const auto header = wire::read_header(*parcel.frame);
  if (!header || !header->reply) return core_->refuse("the exchange got a frame for nobody");
  Remote& remote = found->second;
  const auto failure = wire::read_failure(*parcel.frame);
  const auto open =
      std::find_if(remote.dials.begin(), remote.dials.end(), [&header](const Dial& dial) {
        return dial.self.name == header->sender && dial.self.epoch == header->epoch;
      });
  if (open != remote.dials.end()) {
    const auto welcome = open->welcome;
    remote.dials.erase(open);
    if (failure) {
      remote.trusted = remote.in || !remote.dials.empty();
      return welcome->set_value(core::fail(*failure));
    }
    let_in(remote);
    welcome->set_value({});
  } else if (const auto role = core_->directory.find(header->sender);
             failure && remote.trusted && !(role && role->local)) {
    withdrawn(header->sender, header->epoch, *failure);
  } else if (failure) {
    core_->refuse("another process does not take " + shown(header->sender) +
                  " in: " + shown(failure->message));
  }
}

void Introducer::ended(const caf::down_msg& down) {
  const std::string cause = cause_of(down.reason, system());
  const Address address = address_of(down.source);
  const auto found = remotes_.find(address.node);
  const bool is_introducer =
      found != remotes_.end() && found->second.introducer.address() == down.source;
  if (is_introducer) return lose_process(found, cause);
  if (const auto gone = core_->directory.drop(address)) lose(*gone, lost_error(*gone, cause));
}

void Introducer::lose_process(std::map<caf::node_id, Remote>::iterator place,
                              const std::string& cause) {
  const Remote remote = std::move(place->second);
  remotes_.erase(place);
  // Roles of processes that are known through others alone may have been known through this one.
  const auto known = [this](const caf::node_id& node) { return remotes_.contains(node); };
  for (const auto& gone : core_->directory.drop_unless(known))
    lose(gone, lost_error(gone, cause));
  for (const auto& open : remote.dials) {
    open.welcome->set_value(
        core::fail(ErrorCode::kPeerLost, "the process ended before it answered: " + cause));
  }
}

void Introducer::part(const caf::node_id& process) {
  const auto found = remotes_.find(process);
  if (found != remotes_.end()) lose_process(found, "this process has left it for another");
}

}  // namespace troupe::cluster::exchange
