#include "runtime/data/answer_finder.hpp"

#include "runtime/text/messages.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace troupe::data {

using text::ChatMessage;

namespace {

// Words that begin and end in different ways, so that what they share is the template's.
constexpr std::string_view kWords[] = {"Troupe's first words: 1", "(other words of Troupe: 2)"};

std::size_t common_beginning(std::string_view a, std::string_view b) {
  const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(at.first - a.begin());
}

std::size_t common_end(std::string_view a, std::string_view b) {
  const auto at = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  return static_cast<std::size_t>(at.first - a.rbegin());
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

}  // namespace

Result<AnswerSpan> AnswerFinder::changing(std::size_t i) const {
  std::vector<ChatMessage> others(messages_.begin(), messages_.end());
  std::string texts[2];
  for (std::size_t k = 0; k < 2; ++k) {
    others[i] = text::with_words(messages_[i], std::string(kWords[k]));
    TROUPE_TRY_SET(texts[k], render_(others, false));
  }
  const std::size_t before =
      std::min(common_beginning(texts[0], texts[1]), common_beginning(full_, texts[0]));
  const std::size_t behind = std::min(
      {common_end(texts[0], texts[1]), common_end(full_, texts[0]), full_.size() - before});
  const AnswerSpan span{before, full_.size() - behind};
  const std::string_view own = std::string_view(full_).substr(before, span.end - before);
  const bool there = own.find(trimmed(messages_[i].content)) != own.npos &&
                     texts[0].find(kWords[0]) != std::string::npos;
  if (there) return span;
  return core::fail(core::ErrorCode::kData, "its words are not found in the rendered dialogue");
}

std::optional<std::string> AnswerFinder::header() const {
  for (std::size_t size = messages_.size(); size > 0; --size) {
    const auto open = render_(messages_.first(size), true);
    const auto closed = render_(messages_.first(size), false);
    if (!open || !closed || !open->starts_with(*closed) || open->size() == closed->size()) continue;
    return open->substr(closed->size());
  }
  return std::nullopt;
}

std::size_t AnswerFinder::behind_end_mark(std::size_t from,
                                          std::size_t to,
                                          std::size_t otherwise) const {
  std::size_t best = std::string::npos, end = otherwise;
  for (const text::TokenId id : tokenizer_.eos_ids()) {
    const std::string mark = tokenizer_.id_to_token(id).value_or("");
    const std::size_t at = mark.empty() ? std::string::npos : full_.find(mark, from);
    if (at >= best || at + mark.size() > to) continue;
    best = at;
    end = at + mark.size();
  }
  return end;
}

Result<AnswerSpan> AnswerFinder::find(std::size_t i) const {
  TROUPE_TRY_ASSIGN(own, changing(i));
  std::size_t from = 0, to = full_.size();
  // A neighbour whose words are not found (some templates drop a system turn) bounds nothing.
  if (i > 0) {
    if (const auto before = changing(i - 1)) from = before->end;
  }
  const bool last = i + 1 == messages_.size();
  if (!last) {
    if (const auto next = changing(i + 1)) to = next->begin;
  }
  AnswerSpan span{own.begin, behind_end_mark(own.end, to, last ? to : own.end)};
  if (const auto open = header()) {
    // What stands between the header and the answer is the answer's: an empty thinking block.
    const auto at = std::string_view(full_).substr(0, own.begin).rfind(*open);
    if (at != std::string::npos && at >= from) span.begin = at + open->size();
  }
  return span;
}

}  // namespace troupe::data
