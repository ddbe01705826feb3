#include "actors/data/sample_extras.hpp"

#include "actors/protocol/limits.hpp"
#include "runtime/parse/written_numbers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace troupe::actors::data {
namespace {

using nlohmann::ordered_json;

std::optional<double> metric_of(const ordered_json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  const auto number = parse::number_in(value);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

}  // namespace

bool SampleExtras::has(std::string_view name) const {
  return std::any_of(extras_.begin(), extras_.end(),
                     [name](const SampleExtra& extra) { return extra.name == name; });
}

void SampleExtras::add(std::string_view reward, const std::string& object) {
  if (object.empty()) return;
  const ordered_json values = parse::written_json<ordered_json>(object);
  if (!values.is_object()) return;
  for (const auto& [key, value] : values.items()) {
    if (value.is_structured() || value.is_null()) continue;
    if (extras_.size() >= actors::limits::kRewardExtras_max) return;
    std::string name = has(key) ? std::string(reward) + "." + key : key;
    if (has(name)) continue;
    extras_.push_back({std::move(name), metric_of(value), parse::written_text(value)});
  }
}

}  // namespace troupe::actors::data
