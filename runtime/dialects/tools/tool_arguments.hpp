// The arguments of a call, which are an object or, as OpenAI writes them, a text that holds one. A
// pure function; any thread. Bound: kJsonDepth_max.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>

namespace troupe::dialects {

// The object; nothing if `given` is and holds none.
std::optional<nlohmann::ordered_json> arguments_of(const nlohmann::ordered_json& given);

}  // namespace troupe::dialects
