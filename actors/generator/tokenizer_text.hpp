// Decodes response tokens to text for the engine, without special tokens. Immutable; any thread.
#pragma once

#include "runtime/engine/engine.hpp"
#include "runtime/text/tokenizer.hpp"

#include <string>
#include <utility>

namespace troupe::actors::generator {

class TokenizerText final : public engine::TokenText {
 public:
  explicit TokenizerText(text::Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}
  std::string decode(std::span<const std::int32_t> tokens) const override {
    auto decoded = tokenizer_.decode(tokens, true);
    return decoded ? std::move(*decoded) : std::string();
  }

 private:
  text::Tokenizer tokenizer_;
};

}  // namespace troupe::actors::generator
