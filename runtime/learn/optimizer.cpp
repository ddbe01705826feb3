#include "runtime/learn/optimizer.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::learn {
namespace {

// Elements: members' shares begin at multiples of it, so no two write to one cache line.
constexpr std::int64_t kGrain = 64;

// Elements that visit the host at a time.
constexpr std::int64_t kVisit = std::int64_t{1} << 20;

}  // namespace

double global_norm(core::TeamRunner& team, const float* x, std::int64_t count) {
  const std::int64_t chunk = kernels::kNormChunk;
  const std::int64_t chunks = (count + chunk - 1) / chunk;
  core::Buffer<double> sums(chunks, team.memory());
  team.run([&](core::Team member) {
    const core::Range own = member.share(chunks);
    if (!own.empty())
      kernels::ops().sum_squares({.x = x, .count = count, .sums = sums.data()}, own);
  });
  std::vector<double> partial(static_cast<std::size_t>(chunks));
  sums.download(partial);
  return std::sqrt(std::accumulate(partial.begin(), partial.end(), 0.0));
}

double clip_scale(double norm, double norm_max) {
  if (norm_max == 0) return 1.0;
  return std::min(1.0, norm_max / (norm + 1e-6));
}

std::string first_nonfinite(core::TeamRunner& team, const model::ParamStore& store) {
  std::string name;
  team.run([&](core::Team member) {
    if (member.rank != 0) return;
    for (const model::ParamView& view : store.layout().views) {
      if (kernels::ops().all_finite(store.data() + view.offset, view.count)) continue;
      name = view.name;
      return;
    }
  });
  return name;
}

kernels::AdamW adamw_terms(const OptimSettings& optim,
                           std::int64_t step,
                           double lr,
                           double grad_scale) {
  kernels::AdamW a;
  a.lr = static_cast<float>(lr);
  a.beta1 = static_cast<float>(optim.beta1);
  a.beta2 = static_cast<float>(optim.beta2);
  a.eps = static_cast<float>(optim.eps);
  a.weight_decay = static_cast<float>(optim.weight_decay);
  a.grad_scale = static_cast<float>(grad_scale);
  // Computed from the betas as the kernel has them, in f32: 1 - 0.999f differs from 0.001 by 1.3e-5
  // relative, and with the double betas the first steps would have that error.
  const double t = static_cast<double>(step);
  a.correction1 = static_cast<float>(1.0 - std::pow(static_cast<double>(a.beta1), t));
  a.correction2 = static_cast<float>(1.0 - std::pow(static_cast<double>(a.beta2), t));
  return a;
}

bool offloads(const OptimSettings& optim, const core::Memory& memory) {
  return optim.offload && !memory.on_host() && optim.trained.lora.rank == 0;
}

void adamw_on_host(core::Memory& memory, const kernels::AdamW& terms, std::int64_t count) {
  kernels::flush_denormals();
  core::Buffer<float> grad(std::min(count, kVisit));
  for (std::int64_t at = 0; at < count; at += kVisit) {
    const std::int64_t size = std::min(kVisit, count - at);
    memory.download(grad.data(), terms.grad + at, static_cast<std::size_t>(size) * sizeof(float));
    kernels::AdamW piece = terms;
    piece.param = terms.param + at;
    piece.grad = grad.data();
    piece.m = terms.m + at;
    piece.v = terms.v + at;
    kernels::host_ops().adamw(piece, {0, size});
  }
}

std::vector<TrainedRun> trained_runs(const model::ParamLayout& params,
                                     const model::ParamLayout& trained) {
  if (params.total == trained.total) return {{0, 0, trained.total}};
  std::vector<TrainedRun> runs;
  for (const model::ParamView& view : trained.views) {
    const model::ParamView* param = params.find(view.name);
    TROUPE_CHECK(param != nullptr && param->count == view.count, "moments of another model");
    if (!runs.empty() && runs.back().param + runs.back().count == param->offset &&
        runs.back().moment + runs.back().count == view.offset) {
      runs.back().count += view.count;
    } else {
      runs.push_back({param->offset, view.offset, view.count});
    }
  }
  return runs;
}

AdamW::AdamW(const model::ParamStore& params,
             const std::shared_ptr<const model::ParamLayout>& trained,
             const OptimSettings& optim)
    : optim_(optim),
      params_size_(params.size()),
      runs_(trained_runs(params.layout(), *trained)),
      m_(params.spec(), trained, params.memory()),
      v_(m_.same_layout()) {}

void AdamW::step(core::TeamRunner& team,
                 model::ParamStore& params,
                 const model::ParamStore& grads,
                 double lr,
                 double grad_scale) {
  TROUPE_CHECK(params.size() == params_size_ && grads.size() == m_.size(),
               "stores of the optimiser's layouts");
  ++steps_;
  const kernels::AdamW a = adamw_terms(optim_, steps_, lr, grad_scale);
  const auto part_of = [&](const TrainedRun& run) {
    kernels::AdamW part = a;
    part.param = params.data() + run.param;
    part.grad = grads.data() + run.moment;
    part.m = m_.data() + run.moment;
    part.v = v_.data() + run.moment;
    return part;
  };
  if (&m_.memory() != &team.memory()) {
    for (const TrainedRun& run : runs_)
      adamw_on_host(team.memory(), part_of(run), run.count);
    return;
  }
  team.run([&](core::Team member) {
    for (const TrainedRun& run : runs_)
      kernels::ops().adamw(part_of(run), member.share(run.count, kGrain));
  });
}

}  // namespace troupe::learn
