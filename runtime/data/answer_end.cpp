#include "runtime/data/answer_end.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace troupe::data {
namespace {

constexpr std::string_view kWordsOfAnswer = "Troupe's answer";

std::string spelling(const text::Tokenizer& tokenizer, std::int32_t id) {
  return tokenizer.id_to_token(id).value_or("token " + std::to_string(id));
}

}  // namespace

std::optional<std::string> answer_end_note(const text::Tokenizer& tokenizer,
                                           const text::ChatTemplate& chat,
                                           std::span<const std::int32_t> ends) {
  const std::vector<text::ChatMessage> turns = {{"user", "Troupe's question"},
                                                {"assistant", std::string(kWordsOfAnswer)}};
  const auto rendered = chat.render(turns, text::RenderOptions::with({}, false));
  if (!rendered) return std::nullopt;
  const std::size_t at = rendered->rfind(kWordsOfAnswer);
  if (at == rendered->npos) return std::nullopt;
  const auto encoded = tokenizer.encode(rendered->substr(at + kWordsOfAnswer.size()));
  if (!encoded) return std::nullopt;
  const auto is_end = [&](std::int32_t id) { return std::ranges::count(ends, id) > 0; };
  if (std::ranges::any_of(encoded->ids, is_end)) return std::nullopt;
  const auto mark =
      std::ranges::find_if(encoded->ids, [&](std::int32_t id) { return tokenizer.is_special(id); });
  if (mark == encoded->ids.end()) return std::nullopt;
  std::string names;
  for (const std::int32_t id : ends)
    names += (names.empty() ? "" : ", ") + spelling(tokenizer, id);
  return "the chat template ends an answer with " + spelling(tokenizer, *mark) +
         ", which is none of the model's end tokens (" + (names.empty() ? "none" : names) +
         "), so responses continue after it; add its id " + std::to_string(*mark) +
         " to eos_token_id in the generation_config.json of the model folder";
}

}  // namespace troupe::data
