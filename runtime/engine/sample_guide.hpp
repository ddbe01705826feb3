// The guide of one sample: the tokens that its next draw may return, made of what its grammar
// allows and of the tokens that end a sample. Part of a SampleState, on the engine's thread; the
// team reads `allowed` while it draws. It survives preemption with its sample's tokens, so a
// sample that is computed again goes on from the same state. Bound: one mask, and the guide's own.
#pragma once

#include "runtime/engine/token_guide.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe::engine {

// The tokens that end samples of a group.
struct EndTokens {
  std::span<const std::int32_t> all;      // any of these; ascending
  std::span<const std::int32_t> model{};  // those of the model that count; part of `all`
};

class SampleGuide {
 public:
  explicit SampleGuide(std::unique_ptr<TokenGuide> guide) : guide_(std::move(guide)) {}

  enum class Next : std::uint8_t {
    kDraw,      // `allowed` has tokens
    kComplete,  // the text is complete, and no token ends it
    kNone       // no token may follow; `why` says why
  };
  // Finds the tokens of the next draw. Where the text may end, `ends.all` are allowed, too; where
  // it may not, `ends.model` are not, whatever the grammar says of their text. `early`: no end yet,
  // unless nothing else is allowed.
  Next look(const EndTokens& ends, bool early);
  // Goes on by a drawn token, which ended nothing.
  Next take(std::int32_t token, const EndTokens& ends, bool early);

  std::span<const std::uint32_t> allowed() const { return allowed_; }  // as GuideMask::words
  const std::string& why() const { return why_; }

 private:
  bool any() const;
  void set(std::span<const std::int32_t> tokens, bool value);

  std::unique_ptr<TokenGuide> guide_;
  std::vector<std::uint32_t> allowed_, without_ends_;
  std::string why_;
};

}  // namespace troupe::engine
