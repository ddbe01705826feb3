// Reads the fields of a request that say how to sample. Their names are those of OpenAI and vLLM.
// Errors go to the JsonFields that were given.
#pragma once

#include "runtime/dialects/generate_request.hpp"
#include "runtime/dialects/json_fields.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::dialects {

// A list of token ids; complains about anything else in it.
std::vector<std::int32_t> read_tokens(JsonFields& fields,
                                      std::string_view name,
                                      const nlohmann::ordered_json& list);

// temperature, top_p, stop, n, seed, skip_special_tokens, ...; not max_tokens and logprobs, which
// mean something else in each dialect. `stop_name`: the field of stop strings.
void read_sampling(JsonFields& fields,
                   const ServeBounds& bounds,
                   GenerateRequest& out,
                   std::string_view stop_name = "stop");

// cache_salt and priority.
void read_cache(JsonFields& fields, GenerateRequest& out);

// The object `sampling_params` of /inference/v1/generate, with the names of vLLM's SamplingParams.
void read_sampling_params(JsonFields& fields,
                          const nlohmann::ordered_json& params,
                          const ServeBounds& bounds,
                          GenerateRequest& out);

}  // namespace troupe::dialects
