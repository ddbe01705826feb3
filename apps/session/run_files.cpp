#include "apps/session/run_files.hpp"

#include "actors/data/data_role.hpp"
#include "runtime/experience/episodes.hpp"
#include "runtime/parse/written_numbers.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::session {
namespace {

using nlohmann::ordered_json;

// Bytes that are no UTF-8 become U+FFFD.
std::string text_of(const ordered_json& value) {
  return parse::written_text(value);
}

std::string line_of(const ordered_json& object) {
  return text_of(object) + "\n";
}

// Appends an object field by field, without a tree of its values.
class ObjectText {
 public:
  explicit ObjectText(std::string& out) : out_(out) { out_ += '{'; }

  // `value`: JSON.
  void add(std::string_view key, std::string_view value) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += '"';
    out_ += key;
    out_ += "\":";
    out_ += value;
  }
  void number(std::string_view key, std::uint64_t value) { add(key, std::to_string(value)); }
  void end() { out_ += '}'; }

 private:
  std::string& out_;
  bool first_ = true;
};

// What the lines of all samples of a group have.
struct GroupTexts {
  std::string prompt, label;
  std::vector<std::string> rewards;  // names

  explicit GroupTexts(const actors::data::CommittedGroup& committed)
      : prompt(text_of(committed.prompt->text)), label(text_of(committed.prompt->label)) {
    for (const auto& member : committed.group->rewards->members)
      rewards.push_back(text_of(member.name) + ":");
  }
};

std::string scores_text(const actors::data::SampleScores& sample, const GroupTexts& texts) {
  std::string scores = "{";
  for (std::size_t m = 0; m < texts.rewards.size(); ++m) {
    if (m > 0) scores += ',';
    // Committed: only one that the formula does not need may be missing.
    const auto& score = sample.components[m];
    scores += texts.rewards[m] + (score ? text_of(*score) : "null");
  }
  return scores + "}";
}

std::string extras_text(const actors::data::SampleScores& sample) {
  ordered_json extras = ordered_json::object();
  for (const actors::data::SampleExtra& extra : sample.extras.all())
    extras[extra.name] = parse::written_json<ordered_json>(extra.json);
  return text_of(extras);
}

// [[token, reward], ...]
std::string steps_text(const experience::Trajectory& sample) {
  ordered_json steps = ordered_json::array();
  for (const experience::StepReward& step : sample.steps)
    steps.push_back({step.token, step.reward});
  return text_of(steps);
}

// [[context, drawn], ...]: how many tokens of a turn the policy did not draw, then how many it
// drew.
std::string turns_text(const experience::Trajectory& sample) {
  ordered_json turns = ordered_json::array();
  for (std::size_t i = 0; i < sample.turns.size(); ++i) {
    const std::size_t end =
        i + 1 < sample.turns.size() ? sample.turns[i + 1].begin : sample.tokens.size();
    turns.push_back({sample.turns[i].context.size(), end - sample.turns[i].begin});
  }
  return text_of(turns);
}

void add_sample(std::string& lines,
                std::uint64_t step,
                const actors::data::CommittedGroup& committed,
                const GroupTexts& texts,
                std::size_t index) {
  const experience::Trajectory& sample = committed.group->samples[index];
  const actors::data::SampleScores& scores = committed.group->scores[index];
  ObjectText line(lines);
  line.number("step", step);
  line.number("slot", committed.group->ticket.slot);
  line.number("attempt", committed.group->ticket.attempt);
  line.number("prompt_id", committed.prompt->row);
  line.number("sample", index);
  line.add("prompt", texts.prompt);
  line.add("response", text_of(sample.text));
  line.add("label", texts.label);
  line.number("tokens", sample.tokens.size());
  if (!sample.turns.empty()) line.add("turns", turns_text(sample));
  if (sample.episode != 0) line.number("episode", sample.episode);
  if (sample.shares)
    line.add("shares", text_of(ordered_json{sample.shares->sample, sample.shares->tokens}));
  line.add("reward", text_of(experience::sample_total(committed.group->samples, index)));
  line.number("reward_set", committed.group->rewards->number);
  line.add("rewards", scores_text(scores, texts));
  if (!committed.group->row.empty()) line.add("row", committed.group->row);
  line.add("finish_reason", text_of(experience::finish_name(sample.finish)));
  line.add("truncated", sample.truncated() ? "true" : "false");
  line.number("version_min", sample.versions.oldest());
  line.number("version_max", sample.versions.newest());
  if (!scores.extras.all().empty()) line.add("extra", extras_text(scores));
  if (!sample.steps.empty()) line.add("steps", steps_text(sample));
  line.end();
  lines += '\n';
}

ordered_json ledger_json(const actors::data::CommittedGroup& committed) {
  const actors::data::BookGroup& group = *committed.group;
  core::Version oldest = group.samples.front().versions.front(), newest = oldest;
  for (const experience::Trajectory& sample : group.samples) {
    oldest = std::min(oldest, sample.versions.oldest());
    newest = std::max(newest, sample.versions.newest());
  }
  ordered_json weights = ordered_json::object();
  for (const auto& member : group.rewards->members)
    weights[member.name] = member.weight;
  ordered_json record = {{"update", group.ticket.update},   {"slot", group.ticket.slot},
                         {"attempt", group.ticket.attempt}, {"position", group.prompt},
                         {"replaced", group.replaced},      {"prompt_id", committed.prompt->row},
                         {"samples", group.samples.size()}, {"set", group.rewards->number},
                         {"rewards", std::move(weights)},   {"version_min", oldest},
                         {"version_max", newest},           {"outcome", "trained"}};
  if (!group.rewards->formula.empty()) record["formula"] = group.rewards->formula;
  return record;
}

}  // namespace

core::Result<std::unique_ptr<RunFiles>> RunFiles::open(const store::RunFolder& folder,
                                                       std::string source_key) {
  // What a head that was killed was about to replace.
  for (const std::filesystem::path& file : {folder.rollouts_file(0), folder.eval_file(0)})
    TROUPE_TRY(store::remove_leftovers(file.parent_path()));
  TROUPE_TRY_ASSIGN(ledger, store::Ledger::open(folder.ledger_file()));
  return std::unique_ptr<RunFiles>(new RunFiles(folder, std::move(ledger), std::move(source_key)));
}

core::Result<void> RunFiles::commit(std::uint64_t update,
                                    std::uint64_t after_step,
                                    const std::vector<actors::data::CommittedGroup>& groups) {
  // A missing folder is not recreated; RunReporter ends the run for it after the update.
  if (!folder_.check_here()) return {};
  if (experience::is_evaluation(update)) {
    return commit_evaluation(experience::is_greedy(update), after_step, groups);
  }
  std::string lines;
  std::vector<std::string> records;
  for (const actors::data::CommittedGroup& committed : groups) {
    const GroupTexts texts(committed);
    for (std::size_t i = 0; i < committed.group->samples.size(); ++i)
      add_sample(lines, after_step, committed, texts, i);
    records.push_back(ledger_json(committed).dump());
  }
  // The ledger comes last: a commit that fails is made again, and its records must be there once.
  TROUPE_TRY(folder_.kept()->put(folder_.rollouts_file(after_step), lines));
  TROUPE_TRY_ASSIGN(mended, ledger_.mend());
  if (mended && note_) note_(*mended);
  TROUPE_TRY(ledger_.append(after_step, records));
  return ledger_.sync();
}

core::Result<void> RunFiles::commit_evaluation(
    bool greedy,
    std::uint64_t after_step,
    const std::vector<actors::data::CommittedGroup>& groups) {
  std::string lines;
  for (const actors::data::CommittedGroup& committed : groups) {
    ordered_json rewards = ordered_json::array();
    ordered_json responses = ordered_json::array();
    ordered_json reasons = ordered_json::array();
    ordered_json tokens = ordered_json::array();
    const auto& samples = committed.group->samples;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const experience::Trajectory& sample = samples[i];
      rewards.push_back(experience::sample_total(samples, i));
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
    if (!committed.prompt->set.empty()) line["set"] = committed.prompt->set;
    const auto columns = parse::written_json<ordered_json>(committed.prompt->columns);
    if (columns.is_object() && columns.contains(source_key_)) {
      const auto& source = columns[source_key_];
      line["datasource"] = source.is_string() ? source.get<std::string>() : text_of(source);
    }
    lines += line_of(line);
  }
  const auto file = folder_.eval_file(after_step);
  // The greedy evaluation comes first and replaces the file; the sampled lines are appended.
  std::string before;
  if (!greedy) {
    TROUPE_TRY_SET(before, store::read_all(file));
  }
  return folder_.kept()->put(file, before + lines);
}

}  // namespace troupe::session
