#include "apps/serving/serve_options.hpp"

#include "apps/cli/dtype_flag.hpp"
#include "apps/serving/api_service.hpp"
#include "runtime/engine/cache_fit.hpp"
#include "runtime/engine/group.hpp"

#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <utility>

namespace troupe::serving {

std::vector<cli::Flag> ServeOptions::flags() {
  static const std::string kToolParserHelp = std::string("how the model writes calls of tools: ") +
                                             dialects::kToolFormat_names +
                                             " (default: as its chat template shows)";
  std::vector<cli::Flag> list = {
      {"--model,model", &model, "Hugging Face folder or OWNER/NAME; may stand alone", true},
      {"--host", &host, "address to listen on"},
      {"--port", &port, "port to listen on; 0 takes a free one", false, 0, 65535},
      {"--api-key", &keys, "a key that lets clients in (others on this machine can see it)"},
      {"--api-key-file", &key_file, "file of keys, one a line; or TROUPE_API_KEY"},
      {"--ssl-certfile", &certificate_file,
       "certificate in PEM, with those that signed it: the server speaks HTTPS"},
      {"--ssl-keyfile", &certificate_key_file, "private key of --ssl-certfile in PEM"},
      {"--served-model-name", &names,
       "name in the API (default: the folder's, or OWNER/NAME); may be repeated"},
      {"--chat-template", &chat_template, "a Jinja file in place of the model's template"},
      {"--tool-call-parser", &tool_parser, kToolParserHelp},
      {"--session-history", &history,
       "when the template renders a session's past differently: template (fork) or keep"},
      {"--learn", &learn,
       "with --join: the run learns from sessions of this server, by the reward that each is "
       "given"},
      {"--reward-timeout-s", &reward_timeout_s,
       "of --learn: how long a session may go without its reward; then it does not count", false, 0,
       86400},
      {"--max-model-len", &context, "longest prompt and response; 0 = the model's", false, 0, 1e9},
      {"--max-num-seqs", &sequences, "sequences computed at a time", false, 1, 65536},
      {"--max-num-batched-tokens", &step_tokens, "tokens of one step", false, 1, 1e6},
      {"--kv-cache-memory-bytes", &kv_bytes, "memory for keys and values", false, 1, 1e15},
      {"--enable-prefix-caching", &prefix_cache, "find computed prompts again (the default)"},
      {"--no-enable-prefix-caching", &no_prefix_cache, "compute every prompt anew"},
      {"--max-logprobs", &bounds.logprobs_max, "alternatives a request may ask for", false, 0,
       1000},
      {"--enable-return-routed-experts", &bounds.routed_experts,
       "every answer says which experts its tokens chose (a request: return_routed_experts)"},
      {"--logprobs-mode", &logprobs_mode,
       "raw_logprobs (at temperature 1), or processed_logprobs (as drawn)"},
      {"--return-tokens-as-token-ids", &bounds.tokens_as_ids,
       "log-probs call tokens token_id:5 (a request: return_tokens_as_token_ids)"},
      {"--skip-tokenizer-init", &no_tokenizer, "no tokenizer: prompts and answers are token ids"},
      {"--max-connections", &connections, "clients at a time; others are told 503", false, 1,
       100'000},
      {"--allow-host", &hosts, "host name by which clients call this server"},
      {"--insecure", &insecure, "listen beyond loopback without TLS"},
      {"--dtype", &dtype, cli::kDtypeHelp},
      {"--device", &placement.device, cli::kDeviceHelp},
      {"--threads", &placement.threads, "0 = all usable cores of the CPU", false, 0, 1024}};
  for (cli::Flag flag : join.flags()) {
    flag.required = false;
    if (flag.name == "--join")
      flag.help = "serve the live policy of a run: HOST:PORT, or its folder";
    list.push_back(std::move(flag));
  }
  guest.add_to(list);
  return list;
}

bool ServeOptions::loopback() const {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

Result<void> ServeOptions::check_listen(const ApiKeys& api_keys) const {
  if (loopback()) return {};
  if (!certificate_file.empty()) {
    if (!api_keys.any()) {
      std::fprintf(stderr, "warning: %s can be reached from other hosts; no API key is required\n",
                   host.c_str());
    }
    return {};
  }
  if (!insecure) {
    return fail(
        ErrorCode::kConfig,
        "--host " + host + " can be reached from other hosts, and its traffic is not encrypted",
        "give --ssl-certfile and --ssl-keyfile, put a TLS proxy in front of 127.0.0.1, or "
        "accept it by --insecure");
  }
  std::fprintf(stderr, "warning: %s can be reached from other hosts; nothing is encrypted%s\n",
               host.c_str(), api_keys.any() ? "" : " and no API key is required");
  return {};
}

Result<void> ServeOptions::check_model(const model::ModelSpec& spec) const {
  if (prefix_cache && no_prefix_cache) {
    return fail(ErrorCode::kConfig,
                "--enable-prefix-caching and --no-enable-prefix-caching exclude each other");
  }
  if (!tool_parser.empty() && !dialects::tool_format_of(tool_parser)) {
    return fail(ErrorCode::kConfig, "--tool-call-parser " + tool_parser + " is not known",
                std::string("use ") + dialects::kToolFormat_names);
  }
  if (history != "template" && history != "keep") {
    return fail(ErrorCode::kConfig, "--session-history " + history + " is not known",
                "use template or keep");
  }
  if (logprobs_mode != "raw_logprobs" && logprobs_mode != "processed_logprobs") {
    return fail(ErrorCode::kConfig, "--logprobs-mode: '" + logprobs_mode + "'",
                "expected raw_logprobs or processed_logprobs");
  }
  if (context > spec.context) {
    return fail(ErrorCode::kConfig,
                "--max-model-len " + std::to_string(context) + ": the model has positions for " +
                    std::to_string(spec.context),
                "give at most as many");
  }
  if (bounds.routed_experts && spec.moe.sparse_layers(spec.layers) == 0) {
    return fail(ErrorCode::kConfig,
                "--enable-return-routed-experts: a " + spec.architecture + " has no experts");
  }
  TROUPE_TRY_ASSIGN(fits, settings(spec));
  const std::int64_t longest = longest_sample(spec, fits);
  if (longest >= fits.context) return {};
  const std::string held = "--kv-cache-memory-bytes " + std::to_string(kv_bytes) +
                           " holds the keys and values of " + std::to_string(longest) + " tokens";
  if (context > 0) {
    return fail(ErrorCode::kConfig, "--max-model-len " + std::to_string(context) + ": " + held,
                "give at least " + std::to_string(bytes_for(spec, fits.context)) +
                    " bytes, or a smaller --max-model-len");
  }
  cli::warn("max_model_len is " + std::to_string(longest) + " in place of the model's " +
            std::to_string(fits.context) + ": " + held + "; all take " +
            std::to_string(bytes_for(spec, fits.context)));
  return {};
}

std::int64_t ServeOptions::longest_sample(const model::ModelSpec& spec,
                                          const engine::EngineSettings& fits) const {
  return engine::longest_sample(spec, kv_dtype(), limits(), fits.context);
}

std::uint64_t ServeOptions::bytes_for(const model::ModelSpec& spec, std::int64_t tokens) const {
  return engine::cache_fit(spec, kv_dtype(), limits(), {tokens - 1, 1, 1}).wanted_bytes();
}

kernels::KvDtype ServeOptions::kv_dtype() const {
  const auto weights = cli::panel_dtype("troupe serve", dtype, placement.device);
  return weights ? kernels::kv_dtype_of(*weights, placement.device == "cpu")
                 : kernels::KvDtype::kF32;
}

Result<engine::EngineSettings> ServeOptions::settings(const model::ModelSpec& spec) const {
  TROUPE_TRY(cli::panel_dtype("troupe serve", dtype, placement.device));
  auto fits = engine::settings_for(spec, kv_dtype(), limits());
  if (fits) return fits;
  return fail(ErrorCode::kConfig, "--kv-cache-memory-bytes: " + std::string(fits.error().what()),
              "give more");
}

Result<void> ServeOptions::check_tokenizer(const std::filesystem::path& folder) const {
  if (no_tokenizer && !chat_template.empty()) {
    return fail(ErrorCode::kConfig,
                "--chat-template needs the tokenizer that --skip-tokenizer-init leaves out");
  }
  std::error_code error;
  if (no_tokenizer || std::filesystem::exists(folder / "tokenizer.json", error)) return {};
  return fail(ErrorCode::kConfig, "no tokenizer.json in " + folder.string(),
              "--skip-tokenizer-init serves token ids without one");
}

engine::EngineLimits ServeOptions::limits() const {
  engine::EngineLimits limits;
  limits.context = static_cast<std::int32_t>(context);
  limits.max_num_seqs = static_cast<std::int32_t>(sequences);
  limits.max_num_batched_tokens = static_cast<std::int32_t>(step_tokens);
  limits.kv_cache_gb.bytes = static_cast<std::uint64_t>(kv_bytes);
  limits.enable_prefix_caching = !no_prefix_cache;
  return limits;
}

Result<net::HttpServerOptions> ServeOptions::listen() const {
  net::HttpServerOptions listen;
  if (certificate_file.empty() != certificate_key_file.empty()) {
    return fail(ErrorCode::kConfig,
                std::string(certificate_file.empty() ? "--ssl-keyfile" : "--ssl-certfile") +
                    " stands alone",
                "HTTPS takes --ssl-certfile and --ssl-keyfile");
  }
  if (!certificate_file.empty()) {
    auto tls = net::HttpsContext::load({certificate_file, certificate_key_file});
    if (!tls) return fail(tls.error().within("--ssl-certfile, --ssl-keyfile"));
    listen.tls = std::move(*tls);
  }
  listen.host = host;
  listen.port = static_cast<std::uint16_t>(port);
  listen.allowed_hosts = hosts;
  listen.connections_max = static_cast<std::uint64_t>(connections);
  listen.watch_clients = true;
  listen.complaint = &ApiService::complaint;
  return listen;
}

std::string ServeOptions::address(std::uint16_t bound) const {
  const bool bracket = host.find(':') != std::string::npos;
  const std::string scheme = certificate_file.empty() ? "http://" : "https://";
  return scheme + (bracket ? "[" + host + "]" : host) + ":" + std::to_string(bound) + "/v1";
}

namespace {

// The names of a model without --served-model-name. A folder has two: its last component, and
// --model as given. A model given as "org/name" has only that name.
std::vector<std::string> default_names(const std::string& model,
                                       const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::equivalent(model, folder, error) && model[0] != '~') return {model};
  const std::filesystem::path whole = std::filesystem::absolute(folder, error).lexically_normal();
  std::string own = whole.filename().string();
  if (own.empty()) own = whole.parent_path().filename().string();  // "folder/"
  if (own.empty() || own == model) return {model};
  return {own, model};
}

}  // namespace

Result<dialects::ServedModel> ServeOptions::served_model(cli::EngineHost& engine_host) const {
  const model::ModelSpec& spec = engine_host.spec();
  TROUPE_TRY_ASSIGN(fits, settings(spec));
  dialects::ServedModel made{.names = names,
                             .root = model,
                             .tokenizer = std::nullopt,
                             .chat = std::nullopt,
                             .no_chat = engine_host.no_chat()};
  if (engine_host.has_tokenizer()) made.tokenizer = engine_host.tokenizer();
  if (made.names.empty()) made.names = default_names(model, engine_host.folder());
  if (engine_host.chat() != nullptr) made.chat = *engine_host.chat();
  made.context = static_cast<std::int32_t>(longest_sample(spec, fits));
  made.positions_max = std::int64_t{fits.blocks} * engine::kBlockTokens;
  made.vocab = spec.vocab;
  made.moe_layers = spec.moe.sparse_layers(spec.layers);
  made.experts_per_token = spec.moe.experts_per_token;
  made.created_s = static_cast<std::int64_t>(std::time(nullptr));
  if (made.tokenizer) {
    made.token_bytes_max = dialects::longest_token_bytes(*made.tokenizer);
    made.guides = dialects::guides_of(engine_host.folder(), made.vocab);
  }
  if (!chat_template.empty()) {
    std::ifstream in(chat_template);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) return fail(ErrorCode::kConfig, "--chat-template: cannot read " + chat_template);
    TROUPE_TRY_SET(made.chat,
                   text::ChatTemplate::parse(text.str(), made.tokenizer->special(), chat_template));
  }
  if (made.chat) made.tool_format = dialects::tool_format_of_template(made.chat->source());
  if (const auto given = dialects::tool_format_of(tool_parser)) made.tool_format = *given;
  return made;
}

}  // namespace troupe::serving
