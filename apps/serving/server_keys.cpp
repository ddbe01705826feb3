#include "apps/serving/server_keys.hpp"

#include "runtime/dialects/client_key.hpp"

namespace troupe::serving {

ServerKeys::ServerKeys(ApiKeys keys,
                       std::size_t requests_max,
                       dialects::GenerationEvents& events,
                       const core::Clock& clock)
    : keys_(std::move(keys)),
      places_{static_cast<std::int64_t>(requests_max), keys_.list().size() > 1},
      meters_(meters_of(keys_, places_, events, clock)) {}

ServerKeys::Place ServerKeys::find(const net::HttpRequest& request,
                                   dialects::ErrorForm form) const {
  const auto found =
      keys_.find(dialects::bearer_key(net::find_header(request.headers, "Authorization")));
  if (found || form != dialects::ErrorForm::kAnthropic) return found;
  return keys_.find(net::find_header(request.headers, "x-api-key"));
}

std::uint32_t ServerKeys::owner(Place key) const {
  return key && places_.shared ? static_cast<std::uint32_t>(*key) + 1 : 0;
}

std::variant<KeyMeter::Lease, dialects::ApiError> ServerKeys::begin(Place key) const {
  return key ? meter(key)->begin() : KeyMeter::Lease();
}

std::string ServerKeys::control_refusal(Place key) const {
  if (!key || keys_.list()[*key].control) return "";
  return "the API key '" + keys_.list()[*key].name +
         "' may not control this server; that is the word `control` behind it in the file of "
         "--api-key-file";
}

std::vector<KeyUse> ServerKeys::uses() const {
  std::vector<KeyUse> uses;
  for (const auto& meter : meters_)
    uses.push_back(meter->use());
  return uses;
}

}  // namespace troupe::serving
