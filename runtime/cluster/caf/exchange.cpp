#include "runtime/cluster/caf/exchange.hpp"

#include "runtime/cluster/caf/core.hpp"
#include "runtime/cluster/caf/introducer.hpp"
#include "runtime/cluster/caf/member.hpp"
#include "runtime/cluster/caf/messages.hpp"
#include "runtime/cluster/caf/system.hpp"
#include "runtime/cluster/limits.hpp"
#include "runtime/core/check.hpp"
#include "runtime/core/thrown.hpp"
#include "runtime/net/socket_folder.hpp"

#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace troupe::cluster {

using exchange::Core;

namespace {

constexpr std::uint16_t kListener = 1;  // the number by which CAF knows this listener

const core::SteadyClock kClock{};

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace

struct Exchange::Impl {
  Impl(Hooks hooks, async::Timers& given)
      : timers(given), core(std::make_shared<Core>(std::move(hooks))) {
    const exchange::Visit visit;
    introducer = system.get().spawn<exchange::Introducer>(core);
    core->living.add(introducer.id(), "the exchange's own actor");
    introducer->attach_functor(
        [shared = core, id = introducer.id()] { shared->living.remove(id); });
  }

  Result<caf::actor> reach(const std::string& path, async::Deadline end);
  Result<void> said(const std::string& path,
                    const wire::Hello& self,
                    const caf::actor& remote,
                    async::Deadline end);
  std::string why(const caf::error& error, const std::string& path);
  void leave();

  async::Timers& timers;
  const std::shared_ptr<Core> core;
  exchange::System system;
  caf::actor introducer;
  std::optional<net::SocketFolder> folder;  // once it listens
  std::mutex members_mutex;
  std::map<PeerName, std::weak_ptr<exchange::Member>> members;
  std::shared_timed_mutex gate;  // `close` takes it exclusively, other calls shared
  bool closed = false;
};

Exchange::Exchange(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Exchange::~Exchange() {
  const auto closed = close(limits::kShutdownDeadline);
  static_cast<void>(closed);  // a caller that wants to know calls `close`
}

Result<std::unique_ptr<Exchange>> Exchange::create(Hooks hooks, async::Timers& timers) {
  try {
    auto impl = std::make_unique<Impl>(std::move(hooks), timers);
    return std::unique_ptr<Exchange>(new Exchange(std::move(impl)));
  } catch (const std::exception& thrown) {
    const core::Error why = core::error_of(thrown).within("the actor system cannot start");
    return core::fail(ErrorCode::kResources, std::string(why.what()), std::string(why.advice()));
  }
}

Result<std::shared_ptr<Endpoint>> Exchange::join(Identity identity, async::Executor strand) {
  const std::shared_lock gate(impl_->gate);
  if (impl_->closed)
    return core::fail(ErrorCode::kClosed, "this process has left the network of roles");
  auto member = std::make_shared<exchange::Member>(std::move(identity), std::move(strand),
                                                   impl_->timers, impl_->core);
  TROUPE_TRY(member->enter(impl_->system.get(), impl_->introducer));
  const std::lock_guard lock(impl_->members_mutex);
  std::erase_if(impl_->members, [](const auto& one) { return one.second.expired(); });
  impl_->members[member->identity().self] = member;
  return std::shared_ptr<Endpoint>(std::move(member));
}

Result<std::string> Exchange::listen() {
  const std::shared_lock gate(impl_->gate);
  if (impl_->closed)
    return core::fail(ErrorCode::kClosed, "this process has left the network of roles");
  if (impl_->folder) return core::fail(ErrorCode::kInternal, "the exchange listens already");
  TROUPE_TRY_ASSIGN(folder, net::SocketFolder::make());
  impl_->folder.emplace(std::move(folder));
  const std::string path = impl_->folder->socket("company");
  const exchange::Visit visit;
  caf::scoped_actor self(impl_->system.get());
  Result<std::string> listening = core::fail(ErrorCode::kResources, "cannot listen at " + path);
  self->request(impl_->system.middleman(), limits::kShutdownDeadline, caf::publish_atom::value,
                kListener, caf::actor_cast<caf::strong_actor_ptr>(impl_->introducer),
                std::set<std::string>(), path, false)
      .receive([&](std::uint16_t) { listening = path; },
               [&](const caf::error& error) {
                 listening = core::fail(ErrorCode::kResources, impl_->why(error, path));
               });
  return listening;
}

// The text of an error: that of LocalMiddleman, which names the path, or else CAF's own.
std::string Exchange::Impl::why(const caf::error& error, const std::string& path) {
  const caf::message& context = error.context();
  if (error == caf::sec::cannot_connect_to_node && context.match_elements<std::string>()) {
    return context.get_as<std::string>(0);
  }
  return "cannot connect to " + path + ": " + system.get().render(error);
}

// CAF drops a new connection whose handshake is not complete at the next heartbeat, even if it
// began just before. Such an end says nothing about the peer, so this tries again until the
// deadline.
Result<caf::actor> Exchange::Impl::reach(const std::string& path, async::Deadline end) {
  const exchange::Visit visit;
  caf::scoped_actor self(system.get());
  for (;;) {
    caf::actor found;
    caf::error failed;
    bool other = false;
    self->request(system.middleman(), end.remaining(kClock), caf::connect_atom::value, path,
                  std::uint16_t{0})
        .receive(
            [&](const caf::node_id& node, const caf::strong_actor_ptr& remote,
                const std::set<std::string>&) {
              other = node != system.get().node();
              found = caf::actor_cast<caf::actor>(remote);
            },
            [&](const caf::error& error) { failed = error; });
    if (!failed && found && other) return found;
    if (!failed) {
      return core::fail(ErrorCode::kInvalidArgument,
                        other ? "what listens at " + path + " is not a troupe process"
                              : path + " is this process itself");
    }
    const bool silent =
        failed == caf::sec::request_timeout || failed == caf::sec::connection_timeout;
    if (silent && end.remaining(kClock) > core::Duration::zero()) continue;
    if (silent) {
      return core::fail(ErrorCode::kDeadline, path +
                                                  " took the connection but did not greet in "
                                                  "time: it is frozen, or not a troupe process");
    }
    return core::fail(ErrorCode::kPeerLost, why(failed, path));
  }
}

Result<void> Exchange::Impl::said(const std::string& path,
                                  const wire::Hello& self,
                                  const caf::actor& remote,
                                  async::Deadline end) {
  const auto welcome = std::make_shared<exchange::Welcome>();
  auto word = welcome->get_future();
  caf::anon_send(introducer, exchange::Dial{remote, self, welcome});
  if (word.wait_until(end.at) != std::future_status::ready) {
    return core::fail(ErrorCode::kDeadline,
                      path + " did not answer the hello of " + self.name + " in time");
  }
  auto result = word.get();
  if (!result) return core::fail(result.error().within(path));
  return result;
}

Result<void> Exchange::connect(const std::string& path,
                               const wire::Hello& self,
                               core::Duration deadline) {
  const std::shared_lock gate(impl_->gate);
  if (impl_->closed)
    return core::fail(ErrorCode::kClosed, "this process has left the network of roles");
  const auto end = async::Deadline::after(kClock, deadline);
  TROUPE_TRY_ASSIGN(remote, impl_->reach(path, end));
  return impl_->said(path, self, remote, end);
}

void Exchange::keep_back(const PeerName& name) {
  impl_->core->directory.keep_back(name);
}

void Exchange::announce(const PeerName& name) {
  const std::shared_lock gate(impl_->gate);
  if (impl_->closed) return;
  std::shared_ptr<exchange::Member> member;
  {
    const std::lock_guard lock(impl_->members_mutex);
    member = impl_->members[name].lock();
  }
  if (member) member->enter_again(impl_->system.get(), impl_->introducer);
}

Result<void> Exchange::present(const PeerName& name, const PeerName& to, core::Duration deadline) {
  const std::shared_lock gate(impl_->gate);
  if (impl_->closed)
    return core::fail(ErrorCode::kClosed, "this process has left the network of roles");
  const auto peer = impl_->core->directory.find(to);
  if (!peer || peer->local) return core::fail(ErrorCode::kPeerLost, "no " + to + " is there");
  const auto welcome = std::make_shared<exchange::Welcome>();
  auto word = welcome->get_future();
  caf::anon_send(impl_->introducer, exchange::Present{name, peer->handle.node(), welcome});
  if (word.wait_until(kClock.now() + deadline) != std::future_status::ready) {
    return core::fail(ErrorCode::kDeadline,
                      "the process of " + to + " did not answer the hello of " + name + " in time");
  }
  return word.get();
}

void Exchange::forget(const PeerName& name, const core::Error& cause, std::uint64_t last) {
  if (const auto gone = impl_->core->directory.fence(name, last)) {
    const core::Error lost{ErrorCode::kPeerLost, cause.message};
    impl_->core->tell_lost(gone->hello.name, gone->hello.epoch, lost);
    const std::shared_lock gate(impl_->gate);
    if (!impl_->closed) caf::anon_send(impl_->introducer, exchange::GivenUp{gone->hello, lost});
  }
}

void Exchange::part_from(const PeerName& name) {
  const auto role = impl_->core->directory.find(name);
  const std::shared_lock gate(impl_->gate);
  if (!role || role->local || impl_->closed) return;
  caf::anon_send(impl_->introducer, exchange::PartFrom{role->handle.node()});
}

void Exchange::introduce(const PeerName& one, const PeerName& other) {
  const std::shared_lock gate(impl_->gate);
  if (!impl_->closed) caf::anon_send(impl_->introducer, exchange::Acquaint{one, other});
}

bool Exchange::kill_actor(const PeerName& name) {
  const auto role = impl_->core->directory.find(name);
  if (!role || !role->local) return false;
  caf::anon_send_exit(role->handle, caf::exit_reason::kill);
  return true;
}

std::uint64_t Exchange::actor_id(const PeerName& name) const {
  const auto role = impl_->core->directory.find(name);
  return role ? role->handle.id() : 0;
}

Exchange::Counters Exchange::counters() const {
  const Core& core = *impl_->core;
  return {core.frames_in, core.frames_out, core.bytes_in, core.bytes_out, core.refused, core.stray};
}

// Stops listening, and ends the introducer and the actors of roles that nobody stopped.
void Exchange::Impl::leave() {
  if (folder) caf::anon_send(system.middleman(), caf::close_atom::value, kListener);
  for (const auto& role : core->directory.locals()) {
    caf::anon_send_exit(role.handle, caf::exit_reason::kill);
  }
  caf::anon_send(introducer, exchange::Leave{});
  introducer = nullptr;
}

Result<void> Exchange::close(core::Duration deadline) {
  const core::TimePoint end = kClock.now() + deadline;
  const std::unique_lock gate(impl_->gate, end);
  if (!gate.owns_lock()) {
    return core::fail(ErrorCode::kDeadline, "the exchange cannot close: a connect is under way");
  }
  std::vector<std::string> unstopped;
  if (!std::exchange(impl_->closed, true)) {
    for (const auto& role : impl_->core->directory.locals())
      unstopped.push_back(role.hello.name);
    impl_->leave();
  }
  const auto living = impl_->core->living.wait_until(end);
  impl_->core->directory.close();
  impl_->folder.reset();
  if (!living.empty()) {
    return core::fail(ErrorCode::kDeadline,
                      "the exchange cannot close: still alive: " + list_of(living));
  }
  if (!impl_->system.destroy(end)) {
    return core::fail(ErrorCode::kDeadline,
                      "the exchange cannot close: the actor system does not end");
  }
  if (!unstopped.empty()) {
    return core::fail(
        ErrorCode::kInternal,
        "the exchange was closed while roles were not stopped: " + list_of(unstopped));
  }
  return {};
}

}  // namespace troupe::cluster
