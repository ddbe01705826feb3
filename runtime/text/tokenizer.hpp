// The tokenizer of a Hugging Face folder: converts text to ids and back, and knows the ids that
// begin and end a sequence. Cheap to copy: copies share one immutable tokenizer. Any number of
// threads may use it at once. Bounds: kTokenizerJson_bytes_max for the file, limits.def for what
// its steps make of a text; the caller bounds the texts.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/text/special_tokens.hpp"
#include "runtime/text/types.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct troupe_text_tokenizer;

namespace troupe::text {

inline constexpr std::size_t kTokenizerJson_bytes_max = 128u << 20;

class Tokenizer {
 public:
  // Reads tokenizer.json and, where present, tokenizer_config.json, special_tokens_map.json,
  // generation_config.json and config.json. kNotFound without a tokenizer.json; kData if a file is
  // malformed or names a special token that the vocabulary lacks.
  static core::Result<Tokenizer> load(const std::filesystem::path& folder);

  // Makes one from the bytes of a tokenizer.json and special tokens that were read before. `where`
  // names the source in errors.
  static core::Result<Tokenizer> parse(std::string_view json,
                                       SpecialTokens special,
                                       std::string where);

  core::Result<Encoding> encode(std::string_view text, EncodeOptions options = {}) const;

  // The ids of a text; with `front` behind what the tokenizer puts in front of a text by itself
  // (BOS). What it would put behind one (EOS) is left out, since a response may follow. Text that
  // no chat template wrote is encoded with `front`, whoever encodes it.
  core::Result<std::vector<TokenId>> ids(std::string_view text, bool front) const;
  // What it puts in front; often nothing.
  const std::vector<TokenId>& front() const { return state_->front; }

  // The id of a text that is one token. kConfig for any other text.
  core::Result<TokenId> single(std::string_view text) const;

  // Skips unknown ids; bytes that are not UTF-8 become U+FFFD.
  core::Result<std::string> decode(std::span<const TokenId> ids, bool skip_special = false) const;

  // The spelling in the vocabulary; nullopt for an unknown id.
  std::optional<std::string> id_to_token(TokenId id) const;
  // The bytes that the token adds to a text, which may be a part of a character; nullopt for an
  // unknown id.
  std::optional<std::string> bytes_of(TokenId id) const;
  bool is_special(TokenId id) const;

  std::size_t id_limit() const;  // one more than the largest id

  std::optional<TokenId> bos_id() const { return state_->bos; }
  // Every id that ends a sequence, that of eos_token first. Empty only if no file names one.
  const std::vector<TokenId>& eos_ids() const { return state_->eos; }
  bool is_eos(TokenId id) const;

  // The spellings, for the variables of a chat template.
  const SpecialTokens& special() const { return state_->special; }
  // The folder or name it was read from.
  const std::string& where() const { return state_->where; }

  // For StreamDecoder; lives as long as any copy of this Tokenizer.
  std::shared_ptr<const troupe_text_tokenizer> handle() const { return state_->handle; }

 private:
  struct State {
    std::shared_ptr<const troupe_text_tokenizer> handle;
    SpecialTokens special;
    std::string where;
    std::optional<TokenId> bos;
    std::vector<TokenId> eos;
    std::vector<TokenId> front;
  };
  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace troupe::text
