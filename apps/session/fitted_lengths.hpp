// Settings that follow from the model where nobody has given them. Reads the model's config.json.
#pragma once

#include "runtime/config/builder.hpp"

namespace troupe::app {

// data.prompt_max_len: what the model's context leaves beside rollout.max_new_tokens, if that is
// less than the default. A model that cannot be read changes nothing: whoever loads it says why.
core::Result<void> fit_lengths(config::Builder& builder);

}  // namespace troupe::app
