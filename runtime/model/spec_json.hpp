// Typed access to the keys of a model's config.json, with error messages that name file and key.
// Internal to this room. A key with the value null counts as absent, as in transformers.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/families.hpp"
#include "runtime/model/spec.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace troupe::model {

// Bounds on the numbers of a config.json, checked before any of them sizes an allocation.
inline constexpr std::int64_t kLayers_max = 1024;
inline constexpr std::int64_t kWidth_max = 1 << 20;
inline constexpr std::int64_t kHeads_max = 4096;
inline constexpr std::int64_t kHeadDim_max = 256;  // the limit of the attention kernels
inline constexpr std::int64_t kVocab_max = 1 << 24;
inline constexpr std::int64_t kContext_max = 1 << 21;
inline constexpr std::int64_t kParameters_max = std::int64_t{1} << 40;

// Reads keys of one JSON object, which must outlive it. `where` is put in front of error messages.
class ConfigReader {
 public:
  ConfigReader(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  const nlohmann::json* find(const char* key) const;  // null when absent or JSON null
  bool is_null(const char* key) const;                // present, with the value null

  // A whole number in [low, high]. If the key is absent: `fallback`, or an error if that is
  // negative.
  core::Result<std::int64_t> whole(const char* key,
                                   std::int64_t low,
                                   std::int64_t high,
                                   std::int64_t fallback = -1) const;
  core::Result<double> number(const char* key, double fallback) const;
  core::Result<bool> flag(const char* key, bool fallback) const;
  core::Result<std::string> text(const char* key, const std::string& fallback) const;

  core::Failure malformed(const std::string& why, std::string_view advice = {}) const;  // kData
  core::Failure unsupported(const std::string& what,
                            std::string_view advice = {}) const;  // kUnsupported

 private:
  const nlohmann::json& object_;
  std::string where_;
};

// Parses a JSON object; nesting is bounded.
core::Result<nlohmann::json> parse_config_json(const std::string& text, const std::string& where);

// Writes the keys of a model with experts; does nothing for a dense one.
void put_moe(nlohmann::ordered_json& config, const ModelSpec& spec);

// Reads `rope_theta` with `rope_scaling` (transformers 4), or `rope_parameters` (transformers 5).
// Fills in rope, sliding_rope and rotary_dim; the spec's head_dim must be known.
core::Result<void> read_rope(const ConfigReader& config, const Family& family, ModelSpec& spec);
// Reads which layers slide, and their window (window_spec.cpp); the spec's layers must be known.
core::Result<void> read_windows(const ConfigReader& config, const Family& family, ModelSpec& spec);

}  // namespace troupe::model
