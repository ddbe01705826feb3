// Tokenizers without a model, for the tests of runtime/text: their tokenizer.json is written here.
#pragma once

#include "runtime/text/tokenizer.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace troupe::text {

// A folder that lives as long as the test.
class TempFolder {
 public:
  TempFolder() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string("text_") + info->test_suite_name() + "_" + info->name());
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
  }

 private:
  std::filesystem::path path_;
};

inline std::string utf8(unsigned point) {
  if (point < 0x80) return {static_cast<char>(point)};
  return {static_cast<char>(0xC0 | (point >> 6)), static_cast<char>(0x80 | (point & 0x3F))};
}

// The printable letter that byte-level vocabularies write for a byte: itself where it prints, else
// the next of U+0100, U+0101, ...
inline std::string byte_letter(unsigned byte) {
  const auto prints = [](unsigned b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
  };
  if (prints(byte)) return utf8(byte);
  unsigned place = 0;
  for (unsigned b = 0; b < byte; ++b)
    place += prints(b) ? 0 : 1;
  return utf8(0x100 + place);
}

inline constexpr TokenId kEnd = 256;  // "<|end|>"

// 257 tokens: id b is byte b, id 256 the special token "<|end|>". No merges.
inline nlohmann::json byte_level_json() {
  auto json = nlohmann::json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
    "added_tokens": [{"id": 256, "content": "<|end|>", "single_word": false, "lstrip": false,
                      "rstrip": false, "normalized": false, "special": true}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                      "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
                "use_regex": true},
    "model": {"type": "BPE", "dropout": null, "unk_token": null,
              "continuing_subword_prefix": null, "end_of_word_suffix": null,
              "fuse_unk": false, "byte_fallback": false, "vocab": {"<|end|>": 256},
              "merges": []}
  })");
  for (unsigned byte = 0; byte < 256; ++byte)
    json["model"]["vocab"][byte_letter(byte)] = byte;
  return json;
}

// The same with the token "<|bos|>", id 257, which the post-processor puts in front of a text, and
// the end token behind it.
inline nlohmann::json framed_byte_level_json() {
  nlohmann::json json = byte_level_json();
  nlohmann::json bos = json["added_tokens"][0];
  bos["id"] = 257;
  bos["content"] = "<|bos|>";
  json["added_tokens"].push_back(bos);
  json["post_processor"] = nlohmann::json::parse(R"({
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<|bos|>", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "<|end|>", "type_id": 0}}],
    "pair": [],
    "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [256], "tokens": ["<|end|>"]},
                       "<|bos|>": {"id": "<|bos|>", "ids": [257], "tokens": ["<|bos|>"]}}
  })");
  return json;
}

inline Tokenizer byte_level_tokenizer(SpecialTokens special = {}) {
  auto tokenizer = Tokenizer::parse(byte_level_json().dump(), std::move(special), "byte level");
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return *tokenizer;
}

inline std::vector<TokenId> bytes_of(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text)
    ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

// The real small model's folder, or nothing where it has not been fetched.
inline std::string real_model_folder() {
  const char* folder = std::getenv("TROUPE_TEST_MODEL");
  if (folder == nullptr) return {};
  const bool there = std::filesystem::exists(std::filesystem::path(folder) / "tokenizer.json");
  return there ? folder : "";
}

}  // namespace troupe::text
