#include "apps/session/busy_together.hpp"

#include <algorithm>

namespace troupe::session {

void BusyTogether::add(const std::string& role, const std::vector<wire::Span>& spans) {
  std::vector<Stretch>* const side = role.starts_with("generator/") ? &generators_
                                     : role == "policy/0"           ? &policy_
                                                                    : nullptr;
  if (side == nullptr) return;
  for (const wire::Span& span : spans) {
    if (span.state != "busy" || span.end <= span.begin) continue;
    if (!side->empty() && side->back().end == span.begin) {
      side->back().end = span.end;  // adjacent spans: one stretch
    } else {
      side->push_back({span.begin, span.end});
    }
  }
}

double BusyTogether::seconds() const {
  const auto merged = [](std::vector<Stretch> stretches) {
    std::sort(stretches.begin(), stretches.end(),
              [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
    std::vector<Stretch> result;
    for (const Stretch& one : stretches) {
      if (!result.empty() && one.begin <= result.back().end) {
        result.back().end = std::max(result.back().end, one.end);
      } else {
        result.push_back(one);
      }
    }
    return result;
  };
  const std::vector<Stretch> a = merged(generators_), b = merged(policy_);
  std::uint64_t sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::uint64_t begin = std::max(a[i].begin, b[j].begin);
    const std::uint64_t end = std::min(a[i].end, b[j].end);
    if (end > begin) sum += end - begin;
    a[i].end < b[j].end ? ++i : ++j;
  }
  return static_cast<double>(sum) / 1e9;
}

}  // namespace troupe::session
