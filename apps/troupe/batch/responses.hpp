// The responses of one side of a comparison: those that a model samples, or those of a file that
// was made before.
#pragma once

#include "apps/troupe/batch/prompt_flags.hpp"
#include "runtime/core/result.hpp"
#include "runtime/data/prompt_dataset.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::app {

struct Response {
  std::string text;
  double characters = 0;  // UTF-8 code points
  double tokens = -1;     // below 0: not known
};

// By prompt, then by sample.
using Responses = std::vector<std::vector<Response>>;

Response response_of(std::string text, double tokens);

// The prompts that are compared. A row of a file belongs to the prompt of its column prompt_id,
// else to the first prompt with the same text or messages.
class ComparedPrompts {
 public:
  // The rows of the flags' data; without any, the prompts of `file`, each once.
  static Result<ComparedPrompts> load(const PromptFlags& flags, const std::string& file);

  const std::vector<data::PromptRow>& rows() const { return rows_; }
  // Reads the responses (column `response`, length column `response_tokens` if there) of a .jsonl
  // file. Errors (kData) with file:line: no response, a prompt that is not among these, another
  // prompt under its prompt_id.
  Result<Responses> responses(const PromptFlags& flags,
                              const std::string& file,
                              const std::string& response_key) const;

 private:
  void add(data::PromptRow row, const std::string& id);

  std::vector<data::PromptRow> rows_;
  std::map<std::string, std::size_t> by_id_, by_text_;
};

}  // namespace troupe::app
