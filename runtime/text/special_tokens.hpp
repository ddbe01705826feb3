// Reads from a Hugging Face folder which tokens begin, end and pad a sequence, and which one stands
// for unknown text. Spellings come from tokenizer_config.json, else special_tokens_map.json; ids
// from generation_config.json, else config.json. End-of-sequence ids are collected from both
// instead, because chat models list more of them in generation_config.json. A value type. A file
// may have at most 64 MiB.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/text/types.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::text {

struct SpecialTokens {
  // Spellings, for the variables of a chat template. Empty if no file names one.
  std::string bos, eos, pad, unk;
  // Ids from generation_config.json or config.json; -1 or empty if they give none.
  TokenId bos_id = -1;
  TokenId pad_id = -1;
  std::vector<TokenId> eos_ids;
};

// The spellings, with their names in files and templates.
inline constexpr std::pair<const char*, std::string SpecialTokens::*> kSpellings[] = {
    {"bos_token", &SpecialTokens::bos},
    {"eos_token", &SpecialTokens::eos},
    {"pad_token", &SpecialTokens::pad},
    {"unk_token", &SpecialTokens::unk}};

// Missing files are not an error. A malformed file is kData; the message names file and key.
core::Result<SpecialTokens> read_special_tokens(const std::filesystem::path& folder);

// The "chat_template" of tokenizer_config.json: the text, or the entry named "default" if it is a
// list of named templates. nullopt if there is none.
core::Result<std::optional<std::string>> read_config_template(const std::filesystem::path& folder);

// Reads a whole file. kNotFound if it does not exist; kData if it is larger or cannot be read.
core::Result<std::string> read_file(const std::filesystem::path& path, std::size_t bytes_max);

}  // namespace troupe::text
