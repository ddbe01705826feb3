// A tokenizer for the tiny models of benchmarks and tests: token b (0 to 255) is the byte b, and
// token 256 ends a text.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace troupe::cli {

inline constexpr unsigned kByteTokenizer_end = 256;
inline constexpr const char* kByteTokenizerConfig =
    R"({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>"})";

// The content of the tokenizer.json; kByteTokenizerConfig is that of tokenizer_config.json.
inline nlohmann::json byte_tokenizer() {
  nlohmann::json tokenizer = nlohmann::json::parse(R"({
    "version": "1.0",
    "truncation": null,
    "padding": null,
    "added_tokens": [{"id": 256, "content": "<|end|>", "single_word": false, "lstrip": false,
                      "rstrip": false, "normalized": false, "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                      "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                "use_regex": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
              "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
              "vocab": {"<|end|>": 256}, "merges": []}
  })");
  // GPT-2's alphabet: a byte that is no printable character stands as a letter from U+0100 on.
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool prints =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const unsigned point = prints ? byte : next++;
    std::string letter;
    if (point >= 0x80) letter += static_cast<char>(0xC0 | (point >> 6));
    letter += static_cast<char>(point >= 0x80 ? 0x80 | (point & 0x3F) : point);
    tokenizer["model"]["vocab"][letter] = byte;
  }
  return tokenizer;
}

}  // namespace troupe::cli
