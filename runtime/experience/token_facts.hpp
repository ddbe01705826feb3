// What may be kept of each drawn token besides its log-prob: one list a fact, with one entry a
// token, or none where the fact was not asked for. The engine fills them; calls, episodes, the wire
// and the experience log carry all of them. A new fact is a member and a row here, and a field of
// TokenFacts in schema/common.capnp. Value types.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::experience {

struct TokenFacts {
  // The log of the probability, in the distribution of the log-probs, of the tokens that could be
  // drawn in the token's place: 0 when all could, less behind top-k, top-p, min-p or a guide. The
  // log-prob less this is the one under which the token was drawn, where no penalty or bias changed
  // the scores.
  std::vector<float> log_kept_mass;

  bool empty() const;
  std::uint64_t bytes() const;
  friend bool operator==(const TokenFacts&, const TokenFacts&) = default;
};

// What is done with a fact.
struct TokenFact {
  std::vector<float> TokenFacts::*list;
  std::string_view name;      // in traces
  std::string_view log_name;  // in the experience log
  float otherwise;            // value for tokens for which it was not asked
  bool learned_from;          // the policy gets it
};

inline constexpr std::array kTokenFacts = {
    TokenFact{&TokenFacts::log_kept_mass, "log_kept_mass", "kept", 0.0f, false},
};
static_assert(sizeof(TokenFacts) == kTokenFacts.size() * sizeof(std::vector<float>), "a row each");

// The facts of tokens [begin, end).
TokenFacts part_of(const TokenFacts& facts, std::size_t begin, std::size_t end);
// The facts that the policy gets.
TokenFacts learned_part(const TokenFacts& facts);
// Adds the facts of tokens [begin, end) of `from` to those of `tokens` tokens.
void append(
    TokenFacts& to, std::size_t tokens, const TokenFacts& from, std::size_t begin, std::size_t end);
// What is wrong with the facts of that many tokens: "3 of log_kept_mass"; "": nothing.
std::string wrong_count(const TokenFacts& facts, std::size_t tokens);

}  // namespace troupe::experience
