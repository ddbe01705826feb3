// `troupe bench gemm`: times a model's matrix products with weights that are read from memory, not
// from a cache: uses copies of each weight, 256 MiB in all, in turn.
#include "apps/bench/bench.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/machine.hpp"
#include "apps/bench/timing.hpp"
#include "apps/cli/device_speeds.hpp"
#include "apps/cli/dtype_flag.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/placement.hpp"
#include "kernels/cuda/device_team.hpp"
#include "kernels/ops.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/model/spec.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace troupe::bench {
namespace {

constexpr std::int64_t kWeights_bytes = std::int64_t{256} << 20;

struct Shape {
  std::int64_t k = 0, n = 0;
};

// The shapes of the products of one layer and of the head.
std::vector<Shape> shapes_of(const model::ModelSpec& spec) {
  return {{spec.hidden, spec.qkv_width()},
          {spec.q_width(), spec.hidden},
          {spec.hidden, 2 * spec.ffn},
          {spec.ffn, spec.hidden},
          {spec.hidden, spec.vocab}};
}

// The shapes of SmolLM2-135M, for when no model is named.
constexpr Shape kUsualShapes[] = {{576, 960}, {576, 576}, {576, 3072}, {1536, 576}, {576, 49152}};

// Fills with random numbers in [-3.5, 3.5) on all threads. Draws one for every 64 elements, because
// drawing 64 million would take longer than the benchmark. A device gets the host's numbers.
void fill(core::TeamRunner& team, core::Buffer<float>& buffer) {
  const bool on_host = team.memory().on_host();
  std::vector<float> drawn(on_host ? 0 : static_cast<std::size_t>(buffer.size()));
  float* const to = on_host ? buffer.data() : drawn.data();
  team.run([&](core::Team member) {
    const auto [begin, end] = member.share(buffer.size(), 16);
    core::Rng rng(1, static_cast<std::uint64_t>(begin));
    float value = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      if (i % 64 == 0) value = static_cast<float>(rng.next_uniform()) - 0.5f;
      to[i] = value * static_cast<float>(1 + i % 7);
    }
  });
  if (!on_host) buffer.upload(drawn);
}

// Copies of one packed matrix; `turn` returns them in turn.
class Copies {
 public:
  Copies(core::TeamRunner& team, const Shape& shape, kernels::PanelDtype dtype)
      : dtype_(dtype),
        size_(kernels::packed_bytes(dtype, shape.n, shape.k) / 4),
        count_(std::max<std::int64_t>(1, kWeights_bytes / 4 / size_)),
        data_(size_ * count_, team.memory()),
        scale_(kernels::panels_of(shape.n) * kernels::kPanel, team.memory()) {
    core::Buffer<float> weights(shape.n * shape.k, team.memory());
    fill(team, weights);
    const kernels::PanelRoom room(data_.data(), dtype, scale_.data());
    team.run([&](core::Team member) {
      kernels::ops().pack_transposed(
          {.from = weights.data(), .ldf = shape.k, .n = shape.n, .k = shape.k, .to = room},
          member.share(kernels::panels_of(shape.n)));
      member.barrier();
      const auto [first, last] = member.share(count_ - 1);
      for (std::int64_t i = first; i < last; ++i)
        data_.memory().copy(data_.data() + (i + 1) * size_, data_.data(),
                            static_cast<std::size_t>(size_) * 4);
    });
  }
  int count() const { return static_cast<int>(std::clamp<std::int64_t>(count_, 8, 512)); }
  kernels::Panels turn(std::int64_t i) const {
    return {data_.data() + i % count_ * size_, dtype_,
            dtype_ == kernels::PanelDtype::kInt8 ? scale_.data() : nullptr};
  }

 private:
  kernels::PanelDtype dtype_;
  std::int64_t size_, count_;  // size in floats
  core::Buffer<float> data_, scale_;
};

// Seconds of one product.
double time_product(core::TeamRunner& team,
                    std::int64_t m,
                    const Shape& shape,
                    const Copies& weights) {
  core::Buffer<float> a(m * shape.k, team.memory()), c(m * shape.n, team.memory());
  fill(team, a);
  const auto product = [&](core::Team member, std::int64_t turn) {
    const kernels::Gemm gemm{.m = m,
                             .n = shape.n,
                             .k = shape.k,
                             .a = a.data(),
                             .lda = shape.k,
                             .b = weights.turn(turn),
                             .c = c.data(),
                             .ldc = shape.n};
    kernels::ops().gemm(gemm, {0, m}, member.share(kernels::panels_of(shape.n)));
  };
  return seconds_of(team, product, weights.count());
}

// The machine's limits. On a GPU the multiply-add limit of bf16-compute is that of tensor cores.
kernels::MachineLimits limits_of(core::TeamRunner& team, kernels::PanelDtype dtype) {
  kernels::MachineLimits limits = measure_limits(team);
  auto* const on_device = dynamic_cast<kernels::cuda::DeviceTeam*>(&team);
  if (on_device != nullptr && dtype == kernels::PanelDtype::kBf16Compute)
    limits.fma_gflops =
        cli::measure_mma_gflops(on_device->device()) / kernels::products_of_lane(dtype);
  return limits;
}

struct GemmFlags {
  std::string model, dtype = "f32";
  cli::Placement placement;
  std::vector<std::int64_t> rows = {1, 8, 32, 256};
  std::int64_t n = 0, k = 0;
  bool json = false;
};

Result<std::vector<Shape>> chosen_shapes(const GemmFlags& flags) {
  if ((flags.n > 0) != (flags.k > 0))
    return fail(ErrorCode::kConfig, "troupe bench gemm: give --n and --k together");
  if (flags.n > 0) return std::vector<Shape>{{flags.k, flags.n}};
  if (flags.model.empty())
    return std::vector<Shape>(std::begin(kUsualShapes), std::end(kUsualShapes));
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(flags.model));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  return shapes_of(spec);
}

void report(const GemmFlags& flags,
            std::int64_t m,
            const Shape& shape,
            kernels::PanelDtype dtype,
            double seconds,
            const kernels::MachineLimits& limits) {
  const double flops = 2.0 * static_cast<double>(m * shape.n * shape.k);
  const double bytes = static_cast<double>(kernels::packed_bytes(dtype, shape.n, shape.k));
  const double gflops = flops / seconds * 1e-9;
  const double share =
      limits.share_of_limit(flops / kernels::products_of_lane(dtype), bytes, seconds);
  if (flags.json) {
    print_figures({{"bench", "gemm"},
                   {"m", m},
                   {"n", shape.n},
                   {"k", shape.k},
                   {"dtype", kernels::name_of(dtype)},
                   {"device", flags.placement.device},
                   {"isa", flags.placement.device == "cpu" ? kernels::ops().name : "cuda"},
                   {"threads", limits.threads},
                   {"gflops", gflops},
                   {"gb_per_s", bytes / seconds * 1e-9},
                   {"share_of_limit", share},
                   {"fma_gflops", limits.fma_gflops},
                   {"read_gb_per_s", limits.read_gb_per_s}},
                  true);
  } else {
    std::printf("m %5ld  n %6ld  k %5ld  %7.1f GFLOP/s  %5.1f GB/s  %3.0f %% of the limit\n", m,
                shape.n, shape.k, gflops, bytes / seconds * 1e-9, 100 * share);
  }
  std::fflush(stdout);
}

}  // namespace

Result<void> bench_gemm(cli::Words words) {
  GemmFlags flags;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe bench gemm: C[m,n] = A[m,k] B[k,n] with packed weights, medians of 3",
          {{"--model", &flags.model, "take the shapes of a model"},
           {"--m", &flags.rows, "rows (default: 1,8,32,256)", false, 1, 65536},
           {"--n", &flags.n, "columns; with --k instead of a model's shapes", false, 0, 1e6},
           {"--k", &flags.k, "inner size", false, 0, 1e6},
           {"--dtype", &flags.dtype, cli::kDtypeHelp},
           {"--device", &flags.placement.device, cli::kDeviceHelp},
           {"--threads", &flags.placement.threads, "0 = all usable cores", false, 0, 1024},
           {"--json", &flags.json, "one JSON object a line"}},
          words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(dtype,
                    cli::panel_dtype("troupe bench gemm", flags.dtype, flags.placement.device));
  TROUPE_TRY_ASSIGN(shapes, chosen_shapes(flags));
  TROUPE_TRY_ASSIGN(team, cli::make_team(flags.placement));
  const kernels::MachineLimits limits = limits_of(*team, dtype);
  for (const Shape& shape : shapes) {
    const Copies weights(*team, shape, dtype);
    for (const std::int64_t m : flags.rows)
      report(flags, m, shape, dtype, time_product(*team, m, shape, weights), limits);
  }
  return {};
}

}  // namespace troupe::bench
