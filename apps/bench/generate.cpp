// `troupe bench generate`: times the engine on random prompts. Prefill is timed on requests for one
// token, decoding on the steps in which the whole batch decodes and no prompt is computed.
#include "apps/bench/bench.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/machine.hpp"
#include "apps/bench/workload.hpp"
#include "apps/cli/dtype_flag.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/placement.hpp"
#include "kernels/ops.hpp"
#include "runtime/engine/driver.hpp"
#include "runtime/guide/guide_maker.hpp"
#include "runtime/model/params.hpp"
#include "runtime/text/tokenizer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace troupe::bench {
namespace {

constexpr std::int64_t kSpareBlocks = 32;
constexpr std::int32_t kGpuStepTokens = 8192;
constexpr int kPairs = 7;                            // timed pairs of one sample and one group
constexpr std::uint64_t kFirstGroupId = 1ull << 32;  // above all ids that `submit` gives
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();  // null in JSON

struct GenerateJob {
  std::string model, dtype = "f32";
  std::int64_t batch = 8, prompt_tokens = 64, new_tokens = 128, group = 0;
  std::int64_t batched_tokens = 0;  // most rows of a step; 0: the engine's, more on a GPU
  cli::Placement placement;
  bool json = false, no_limits = false, guided = false;
  std::shared_ptr<const engine::TokenGuide> guide;         // of all samples, with `guided`
  kernels::PanelDtype panels = kernels::PanelDtype::kF32;  // what dtype names
};

// Weights used for one token: those of the layers (only the chosen experts) and of the head.
double product_weights(const model::ModelSpec& spec) {
  return static_cast<double>(spec.active_weights() + spec.hidden * spec.vocab);
}

// Weights that a step of `rows` tokens reads. Of the experts: the expected number that at least one
// row chooses, if all are equally likely.
double read_weights(const model::ModelSpec& spec, double rows) {
  const model::MoeSpec& moe = spec.moe;
  if (!moe.any()) return product_weights(spec);
  const auto experts = static_cast<double>(moe.experts);
  const auto chosen = static_cast<double>(moe.experts_per_token);
  const double seen = experts * (1 - std::pow(1 - chosen / experts, rows));
  const auto one = static_cast<double>(3 * moe.ffn * spec.hidden);
  return product_weights(spec) +
         static_cast<double>(moe.sparse_layers(spec.layers)) * (seen - chosen) * one;
}

// The least operations and bytes of memory that some work needs, for the share of the limit. With
// bf16-compute a product counts half, because one instruction multiplies pairs.
struct Work {
  double flops = 0, bytes = 0;
};

// The work of prefilling a batch's prompts in `steps` steps; the head runs on the last rows only.
Work prefill_work(const model::ModelSpec& spec, const GenerateJob& job, double steps) {
  const double tokens = static_cast<double>(job.batch * job.prompt_tokens);
  const double head = static_cast<double>(spec.hidden * spec.vocab);
  const double weights = product_weights(spec) - head;
  const double lane = kernels::products_of_lane(job.panels);
  const double keys = tokens * static_cast<double>(job.prompt_tokens + 1) / 2;
  return {(2 * weights * tokens + 2 * head * static_cast<double>(job.batch)) / lane +
              4 * keys * static_cast<double>(spec.layers * spec.q_width()),
          kernels::bytes_of_weight(job.panels) *
              ((read_weights(spec, tokens / steps) - head) * steps + head)};
}

// The work of one decode step with `context` keys for each sample.
Work decode_work(const model::ModelSpec& spec, const GenerateJob& job, double context) {
  const double rows = static_cast<double>(job.batch);
  const auto kv = kernels::kv_dtype_of(job.panels, job.placement.device == "cpu");
  const auto kv_bytes = static_cast<double>(kernels::bytes_of(kv));
  return {rows * (2 * product_weights(spec) / kernels::products_of_lane(job.panels) +
                  4 * context * static_cast<double>(spec.layers * spec.q_width())),
          kernels::bytes_of_weight(job.panels) * read_weights(spec, rows) +
              kv_bytes * rows * 2 * context * static_cast<double>(spec.layers * spec.kv_width())};
}

// Measures how long the members of a team are in parallel regions, and how long they wait there in
// barriers. Wraps another team, which must outlive it. One thread starts all regions.
class MeteredTeam final : public core::TeamRunner {
 public:
  explicit MeteredTeam(core::TeamRunner& team)
      : team_(team), members_(static_cast<std::size_t>(team.size())) {}

  int size() const noexcept override { return team_.size(); }
  core::Memory& memory() noexcept override { return team_.memory(); }
  std::unique_ptr<core::Recording> record(const std::function<void(core::Team)>& region) override {
    return team_.record(region);
  }

  void run(const std::function<void(core::Team)>& region) override {
    team_.run([&](core::Team member) {
      const Stopwatch watch;
      const std::uint64_t waited = core::barrier_wait_ns();
      region(member);
      Member& own = members_[static_cast<std::size_t>(member.rank)];
      own.region_s += watch.seconds();
      own.wait_s += 1e-9 * static_cast<double>(core::barrier_wait_ns() - waited);
    });
  }

  // Seconds since this object was made, means over the members.
  double region_s() const { return mean(&Member::region_s); }
  double wait_s() const { return mean(&Member::wait_s); }

 private:
  struct alignas(64) Member {
    double region_s = 0, wait_s = 0;
  };
  double mean(double Member::*part) const {
    double sum = 0;
    for (const Member& member : members_)
      sum += member.*part;
    return sum / static_cast<double>(members_.size());
  }

  core::TeamRunner& team_;
  std::vector<Member> members_;
};

class GenerateRun {
 public:
  GenerateRun(engine::EngineDriver& driver, const GenerateJob& job, const MeteredTeam& team)
      : driver_(driver), engine_(*driver.engine()), job_(job), team_(team) {}

  // Seconds until every prompt has its first token, and the number of steps until then.
  Result<std::pair<double, double>> prefill() {
    TROUPE_TRY(submit(1));
    const auto before = engine_.counters().steps;
    const Stopwatch watch;
    TROUPE_TRY(driver_.run());
    const double seconds = watch.seconds();
    return std::pair(seconds, static_cast<double>(engine_.counters().steps - before));
  }

  struct Decode {
    double seconds = 0, tokens = 0, steps = 0, context = 0;  // context: mean over the steps
    double region_s = 0, wait_s = 0;                         // of `seconds`, see MeteredTeam
  };
  Result<Decode> decode() {
    TROUPE_TRY(submit(job_.new_tokens));
    Decode out;
    for (bool first_finished = false; !first_finished;) {
      const auto before = engine_.counters();
      const double region_s = team_.region_s(), wait_s = team_.wait_s();
      const Stopwatch watch;
      TROUPE_TRY_ASSIGN(samples, driver_.step());
      const double seconds = watch.seconds();
      const auto after = engine_.counters();
      first_finished = !samples.empty();
      const bool whole =
          after.prefill_tokens == before.prefill_tokens &&
          after.decode_tokens - before.decode_tokens == static_cast<std::uint64_t>(job_.batch);
      if (!whole) continue;
      out.seconds += seconds;
      out.tokens += static_cast<double>(job_.batch);
      out.steps += 1;
      out.region_s += team_.region_s() - region_s;
      out.wait_s += team_.wait_s() - wait_s;
    }
    TROUPE_TRY(driver_.run());
    if (out.steps == 0) {
      return fail(ErrorCode::kConfig,
                  "troupe bench generate: the whole batch never decodes at once",
                  "raise --new-tokens or --max-num-batched-tokens");
    }
    // The counted steps are the last ones before the first sample is done.
    out.context = static_cast<double>(job_.prompt_tokens) + static_cast<double>(job_.new_tokens) -
                  out.steps / 2;
    return out;
  }

  // Seconds from submission to the first token: of one sample alone, and of all samples of a group.
  // A group's prompt is computed once, so the ratio should be close to 1.
  struct FirstTokens {
    double one_s = 0, all_s = 0;  // medians
    double ratio() const { return all_s / one_s; }
  };
  // Times one sample and a group in turn, with a new prompt each time. Error kInternal: a prompt
  // was not computed exactly once.
  Result<FirstTokens> first_tokens() {
    std::vector<double> one, all;
    std::uint64_t id = kFirstGroupId;
    TROUPE_TRY(time_group(id++, job_.group));  // warm-up
    for (int i = 0; i < kPairs; ++i) {
      TROUPE_TRY_ASSIGN(alone, time_group(id++, 1));
      TROUPE_TRY_ASSIGN(group, time_group(id++, job_.group));
      one.push_back(alone);
      all.push_back(group);
    }
    return FirstTokens{median(one), median(all)};
  }

 private:
  engine::GroupRequest request(core::Rng& rng, std::uint64_t id, std::int64_t new_tokens) const {
    engine::GroupRequest request;
    request.id.value = id;
    request.seed = id;
    request.prompt = random_tokens(rng, job_.prompt_tokens, engine_.weights().spec().vocab);
    request.sampling.max_new_tokens = static_cast<std::int32_t>(new_tokens);
    request.sampling.ignore_eos = true;
    request.guide = job_.guide;
    return request;
  }

  Result<void> submit(std::int64_t new_tokens) {
    core::Rng rng(7, next_id_);
    for (std::int64_t i = 0; i < job_.batch; ++i)
      TROUPE_TRY(driver_.submit(request(rng, next_id_++, new_tokens)));
    return {};
  }

  // Seconds from submission until every sample has its one token.
  Result<double> time_group(std::uint64_t id, std::int64_t samples) {
    core::Rng rng(8, id);
    engine::GroupRequest group = request(rng, id, 1);
    group.samples = static_cast<std::int32_t>(samples);
    const std::uint64_t before = engine_.counters().prefill_tokens;
    const Stopwatch watch;
    TROUPE_TRY(driver_.submit(std::move(group)));
    TROUPE_TRY(driver_.run());
    const double seconds = watch.seconds();
    if (engine_.counters().prefill_tokens - before ==
        static_cast<std::uint64_t>(job_.prompt_tokens)) {
      return seconds;
    }
    return fail(ErrorCode::kInternal,
                "troupe bench generate: a group's prompt was not computed once");
  }

  engine::EngineDriver& driver_;
  const engine::Engine& engine_;  // the engine of driver_
  const GenerateJob& job_;
  const MeteredTeam& team_;
  std::uint64_t next_id_ = 0;
};

struct GenerateFigures {
  double decode_tokens_per_s = 0, prefill_tokens_per_s = 0;
  double decode_share = 0, prefill_share = 0;
  // Shares of a decode step's time: outside its parallel region (schedule, plan, bookkeeping), and
  // in the region's barriers.
  double serial_share = 0, barrier_share = 0;
};

Result<GenerateFigures> measure(GenerateRun& bench,
                                const model::ModelSpec& spec,
                                const GenerateJob& job,
                                MeteredTeam& team) {
  // A warm-up round, after which KV blocks are reused, as in an engine that has run for long.
  TROUPE_TRY(bench.prefill());
  TROUPE_TRY(bench.decode());
  std::vector<double> prefill_s, decode_s;            // of all prompts; of one step
  std::vector<double> prefill_shares, decode_shares;  // of the better limit of before and after
  std::vector<double> serial, barrier;                // shares of a step
  const bool known = !job.no_limits;
  kernels::MachineLimits limits;
  if (known) limits = measure_limits(team);
  for (int i = 0; i < kRepetitions; ++i) {
    TROUPE_TRY_ASSIGN(prefill, bench.prefill());
    TROUPE_TRY_ASSIGN(decode, bench.decode());
    prefill_s.push_back(prefill.first);
    decode_s.push_back(decode.seconds / decode.steps);
    serial.push_back(1 - decode.region_s / decode.seconds);
    barrier.push_back(decode.wait_s / decode.seconds);
    if (!known) continue;
    const auto after = measure_limits(team);
    const auto around = best_of(limits, after);
    limits = after;
    const Work prefill_least = prefill_work(spec, job, prefill.second);
    const Work step_least = decode_work(spec, job, decode.context);
    prefill_shares.push_back(
        around.share_of_limit(prefill_least.flops, prefill_least.bytes, prefill_s.back()));
    decode_shares.push_back(
        around.share_of_limit(step_least.flops, step_least.bytes, decode_s.back()));
  }
  return GenerateFigures{static_cast<double>(job.batch) / median(decode_s),
                         static_cast<double>(job.batch * job.prompt_tokens) / median(prefill_s),
                         known ? median(decode_shares) : kUnknown,
                         known ? median(prefill_shares) : kUnknown,
                         median(serial),
                         median(barrier)};
}

Result<std::unique_ptr<engine::Engine>> make_engine(const GenerateJob& job,
                                                    core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(job.model));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  const std::int64_t tokens = job.prompt_tokens + job.new_tokens;
  if (tokens > spec.context) {
    return fail(ErrorCode::kConfig,
                "troupe bench generate: --prompt-tokens and --new-tokens exceed the model's "
                "context of " +
                    std::to_string(spec.context),
                "lower one of them");
  }
  TROUPE_TRY_ASSIGN(params, model::load_model(folder));
  auto packed = packed_weights(*params, 0, team, job.panels);
  params.reset();
  engine::EngineLimits limits;
  limits.max_num_seqs =
      static_cast<std::int32_t>(std::max({job.batch, job.group, std::int64_t{1}}));
  if (!team.memory().on_host()) limits.max_num_batched_tokens = kGpuStepTokens;
  if (job.batched_tokens > 0)
    limits.max_num_batched_tokens = static_cast<std::int32_t>(job.batched_tokens);
  limits.max_num_batched_tokens = std::max(limits.max_num_batched_tokens, limits.max_num_seqs);
  // Only as many blocks as the samples need, so that the warm-up round uses every block.
  limits.kv_blocks = limits.max_num_seqs * (tokens / kernels::kKvBlock + 2) + kSpareBlocks;
  return engine::Engine::create(std::move(packed), limits, {}, nullptr, team);
}

// A list of records that no response comes to the end of.
constexpr const char* kGuidedSchema =
    R"({"type":"array","minItems":1000000,"items":{"type":"object","properties":{
        "name":{"type":"string"},"value":{"type":"number"},"kind":{"enum":["red","green"]},
        "tags":{"type":"array","items":{"type":"string"}}},
        "required":["name","value","kind","tags"],"additionalProperties":false}})";

Result<std::shared_ptr<const engine::TokenGuide>> make_guide(const GenerateJob& job) {
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(job.model));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  guide::GuideMaker maker(
      [file = folder / "tokenizer.json"] {
        return text::read_file(file, text::kTokenizerJson_bytes_max);
      },
      spec.vocab);
  return maker.make({guide::GrammarKind::kJsonSchema, kGuidedSchema});
}

}  // namespace

Result<void> bench_generate(cli::Words words) {
  GenerateJob job;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe bench generate: tokens per second of the engine, medians of 3",
          {{"--model", &job.model, "model folder, or org/name in the local cache", true},
           {"--batch", &job.batch, "samples at once", false, 1, 4096},
           {"--prompt-tokens", &job.prompt_tokens, "tokens of each prompt", false, 1, 1e6},
           {"--new-tokens", &job.new_tokens, "tokens of each response", false, 2, 1e6},
           {"--group", &job.group,
            "also the time until all first tokens of a group of so many samples, over that "
            "of one sample",
            false, 0, 4096},
           {"--max-num-batched-tokens", &job.batched_tokens,
            "most rows of a step; 0 = 512, on a GPU 8192", false, 0, 1e6},
           {"--dtype", &job.dtype, cli::kDtypeHelp},
           {"--device", &job.placement.device, cli::kDeviceHelp},
           {"--threads", &job.placement.threads, "0 = all usable cores of the CPU", false, 0, 1024},
           {"--guided", &job.guided, "responses are a list of records, by a JSON schema"},
           {"--no-limits", &job.no_limits, "do not measure what the machine could do"},
           {"--json", &job.json, "one JSON line"}},
          words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_SET(job.panels,
                 cli::panel_dtype("troupe bench generate", job.dtype, job.placement.device));
  if (job.guided) TROUPE_TRY_SET(job.guide, make_guide(job));
  TROUPE_TRY_ASSIGN(team, cli::make_team(job.placement));
  const bool gpu = !team->memory().on_host();
  const char* const level = gpu ? "cuda" : kernels::ops().name;
  MeteredTeam pool(*team);
  TROUPE_TRY_ASSIGN(engine, make_engine(job, pool));
  engine::EngineDriver driver(std::move(engine), pool);
  GenerateRun bench(driver, job, pool);
  TROUPE_TRY_ASSIGN(figures, measure(bench, driver.engine()->spec(), job, pool));
  GenerateRun::FirstTokens group;
  if (job.group > 0) TROUPE_TRY_SET(group, bench.first_tokens());
  if (job.json) {
    nlohmann::ordered_json line = {
        {"bench", "generate"},
        {"model", job.model},
        {"batch", job.batch},
        {"prompt_tokens", job.prompt_tokens},
        {"new_tokens", job.new_tokens},
        {"guided", job.guided},
        {"dtype", job.dtype},
        {"isa", level},
        {"device", job.placement.device},
        {"threads", team->size()},
        {"decode_tokens_per_s", figures.decode_tokens_per_s},
        {"prefill_tokens_per_s", figures.prefill_tokens_per_s},
        {"share_of_limit", figures.decode_share},
        {"prefill_share_of_limit", figures.prefill_share},
        {"step_outside_share", figures.serial_share + figures.barrier_share},
        {"step_serial_share", figures.serial_share},
        {"step_barrier_share", figures.barrier_share}};
    if (job.group > 0) {
      line["group"] = job.group;
      line["first_token_s"] = group.one_s;
      line["group_first_tokens_s"] = group.all_s;
      line["group_first_token_ratio"] = group.ratio();
    }
    cli::say(line.dump());
  } else {
    std::printf("batch %ld, %s weights, %s kernels, device %s, %d thread(s)\n", job.batch,
                job.dtype.c_str(), level, job.placement.device.c_str(), team->size());
    const auto rate = [&job](const char* what, double tokens_per_s, double share) {
      std::printf("  %-8s %8.1f tokens/s", what, tokens_per_s);
      if (!job.no_limits) std::printf(", %3.0f %% of the limit", 100 * share);
      std::printf("\n");
    };
    rate("decode", figures.decode_tokens_per_s, figures.decode_share);
    rate("prefill", figures.prefill_tokens_per_s, figures.prefill_share);
    std::printf(
        "  a step   %8.1f %% outside the kernels: %.1f %% between regions, %.1f %% in barriers\n",
        100 * (figures.serial_share + figures.barrier_share), 100 * figures.serial_share,
        100 * figures.barrier_share);
    if (job.group > 0) {
      std::printf("  first token %.4f s; all %ld of a group %.4f s, %.3f times that\n", group.one_s,
                  job.group, group.all_s, group.ratio());
    }
  }
  return {};
}

}  // namespace troupe::bench
