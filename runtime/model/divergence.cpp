#include "runtime/model/divergence.hpp"

#include "kernels/ops.hpp"
#include "kernels/scalar.hpp"
#include "runtime/core/check.hpp"

#include <algorithm>
#include <array>

namespace troupe::model {
namespace {

using kernels::kVocabBlock;
using kernels::ops;

// Log-probs and probabilities of some columns of one row.
struct Pieces {
  static constexpr std::size_t kColumns = 256;
  std::array<float, kColumns> lp, lq, p, q;

  // Computes lp and lq, and p and q where they are wanted.
  void fill(std::span<const float> z,
            std::span<const float> t,
            const RowSums& lse,
            float inverse,
            bool wants_p,
            bool wants_q) {
    const std::size_t count = z.size();
    for (std::size_t i = 0; i < count; ++i) {
      lp[i] = z[i] * inverse - lse.model;
      lq[i] = t[i] * inverse - lse.teacher;
    }
    if (wants_p) ops().exp(lp.data(), p.data(), static_cast<std::int64_t>(count));
    if (wants_q) ops().exp(lq.data(), q.data(), static_cast<std::int64_t>(count));
  }
};

// log m, or log p where neither distribution has mass.
float log_mixture(float p, float q, float lp, float beta) {
  const float m = beta * q + (1 - beta) * p;
  return m > 0 ? kernels::log_f32(m) : lp;
}

bool is_mixture(float beta) {
  return beta > 0 && beta < 1;
}

std::size_t greatest(std::span<const float> values) {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

std::int64_t ld_of(const ModelSpec& spec) {
  return kernels::panels_of(spec.vocab) * 16;
}

}  // namespace

DivergenceRow divergence_of(std::span<const float> z,
                            std::span<const float> t,
                            const RowSums& lse,
                            const TeacherRows& teacher) {
  const float beta = teacher.beta, inverse = 1.0f / teacher.temperature;
  const bool mixes = is_mixture(beta);
  double from_model = 0, from_teacher = 0;  // sums of p (..) and of q (..)
  Pieces piece;
  for (std::size_t at = 0; at < z.size(); at += Pieces::kColumns) {
    const std::size_t count = std::min(Pieces::kColumns, z.size() - at);
    piece.fill(z.subspan(at, count), t.subspan(at, count), lse, inverse, beta > 0, beta < 1);
    const auto& [lp, lq, p, q] = piece;
    for (std::size_t i = 0; i < count; ++i) {
      if (mixes) {
        const float lm = log_mixture(p[i], q[i], lp[i], beta);
        from_model += static_cast<double>(p[i]) * static_cast<double>(lp[i] - lm);
        from_teacher += static_cast<double>(q[i]) * static_cast<double>(lq[i] - lm);
      } else if (beta > 0) {
        from_model += static_cast<double>(p[i]) * static_cast<double>(lp[i] - lq[i]);
      } else {
        from_teacher += static_cast<double>(q[i]) * static_cast<double>(lq[i] - lp[i]);
      }
    }
  }
  const auto share = static_cast<double>(beta);
  DivergenceRow row;
  row.divergence = mixes      ? share * from_teacher + (1 - share) * from_model
                   : beta > 0 ? from_model
                              : from_teacher;
  row.mean = static_cast<float>(from_model);
  row.agrees = greatest(z) == greatest(t);
  return row;
}

void divergence_gradient(std::span<const float> z,
                         std::span<float> t,
                         const RowSums& lse,
                         float mean,
                         float scale,
                         const TeacherRows& teacher) {
  const float beta = teacher.beta, inverse = 1.0f / teacher.temperature;
  const bool mixes = is_mixture(beta);
  const float factor = scale * inverse * (mixes ? 1 - beta : 1.0f);
  Pieces piece;
  for (std::size_t at = 0; at < z.size(); at += Pieces::kColumns) {
    const std::size_t count = std::min(Pieces::kColumns, z.size() - at);
    piece.fill(z.subspan(at, count), t.subspan(at, count), lse, inverse, true, beta < 1);
    const auto& [lp, lq, p, q] = piece;
    for (std::size_t i = 0; i < count; ++i) {
      float slope;
      if (mixes) {
        slope = p[i] * ((lp[i] - log_mixture(p[i], q[i], lp[i], beta)) - mean);
      } else if (beta > 0) {
        slope = p[i] * ((lp[i] - lq[i]) - mean);
      } else {
        slope = p[i] - q[i];
      }
      t[at + i] = factor * slope;
    }
  }
}

void HeadDivergence::prepare(core::TeamRunner& team,
                             const ModelSpec& spec,
                             const TeacherRows* teacher,
                             std::int64_t rows,
                             std::int64_t chunk_rows) {
  teacher_ = teacher == nullptr ? TeacherRows() : *teacher;
  if (!on()) return;
  core::Memory& memory = team.memory();
  TROUPE_CHECK(memory.on_host() && teacher_.weights->memory().on_host(),
               "teachers of a trainer are in the memory of the host");
  TROUPE_CHECK(teacher_.weights->spec().vocab == spec.vocab, "a teacher has the same vocabulary");
  spec_ = &spec;
  const std::int64_t chunk = std::min(rows, chunk_rows);
  rows_.assign(static_cast<std::size_t>(rows), {});
  logits_.reserve_discard(chunk * ld_of(spec), memory);
  block_max_.reserve_discard(chunk * vocab_blocks(spec), memory);
  block_sum_.reserve_discard(chunk * vocab_blocks(spec), memory);
  lse_model_.reserve_discard(rows, memory);
  lse_teacher_.reserve_discard(rows, memory);
  inv_temperature_.reserve_discard(chunk, memory);
  for (std::int64_t i = 0; i < chunk; ++i)
    inv_temperature_[i] = 1.0f / teacher_.temperature;
}

void HeadDivergence::measure(core::Team team, const Chunk& chunk) {
  const std::int64_t ld = ld_of(*spec_), vocab = spec_->vocab;
  const std::int64_t width = teacher_.weights->spec().hidden;
  head_forward(team, *teacher_.weights, teacher_.head_in + chunk.begin * width, chunk.rows,
               logits_.data(), ld, inv_temperature_.data(), block_max_.data(), block_sum_.data());
  const core::Range own = team.share(chunk.rows);
  if (!own.empty()) {
    kernels::VocabRows rows{.logits = logits_.data(),
                            .ld = ld,
                            .vocab = vocab,
                            .inv_temperature = inv_temperature_.data(),
                            .block_max = block_max_.data(),
                            .block_sum = block_sum_.data()};
    ops().vocab_finish({.rows = rows, .lse = lse_teacher_.data() + chunk.begin, .targets = {}},
                       own);
    rows.logits = chunk.logits;
    rows.ld = chunk.ld;
    ops().vocab_sums(rows, own, {0, vocab_blocks(*spec_)});
    ops().vocab_finish({.rows = rows, .lse = lse_model_.data() + chunk.begin, .targets = {}}, own);
  }
  for (std::int64_t r = own.begin; r < own.end; ++r) {
    const std::int64_t row = chunk.begin + r;
    const auto count = static_cast<std::size_t>(vocab);
    rows_[static_cast<std::size_t>(row)] =
        divergence_of({chunk.logits + r * chunk.ld, count}, {logits_.data() + r * ld, count},
                      {lse_model_[row], lse_teacher_[row]}, teacher_);
  }
  team.barrier();
}

void HeadDivergence::gradient(const Chunk& chunk, core::Range blocks) {
  const PackedWeights& weights = *teacher_.weights;
  const std::int64_t ld = ld_of(*spec_), width = weights.spec().hidden;
  const kernels::Gemm gemm{.m = chunk.rows,
                           .n = spec_->vocab,
                           .k = width,
                           .a = teacher_.head_in + chunk.begin * width,
                           .lda = width,
                           .b = weights.head(),
                           .c = logits_.data(),
                           .ldc = ld};
  const std::int64_t begin = blocks.begin * kVocabBlock;
  const std::int64_t end = std::min(blocks.end * kVocabBlock, spec_->vocab);
  ops().gemm(gemm, {0, chunk.rows}, {begin / kernels::kPanel, kernels::panels_of(end)});
  cap_logits(weights.spec(), logits_.data() + begin, chunk.rows, ld, end - begin);
  const auto count = static_cast<std::size_t>(end - begin);
  for (std::int64_t r = 0; r < chunk.rows; ++r) {
    const auto row = static_cast<std::size_t>(chunk.begin + r);
    const std::span<const float> z(chunk.logits + r * chunk.ld + begin, count);
    const std::span<float> t(logits_.data() + r * ld + begin, count);
    divergence_gradient(z, t, {lse_model_[chunk.begin + r], lse_teacher_[chunk.begin + r]},
                        rows_[row].mean, dloss_[row], teacher_);
    if (spec_->final_softcap == 0) continue;
    for (std::size_t i = 0; i < count; ++i) {
      const float share = z[i] / spec_->final_softcap;
      t[i] *= 1 - share * share;
    }
  }
}

void HeadDivergence::add(const Chunk& chunk, core::Range blocks, float* dlogits) {
  const std::int64_t ld = ld_of(*spec_), begin = blocks.begin * kVocabBlock;
  const std::int64_t end = std::min(blocks.end * kVocabBlock, spec_->vocab);
  ops().add_rows({.columns = end - begin,
                  .a = dlogits + begin,
                  .lda = chunk.ld,
                  .b = logits_.data() + begin,
                  .ldb = ld,
                  .out = dlogits + begin,
                  .ldo = chunk.ld},
                 {0, chunk.rows});
}

}  // namespace troupe::model
