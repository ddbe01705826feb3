#include "apps/session/roles/policy_settings.hpp"

#include "apps/session/roles/learn_settings.hpp"
#include "runtime/data/prompt_dataset.hpp"
#include "runtime/model/spec.hpp"
#include "runtime/text/tokenizer.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::app {
namespace {

// Pieces of at most `size` tokens; a last piece of one token has nothing to predict.
void add_pieces(const std::vector<std::int32_t>& tokens,
                std::size_t size,
                std::vector<std::vector<std::int32_t>>& to) {
  for (std::size_t begin = 0; begin + 1 < tokens.size(); begin += size) {
    const std::size_t end = std::min(begin + size, tokens.size());
    if (end - begin < 2) return;
    to.emplace_back(tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                    tokens.begin() + static_cast<std::ptrdiff_t>(end));
  }
}

core::Result<std::shared_ptr<const learn::PtxTexts>> load_texts(
    const config::TrainConfig& config, const std::filesystem::path& model) {
  TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(model));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(model));
  data::DatasetColumns columns;
  columns.input_key = config.data.input_key;
  columns.known_formats = false;
  TROUPE_TRY_ASSIGN(rows, data::load_prompts(config.data.pretrain_dataset, columns));
  auto texts = std::make_shared<learn::PtxTexts>();
  texts->coef = config.actor.ptx_coef;
  texts->seed = static_cast<std::uint64_t>(config.train.seed);
  const auto size =
      static_cast<std::size_t>(std::min<std::int64_t>(config.train.micro_tokens_max, spec.context));
  for (const data::PromptRow& row : rows) {
    if (!row.messages.empty()) {
      return core::fail(core::ErrorCode::kData,
                        row.where + ": data.pretrain_dataset holds texts, this row has messages");
    }
    TROUPE_TRY_ASSIGN(encoding, tokenizer.encode(row.prompt));
    std::vector<std::int32_t> tokens(encoding.ids.begin(), encoding.ids.end());
    if (!tokenizer.eos_ids().empty()) tokens.push_back(tokenizer.eos_ids().front());
    add_pieces(tokens, size, texts->texts);
  }
  if (texts->texts.empty()) {
    return core::fail(core::ErrorCode::kData,
                      config.data.pretrain_dataset + ": no text has two tokens");
  }
  return std::shared_ptr<const learn::PtxTexts>(std::move(texts));
}

}  // namespace

core::Result<learn::TrainerSettings> policy_settings(const config::TrainConfig& config,
                                                     std::uint64_t updates,
                                                     const std::filesystem::path& model) {
  learn::TrainerSettings settings = trainer_settings(config, updates);
  if (config.data.pretrain_dataset.empty()) return settings;
  TROUPE_TRY_SET(settings.ptx, load_texts(config, model));
  return settings;
}

}  // namespace troupe::app
