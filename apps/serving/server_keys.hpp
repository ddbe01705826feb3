// The API keys of a server at work: whose a request is, what it may do, and which limits hold for
// it. On the HTTP server's strand.
#pragma once

#include "apps/serving/key_meter.hpp"
#include "runtime/net/http.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::serving {

class ServerKeys {
 public:
  // The place of a key in the list; nothing: a request without one.
  using Place = std::optional<std::size_t>;

  // `requests_max`: of the server, at a time. `events` and `clock` outlive it.
  ServerKeys(ApiKeys keys,
             std::size_t requests_max,
             dialects::GenerationEvents& events,
             const core::Clock& clock);

  bool any() const noexcept { return keys_.any(); }
  // The key of a request, in Authorization or, for Anthropic's paths, in x-api-key.
  Place find(const net::HttpRequest& request, dialects::ErrorForm form) const;
  // Null without a key.
  KeyMeter* meter(Place key) const { return key ? meters_[*key].get() : nullptr; }
  // Whose share of the engine its requests take; 0 where it is not shared.
  std::uint32_t owner(Place key) const;
  // A request of the key begins. The error says which of its limits refuses it.
  std::variant<KeyMeter::Lease, dialects::ApiError> begin(Place key) const;
  // Why the key may not control the server; "": it may.
  std::string control_refusal(Place key) const;
  std::vector<KeyUse> uses() const;

 private:
  const ApiKeys keys_;
  RequestPlaces places_;
  const std::vector<std::unique_ptr<KeyMeter>> meters_;  // by key
};

}  // namespace troupe::serving
