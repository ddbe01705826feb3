// The part of a report from trace.json.
#include "apps/report/json_members.hpp"
#include "apps/report/line_reader.hpp"
#include "apps/report/run_parts.hpp"
#include "runtime/parse/bounded_json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::report {
namespace {

constexpr std::size_t kTracedRoles_max = 1024, kCauses_max = 64;  // causes of a role

std::string text_member(const ordered_json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>().substr(0, 200)
                                                     : "";
}

class SpanSums {
 public:
  // False for an event that is neither a name nor a span.
  bool add(const ordered_json& event) {
    const std::string kind = text_member(event, "ph");
    if (kind == "M") return add_name(event);
    const auto duration = event.find("dur");
    if (kind != "X" || duration == event.end() || !duration->is_number()) return false;
    const double seconds = duration->get<double>() / 1e6;
    const auto role = roles_.find(whole_number(event, "tid"));
    if (role == roles_.end() || !std::isfinite(seconds) || seconds < 0) return false;
    auto& spans = role->second.spans;
    const std::pair cause(text_member(event, "cat"), text_member(event, "name"));
    if (spans.size() < kCauses_max || spans.contains(cause)) spans[cause] += seconds;
    return true;
  }

  ordered_json json() const {
    ordered_json out = ordered_json::array();
    for (const auto& [number, role] : roles_) {
      std::vector<std::pair<double, const Cause*>> longest;
      double all = 0;
      for (const auto& [cause, seconds] : role.spans) {
        longest.emplace_back(-seconds, &cause);
        all += seconds;
      }
      std::stable_sort(longest.begin(), longest.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      ordered_json spans = ordered_json::array();
      for (const auto& [seconds, cause] : longest)
        spans.push_back({cause->first, cause->second, -seconds});
      const auto node = nodes_.find(role.node);
      out.push_back({{"name", role.name},
                     {"node", node == nodes_.end() ? "" : node->second},
                     {"seconds", all},
                     {"spans", std::move(spans)}});
    }
    return out;
  }

 private:
  using Cause = std::pair<std::string, std::string>;  // state and cause
  struct Role {
    std::string name;
    std::uint64_t node = 0;
    std::map<Cause, double> spans;
  };

  bool add_name(const ordered_json& event) {
    const auto arguments = event.find("args");
    if (arguments == event.end() || !arguments->is_object()) return false;
    const std::string what = text_member(event, "name"), name = text_member(*arguments, "name");
    if (what == "process_name" && nodes_.size() < kTracedRoles_max)
      nodes_[whole_number(event, "pid")] = name;
    if (what == "thread_name" && roles_.size() < kTracedRoles_max)
      roles_[whole_number(event, "tid")] = {name, whole_number(event, "pid"), {}};
    return true;
  }

  std::map<std::uint64_t, std::string> nodes_;
  std::map<std::uint64_t, Role> roles_;
};

}  // namespace

ordered_json trace_json(const std::filesystem::path& run, Notes& notes) {
  LineReader reader(run / "trace.json", 64 << 10);
  if (!reader.opened()) return nullptr;
  SpanSums sums;
  std::uint64_t strange = reader.too_long();
  while (auto line = reader.next()) {
    if (reader.bytes() > limits::kReportTrace_bytes_max) {
      notes.add("trace.json: only the first " +
                std::to_string(limits::kReportTrace_bytes_max >> 20) + " MiB are read");
      break;
    }
    if (line->ends_with(',')) line->remove_suffix(1);
    if (line->empty() || *line == "[" || *line == "]") continue;
    const auto event = parse::bounded_json<ordered_json>(*line, {});
    const bool known = event && event->is_object() && sums.add(*event);
    strange += known ? 0 : 1;
  }
  if (strange > 0)
    notes.add("trace.json: lines that are no spans are left out: " + std::to_string(strange));
  return sums.json();
}

}  // namespace troupe::report
