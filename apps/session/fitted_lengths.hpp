// Settings that follow from the model that were not given. Reads the model's config.json.
#pragma once

#include "runtime/config/builder.hpp"

namespace troupe::session {

// data.prompt_max_len: what the model's context leaves after rollout.max_new_tokens, if that is
// less than the default. A model that cannot be read changes nothing: loading it says why.
core::Result<void> fit_lengths(config::Builder& builder);

}  // namespace troupe::session
