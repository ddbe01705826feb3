// Parses, checks and formats the JSON header of safetensors files. Pure functions on memory; safe
// on any thread. Bounds: store/limits.hpp.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/store/safetensors.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::store {

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // by offset
  std::map<std::string, std::string> metadata;
};

// Parses a header whose tensors must cover exactly `data_bytes` bytes of data. The caller bounds
// the length of `text`; this function bounds the number of tensors while it parses. Accepts what
// the safetensors library accepts, except duplicate names, entries that are lists, dtypes that are
// not in Dtype, and more than kSafetensorsRank_max dimensions. Errors are kData and name the
// tensor.
core::Result<SafetensorsHeader> parse_safetensors_header(std::string_view text,
                                                         std::uint64_t data_bytes);

// Formats a header as JSON, padded with blanks to a multiple of 8 bytes. Each tensor's `begin` and
// `end` must be set.
std::string format_safetensors_header(std::span<const TensorInfo> tensors,
                                      const std::map<std::string, std::string>& metadata);

// Sets `count` to the number of elements of `shape`, and `bytes` to their size in `dtype`. Returns
// false if a number overflows or a dimension is negative.
bool checked_size(const std::vector<std::int64_t>& shape,
                  Dtype dtype,
                  std::int64_t& count,
                  std::uint64_t& bytes);

}  // namespace troupe::store
