#include "apps/session/asked_roles.hpp"

#include "actors/company/limits.hpp"

namespace troupe::session {

void AskedRoles::close() {
  if (trace_) trace_->close();
}

void AskedRoles::up(const std::string& role) {
  const std::lock_guard lock(mutex_);
  up_.insert(role);
}

void AskedRoles::lost(const std::string& role) {
  const std::lock_guard lock(mutex_);
  up_.erase(role);
}

async::task<void> AskedRoles::ask(const actors::RoleContext& context,
                                  const actors::company::CompanyView& view) {
  std::set<std::string> names;
  {
    const std::lock_guard lock(mutex_);
    names = up_;
  }
  names.insert({"controller/0", "data/0"});
  std::erase_if(roles_, [&](const auto& one) { return !names.contains(one.first); });
  const auto places = nodes_by_role(view);  // for the trace
  std::vector<async::task<Result<void>>> all;
  for (const std::string& name : names) {
    const auto place = places.find(name);
    all.push_back(ask_one(&context, name, place == places.end() ? "head" : place->second));
  }
  auto asked = co_await async::all(std::move(all));
  static_cast<void>(asked);  // who does not answer is lost or slow; the company reports that
}

async::task<Result<void>> AskedRoles::ask_one(const actors::RoleContext* context,
                                              std::string role,
                                              std::string node) {
  const auto deadline = async::Deadline::after(timers_, actors::company::limits::kSuspectAfter);
  const auto known = roles_.find(role);
  const std::uint64_t after = known == roles_.end() ? 0 : known->second.next_span;
  auto frame = wire::query_role_frame(context->transport->new_request(deadline), after);
  auto answer = co_await context->transport->call(role, std::move(frame), deadline);
  if (!answer) co_return Result<void>();
  auto report = wire::read_role_report(*answer);
  if (!report) co_return Result<void>();
  const auto now_known = roles_.find(role);
  const bool twice = now_known != roles_.end() && now_known->second.next_span != after;
  if (twice) report->spans.clear();  // another round had them meanwhile
  together_.add(role, report->spans);
  if (trace_) {
    trace_->add(node, role, report->spans);
  }
  report->spans.clear();
  at_[role] = timers_.now();
  roles_[role] = std::move(*report);
  co_return Result<void>();
}

RoleReports AskedRoles::newest(const actors::company::CompanyView& view) const {
  RoleReports reports = roles_;
  for (auto& [role, report] : reports)
    report.age_s = std::chrono::duration<double>(timers_.now() - at_.at(role)).count();
  return newest_reports(std::move(reports), view);
}

}  // namespace troupe::session
