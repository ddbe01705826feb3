// A tokenizer that tests write into the folder of a tiny model. Any thread.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace troupe::test {

// A tokenizer of bytes: token b is byte b, token 256 the end.
inline void write_byte_tokenizer(const std::filesystem::path& folder) {
  nlohmann::json vocab = {{"<|end|>", 256}};
  unsigned next = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool prints =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    const unsigned point = prints ? byte : 0x100 + next++;
    std::string letter;
    if (point < 0x80) {
      letter = {static_cast<char>(point)};
    } else {
      letter = {static_cast<char>(0xC0 | (point >> 6)), static_cast<char>(0x80 | (point & 0x3F))};
    }
    vocab[letter] = byte;
  }
  const nlohmann::json level = {{"type", "ByteLevel"},
                                {"add_prefix_space", false},
                                {"trim_offsets", true},
                                {"use_regex", true}};
  const nlohmann::json tokenizer = {{"version", "1.0"},
                                    {"truncation", nullptr},
                                    {"padding", nullptr},
                                    {"added_tokens",
                                     {{{"id", 256},
                                       {"content", "<|end|>"},
                                       {"single_word", false},
                                       {"lstrip", false},
                                       {"rstrip", false},
                                       {"normalized", false},
                                       {"special", true}}}},
                                    {"normalizer", nullptr},
                                    {"pre_tokenizer", level},
                                    {"post_processor", nullptr},
                                    {"decoder", level},
                                    {"model",
                                     {{"type", "BPE"},
                                      {"dropout", nullptr},
                                      {"unk_token", nullptr},
                                      {"continuing_subword_prefix", nullptr},
                                      {"end_of_word_suffix", nullptr},
                                      {"fuse_unk", false},
                                      {"byte_fallback", false},
                                      {"vocab", vocab},
                                      {"merges", nlohmann::json::array()}}}};
  std::ofstream(folder / "tokenizer.json") << tokenizer.dump();
  std::ofstream(folder / "tokenizer_config.json")
      << R"({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>"})";
}

}  // namespace troupe::test
