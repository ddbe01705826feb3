// Parses, checks and writes the JSON header of safetensors files, for reader, writer and fuzzer.
// Pure functions on memory; safe on any thread. Bounds: store/limits.hpp.
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
  std::vector<TensorInfo> tensors;  // by place
  std::map<std::string, std::string> metadata;
};

// Parses `text`, whose tensors must cover exactly `data_bytes` bytes. The caller has bounded the
// length of the text; the number of tensors is bounded while it is read. Accepts what the
// safetensors library accepts, but for names that stand twice, entries that are lists and dtypes
// or ranks that no model here has. Errors are kData and say which tensor is wrong.
core::Result<SafetensorsHeader> parse_safetensors_header(std::string_view text,
                                                         std::uint64_t data_bytes);

// The header's JSON, padded with blanks to a multiple of 8 bytes. `begin`/`end` must be set.
std::string format_safetensors_header(std::span<const TensorInfo> tensors,
                                      const std::map<std::string, std::string>& metadata);

// Elements of a shape and bytes of a dtype; false when they overflow or a dimension is negative.
bool checked_size(const std::vector<std::int64_t>& shape,
                  Dtype dtype,
                  std::int64_t& count,
                  std::uint64_t& bytes);

}  // namespace troupe::store
