#include "actors/node/hosted_roles.hpp"

#include "actors/node/limits.hpp"
#include "actors/protocol/limits.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/core/at_exit.hpp"

#include <algorithm>

namespace troupe::actors::node {

HostedRoles::HostedRoles(async::Executor strand, async::Timers& timers, Ports ports)
    : strand_(strand),
      timers_(timers),
      ports_(std::move(ports)),
      scope_(std::move(strand)),
      changed_(timers) {}

// Marks a start or stop of a role as under way until the returned object is destroyed.
auto HostedRoles::begin_change() {
  changing_ = true;
  return core::AtExit([this] {
    changing_ = false;
    changed_.notify_all();
  });
}

async::task<void> HostedRoles::settle_here() {
  while (changing_)
    co_await changed_.wait(async::Deadline::none());
}

async::task<void> HostedRoles::settle() {
  if (ports_.maker != nullptr) ports_.maker->abandon_starts();
  co_await async::run_on(strand_, settle_here());
}

async::task<Result<void>> HostedRoles::start(Spawn spawn) {
  auto started = async::run_apart(&scope_, start_here(std::move(spawn)));
  co_return co_await std::move(started);
}

async::task<void> HostedRoles::stop(std::string role, std::uint64_t epoch) {
  auto stopped = async::run_apart(&scope_, stop_told(std::move(role), epoch));
  static_cast<void>(co_await std::move(stopped));  // stops have no errors
}

async::task<Result<void>> HostedRoles::stop_told(std::string role, std::uint64_t epoch) {
  co_await stop_one(std::move(role), epoch);
  co_return Result<void>();
}

async::task<Result<void>> HostedRoles::start_here(Spawn spawn) {
  co_await settle_here();
  if (ending_) co_return core::fail(core::ErrorCode::kClosed, "this node ends");
  if (spawn.run_id != run_id_) co_await forget_run(spawn.run_id);
  const std::string name = spawn.name;
  const std::uint64_t epoch = spawn.epoch;
  const auto there = hosted_.find(name);
  const bool ours = there != hosted_.end() && there->second.role.run_id == spawn.run_id;
  if (ours && there->second.role.epoch == epoch) co_return Result<void>();
  const std::uint64_t newest = ours ? there->second.role.epoch : ended_[name];
  if (newest >= epoch) {
    co_return core::fail(core::ErrorCode::kInvalidArgument,
                         name + " of epoch " + std::to_string(newest) + " was here",
                         "it is not started with epoch " + std::to_string(epoch));
  }
  if (there != hosted_.end()) co_await stop_one(name, 0);
  {
    const auto change = begin_change();
    const HostedRole role{spawn.kind, name, spawn.run_id, epoch};
    config_ = spawn.config;
    auto made = co_await host(std::move(spawn));
    if (!made) co_return made.failure();
    Hosted hosted;
    hosted.role = role;
    hosted.host = std::move(*made);
    hosted_[name] = std::move(hosted);
  }
  ports_.note("started " + name);
  co_return Result<void>();
}

// Another run has come: what is here belongs to the last one, and epochs of the two do not compare.
async::task<void> HostedRoles::forget_run(std::uint64_t next) {
  run_id_ = next;
  ended_.clear();
  for (;;) {
    const auto other = std::find_if(hosted_.begin(), hosted_.end(), [this](const auto& one) {
      return one.second.role.run_id != run_id_;
    });
    if (other == hosted_.end()) co_return;
    const std::string role = other->first;
    ports_.note(role + " ends: it belonged to another run");
    co_await stop_one(role, 0);
  }
}

async::task<Result<std::unique_ptr<cluster::RoleHost>>> HostedRoles::host(Spawn spawn) {
  cluster::Identity identity{spawn.name, core::RunId{spawn.run_id}, spawn.epoch};
  auto recipe = co_await ports_.maker->make(std::move(spawn));
  if (!recipe) co_return recipe.failure();
  identity.arithmetic = recipe->arithmetic;
  cluster::RoleHost::Hooks hooks;
  hooks.failed = [this](const cluster::PeerName& who, const core::Error& error) {
    async::post(strand_, [this, who, error] { failed(who, error); });
  };
  auto place = ports_.place(identity);
  auto hosted = co_await cluster::host_role(std::move(place), std::move(*recipe), std::move(hooks));
  co_return hosted;
}

// Stops a role that failed by itself. The company notices it, because the role's address ends, too.
void HostedRoles::failed(const std::string& role, const core::Error& error) {
  ports_.note(role + " failed: " + error.message);
  scope_.spawn("stop " + role, stop_one(role, 0));
}

async::task<void> HostedRoles::stop_one(std::string role, std::uint64_t epoch) {
  if (ports_.maker != nullptr) ports_.maker->abandon(role, epoch);
  co_await settle_here();
  const auto found = hosted_.find(role);
  if (found == hosted_.end()) co_return;
  if (epoch != 0 && found->second.role.epoch > epoch) co_return;
  const auto change = begin_change();
  found->second.stops = true;
  if (found->second.role.run_id == run_id_) ended_[role] = found->second.role.epoch;
  co_await found->second.host->stop();
  hosted_.erase(found);
}

async::task<void> HostedRoles::stop_all() {
  co_await async::run_on(strand_, stop_here());
}

async::task<void> HostedRoles::stop_here() {
  ending_ = true;
  if (ports_.maker != nullptr) ports_.maker->abandon_starts();
  for (;;) {
    co_await settle_here();
    if (hosted_.empty()) break;
    co_await stop_one(hosted_.rbegin()->first, 0);
  }
  auto joined = co_await scope_.join();
  static_cast<void>(joined);  // stops have no errors
}

void HostedRoles::ask_for_figures(const Hosted& hosted) {
  const auto figures = hosted.figures;
  const core::TimePoint now = timers_.now();
  if (hosted.stops || figures->asking) return;
  if (figures->report && now - figures->asked < limits::kFiguresEvery) return;
  figures->asking = true;
  figures->asked = now;
  hosted.host->report_to([figures, strand = strand_, timers = &timers_](wire::RoleReport report) {
    const core::TimePoint made = timers->now();
    async::post(strand, [figures, made, report = std::move(report)]() mutable {
      figures->report = std::move(report);
      figures->made = made;
      figures->asking = false;
    });
  });
}

std::vector<wire::RoleReport> HostedRoles::reports() {
  std::vector<wire::RoleReport> reports;
  for (const auto& [name, hosted] : hosted_) {
    ask_for_figures(hosted);
    if (!hosted.figures->report || reports.size() == actors::limits::kHostedRoles_max) continue;
    reports.push_back(*hosted.figures->report);
    const core::Duration age = timers_.now() - hosted.figures->made;
    reports.back().age_s = std::chrono::duration<double>(age).count();
  }
  return reports;
}

std::vector<HostedRole> HostedRoles::list() const {
  std::vector<HostedRole> roles;
  for (const auto& [name, hosted] : hosted_)
    roles.push_back(hosted.role);
  return roles;
}

}  // namespace troupe::actors::node
