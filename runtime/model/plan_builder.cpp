#include "runtime/model/plan_builder.hpp"

#include <algorithm>
#include <functional>

namespace troupe::model {
namespace {

using kernels::kKvBlock;

std::int32_t narrow(std::int64_t value) {
  return static_cast<std::int32_t>(value);
}
std::int64_t blocks_for(std::int64_t tokens) {
  return (tokens + kKvBlock - 1) / kKvBlock;
}
bool ascending_below(std::span<const std::uint32_t> indices, std::size_t end) {
  return std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) ==
             indices.end() &&
         indices.back() < end;
}

// Goes through the indices of a response's tokens, in order, and says which are targets.
class TargetsOf {
 public:
  TargetsOf(const SampleGroup& group, std::size_t response) : all_(!group.chooses(response)) {
    if (!all_) left_ = group.targets[response];
  }
  // Call it with each index in turn.
  bool take(std::size_t index) {
    if (all_) return true;
    if (left_.empty() || left_.front() != index) return false;
    left_ = left_.subspan(1);
    return true;
  }

 private:
  bool all_;
  std::span<const std::uint32_t> left_;
};

}  // namespace

PlanBuilder::PlanBuilder(GroupPlan& out, GroupRows rows)
    : plan_(out.plan), targets_(out.targets), rows_(rows) {
  plan_.clear();
  targets_.row.clear();
  targets_.token.clear();
}

core::Result<void> PlanBuilder::check(const SampleGroup& group,
                                      const ModelSpec& spec,
                                      const std::string& where) const {
  const auto refuse = [](const std::string& place, const std::string& why) {
    return core::fail(core::ErrorCode::kData, place + ": " + why);
  };
  if (group.prompt.empty()) return refuse(where, "empty prompt");
  TROUPE_TRY(check_tokens(group.prompt, spec, where + ", prompt"));
  const bool last = rows_ == GroupRows::kLast;
  for (std::size_t i = 0; i < group.responses.size(); ++i) {
    const auto response = group.responses[i];
    const std::string sample = where + ", sample " + std::to_string(i);
    if (last && response.empty()) return refuse(sample, "an empty response has no last token");
    TROUPE_TRY(check_tokens(response, spec, sample));
    if (group.chooses(i) && !ascending_below(group.targets[i], response.size())) {
      return refuse(sample, "its targets are no ascending indices of its " +
                                std::to_string(response.size()) + " tokens");
    }
    const std::int64_t rows = std::ssize(group.prompt) + own_rows(response, rows_);
    if (rows <= spec.context) continue;
    return refuse(sample, std::to_string(last ? rows : rows + 1) +
                              " tokens exceed the context of " + std::to_string(spec.context));
  }
  return {};
}

void PlanBuilder::add(const SampleGroup& group) {
  plan_.group_begin.push_back(narrow(std::ssize(plan_.segments)));
  const std::int64_t prompt = std::ssize(group.prompt);
  const std::int64_t prompt_block = next_block_;
  next_block_ += blocks_for(prompt);
  prompt_table_ = std::ssize(plan_.block_table);
  for (std::int64_t b = prompt_block; b < next_block_; ++b) {
    plan_.block_table.push_back(narrow(b));
  }
  // The samples' own blocks follow the prompt's full ones. They are reserved before the prompt's
  // rows are placed, because the last of those rows are written to them too.
  const std::int64_t full = prompt / kKvBlock;
  own_block_.clear();
  for (const auto response : group.responses) {
    own_block_.push_back(next_block_);
    if (own_rows(response, rows_) > 0)
      next_block_ += blocks_for(prompt + own_rows(response, rows_)) - full;
  }
  add_prompt(group, prompt_block);
  for (std::size_t i = 0; i < group.responses.size(); ++i) {
    add_sample(group, i, own_block_[i]);
  }
}

void PlanBuilder::finish(const ModelSpec& spec, int members) {
  plan_.group_begin.push_back(narrow(std::ssize(plan_.segments)));
  plan_.slot_begin.push_back(narrow(std::ssize(plan_.slots)));
  plan_.finish(spec.kv_heads, members, 1, spec.layer_windows());
}

void PlanBuilder::add_row(std::int32_t token, std::int64_t position) {
  plan_.tokens.push_back(token);
  plan_.positions.push_back(narrow(position));
  plan_.slot_begin.push_back(narrow(std::ssize(plan_.slots)));
}

void PlanBuilder::add_prompt(const SampleGroup& group, std::int64_t prompt_block) {
  const std::int64_t prompt = std::ssize(group.prompt);
  const std::int64_t full = prompt / kKvBlock;
  plan_.segments.push_back({narrow(plan_.rows()), narrow(prompt), 0, narrow(prompt_table_)});
  for (std::int64_t p = 0; p < prompt; ++p) {
    add_row(group.prompt[static_cast<std::size_t>(p)], p);
    plan_.slots.push_back(narrow(prompt_block * kKvBlock + p));
    if (p < full * kKvBlock) continue;
    for (std::size_t i = 0; i < group.responses.size(); ++i) {
      if (own_rows(group.responses[i], rows_) == 0) continue;
      plan_.slots.push_back(narrow(own_block_[i] * kKvBlock + p - full * kKvBlock));
    }
  }
  bool wanted = false;
  for (std::size_t i = 0; i < group.responses.size(); ++i) {
    wanted = wanted || (rows_ == GroupRows::kPredicting && !group.responses[i].empty() &&
                        TargetsOf(group, i).take(0));
  }
  prompt_logit_row_ = narrow(std::ssize(plan_.logit_rows));
  if (wanted) plan_.logit_rows.push_back(narrow(plan_.rows() - 1));
}

void PlanBuilder::add_sample(const SampleGroup& group, std::size_t index, std::int64_t own_block) {
  const std::span<const std::int32_t> response = group.responses[index];
  if (response.empty()) return;
  const bool last_only = rows_ == GroupRows::kLast;
  TargetsOf targets(group, index);
  if (!last_only && targets.take(0)) add_target(prompt_logit_row_, response[0]);
  const std::int64_t rows = own_rows(response, rows_);
  if (rows == 0) return;
  const std::int64_t prompt = std::ssize(group.prompt);
  const std::int64_t full = prompt / kKvBlock;
  const std::int64_t table = std::ssize(plan_.block_table);
  for (std::int64_t b = 0; b < blocks_for(prompt + rows); ++b) {
    const std::int32_t shared = b < full
                                    ? plan_.block_table[static_cast<std::size_t>(prompt_table_ + b)]
                                    : narrow(own_block + b - full);
    plan_.block_table.push_back(shared);
  }
  plan_.segments.push_back({narrow(plan_.rows()), narrow(rows), narrow(prompt), narrow(table)});
  for (std::int64_t i = 0; i < rows; ++i) {
    add_row(response[static_cast<std::size_t>(i)], prompt + i);
    plan_.slots.push_back(narrow(own_block * kKvBlock + prompt + i - full * kKvBlock));
    if (last_only || !targets.take(static_cast<std::size_t>(i + 1))) continue;
    add_target(narrow(std::ssize(plan_.logit_rows)), response[static_cast<std::size_t>(i + 1)]);
    plan_.logit_rows.push_back(narrow(plan_.rows() - 1));
  }
  if (last_only) plan_.logit_rows.push_back(narrow(plan_.rows() - 1));
}

void PlanBuilder::add(std::span<const std::int32_t> tokens, std::span<const std::uint8_t> learn) {
  std::size_t rows = tokens.size();  // up to the last target, which is then excluded
  while (rows > 0 && learn[rows - 1] == 0)
    --rows;
  if (rows < 2) return;
  add_sequence(tokens, rows - 1, [&](std::size_t i) {
    if (learn[i + 1] == 0) return;
    add_target(narrow(std::ssize(plan_.logit_rows)), tokens[i + 1]);
    plan_.logit_rows.push_back(narrow(plan_.rows() - 1));
  });
}

void PlanBuilder::add(std::span<const std::int32_t> tokens,
                      std::span<const std::uint8_t> learn,
                      std::span<const std::int32_t> choices) {
  std::size_t rows = tokens.size();
  while (rows > 0 && learn[rows - 1] == 0)
    --rows;
  if (rows == 0) return;
  add_sequence(tokens, rows, [&](std::size_t i) {
    if (learn[i] == 0) return;
    for (const std::int32_t choice : choices)
      add_target(narrow(std::ssize(plan_.logit_rows)), choice);
    plan_.logit_rows.push_back(narrow(plan_.rows() - 1));
  });
}

template <class TargetsOf>
void PlanBuilder::add_sequence(std::span<const std::int32_t> tokens,
                               std::size_t rows,
                               TargetsOf targets_of) {
  plan_.group_begin.push_back(narrow(std::ssize(plan_.segments)));
  const std::int64_t table = std::ssize(plan_.block_table);
  const auto count = static_cast<std::int64_t>(rows);
  plan_.segments.push_back({narrow(plan_.rows()), narrow(count), 0, narrow(table)});
  for (std::size_t i = 0; i < rows; ++i) {
    const auto position = static_cast<std::int64_t>(i);
    add_row(tokens[i], position);
    plan_.slots.push_back(narrow(next_block_ * kKvBlock + position));
    targets_of(i);
  }
  for (std::int64_t b = 0; b < blocks_for(count); ++b) {
    plan_.block_table.push_back(narrow(next_block_ + b));
  }
  next_block_ += blocks_for(count);
}

void PlanBuilder::add_target(std::int32_t row, std::int32_t token) {
  targets_.row.push_back(row);
  targets_.token.push_back(token);
}

core::Result<void> check_tokens(std::span<const std::int32_t> tokens,
                                const ModelSpec& spec,
                                const std::string& where) {
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < spec.vocab) continue;
    return core::fail(core::ErrorCode::kData, where + ": token id " + std::to_string(token) +
                                                  " is outside the vocabulary of " +
                                                  std::to_string(spec.vocab) + " tokens");
  }
  return {};
}

}  // namespace troupe::model
