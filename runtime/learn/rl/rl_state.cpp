#include "runtime/learn/rl/rl_state.hpp"

#include "runtime/learn/state/state_numbers.hpp"
#include "runtime/store/atomic_folder.hpp"

namespace troupe::learn {
namespace {

constexpr const char* kRlState = "rl_state.json";

}  // namespace

core::Result<void> RlState::save(const std::filesystem::path& folder) const {
  const nlohmann::json state = {{"format", kStateFormat},           {"updates", updates},
                                {"scores", moments.count},          {"score_mean", moments.mean},
                                {"score_squares", moments.squares}, {"kl_coef", kl_coef},
                                {"score_trend", score_trend},       {"ptx_cursor", ptx_cursor}};
  return store::write_file(folder / kRlState, state.dump(2) + "\n");
}

core::Result<RlState> RlState::load(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(state,
                    read_numbers(folder / kRlState, {"format", "updates", "scores", "ptx_cursor"},
                                 {"score_mean", "score_squares", "kl_coef", "score_trend"}));
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
