// What a server says about itself: its model, its state, its metrics. Functions for the HTTP
// server's strand.
#pragma once

#include "apps/serving/engine_pump.hpp"
#include "apps/serving/serve_metrics.hpp"
#include "apps/serving/server_keys.hpp"
#include "runtime/dialects/generate_request.hpp"
#include "runtime/dialects/served_model.hpp"
#include "runtime/net/http.hpp"

#include <string>
#include <string_view>

namespace troupe::serving {

inline constexpr std::string_view kModelPath = "/v1/models/";  // followed by a name

// What pages are made of. All outlive it.
struct ServerFacts {
  const dialects::ServedModel& model;
  const dialects::ServeBounds& bounds;
  const std::string& dtype;
  const EnginePump& pump;
  const ServeMetrics& metrics;
  const ServerKeys& keys;
};

// `path`: as the request has it.
using ServerPage = net::HttpResponse(const ServerFacts& facts, const std::string& path);

ServerPage models_page, tokenizer_page, world_size_page, version_page, health_page, paused_page;
ServerPage sleeping_page, metrics_page;
ServerPage server_page;  // configuration as vLLM's clients read it; no weights are accepted

}  // namespace troupe::serving
