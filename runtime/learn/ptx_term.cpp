#include "runtime/learn/ptx_term.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/learn/step_failure.hpp"
#include "runtime/model/sequence_plan.hpp"
#include "runtime/model/train_logprobs.hpp"

#include <c10/core/GradMode.h>

#include <cmath>
#include <exception>
#include <numeric>
#include <string>
#include <utility>

namespace troupe::learn {
namespace {

constexpr std::uint64_t kPtxStream = 0x707478;  // keeps this seed apart from others of the run

}  // namespace

std::vector<std::uint64_t> ptx_order(std::uint64_t count, std::uint64_t seed, std::uint64_t pass) {
  std::vector<std::uint64_t> order(count);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  core::Rng rng(core::derive_seed(seed, kPtxStream, pass));
  for (std::uint64_t i = count; i > 1; --i)
    std::swap(order[i - 1], order[rng.next_below(i)]);
  return order;
}

PtxTerm::PtxTerm(std::shared_ptr<const PtxTexts> texts,
                 std::int64_t rows_max,
                 core::TeamRunner& team,
                 model::TrainForward& forward)
    : texts_(std::move(texts)), rows_max_(rows_max), team_(team), forward_(forward) {}

const std::vector<std::int32_t>& PtxTerm::text_at(std::uint64_t place) {
  const std::uint64_t count = texts_->texts.size();
  if (order_.empty() || place / count != pass_) {
    pass_ = place / count;
    order_ = ptx_order(count, texts_->seed, pass_);
  }
  return texts_->texts[order_[place % count]];
}

core::Result<PtxTerm::Part> PtxTerm::add(const model::PackedWeights& weights,
                                         std::uint64_t cursor) {
  Part part;
  std::int64_t rows = 0;
  std::vector<std::vector<std::uint8_t>> learn;  // all tokens but a text's first
  std::vector<model::Sequence> sequences;
  while (part.texts < texts_->texts.size()) {
    const auto& text = text_at(cursor + part.texts);
    const auto more = static_cast<std::int64_t>(text.size()) - 1;
    if (part.texts > 0 && rows + more > rows_max_) break;
    learn.emplace_back(text.size(), std::uint8_t{1}).front() = 0;
    sequences.push_back({text, learn.back()});
    rows += more;
    ++part.texts;
  }
  TROUPE_TRY(model::build_sequence_plan(sequences, weights.spec(), team_.size(), plan_));
  try {
    plan_.plan.place(team_.memory());
    const c10::AutoGradMode with_grad(true);
    const auto out = forward_.logprobs(weights, plan_.plan, plan_.targets, 1.0f, false);
    const at::Tensor nll = -out.logprobs.to(at::kDouble).mean();
    part.nll = nll.item<double>();
    if (std::isfinite(part.nll)) (texts_->coef * nll).backward();
  } catch (const std::exception& error) {
    return step_failure(error, "in the ptx term");
  }
  return part;
}

}  // namespace troupe::learn
