#include "runtime/experience/token_facts.hpp"

namespace troupe::experience {
namespace {

std::vector<float> slice(const std::vector<float>& list, std::size_t begin, std::size_t end) {
  return {list.begin() + static_cast<std::ptrdiff_t>(begin),
          list.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

bool TokenFacts::empty() const {
  return bytes() == 0;
}

std::uint64_t TokenFacts::bytes() const {
  std::uint64_t bytes = 0;
  for (const TokenFact& fact : kTokenFacts)
    bytes += (this->*fact.list).size() * sizeof(float);
  return bytes;
}

TokenFacts part_of(const TokenFacts& facts, std::size_t begin, std::size_t end) {
  TokenFacts part;
  for (const TokenFact& fact : kTokenFacts) {
    const std::vector<float>& list = facts.*fact.list;
    if (!list.empty()) part.*fact.list = slice(list, begin, end);
  }
  return part;
}

TokenFacts learned_part(const TokenFacts& facts) {
  TokenFacts part;
  for (const TokenFact& fact : kTokenFacts)
    if (fact.learned_from) part.*fact.list = facts.*fact.list;
  return part;
}

void append(TokenFacts& to,
            std::size_t tokens,
            const TokenFacts& from,
            std::size_t begin,
            std::size_t end) {
  for (const TokenFact& fact : kTokenFacts) {
    const std::vector<float>& added = from.*fact.list;
    std::vector<float>& list = to.*fact.list;
    if (added.empty() && list.empty()) continue;
    list.resize(tokens, fact.otherwise);
    if (added.empty()) {
      list.resize(tokens + end - begin, fact.otherwise);
    } else {
      list.insert(list.end(), added.begin() + static_cast<std::ptrdiff_t>(begin),
                  added.begin() + static_cast<std::ptrdiff_t>(end));
    }
  }
}

std::string wrong_count(const TokenFacts& facts, std::size_t tokens) {
  for (const TokenFact& fact : kTokenFacts) {
    const std::size_t count = (facts.*fact.list).size();
    if (count != 0 && count != tokens)
      return std::to_string(count) + " of " + std::string(fact.name);
  }
  return "";
}

}  // namespace troupe::experience
