#include "actors/company/node_figures.hpp"

#include "actors/company/limits.hpp"
#include "runtime/core/find_value.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::actors::company {
namespace {

const double* tokens_of(const wire::RoleReport& report) {
  return wire::find_amount(report.amounts, "tokens");
}

}  // namespace

void NodeFigures::take(const Beat& beat, core::TimePoint now) {
  memory_ = beat.memory;
  std::map<std::string, Role> roles;
  for (const wire::RoleReport& report : beat.reports) {
    Role& role = roles[report.name];
    if (const Role* const before = core::find_value(roles_, report.name)) role = *before;
    role.report = report;
    const double age_s = std::isfinite(report.age_s) ? std::clamp(report.age_s, 0.0, 1e6) : 0.0;
    role.made =
        now - std::chrono::duration_cast<core::Duration>(std::chrono::duration<double>(age_s));
    add_rate(role);
  }
  roles_ = std::move(roles);
}

void NodeFigures::add_rate(Role& role) {
  const double* const tokens = tokens_of(role.report);
  if (tokens == nullptr) return;
  Rate& rate = role.rate;
  if (rate.at == core::TimePoint{} || rate.epoch != role.report.epoch || *tokens < rate.tokens) {
    rate = {.at = role.made, .tokens = *tokens, .epoch = role.report.epoch};
  } else if (role.made - rate.at >= limits::kRateWindow) {
    const double seconds = std::chrono::duration<double>(role.made - rate.at).count();
    rate.per_s = (*tokens - rate.tokens) / seconds;
    rate.at = role.made;
    rate.tokens = *tokens;
  }
}

std::vector<wire::RoleReport> NodeFigures::reports(core::TimePoint now) const {
  std::vector<wire::RoleReport> reports;
  for (const auto& [name, role] : roles_) {
    reports.push_back(role.report);
    wire::RoleReport& report = reports.back();
    report.age_s = std::chrono::duration<double>(now - role.made).count();
    if (tokens_of(report) != nullptr) report.amounts.emplace_back("tokens_per_s", role.rate.per_s);
  }
  return reports;
}

}  // namespace troupe::actors::company
