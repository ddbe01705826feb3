#include "apps/bench/ledger_check.hpp"

#include "actors/formula/reward_formula.hpp"
#include "runtime/parse/written_numbers.hpp"
#include "runtime/store/ledger.hpp"
#include "runtime/store/run_folder.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::bench {
namespace {

using nlohmann::json;

struct GroupRecord {
  std::uint64_t update = 0, slot = 0, step = 0, samples = 0, set = 0;
  std::vector<std::uint64_t> positions;  // of the group and of those it replaced
  json rewards;                          // weight by name; null in ledgers of older programs
  std::string formula;                   // of the rewards; "": their weighted sum
};

core::Result<std::vector<GroupRecord>> read_groups(const std::filesystem::path& file) {
  TROUPE_TRY_ASSIGN(records, store::read_ledger(file));
  std::vector<GroupRecord> groups;
  for (std::size_t line = 0; line < records.size(); ++line) {
    const json record = json::parse(records[line].text, nullptr, false);
    GroupRecord group;
    try {
      group.update = record.at("update").get<std::uint64_t>();
      group.slot = record.at("slot").get<std::uint64_t>();
      group.samples = record.at("samples").get<std::uint64_t>();
      group.positions = record.value("replaced", std::vector<std::uint64_t>{});
      group.positions.push_back(record.at("position").get<std::uint64_t>());
      group.set = record.value("set", std::uint64_t{0});
      group.rewards = record.value("rewards", json());
      group.formula = record.value("formula", "");
    } catch (const json::exception& thrown) {
      return core::fail(core::ErrorCode::kData,
                        file.string() + ":" + std::to_string(line + 1) +
                            ": not the record of a group: " + thrown.what());
    }
    group.step = records[line].step;
    groups.push_back(std::move(group));
  }
  return groups;
}

// Checks every slot of each update between the first and the last. The highest slot of any record
// says how many slots an update has.
void check_slots(const std::vector<GroupRecord>& groups, LedgerCheck& check) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> records;
  std::uint64_t slots = 0;
  for (const GroupRecord& group : groups) {
    if (++records[{group.update, group.slot}] > 1) ++check.doubled_groups;
    slots = std::max(slots, group.slot + 1);
  }
  if (records.empty()) return;
  const std::uint64_t first = records.begin()->first.first, last = records.rbegin()->first.first;
  check.updates = last - first + 1;
  check.lost_groups = check.updates * slots - records.size();
}

void check_prompts(const std::vector<GroupRecord>& groups, LedgerCheck& check) {
  std::set<std::uint64_t> taken;
  bool from_start = false;
  for (const GroupRecord& group : groups) {
    from_start = from_start || group.update == 0;
    for (const std::uint64_t position : group.positions) {
      if (!taken.insert(position).second) ++check.doubled_prompts;
    }
  }
  if (taken.empty()) return;
  const std::uint64_t first = from_start ? 0 : *taken.begin();
  check.lost_prompts = *taken.rbegin() - first + 1 - taken.size();
}

void check_sets(const std::vector<GroupRecord>& groups, LedgerCheck& check) {
  std::map<std::uint64_t, std::set<std::string>> meanings;
  for (const GroupRecord& group : groups) {
    check.samples_by_set[group.set] += group.samples;
    if (!group.rewards.is_null()) meanings[group.set].insert(group.rewards.dump() + group.formula);
  }
  for (const auto& [set, seen] : meanings)
    check.unclear_sets += seen.size() > 1 ? 1 : 0;
}

// True when the line's reward is the formula of its scores.
bool by_formula(const json& line, const GroupRecord& group) {
  const auto formula = actors::formula::RewardFormula::parse(group.formula);
  if (!formula) return false;
  std::vector<actors::RewardMember> members;
  std::vector<std::optional<double>> scores;
  for (const auto& [name, weight] : group.rewards.items()) {
    const json score = line["rewards"].value(name, json());
    if (!weight.is_number()) return false;
    members.push_back({name, "", weight.get<double>()});
    scores.push_back(score.is_number() ? std::optional(score.get<double>()) : std::nullopt);
  }
  const auto value =
      formula->value(members, scores, parse::written_text(line.value("row", json::object())));
  const double total = line["reward"].get<double>();
  // Names are sorted here, so the order of `rest` may differ from the run's.
  return value && std::abs(*value - total) <= 1e-9 * std::max(1.0, std::abs(total));
}

// True when the line names the record's set and rewards, and its reward is their weighted sum, or
// what the formula makes of them.
bool scored_by(const json& line, const GroupRecord& group) {
  if (group.rewards.is_null()) return true;
  const json scores = line.value("rewards", json());
  const json total = line.value("reward", json());
  if (line.value("reward_set", json()) != group.set || !scores.is_object() ||
      scores.size() != group.rewards.size() || !total.is_number()) {
    return false;
  }
  if (!group.formula.empty()) return by_formula(line, group);
  double sum = 0, size = 0;
  for (const auto& [name, weight] : group.rewards.items()) {
    if (!weight.is_number() || !scores.contains(name) || !scores[name].is_number()) return false;
    const double part = weight.get<double>() * scores[name].get<double>();
    sum += part;
    size += std::abs(part);
  }
  // Names are sorted here, so the order of the sum may differ from the run's.
  return std::abs(sum - total.get<double>()) <= 1e-12 * std::max(1.0, size);
}

std::filesystem::path rollouts_file(const std::filesystem::path& folder, std::uint64_t step) {
  return folder / "rollouts" / (store::step_name(step) + ".jsonl");
}

// Compares one rollout file with `records`, the ledger's records of its step, by slot.
core::Result<void> check_rollouts(const std::filesystem::path& file,
                                  const std::map<std::uint64_t, const GroupRecord*>& records,
                                  LedgerCheck& check) {
  std::map<std::uint64_t, std::uint64_t> lines_of;  // by slot
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::ifstream in(file);
  std::uint64_t number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    const json line = parse::written_json<json>(text);
    if (!line.is_object() || !line.value("slot", json()).is_number_unsigned() ||
        !line.value("sample", json()).is_number_unsigned()) {
      return core::fail(core::ErrorCode::kData,
                        file.string() + ":" + std::to_string(number) + ": not a rollout");
    }
    const auto slot = line["slot"].get<std::uint64_t>();
    const auto group = records.find(slot);
    const bool fresh = seen.insert({slot, line["sample"].get<std::uint64_t>()}).second;
    if (!fresh || group == records.end()) {
      ++check.doubled_samples;
      continue;
    }
    ++lines_of[slot];
    if (!scored_by(line, *group->second)) ++check.wrong_scores;
  }
  for (const auto& [slot, group] : records) {
    const std::uint64_t lines = lines_of[slot];
    if (lines < group->samples) check.lost_samples += group->samples - lines;
    if (lines > group->samples) check.doubled_samples += lines - group->samples;
  }
  return {};
}

}  // namespace

core::Result<LedgerCheck> check_ledger(const std::filesystem::path& folder) {
  TROUPE_TRY_ASSIGN(groups, read_groups(folder / "ledger.log"));
  LedgerCheck check;
  check.groups = groups.size();
  std::map<std::uint64_t, std::map<std::uint64_t, const GroupRecord*>> steps;
  for (const GroupRecord& group : groups) {
    check.samples += group.samples;
    steps[group.step].emplace(group.slot, &group);
  }
  check_slots(groups, check);
  check_prompts(groups, check);
  check_sets(groups, check);
  for (const auto& [step, records] : steps)
    TROUPE_TRY(check_rollouts(rollouts_file(folder, step), records, check));
  return check;
}

}  // namespace troupe::bench
