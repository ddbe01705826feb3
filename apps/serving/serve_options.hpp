// The flags of `troupe serve`: declares them, checks them, and makes the settings of engine and
// HTTP server from them. Main thread.
#pragma once

#include "apps/cli/engine_host.hpp"
#include "apps/cli/flags.hpp"
#include "apps/serving/api_key.hpp"
#include "apps/serving/limits.hpp"
#include "apps/session/node/guest_flags.hpp"
#include "apps/session/node/join_flags.hpp"
#include "runtime/dialects/generate_request.hpp"
#include "runtime/dialects/served_model.hpp"
#include "runtime/engine/engine_settings.hpp"
#include "runtime/net/http_server.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::serving {

struct ServeOptions {
  std::string model, host = "127.0.0.1", key_file, chat_template, tool_parser, dtype = "f32";
  std::string history = "template", logprobs_mode = "raw_logprobs";
  std::string certificate_file, certificate_key_file;
  std::vector<std::string> names, keys, hosts;
  std::int64_t port = 8000, connections = limits::kServeConnections;
  std::int64_t context = 0, sequences = 256, step_tokens = 512, kv_bytes = 1ll << 30;
  dialects::ServeBounds bounds;
  bool insecure = false, prefix_cache = false, no_prefix_cache = false, no_tokenizer = false;
  session::JoinFlags join;
  session::GuestFlags guest;
  bool learn = false;  // the run learns from sessions
  double reward_timeout_s = 60;
  cli::Placement placement;

  std::vector<cli::Flag> flags();

  // True if --host is a loopback address.
  bool loopback() const;
  // If other hosts can reach the port without TLS: warns with --insecure, else returns kConfig.
  Result<void> check_listen(const ApiKeys& keys) const;
  // Checks the flags against the model before its weights are read. Error kConfig, naming the flag.
  Result<void> check_model(const model::ModelSpec& spec) const;
  // Error kConfig, naming the flag, if the flags need a tokenizer that is missing or switched off.
  Result<void> check_tokenizer(const std::filesystem::path& folder) const;
  cli::TokenizerUse tokenizer_use() const {
    return no_tokenizer ? cli::TokenizerUse::kNone : cli::TokenizerUse::kNeeded;
  }
  engine::EngineLimits limits() const;
  // Reads the files of --ssl-certfile and --ssl-keyfile. Error kConfig, naming the flag.
  Result<net::HttpServerOptions> listen() const;
  // The base URL of the API: "http://127.0.0.1:8000/v1". `bound`: the port in use.
  std::string address(std::uint16_t bound) const;
  // Call it after `check_model`. Error kConfig: the file of --chat-template is bad.
  Result<dialects::ServedModel> served_model(cli::EngineHost& engine_host) const;

 private:
  // What the limits come to with keys and values as --dtype and --device store them. Error kConfig,
  // naming --dtype or --kv-cache-memory-bytes.
  Result<engine::EngineSettings> settings(const model::ModelSpec& spec) const;
  kernels::KvDtype kv_dtype() const;
  // The longest sample that the cache holds, in tokens, and the bytes that a longer one takes.
  std::int64_t longest_sample(const model::ModelSpec& spec,
                              const engine::EngineSettings& fits) const;
  std::uint64_t bytes_for(const model::ModelSpec& spec, std::int64_t tokens) const;
};

}  // namespace troupe::serving
