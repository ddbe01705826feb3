#include "apps/bench/attach_check.hpp"

#include "apps/bench/score_server.hpp"
#include "runtime/store/ledger.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace troupe::app {
namespace {

using nlohmann::json;

// The newest set that holds for the update. A group that was issued again may have a later one: the
// first could have lost its reward.
bool fits(std::uint64_t set,
          std::uint64_t update,
          bool again,
          const std::map<std::uint64_t, std::uint64_t>& first_updates) {
  std::uint64_t due = 0;
  for (const auto& [number, first] : first_updates) {
    if (first <= update) due = number;
  }
  return set == due || (again && set > due);
}

core::Result<void> check_rollouts(const std::filesystem::path& file, SetCheck& check) {
  std::ifstream in(file);
  for (std::string text; std::getline(in, text);) {
    const json line = json::parse(text, nullptr, false);
    if (!line.is_object()) {
      return core::fail(core::ErrorCode::kData, file.string() + ": a line is no JSON");
    }
    const json rewards = line.value("rewards", json::object());
    for (const auto& [name, score] : rewards.items()) {
      if (!is_lab_reward(name)) continue;  // the run's own
      ++check.attached_scores;
      if (score != lab_score(name)) ++check.wrong_score;
    }
  }
  return {};
}

}  // namespace

std::map<std::uint64_t, std::uint64_t> printed_sets(const std::string& output) {
  std::map<std::uint64_t, std::uint64_t> sets;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto at = line.find("reward set ");
    unsigned long long set = 0, update = 0;
    if (at == line.npos) continue;
    if (std::sscanf(line.c_str() + at, "reward set %llu from update %llu", &set, &update) == 2) {
      sets[set] = update - 1;
    }
  }
  return sets;
}

core::Result<SetCheck> check_sets(const std::filesystem::path& run,
                                  const std::map<std::uint64_t, std::uint64_t>& first_updates) {
  SetCheck check;
  TROUPE_TRY_ASSIGN(records, store::read_ledger(run / "ledger.log"));
  for (const auto& record : records) {
    const json group = json::parse(record.text, nullptr, false);
    if (!group.is_object()) return core::fail(core::ErrorCode::kData, "a ledger record is no JSON");
    const auto samples = group.value("samples", std::uint64_t{0});
    const bool again = group.value("attempt", std::uint64_t{0}) > 0;
    if (!fits(group.value("set", std::uint64_t{0}), group.value("update", std::uint64_t{0}), again,
              first_updates)) {
      check.wrong_set += samples;
    }
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(run / "rollouts", error)) {
    TROUPE_TRY(check_rollouts(entry.path(), check));
  }
  return check;
}

}  // namespace troupe::app
