#include "actors/data/sample_extras.hpp"

#include "actors/limits.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace troupe::actors {
namespace {

using nlohmann::ordered_json;

std::optional<double> number_in(const ordered_json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (!value.is_number() || !std::isfinite(value.get<double>())) return std::nullopt;
  return value.get<double>();
}

}  // namespace

bool SampleExtras::has(std::string_view name) const {
  return std::any_of(extras_.begin(), extras_.end(),
                     [name](const SampleExtra& extra) { return extra.name == name; });
}

void SampleExtras::add(std::string_view reward, const std::string& object) {
  if (object.empty()) return;
  const ordered_json values = ordered_json::parse(object, nullptr, false);
  if (!values.is_object()) return;
  for (const auto& [key, value] : values.items()) {
    if (value.is_structured() || value.is_null()) continue;
    if (extras_.size() >= limits::kRewardExtras_max) return;
    std::string name = has(key) ? std::string(reward) + "." + key : key;
    if (has(name)) continue;
    extras_.push_back({std::move(name), number_in(value),
                       value.dump(-1, ' ', false, ordered_json::error_handler_t::replace)});
  }
}

}  // namespace troupe::actors
