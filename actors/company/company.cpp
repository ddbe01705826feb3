#include "actors/company/company.hpp"

#include "actors/controller/limits.hpp"

namespace troupe::actors::company {

Company::Company(RoleContext context,
                 CompanyOptions options,
                 Admission& admission,
                 NodeLauncher& launcher,
                 CompanyPort& port)
    : context_(std::move(context)),
      options_(std::move(options)),
      admission_(admission),
      port_(port),
      changed_(*context_.timers),
      arrivals_(*context_.timers, changed_),
      processes_(options_.local_nodes, launcher, admission),
      roles_(context_, port, options_, processes_, arrivals_, changed_),
      starter_(context_, port, options_, admission, processes_, arrivals_, roles_, changed_),
      nodes_(context_, port, options_, admission, processes_, arrivals_, roles_, changed_),
      drain_(context_, port, processes_, arrivals_, roles_, nodes_, changed_) {}

async::task<core::Result<void>> Company::attend() {
  for (;;) {
    nodes_.look();
    if (roles_.may_start()) {
      roles_.tend_gangs();
      starter_.start_due();
    }
    roles_.look_for_worn();
    const auto again = async::Deadline::after(*context_.timers, controller::limits::kLookEvery);
    co_await changed_.wait(again);
  }
}

CompanyView Company::view() const {
  const core::TimePoint now = context_.timers->now();
  const auto seconds = [&](core::TimePoint since) {
    return std::chrono::duration<double>(now - since).count();
  };
  CompanyView view;
  view.now = now;
  for (const auto& [name, member] : nodes_.members()) {
    const bool draining = nodes_.drains().knows(name) && member.health == NodeHealth::kAlive;
    view.nodes.push_back({member.join, draining ? "draining" : health_name(member.health),
                          seconds(member.last_heard), seconds(member.joined),
                          member.figures.memory(), member.figures.reports(now)});
  }
  for (const auto& [name, placed] : placement().roles())
    view.roles.push_back(placed);
  view.brought = arrivals_.brought();
  view.lost.assign(nodes_.lost_nodes().all().begin(), nodes_.lost_nodes().all().end());
  return view;
}

async::task<core::Result<Joined>> Company::on(Join request) {
  TROUPE_CO_TRY(nodes_.take_in(request));
  Joined joined{options_.run_id, request.name, starter_.take_in(request),
                static_cast<std::uint32_t>(options_.head_wait.count() / 1'000'000), options_.run};
  roles_.placement().node_in(request.name, request.roles);
  changed_.notify_all();
  co_return joined;
}

async::task<core::Result<Status>> Company::on(QueryStatus) {
  TROUPE_CO_TRY_ASSIGN(json, co_await port_.status());
  co_return Status{std::move(json)};
}

// The guest asks once its role was taken in, so the introduction that is here is this guest's.
async::task<core::Result<RewardsChanged>> Company::on(AttachReward request) {
  const std::string role = request.peer;
  if (!co_await arrivals_.wait(role, 1)) {
    co_return core::fail(ErrorCode::kPeerLost,
                         "the reward role " + role + " did not introduce itself");
  }
  const std::uint64_t epoch = arrivals_.epoch_of(role);
  auto attached = port_.attach(std::move(request));
  auto changed = co_await std::move(attached);
  // A loss that came while the run took the reward in was no news to it.
  if (changed && arrivals_.epoch_of(role) != epoch)
    port_.role_lost(role, {ErrorCode::kPeerLost, role + " is lost: it left while it was attached"});
  co_return changed;
}

// The guest is told to end, and the name is the next one's from now on: whoever attaches a reward
// of that name must not have to wait until the guest has gone.
async::task<core::Result<RewardsChanged>> Company::on(DetachReward request) {
  const std::string role = "reward/" + request.name;
  const std::string* const bringer = core::find_value(arrivals_.brought(), role);
  const std::string node = bringer == nullptr ? "" : *bringer;
  const std::uint64_t epoch = arrivals_.epoch_of(node), life = arrivals_.epoch_of(role);
  auto detached = port_.detach(std::move(request));
  auto changed = co_await std::move(detached);
  const bool same = arrivals_.epoch_of(node) == epoch;  // the node may have come back meanwhile
  if (changed && same && epoch > 0) {
    roles_.release(role, life, {ErrorCode::kPeerLost, role + " was detached"});
    context_.scope->spawn("dismiss " + node, nodes_.dismiss(node));
  }
  co_return changed;
}

void Company::on_arrived(const wire::Hello& hello, const std::string& origin) {
  arrivals_.add(hello.name, hello.epoch);
  if (hello.name.starts_with("node/")) return;  // the node will ask to join
  if (const PlacedRole* const here = placement().find(hello.name)) {
    const Member* const member = nodes_.find(here->node);
    const std::string host = member == nullptr ? "" : " on " + member->join.host;
    starter_.note_class(hello, here->node + host);
  } else {
    arrivals_.bring(hello.name, admission_.node_of(origin));
    if (hello.name.starts_with("environment/")) port_.role_up(hello.name);
  }
  changed_.notify_all();
}

void Company::on_lost(const std::string& name, std::uint64_t epoch, const core::Error& cause) {
  if (name.starts_with("node/")) return nodes_.lost(name, epoch, cause);
  roles_.gone(name, epoch, cause);
}

}  // namespace troupe::actors::company
