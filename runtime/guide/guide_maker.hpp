// Makes guides for the tokens of one model. Reads the vocabulary when it is first asked (a quarter
// of a second for 150,000 tokens), and keeps it. Any thread; `make` takes milliseconds and more, so
// do not call it on an io thread. Guides keep what they need and may outlive their maker.
#pragma once

#include "runtime/engine/token_guide.hpp"
#include "runtime/guide/grammar.hpp"
#include "runtime/guide/limits.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe::guide {

// Bounds of the work for one grammar; limits.def says what they count.
struct GuideBounds {
  std::uint64_t symbols = limits::kGuideSymbols_max;
  std::uint64_t compile_steps = limits::kGuideCompile_max;
  std::uint64_t mask_steps = limits::kGuideMask_steps_max;
  std::uint64_t mask_items = limits::kGuideMask_items_max;
  std::uint64_t row_items = limits::kGuideRow_items_max;
  std::uint64_t states = limits::kGuideStates_max;
};

class GuideMaker {
 public:
  // The bytes of a tokenizer.json, read when they are first needed.
  using ReadTokenizer = std::function<core::Result<std::string>()>;
  // `vocab`: tokens of the model, at least those of the tokenizer that it can draw.
  GuideMaker(ReadTokenizer tokenizer, std::int64_t vocab, const GuideBounds& bounds = {});
  ~GuideMaker();

  // A guide at the beginning of the grammar. Errors: kUnsupported (no library, or a tokenizer whose
  // tokens are not bytes), kInvalidArgument (no such grammar, or one that allows nothing),
  // kResources (a limit is exceeded; the message names it).
  core::Result<std::shared_ptr<const engine::TokenGuide>> make(const Grammar& grammar);

 private:
  struct Vocabulary;
  std::shared_ptr<Vocabulary> state_;
};

}  // namespace troupe::guide
