// The key that a misspelt name most likely means.
#include "runtime/config/config_table.hpp"
#include "runtime/core/edit_distance.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::config {
namespace {

std::string_view leaf(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

}  // namespace

std::string nearest_config_name(std::string_view name) {
  std::string_view best;
  std::size_t best_cost = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const ConfigRow& row : config_table()) {
    std::size_t cost = core::edit_distance(name, row.name);
    // `lr` or `actor.lr` for `actor.adam.lr`: the last word is right, the path is not.
    if (leaf(name) == leaf(row.name)) {
      const bool same_section = name.substr(0, name.find('.')) == row.section();
      cost = std::min<std::size_t>(cost, same_section ? 1 : 2);
    }
    if (cost < best_cost) {
      best_cost = cost;
      best = row.name;
    }
  }
  return std::string(best);
}

}  // namespace troupe::config
