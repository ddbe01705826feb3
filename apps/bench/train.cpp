// `troupe bench train`: measures the speed of an update of the policy (for ppo also of the critic)
// or of a supervised step, as a share of this machine's multiply-add peak. For a policy without a
// critic, adapters and lanes, on the CPU, also the time of each phase.
#include "apps/bench/bench.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/train_ranks.hpp"
#include "apps/bench/train_steps.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/placement.hpp"
#include "kernels/ops.hpp"
#include "runtime/learn/optim/optimizer.hpp"
#include "runtime/learn/rl/micro_batch.hpp"
#include "runtime/learn/rl/update_context.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/params.hpp"

#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace troupe::bench {
namespace {

using nlohmann::ordered_json;

ordered_json line_of(const TrainJob& job, const TrainFigures& figures) {
  const double gflops = figures.flops / figures.cost.wall_s * 1e-9;
  const double cpu_gflops =
      figures.flops / figures.cost.cpu_s * 1e-9 * static_cast<double>(job.threads * job.ranks);
  const double peak = figures.fma_gflops * static_cast<double>(job.ranks);
  const auto per_second = [&](std::int64_t count) {
    return static_cast<double>(count) / figures.cost.wall_s;
  };
  return {{"bench", "train"},
          {"model", job.model},
          {"objective", job.objective},
          {"dtype", job.dtype},
          {"lora_rank", job.lora_rank},
          {"isa", job.device == "cpu" ? kernels::ops().name : "cuda"},
          {"threads", job.threads},
          {"prompts", job.prompts},
          {"samples", job.samples},
          {"prompt_tokens", job.prompt_tokens},
          {"new_tokens", job.new_tokens},
          {"shortest", job.shortest},
          {"micro_tokens_max", job.micro_tokens_max},
          {"lanes", job.lanes},
          {"micro_batches", figures.micro_batches},
          {"rows", figures.rows},
          {"tokens", figures.tokens},
          {"tokens_per_s", per_second(figures.tokens)},
          {"rows_per_s", per_second(figures.rows)},
          {"share_of_fma", gflops / peak},
          {"share_of_fma_cpu", cpu_gflops / peak},
          {"gflops", gflops},
          {"fma_gflops", peak},
          {"peak_mb", figures.peak_mb},
          {"rss_mb", figures.rss_mb},
          {"page_faults", figures.cost.page_faults},
          {"first_page_faults", figures.first_page_faults},
          {"update_s", figures.cost.wall_s},
          {"update_cpu_s", figures.cost.cpu_s}};
}

// Adds what ranks move. With a critic its bytes are among them, and the least is not known.
void add_rank_figures(ordered_json& line, const TrainJob& job, const TrainFigures& figures) {
  if (job.ranks == 1) return;
  line["ranks"] = job.ranks;
  line["zero_stage"] = job.zero_stage;
  line["sent_bytes"] = figures.sent_bytes;
  if (job.objective == "ppo") return;
  line["sent_share_of_least"] = figures.sent_bytes / least_bytes(job, figures);
}

bool is_of_pairs(const std::string& objective) {
  return objective == "dpo" || objective == "rm";
}

// Whether the objective trains on given sequences or pairs and not on sampled groups.
bool is_supervised(const std::string& objective) {
  return objective == "sft" || is_of_pairs(objective);
}

// Fills in the sizes that are 0: 4 prompts with 8 samples each (ppo: 32 with 1), 32 tokens and 64
// new ones; for sft 16 sequences of 256 tokens; for dpo and rm 8 prompts with a pair each, 32
// tokens and 96 new ones.
void choose_sizes(TrainJob& job) {
  const bool pairs = is_of_pairs(job.objective);
  const bool alone = job.objective == "ppo" || is_supervised(job.objective);
  const auto choose = [](std::int64_t& size, std::int64_t value) {
    if (size == 0) size = value;
  };
  choose(job.prompts, job.objective == "ppo" ? 32 : job.objective == "sft" ? 16 : pairs ? 8 : 4);
  choose(job.samples, pairs ? 2 : alone ? 1 : 8);
  choose(job.prompt_tokens, job.objective == "sft" ? 0 : 32);
  choose(job.new_tokens, job.objective == "sft" ? 256 : pairs ? 96 : 64);
}

// Settings for an objective that trains on sampled groups: PPO with a critic, GRPO, Dr. GRPO, RLOO
// or REINFORCE with a baseline.
Result<learn::TrainerSettings> trainer_settings(const TrainJob& job) {
  static constexpr std::pair<std::string_view, std::string_view> kEstimators[] = {
      {"grpo", "group_norm"},
      {"dr_grpo", "dr_grpo"},
      {"rloo", "rloo"},
      {"reinforce_baseline", "reinforce_baseline"},
      {"ppo", "gae"}};
  learn::TrainerSettings settings;
  TROUPE_TRY_SET(settings.optim, train_optim(job));
  settings.batch.micro_tokens_max = job.micro_tokens_max;
  settings.total_steps = 100;
  for (const auto& [name, estimator] : kEstimators) {
    if (job.objective != name) continue;
    settings.algo.advantage.estimator = estimator;
    return settings;
  }
  return fail(ErrorCode::kConfig, "troupe bench train: --objective is '" + job.objective + "'",
              "use grpo, dr_grpo, rloo, reinforce_baseline, ppo, sft, dpo or rm");
}

// Times of the phases of an update: forward and backward of all its micro-batches, and the
// optimiser's steps. PhaseRun measures them on the parts that the trainer is made of.
struct TrainPhases {
  double forward_s = 0;
  double backward_s = 0;
  double optimizer_s = 0;  // gradients zeroed, their norm, AdamW, panels packed again
};

// Memory as in the trainer: four stores of the model, packed weights and one micro-batch.
class PhaseRun {
 public:
  PhaseRun(const learn::Trainers& trainers,
           std::unique_ptr<model::ParamStore> master,
           const learn::TrainerSettings& settings,
           core::TeamRunner& team)
      : settings_(settings),
        team_(team),
        master_(std::move(master)),
        grads_(master_->same_layout()),
        optimiser_(*master_, master_->layout(), settings.optim),
        weights_(master_->spec(), settings.optim.panels),
        pass_(trainers.pass(team, *master_, grads_)) {
    pack();
  }

  Result<TrainPhases> pass(const std::vector<experience::Group>& groups) {
    TROUPE_TRY_ASSIGN(update, learn::plan_update(groups, settings_.batch));
    TrainPhases phases;
    for (const learn::MiniBatch& mini : update.mini_batches) {
      Stopwatch watch;
      team_.run([&](core::Team member) {
        const auto [begin, end] = member.share(grads_.size(), 64);
        std::memset(grads_.data() + begin, 0,
                    static_cast<std::size_t>(end - begin) * sizeof(float));
      });
      phases.optimizer_s += watch.lap();
      for (const learn::MicroBatch& micro : mini.micro_batches) {
        const auto rows = learn::sample_rows(groups, micro);
        TROUPE_TRY(model::build_group_plan(rows.groups, master_->spec(), team_.size(), plan_));
        const auto temperature = static_cast<float>(settings_.algo.temperature);
        TROUPE_TRY_ASSIGN(logprobs,
                          pass_->logprobs(weights_, plan_.plan, plan_.targets, temperature, true));
        phases.forward_s += watch.lap();
        TROUPE_TRY(pass_->backward(1.0f / static_cast<float>(logprobs.size())));
        phases.backward_s += watch.lap();
      }
      const double norm = learn::global_norm(team_, grads_.data(), grads_.size());
      optimiser_.step(team_, *master_, grads_, settings_.optim.adam.lr,
                      learn::clip_scale(norm, settings_.optim.max_norm));
      pack();
      phases.optimizer_s += watch.lap();
    }
    return phases;
  }

 private:
  void pack() {
    team_.run([&](core::Team member) { weights_.fill(member, *master_, 0); });
  }

  const learn::TrainerSettings& settings_;
  core::TeamRunner& team_;
  std::unique_ptr<model::ParamStore> master_;
  model::ParamStore grads_;
  learn::StoreOptimizer optimiser_;
  model::PackedWeights weights_;
  std::unique_ptr<learn::TrainPass> pass_;
  model::GroupPlan plan_;
};

// Medians of kTimedSteps passes after a warm-up pass.
Result<TrainPhases> measure_phases(const TrainJob& job,
                                   const learn::TrainerSettings& settings,
                                   const std::vector<experience::Group>& groups,
                                   core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(master, model::load_model(job.model));
  TROUPE_TRY_ASSIGN(trainers, learn::trainers());
  std::vector<double> forward, backward, optimizer;
  PhaseRun run(*trainers, std::move(master), settings, team);
  TROUPE_TRY(run.pass(groups));
  for (int i = 0; i < kTimedSteps; ++i) {
    TROUPE_TRY_ASSIGN(phases, run.pass(groups));
    forward.push_back(phases.forward_s);
    backward.push_back(phases.backward_s);
    optimizer.push_back(phases.optimizer_s);
  }
  return TrainPhases{median(forward), median(backward), median(optimizer)};
}

// Phases are timed only for an update of a policy's own weights without a critic, in one lane, on
// the CPU.
Result<ordered_json> measured(const TrainJob& job, TrainRanks& ranks, core::TeamRunner& team) {
  if (is_supervised(job.objective)) {
    TROUPE_TRY_ASSIGN(figures, time_supervised(job, team));
    TROUPE_TRY(ranks.add_up(figures));
    ordered_json line = line_of(job, figures);
    add_rank_figures(line, job, figures);
    return line;
  }
  TROUPE_TRY_ASSIGN(settings, trainer_settings(job));
  std::vector<experience::Group> groups;
  TROUPE_TRY_ASSIGN(figures, time_policy(job, settings, groups, team));
  TROUPE_TRY(ranks.add_up(figures));
  ordered_json line = line_of(job, figures);
  add_rank_figures(line, job, figures);
  // A GPU only enqueues work, so the host's clock cannot tell its phases apart.
  const bool plain =
      job.objective != "ppo" && job.lora_rank == 0 && job.lanes == 1 && job.ranks == 1;
  if (!plain || !team.memory().on_host()) return line;
  TROUPE_TRY_ASSIGN(phases, measure_phases(job, settings, groups, team));
  line["forward_s"] = phases.forward_s;
  line["backward_s"] = phases.backward_s;
  line["optimizer_s"] = phases.optimizer_s;
  return line;
}

void print_for_people(const ordered_json& line) {
  const auto number = [&](const char* key) { return line.at(key).get<double>(); };
  std::printf("%s, %s, %s kernels, %.0f threads: %.1f tokens/s, %.0f %% of the multiply-add peak\n",
              line.at("objective").get<std::string>().c_str(),
              line.at("dtype").get<std::string>().c_str(),
              line.at("isa").get<std::string>().c_str(), number("threads"), number("tokens_per_s"),
              100.0 * number("share_of_fma"));
  std::printf("  update    %.3f s for %.0f tokens in %.0f rows, %.0f micro-batches\n",
              number("update_s"), number("tokens"), number("rows"), number("micro_batches"));
  if (line.contains("forward_s")) {
    std::printf("  forward   %.3f s\n  backward  %.3f s\n  optimizer %.3f s\n", number("forward_s"),
                number("backward_s"), number("optimizer_s"));
  }
  if (line.contains("sent_share_of_least")) {
    std::printf("  ranks     %.0f, %.1f MB sent in an update, %.2f of the least\n", number("ranks"),
                1e-6 * number("sent_bytes"), number("sent_share_of_least"));
  }
  std::printf("  %.1f of %.1f GFLOP/s, peak memory %.0f MiB, %.0f page faults an update\n",
              number("gflops"), number("fma_gflops"), number("peak_mb"), number("page_faults"));
}

}  // namespace

Result<void> bench_train(cli::Words words) {
  TrainJob job;
  bool as_json = false;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe bench train: time one policy update on random samples, medians of 3",
          {{"--model", &job.model, "model folder, or org/name in the local cache", true},
           {"--objective", &job.objective,
            "grpo, dr_grpo, rloo, reinforce_baseline, ppo, sft, dpo or rm"},
           {"--prompts", &job.prompts,
            "groups, sequences, or prompts with pairs, of one update; 0 = as usual for the "
            "objective",
            false, 0, 4096},
           {"--samples", &job.samples,
            "samples of one prompt; for dpo and rm, its answers, "
            "of which the first is the best; "
            "0 = as usual",
            false, 0, 4096},
           {"--prompt-tokens", &job.prompt_tokens, "prompt length; 0 = as usual", false, 0, 1e6},
           {"--new-tokens", &job.new_tokens, "tokens of a response or a sequence; 0 = as usual",
            false, 0, 1e6},
           {"--shortest", &job.shortest,
            "lengths go evenly from this to --new-tokens; 0 = all are equal", false, 0, 1e6},
           {"--micro-tokens-max", &job.micro_tokens_max,
            "rows of a micro-batch, as train.micro_tokens_max", false, 16, 1e6},
           {"--dtype", &job.dtype,
            "of the forward pass's weights: f32, bf16 or, on a GPU, bf16-compute"},
           {"--lora", &job.lora_rank, "train adapters of this rank; 0 = all weights", false, 0,
            4096},
           {"--lanes", &job.lanes, "lanes of a step's gradient, as train.lanes", false, 1, 1024},
           {"--device", &job.device, cli::kDeviceHelp},
           {"--threads", &job.threads, "threads of each rank; 0 = all cores", false, 0, 1024},
           {"--ranks", &job.ranks, "processes that train the model together", false, 1, 64},
           {"--zero-stage", &job.zero_stage,
            "what ranks divide: 0 nothing, 1 or 2 the moments, 3 weights too", false, 0,
            learn::kZeroStage_max},
           {"--rank", &job.rank, "what this process is; 0 starts the others", false, 0, 63},
           {"--folder", &job.folder, "where the others meet; set by rank 0"},
           {"--json", &as_json, "one JSON line"}},
          words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  choose_sizes(job);
  if (job.samples < 2 && is_of_pairs(job.objective)) {
    return fail(ErrorCode::kConfig, "troupe bench train: --samples 1 with --objective " +
                                        job.objective + ": a pair needs 2");
  }
  if (job.shortest > job.new_tokens) {
    return fail(ErrorCode::kConfig, "troupe bench train: --shortest is " +
                                        std::to_string(job.shortest) + ", --new-tokens " +
                                        std::to_string(job.new_tokens));
  }
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(job.model));
  job.model = folder.string();
  TROUPE_TRY_ASSIGN(team, cli::make_team({job.device, job.threads}));
  job.threads = team->size();
  TROUPE_TRY_ASSIGN(ranks, TrainRanks::start(job));
  TROUPE_TRY_ASSIGN(line, measured(job, *ranks, *team));
  ranks->wait();
  if (job.rank > 0) return {};
  as_json ? cli::say(line.dump()) : print_for_people(line);
  return {};
}

}  // namespace troupe::bench
