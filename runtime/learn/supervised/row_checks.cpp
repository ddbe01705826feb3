#include "runtime/learn/supervised/row_checks.hpp"

#include "runtime/learn/supervised/answer_groups.hpp"
#include "runtime/model/group_plan.hpp"
#include "runtime/model/sequence_plan.hpp"

#include <string>

namespace troupe::learn {

std::int64_t row_cost(const Method& method, const data::SupervisedRow& row) {
  if (method.sequences()) return model::rows_of(model::Sequence{row.answer, row.learn});
  if (method.steps()) return model::rows_of_choice({row.answer, row.learn});
  model::SampleGroup group{row.prompt, {row.answer}};
  if (!row.rejected.empty()) group.responses.push_back(row.rejected);
  return model::rows_of(group, group_rows(method));
}

core::Result<void> check_rows(const data::SupervisedDataset& data,
                              const SupervisedSettings& settings) {
  for (std::uint64_t i = 0; i < data.size(); ++i)
    TROUPE_TRY(check_row(data.row(i), settings));
  return {};
}

core::Result<void> check_row(const data::SupervisedRow& row, const SupervisedSettings& settings) {
  const std::int64_t rows = row_cost(*settings.loss.method, row);
  if (rows <= settings.micro_tokens_max) return {};
  return core::fail(
      core::ErrorCode::kConfig,
      row.where() + " needs " + std::to_string(rows) + " rows at once, a micro-batch holds " +
          std::to_string(settings.micro_tokens_max),
      "raise --train.micro_tokens_max or lower --data.max_len with --data.drop_too_long true");
}

core::Result<void> check_settings(const SupervisedSettings& settings) {
  const LossSettings& loss = settings.loss;
  const Method& method = *loss.method;
  TROUPE_TRY(require(!method.reference || loss.beta > 0, std::string(method.beta), "above 0"));
  TROUPE_TRY(require(loss.dpo.label_smoothing >= 0 && loss.dpo.label_smoothing < 0.5,
                     "dpo.label_smoothing", "at least 0 and below 0.5"));
  if (const auto refused = refusal(loss))
    return core::fail(core::ErrorCode::kConfig, refused->key + ": " + refused->why,
                      refused->advice);
  return require(settings.micro_tokens_max >= 1, "train.micro_tokens_max", "at least 1");
}

}  // namespace troupe::learn
