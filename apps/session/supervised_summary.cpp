#include "apps/session/supervised_summary.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <fstream>
#include <string>

namespace troupe::app {

void print_held_out(const std::filesystem::path& metrics_file, std::uint64_t steps) {
  nlohmann::ordered_json first, last;
  std::ifstream in(metrics_file);
  for (std::string line; std::getline(in, line);) {
    auto row = nlohmann::ordered_json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("eval/loss")) continue;
    const auto step = row.value("step", std::uint64_t{0});
    if (step == 0) first = row;
    if (step == steps) last = std::move(row);
  }
  if (first.is_null() || last.is_null()) return;
  std::printf("\nheld-out rows %26s %10s %10s\n", "before", "after", "change");
  for (const auto& [name, value] : last.items()) {
    if (!name.starts_with("eval/") || !value.is_number() || !first.contains(name) ||
        !first[name].is_number()) {
      continue;
    }
    const double before = first[name].get<double>(), after = value.get<double>();
    std::printf("  %-27s %10.4f %10.4f %+10.4f\n", name.c_str() + 5, before, after, after - before);
  }
}

}  // namespace troupe::app
