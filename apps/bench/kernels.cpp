// `troupe bench kernels`: times what lies between the products of a model (attention forward and
// backward, RMSNorm, drawing tokens) and AdamW, at the shapes of a model.
#include "apps/bench/bench.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/machine.hpp"
#include "apps/bench/timing.hpp"
#include "apps/cli/dtype_flag.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/placement.hpp"
#include "apps/cli/random_model.hpp"
#include "kernels/ops.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/model/forward.hpp"
#include "runtime/model/layer_grad.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace troupe::bench {
namespace {

using core::Buffer;
using core::Team;
using kernels::ops;
using nlohmann::ordered_json;

struct KernelSizes {
  std::int64_t batch = 64;   // sequences that decode
  std::int64_t keys = 1024;  // tokens of each, and of the prompt that is read
  std::int64_t rows = 8192;  // of a norm
  std::int64_t parameters = std::int64_t{1} << 24;
  kernels::KvDtype keys_dtype = kernels::KvDtype::kF32;
};

struct Cost {
  double flops = 0, bytes = 0;
};

// Numbers in [-1, 1) that repeat every 251.
std::vector<float> repeating(std::int64_t count) {
  std::vector<float> made(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    made[static_cast<std::size_t>(i)] = static_cast<float>(i * 37 % 251) / 125.5f - 1.0f;
  return made;
}
Buffer<float> numbers(std::int64_t count, core::Memory& memory) {
  Buffer<float> buffer(count, memory);
  buffer.upload(repeating(count));
  return buffer;
}

class Measurement {
 public:
  Measurement(core::TeamRunner& team, std::string device, bool as_json)
      : team_(team), device_(std::move(device)), as_json_(as_json), limits_(measure_limits(team)) {}

  core::TeamRunner& team() const { return team_; }
  core::Memory& memory() const { return team_.memory(); }

  // Times `work` and prints a line.
  void report(const char* what, const ordered_json& sizes, Cost cost, const TimedWork& work) const {
    const double seconds = seconds_of(team_, work);
    const double share = limits_.share_of_limit(cost.flops, cost.bytes, seconds);
    ordered_json line = {{"bench", "kernels"}, {"what", what}};
    line.update(sizes);
    line.update({{"device", device_},
                 {"isa", memory().on_host() ? ops().name : "cuda"},
                 {"us", 1e6 * seconds},
                 {"gflops", 1e-9 * cost.flops / seconds},
                 {"gb_per_s", 1e-9 * cost.bytes / seconds},
                 {"share_of_limit", share},
                 {"fma_gflops", limits_.fma_gflops},
                 {"read_gb_per_s", limits_.read_gb_per_s}});
    if (as_json_) return print_figures(line, true);
    std::printf("%-19s %-44s %10.1f us  %8.1f GFLOP/s  %7.1f GB/s  %3.0f %% of the limit\n", what,
                sizes.dump().c_str(), 1e6 * seconds, 1e-9 * cost.flops / seconds,
                1e-9 * cost.bytes / seconds, 100 * share);
    std::fflush(stdout);
  }

 private:
  core::TeamRunner& team_;
  const std::string device_;
  const bool as_json_;
  const kernels::MachineLimits limits_;
};

// One layer's attention of `sequences` sequences of `keys` tokens, whose last `queries` are rows.
class AttentionWork {
 public:
  AttentionWork(core::TeamRunner& team,
                const model::ModelSpec& spec,
                kernels::KvDtype dtype,
                std::int64_t sequences,
                std::int64_t keys,
                std::int64_t queries)
      : spec_(spec),
        rows_(sequences * queries),
        pairs_(sequences * (queries * (keys - queries) + queries * (queries + 1) / 2)),
        pool_(spec, 1, sequences * blocks_of(keys), team.memory(), dtype),
        qkv_(numbers(rows_ * spec.qkv_width(), team.memory())),
        out_(rows_ * spec.q_width(), team.memory()),
        lse_(rows_ * spec.heads, team.memory()) {
    for (std::int64_t s = 0; s < sequences; ++s) {
      plan_.segments.push_back({.first_row = static_cast<std::int32_t>(s * queries),
                                .rows = static_cast<std::int32_t>(queries),
                                .first_position = static_cast<std::int32_t>(keys - queries),
                                .table = static_cast<std::int32_t>(plan_.block_table.size())});
      plan_.group_begin.push_back(static_cast<std::int32_t>(s));
      for (std::int64_t b = 0; b < blocks_of(keys); ++b)
        plan_.block_table.push_back(static_cast<std::int32_t>(plan_.block_table.size()));
    }
    plan_.group_begin.push_back(static_cast<std::int32_t>(sequences));
    plan_.tokens.resize(static_cast<std::size_t>(rows_));
    plan_.positions.resize(static_cast<std::size_t>(rows_));
    plan_.finish(spec.kv_heads, team.size(), spec.heads / spec.kv_heads);
    plan_.place(team.memory());
    io_.qkv = qkv_.data();
    io_.attention = out_.data();
    io_.lse = lse_.data();
    fill(pool_.k(0));
    fill(pool_.v(0));
  }

  void forward(Team team) {
    const auto rank = static_cast<std::size_t>(team.rank);
    const std::int32_t begin = plan_.item_begin[rank], end = plan_.item_begin[rank + 1];
    if (begin < end) ops().attention(attention(), plan_.view().items + begin, end - begin);
  }
  kernels::Attention attention() {
    return model::attention_of(spec_, 0, plan_, io_, pool_.k(0), pool_.v(0));
  }
  const model::ForwardPlan& plan() const { return plan_; }
  std::int64_t rows() const { return rows_; }
  // How many numbers the keys have; the values have as many.
  std::int64_t pool_numbers() const { return pool_.blocks() * pool_.block_size(); }
  // Two products of a query with a key or value; keys and values are read once.
  Cost cost() const {
    return {4.0 * static_cast<double>(pairs_ * spec_.q_width()),
            static_cast<double>(pool_.bytes())};
  }

 private:
  void fill(const kernels::KvNumbers& pool) {
    std::vector<float> made = repeating(pool_numbers());
    if (pool.dtype == kernels::KvDtype::kF32)
      return pool_.memory().upload(pool.data, made.data(), made.size() * sizeof(float));
    std::vector<std::uint16_t> rounded(made.size());
    std::ranges::transform(made, rounded.begin(), kernels::to_bf16);
    pool_.memory().upload(pool.data, rounded.data(), rounded.size() * sizeof(std::uint16_t));
  }
  static std::int64_t blocks_of(std::int64_t keys) {
    return (keys + kernels::kKvBlock - 1) / kernels::kKvBlock;
  }

  const model::ModelSpec& spec_;
  const std::int64_t rows_, pairs_;
  model::ForwardPlan plan_;
  model::KvPool pool_;
  Buffer<float> qkv_, out_, lse_;
  model::LayerBuffers io_;
};

ordered_json sizes_of(const KernelSizes& sizes, std::int64_t sequences, std::int64_t queries) {
  return {{"sequences", sequences},
          {"keys", sizes.keys},
          {"queries", queries},
          {"keys_dtype", sizes.keys_dtype == kernels::KvDtype::kF32 ? "f32" : "bf16"}};
}

void time_decode(const Measurement& at, const model::ModelSpec& spec, const KernelSizes& sizes) {
  for (const std::int64_t sequences : {std::int64_t{1}, sizes.batch}) {
    AttentionWork work(at.team(), spec, sizes.keys_dtype, sequences, sizes.keys, 1);
    at.report("attention", sizes_of(sizes, sequences, 1), work.cost(),
              [&](Team team, std::int64_t) { work.forward(team); });
    if (sizes.batch == 1) return;
  }
}

// A whole prompt, forward and backward. The backward pass has five products instead of two.
void time_prefill(const Measurement& at, const model::ModelSpec& spec, const KernelSizes& sizes) {
  AttentionWork work(at.team(), spec, sizes.keys_dtype, 1, sizes.keys, sizes.keys);
  const ordered_json shape = sizes_of(sizes, 1, sizes.keys);
  Cost cost = work.cost();
  at.report("attention", shape, cost, [&](Team team, std::int64_t) { work.forward(team); });
  model::AttentionUnits units;
  units.assign(work.plan(), spec.kv_heads, {}, at.team().size());
  units.place(at.memory());
  const std::int64_t width = work.rows() * spec.q_width();
  const Buffer<float> dout = numbers(width, at.memory());
  Buffer<float> dq(width, at.memory());
  Buffer<float> dk(work.pool_numbers(), at.memory()), dv(work.pool_numbers(), at.memory());
  cost.flops *= 2.5;
  cost.bytes *= 2;
  at.report("attention_backward", shape, cost, [&](Team team, std::int64_t) {
    const auto own = units.of(team.rank);
    const kernels::AttentionBackward backward{.forward = work.attention(),
                                              .dout = dout.data(),
                                              .lddo = spec.q_width(),
                                              .dq = dq.data(),
                                              .lddq = spec.q_width(),
                                              .dk_pool = dk.data(),
                                              .dv_pool = dv.data()};
    if (!own.empty()) ops().attention_backward(backward, own.data(), std::ssize(own));
  });
}

void time_norm(const Measurement& at, const model::ModelSpec& spec, std::int64_t rows) {
  const std::int64_t d = spec.hidden;
  const Buffer<float> x = numbers(rows * d, at.memory()), weight = numbers(d, at.memory());
  Buffer<float> y(rows * d, at.memory());
  const kernels::RmsNorm norm{.d = d,
                              .x = x.data(),
                              .ldx = d,
                              .weight = weight.data(),
                              .eps = spec.rms_eps,
                              .y = y.data(),
                              .ldy = d};
  const double elements = static_cast<double>(rows * d);
  at.report("rmsnorm", {{"rows", rows}, {"columns", d}}, {4 * elements, 8 * elements},
            [&](Team team, std::int64_t) {
              const core::Range own = team.share(rows);
              if (!own.empty()) ops().rmsnorm(norm, own);
            });
}

// The partial sums of the softmax and the draws, as in a step that decodes. Only a device draws
// with an operation; the host's sums are timed alone.
void time_draw(const Measurement& at, const model::ModelSpec& spec, std::int64_t rows) {
  const std::int64_t vocab = spec.vocab, blocks = model::vocab_blocks(spec);
  const Buffer<float> logits = numbers(rows * vocab, at.memory());
  Buffer<float> block_max(rows * blocks, at.memory()), block_sum(rows * blocks, at.memory());
  Buffer<float> inv_temperature(rows, at.memory()), logprob(rows, at.memory());
  Buffer<double> uniform(rows, at.memory());
  Buffer<std::int32_t> token(rows, at.memory());
  inv_temperature.upload(std::vector<float>(static_cast<std::size_t>(rows), 1.0f));
  uniform.upload(std::vector<double>(static_cast<std::size_t>(rows), 0.5));
  const kernels::Draws draws{.rows = {.logits = logits.data(),
                                      .ld = vocab,
                                      .vocab = vocab,
                                      .inv_temperature = inv_temperature.data(),
                                      .block_max = block_max.data(),
                                      .block_sum = block_sum.data()},
                             .uniform = uniform.data(),
                             .token = token.data(),
                             .logprob = logprob.data()};
  const bool on_host = at.memory().on_host();
  at.report(on_host ? "vocab_sums" : "vocab_sums_and_draw", {{"rows", rows}, {"vocab", vocab}},
            {0, 4.0 * static_cast<double>(rows * vocab)}, [&](Team team, std::int64_t) {
              const core::Range own = team.share(blocks);
              if (!own.empty()) ops().vocab_sums(draws.rows, {0, rows}, own);
              if (!on_host) ops().draw(draws, rows);
            });
}

void time_adamw(const Measurement& at, std::int64_t parameters) {
  Buffer<float> param = numbers(parameters, at.memory());
  const Buffer<float> grad = numbers(parameters, at.memory());
  Buffer<float> m(parameters, at.memory()), v(parameters, at.memory());
  const kernels::AdamW step{.param = param.data(),
                            .grad = grad.data(),
                            .m = m.data(),
                            .v = v.data(),
                            .lr = 1e-6f,
                            .beta1 = 0.9f,
                            .beta2 = 0.95f,
                            .eps = 1e-8f};
  // Reads the parameter, its gradient and two moments; writes all but the gradient.
  at.report("adamw", {{"parameters", parameters}}, {0, 28.0 * static_cast<double>(parameters)},
            [&](Team team, std::int64_t) {
              const core::Range own = team.share(parameters, kernels::kPanel);
              if (!own.empty()) ops().adamw(step, own);
            });
}

// As learn::ElementOptimizer does it: moments of some blocks are f32 at a time.
void time_adamw_8bit(const Measurement& at, std::int64_t parameters) {
  constexpr std::int64_t kBlock = kernels::kNormChunk;
  const std::int64_t count = (parameters + kBlock - 1) / kBlock * kBlock;
  const std::int64_t at_once = at.memory().on_host() ? 4 : 256;  // blocks
  Buffer<float> param = numbers(count, at.memory());
  const Buffer<float> grad = numbers(count, at.memory());
  Buffer<std::uint8_t> m_codes(count, at.memory()), v_codes(count, at.memory());
  Buffer<float> m_scales(count / kBlock, at.memory()), v_scales(count / kBlock, at.memory());
  Buffer<float> expanded(at.team().size() * 2 * at_once * kBlock, at.memory());
  const auto moment = [&](kernels::MomentCode code, Buffer<std::uint8_t>& codes,
                          Buffer<float>& scales, std::int64_t first, float* room) {
    return kernels::CompactMoment{.code = code,
                                  .count = count,
                                  .codes = codes.data(),
                                  .scales = scales.data(),
                                  .numbers = room,
                                  .first = first};
  };
  // Reads the parameter, its gradient and two codes; writes all but the gradient.
  at.report("adamw_8bit", {{"parameters", count}}, {0, 16.0 * static_cast<double>(count)},
            [&](Team team, std::int64_t) {
              const core::Range own = team.share(count / kBlock);
              float* const room = expanded.data() + team.rank * 2 * at_once * kBlock;
              for (std::int64_t first = own.begin; first < own.end; first += at_once) {
                const core::Range blocks{first, std::min(first + at_once, own.end)};
                const auto m =
                    moment(kernels::MomentCode::kSigned8, m_codes, m_scales, first, room);
                const auto v = moment(kernels::MomentCode::kUnsigned8, v_codes, v_scales, first,
                                      room + at_once * kBlock);
                ops().expand_moment(m, blocks);
                ops().expand_moment(v, blocks);
                ops().adamw({.param = param.data() + first * kBlock,
                             .grad = grad.data() + first * kBlock,
                             .m = m.numbers,
                             .v = v.numbers,
                             .lr = 1e-6f,
                             .beta1 = 0.9f,
                             .beta2 = 0.95f,
                             .eps = 1e-8f},
                            {0, blocks.size() * kBlock});
                ops().compress_moment(m, blocks);
                ops().compress_moment(v, blocks);
              }
            });
}

Result<model::ModelSpec> spec_of(const std::string& folder, const std::string& shape) {
  if (folder.empty()) return cli::spec_of_shape(shape);
  TROUPE_TRY_ASSIGN(found, model::resolve_model(folder));
  return model::read_spec(found);
}

}  // namespace

Result<void> bench_kernels(cli::Words words) {
  std::string folder, shape = "smollm2-135m", dtype_name = "f32";
  cli::Placement placement;
  KernelSizes sizes;
  bool as_json = false;
  const std::string shape_help = "those of a known model: " + cli::model_shape_names();
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags(
                   "troupe bench kernels: attention, norms, draws and AdamW, medians of 3",
                   {{"--model", &folder, "take the shapes of a model folder"},
                    {"--shape", &shape, shape_help},
                    {"--batch", &sizes.batch, "sequences that decode together", false, 1, 4096},
                    {"--keys", &sizes.keys, "tokens of a sequence", false, 2, 1 << 20},
                    {"--rows", &sizes.rows, "rows of a norm", false, 1, 1 << 20},
                    {"--parameters", &sizes.parameters, "parameters of AdamW", false, 1, 1 << 30},
                    {"--dtype", &dtype_name, cli::kDtypeHelp},
                    {"--device", &placement.device, cli::kDeviceHelp},
                    {"--threads", &placement.threads, "0 = all usable cores", false, 0, 1024},
                    {"--json", &as_json, "one JSON object a line"}},
                   words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(dtype, cli::panel_dtype("troupe bench kernels", dtype_name, placement.device));
  TROUPE_TRY_ASSIGN(spec, spec_of(folder, shape));
  TROUPE_TRY_ASSIGN(team, cli::make_team(placement));
  sizes.keys_dtype = kernels::kv_dtype_of(dtype, team->memory().on_host());
  const Measurement at(*team, placement.device, as_json);
  time_decode(at, spec, sizes);
  time_prefill(at, spec, sizes);
  time_norm(at, spec, sizes.rows);
  time_draw(at, spec, sizes.batch);
  time_adamw(at, sizes.parameters);
  time_adamw_8bit(at, sizes.parameters);
  return {};
}

}  // namespace troupe::bench
