#include "apps/session/role_figures.hpp"

#include "runtime/core/find_value.hpp"

#include <algorithm>

namespace troupe::app {
namespace {

constexpr const char* kRate = "tokens_per_s";

const std::pair<std::string, double>* find_amount(const wire::RoleReport& report,
                                                  const std::string& name) {
  const auto found = std::find_if(report.amounts.begin(), report.amounts.end(),
                                  [&](const auto& one) { return one.first == name; });
  return found == report.amounts.end() ? nullptr : &*found;
}

bool is_newer(const wire::RoleReport& one, const wire::RoleReport& other) {
  return one.epoch == other.epoch ? one.age_s < other.age_s : one.epoch > other.epoch;
}

void take(RoleReports& reports, const wire::RoleReport& brought) {
  const auto [place, fresh] = reports.try_emplace(brought.name, brought);
  if (fresh) return;
  wire::RoleReport& known = place->second;
  if (is_newer(brought, known)) {
    known = brought;
  } else if (const auto* const rate = find_amount(brought, kRate);
             rate != nullptr && known.epoch == brought.epoch) {
    known.amounts.push_back(*rate);
  }
}

}  // namespace

RoleReports newest_reports(RoleReports asked, const actors::CompanyView& view) {
  std::map<std::string, std::string> places;  // node by role
  for (const actors::PlacedRole& placed : view.roles)
    places[placed.name] = placed.node;
  for (const auto& node : view.nodes) {
    for (const wire::RoleReport& report : node.reports) {
      const std::string* const place = core::find_value(places, report.name);
      if (place != nullptr && *place == node.join.name) take(asked, report);
    }
  }
  return asked;
}

double amount_of(const wire::RoleReport& report, const std::string& name, double otherwise) {
  const auto* const amount = find_amount(report, name);
  return amount == nullptr ? otherwise : amount->second;
}

}  // namespace troupe::app
