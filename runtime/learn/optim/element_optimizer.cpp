#include "runtime/learn/optim/element_optimizer.hpp"

#include "kernels/ops.hpp"
#include "runtime/learn/optim/muon.hpp"

#include <algorithm>
#include <cmath>

namespace troupe::learn {
namespace {

using kernels::kNormChunk;

// Elements: members' shares begin at multiples of it, so no two write to one cache line.
constexpr std::int64_t kGrain = 64;

// Blocks of compact moments that are f32 at a time: those of a thread stay in its cache.
constexpr std::int64_t kHostBlocks = 4, kDeviceBlocks = 256;

// Blocks whose gradients visit the host at a time.
constexpr std::int64_t kVisitingBlocks = 256;

core::Range common(core::Range a, core::Range b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

core::Range all_of(std::span<const OptimPiece> pieces) {
  return {pieces.front().moments.begin, pieces.back().moments.end};
}

// The part of a piece that lies in `elements`.
OptimPiece part_of(const OptimPiece& piece, core::Range elements) {
  const core::Range part = common(piece.moments, elements);
  const std::int64_t at = part.begin - piece.moments.begin;
  return {part, piece.param + at, piece.grad + at};
}

// The elements of a member's blocks, of those that hold `elements`.
core::Range blocks_of_member(core::Team member, core::Range elements) {
  const std::int64_t first = elements.begin / kNormChunk;
  const core::Range own = member.share((elements.end + kNormChunk - 1) / kNormChunk - first);
  return common(elements, core::Range{first + own.begin, first + own.end}.times(kNormChunk));
}

}  // namespace

ElementOptimizer::ElementOptimizer(const OptimSettings& optim,
                                   const model::ParamLayout& trained,
                                   std::int64_t count,
                                   BlockPlace place,
                                   core::Memory& memory)
    : optim_(optim),
      spans_(trained, [&](const model::ParamView& view) { return kind_of(trained, view); }),
      varied_(optim.optim->muon || !optim.groups.empty()),
      place_(place),
      first_(count, optim.optim->first, place, memory),
      second_(optim.optim->adam ? count : 0, optim.optim->second, place, memory) {}

// The kinds: no group, then each group; then the same for matrices that Muon steps.
int ElementOptimizer::kind_of(const model::ParamLayout& trained,
                              const model::ParamView& tensor) const {
  const int kinds = static_cast<int>(optim_.groups.size()) + 1;
  const bool matrix = optim_.optim->muon && is_muon_matrix(trained, tensor);
  return group_of(optim_.groups, tensor.name) + 1 + (matrix ? kinds : 0);
}

ElementOptimizer::Terms ElementOptimizer::terms_of(double lr, double grad_scale, int kind) const {
  const int kinds = static_cast<int>(optim_.groups.size()) + 1;
  const bool matrix = kind >= kinds;
  const int group = kind % kinds - 1;
  double rate = lr, decay = optim_.adam.weight_decay;
  if (group >= 0) {
    const ParamGroup& own = optim_.groups[static_cast<std::size_t>(group)];
    rate *= own.lr_scale;
    decay = own.weight_decay.value_or(decay);
  }
  if (matrix) rate *= optim_.adam.lr > 0 ? optim_.muon.lr / optim_.adam.lr : 0;
  Terms terms;
  terms.by_adam = optim_.optim->adam && !matrix;
  terms.sgd.lr = static_cast<float>(rate);
  terms.sgd.momentum = static_cast<float>(optim_.sgd.momentum);
  terms.sgd.weight_decay = static_cast<float>(decay);
  terms.sgd.grad_scale = matrix ? 1.0f : static_cast<float>(grad_scale);
  kernels::AdamW& a = terms.adam;
  a.lr = static_cast<float>(rate);
  a.beta1 = static_cast<float>(optim_.adam.betas[0]);
  a.beta2 = static_cast<float>(optim_.adam.betas[1]);
  a.eps = static_cast<float>(optim_.adam.eps);
  a.weight_decay = static_cast<float>(decay);
  a.grad_scale = static_cast<float>(grad_scale);
  // Computed from the betas as the kernel has them, in f32: 1 - 0.999f differs from 0.001 by 1.3e-5
  // relative, and with the double betas the first steps would have that error.
  const double t = static_cast<double>(steps_);
  a.correction1 = static_cast<float>(1.0 - std::pow(static_cast<double>(a.beta1), t));
  a.correction2 = static_cast<float>(1.0 - std::pow(static_cast<double>(a.beta2), t));
  return terms;
}

std::uint32_t ElementOptimizer::seed(Moment which) const {
  return static_cast<std::uint32_t>(steps_) * 2u + (which == Moment::kSecond ? 1u : 0u);
}

void ElementOptimizer::begin_step(double lr, double grad_scale) {
  ++steps_;
  terms_.clear();
  for (int kind = 0; kind < 2 * (static_cast<int>(optim_.groups.size()) + 1); ++kind)
    terms_.push_back(terms_of(lr, grad_scale, kind));
}

void ElementOptimizer::step(core::TeamRunner& team, std::span<const OptimPiece> pieces) {
  if (pieces.empty()) return;
  if (&first_.memory() != &team.memory()) return step_on_host(team.memory(), pieces);
  const core::Range all = all_of(pieces);
  const std::int64_t blocks = first_.memory().on_host() ? kHostBlocks : kDeviceBlocks;
  const std::int64_t numbers = 2 * blocks * kNormChunk;
  if (first_.compact()) expanded_.reserve_discard(numbers * team.size(), first_.memory());
  team.run([&](core::Team member) {
    kernels::flush_denormals();
    const core::Range share = member.share(all.size(), kGrain);
    const core::Range own = first_.compact()
                                ? blocks_of_member(member, all)
                                : core::Range{all.begin + share.begin, all.begin + share.end};
    step_elements(kernels::ops(), own, pieces, {expanded_.data() + numbers * member.rank, blocks});
  });
}

void ElementOptimizer::step_on_host(core::Memory& memory, std::span<const OptimPiece> pieces) {
  kernels::flush_denormals();
  const core::Range all = all_of(pieces);
  const std::int64_t visiting = kVisitingBlocks * kNormChunk;
  core::Buffer<float> grads(std::min(visiting, all.size()));
  if (first_.compact()) expanded_.reserve_discard(2 * kHostBlocks * kNormChunk, first_.memory());
  for (std::int64_t begin = all.begin; begin < all.end; begin += visiting) {
    const core::Range visit{begin, std::min(begin + visiting, all.end)};
    std::vector<OptimPiece> here;
    for (const OptimPiece& piece : pieces) {
      OptimPiece part = part_of(piece, visit);
      if (part.moments.empty()) continue;
      float* const grad = grads.data() + (part.moments.begin - begin);
      memory.download(grad, part.grad,
                      static_cast<std::size_t>(part.moments.size()) * sizeof(float));
      part.grad = grad;
      here.push_back(part);
    }
    step_elements(kernels::host_ops(), visit, here, {expanded_.data(), kHostBlocks});
  }
}

void ElementOptimizer::step_elements(const kernels::Ops& ops,
                                     core::Range elements,
                                     std::span<const OptimPiece> pieces,
                                     const Room& room) {
  if (elements.empty()) return;
  if (!first_.compact()) {
    float* const second = second_.size() > 0 ? second_.floats() + elements.begin : nullptr;
    return step_window(ops, {elements, first_.floats() + elements.begin, second}, pieces);
  }
  float* const first = room.at;
  float* const second = room.at + room.blocks * kNormChunk;
  const std::int64_t end = (elements.end + kNormChunk - 1) / kNormChunk;
  for (std::int64_t begin = elements.begin / kNormChunk; begin < end; begin += room.blocks) {
    const core::Range blocks{begin, std::min(begin + room.blocks, end)};
    const kernels::CompactMoment m = first_.operands(blocks.begin, first, seed(Moment::kFirst));
    const kernels::CompactMoment v = second_.operands(blocks.begin, second, seed(Moment::kSecond));
    ops.expand_moment(m, blocks);
    ops.expand_moment(v, blocks);
    step_window(ops, {blocks.times(kNormChunk), first, second}, pieces);
    ops.compress_moment(m, blocks);
    ops.compress_moment(v, blocks);
  }
}

void ElementOptimizer::step_window(const kernels::Ops& ops,
                                   const Window& window,
                                   std::span<const OptimPiece> pieces) const {
  for (const OptimPiece& piece : pieces) {
    const OptimPiece part = part_of(piece, window.elements);
    if (part.moments.empty()) continue;
    each_kind(part.moments, [&](core::Range some, const Terms& terms) {
      const std::int64_t in_part = some.begin - part.moments.begin;
      const std::int64_t in_window = some.begin - window.elements.begin;
      if (terms.by_adam) {
        kernels::AdamW a = terms.adam;
        a.param = part.param + in_part;
        a.grad = part.grad + in_part;
        a.m = window.first + in_window;
        a.v = window.second + in_window;
        ops.adamw(a, {0, some.size()});
      } else {
        kernels::Sgd s = terms.sgd;
        s.param = part.param + in_part;
        s.grad = part.grad + in_part;
        s.m = optim_.optim->muon ? nullptr : window.first + in_window;
        ops.sgd(s, {0, some.size()});
      }
    });
  }
}

void ElementOptimizer::each_kind(core::Range elements,
                                 const std::function<void(core::Range, const Terms&)>& use) const {
  if (!varied_) return use(elements, terms_.front());
  // Elements of neighbouring blocks here may be far apart in the whole.
  for (std::int64_t begin = elements.begin; begin < elements.end;) {
    const std::int64_t block = begin / kNormChunk;
    const std::int64_t end = std::min(elements.end, (block + 1) * kNormChunk);
    const std::int64_t moved =
        (block * place_.step + place_.at - block) * kNormChunk;  // to the whole's elements
    spans_.each({begin + moved, end + moved}, [&](core::Range part, int kind) {
      use({part.begin - moved, part.end - moved}, terms_[static_cast<std::size_t>(kind)]);
    });
    begin = end;
  }
}

}  // namespace troupe::learn
