// What all Python workers say alike: their first line, and the traceback of an error. Pure.
#pragma once

#include "runtime/core/clock.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <string>

namespace troupe::actors {

// Until a worker has said its first line: imports may be slow.
inline constexpr core::Duration kWorkerStart = std::chrono::seconds(60);

// A worker's first line as an object; what is none is an error of the file.
inline nlohmann::json first_words(const std::string& line) {
  nlohmann::json said = nlohmann::json::parse(line, nullptr, false);
  if (said.is_object()) return said;
  return {{"ready", false}, {"error", line}};
}

// The end of a traceback, where the exception is.
inline std::string end_of_trace(const std::string& text) {
  constexpr std::size_t kTrace_bytes_max = 1200;
  if (text.size() <= kTrace_bytes_max) return text;
  return "..." + text.substr(text.size() - kTrace_bytes_max);
}

}  // namespace troupe::actors
