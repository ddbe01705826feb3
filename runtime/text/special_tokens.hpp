// Which tokens begin, end and pad a sequence, by the files of a Hugging Face folder:
// tokenizer_config.json first, then special_tokens_map.json, generation_config.json, config.json.
// The first file that says something about a role decides it; ends of sequence add up, because chat
// models list further ones in generation_config.json. Value type; reads at most 64 MiB a file.
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
  // Spellings, for the variables of a chat template. Empty where no file names one.
  std::string bos, eos, pad, unk;
  // Ids that generation_config.json or config.json give; -1 or empty where they give none.
  TokenId bos_id = -1;
  TokenId pad_id = -1;
  std::vector<TokenId> eos_ids;
};

// The spellings, by their names in files and templates.
inline constexpr std::pair<const char*, std::string SpecialTokens::*> kSpellings[] = {
    {"bos_token", &SpecialTokens::bos},
    {"eos_token", &SpecialTokens::eos},
    {"pad_token", &SpecialTokens::pad},
    {"unk_token", &SpecialTokens::unk}};

// Missing files are no error; a malformed one is kData and names file and key.
core::Result<SpecialTokens> read_special_tokens(const std::filesystem::path& folder);

// The "chat_template" of tokenizer_config.json: the text, the entry named "default" where it is a
// list of named templates, nothing where there is none.
core::Result<std::optional<std::string>> read_config_template(const std::filesystem::path& folder);

// A whole file. kNotFound if there is none, kData above `bytes_max`.
core::Result<std::string> read_file(const std::filesystem::path& path, std::size_t bytes_max);

}  // namespace troupe::text
