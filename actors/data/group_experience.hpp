// A group on its way through the data role: checked when it is delivered, and as the policy learns
// from it. Pure functions.
#pragma once

#include "actors/data/book_group.hpp"
#include "actors/data/prompt_source.hpp"
#include "actors/protocol/messages.hpp"
#include "runtime/core/foreign_text.hpp"
#include "runtime/core/result.hpp"

#include <cstdint>
#include <vector>

namespace troupe::actors::data {

// Error kData, naming the ticket: those of experience::check_delivered and check_episodes.
core::Result<void> check_delivery(const PutGroup& request);

// The ids of the longest row, without the prompt.
std::uint64_t longest_row(const std::vector<experience::Trajectory>& samples);

// What all rows of the group begin with.
const std::vector<std::int32_t>& prompt_tokens(const BookGroup& group, const Prompt& prompt);

// The group as the policy learns from it: no texts, no columns for rewards.
experience::Group experience_of(const BookGroup& group, const Prompt& prompt);

// Upper bound of its bytes in a message.
std::uint64_t bytes_of(const experience::Group& group);

// A cause that names the row of the prompt, and how it begins.
inline std::string with_row(const std::string& cause, const Prompt& prompt) {
  constexpr std::size_t kShown_bytes = 60;
  return "row " + std::to_string(prompt.row) + ", which begins " +
         core::quoted(prompt.text, kShown_bytes) + ": " + cause;
}

// Why a group with a row of this many tokens is refused.
inline std::string row_too_long(std::uint64_t tokens, std::uint64_t most) {
  return "a sample has " + std::to_string(tokens) +
         " tokens with its prompt, and the policy learns from " + std::to_string(most) +
         " at most; raise --train.micro_tokens_max, or bound the turns of the environment";
}

}  // namespace troupe::actors::data
