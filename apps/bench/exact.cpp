#include "apps/bench/exact.hpp"

#include "apps/bench/exact_engine.hpp"
#include "apps/bench/exact_soak.hpp"
#include "apps/bench/exact_trainer.hpp"
#include "apps/bench/own_process.hpp"
#include "apps/cli/flags.hpp"
#include "kernels/ops.hpp"
#include "runtime/model/spec.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

namespace troupe::app {
namespace {

using core::ErrorCode;
using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr double kTokens_max = 1e7;

struct ExactFlags {
  std::string model, file, trainer_isa;
  std::int64_t tokens = 5000, seed = 1, soak_s = 0;
  bool json = false, plant_ulp = false;
};

// A folder of our own under the system's temporary folder, removed at the end.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  static core::Result<std::unique_ptr<TemporaryFolder>> create() {
    std::error_code error;
    std::string pattern =
        (std::filesystem::temp_directory_path(error) / "troupe-exact-XXXXXX").string();
    if (error || ::mkdtemp(pattern.data()) == nullptr) {
      return core::fail(ErrorCode::kResources,
                        "cannot make a temporary folder; name a file with --file");
    }
    return std::make_unique<TemporaryFolder>(pattern);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// ---- the second process ----

core::Result<void> trainer_process(Words words) {
  std::string side, model, file;
  std::int64_t seed = 1;
  TrainerSideSettings settings;
  TROUPE_TRY_ASSIGN(outcome,
                    parse_flags("troupe bench exact: the trainer's side, started by the engine's",
                                {{"--side", &side, "trainer", true},
                                 {"--model", &model, "model folder", true},
                                 {"--file", &file, "transcript of the engine's side", true},
                                 {"--seed", &seed, "of the order", false, 0, 1e18},
                                 {"--plant-ulp", &settings.plant_ulp, "move one weight"}},
                                words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  if (side != "trainer") {
    return core::fail(ErrorCode::kConfig, "--side is '" + side + "'; the only one is trainer");
  }
  settings.model = model;
  settings.transcript = file;
  settings.seed = static_cast<std::uint64_t>(seed);
  TROUPE_TRY_ASSIGN(result, run_trainer_side(settings));
  ordered_json line = {{"tokens", result.difference.tokens},
                       {"differing_bits", result.difference.differing_bits},
                       {"differing_tokens", result.difference.differing_tokens},
                       {"absolute_max", result.difference.absolute_max},
                       {"micro_batches", result.micro_batches},
                       {"rows", {result.rows_min, result.rows_max}},
                       {"grad_norm", result.grad_norm},
                       {"isa", kernels::ops().name}};
  if (!result.planted.empty()) line["planted"] = result.planted;
  std::printf("%s\n", line.dump().c_str());
  return {};
}

core::Result<ordered_json> run_second_process(const ExactFlags& flags,
                                              const std::filesystem::path& file) {
  std::vector<std::string> words = {
      "bench",     "exact",  "--side",      "trainer", "--model",
      flags.model, "--file", file.string(), "--seed",  std::to_string(flags.seed)};
  if (flags.plant_ulp) words.push_back("--plant-ulp");
  std::vector<std::string> environment;
  if (!flags.trainer_isa.empty()) environment.push_back("TROUPE_ISA=" + flags.trainer_isa);
  TROUPE_TRY_ASSIGN(text, run_own_process(words, environment));
  ordered_json line = ordered_json::parse(text, nullptr, false);
  for (const char* key : {"tokens", "differing_bits"}) {
    if (!line.is_object() || !line.contains(key) || !line[key].is_number_integer()) {
      return core::fail(ErrorCode::kInternal, "the trainer's side answered '" + text + "'");
    }
  }
  return line;
}

// ---- the report ----

ordered_json range_json(const Coverage::Range& range) {
  return ordered_json::array({range.min, range.max});
}

// What really happened in this run and changed no bit.
std::vector<std::string> covers(const Coverage& seen) {
  std::vector<std::string> names;
  const auto add = [&](const char* name, bool happened) {
    if (happened) names.push_back(name);
  };
  add("batch", seen.batch.max > seen.batch.min);
  add("chunked_prefill", seen.chunked_prompts > 0);
  add("threads", seen.threads.max > seen.threads.min);
  add("preemption", seen.preempted > 0);
  add("prefix_hits", seen.prefix_hit_tokens > 0);
  add("eviction", seen.evicted_blocks > 0);
  for (const auto& [name, count] : seen.events)
    add(name.c_str(), count > 0);
  return names;
}

ordered_json coverage_json(const EngineSide& side) {
  const Coverage& seen = side.coverage;
  std::int64_t samples = 0;
  for (const TranscriptGroup& group : side.transcript.groups)
    samples += std::ssize(group.samples);
  ordered_json temperatures = ordered_json::array();
  for (const float temperature : seen.temperatures)
    temperatures.push_back(std::round(1000.0 * static_cast<double>(temperature)) / 1000.0);
  return {{"rounds", side.rounds},
          {"steps", seen.steps},
          {"groups", side.transcript.groups.size()},
          {"samples", samples},
          {"batch", range_json(seen.batch)},
          {"step_tokens", range_json(seen.step_tokens)},
          {"threads", range_json(seen.threads)},
          {"samples_per_group", range_json(seen.samples_per_group)},
          {"prompt_tokens", range_json(seen.prompt_tokens)},
          {"response_tokens", range_json(seen.response_tokens)},
          {"temperatures", temperatures},
          {"preempted", seen.preempted},
          {"chunked_prompts", seen.chunked_prompts},
          {"prefix_hit_tokens", seen.prefix_hit_tokens},
          {"evicted_blocks", seen.evicted_blocks},
          {"events", seen.events},
          {"covers", covers(seen)},
          {"isa", kernels::ops().name}};
}

void print(const ordered_json& line, bool as_json) {
  if (as_json) {
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf(
      "%s tokens: %s bits differ between engine and trainer, %s between engine and scorer\n",
      line["tokens"].dump().c_str(), line["differing_bits"].dump().c_str(),
      line["scorer_differing_bits"].dump().c_str());
  std::printf("  engine   %s\n", line["engine"].dump().c_str());
  std::printf("  trainer  %s\n", line["trainer"].dump().c_str());
}

core::Result<void> report(const ExactFlags& flags,
                          const EngineSide& side,
                          ordered_json trainer,
                          double trainer_s) {
  const auto differing = trainer["differing_bits"].get<std::int64_t>();
  const auto compared = trainer["tokens"].get<std::int64_t>();
  print({{"bench", "exact"},
         {"model", flags.model},
         {"tokens", side.transcript.tokens()},
         {"differing_bits", differing},
         {"scorer_differing_bits", side.scorer.differing_bits},
         {"engine", coverage_json(side)},
         {"trainer", std::move(trainer)},
         {"engine_s", side.engine_s},
         {"scorer_s", side.scorer_s},
         {"trainer_s", trainer_s}},
        flags.json);
  if (compared != flags.tokens || side.scorer.tokens != compared) {
    return core::fail(ErrorCode::kInternal, "exact: the sides did not compare the same tokens");
  }
  const std::int64_t total = differing + side.scorer.differing_bits;
  if (total == 0) return {};
  return core::fail(ErrorCode::kNumeric, "exact: " + std::to_string(total) +
                                             " bits differ in the log-probs of " +
                                             std::to_string(compared) + " tokens");
}

core::Result<void> compare_sides(const ExactFlags& flags) {
  std::unique_ptr<TemporaryFolder> folder;
  std::filesystem::path file = flags.file;
  if (file.empty()) {
    TROUPE_TRY_SET(folder, TemporaryFolder::create());
    file = folder->path() / "transcript.bin";
  }
  TROUPE_TRY_ASSIGN(
      side, run_engine_side(flags.model, flags.tokens, static_cast<std::uint64_t>(flags.seed)));
  TROUPE_TRY(write_transcript(file, side.transcript));
  const Clock::time_point start = Clock::now();
  TROUPE_TRY_ASSIGN(trainer, run_second_process(flags, file));
  const double trainer_s = std::chrono::duration<double>(Clock::now() - start).count();
  return report(flags, side, std::move(trainer), trainer_s);
}

core::Result<void> soak(const ExactFlags& flags) {
  TROUPE_TRY_ASSIGN(seen, run_soak(flags.model, static_cast<double>(flags.soak_s),
                                   static_cast<std::uint64_t>(flags.seed)));
  const ordered_json line = {{"bench", "exact"},
                             {"model", flags.model},
                             {"soak_s", seen.seconds},
                             {"steps", seen.steps},
                             {"groups", seen.groups},
                             {"samples", seen.samples},
                             {"tokens", seen.tokens},
                             {"aborted_samples", seen.aborted_samples},
                             {"refused_groups", seen.refused_groups},
                             {"preempted", seen.preempted},
                             {"prefix_hit_tokens", seen.prefix_hit_tokens},
                             {"evicted_blocks", seen.evicted_blocks},
                             {"events", seen.events},
                             {"differing_samples", seen.differing_samples},
                             {"leaked_blocks", seen.leaked_blocks},
                             {"pss_start_mb", seen.pss_start_mb},
                             {"pss_end_mb", seen.pss_end_mb},
                             {"pss_max_mb", seen.pss_max_mb},
                             {"isa", kernels::ops().name}};
  std::printf("%s\n", line.dump(flags.json ? -1 : 2).c_str());
  return seen.verdict();
}

}  // namespace

core::Result<void> bench_exact(Words words) {
  const bool second = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "--side" || word.starts_with("--side=");
  });
  if (second) return trainer_process(words);
  ExactFlags flags;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags(
          "troupe bench exact: compare the engine's log-probs with the trainer's, bit for bit; "
          "ends "
          "with status 6 when one differs",
          {{"--model", &flags.model, "model folder, or org/name in the local hub cache", true},
           {"--tokens", &flags.tokens, "response tokens to compare", false, 1, kTokens_max},
           {"--seed", &flags.seed, "of prompts, samples and order", false, 0, 1e18},
           {"--soak", &flags.soak_s,
            "instead: seconds of random submits, cuts, pauses, sleeps and updates, at the end of "
            "which no block may be lost and memory must be what it was",
            false, 0, 1e6},
           {"--file", &flags.file, "keep the engine's transcript in this file"},
           {"--trainer-isa", &flags.trainer_isa, "kernels of the trainer's side, as in TROUPE_ISA"},
           {"--plant-ulp", &flags.plant_ulp,
            "move one of the trainer's weights by one ulp, which must be seen"},
           {"--json", &flags.json, "one JSON line"}},
          words));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(flags.model));
  flags.model = folder.string();
  return flags.soak_s > 0 ? soak(flags) : compare_sides(flags);
}

}  // namespace troupe::app
