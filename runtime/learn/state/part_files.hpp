// The names and descriptions of the files of a state that ranks write (state_parts.hpp). Pure
// functions.
#pragma once

#include "runtime/core/ids.hpp"
#include "runtime/core/result.hpp"
#include "runtime/learn/state/saved_state.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace troupe::learn {

inline constexpr const char* kRanksFile = "ranks.json";
// "rank-2-of-4.safetensors".
std::string part_file(int rank, int ranks);
// Whether a file of this name is of a state that ranks wrote, but not of `ranks` ranks.
bool is_other_part(std::string_view name, int ranks);

// The text of ranks.json.
std::string describe_parts(const StateLayouts& layouts, int ranks);
// Error kData, naming `path`: `text` is not that of this model's state by `ranks` ranks.
core::Result<void> check_description(const std::filesystem::path& path,
                                     const std::string& text,
                                     const StateLayouts& layouts,
                                     int ranks);

// What the file of a rank says of itself. `description`: the CRC of the text of ranks.json.
using PartFacts = std::map<std::string, std::string>;
PartFacts part_facts(int rank, int ranks, core::Version version, std::uint32_t description);
// Error kData, naming `path` and the fact that differs.
core::Result<void> check_facts(const std::filesystem::path& path,
                               const PartFacts& found,
                               const PartFacts& expected);

// kData: `path` cannot be used, and what to do.
core::Failure unusable_part(const std::filesystem::path& path, const std::string& why);

}  // namespace troupe::learn
