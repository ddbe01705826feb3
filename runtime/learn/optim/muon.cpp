#include "runtime/learn/optim/muon.hpp"

#include "kernels/ops.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::learn {
namespace {

constexpr std::int64_t kBlock = BlockShards::kBlock;
constexpr std::int64_t kMuonGrain = 64;

}  // namespace

bool is_muon_matrix(const model::ParamLayout& layout, const model::ParamView& view) {
  return view.shape.size() == 2 && std::min(view.shape[0], view.shape[1]) > 1 &&
         view.offset != layout.embedding && view.offset != layout.head;
}

MuonDirections::MuonDirections(const MuonSettings& settings,
                               const model::ParamLayout& trained,
                               core::TeamRunner& team,
                               RankGroup* group,
                               ShardMover* mover)
    : settings_(settings), team_(team), group_(group), mover_(mover), orthogonalizer_(team) {
  for (const model::ParamView& view : trained.views) {
    if (is_muon_matrix(trained, view))
      matrices_.push_back({view.offset, view.shape[0], view.shape[1]});
  }
}

core::Range MuonDirections::own(const MatrixPlace& matrix) const {
  const std::int64_t end = matrix.offset + matrix.count();
  if (mover_ == nullptr) return {matrix.offset, end};
  const auto own_before = [&](std::int64_t element) {
    return BlockShards(element, group_->size()).elements(group_->rank());
  };
  return {own_before(matrix.offset), own_before(end)};
}

core::Range MuonDirections::turns_of(const MatrixPlace& matrix) const {
  const std::int64_t turn = kBlock * mover_->shards().ranks();
  return {matrix.offset / turn, (matrix.offset + matrix.count() + turn - 1) / turn};
}

void MuonDirections::add_momentum(core::Range elements,
                                  float* grads,
                                  float* momenta,
                                  float grad_scale) {
  if (elements.empty()) return;
  const auto momentum = static_cast<float>(settings_.momentum);
  const float share = (1.0f - momentum) * grad_scale;
  float *const g = grads + elements.begin, *const m = momenta + elements.begin;
  blocks_.reserve_discard(elements.size(), team_.memory());
  float* const moved = blocks_.data();
  team_.run([&](core::Team member) {
    kernels::flush_denormals();
    const core::Range own = member.share(elements.size(), kMuonGrain);
    if (own.empty()) return;
    const kernels::Ops& ops = kernels::ops();
    const auto add = [&](const float* a, const float* b, float* to) {
      ops.add_rows(
          {.columns = own.size(), .a = a + own.begin, .b = b + own.begin, .out = to + own.begin},
          {0, 1});
    };
    ops.scale(g, share, g, own);
    ops.scale(m, momentum, m, own);
    add(m, g, m);
    if (!settings_.nesterov) return ops.scale(m, 1.0f, g, own);
    ops.scale(m, momentum, moved, own);
    add(g, moved, g);
  });
}

void MuonDirections::direct(float* u, const MatrixPlace& matrix) {
  orthogonalizer_.run(u, matrix.rows, matrix.columns, settings_.ns_steps);
  const double by = std::sqrt(
      std::max(1.0, static_cast<double>(matrix.rows) / static_cast<double>(matrix.columns)));
  team_.run([&](core::Team member) {
    const core::Range own = member.share(matrix.count(), kMuonGrain);
    if (!own.empty()) kernels::ops().scale(u, static_cast<float>(by), u, own);
  });
}

core::Result<void> MuonDirections::replace(float* grads, float* momenta, double grad_scale) {
  for (const MatrixPlace& matrix : matrices_)
    add_momentum(own(matrix), grads, momenta, static_cast<float>(grad_scale));
  return mover_ == nullptr ? replace_whole(grads) : replace_blocks(grads);
}

core::Result<void> MuonDirections::replace_whole(float* grads) {
  const std::size_t ranks = group_ == nullptr ? 1 : static_cast<std::size_t>(group_->size());
  const std::size_t rank = group_ == nullptr ? 0 : static_cast<std::size_t>(group_->rank());
  for (std::size_t i = rank; i < matrices_.size(); i += ranks)
    direct(grads + matrices_[i].offset, matrices_[i]);
  if (ranks == 1) return {};
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    const MatrixPlace& matrix = matrices_[i];
    TROUPE_TRY(group_->gang().broadcast(
        static_cast<int>(i % ranks),
        {grads + matrix.offset, static_cast<std::size_t>(matrix.count()) * sizeof(float)},
        team_.memory()));
  }
  return {};
}

// As many matrices at a time as there are ranks, each computed by one.
core::Result<void> MuonDirections::replace_blocks(float* grads) {
  const auto ranks = static_cast<std::size_t>(group_->size());
  const auto rank = static_cast<std::size_t>(group_->rank());
  const BlockShards& shards = mover_->shards();
  const auto bytes = [](std::int64_t floats) {
    return static_cast<std::size_t>(floats) * sizeof(float);
  };
  for (std::size_t first = 0; first < matrices_.size(); first += ranks) {
    const std::size_t end = std::min(first + ranks, matrices_.size());
    for (std::size_t i = first; i < end; ++i) {
      const MatrixPlace& matrix = matrices_[i];
      const core::Range turns = turns_of(matrix);
      const core::Range all = shards.in_buffer(turns);
      window_.reserve_discard(all.size(), team_.memory());
      for (std::int64_t at = turns.begin; at < turns.end; at += mover_->turns_at_once()) {
        const core::Range some{at, std::min(at + mover_->turns_at_once(), turns.end)};
        TROUPE_TRY(mover_->gather(some, grads + shards.in_shard(group_->rank(), some).begin,
                                  window_.data() + (shards.in_buffer(some).begin - all.begin)));
      }
      if (i != first + rank) continue;
      mine_.reserve_discard(matrix.count(), team_.memory());
      team_.memory().copy(mine_.data(), window_.data() + (matrix.offset - all.begin),
                          bytes(matrix.count()));
      direct(mine_.data(), matrix);
    }
    for (std::size_t i = first; i < end; ++i) {
      const MatrixPlace& matrix = matrices_[i];
      const core::Range turns = turns_of(matrix);
      const core::Range all = shards.in_buffer(turns);
      window_.reserve_discard(all.size(), team_.memory());
      float* const inside = window_.data() + (matrix.offset - all.begin);
      if (i == first + rank) team_.memory().copy(inside, mine_.data(), bytes(matrix.count()));
      TROUPE_TRY(group_->gang().broadcast(static_cast<int>(i - first),
                                          {inside, bytes(matrix.count())}, team_.memory()));
      const core::Range part = shards.in_shard(group_->rank(), turns);
      blocks_.reserve_discard(part.size(), team_.memory());
      team_.run([&](core::Team member) {
        shards.pack(member, window_.data(), group_->rank(), turns, blocks_.data());
      });
      const core::Range here = own(matrix);
      if (!here.empty())
        team_.memory().copy(grads + here.begin, blocks_.data() + (here.begin - part.begin),
                            bytes(here.size()));
    }
  }
  return {};
}

}  // namespace troupe::learn
