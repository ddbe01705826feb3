#include "runtime/cluster/caf/directory.hpp"

#include "runtime/cluster/limits.hpp"

#include <caf/send.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace troupe::cluster::exchange {

std::string shown(const std::string& text) {
  constexpr std::size_t kShown_bytes = 64;
  std::string out = text.substr(0, kShown_bytes);
  for (char& c : out) {
    if (c < ' ' || c == 127) c = '?';
  }
  return text.size() > kShown_bytes ? out + "..." : out;
}

Result<void> Directory::fit(const PeerName& name) const {
  if (name.empty() || name.size() > limits::kPeerName_bytes_max) {
    return core::fail(ErrorCode::kInvalidArgument,
                      "a role's name has 1 to " + std::to_string(limits::kPeerName_bytes_max) +
                          " bytes, not " + std::to_string(name.size()));
  }
  if (!bound_.contains(name) && bound_.size() >= limits::kPeerNames_max) {
    return core::fail(
        ErrorCode::kOverloaded,
        "this process already knows " + std::to_string(limits::kPeerNames_max) + " names");
  }
  return {};
}

Result<std::vector<caf::actor>> Directory::join(const wire::Hello& hello,
                                                const caf::actor& handle) {
  const std::unique_lock lock(mutex_);
  if (closed_) return core::fail(ErrorCode::kClosed, "this process has left the network of roles");
  TROUPE_TRY(fit(hello.name));
  const auto found = bound_.find(hello.name);
  if (found != bound_.end()) {
    return core::fail(ErrorCode::kInvalidArgument,
                      found->second.local
                          ? "two roles are named " + hello.name
                          : hello.name + " is the name of a role of another process");
  }
  last_.erase(hello.name);
  bound_.emplace(hello.name, Binding{hello, handle, true});
  return introducers_;
}

std::vector<Binding> Directory::let_in(const caf::actor& introducer) {
  const std::unique_lock lock(mutex_);
  if (closed_) return {};
  introducers_.push_back(introducer);
  auto roles = locals_now();
  std::erase_if(roles, [](const Binding& role) { return role.kept_back; });
  return roles;
}

void Directory::keep_back(const PeerName& name) {
  const std::unique_lock lock(mutex_);
  const auto found = bound_.find(name);
  if (found != bound_.end() && found->second.local) found->second.kept_back = true;
}

std::vector<caf::actor> Directory::announce(const PeerName& name, const caf::actor& handle) {
  const std::unique_lock lock(mutex_);
  const auto found = bound_.find(name);
  if (closed_ || found == bound_.end() || !found->second.local) return {};
  found->second.kept_back = false;
  found->second.handle = handle;
  return introducers_;
}

Result<Directory::Claim> Directory::claim(const wire::Hello& hello, const Address& address) const {
  const std::shared_lock lock(mutex_);
  const auto refuse = [&hello](const std::string& why) {
    return core::fail(ErrorCode::kInvalidArgument, shown(hello.name) + " " + why);
  };
  if (closed_) return core::fail(ErrorCode::kClosed, "this process has left the network of roles");
  TROUPE_TRY(fit(hello.name));
  for (const auto& [name, binding] : bound_) {
    if (name != hello.name && address_of(binding.handle) == address) {
      return refuse("cannot be a second name of " + name);
    }
  }
  const auto found = bound_.find(hello.name);
  if (found != bound_.end()) {
    const Binding& now = found->second;
    const bool same_run = now.hello.run == hello.run;
    if (now.local) return refuse("is a role of the process that was asked");
    if (now.handle.node() != address.node) return refuse("belongs to another process");
    if (address_of(now.handle) == address && same_run && now.hello.epoch == hello.epoch) {
      return Claim::kKnown;
    }
    if (same_run && hello.epoch <= now.hello.epoch) {
      return refuse("of epoch " + std::to_string(hello.epoch) + " comes after its epoch " +
                    std::to_string(now.hello.epoch));
    }
    return Claim::kReplaces;
  }
  const auto before = last_.find(hello.name);
  if (before != last_.end() && before->second.run == hello.run) {
    const Last& last = before->second;
    if (hello.epoch < last.epoch || (last.fenced && hello.epoch == last.epoch)) {
      return refuse("of epoch " + std::to_string(hello.epoch) + " comes after its epoch " +
                    std::to_string(last.epoch) + (last.fenced ? ", which was given up" : ""));
    }
  }
  return Claim::kNew;
}

void Directory::bind(const wire::Hello& hello, const caf::actor& handle) {
  Binding binding{hello, handle, false};
  binding.hello.pass.clear();
  const std::unique_lock lock(mutex_);
  if (closed_) return;
  last_.erase(hello.name);
  std::swap(bound_[hello.name], binding);
}

Binding Directory::take(Bound::iterator place, bool fenced) {
  Binding gone = std::move(place->second);
  make_room();
  last_[place->first] =
      Last{gone.hello.run, gone.hello.epoch, address_of(gone.handle), fenced, ++turns_};
  bound_.erase(place);
  return gone;
}

// Bounds `last_`, since peers come and go without end. A name that just left matters little; a
// fenced name keeps out a process that may still run.
void Directory::make_room() {
  if (last_.size() < limits::kPeerNames_max) return;
  last_.erase(std::ranges::min_element(
      last_, {}, [](const auto& one) { return std::pair(one.second.fenced, one.second.turn); }));
}

std::optional<Binding> Directory::drop(const PeerName& name, const Address& address) {
  const std::unique_lock lock(mutex_);
  const auto found = bound_.find(name);
  if (found == bound_.end() || address_of(found->second.handle) != address) return std::nullopt;
  return take(found);
}

std::optional<Binding> Directory::drop(const Address& address) {
  const std::unique_lock lock(mutex_);
  const auto found = std::find_if(bound_.begin(), bound_.end(), [&address](const auto& entry) {
    return !entry.second.local && address_of(entry.second.handle) == address;
  });
  if (found == bound_.end()) return std::nullopt;
  return take(found);
}

std::vector<Binding> Directory::drop_unless(const std::function<bool(const caf::node_id&)>& known) {
  const std::unique_lock lock(mutex_);
  std::erase_if(introducers_,
                [&known](const caf::actor& introducer) { return !known(introducer.node()); });
  std::vector<Binding> gone;
  for (auto place = bound_.begin(); place != bound_.end();) {
    const auto one = place++;
    const Binding& binding = one->second;
    if (!binding.local && !known(binding.handle.node())) gone.push_back(take(one));
  }
  return gone;
}

std::optional<Binding> Directory::fence(const PeerName& name, std::uint64_t epoch) {
  const std::unique_lock lock(mutex_);
  const auto found = bound_.find(name);
  if (found == bound_.end() || found->second.local || found->second.hello.epoch > epoch) {
    return std::nullopt;
  }
  return take(found, true);
}

Directory::Sender Directory::sender(const PeerName& name, const Address& address) const {
  const std::shared_lock lock(mutex_);
  const auto found = bound_.find(name);
  if (found != bound_.end() && address_of(found->second.handle) == address) return Sender::kBound;
  const auto last = last_.find(name);
  if (last == last_.end() || last->second.address != address) return Sender::kStranger;
  return last->second.fenced ? Sender::kFenced : Sender::kDeparted;
}

std::optional<Binding> Directory::find(const PeerName& name) const {
  const std::shared_lock lock(mutex_);
  const auto found = bound_.find(name);
  if (found == bound_.end()) return std::nullopt;
  return found->second;
}

std::vector<Binding> Directory::locals() const {
  const std::shared_lock lock(mutex_);
  return locals_now();
}

std::vector<Binding> Directory::locals_now() const {
  std::vector<Binding> roles;
  for (const auto& [name, binding] : bound_) {
    if (binding.local) roles.push_back(binding);
  }
  return roles;
}

Result<std::uint64_t> Directory::send(const PeerName& from,
                                      const PeerName& to,
                                      const wire::Frame& frame) const {
  const std::shared_lock lock(mutex_);  // so that the system cannot end meanwhile
  const auto self = bound_.find(from);
  if (closed_ || self == bound_.end() || !self->second.local) {
    return core::fail(ErrorCode::kClosed, from + " has left the network");
  }
  const auto peer = bound_.find(to);
  if (peer == bound_.end()) {
    return core::fail(ErrorCode::kPeerLost, "no role named " + to + " is there");
  }
  caf::send_as(self->second.handle, peer->second.handle, Parcel(frame));
  return peer->second.hello.epoch;
}

// Handles are released without the lock: that may end an actor, which then asks this directory.
void Directory::close() {
  Bound gone;
  std::vector<caf::actor> introducers;
  const std::unique_lock lock(mutex_);
  closed_ = true;
  gone.swap(bound_);
  introducers.swap(introducers_);
  last_.clear();
}

}  // namespace troupe::cluster::exchange
