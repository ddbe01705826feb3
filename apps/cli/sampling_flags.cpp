#include "apps/cli/sampling_flags.hpp"

#include "runtime/config/read.hpp"

namespace troupe::cli {

void SamplingFlags::add_to(std::vector<Flag>& flags) {
  flags.push_back({"--max-new-tokens", &max_new_tokens, "longest response, tokens", false, 1, 1e6});
  flags.push_back({"--temperature", &temperature, "0 takes the likeliest token", false, 0, 100});
  flags.push_back({"--top-p", &top_p, "nucleus; 1 = off", false, 1e-6, 1});
  flags.push_back({"--top-k", &top_k, "among the k likeliest; 0 = off", false, 0, 1e8});
  flags.push_back({"--min-p", &min_p, "drop below this share of the likeliest", false, 0, 1});
  flags.push_back({"--stop", &stop, "end once the text holds it; \\n is a newline"});
  flags.push_back({"--seed", &seed, "seed of sampling", false, 0, 1e18});
}

engine::SamplingParams SamplingFlags::params() const {
  engine::SamplingParams out;
  out.max_new_tokens = static_cast<std::int32_t>(max_new_tokens);
  out.temperature = static_cast<float>(temperature);
  out.top_p = static_cast<float>(top_p);
  out.top_k = static_cast<std::int32_t>(top_k);
  out.min_p = static_cast<float>(min_p);
  for (const std::string& text : stop)
    out.stop_strings.push_back(config::unescape_flag(text));
  return out;
}

}  // namespace troupe::cli
