#include "apps/session/run_files.hpp"

#include "actors/data/data_role.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::app {
namespace {

using nlohmann::ordered_json;

std::string line_of(const ordered_json& object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json scores_json(const actors::SampleScores& sample, const actors::RewardSet& set) {
  ordered_json scores = ordered_json::object();
  for (std::size_t m = 0; m < set.members.size(); ++m) {
    scores[set.members[m].name] = sample.components[m].value_or(0.0);  // committed: none is missing
  }
  return scores;
}

ordered_json extras_json(const actors::SampleScores& sample) {
  ordered_json extras = ordered_json::object();
  for (const actors::SampleExtra& extra : sample.extras.all())
    extras[extra.name] = ordered_json::parse(extra.json, nullptr, false);
  return extras;
}

ordered_json sample_json(std::uint64_t step,
                         const actors::CommittedGroup& committed,
                         std::size_t index) {
  const experience::Trajectory& sample = committed.group->samples[index];
  const actors::SampleScores& scores = committed.group->scores[index];
  const actors::RewardSet& set = *committed.group->rewards;
  ordered_json line = {{"step", step},
                       {"slot", committed.group->ticket.slot},
                       {"attempt", committed.group->ticket.attempt},
                       {"prompt_id", committed.prompt->row},
                       {"sample", index},
                       {"prompt", committed.prompt->text},
                       {"response", sample.text},
                       {"label", committed.prompt->label},
                       {"tokens", sample.tokens.size()},
                       {"reward", sample.score.value_or(0.0)},
                       {"reward_set", set.number},
                       {"rewards", scores_json(scores, set)},
                       {"finish_reason", experience::finish_name(sample.finish)},
                       {"truncated", sample.truncated()},
                       {"version_min", sample.versions.oldest()},
                       {"version_max", sample.versions.newest()}};
  if (!scores.extras.all().empty()) line["extra"] = extras_json(scores);
  return line;
}

ordered_json ledger_json(const actors::CommittedGroup& committed) {
  const actors::BookGroup& group = *committed.group;
  core::Version oldest = group.samples.front().versions.front(), newest = oldest;
  for (const experience::Trajectory& sample : group.samples) {
    oldest = std::min(oldest, sample.versions.oldest());
    newest = std::max(newest, sample.versions.newest());
  }
  ordered_json weights = ordered_json::object();
  for (const auto& member : group.rewards->members)
    weights[member.name] = member.weight;
  return {{"update", group.ticket.update},   {"slot", group.ticket.slot},
          {"attempt", group.ticket.attempt}, {"position", group.prompt},
          {"replaced", group.replaced},      {"prompt_id", committed.prompt->row},
          {"samples", group.samples.size()}, {"set", group.rewards->number},
          {"rewards", std::move(weights)},   {"version_min", oldest},
          {"version_max", newest},           {"outcome", "trained"}};
}

}  // namespace

core::Result<std::unique_ptr<RunFiles>> RunFiles::open(const store::RunFolder& folder) {
  TROUPE_TRY_ASSIGN(ledger, store::Ledger::open(folder.ledger_file()));
  return std::unique_ptr<RunFiles>(new RunFiles(folder, std::move(ledger)));
}

core::Result<void> RunFiles::commit(std::uint64_t update,
                                    std::uint64_t after_step,
                                    const std::vector<actors::CommittedGroup>& groups) {
  // A missing folder is not recreated; RunReporter ends the run for it after the update.
  if (!folder_.check_here()) return {};
  if (experience::is_evaluation(update)) {
    return commit_evaluation(experience::is_greedy(update), after_step, groups);
  }
  std::string lines;
  std::vector<std::string> records;
  for (const actors::CommittedGroup& committed : groups) {
    for (std::size_t i = 0; i < committed.group->samples.size(); ++i) {
      lines += line_of(sample_json(after_step, committed, i));
    }
    records.push_back(ledger_json(committed).dump());
  }
  // The ledger comes last: a commit that fails is made again, and its records must be there once.
  const auto file = folder_.rollouts_file(after_step);
  TROUPE_TRY(store::make_folder(file.parent_path()));
  TROUPE_TRY(store::replace_file(file, lines));
  TROUPE_TRY(ledger_.append(after_step, records));
  return ledger_.sync();
}

core::Result<void> RunFiles::commit_evaluation(bool greedy,
                                               std::uint64_t after_step,
                                               const std::vector<actors::CommittedGroup>& groups) {
  std::string lines;
  for (const actors::CommittedGroup& committed : groups) {
    ordered_json rewards = ordered_json::array();
    ordered_json responses = ordered_json::array();
    ordered_json reasons = ordered_json::array();
    ordered_json tokens = ordered_json::array();
    for (const experience::Trajectory& sample : committed.group->samples) {
      rewards.push_back(sample.score.value_or(0.0));
      responses.push_back(sample.text);
      reasons.push_back(experience::finish_name(sample.finish));
      tokens.push_back(sample.tokens.size());
    }
    ordered_json line = {{"step", after_step},
                         {"mode", greedy ? "greedy" : "sampled"},
                         {"prompt_id", committed.prompt->row},
                         {"prompt", committed.prompt->text},
                         {"label", committed.prompt->label},
                         {"rewards", std::move(rewards)},
                         {"responses", std::move(responses)},
                         {"finish_reasons", std::move(reasons)},
                         {"tokens", std::move(tokens)}};
    const auto columns = ordered_json::parse(committed.prompt->columns, nullptr, false);
    if (columns.is_object() && columns.contains("datasource")) {
      const auto& source = columns["datasource"];
      line["datasource"] = source.is_string() ? source.get<std::string>() : source.dump();
    }
    lines += line_of(line);
  }
  const auto file = folder_.eval_file(after_step);
  TROUPE_TRY(store::make_folder(file.parent_path()));
  // The greedy evaluation comes first and replaces the file; the sampled lines are appended.
  std::string before;
  if (!greedy) {
    TROUPE_TRY_SET(before, store::read_all(file));
  }
  return store::replace_file(file, before + lines);
}

}  // namespace troupe::app
