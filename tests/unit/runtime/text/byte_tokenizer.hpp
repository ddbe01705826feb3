// A tokenizer that tests write into the folder of a tiny model. Any thread.
#pragma once

#include "apps/cli/byte_tokenizer.hpp"

#include <filesystem>
#include <fstream>

namespace troupe::test {

// A tokenizer of bytes: token b is byte b, token 256 the end.
inline void write_byte_tokenizer(const std::filesystem::path& folder) {
  std::ofstream(folder / "tokenizer.json") << cli::byte_tokenizer().dump();
  std::ofstream(folder / "tokenizer_config.json") << cli::kByteTokenizerConfig;
}

}  // namespace troupe::test
