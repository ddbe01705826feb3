#include "runtime/learn/state/state_numbers.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace troupe::learn {

using nlohmann::json;

core::Result<json> read_numbers(const std::filesystem::path& path,
                                std::initializer_list<const char*> whole,
                                std::initializer_list<const char*> other,
                                std::initializer_list<int> formats) {
  std::ifstream in(path);
  if (!in) return core::fail(ErrorCode::kNotFound, "no file " + path.string());
  std::stringstream text;
  text << in.rdbuf();
  const auto bad = [&](const std::string& why) {
    return core::fail(ErrorCode::kData, path.string() + ": " + why);
  };
  const json state = json::parse(text.str(), nullptr, false);
  if (!state.is_object()) return bad("not a JSON object");
  for (const char* key : whole) {
    const auto found = state.find(key);
    if (found == state.end() || !found->is_number_unsigned())
      return bad(std::string("needs a whole number '") + key + "'");
  }
  for (const char* key : other) {
    const auto found = state.find(key);
    if (found == state.end() || !found->is_number())
      return bad(std::string("needs a number '") + key + "'");
  }
  const bool known = std::any_of(formats.begin(), formats.end(),
                                 [&](int format) { return state["format"] == format; });
  if (known) return state;
  return bad("has format " + state["format"].dump() + ", this program reads up to " +
             std::to_string(std::max(formats)));
}

}  // namespace troupe::learn
