#include "runtime/dialects/tools/tool_arguments.hpp"

#include "runtime/parse/bounded_json.hpp"
#include "runtime/parse/limits.hpp"

#include <string>
#include <utility>

namespace troupe::dialects {

std::optional<nlohmann::ordered_json> arguments_of(const nlohmann::ordered_json& given) {
  if (given.is_object()) return given;
  if (!given.is_string()) return std::nullopt;
  auto inner = parse::bounded_json<nlohmann::ordered_json>(
      given.get_ref<const std::string&>(),
      {.depth_max = static_cast<int>(parse::limits::kJsonDepth_max)});
  if (!inner || !inner->is_object()) return std::nullopt;
  return std::move(*inner);
}

}  // namespace troupe::dialects
