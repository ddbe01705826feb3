#include "runtime/learn/state/state_counts.hpp"

#include "runtime/learn/state/state_numbers.hpp"
#include "runtime/store/atomic_folder.hpp"

namespace troupe::learn {
namespace {

constexpr const char* kCounts = "trainer_state.json";

}  // namespace

// Only what differs from a fresh StateCounts is named besides the first four.
core::Result<void> write_counts(const std::filesystem::path& folder, const StateCounts& counts) {
  nlohmann::json state = {{"format", counts.ranks > 0 ? kDividedFormat : kStateFormat},
                          {"version", counts.version},
                          {"adam_steps", counts.adam_steps},
                          {"skipped_in_row", counts.skipped_in_row}};
  if (counts.lanes != 1) state["lanes"] = counts.lanes;
  if (counts.ranks > 0) state["ranks"] = counts.ranks;
  if (counts.base_crc) state["base_crc32c"] = *counts.base_crc;
  if (counts.optim != StateCounts().optim) state["optim"] = counts.optim;
  return store::write_file(folder / kCounts, state.dump(2) + "\n");
}

core::Result<StateCounts> read_counts(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kCounts;
  TROUPE_TRY_ASSIGN(state, read_numbers(path, {"format", "version", "adam_steps", "skipped_in_row"},
                                        {}, {kStateFormat, kDividedFormat}));
  StateCounts counts;
  counts.version = state["version"].get<core::Version>();
  counts.adam_steps = state["adam_steps"].get<std::int64_t>();
  counts.skipped_in_row = state["skipped_in_row"].get<std::int64_t>();
  const auto needs = [&](const char* key) {
    return core::fail(core::ErrorCode::kData,
                      path.string() + ": needs a whole number '" + key + "'");
  };
  if (state["format"] == kDividedFormat) {
    const auto ranks = state.find("ranks");
    if (ranks == state.end() || !ranks->is_number_unsigned() || *ranks == 0) return needs("ranks");
    counts.ranks = ranks->get<int>();
  }
  const auto lanes = state.find("lanes");
  if (lanes != state.end() && !lanes->is_number_unsigned()) return needs("lanes");
  if (lanes != state.end()) counts.lanes = lanes->get<std::int64_t>();
  counts.optim = state.value("optim", counts.optim);
  const auto crc = state.find("base_crc32c");
  if (crc != state.end() && crc->is_number_unsigned()) counts.base_crc = crc->get<std::uint32_t>();
  return counts;
}

}  // namespace troupe::learn
