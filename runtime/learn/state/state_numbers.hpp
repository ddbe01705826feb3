// JSON objects of numbers in a trainer's state. Plain functions.
#pragma once

#include "runtime/core/result.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <initializer_list>

namespace troupe::learn {

inline constexpr int kStateFormat = 1;
inline constexpr int kDividedFormat = 2;  // of counts: ranks have written the tensors in parts

// Reads a JSON object. Errors: kNotFound; kData if a key of `whole` has no unsigned integer, a key
// of `other` no number, or its format is not of `formats`.
core::Result<nlohmann::json> read_numbers(const std::filesystem::path& path,
                                          std::initializer_list<const char*> whole,
                                          std::initializer_list<const char*> other = {},
                                          std::initializer_list<int> formats = {kStateFormat});

}  // namespace troupe::learn
