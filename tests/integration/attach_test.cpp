// Rewards come and go while a real run goes on, in processes of their own, one of which is killed:
// nothing is lost, nothing counted twice, every sample scored by the set of its ticket. The program
// counts; this test reads ledger and rollouts for itself, too.
#include "exact_support.hpp"

#include <cmath>
#include <fstream>
#include <map>
#include <set>

namespace troupe::test {
namespace {

using nlohmann::json;
using Place = std::pair<std::uint64_t, std::uint64_t>;  // step and slot, from 1 and 0

// A ledger line is a checksum, a step and a record.
std::map<Place, json> ledger_of(const std::filesystem::path& run, std::uint64_t& records) {
  std::map<Place, json> groups;
  std::ifstream in(run / "ledger.log");
  for (std::string line; std::getline(in, line); ++records) {
    const auto brace = line.find('{');
    const json record =
        brace == line.npos ? json() : json::parse(line.substr(brace), nullptr, false);
    EXPECT_TRUE(record.is_object()) << line;
    if (!record.is_object()) continue;
    groups[{record.value("update", 0ull) + 1, record.value("slot", 0ull)}] = record;
  }
  return groups;
}

struct Rollouts {
  std::map<Place, std::uint64_t> samples;
  std::uint64_t by_attached = 0;  // scores of attached rewards
  std::uint64_t other_set = 0, other_rewards = 0, other_score = 0, other_sum = 0;
};

void read_sample(const json& line, const json& group, Rollouts& seen) {
  if (line["reward_set"] != group["set"]) ++seen.other_set;
  double sum = 0;
  std::set<std::string> names, wanted;
  for (const auto& [name, weight] : group["rewards"].items()) {
    wanted.insert(name);
    sum += weight.get<double>() * line["rewards"].value(name, 0.0);
  }
  for (const auto& [name, score] : line["rewards"].items()) {
    names.insert(name);
    if (!name.starts_with("lab-")) continue;
    ++seen.by_attached;
    if (score != 1 + 0.5 * std::stod(name.substr(4))) ++seen.other_score;
  }
  if (names != wanted) ++seen.other_rewards;
  if (std::abs(sum - line["reward"].get<double>()) > 1e-9) ++seen.other_sum;
}

Rollouts rollouts_of(const std::filesystem::path& run, const std::map<Place, json>& ledger) {
  Rollouts seen;
  for (const auto& entry : std::filesystem::directory_iterator(run / "rollouts")) {
    std::ifstream in(entry.path());
    for (std::string text; std::getline(in, text);) {
      const json line = json::parse(text, nullptr, false);
      const Place place{line.value("step", 0ull), line.value("slot", 0ull)};
      ++seen.samples[place];
      const auto group = ledger.find(place);
      EXPECT_NE(group, ledger.end()) << text;
      if (group != ledger.end()) read_sample(line, group->second, seen);
    }
  }
  return seen;
}

}  // namespace

TEST(Attach, RewardsThatComeAndGoLoseAndDoubleNothing) {
  const ScratchFolder folder;
  const std::string keep = folder / "bench";
  const ProgramRun bench =
      run_troupe({"bench", "attach", "--cycles", "6", "--keep", keep, "--limit-s", "15", "--json"});
  ASSERT_EQ(bench.status, 0) << bench.output;
  ASSERT_TRUE(bench.line.is_object()) << bench.output;
  EXPECT_EQ(bench.line["cycles"], 6);
  EXPECT_GE(bench.line["kills"], 1);
  EXPECT_GE(bench.line["reweights"], 1);
  EXPECT_EQ(bench.line["kills"].get<int>() + bench.line["detaches"].get<int>(), 6);
  for (const char* none : {"lost", "doubled", "wrong_set"})
    EXPECT_EQ(bench.line[none], 0) << none;
  // Every attach, re-weight and end is a set of its own.
  EXPECT_EQ(bench.line["set_changes"].get<int>(), 12 + bench.line["reweights"].get<int>());

  const std::filesystem::path run = std::filesystem::path(keep) / "run";
  std::uint64_t records = 0;
  const auto ledger = ledger_of(run, records);
  EXPECT_EQ(ledger.size(), records) << "a group stands in the ledger twice";
  EXPECT_EQ(ledger.size(), bench.line["updates"].get<std::size_t>() * 4);
  const Rollouts seen = rollouts_of(run, ledger);
  EXPECT_EQ(seen.samples.size(), ledger.size());
  for (const auto& [place, count] : seen.samples)
    EXPECT_EQ(count, 4u) << place.first;
  EXPECT_GT(seen.by_attached, 0u);
  EXPECT_EQ(seen.by_attached, bench.line["attached_scores"].get<std::uint64_t>());
  EXPECT_EQ(seen.other_set, 0u);
  EXPECT_EQ(seen.other_rewards, 0u);
  EXPECT_EQ(seen.other_score, 0u);
  EXPECT_EQ(seen.other_sum, 0u);
}

}  // namespace troupe::test
