// What others see of the company: its state for `status`, and waits for roles that come up.
#include "actors/company/company.hpp"

#include <algorithm>

namespace troupe::actors {

using core::ErrorCode;

CompanyView Company::view() const {
  const core::TimePoint now = context_.timers->now();
  const auto seconds = [&](core::TimePoint since) {
    return std::chrono::duration<double>(now - since).count();
  };
  CompanyView view;
  view.now = now;
  for (const auto& [name, member] : membership_.members()) {
    const bool draining = drains_.knows(name) && member.health == NodeHealth::kAlive;
    view.nodes.push_back({member.join, draining ? "draining" : health_name(member.health),
                          seconds(member.last_heard), seconds(member.joined),
                          member.figures.memory(), member.figures.reports(now)});
  }
  for (const auto& [name, placed] : placement_.roles())
    view.roles.push_back(placed);
  view.brought = brought_;
  view.lost.assign(lost_nodes_.all().begin(), lost_nodes_.all().end());
  return view;
}

async::task<core::Result<void>> Company::await_up(std::vector<std::string> kinds,
                                                  async::Deadline deadline) {
  const auto why_not = [this](const std::string& kind) -> std::string {
    for (const auto& [name, placed] : placement_.roles()) {
      const bool failed = placed.kind == kind && placed.state != RoleState::kUp;
      if (failed && !placed.last_cause.empty()) return " (" + placed.last_cause + ")";
    }
    return "";
  };
  for (;;) {
    const bool all = std::all_of(kinds.begin(), kinds.end(),
                                 [&](const std::string& kind) { return placement_.all_up(kind); });
    if (all) co_return core::Result<void>();
    if (failed_) co_return core::fail(ErrorCode::kClosed, "the run has ended");
    if (!co_await changed_.wait(deadline)) {
      std::string missing;
      for (const std::string& kind : kinds) {
        if (!placement_.all_up(kind))
          missing += (missing.empty() ? "" : ", ") + kind + why_not(kind);
      }
      co_return core::fail(ErrorCode::kDeadline, "these roles did not come up: " + missing);
    }
  }
}

}  // namespace troupe::actors
