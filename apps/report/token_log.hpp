// The tokens of an update's samples, with their log-probs, as the experience log still has them: it
// keeps the updates since the last checkpoint, or all with run.keep_experience. Reads a file that a
// run may be writing and never changes it. A value type.
#pragma once

#include "apps/report/notes.hpp"
#include "runtime/text/tokenizer.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::report {

struct SampleTokens {
  std::vector<std::int32_t> ids;
  std::vector<float> logprobs;   // when sampled
  std::vector<float> reference;  // under the reference model; empty without one
  std::vector<float> teacher;    // under the teacher; empty without one
};

class TokenLog {
 public:
  // Reads the update that gave `step`; nullopt if the log has no file of it.
  static std::optional<TokenLog> read(const std::filesystem::path& file,
                                      std::uint64_t step,
                                      Notes& notes);

  // The samples of a group that were learned from, in their order: those that all rewards scored.
  // Null: the log does not have them.
  const std::vector<SampleTokens>* find(std::uint64_t slot, std::uint64_t attempt) const;

 private:
  using Place = std::pair<std::uint64_t, std::uint64_t>;  // slot and attempt
  std::map<Place, std::vector<SampleTokens>> groups_;
};

// The text of each token. A character that takes several tokens stands at its last; a token that
// the tokenizer does not have (of a larger vocabulary of the model) has none, as in the response.
class TokenTexts {
 public:
  // Loads the tokenizer of the first of these model folders that has one.
  static std::optional<TokenTexts> load(const std::vector<std::string>& models);

  // nullopt: they cannot be decoded.
  std::optional<std::vector<std::string>> of(const std::vector<std::int32_t>& ids) const;

 private:
  explicit TokenTexts(text::Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}
  text::Tokenizer tokenizer_;
};

}  // namespace troupe::report
