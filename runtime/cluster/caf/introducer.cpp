#include "runtime/cluster/caf/introducer.hpp"

#include "runtime/cluster/caf/shell.hpp"
#include "runtime/wire/header.hpp"

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>

#include <algorithm>
#include <utility>

namespace troupe::cluster::exchange {

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
      [this](const Present& wanted) { present(wanted); },
      [this](const Acquaint& pair) { acquaint(pair); },
      [this](const GivenUp& gone) { remotes_.withdraw(gone.role, gone.cause); },
      [this](const PartFrom& other) {
        lose_process(other.process, "this process has left it for another");
      },
      [this](const Doubt& doubt) { send(doubt.asker, doubt); },
      [this](const Leave&) { quit(); },
  };
}

void Introducer::on_exit() {
  remotes_.close();
}

void Introducer::dial(const Dial& wanted) {
  const auto role = core_->directory.find(wanted.self.name);
  if (!role || !role->local) {
    return wanted.welcome->set_value(core::fail(
        ErrorCode::kInvalidArgument, "no role of this process is named " + wanted.self.name));
  }
  Remote& remote = remotes_.of(wanted.introducer);
  if (!(remote.introducer == wanted.introducer)) remotes_.watch(remote, wanted.introducer);
  remote.trusted = true;  // a process that this one called may introduce any role
  remote.dials.push_back(wanted);
  remotes_.introduce(remote, {wanted.self, role->handle, true});
}

void Introducer::present(const Present& wanted) {
  const Remote* const found = remotes_.find(wanted.process);
  const auto role = core_->directory.find(wanted.name);
  if (found == nullptr || !role) {
    const std::string who = role ? "the process that was to know " : "";
    return wanted.welcome->set_value(
        core::fail(ErrorCode::kPeerLost, who + wanted.name + " is not there"));
  }
  dial({found->introducer, role->hello, wanted.welcome});
}

// Introduces two roles of other processes to each other. Each of those processes is connected to
// this one, so CAF forwards the frames between them here, unread.
void Introducer::acquaint(const Acquaint& pair) {
  const auto one = core_->directory.find(pair.one), other = core_->directory.find(pair.other);
  if (!one || !other) return;  // gone; its next start is introduced anew
  remotes_.recommend(*one, *other);
  remotes_.recommend(*other, *one);
}

void Introducer::withdrawn(const PeerName& name, std::uint64_t epoch, const core::Error& cause) {
  const auto known = core_->directory.find(name);
  if (!known || known->hello.epoch != epoch) return;  // known already
  if (const auto gone = core_->directory.drop(name, address_of(known->handle))) lose(*gone, cause);
}

void Introducer::lose(const Binding& gone, const core::Error& cause) {
  core_->lose(gone, cause);
  remotes_.withdraw(gone.hello, cause);
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
  if (!introducer || introducer.node() == node()) return wrong("no other process sent it");
  const auto hello = wire::read_hello(*parcel.frame);
  if (!hello) return wrong(hello.error().message);
  const auto claim = admitted(*hello, who);
  if (!claim) {
    wrong(claim.error().message);
    return remotes_.tell(introducer, *hello, claim.failure());
  }
  remotes_.let_in(remotes_.of(introducer));
  remotes_.tell(introducer, *hello, {});
  if (*claim != Directory::Claim::kKnown) bind(*hello, who);
}

Result<Directory::Claim> Introducer::admitted(const wire::Hello& hello, const caf::actor& who) {
  const auto from = current_sender()->node();
  const Remote* const known = remotes_.find(from);
  const bool trusted = known != nullptr && known->trusted;
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
  Remote* const found = from ? remotes_.find(from->node()) : nullptr;
  if (!parcel.frame || found == nullptr) {
    return core_->refuse("the exchange got " +
                         (parcel.frame ? "a frame of a stranger" : "garbage: " + parcel.problem));
  }
  const auto header = wire::read_header(*parcel.frame);
  if (!header || !header->reply) return core_->refuse("the exchange got a frame for no receiver");
  Remote& remote = *found;
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
    remotes_.let_in(remote);
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
  const Remote* const process = remotes_.find(address.node);
  if (process != nullptr && process->introducer.address() == down.source)
    return lose_process(address.node, cause);
  if (const auto gone = core_->directory.drop(address)) lose(*gone, lost_error(*gone, cause));
}

void Introducer::lose_process(const caf::node_id& process, const std::string& cause) {
  std::optional<Remote> remote = remotes_.forget(process);
  if (!remote) return;
  // Roles of processes that are known through others alone may have been known through this one.
  const auto known = [this](const caf::node_id& node) { return remotes_.find(node) != nullptr; };
  for (const auto& gone : core_->directory.drop_unless(known))
    lose(gone, lost_error(gone, cause));
  remote->end_dials({ErrorCode::kPeerLost, "the process ended before it answered: " + cause});
}

}  // namespace troupe::cluster::exchange
