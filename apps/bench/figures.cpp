#include "apps/bench/figures.hpp"

#include "apps/cli/words.hpp"
#include "runtime/core/check.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

namespace troupe::bench {

std::int64_t clock_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double median(std::vector<double> values) {
  TROUPE_CHECK(!values.empty(), "a median of nothing");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

Quartiles quartiles(std::vector<double> values) {
  TROUPE_CHECK(!values.empty(), "quartiles of nothing");
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
  };
  return {at(0.25), at(0.5), at(0.75)};
}

void print_figures(const nlohmann::ordered_json& figures, bool as_json) {
  if (as_json) return cli::say(figures.dump());
  std::size_t longest = 0;
  for (const auto& [name, value] : figures.items())
    longest = std::max(longest, name.size());
  for (const auto& [name, value] : figures.items())
    std::printf("%-*s %s\n", static_cast<int>(longest) + 2, name.c_str(), value.dump().c_str());
}

}  // namespace troupe::bench
