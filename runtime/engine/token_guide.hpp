// What a sample may draw next, by a grammar over its tokens: the interface that an engine asks
// before and after each draw. Implementations lie in rooms above (runtime/guide).
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace troupe::engine {

// The tokens that go on with the text, and whether it may end. Which tokens end a sample is the
// engine's business, so a grammar names none of them.
struct GuideMask {
  std::span<const std::uint32_t> words;  // token t is bit t % 32 of words[t / 32]
  bool may_end = false;
};

// The number of words of a mask for a vocabulary.
constexpr std::size_t mask_words(std::int64_t vocab) {
  return static_cast<std::size_t>((vocab + 31) / 32);
}

// The state of one text. One thread at a time.
class TokenGuide {
 public:
  virtual ~TokenGuide() = default;
  // A guide of its own in the same state. Nothing that happens to one changes the other's masks.
  virtual core::Result<std::unique_ptr<TokenGuide>> clone() const = 0;
  // The mask of the next draw, valid until the next call; a function of the tokens taken alone.
  // Empty, and without an end: no text of the grammar begins as this one does. Errors: kResources
  // (the mask would take more than its limits; the message names the limit).
  virtual core::Result<GuideMask> mask() = 0;
  // Goes on by a token of the latest mask.
  virtual core::Result<void> take(std::int32_t token) = 0;
  // The grammar as text, by which another process makes the same guide at its beginning
  // (guide::text_of). Empty: of a clone.
  virtual std::string source() const { return {}; }
};

}  // namespace troupe::engine
