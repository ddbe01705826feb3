// `troupe bench exact`: shows that the engine reports the same log-probs as the trainer computes,
// bit for bit. The engine samples in this process; the scorer without gradients computes the
// log-probs again here, and a second process of this program computes them with the training
// forward.
#include "apps/bench/bench.hpp"
#include "apps/bench/exact_engine.hpp"
#include "apps/bench/exact_sides.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/temporary_folder.hpp"
#include "apps/cli/dtype_flag.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/placement.hpp"
#include "kernels/ops.hpp"
#include "runtime/core/child_process.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/net/socket.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace troupe::bench {
namespace {

using nlohmann::ordered_json;

constexpr double kTokens_max = 1e7;

struct ExactFlags {
  std::string model, file, trainer_isa, device = "cpu", dtype = "f32";
  std::int64_t tokens = 5000, seed = 1, soak_s = 0;
  bool json = false, plant_ulp = false;
};

// Error kConfig: no such dtype, one that the device does not compute in, or one without training.
Result<ExactPlace> place_of(const std::string& device, const std::string& dtype) {
  TROUPE_TRY_ASSIGN(panels, cli::panel_dtype("troupe bench exact", dtype, device));
  if (panels == kernels::PanelDtype::kInt8) {
    return fail(ErrorCode::kConfig,
                "troupe bench exact: --dtype int8 has no trainer to compare with",
                "give f32, bf16, or bf16-compute on a GPU");
  }
  if (panels == kernels::PanelDtype::kBf16Compute && device == "cpu") {
    return fail(ErrorCode::kConfig,
                "troupe bench exact: --dtype bf16-compute has a trainer on a GPU only",
                "give f32 or bf16, or --device cuda");
  }
  return ExactPlace{device, panels};
}

// ---- the second process ----

Result<void> trainer_process(cli::Words words) {
  std::string side, model, file, device = "cpu", dtype = "f32";
  std::int64_t seed = 1;
  bool plant_ulp = false;
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags("troupe bench exact: the trainer's side, started by the engine's",
                                {{"--side", &side, "trainer", true},
                                 {"--model", &model, "model folder", true},
                                 {"--file", &file, "transcript of the engine's side", true},
                                 {"--device", &device, cli::kDeviceHelp},
                                 {"--dtype", &dtype, cli::kDtypeHelp},
                                 {"--seed", &seed, "seed of the samples' order", false, 0, 1e18},
                                 {"--plant-ulp", &plant_ulp, "move one weight"}},
                                words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  if (side != "trainer")
    return fail(ErrorCode::kConfig, "--side is '" + side + "'", "the only one is trainer");
  TROUPE_TRY_ASSIGN(place, place_of(device, dtype));
  TROUPE_TRY_ASSIGN(
      figures, run_trainer_side(model, place, file, static_cast<std::uint64_t>(seed), plant_ulp));
  cli::say(figures.dump());
  return {};
}

// Runs `troupe bench exact WORDS` as a process; returns its standard output. Its messages go to our
// standard error.
Result<std::string> output_of(const std::vector<std::string>& words,
                              const std::vector<std::string>& environment) {
  const net::OwnedFd output(::memfd_create("troupe-exact", MFD_CLOEXEC));
  if (!output)
    return fail(ErrorCode::kResources, std::string("memfd_create: ") + std::strerror(errno));
  core::ChildSpec spec;
  spec.words = {"troupe-bench", "exact"};
  spec.words.insert(spec.words.end(), words.begin(), words.end());
  spec.this_program = true;
  spec.environment = core::merged_environment(environment);
  spec.descriptors = {{output.get(), STDOUT_FILENO}};
  TROUPE_TRY_ASSIGN(child, core::ChildProcess::start("a second process", std::move(spec)));
  const int status = child.wait();
  if (status != 0) {
    return fail(ErrorCode::kPeerLost,
                "the second process (troupe-bench) " + core::how_it_ended(status),
                "its message is above");
  }
  std::string text(static_cast<std::size_t>(::lseek(output.get(), 0, SEEK_END)), '\0');
  const ssize_t size = ::pread(output.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  return text;
}

Result<ordered_json> run_second_process(const ExactFlags& flags,
                                        const std::filesystem::path& file) {
  std::vector<std::string> words = {
      "--side",   "trainer",     "--model", flags.model,
      "--file",   file.string(), "--seed",  std::to_string(flags.seed),
      "--device", flags.device,  "--dtype", flags.dtype};
  if (flags.plant_ulp) words.push_back("--plant-ulp");
  std::vector<std::string> environment;
  if (!flags.trainer_isa.empty()) environment.push_back("TROUPE_ISA=" + flags.trainer_isa);
  TROUPE_TRY_ASSIGN(text, output_of(words, environment));
  ordered_json line = ordered_json::parse(text, nullptr, false);
  for (const char* key : {"tokens", "differing_bits"}) {
    if (!line.is_object() || !line.contains(key) || !line[key].is_number_integer())
      return fail(ErrorCode::kInternal, "the trainer's side answered '" + text + "'");
  }
  return line;
}

// ---- the report ----

ordered_json range_json(const Coverage::Range& range) {
  return ordered_json::array({range.min, range.max});
}

// The names of the conditions that this run covered.
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
          {"isa", side.isa}};
}

void print(const ordered_json& line, bool as_json) {
  if (as_json) return cli::say(line.dump());
  std::printf(
      "%s tokens: %s bits differ between engine and trainer, %s between engine and scorer\n",
      line["tokens"].dump().c_str(), line["differing_bits"].dump().c_str(),
      line["scorer_differing_bits"].dump().c_str());
  std::printf("  engine   %s\n", line["engine"].dump().c_str());
  std::printf("  trainer  %s\n", line["trainer"].dump().c_str());
}

Result<void> report(const ExactFlags& flags,
                    const EngineSide& side,
                    ordered_json trainer,
                    double trainer_s) {
  const auto differing = trainer["differing_bits"].get<std::int64_t>();
  const auto compared = trainer["tokens"].get<std::int64_t>();
  print({{"bench", "exact"},
         {"model", flags.model},
         {"device", flags.device},
         {"dtype", flags.dtype},
         {"tokens", side.transcript.tokens()},
         {"differing_bits", differing},
         {"scorer_differing_bits", side.scorer.differing_bits},
         {"engine", coverage_json(side)},
         {"trainer", std::move(trainer)},
         {"engine_s", side.engine_s},
         {"scorer_s", side.scorer_s},
         {"trainer_s", trainer_s}},
        flags.json);
  if (compared != flags.tokens || side.scorer.tokens != compared)
    return fail(ErrorCode::kInternal, "exact: the sides did not compare the same tokens");
  if (flags.plant_ulp && differing == 0) {
    return fail(ErrorCode::kInternal,
                "exact: the weight that was moved by one unit in the last place changed no "
                "log-prob, so that this comparison sees nothing");
  }
  const std::int64_t total = differing + side.scorer.differing_bits;
  if (total == 0) return {};
  return fail(ErrorCode::kNumeric, "exact: " + std::to_string(total) +
                                       " bits differ in the log-probs of " +
                                       std::to_string(compared) + " tokens");
}

Result<void> compare_sides(const ExactFlags& flags) {
  TROUPE_TRY_ASSIGN(place, place_of(flags.device, flags.dtype));
  std::optional<TemporaryFolder> folder;
  std::filesystem::path file = flags.file;
  if (file.empty()) {
    auto made = TemporaryFolder::make("troupe-exact");
    if (!made) return fail(made.error().advising("name a file with --file"));
    file = folder.emplace(std::move(*made)).path() / "transcript.bin";
  }
  TROUPE_TRY_ASSIGN(side, run_engine_side(flags.model, place, flags.tokens,
                                          static_cast<std::uint64_t>(flags.seed)));
  TROUPE_TRY(write_transcript(file, side.transcript));
  const Stopwatch watch;
  TROUPE_TRY_ASSIGN(trainer, run_second_process(flags, file));
  return report(flags, side, std::move(trainer), watch.seconds());
}

Result<void> soak(const ExactFlags& flags) {
  TROUPE_TRY_ASSIGN(place, place_of(flags.device, flags.dtype));
  TROUPE_TRY_ASSIGN(seen, run_soak(flags.model, place, static_cast<double>(flags.soak_s),
                                   static_cast<std::uint64_t>(flags.seed)));
  ordered_json line = {{"bench", "exact"}, {"model", flags.model}};
  line.update(seen.figures);
  line["isa"] = flags.device == "cpu" ? kernels::ops().name : "cuda";
  cli::say(line.dump(flags.json ? -1 : 2));
  return seen.verdict;
}

}  // namespace

Result<void> bench_exact(cli::Words words) {
  const bool second = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "--side" || word.starts_with("--side=");
  });
  if (second) return trainer_process(words);
  ExactFlags flags;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe bench exact: compare the engine's log-probs with the trainer's, bit for bit; "
          "ends "
          "with status 6 when one differs",
          {{"--model", &flags.model, "model folder, or org/name in the local hub cache", true},
           {"--tokens", &flags.tokens, "response tokens to compare", false, 1, kTokens_max},
           {"--seed", &flags.seed, "seed of prompts, samples and order", false, 0, 1e18},
           {"--soak", &flags.soak_s,
            "instead: seconds of random submits, cuts, pauses, sleeps and updates, at the end of "
            "which no block may be lost and memory must be what it was",
            false, 0, 1e6},
           {"--device", &flags.device, cli::kDeviceHelp},
           {"--dtype", &flags.dtype, cli::kDtypeHelp},
           {"--file", &flags.file, "keep the engine's transcript in this file"},
           {"--trainer-isa", &flags.trainer_isa, "kernels of the trainer's side, as in TROUPE_ISA"},
           {"--plant-ulp", &flags.plant_ulp,
            "move one of the trainer's weights by one ulp, which must be seen"},
           {"--json", &flags.json, "one JSON line"}},
          words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(flags.model));
  flags.model = folder.string();
  return flags.soak_s > 0 ? soak(flags) : compare_sides(flags);
}

}  // namespace troupe::bench
