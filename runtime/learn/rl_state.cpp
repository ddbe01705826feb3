#include "runtime/learn/rl_state.hpp"

#include "runtime/store/atomic_folder.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>
#include <string>

namespace troupe::learn {
namespace {

using core::ErrorCode;
using nlohmann::json;

constexpr int kFormat = 1;
constexpr const char* kStateFile = "rl_state.json";

}  // namespace

core::Result<void> RlState::save(const std::filesystem::path& folder) const {
  const json state = {{"format", kFormat},
                      {"updates", updates},
                      {"scores", moments.count},
                      {"score_mean", moments.mean},
                      {"score_squares", moments.squares},
                      {"kl_coef", kl_coef},
                      {"score_trend", score_trend},
                      {"ptx_cursor", ptx_cursor}};
  return store::write_file(folder / kStateFile, state.dump(2) + "\n");
}

core::Result<RlState> RlState::load(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kStateFile;
  std::ifstream in(path);
  if (!in) return core::fail(ErrorCode::kNotFound, "no file " + path.string());
  std::stringstream text;
  text << in.rdbuf();
  const json state = json::parse(text.str(), nullptr, false);
  const auto bad = [&](const std::string& why) {
    return core::fail(ErrorCode::kData, path.string() + ": " + why);
  };
  if (!state.is_object()) return bad("not a JSON object");
  for (const char* key : {"format", "updates", "scores", "ptx_cursor"}) {
    const auto found = state.find(key);
    if (found == state.end() || !found->is_number_unsigned()) {
      return bad(std::string("needs a whole number '") + key + "'");
    }
  }
  for (const char* key : {"score_mean", "score_squares", "kl_coef", "score_trend"}) {
    const auto found = state.find(key);
    if (found == state.end() || !found->is_number()) {
      return bad(std::string("needs a number '") + key + "'");
    }
  }
  if (state["format"] != kFormat) {
    return bad("has format " + state["format"].dump() + ", this program reads " +
               std::to_string(kFormat));
  }
  RlState result;
  result.updates = state["updates"].get<std::uint64_t>();
  result.moments = {state["scores"].get<std::uint64_t>(), state["score_mean"].get<double>(),
                    state["score_squares"].get<double>()};
  result.kl_coef = state["kl_coef"].get<double>();
  result.score_trend = state["score_trend"].get<double>();
  result.ptx_cursor = state["ptx_cursor"].get<std::uint64_t>();
  return result;
}

}  // namespace troupe::learn
