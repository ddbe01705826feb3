#include "runtime/learn/rl/ptx_term.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/learn/lanes/even_cut.hpp"
#include "runtime/learn/torch/step_failure.hpp"
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
  core::shuffle(order, rng);
  return order;
}

PtxTerm::PtxTerm(std::shared_ptr<const PtxTexts> texts,
                 std::int64_t rows_max,
                 core::TeamRunner& team,
                 model::TrainForward& forward)
    : texts_(std::move(texts)), rows_max_(rows_max), team_(team), forward_(forward) {}

const PtxTerm::Text& PtxTerm::text_at(std::uint64_t place) {
  const std::uint64_t count = texts_->texts.size();
  if (order_.empty() || place / count != pass_) {
    pass_ = place / count;
    order_ = ptx_order(count, texts_->seed, pass_);
  }
  return texts_->texts[order_[place % count]];
}

PtxTerm::Step PtxTerm::take(std::uint64_t cursor, std::int64_t lanes) {
  Step step;
  std::vector<const Text*> texts;
  std::vector<std::int64_t> rows = {0};  // of the first i texts together
  while (texts.size() < texts_->texts.size()) {
    const Text& text = text_at(cursor + texts.size());
    const auto more = static_cast<std::int64_t>(text.size()) - 1;
    if (!texts.empty() && rows.back() + more > rows_max_) break;
    texts.push_back(&text);
    rows.push_back(rows.back() + more);
  }
  step.texts = texts.size();
  step.targets = rows.back();
  const auto cost = [&](UnitRun run) { return rows[run.end] - rows[run.begin]; };
  for (const UnitRun& run : even_cut(texts.size(), cost, static_cast<std::size_t>(lanes))) {
    step.parts.emplace_back(texts.begin() + static_cast<std::ptrdiff_t>(run.begin),
                            texts.begin() + static_cast<std::ptrdiff_t>(run.end));
  }
  return step;
}

core::Result<double> PtxTerm::add(const model::PackedWeights& weights,
                                  const Step& step,
                                  std::size_t part) {
  std::vector<std::vector<std::uint8_t>> learn;  // all tokens but a text's first
  std::vector<model::Sequence> sequences;
  for (const Text* text : step.parts[part]) {
    learn.emplace_back(text->size(), std::uint8_t{1}).front() = 0;
    sequences.push_back({*text, learn.back()});
  }
  TROUPE_TRY(model::build_sequence_plan(sequences, weights.spec(), team_.size(), plan_));
  try {
    plan_.plan.place(team_.memory());
    const c10::AutoGradMode with_grad(true);
    const auto out = forward_.logprobs(weights, plan_.plan, plan_.targets, 1.0f, false);
    const at::Tensor nll =
        -(out.logprobs.to(at::kDouble).sum() / static_cast<double>(step.targets));
    const auto value = nll.item<double>();
    if (std::isfinite(value)) (texts_->coef * nll).backward();
    return value;
  } catch (const std::exception& error) {
    return step_failure(error, "in the ptx term");
  }
}

}  // namespace troupe::learn
