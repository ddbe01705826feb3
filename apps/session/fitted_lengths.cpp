#include "apps/session/fitted_lengths.hpp"

#include "apps/session/roles/run_settings.hpp"
#include "runtime/config/read.hpp"
#include "runtime/model/spec.hpp"

#include <string>

namespace troupe::session {

core::Result<void> fit_lengths(config::Builder& builder) {
  constexpr const char* kPrompt = "data.prompt_max_len";
  const config::TrainConfig& config = builder.current();
  if (config.method != config::kPpo || builder.origins().contains(kPrompt)) return {};
  const auto folder = trained_folder(config);
  if (!folder) return {};
  const auto spec = model::read_spec(*folder);
  if (!spec) return {};
  const std::int64_t room = spec->context - config.rollout.max_new_tokens;
  if (room < 1 || room >= config.data.prompt_max_len) return {};
  return builder.set({kPrompt, {std::to_string(room)}, false, "the model's context"});
}

}  // namespace troupe::session
