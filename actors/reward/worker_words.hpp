// What all Python workers say alike: their first line, and why one does not start. Pure.
#pragma once

#include "runtime/core/clock.hpp"
#include "runtime/core/foreign_text.hpp"
#include "runtime/core/result.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <string>

namespace troupe::actors::reward {

// Until a worker has said its first line: imports may be slow.
inline constexpr core::Duration kWorkerStart = std::chrono::seconds(60);

// A worker's first line as an object; anything else is an error of the file.
inline nlohmann::json first_words(const std::string& line) {
  nlohmann::json said = nlohmann::json::parse(line, nullptr, false);
  if (said.is_object()) return said;
  return {{"ready", false}, {"error", line}};
}

// What the words of a file that does not load say, and which Python read it. `key` names another.
inline core::Failure refused_file(const nlohmann::json& line,
                                  const std::string& where,
                                  const std::string& key) {
  const auto text = [&line](const char* name) {
    const auto found = line.find(name);
    return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const std::string python = text("interpreter"), said = text("error");
  const std::string read_by = python.empty() ? "" : " (read by " + python + ")";
  const bool package = said.find("ModuleNotFoundError") != said.npos;
  return core::fail(
      core::ErrorCode::kConfig,
      where + " does not load" + read_by + ":" + core::foreign(said.empty() ? line.dump() : said),
      package ? "install it there, or name another Python by " +
                    (key.empty() ? "PATH" : "PATH or --" + key)
              : "");
}

// Why a worker has not said a first line.
inline core::Error refused_start(const core::Error& error,
                                 const std::string& where,
                                 const std::string& interpreter,
                                 const std::string& key) {
  const char* path = std::getenv("PATH");
  if (error.code == core::ErrorCode::kDeadline) {
    const auto limit = std::chrono::duration_cast<std::chrono::seconds>(kWorkerStart).count();
    return core::advised(
        core::ErrorCode::kConfig,
        where + ": has not loaded within " + std::to_string(limit) + " s, which is the limit",
        "load what takes long when it is first called, not when the file is imported");
  }
  core::Error out = error.within(where);
  out.code = core::ErrorCode::kConfig;
  if (error.message.find("could not be started") == std::string::npos) return out;
  return core::advised(core::ErrorCode::kConfig,
                       where + ": there is no Python '" + interpreter +
                           "' that can be started (PATH is " +
                           (path == nullptr ? "not set" : path) + ")",
                       "name one with --" + key);
}

}  // namespace troupe::actors::reward
