#include "runtime/learn/optim/optimizer.hpp"

#include "kernels/ops.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace troupe::learn {

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

bool offloads(const OptimSettings& optim, const core::Memory& memory) {
  return optim.offload && !memory.on_host() && optim.trained.lora.rank == 0;
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

StoreOptimizer::StoreOptimizer(const model::ParamStore& params,
                               const model::ParamLayout& trained,
                               const OptimSettings& optim)
    : params_size_(params.size()),
      trained_size_(trained.total),
      runs_(trained_runs(params.layout(), trained)),
      elements_(optim, trained, trained.total, {}, params.memory()) {}

void StoreOptimizer::step(core::TeamRunner& team,
                          model::ParamStore& params,
                          const model::ParamStore& grads,
                          double lr,
                          double grad_scale) {
  TROUPE_CHECK(params.size() == params_size_ && grads.size() == trained_size_,
               "stores of the optimiser's layouts");
  std::vector<OptimPiece> pieces;
  for (const TrainedRun& run : runs_)
    pieces.push_back({{run.moment, run.moment + run.count},
                      params.data() + run.param,
                      grads.data() + run.moment});
  elements_.begin_step(lr, grad_scale);
  elements_.step(team, pieces);
}

}  // namespace troupe::learn
