// A run begins, ends and is looked at; the company is dismissed.
#include "actors/limits.hpp"
#include "actors/node/company_role.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/cluster/limits.hpp"

#include <algorithm>

namespace troupe::actors {

using core::ErrorCode;

CompanyView CompanyRole::view() const {
  const core::TimePoint now = context_.timers->now();
  const auto seconds = [&](core::TimePoint since) {
    return std::chrono::duration<double>(now - since).count();
  };
  CompanyView view;
  for (const auto& [name, member] : membership_.members()) {
    view.nodes.push_back({member.join, health_name(member.health), seconds(member.last_beat),
                          seconds(member.joined)});
  }
  for (const auto& [name, part] : cast_.parts())
    view.parts.push_back(part);
  view.brought = brought_;
  return view;
}

async::task<core::Result<void>> CompanyRole::await_up(std::vector<std::string> kinds,
                                                      async::Deadline deadline) {
  const auto why_not = [this](const std::string& kind) -> std::string {
    for (const auto& [name, part] : cast_.parts()) {
      const bool failed = part.kind == kind && part.state != PartState::kUp;
      if (failed && !part.last_cause.empty()) return " (" + part.last_cause + ")";
    }
    return "";
  };
  for (;;) {
    const bool all = std::all_of(kinds.begin(), kinds.end(),
                                 [&](const std::string& kind) { return cast_.all_up(kind); });
    if (all) co_return core::Result<void>();
    if (failed_) co_return core::fail(ErrorCode::kClosed, "the run has ended");
    if (!co_await changed_.wait(deadline)) {
      std::string missing;
      for (const std::string& kind : kinds) {
        if (!cast_.all_up(kind)) missing += (missing.empty() ? "" : ", ") + kind + why_not(kind);
      }
      co_return core::fail(ErrorCode::kDeadline, "these roles did not come up: " + missing);
    }
  }
}

async::task<void> CompanyRole::end_run() {
  resting_ = parting_ = true;
  std::vector<Part> played;
  for (const auto& [name, part] : cast_.parts()) {
    if (part.state != PartState::kWanted) played.push_back(part);
  }
  RoleContext context = context_;
  context.call_deadline = cluster::limits::kShutdownDeadline;
  for (const Part& part : played) {
    StopRole stop{part.name};
    auto stopped = co_await ask(context, part.node, std::move(stop));
    if (!stopped) hooks_.note(part.name + " could not be stopped: " + stopped.error().message);
    const core::Error cause{ErrorCode::kClosed, "the run has ended"};
    cast_.retire(part.name);
    hooks_.fence(part.name, cause);
  }
}

async::task<void> CompanyRole::dismiss_all(async::Deadline deadline, bool over) {
  resting_ = parting_ = dismissing_ = true;
  failed_ = true;  // no process is started any more
  for (const LocalState& state : locals_) {
    if (state.running && !state.joined) launcher_.kill(state.node.name);
  }
  std::vector<async::task<core::Result<void>>> all;
  for (const auto& [name, member] : membership_.members()) {
    if (over || !offers(member.join, "attach")) all.push_back(dismiss(name));
  }
  auto told = co_await async::all(std::move(all));
  if (!told) hooks_.note(told.error().message);
  for (;;) {
    tend_local_nodes();
    const bool ended = std::none_of(locals_.begin(), locals_.end(),
                                    [](const LocalState& state) { return state.running; });
    if (ended || !co_await until(deadline)) co_return;
  }
}

// A moment; false once the deadline has passed.
async::task<bool> CompanyRole::until(async::Deadline deadline) {
  co_await async::sleep_for(*context_.timers, limits::kLookEvery / 10);
  co_return deadline.remaining(*context_.timers) > core::Duration::zero();
}

}  // namespace troupe::actors
