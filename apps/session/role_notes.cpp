#include "apps/session/role_notes.hpp"

#include "apps/session/limits.hpp"
#include "apps/session/reward_words.hpp"

namespace troupe::session {
namespace {

// A sum of the roles' counters that grows whenever anything makes progress.
double progress_of(const RoleReports& roles) {
  double sum = 0;
  for (const auto& [name, report] : roles) {
    for (const auto& [what, value] : report.amounts) {
      if (what == "tokens" || what == "updates" || what == "version" || what == "scored")
        sum += value;
    }
  }
  return sum;
}

std::string who_waits(const RoleReports& roles) {
  std::string text;
  for (const auto& [name, report] : roles) {
    if (report.waits_for.empty() || name == "status/0") continue;
    text += (text.empty() ? "" : "; ") + name + " waits for " + report.waits_for;
  }
  return text.empty() ? "no role waits for another" : text;
}

CallCosts call_costs(const wire::RoleReport& report) {
  return {amount_of(report, "workers"), amount_of(report, "call_s"),
          amount_of(report, "timed_calls"), amount_of(report, "together")};
}

}  // namespace

std::vector<std::string> RoleNotes::look(const RoleReports& roles, core::TimePoint now) {
  constexpr double kWorthTelling_s = 0.1;
  std::vector<std::string> notes;
  if (const double progress = progress_of(roles); progress != last_progress_) {
    last_progress_ = progress;
    moved_ = now;
  } else if (now - moved_ >= limits::kNoProgress) {
    moved_ = now;
    notes.push_back("no progress for " + std::to_string(limits::kNoProgress.count() / 1000) +
                    " s: " + who_waits(roles));
  }
  for (const auto& [role, report] : roles) {
    const CallCosts costs = call_costs(report);
    if (!role.starts_with("reward/") || seconds_an_update(costs, groups_) < kWorthTelling_s ||
        !costs_told_.insert(role).second)
      continue;
    notes.push_back(role + ": " + call_arithmetic(costs, groups_) +
                    " (more --reward.workers, or an async function, make it less)");
  }
  for (const auto& [role, report] : roles) {
    const std::string words =
        servers_words(amount_of(report, "servers"), amount_of(report, "servers_away"));
    const auto told = servers_told_.find(role);
    const bool lately = told != servers_told_.end() && now - told->second < limits::kNoProgress;
    if (words.empty() || lately) continue;
    servers_told_[role] = now;
    notes.push_back(role + ": " + words);
  }
  return notes;
}

}  // namespace troupe::session
